/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a network at any value: what lies between some values and others becomes a network. */
#include <string.h>

#include <octet/graph.h>
#include <octet/op.h>

#include "base/map.h"
#include "graph/op.h"
#include "op/op.h"
#include "pass/pass.h"

enum { FAR = 64 };

/* Values that are named in a list, in its order. */
typedef struct cuts {
    oct_value **v; /* in the arena */
    int32_t n;
} cuts;

/* Values of bodies are not to be cut: they have another one in each iteration. */
static oct_value *find(const oct_graph *g, const char *name, size_t len)
{
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        oct_value *v = g->values[i];

        if (v && v->graph == g && strlen(v->name) == len && memcmp(v->name, name, len) == 0)
            return v;
    }
    return NULL;
}

static oct_status unknown(const oct_graph *g, const char *name, size_t len)
{
    const char *want = oct_arena_strndup(g->arena, name, len);
    oct_nearest near = {.want = want, .distance = FAR};

    if (!want) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->graph == g)
            (void)oct_nearest_try(&near, g->values[i]->name);
    return oct_fail(g->ctx, OCT_ERR_ARG, "there is no value '%.80s'%s%s%s", want,
                    near.name ? "; did you mean '" : "", near.name ? near.name : "",
                    near.name ? "'?" : "");
}

static oct_status read_names(const oct_graph *g, const char *names, cuts *out)
{
    size_t n = 1;

    for (const char *p = names; *p; p++)
        n += *p == ',';
    if (!(out->v = oct_arena_array(g->arena, n, sizeof(oct_value *)))) return OCT_ERR_MEMORY;
    for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        const size_t len = strcspn(p, ",");
        oct_value *v;

        if (len == 0) return oct_fail(g->ctx, OCT_ERR_ARG, "an empty name in '%.80s'", names);
        if (!(v = find(g, p, len))) return unknown(g, p, len);
        for (int32_t i = 0; i < out->n; i++)
            if (out->v[i] == v)
                return oct_fail(g->ctx, OCT_ERR_ARG, "value '%.80s' is named twice", v->name);
        out->v[out->n++] = v;
    }
    return OCT_OK;
}

static oct_status check_cut(const oct_value *v)
{
    oct_ctx *ctx = v->graph->ctx;

    if (v->is_input) return OCT_OK;
    if (v->type.dtype == OCT_DTYPE_NONE)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "value '%.80s' cannot be an input: its element type is not known, and "
                        "cannot be inferred",
                        v->name);
    return OCT_OK;
}

/* An input takes over the value's name and consumers; the value itself is left without any. */
static oct_status make_input(oct_graph *g, oct_value **cut)
{
    oct_value *v = *cut, *x;
    const char *name = v->name;

    OCT_TRY(check_cut(v));
    if (v->is_input) return OCT_OK;
    if (!(x = oct_value_new(g, NULL, &v->type))) return OCT_ERR_MEMORY;
    x->dim_name = v->dim_name;
    x->is_declared = true;
    v->name = x->name;
    x->name = name;
    while (v->n_users) {
        oct_node *u = v->users[0];

        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, x));
    }
    *cut = x;
    return oct_graph_add_input(g, x);
}

static oct_status check_outputs(const cuts *outputs, const cuts *inputs)
{
    for (int32_t i = 0; i < outputs->n; i++) {
        const oct_value *v = outputs->v[i];

        for (int32_t k = 0; k < inputs->n; k++)
            if (inputs->v[k] == v)
                return oct_fail(v->graph->ctx, OCT_ERR_ARG,
                                "value '%.80s' is to be an input and an output", v->name);
        if (!v->producer)
            return oct_fail(v->graph->ctx, OCT_ERR_ARG,
                            "value '%.80s' cannot be an output: it is %s, not what a node computes",
                            v->name, v->is_input ? "an input" : "a constant");
    }
    return OCT_OK;
}

static oct_status set_outputs(oct_graph *g, const cuts *outputs)
{
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    for (int32_t i = 0; i < outputs->n; i++)
        OCT_TRY(oct_graph_add_output(g, outputs->v[i]));
    return OCT_OK;
}

static bool is_named(const cuts *c, const oct_value *v)
{
    for (int32_t i = 0; i < c->n; i++)
        if (c->v[i] == v) return true;
    return false;
}

/* Inputs that nothing needs go; one that is needed although others were named is an error. */
static oct_status set_inputs(oct_graph *g, const cuts *inputs)
{
    int32_t n = 0;

    for (int32_t i = 0; i < g->n_inputs; i++) {
        oct_value *v = g->inputs[i];

        if (v->data || (inputs->n ? is_named(inputs, v) : v->n_users || v->is_output)) continue;
        if (v->n_users || v->is_output)
            return oct_fail(g->ctx, OCT_ERR_ARG,
                            "the outputs also need input '%.80s' (node '%.80s' reads it); name it "
                            "among the inputs, or a value that lies between",
                            v->name, v->n_users ? v->users[0]->name : "");
        v->is_input = false;
        g->inputs[i] = NULL;
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]) g->inputs[n++] = g->inputs[i];
    g->n_inputs = n;
    return OCT_OK;
}

oct_status oct_graph_extract(oct_graph *g, const char *inputs, const char *outputs)
{
    OCT_ENTER(g->ctx);
    cuts in = {0}, out = {0};

    OCT_TRY(oct_graph_infer(g));
    if (inputs) OCT_TRY(read_names(g, inputs, &in));
    if (outputs) OCT_TRY(read_names(g, outputs, &out));
    OCT_TRY(check_outputs(&out, &in));
    for (int32_t i = 0; i < in.n; i++)
        if (!outputs && in.v[i]->is_output)
            return oct_fail(g->ctx, OCT_ERR_ARG,
                            "value '%.80s' is an output of the network; name the outputs to keep",
                            in.v[i]->name);
    for (int32_t i = 0; i < in.n; i++)
        OCT_TRY(make_input(g, &in.v[i]));
    if (outputs) OCT_TRY(set_outputs(g, &out));
    OCT_TRY(oct_drop_dead(g));
    OCT_TRY(set_inputs(g, &in));
    OCT_TRY(oct_graph_infer(g));
    return oct_graph_verify(g);
}

/* --- operators that cannot be run --- */

static bool reads_marked(const oct_node *n, const uint8_t *marks)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->producer && marks[n->in[i]->producer->id]) return true;
    return false;
}

/* Marks such nodes and all that depend on them. False: there are none, or layers with weights are
 * among what would be lost, or a body reads it. */
static bool mark_unknown(const oct_graph *g, uint8_t *marks, int32_t *n_marked)
{
    oct_weight_axes axes;

    for (const oct_node *n = g->first; n; n = n->next) {
        if (n->op->ref && n->op->shape && !reads_marked(n, marks)) continue;
        if (oct_weight_axes_of(n, &axes)) return false;
        for (int32_t i = 0; i < n->n_out; i++)
            for (int32_t k = 0; n->out[i] && k < n->out[i]->n_users; k++)
                if (n->out[i]->users[k]->graph != g) return false;
        marks[n->id] = 1;
        (*n_marked)++;
    }
    return *n_marked > 0;
}

/* What marked nodes read of others becomes outputs, in place of the first that is lost. */
static void add_read(const oct_graph *g, const uint8_t *marks, cuts *out)
{
    for (const oct_node *n = g->first; n; n = n->next)
        for (int32_t i = 0; marks[n->id] && i < n->n_in; i++) {
            oct_value *v = n->in[i];

            if (!v || v->data || !v->producer || marks[v->producer->id]) continue;
            if (!v->is_output && !is_named(out, v)) out->v[out->n++] = v;
        }
}

static oct_status find_outputs(oct_graph *g, const uint8_t *marks, cuts *out)
{
    size_t most = (size_t)g->n_outputs;
    bool is_first = true;

    for (const oct_node *n = g->first; n; n = n->next)
        most += marks[n->id] ? (size_t)n->n_in : 0;
    if (!(out->v = oct_arena_array(g->arena, most + 1, sizeof(oct_value *)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        oct_value *v = g->outputs[i];

        if (!v->producer || !marks[v->producer->id]) {
            out->v[out->n++] = v;
        } else if (is_first) {
            is_first = false;
            add_read(g, marks, out);
        }
    }
    return OCT_OK;
}

oct_status oct_graph_drop_unknown(oct_graph *g, int32_t *n_dropped)
{
    OCT_ENTER(g->ctx);
    uint8_t *marks = oct_calloc(g->ctx, (size_t)g->root->n_node_ids + 1, 1);
    cuts out = {0};
    const cuts in = {0};
    oct_status st = OCT_OK;
    int32_t n = 0;

    *n_dropped = 0;
    if (!marks) return OCT_ERR_MEMORY;
    if (!mark_unknown(g, marks, &n)) goto done;
    if ((st = find_outputs(g, marks, &out)) || out.n == 0) goto done;
    st = set_outputs(g, &out);
    if (!st) st = oct_drop_dead(g);
    if (!st) st = set_inputs(g, &in);
    if (!st) st = oct_graph_verify(g);
    if (!st) *n_dropped = n;
done:
    oct_free(g->ctx, marks);
    return st;
}
