/* SPDX-License-Identifier: Apache-2.0 */
/* The signature of an exported program: which inputs are weights, what outputs are called. */
#include <string.h>

#include "torch/program.h"

#define MAX_SPECS 1000000

/* {arg: {name}} of a weight. */
static oct_status read_weight(oct_program *p, const json_t *v, const char *key, oct_spec *out)
{
    out->arg.kind = OCT_ARG_TENSOR;
    OCT_TRY(oct_program_text(p, json_object_get(json_object_get(v, "arg"), "name"),
                             "the name of an input", &out->arg.s));
    return oct_program_text(p, json_object_get(v, key), "the name of a weight", &out->name);
}

static oct_status read_input(oct_program *p, const json_t *j, oct_spec *out)
{
    const json_t *v;
    const char *key;

    OCT_TRY(oct_program_union(p, j, &key, &v));
    if (strcmp(key, "user_input") == 0) {
        out->kind = OCT_SPEC_USER;
        return oct_program_arg(p, json_object_get(v, "arg"), &out->arg);
    }
    out->kind = OCT_SPEC_WEIGHT;
    if (strcmp(key, "parameter") == 0) return read_weight(p, v, "parameter_name", out);
    if (strcmp(key, "buffer") == 0) {
        if (json_is_false(json_object_get(v, "persistent"))) out->kind = OCT_SPEC_CONSTANT;
        return read_weight(p, v, "buffer_name", out);
    }
    out->kind = OCT_SPEC_CONSTANT;
    if (strcmp(key, "tensor_constant") == 0) return read_weight(p, v, "tensor_constant_name", out);
    out->kind = OCT_SPEC_OTHER;
    if (strcmp(key, "constant_input") == 0) return OCT_OK; /* a number, written into the nodes */
    return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED,
                    "an input that is no tensor (%.60s); export the network without it", key);
}

static oct_status read_output(oct_program *p, const json_t *j, oct_spec *out)
{
    const json_t *v;
    const char *key;

    OCT_TRY(oct_program_union(p, j, &key, &v));
    out->kind = strcmp(key, "user_output") == 0 || strcmp(key, "loss_output") == 0 ? OCT_SPEC_USER
                                                                                   : OCT_SPEC_OTHER;
    if (out->kind == OCT_SPEC_OTHER) return OCT_OK; /* a mutated buffer: nobody asks for it */
    v = json_object_get(v, "arg");
    if (!json_object_get(v, "name")) return oct_program_arg(p, v, &out->arg);
    out->arg.kind = OCT_ARG_TENSOR;
    return oct_program_text(p, json_object_get(v, "name"), "the name of an output", &out->arg.s);
}

static oct_status read_specs(oct_program *p, const json_t *list,
                             oct_status (*one)(oct_program *, const json_t *, oct_spec *),
                             oct_spec **out, int32_t *n_out)
{
    const size_t n = json_array_size(list);

    if (!json_is_array(list) || n > MAX_SPECS)
        return oct_fail(p->ctx, OCT_ERR_FORMAT, "its signature is no list");
    if (!(*out = oct_arena_array(p->arena, n + 1, sizeof(**out)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        OCT_TRY(one(p, json_array_get(list, i), &(*out)[i]));
    *n_out = (int32_t)n;
    return OCT_OK;
}

oct_status oct_program_signature(oct_program *p, const json_t *j)
{
    OCT_TRY(read_specs(p, json_object_get(j, "input_specs"), read_input, &p->in, &p->n_in));
    return read_specs(p, json_object_get(j, "output_specs"), read_output, &p->out, &p->n_out);
}

/* --- names of outputs --- */

/* Outputs of a network that returns a dict, in the order of its keys; nested ones are counted. */
typedef struct leaves {
    oct_program *p;
    int32_t at;
    int depth;
} leaves;

static oct_status walk_tree(leaves *w, const json_t *spec, const char *name)
{
    enum { MAX_DEPTH = 32 };
    const json_t *children = json_object_get(spec, "children_spec");
    const char *context = json_string_value(json_object_get(spec, "context"));
    const bool is_leaf = json_is_null(json_object_get(spec, "type"));
    json_t *keys = context ? json_loads(context, JSON_DECODE_ANY, NULL) : NULL;
    const bool is_named = json_is_array(keys) && json_array_size(keys) == json_array_size(children);
    oct_status st = OCT_OK;

    if (is_leaf) {
        while (w->at < w->p->n_out && w->p->out[w->at].kind != OCT_SPEC_USER)
            w->at++;
        if (w->at < w->p->n_out && name &&
            !(w->p->out[w->at].name = oct_arena_strdup(w->p->arena, name)))
            st = OCT_ERR_MEMORY;
        w->at++;
    }
    for (size_t i = 0; i < json_array_size(children) && !st && w->depth < MAX_DEPTH; i++) {
        w->depth++;
        st = walk_tree(w, json_array_get(children, i),
                       is_named ? json_string_value(json_array_get(keys, i)) : name);
        w->depth--;
    }
    json_decref(keys);
    return st;
}

/* The entry of the whole network (fqn "") has the tree of its results as JSON in a text. */
oct_status oct_program_call_graph(oct_program *p, const json_t *j)
{
    const json_t *signature = json_object_get(json_array_get(j, 0), "signature");
    const char *text = json_string_value(json_object_get(signature, "out_spec"));
    json_t *tree = text ? json_loads(text, 0, NULL) : NULL;
    leaves w = {.p = p};
    const oct_status st = tree ? walk_tree(&w, json_array_get(tree, 1), NULL) : OCT_OK;

    json_decref(tree);
    return st;
}
