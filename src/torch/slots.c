/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the program and the values they stand for. Operators in place (relu_, add_) change what
 * a name stands for, what it is a view of, and all other views of that: they are made again from
 * the changed whole when somebody reads them.
 */
#include <string.h>

#include "torch/aten.h"

enum { MAX_VIEWS = 200 }; /* of views of views */

oct_status oct_torch_define(oct_torch *t, const char *name, oct_slot **out)
{
    oct_slot *s = oct_arena_alloc(t->arena, sizeof(*s));

    if (!s) return OCT_ERR_MEMORY;
    if (oct_map_get(&t->slots, name))
        return oct_fail(t->ctx, OCT_ERR_FORMAT, "two values are called '%.200s'", name);
    s->name = name;
    s->meta = oct_map_get(&t->p->metas, name);
    *out = s;
    return oct_map_put(&t->slots, name, s);
}

oct_slot *oct_torch_slot(oct_torch *t, const char *name)
{
    oct_slot *s = oct_map_get(&t->slots, name);

    if (!s && !t->b.status)
        t->b.status =
            oct_fail(t->ctx, OCT_ERR_FORMAT, "'%.200s' is read before anything makes it", name);
    return s;
}

const char *oct_torch_unique(oct_torch *t, oct_map *names, const char *base)
{
    int64_t *count = oct_map_get(names, base);
    const char *name = base;

    while (count) { /* "base_1" may itself be in use */
        name = oct_arena_printf(t->arena, "%s_%lld", base, (long long)++*count);
        if (!name || !oct_map_get(names, name)) break;
    }
    if (!name || !(count = oct_arena_alloc(t->arena, sizeof(*count)))) return NULL;
    return oct_map_put(names, name, count) ? NULL : name;
}

/* --- calling rows --- */

static const oct_meta no_meta = {.type = {.rank = -1}};

/* Values made since `first` get the program's names. */
static oct_status name_value(oct_torch *t, oct_value *v, const char *name, int32_t first)
{
    if (!v || v->id < first || !strchr(v->name, '~')) return OCT_OK;
    if (!(name = oct_torch_unique(t, &t->value_names, name))) return OCT_ERR_MEMORY;
    v->name = oct_arena_strdup(t->g->arena, name);
    return v->name ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status begin(oct_torch *t, const oct_call_node *n, oct_aten *a)
{
    const oct_meta *meta = NULL;

    if (n->n_out && n->out[0].kind == OCT_ARG_TENSOR) meta = oct_map_get(&t->p->metas, n->out[0].s);
    *a = (oct_aten){
        .t = t, .b = &t->b, .n = n, .meta = meta ? meta : &no_meta, .n_out = OCT_MAX(n->n_out, 1)};
    a->out = oct_arena_array(t->arena, (size_t)a->n_out, sizeof(oct_value *));
    return a->out ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(oct_aten *a, const oct_aten_row *row)
{
    if (row->unary) {
        const oct_dtype type = a->meta->type.dtype; /* float, of functions of integers */
        oct_value *x = oct_aten_tensor(a, "self");

        if (type != OCT_DTYPE_BOOL) x = oct_aten_cast(a, x, type);
        a->out[0] = oct_aten_emit(a, row->unary, x, NULL, NULL);
    } else {
        row->emit(a);
    }
    return a->b->status;
}

/* --- reading and writing --- */

static oct_slot *root_of(oct_slot *s)
{
    while (s->parent)
        s = s->parent;
    return s;
}

static oct_value *read_weight(oct_torch *t, oct_slot *s)
{
    const char *name = oct_torch_unique(t, &t->value_names, s->spec->name);
    oct_tensor *data = NULL;

    t->b.status = name ? oct_weights_tensor(&t->weights, s->spec->name,
                                            s->spec->kind == OCT_SPEC_CONSTANT, &data)
                       : OCT_ERR_MEMORY;
    if (t->b.status) return NULL;
    s->spec = NULL;
    if (!(s->v = oct_value_const(t->g, name, data))) t->b.status = OCT_ERR_MEMORY;
    return s->v;
}

oct_value *oct_torch_read(oct_torch *t, oct_slot *s)
{
    const oct_slot *root;
    oct_aten a;

    if (t->b.status || !s) return NULL;
    if (s->spec) return read_weight(t, s);
    if (!s->parent || s->version == (root = root_of(s))->version) return s->v;
    if ((t->b.status = begin(t, s->view, &a))) return NULL;
    if (!(a.whole = oct_torch_read(t, s->parent))) return NULL;
    if (run(&a, oct_aten_find(s->view->target))) return NULL;
    s->v = a.out[s->view_out];
    s->version = root->version;
    return s->v;
}

static oct_status write_slot(oct_torch *t, oct_slot *s, oct_value *y)
{
    oct_aten a;

    if (!s->parent) {
        s->v = y;
        s->spec = NULL;
        s->version++;
        return OCT_OK;
    }
    OCT_TRY(begin(t, s->view, &a));
    if (!(a.whole = oct_torch_read(t, s->parent))) return t->b.status;
    a.whole = oct_aten_find(s->view->target)->write(&a, a.whole, y);
    OCT_TRY(t->b.status);
    OCT_TRY(write_slot(t, s->parent, a.whole));
    s->v = y;
    s->version = root_of(s)->version;
    return OCT_OK;
}

/* --- calls --- */

static const oct_arg *viewed_arg(const oct_call_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i].value.kind == OCT_ARG_TENSOR) return &n->in[i].value;
    return NULL;
}

static oct_status become_view(oct_torch *t, const oct_call_node *n, int32_t i, oct_slot *s)
{
    const oct_arg *arg = viewed_arg(n);

    if (!arg || !(s->parent = oct_torch_slot(t, arg->s))) return t->b.status;
    s->view = n;
    s->view_out = i;
    s->depth = s->parent->depth + 1;
    s->version = root_of(s)->version;
    if (s->depth > MAX_VIEWS)
        return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED, "more than %d views of views", MAX_VIEWS);
    return OCT_OK;
}

static oct_status define_results(oct_aten *a, const oct_aten_row *row, int32_t first)
{
    oct_torch *t = a->t;

    for (int32_t i = 0; i < a->n->n_out; i++) {
        const oct_arg *out = &a->n->out[i];
        oct_slot *s;

        if (out->kind != OCT_ARG_TENSOR || !a->out[i]) continue;
        OCT_TRY(oct_torch_define(t, out->s, &s));
        OCT_TRY(name_value(t, a->out[i], out->s, first));
        s->v = a->out[i];
        if (row->write && !a->is_copy) OCT_TRY(become_view(t, a->n, i, s));
    }
    return OCT_OK;
}

/* "aten.relu_.default" as "aten.relu.default" in `plain`; false: it does not work in place. */
static bool is_in_place(const char *target, char plain[128])
{
    const char *dot = strrchr(target, '.');
    const size_t len = dot ? (size_t)(dot - target) : 0;

    if (len < 3 || strlen(target) >= 128 || dot[-1] != '_' || dot[-2] == '_') return false;
    memcpy(plain, target, len - 1);
    memcpy(plain + len - 1, dot, strlen(dot) + 1);
    return true;
}

const oct_aten_row *oct_aten_row_of(const char *target)
{
    const oct_aten_row *row = oct_aten_find(target);
    char plain[128];

    return row || !is_in_place(target, plain) ? row : oct_aten_find(plain);
}

oct_status oct_torch_call(oct_torch *t, const oct_call_node *n, const oct_aten_row *row)
{
    const int32_t first = t->g->n_value_ids;
    const oct_arg *self = viewed_arg(n);
    char plain[128];
    oct_slot *s;
    oct_aten a;

    OCT_TRY(begin(t, n, &a));
    OCT_TRY(run(&a, row));
    if (!is_in_place(n->target, plain) || !self) return define_results(&a, row, first);
    if (!(s = oct_torch_slot(t, self->s))) return t->b.status;
    if (!a.out[0]) return OCT_OK;
    OCT_TRY(name_value(t, a.out[0], n->n_out ? n->out[0].s : n->target, first));
    if (s->meta && s->meta->type.dtype) a.out[0] = oct_aten_cast(&a, a.out[0], s->meta->type.dtype);
    OCT_TRY(t->b.status);
    OCT_TRY(write_slot(t, s, a.out[0]));
    /* The result is the operand itself under another name. */
    return n->n_out && n->out[0].kind == OCT_ARG_TENSOR ? oct_map_put(&t->slots, n->out[0].s, s)
                                                        : OCT_OK;
}
