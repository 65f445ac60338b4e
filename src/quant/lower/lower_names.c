/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of what lowering adds. A float constant that is now integer keeps its name; all that is new
 * gets a short one: codes q5, their scale s5 and zero point z5, and the dequantized value d5; codes
 * of a constant c6. Of a constant that several nodes quantize, the first has its name; a factor
 * folded into the others is named w7. With names derived from the value's own, every fourth byte of
 * a small network's file was a name.
 */
#include "op/op.h"
#include "quant/lower/lower_parts.h"

typedef struct naming {
    oct_lowering *l;
    oct_map taken;     /* names of the result */
    bool *is_done;     /* by value id */
    int32_t *number;   /* by value id: of codes; 0: none yet */
    int32_t n_numbers; /* given so far */
} naming;

static oct_status give(naming *s, oct_value *v, const char *name)
{
    if (!v || v->id < s->l->m->g->n_value_ids || v->is_output || s->is_done[v->id]) return OCT_OK;
    if (name && oct_map_get(&s->taken, name)) name = oct_graph_fresh_name(s->l->g, name);
    if (!name) return OCT_ERR_MEMORY;
    v->name = name;
    s->is_done[v->id] = true;
    return oct_map_put(&s->taken, name, s);
}

static oct_status give_short(naming *s, oct_value *v, char letter, int32_t number)
{
    return give(s, v, oct_arena_printf(s->l->g->arena, "%c%d", letter, number));
}

/* The name of the float constant that v replaces, if it is free again. */
static const char *original(const naming *s, const oct_value *v)
{
    const char *name = oct_map_get(&s->l->originals, v->name);

    return name && !oct_map_get(&s->taken, name) ? name : NULL;
}

/* A factor that was folded into a weight: the constant by which it is multiplied. */
static oct_status name_unfolding(naming *s, const oct_value *dq, int32_t number)
{
    oct_node *mul = dq->n_users == 1 ? dq->users[0] : NULL;
    const char *name;

    if (!oct_node_is(mul, &oct_op_mul) || mul->id < s->l->n_nodes) return OCT_OK;
    OCT_TRY(give_short(s, mul->in[1], 'u', number));
    name = original(s, mul->out[0]);
    OCT_TRY(name ? give(s, mul->out[0], name) : give_short(s, mul->out[0], 'w', number));
    mul->name = mul->out[0]->name;
    return OCT_OK;
}

static oct_status name_linear(naming *s, oct_node *n)
{
    oct_value *codes = oct_node_is(n, &oct_op_quantize_linear) ? n->out[0] : n->in[0];
    const char *name = codes == n->in[0] ? original(s, n->out[0]) : NULL;
    int32_t *number = &s->number[codes->id];

    if (!*number) *number = ++s->n_numbers;
    OCT_TRY(give_short(s, codes, codes->data ? 'c' : 'q', *number));
    for (int32_t i = 1; i < n->n_in; i++) /* constants shared with others have names of their own */
        if (n->in[i] && !oct_map_get(&s->l->common, n->in[i]->name))
            OCT_TRY(give_short(s, n->in[i], i == 1 ? 's' : 'z', *number));
    if (codes == n->in[0])
        OCT_TRY(name ? give(s, n->out[0], name) : give_short(s, n->out[0], 'd', *number));
    n->name = n->out[0]->name;
    return codes == n->in[0] && codes->data ? name_unfolding(s, n->out[0], *number) : OCT_OK;
}

static oct_status name_all(naming *s)
{
    const oct_graph *g = s->l->g;

    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i]) OCT_TRY(oct_map_put(&s->taken, g->values[i]->name, s));
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        oct_value *v = g->values[i];

        if (!v || !v->producer || v->producer->id < s->l->n_nodes) continue;
        if (oct_node_is(v->producer, &oct_op_quantize_linear) ||
            oct_node_is(v->producer, &oct_op_dequantize_linear))
            OCT_TRY(name_linear(s, v->producer));
    }
    for (int32_t i = 0; i < g->n_value_ids; i++) { /* corrected, but still float */
        oct_value *v = g->values[i];

        if (v && v->data && original(s, v)) OCT_TRY(give(s, v, original(s, v)));
    }
    return OCT_OK;
}

oct_status oct_lowering_names(oct_lowering *l)
{
    naming s = {.l = l};
    const size_t n = (size_t)l->g->n_value_ids + 1;
    oct_status st = OCT_ERR_MEMORY;

    oct_map_init(&s.taken, l->ctx);
    s.is_done = oct_arena_array(l->arena, n, sizeof(*s.is_done));
    s.number = oct_arena_array(l->arena, n, sizeof(*s.number));
    if (s.is_done && s.number) st = name_all(&s);
    oct_map_fini(&s.taken);
    return st;
}
