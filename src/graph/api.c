/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions that read a graph. */
#include <octet/graph.h>

#include <stdio.h>
#include <string.h>

#include "graph/op.h"

const char *oct_graph_name(const oct_graph *g)
{
    return g->name;
}

int64_t oct_graph_opset(const oct_graph *g)
{
    for (int32_t i = 0; i < g->info.n_opsets; i++)
        if (g->info.opsets[i].domain[0] == '\0') return g->info.opsets[i].version;
    return 0;
}

int64_t oct_graph_ir_version(const oct_graph *g)
{
    return g->info.ir_version;
}

const char *oct_graph_producer(const oct_graph *g)
{
    return g->info.producer_name ? g->info.producer_name : "";
}

/* The first one counts where a file has a key twice. NULL: none. */
static oct_prop *find_prop(const oct_graph *g, const char *key)
{
    const oct_model_info *info = &g->root->info;

    for (int32_t i = 0; i < info->n_props; i++)
        if (strcmp(info->props[i].key, key) == 0) return &info->props[i];
    return NULL;
}

const char *oct_graph_metadata(const oct_graph *g, const char *key)
{
    const oct_prop *p = find_prop(g, key);

    return p ? p->value : NULL;
}

const char *oct_graph_metadata_key(const oct_graph *g, int32_t i)
{
    const oct_model_info *info = &g->root->info;

    return i >= 0 && i < info->n_props ? info->props[i].key : NULL;
}

static oct_status add_prop(oct_graph *g, const char *key, const char *value)
{
    oct_model_info *info = &g->root->info;
    const size_t n = (size_t)info->n_props;
    oct_prop *all = n < INT32_MAX ? oct_arena_array(g->arena, n + 1, sizeof(*all)) : NULL;
    const char *copy = oct_arena_strdup(g->arena, key);

    if (!all || !copy) return OCT_ERR_MEMORY;
    if (n) memcpy(all, info->props, n * sizeof(*all));
    all[n] = (oct_prop){copy, value};
    info->props = all;
    info->n_props++;
    return OCT_OK;
}

oct_status oct_graph_set_metadata(oct_graph *g, const char *key, const char *value)
{
    OCT_ENTER(g->ctx);
    oct_model_info *info = &g->root->info;
    oct_prop *p = find_prop(g, key);
    const char *copy = value ? oct_arena_strdup(g->arena, value) : NULL;

    if (value && !copy) return OCT_ERR_MEMORY;
    if (p && copy)
        p->value = copy;
    else if (copy)
        return add_prop(g, key, copy);
    for (; p && !copy; p = find_prop(g, key)) {
        info->n_props--;
        memmove(p, p + 1, (size_t)(info->props + info->n_props - p) * sizeof(*p));
    }
    return OCT_OK;
}

int32_t oct_graph_n_inputs(const oct_graph *g)
{
    return g->n_inputs;
}

int32_t oct_graph_n_outputs(const oct_graph *g)
{
    return g->n_outputs;
}

const oct_value *oct_graph_input(const oct_graph *g, int32_t i)
{
    return i >= 0 && i < g->n_inputs ? g->inputs[i] : NULL;
}

const oct_value *oct_graph_output(const oct_graph *g, int32_t i)
{
    return i >= 0 && i < g->n_outputs ? g->outputs[i] : NULL;
}

int32_t oct_graph_n_nodes(const oct_graph *g)
{
    return g->n_nodes;
}

const oct_node *oct_graph_first_node(const oct_graph *g)
{
    return g->first;
}

const oct_node *oct_node_next(const oct_node *n)
{
    return n->next;
}

const char *oct_node_name(const oct_node *n)
{
    return n->name;
}

const char *oct_node_op(const oct_node *n)
{
    return n->op->name;
}

const char *oct_node_domain(const oct_node *n)
{
    return oct_op_domain(n->op);
}

int32_t oct_node_n_in(const oct_node *n)
{
    return n->n_in;
}

int32_t oct_node_n_out(const oct_node *n)
{
    return n->n_out;
}

const oct_value *oct_node_input(const oct_node *n, int32_t i)
{
    return i >= 0 ? oct_node_in(n, i) : NULL;
}

const oct_value *oct_node_output(const oct_node *n, int32_t i)
{
    return i >= 0 ? oct_node_out(n, i) : NULL;
}

int64_t oct_node_params(const oct_node *n)
{
    int64_t total = 0;

    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_tensor *t = oct_node_const(n, i);

        /* Integer constants are weights only where they are quantized (8 bits or fewer). */
        if (t && (oct_dtype_is_float(t->type.dtype) || oct_dtype_get(t->type.dtype)->bits <= 8))
            total += oct_tensor_len(t);
    }
    return total;
}

int64_t oct_node_macs(const oct_node *n)
{
    const int64_t macs = n->op->macs ? n->op->macs(n) : 0;

    return OCT_MAX(macs, 0);
}

const char *oct_value_name(const oct_value *v)
{
    return v->name;
}

oct_dtype oct_value_dtype(const oct_value *v)
{
    return v->type.dtype;
}

int32_t oct_value_rank(const oct_value *v)
{
    return v->type.rank;
}

int64_t oct_value_dim(const oct_value *v, int32_t axis)
{
    return axis >= 0 && axis < v->type.rank ? v->type.dim[axis] : -1;
}

const char *oct_value_dim_name(const oct_value *v, int32_t axis)
{
    return v->dim_name && axis >= 0 && axis < v->type.rank ? v->dim_name[axis] : NULL;
}

const oct_tensor *oct_value_data(const oct_value *v)
{
    return v->data;
}

const oct_node *oct_value_producer(const oct_value *v)
{
    return v->producer;
}

const char *oct_value_text(const oct_value *v, char *text, size_t size)
{
    char buf[OCT_TYPE_TEXT_SIZE];

    snprintf(text, size, "%s", oct_type_text(&v->type, buf));
    return text;
}

int32_t oct_value_n_users(const oct_value *v)
{
    return v->n_users;
}

const oct_node *oct_value_user(const oct_value *v, int32_t i)
{
    return i >= 0 && i < v->n_users ? v->users[i] : NULL;
}

/* Forgets inferred shapes, so that inference starts from the inputs again. */
static void forget_shapes(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && n->op->shape) n->out[i]->type.rank = -1;
}

static oct_status unknown_input(const oct_graph *g, const char *name)
{
    oct_nearest near = {name, 4, g->n_inputs == 1 ? g->inputs[0]->name : NULL};

    for (int32_t i = 0; i < g->n_inputs; i++)
        oct_nearest_try(&near, g->inputs[i]->name);
    return oct_fail(g->ctx, OCT_ERR_ARG, "there is no input '%s'%s%s%s", name,
                    near.name ? "; did you mean '" : "", near.name ? near.name : "",
                    near.name ? "'?" : "");
}

oct_status oct_graph_set_input_shape(oct_graph *g, const char *input, int32_t rank,
                                     const int64_t *dims)
{
    OCT_ENTER(g->ctx);

    for (int32_t i = 0; i < g->n_inputs; i++) {
        oct_value *v = g->inputs[i];

        if (strcmp(v->name, input) != 0) continue;
        if (rank < 0 || rank > OCT_MAX_RANK || (v->type.rank >= 0 && v->type.rank != rank))
            return oct_fail(g->ctx, OCT_ERR_SHAPE, "input '%s' has %d dimensions, not %d", input,
                            (int)v->type.rank, (int)rank);
        for (int32_t k = 0; k < rank; k++)
            if (dims[k] < 0)
                return oct_fail(g->ctx, OCT_ERR_SHAPE, "input '%s': dimension %d is negative",
                                input, (int)k);
        v->type = oct_type_make(v->type.dtype, rank, dims);
        v->dim_name = NULL;
        forget_shapes(g);
        return oct_graph_infer(g);
    }
    return unknown_input(g, input);
}
