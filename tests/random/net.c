/* SPDX-License-Identifier: Apache-2.0 */
/* Growing a random network: the pool, the rows' helpers, inputs, outputs, open shapes. */
#include "tests/random/rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/odd.h"

enum { MAX_NODES = 14 };

oct_value *net_pick(net *t, oct_dtype dtype, int low_rank, int high_rank)
{
    oct_value *fit[NET_POOL];
    int n = 0;

    for (int i = 0; i < t->n_pool; i++) {
        const oct_type *type = &t->pool[i]->type;

        if ((dtype == OCT_DTYPE_NONE || type->dtype == dtype) && type->rank >= low_rank &&
            type->rank <= high_rank)
            fit[n++] = t->pool[i];
    }
    if (!n) return NULL;
    /* rather a late one, so that networks become deep */
    if (n > 3 && !net_chance(t, 3)) return fit[n - 1 - (int)oct_rng_below(&t->r, 3)];
    return fit[oct_rng_below(&t->r, (uint64_t)n)];
}

oct_value *net_const(net *t, int32_t rank, const int64_t *dims, double low, double high)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *data = NULL;

    if (oct_tensor_make(t->g->ctx, &type, &data)) return NULL;
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)data->data)[i] = (float)(low + oct_rng_f64(&t->r) * (high - low));
    return oct_value_const(t->g, NULL, data);
}

oct_value *net_const_int(net *t, oct_dtype dtype, int32_t rank, const int64_t *dims, int64_t low,
                         int64_t high)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_tensor *data = NULL;

    if (oct_tensor_make(t->g->ctx, &type, &data)) return NULL;
    for (int64_t i = 0; i < oct_type_len(&type); i++) {
        const int64_t v = net_between(t, low, high);

        oct_store_i64(dtype, data->data, i, 1, &v);
    }
    return oct_value_const(t->g, NULL, data);
}

oct_node *net_node(net *t, const oct_op *op, oct_value *const *in, int32_t n_in, int32_t n_out)
{
    while (n_in > 0 && !in[n_in - 1])
        n_in--;
    for (int32_t i = 0; i < op->min_in; i++)
        if (i >= n_in || !in[i]) return NULL;
    return oct_emit_node(&t->b, op, in, n_in, n_out);
}

bool net_keep(net *t, oct_node *n)
{
    bool fits = n && !oct_node_infer(n);

    for (int32_t i = 0; fits && i < n->n_out; i++) {
        const int64_t len = oct_type_len(&n->out[i]->type);

        fits = len > 0 && len <= NET_MAX_LEN && n->out[i]->type.rank <= 5;
    }
    if (!fits) {
        if (n) oct_node_remove(n);
        return false;
    }
    for (int32_t i = 0; i < n->n_out && t->n_pool < NET_POOL; i++)
        t->pool[t->n_pool++] = n->out[i];
    return true;
}

void net_int(oct_node *n, const char *name, int64_t v)
{
    if (n) (void)oct_node_set_int(n, name, v);
}

void net_ints(oct_node *n, const char *name, const int64_t *v, int64_t n_v)
{
    if (n) (void)oct_node_set_ints(n, name, v, n_v);
}

/* --- whole networks --- */

const char *net_kind_name(net_kind kind)
{
    static const char *const names[] = {"float", "open", "codes", "corners", "odd"};

    return kind < N_NET_KINDS ? names[kind] : NULL;
}

/* The tables a network of this kind is made from. */
static const net_row *const *tables_of(net_kind kind)
{
    static const net_row *const floats[] = {net_layer_rows, net_shape_rows, net_number_rows, NULL};
    static const net_row *const codes[] = {net_code_rows, NULL};
    static const net_row *const corners[] = {net_corner_rows, NULL};

    return kind == NET_CODES ? codes : kind == NET_CORNERS ? corners : floats;
}

static bool add_input(net *t, net_kind kind, int index)
{
    static const oct_dtype code_types[] = {OCT_DTYPE_F32, OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U16,
                                           OCT_DTYPE_I16};
    static const int32_t ranks[] = {4, 4, 4, 4, 3, 2, 5, 1};
    const int32_t rank = ranks[oct_rng_below(&t->r, kind >= NET_CODES ? 6 : OCT_COUNT(ranks))];
    oct_type type = {.dtype = OCT_DTYPE_F32, .rank = rank};
    char name[16];
    oct_value *v;

    if (kind == NET_CORNERS) type.dtype = code_types[oct_rng_below(&t->r, OCT_COUNT(code_types))];
    for (int i = 0; i < rank; i++)
        type.dim[i] = i == 0 && rank > 1 ? net_between(t, 1, 2)
                      : i == 1           ? net_between(t, 1, 12)
                                         : net_between(t, 2, rank > 4 ? 6 : 13);
    snprintf(name, sizeof(name), "x%d", index);
    v = oct_value_new(t->g, name, &type);
    if (!v || oct_graph_add_input(t->g, v)) return false;
    t->pool[t->n_pool++] = v;
    return true;
}

static bool add_row(net *t, const net_row *const *tables)
{
    int total = 0, at;

    for (int i = 0; tables[i]; i++)
        for (const net_row *row = tables[i]; row->name; row++)
            total += row->weight;
    at = (int)oct_rng_below(&t->r, (uint64_t)total);
    for (int i = 0; tables[i]; i++)
        for (const net_row *row = tables[i]; row->name; row++)
            if ((at -= row->weight) < 0) return t->n_pool < NET_POOL - 8 && row->add(t);
    return false;
}

/* What nobody reads leaves the network, and some that is read too; the rest stays unread. */
static bool add_outputs(net *t)
{
    for (int i = t->n_pool - 1; i >= 0; i--) {
        oct_value *v = t->pool[i];

        if (!v->producer || t->g->n_outputs >= 6) continue;
        if (t->g->n_outputs && (v->n_users ? !net_chance(t, 8) : net_chance(t, 5))) continue;
        if (oct_graph_add_output(t->g, v)) return false;
    }
    return t->g->n_outputs > 0;
}

/* Forgets the sizes of inputs, all or some, and all that was inferred from them. */
static bool open_shapes(net *t)
{
    for (int32_t i = 0; i < t->g->n_inputs; i++) {
        oct_type *type = &t->g->inputs[i]->type;
        const bool all = net_chance(t, 2);

        for (int32_t d = 0; d < type->rank; d++)
            if (all || net_chance(t, 2)) type->dim[d] = -1;
    }
    for (oct_node *n = t->g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_out; i++)
            n->out[i]->type = oct_type_unknown(n->out[i]->type.dtype);
    return oct_graph_infer(t->g) == OCT_OK;
}

static void note_types(const net *t, net_types *types)
{
    for (int32_t i = 0; i < t->g->n_inputs; i++) {
        types->in[i] = t->g->inputs[i]->type;
        for (int32_t d = 0; d < types->in[i].rank; d++) /* odd sizes are not run */
            if (types->in[i].dim[d] < 0 || types->in[i].dim[d] > NET_MAX_LEN)
                types->in[i].dim[d] = 2;
    }
}

static bool fill(net *t, net_kind kind, net_types *types)
{
    const int n_inputs = (int)net_between(t, 1, NET_INPUTS),
              n_nodes = (int)net_between(t, 1, MAX_NODES);

    for (int i = 0; i < n_inputs; i++)
        if (!add_input(t, kind, i)) return false;
    for (int i = 0, tries = 0; i < n_nodes && tries < 8 * MAX_NODES; tries++)
        i += add_row(t, tables_of(kind));
    if (!add_outputs(t)) return false;
    note_types(t, types);
    return kind != NET_OPEN || open_shapes(t);
}

oct_graph *net_make(oct_ctx *ctx, net_kind kind, uint64_t seed, net_types *types)
{
    net *t = calloc(1, sizeof(*t));
    oct_graph *g = NULL;
    bool ok = false;

    if (t && !oct_graph_new(ctx, "random", &t->g)) {
        t->b.g = t->g;
        oct_rng_init(&t->r, seed * N_NET_KINDS + kind);
        ok = fill(t, kind == NET_ODD ? (net_kind)oct_rng_below(&t->r, NET_ODD) : kind, types);
        if (kind == NET_ODD)
            for (int64_t n = net_between(t, 1, 3); n > 0; n--)
                odd_change(t->g, &t->r);
        g = t->g;
    }
    free(t);
    if (ok) return g;
    oct_graph_free(g);
    return NULL;
}
