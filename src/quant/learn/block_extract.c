/* SPDX-License-Identifier: Apache-2.0 */
/* A block as a graph and a plan of its own: see block_net.h. */
#include "exec/run.h"
#include "op/op.h"
#include "pass/pass.h"
#include "quant/learn/block_net.h"

static void drop_interface(oct_graph *g)
{
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    for (int32_t i = 0; i < g->n_inputs; i++)
        g->inputs[i]->is_input = false;
    g->n_outputs = g->n_inputs = 0;
}

/* What the block reads becomes an input. */
static oct_status cut_above(oct_graph *g, const oct_value *from)
{
    oct_value *v = g->values[from->id], *x = v;

    if (v->producer) {
        const char *name = oct_graph_fresh_name(g, v->name);

        if (!name || !(x = oct_value_new(g, name, &from->type))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_value_replace_uses(v, x));
    }
    return oct_graph_add_input(g, x);
}

/* What is read of v: the value as it was rounded, if nothing reads it otherwise. */
static oct_value *as_read(oct_value *v)
{
    const oct_node *q = v->n_users == 1 ? v->users[0] : NULL, *dq;

    if (!q || !oct_node_is(q, &oct_op_quantize_linear) || q->in[0] != v || q->out[0]->n_users != 1)
        return v;
    dq = q->out[0]->users[0];
    return oct_node_is(dq, &oct_op_dequantize_linear) ? dq->out[0] : v;
}

/* A result may be an input of the block as well: a copy is the output. */
static oct_status add_output(oct_graph *g, oct_value *v)
{
    oct_builder b = {.g = g};

    v = oct_emit(&b, &oct_op_identity, v, NULL, NULL);
    OCT_TRY(b.status);
    return oct_graph_add_output(g, v);
}

oct_status oct_block_extract(const oct_graph *whole, const oct_block *b, oct_graph **out)
{
    oct_graph *g = NULL;
    oct_status st = OCT_OK;

    OCT_TRY(oct_graph_clone(whole, &g));
    drop_interface(g);
    for (int32_t i = 0; i < b->n_in && !st; i++)
        st = cut_above(g, b->in[i]);
    for (int32_t i = 0; i < b->n_out && !st; i++)
        st = add_output(g, as_read(g->values[b->out[i]->id]));
    if (!st) st = oct_drop_dead(g);
    if (st)
        oct_graph_free(g);
    else
        *out = g;
    return st;
}

static oct_status prepare(oct_block_run *r, const oct_graph *g, const oct_block *b)
{
    for (int32_t i = 0; i < b->n_in; i++) {
        void *data = NULL;
        size_t size = 0;

        OCT_TRY(oct_run_input(r->run, g->inputs[i]->name, &data, &size));
        r->in[i] = data;
    }
    return OCT_OK;
}

oct_status oct_block_run_new(const oct_graph *whole, const oct_block *b, bool simulate,
                             oct_arena *a, oct_block_run *out)
{
    oct_plan_options o;
    oct_graph *g = NULL;
    oct_status st;

    *out = (oct_block_run){0};
    out->in = oct_arena_array(a, (size_t)b->n_in + 1, sizeof(*out->in));
    out->out = oct_arena_array(a, (size_t)b->n_out + 1, sizeof(*out->out));
    if (!out->in || !out->out) return OCT_ERR_MEMORY;
    oct_plan_options_init(&o);
    o.simulate = simulate;
    OCT_TRY(oct_block_extract(whole, b, &g));
    st = oct_plan_new(g, &o, &out->plan);
    if (!st) st = oct_run_new(whole->ctx, out->plan, &out->run);
    if (!st) st = prepare(out, g, b);
    oct_graph_free(g);
    if (st) oct_block_run_fini(out);
    return st;
}

oct_status oct_block_run_execute(oct_block_run *r, const oct_block *b)
{
    OCT_TRY(oct_run_execute(r->run));
    for (int32_t i = 0; i < b->n_out; i++) {
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(r->run, i, &t));
        r->out[i] = t->data;
    }
    return OCT_OK;
}

void oct_block_run_fini(oct_block_run *r)
{
    oct_run_free(r->run);
    oct_plan_free(r->plan);
    r->run = NULL;
    r->plan = NULL;
}
