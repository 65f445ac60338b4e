/* SPDX-License-Identifier: Apache-2.0 */
/* What a field's text means: numbers, switches, choices, lists, subgraphs, overrides. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <octet/detect.h>

#include "base/str.h"
#include "recipe/recipe.h"

/* One reading: who asks, and for what. */
typedef struct reading {
    oct_recipe *r;
    const oct_recipe_source *s;
    const oct_field *f;
} reading;

static const char *kind_text(const oct_tree *t)
{
    return t->kind == OCT_TREE_MAP ? "keys with values" : "a list";
}

/* The text of a scalar; other kinds fail. */
static oct_status scalar(const reading *g, const oct_tree *t, const char *want)
{
    if (t->kind == OCT_TREE_SCALAR) return OCT_OK;
    return oct_recipe_fail(g->r, g->s, t, "'%s' wants %s, not %s", g->f->path, want, kind_text(t));
}

static oct_status wrong(const reading *g, const oct_tree *t, const char *want)
{
    return oct_recipe_fail(g->r, g->s, t, "'%s' wants %s, not '%.80s'%s", g->f->path, want, t->text,
                           t->is_plain || g->s->is_option ? "" : " in quotes");
}

static oct_status copy_text(const reading *g, const char *text, const char **out)
{
    *out = oct_arena_strdup(g->r->arena, text);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- scalars --- */

/* Metavars that stand for the names of a list of the library. */
typedef struct name_list {
    const char *metavar;
    const char *(*name)(int32_t i); /* NULL beyond the end */
    const char *first;              /* a word in front of them */
} name_list;

/* One of the names, or it fails in the manner of choices: later nobody knows the line any more. */
static oct_status check_name(const reading *g, const oct_tree *t, const name_list *list)
{
    const char *name;
    oct_hint hint;
    oct_status st;
    oct_str all;

    if (list->first && !strcmp(list->first, t->text)) return OCT_OK;
    for (int32_t i = 0; (name = list->name(i)); i++)
        if (!strcmp(name, t->text)) return OCT_OK;
    oct_hint_init(&hint, t->text);
    oct_str_init(&all, g->r->ctx);
    oct_str_puts(&all, list->first ? list->first : "");
    for (int32_t i = 0; (name = list->name(i)); i++) {
        oct_hint_try(&hint, name, strlen(name));
        oct_str_printf(&all, "%s%s", all.len ? ", " : "", name);
    }
    st = all.failed ? OCT_ERR_MEMORY
                    : oct_recipe_fail(g->r, g->s, t, "'%s' wants one of %s, not '%.80s'%s",
                                      g->f->path, all.s, t->text, oct_hint_text(&hint));
    oct_str_fini(&all);
    return st;
}

static oct_status read_text(const reading *g, const oct_tree *t, const char **out)
{
    static const name_list lists[] = {{"TARGET", oct_target_name, NULL},
                                      {"FAMILY", oct_family_name, "auto"},
                                      {"RANGES", oct_observer_name, NULL},
                                      {"PRESET", oct_train_preset_name, NULL},
                                      {"LOSS", oct_loss_name, NULL},
                                      {"OPTIMIZER", oct_optimizer_name, NULL},
                                      {"SCHEDULE", oct_schedule_name, NULL},
                                      {"EMA", oct_ema_name, NULL},
                                      {"AUGMENT", oct_augment_name, NULL},
                                      {"IMPORTANCE", oct_prune_importance_name, NULL},
                                      {"PRUNE-SCHEDULE", oct_prune_schedule_name, NULL},
                                      {"SPARSITY-SCHEDULE", oct_sparsity_schedule_name, NULL}};

    OCT_TRY(scalar(g, t, "a text"));
    if (g->f->metavar && !strcmp(g->f->metavar, "TARGET") && oct_platform_target(t->text))
        return copy_text(g, oct_platform_target(t->text), out);
    if (!*t->text) return oct_recipe_fail(g->r, g->s, t, "'%s' is empty", g->f->path);
    for (size_t i = 0; g->f->metavar && i < OCT_COUNT(lists); i++)
        if (!strcmp(lists[i].metavar, g->f->metavar)) OCT_TRY(check_name(g, t, &lists[i]));
    return copy_text(g, t->text, out);
}

/* Words of metavar, split by |; case is free, and the table's spelling is kept. */
static oct_status read_choice(const reading *g, const oct_tree *t, const char **out)
{
    oct_hint hint;

    OCT_TRY(scalar(g, t, g->f->metavar));
    oct_hint_init(&hint, t->text);
    for (const char *p = g->f->metavar; *p; p += strcspn(p, "|"), p += *p == '|') {
        const size_t len = strcspn(p, "|");

        if (strlen(t->text) == len && !strncasecmp(p, t->text, len)) {
            *out = oct_arena_strndup(g->r->arena, p, len);
            return *out ? OCT_OK : OCT_ERR_MEMORY;
        }
        oct_hint_try(&hint, p, len);
    }
    return oct_recipe_fail(g->r, g->s, t, "'%s' is %s, not '%.80s'%s", g->f->path, g->f->metavar,
                           t->text, oct_hint_text(&hint));
}

static oct_status read_number(const reading *g, const oct_tree *t, bool whole, double *out)
{
    char want[96], *end = NULL;
    double v;

    (void)snprintf(want, sizeof(want), "a %snumber from %.16g to %.16g", whole ? "whole " : "",
                   g->f->min, g->f->max);
    OCT_TRY(scalar(g, t, want));
    errno = 0;
    v = strtod(t->text, &end);
    /* strtod also takes hexadecimals, blanks, inf and nan */
    if ((!t->is_plain && !g->s->is_option) || !*t->text ||
        strspn(t->text, "+-.0123456789eE") != strlen(t->text) || *end || errno ||
        !(v >= g->f->min && v <= g->f->max) || (whole && v != rint(v)))
        return wrong(g, t, want);
    *out = v;
    return OCT_OK;
}

static oct_status read_bool(const reading *g, const oct_tree *t, bool *out)
{
    static const char *const words[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};

    OCT_TRY(scalar(g, t, "true or false"));
    for (int v = 0; v < 2 && (t->is_plain || g->s->is_option); v++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(t->text, words[v][i])) {
                *out = v;
                return OCT_OK;
            }
    return wrong(g, t, "true or false");
}

/* --- lists --- */

static oct_status read_entry(const reading *g, const oct_tree *t, const char **out)
{
    OCT_TRY(scalar(g, t, "texts"));
    if (!*t->text) return oct_recipe_fail(g->r, g->s, t, "an entry of '%s' is empty", g->f->path);
    return copy_text(g, t->text, out);
}

/* An array of anything and its length: as the options structs have it. */
typedef struct array {
    const void *items;
    int32_t n;
} array;

/* Room for one more, in the arena; grows by doubling, so n tells how much room there is. */
static void *grown(oct_recipe *r, array *list, size_t size)
{
    const size_t n = (size_t)list->n;
    void *more;

    if (n & (n - 1)) return (void *)(uintptr_t)list->items;
    if (!(more = oct_arena_array(r->arena, n ? n * 2 : 1, size))) return NULL;
    if (n) memcpy(more, list->items, n * size);
    list->items = more;
    return more;
}

static oct_status add_text(const reading *g, const oct_tree *t, array *list)
{
    const char **items = grown(g->r, list, sizeof(*items));

    if (!items) return OCT_ERR_MEMORY;
    OCT_TRY(read_entry(g, t, &items[list->n]));
    list->n++;
    return OCT_OK;
}

/* A list, or a single entry. */
static oct_status each_entry(const reading *g, const oct_tree *t, array *list,
                             oct_status (*add)(const reading *g, const oct_tree *t, array *list))
{
    if (t->kind != OCT_TREE_LIST) return add(g, t, list);
    for (const oct_tree *e = t->first; e; e = e->next)
        OCT_TRY(add(g, e, list));
    return OCT_OK;
}

/* An array field: the pointer, and the length behind it. */
static oct_status read_array(const reading *g, const oct_tree *t, char *field,
                             oct_status (*add)(const reading *g, const oct_tree *t, array *list))
{
    array list;

    memcpy(&list.items, field, sizeof(list.items));
    memcpy(&list.n, field + sizeof(list.items), sizeof(list.n));
    OCT_TRY(each_entry(g, t, &list, add));
    memcpy(field, &list.items, sizeof(list.items));
    memcpy(field + sizeof(list.items), &list.n, sizeof(list.n));
    return OCT_OK;
}

/* --- subgraphs --- */

/* "a,b" of "a,b:c" */
static oct_status split_names(const reading *g, const char *text, size_t len, array *list)
{
    while (len) {
        const char *comma = memchr(text, ',', len);
        const size_t n = comma ? (size_t)(comma - text) : len;
        char *name = oct_arena_strndup(g->r->arena, text, n);
        const oct_tree t = {.kind = OCT_TREE_SCALAR, .text = name};

        if (!name) return OCT_ERR_MEMORY;
        OCT_TRY(add_text(g, &t, list));
        len -= n + (comma != NULL);
        text += n + (comma != NULL);
    }
    return OCT_OK;
}

static oct_status typed_subgraph(const reading *g, const oct_tree *t, array *in, array *out)
{
    const char *colon = strchr(t->text, ':');

    if (!colon || colon == t->text || !colon[1] || strchr(colon + 1, ':'))
        return oct_recipe_fail(g->r, g->s, t,
                               "'%.80s' is not A:B, two nodes or lists of nodes with commas (names "
                               "that hold : can be given in a recipe)",
                               t->text);
    OCT_TRY(split_names(g, t->text, (size_t)(colon - t->text), in));
    return split_names(g, colon + 1, strlen(colon + 1), out);
}

static oct_status add_subgraph(const reading *g, const oct_tree *t, array *list)
{
    oct_subgraph *more = grown(g->r, list, sizeof(*more));
    array in = {0}, out = {0};

    if (!more) return OCT_ERR_MEMORY;
    if (t->kind == OCT_TREE_SCALAR) {
        OCT_TRY(typed_subgraph(g, t, &in, &out));
    } else if (t->kind == OCT_TREE_MAP) {
        for (const oct_tree *e = t->first; e; e = e->next) {
            const bool is_in = !strcmp(e->key, "inputs");

            if (!is_in && strcmp(e->key, "outputs") != 0)
                return oct_recipe_fail(g->r, g->s, e,
                                       "a subgraph has inputs and outputs, no '%.80s'", e->key);
            OCT_TRY(each_entry(g, e, is_in ? &in : &out, add_text));
        }
        if (!in.n || !out.n)
            return oct_recipe_fail(g->r, g->s, t, "a subgraph wants inputs and outputs");
    } else {
        return scalar(g, t, "{inputs: [..], outputs: [..]}");
    }
    more[list->n] = (oct_subgraph){in.items, in.n, out.items, out.n};
    list->n++;
    return OCT_OK;
}

/* --- overrides --- */

static oct_status override_key(const reading *g, const oct_tree *e, oct_quant_override *out)
{
    oct_hint hint;

    oct_hint_init(&hint, e->key);
    for (const oct_field *f = oct_override_fields; f->path; f++) {
        if (!strcmp(f->path, e->key))
            return oct_tree_is_null(e) ? OCT_OK : oct_value_read(g->r, g->s, f, out, e);
        oct_hint_try(&hint, f->path, strlen(f->path));
    }
    return oct_recipe_fail(g->r, g->s, e, "an override has no key '%.80s'%s", e->key,
                           oct_hint_text(&hint));
}

static oct_status add_override(const reading *g, const oct_tree *t, array *list)
{
    oct_quant_override *more = grown(g->r, list, sizeof(*more)), *o;

    if (!more) return OCT_ERR_MEMORY;
    if (t->kind != OCT_TREE_MAP)
        return oct_recipe_fail(g->r, g->s, t,
                               "an override is like {pattern: '.*/cv2/.*', weight_bits: 4}");
    o = &more[list->n];
    *o = (oct_quant_override){0};
    for (const oct_tree *e = t->first; e; e = e->next)
        OCT_TRY(override_key(g, e, o));
    if (!o->name == !o->pattern)
        return oct_recipe_fail(g->r, g->s, t, "an override wants either a name or a pattern");
    list->n++;
    return OCT_OK;
}

/* Typed: the same words as in a file. */
static oct_status read_overrides(const reading *g, const oct_tree *t, char *field)
{
    oct_tree *typed = NULL;
    oct_status st;

    if (!g->s->is_option) return read_array(g, t, field, add_override);
    st = oct_tree_read(g->r->arena, "override", t->text, strlen(t->text), &typed);
    if (st == OCT_ERR_MEMORY) return st;
    if (st || !typed)
        return oct_recipe_fail(
            g->r, g->s, t, "'%.80s' is not like {pattern: '.*/cv2/.*', weight_bits: 4}", t->text);
    return read_array(g, typed, field, add_override);
}

/* --- words --- */

/* A list joined with `between`; scalars as they are. */
static oct_status put_joined(const reading *g, oct_str *b, const oct_tree *t, char between)
{
    const oct_tree *e = t->kind == OCT_TREE_LIST ? t->first : t;

    if (t->kind == OCT_TREE_MAP) return scalar(g, t, "a text or a list");
    for (; e; e = t->kind == OCT_TREE_LIST ? e->next : NULL) {
        OCT_TRY(scalar(g, e, "texts"));
        if (!*e->text || strpbrk(e->text, ",="))
            return oct_recipe_fail(g->r, g->s, e, "'%s' cannot hold '%.80s'", g->f->path, e->text);
        if (e != t && e != t->first) oct_str_put(b, &between, 1);
        oct_str_puts(b, e->text);
    }
    return OCT_OK;
}

static oct_status take(const reading *g, oct_str *b, oct_status st, const char **out)
{
    if (!st) st = b->failed ? OCT_ERR_MEMORY : copy_text(g, b->s ? b->s : "", out);
    oct_str_fini(b);
    return st;
}

/* Names with commas; [] is "off", as nothing is in the tail. */
static oct_status read_names(const reading *g, const oct_tree *t, const char **out)
{
    oct_str b;

    if (t->kind == OCT_TREE_SCALAR) return read_text(g, t, out);
    if (t->kind == OCT_TREE_LIST && !t->n) return copy_text(g, "off", out);
    oct_str_init(&b, g->r->ctx);
    return take(g, &b, put_joined(g, &b, t, ','), out);
}

/* {size: [640, 480], mean: [..]} to "size=640x480,mean=.." */
static oct_status preprocess_words(const reading *g, oct_str *b, const oct_tree *map)
{
    for (const oct_tree *e = map->first; e; e = e->next) {
        if (oct_tree_is_null(e)) continue;
        oct_str_printf(b, "%s%s=", b->len ? "," : "", e->key);
        OCT_TRY(put_joined(g, b, e, strcmp(e->key, "size") ? ':' : 'x'));
    }
    return OCT_OK;
}

static oct_status read_preprocess(const reading *g, const oct_tree *t, const char **out)
{
    const char *words = NULL, *why;
    oct_preprocess scratch;
    oct_status st;
    oct_str b;

    oct_str_init(&b, g->r->ctx);
    if (t->kind == OCT_TREE_MAP)
        OCT_TRY(take(g, &b, preprocess_words(g, &b, t), &words));
    else
        OCT_TRY(read_text(g, t, &words));
    if (!*words || !strcmp(words, "auto")) {
        *out = NULL;
        return OCT_OK;
    }
    oct_preprocess_init(&scratch);
    scratch.width = scratch.height = 1; /* the network's, later */
    st = oct_preprocess_parse(g->r->ctx, &scratch, words);
    if (!st) {
        *out = words;
        return OCT_OK;
    }
    if (st == OCT_ERR_MEMORY) return st;
    why = oct_arena_strdup(g->r->arena, oct_ctx_error(g->r->ctx));
    return why ? oct_recipe_fail(g->r, g->s, t, "%s", why) : OCT_ERR_MEMORY;
}

/* --- all kinds --- */

oct_status oct_value_read(oct_recipe *r, const oct_recipe_source *s, const oct_field *f, void *base,
                          const oct_tree *t)
{
    const reading g = {r, s, f};
    void *at = (char *)base + f->offset;
    bool is_true = false;
    double v = 0;

    switch (f->kind) {
    case OCT_FIELD_TEXT:
        return read_text(&g, t, at);
    case OCT_FIELD_CHOICE:
        return read_choice(&g, t, at);
    case OCT_FIELD_INT:
        OCT_TRY(read_number(&g, t, true, &v));
        *(int32_t *)at = (int32_t)v;
        return OCT_OK;
    case OCT_FIELD_SEED:
        OCT_TRY(read_number(&g, t, true, &v));
        *(uint64_t *)at = (uint64_t)v;
        return OCT_OK;
    case OCT_FIELD_REAL:
        return read_number(&g, t, false, at);
    case OCT_FIELD_SWITCH:
    case OCT_FIELD_SWITCH_OFF:
    case OCT_FIELD_TRISTATE:
        OCT_TRY(read_bool(&g, t, &is_true));
        *(int32_t *)at = f->kind == OCT_FIELD_TRISTATE ? (is_true ? 1 : -1)
                                                       : is_true == (f->kind == OCT_FIELD_SWITCH);
        return OCT_OK;
    case OCT_FIELD_FAST_BIAS:
        OCT_TRY(read_bool(&g, t, &is_true));
        return copy_text(&g, is_true ? "fast" : "full", at);
    case OCT_FIELD_NAMES:
        return read_names(&g, t, at);
    case OCT_FIELD_PREPROCESS:
        return read_preprocess(&g, t, at);
    case OCT_FIELD_LIST:
        return read_array(&g, t, at, add_text);
    case OCT_FIELD_SUBGRAPHS:
        return read_array(&g, t, at, add_subgraph);
    case OCT_FIELD_OVERRIDES:
        return read_overrides(&g, t, at);
    }
    return OCT_OK;
}
