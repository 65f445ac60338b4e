/* SPDX-License-Identifier: Apache-2.0 */
/* Applies opset upgrades to drafts, and the tools that upgrades are written with. */
#include "onnx/upgrade.h"

#include <string.h>

/* The first row of an operator above a version, or NULL. */
static const oct_upgrade_row *next_row(const char *op, int64_t version)
{
    size_t n, lo = 0;
    const oct_upgrade_row *rows = oct_upgrade_table(&n);
    size_t hi = n;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = strcmp(rows[mid].op, op);

        if (c < 0 || (c == 0 && rows[mid].version <= version))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && strcmp(rows[lo].op, op) == 0 ? &rows[lo] : NULL;
}

oct_status oct_upgrade(oct_draft *d)
{
    const oct_upgrade_row *row;

    while ((row = next_row(d->op, d->version))) { /* an upgrade may make it another operator */
        OCT_TRY(row->apply(d));
        d->version = row->version;
    }
    d->version = OCT_OPSET_INTERNAL;
    return OCT_OK;
}

int oct_upgrade_since(const char *op)
{
    const oct_upgrade_row *row;
    int since = 1;

    while ((row = next_row(op, since)))
        since = row->version;
    return since;
}

/* --- attributes --- */

oct_draft_attr *oct_draft_attr_find(const oct_draft *d, const char *name)
{
    for (int32_t i = 0; i < d->n_attr; i++)
        if (strcmp(d->attr[i].name, name) == 0) return &d->attr[i];
    return NULL;
}

void oct_draft_drop(oct_draft *d, const char *name)
{
    oct_draft_attr *a = oct_draft_attr_find(d, name);

    if (!a) return;
    memmove(a, a + 1, (size_t)(&d->attr[d->n_attr] - (a + 1)) * sizeof(*a));
    d->n_attr--;
}

oct_status oct_draft_set(oct_draft *d, const char *name, const oct_attr *value)
{
    oct_draft_attr *a = oct_draft_attr_find(d, name), *more;

    if (a) {
        a->value = *value;
        return OCT_OK;
    }
    more = oct_arena_array(d->s->r->wire.arena, (size_t)d->n_attr + 1, sizeof(*more));
    if (!more) return OCT_ERR_MEMORY;
    if (d->n_attr) memcpy(more, d->attr, (size_t)d->n_attr * sizeof(*more));
    more[d->n_attr] = (oct_draft_attr){.name = name, .value = *value};
    d->attr = more;
    d->n_attr++;
    return OCT_OK;
}

int64_t oct_draft_int(const oct_draft *d, const char *name, int64_t fallback)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, name);

    return a && a->value.kind == OCT_ATTR_INT ? a->value.i : fallback;
}

float oct_draft_f32(const oct_draft *d, const char *name, float fallback)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, name);

    return a && a->value.kind == OCT_ATTR_F32 ? a->value.f : fallback;
}

bool oct_draft_str_is(const oct_draft *d, const char *name, const char *text)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, name);

    return a && a->value.kind == OCT_ATTR_STRING && strcmp(a->value.s, text) == 0;
}

oct_status oct_draft_set_int(oct_draft *d, const char *name, int64_t v)
{
    return oct_draft_set(d, name, &(oct_attr){.kind = OCT_ATTR_INT, .i = v});
}

oct_status oct_draft_set_str(oct_draft *d, const char *name, const char *v)
{
    return oct_draft_set(d, name,
                         &(oct_attr){.kind = OCT_ATTR_STRING, .n = (int64_t)strlen(v), .s = v});
}

/* --- operands --- */

oct_value *oct_draft_in(const oct_draft *d, int i)
{
    return i < d->n_in ? d->in[i] : NULL;
}

oct_status oct_draft_set_in(oct_draft *d, int i, oct_value *v)
{
    if (i >= d->n_in) {
        oct_value **in = oct_arena_array(d->s->r->wire.arena, (size_t)i + 1, sizeof(*in));

        if (!in) return OCT_ERR_MEMORY;
        if (d->n_in) memcpy(in, d->in, (size_t)d->n_in * sizeof(*in));
        d->in = in;
        d->n_in = i + 1;
    }
    d->in[i] = v;
    return OCT_OK;
}

int oct_draft_rank(const oct_draft *d, int i)
{
    const oct_value *v = oct_draft_in(d, i);

    return v ? v->type.rank : -1;
}

oct_dtype oct_draft_dtype(const oct_draft *d, int i)
{
    const oct_value *v = oct_draft_in(d, i);

    return v && v->type.dtype != OCT_DTYPE_NONE ? v->type.dtype : OCT_DTYPE_F32;
}

/* A name for a value that comes with the node; '~' in it keeps it apart from the file's names. */
static const char *value_name(oct_draft *d, const char *suffix)
{
    const char *base = oct_arena_printf(d->s->r->wire.arena, "%s_%s", d->name, suffix);

    return base ? oct_graph_fresh_name(d->s->g, base) : NULL;
}

oct_status oct_draft_const(oct_draft *d, const char *suffix, oct_tensor *t, oct_value **out)
{
    const char *name = value_name(d, suffix);

    if (!name) {
        oct_tensor_unref(t);
        return OCT_ERR_MEMORY;
    }
    *out = oct_value_const(d->s->g, name, t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_draft_ints(oct_draft *d, const char *suffix, const int64_t *v, int64_t n,
                          oct_value **out)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_vec_i64(d->s->r->ctx, v, n, &t));
    return oct_draft_const(d, suffix, t, out);
}

oct_status oct_draft_scalar(oct_draft *d, const char *suffix, float v, oct_dtype dtype,
                            oct_value **out)
{
    oct_tensor *t = NULL;

    if (oct_dtype_get(dtype)->kind == OCT_DKIND_OTHER)
        return oct_draft_fail(d, OCT_ERR_TYPE, "takes numbers, not %s", oct_dtype_name(dtype));
    OCT_TRY(oct_tensor_new(d->s->r->ctx, dtype, 0, NULL, &t));
    oct_store_f32(dtype, t->data, 0, 1, &v);
    return oct_draft_const(d, suffix, t, out);
}

oct_status oct_draft_emit(oct_draft *d, const char *suffix, const char *op, oct_value *x,
                          oct_value *y, const oct_draft_attr *attrs, int n_attrs, oct_value **out)
{
    oct_arena *a = d->s->r->wire.arena;
    oct_draft e = {.s = d->s, .domain = "", .op = op, .version = OCT_OPSET_INTERNAL};
    const char *base = oct_arena_printf(a, "%s_%s", d->name, suffix);
    const char *name = value_name(d, suffix);

    e.in = oct_arena_array(a, 3, sizeof(*e.in));
    e.attr = oct_arena_array(a, (size_t)n_attrs + 1, sizeof(*e.attr));
    if (!base || !name || !e.in || !e.attr) return OCT_ERR_MEMORY;
    if (n_attrs) memcpy(e.attr, attrs, (size_t)n_attrs * sizeof(*attrs));
    e.n_attr = n_attrs;
    e.in[0] = x;
    e.in[1] = y;
    e.n_in = y ? 2 : 1;
    e.out = e.in + 2;
    e.n_out = 1;
    if (!(e.out[0] = oct_value_new(d->s->g, name, NULL))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_read_node_name(d->s->r, base, &e.name));
    OCT_TRY(oct_draft_finish(&e));
    *out = e.out[0];
    return OCT_OK;
}
