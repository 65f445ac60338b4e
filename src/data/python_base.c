/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a config builds upon: `_base_`, merged as mmcv does. */
#include <string.h>

#include "data/python_parts.h"

enum { MAX_DEPTH = 8 };

static bool is_true(const oct_tree *t)
{
    return t && t->kind == OCT_TREE_SCALAR && t->is_plain && !strcmp(t->text, "true");
}

/* Without the mark itself. */
static oct_status put_entry(oct_python *y, oct_tree *into, const oct_tree *from, int depth)
{
    oct_tree *copy = NULL, *clean;

    OCT_TRY(oct_python_copy(y, from, depth, &copy));
    copy->key_line = from->key_line;
    copy->key_column = from->key_column;
    if (copy->kind == OCT_TREE_MAP && oct_tree_get(copy, "_delete_")) {
        if (!(clean = oct_tree_new(y->arena, OCT_TREE_MAP, from))) return OCT_ERR_MEMORY;
        for (oct_tree *t = copy->first, *next; t; t = next) {
            next = t->next;
            t->next = NULL;
            if (strcmp(t->key, "_delete_") != 0) oct_tree_add(clean, t->key, t);
        }
        clean->key_line = from->key_line;
        clean->key_column = from->key_column;
        copy = clean;
    }
    oct_tree_put(into, from->key, copy);
    return OCT_OK;
}

/* The entries of `over` into `under`. */
static oct_status merge(oct_python *y, oct_tree *under, const oct_tree *over, int depth)
{
    if (depth > OCT_TREE_MAX_DEPTH)
        return oct_python_fail(y, over->line, over->column, "nested too deep");
    for (const oct_tree *t = over->first; t; t = t->next) {
        oct_tree *have = oct_tree_get(under, t->key);

        if (have && have->kind == OCT_TREE_MAP && t->kind == OCT_TREE_MAP &&
            !is_true(oct_tree_get(t, "_delete_")))
            OCT_TRY(merge(y, have, t, depth + 1));
        else
            OCT_TRY(put_entry(y, under, t, depth));
    }
    return OCT_OK;
}

static oct_status read_base(oct_python *y, const oct_tree *path, int depth, oct_tree *into)
{
    oct_python base = {.ctx = y->ctx, .arena = y->arena, .line = 1, .o = y->o};
    const void *data = NULL;
    size_t size = 0;

    if (path->kind != OCT_TREE_SCALAR || path->is_plain)
        return oct_python_fail(y, path->line, path->column, "'_base_' wants names of files");
    if (depth == MAX_DEPTH)
        return oct_python_fail(y, path->line, path->column, "bases of bases of bases: too deep");
    if (!y->o || !y->o->open)
        return oct_python_fail(y, path->line, path->column,
                               "'_base_' needs the folder of the file, which is not known here");
    OCT_TRY(y->o->open(y->o->user, y->name, path->text, &base.name, &data, &size));
    OCT_TRY(oct_tree_check_text(y->ctx, base.name, data, size));
    base.p = base.line_start = data;
    base.end = size ? base.p + size : base.p;
    base.n_nodes = y->n_nodes;
    if (!(base.names = oct_tree_new(y->arena, OCT_TREE_MAP, path))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_python_statements(&base));
    OCT_TRY(oct_python_merge_bases(&base, depth + 1));
    y->n_nodes = base.n_nodes;
    return merge(y, into, base.names, 0);
}

oct_status oct_python_merge_bases(oct_python *y, int depth)
{
    const oct_tree *bases = oct_tree_get(y->names, "_base_");
    oct_tree *under;

    if (!bases || oct_tree_is_null(bases)) return OCT_OK;
    if (!(under = oct_tree_new(y->arena, OCT_TREE_MAP, y->names))) return OCT_ERR_MEMORY;
    if (bases->n > OCT_PYTHON_MAX_BASES)
        return oct_python_fail(y, bases->line, bases->column, "more than %d bases",
                               OCT_PYTHON_MAX_BASES);
    for (const oct_tree *t = bases->kind == OCT_TREE_LIST ? bases->first : bases; t;
         t = bases->kind == OCT_TREE_LIST ? t->next : NULL)
        OCT_TRY(read_base(y, t, depth, under));
    OCT_TRY(merge(y, under, y->names, 0));
    y->names = under;
    return OCT_OK;
}
