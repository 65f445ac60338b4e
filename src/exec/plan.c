/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a graph into a plan. */
#include <string.h>

#include "base/parallel.h"
#include "base/regex.h"
#include "exec/kernel.h"
#include "exec/onednn/onednn.h"
#include "op/qparams.h"
#include "pass/pass.h"

void oct_plan_options_init_sized(oct_plan_options *o, size_t struct_size)
{
    oct_plan_options all = {.struct_size = struct_size, .default_dim = 1};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* The options that the caller's struct has, the rest at their defaults. */
static void read_options(oct_plan_options *to, const oct_plan_options *from)
{
    oct_plan_options_init_sized(to, sizeof(*to));
    if (from) memcpy(to, from, OCT_MIN(from->struct_size, sizeof(*to)));
    to->struct_size = sizeof(*to);
}

/* --- preparing the graph --- */

static oct_status bind_dims(oct_plan *p)
{
    bool changed = false;

    for (int32_t i = 0; i < p->g->n_inputs; i++) {
        oct_value *v = p->g->inputs[i];

        if (v->raw_type)
            return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "input '%s' is not a tensor", v->name);
        if (v->type.rank < 0)
            return oct_fail(p->ctx, OCT_ERR_SHAPE,
                            "input '%s' has no shape; give one (--input-shape %s:1x3x640x640)",
                            v->name, v->name);
        for (int32_t d = 0; d < v->type.rank; d++) {
            if (v->type.dim[d] >= 0) continue;
            v->type.dim[d] = p->options.default_dim;
            changed = true;
        }
    }
    if (!changed) return OCT_OK;
    /* One call forgets and infers all shapes anew. */
    return p->g->n_inputs
               ? oct_graph_set_input_shape(p->g, p->g->inputs[0]->name, p->g->inputs[0]->type.rank,
                                           p->g->inputs[0]->type.dim)
               : OCT_OK;
}

static oct_status match_names(oct_plan *p, uint8_t *kept)
{
    oct_regex *re = NULL;

    OCT_TRY(oct_regex_new(p->ctx, p->options.keep, false, &re));
    for (int32_t i = 0; i < p->g->n_value_ids; i++) {
        const oct_value *v = p->g->values[i];

        if (v && !v->data && v->graph == p->g && oct_regex_matches(re, v->name)) kept[i] = 1;
    }
    oct_regex_free(re);
    return OCT_OK;
}

/* Values for hooks become outputs of the copy, so that no pass removes or renames them. */
static oct_status keep_values(oct_plan *p)
{
    uint8_t *kept = oct_plan_alloc(p, (size_t)p->g->n_value_ids + 1, 1);
    oct_status st = OCT_OK;

    if (!kept) return OCT_ERR_MEMORY;
    p->n_outputs = p->g->n_outputs;
    if (p->options.keep) st = match_names(p, kept);
    for (int32_t i = 0; i < p->g->n_value_ids && !st; i++) {
        oct_value *v = p->g->values[i];

        if (!v || v->data || v->graph != p->g || v->raw_type) continue;
        if (!kept[i] && !p->options.keep_all && !(p->wanted && p->wanted[i])) continue;
        kept[i] = 1;
        if (!v->is_output && v->producer) st = oct_graph_add_output(p->g, v);
    }
    return st;
}

static oct_status mark_kept(oct_plan *p)
{
    p->is_kept = oct_plan_alloc(p, (size_t)p->n_ids + 1, 1);
    if (!p->is_kept) return OCT_ERR_MEMORY;
    if (p->options.keep || p->options.keep_all || p->wanted)
        for (int32_t i = 0; i < p->g->n_outputs; i++)
            p->is_kept[p->g->outputs[i]->id] = 1;
    return OCT_OK;
}

static oct_status check_operators(const oct_plan *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next)
        if (!n->op->ref || !n->op->shape)
            return oct_node_fail(
                n, OCT_ERR_UNSUPPORTED,
                "octet cannot run this operator%s%s; it can only keep it. --plugin "
                "FILE adds operators, --stub %s=TYPES lets it give zeros",
                *oct_op_domain(n->op) ? " of domain " : "", oct_op_domain(n->op), n->op->name);
    return OCT_OK;
}

static oct_status check_codes(const oct_plan *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next)
        OCT_TRY(oct_codes_check(n));
    return OCT_OK;
}

static oct_status check_work(const oct_plan *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next)
        OCT_TRY(oct_node_check_work(n));
    return OCT_OK;
}

/* Finds nodes whose shapes depend on data, and all nodes downstream. */
static oct_status find_dynamic(oct_plan *p)
{
    const unsigned at_run_time = OCT_OP_DATA_SHAPE | OCT_OP_HAS_BODY;

    p->is_dynamic = oct_plan_alloc(p, (size_t)p->g->n_node_ids + 1, 1);
    p->dynamic = oct_plan_alloc(p, (size_t)p->g->n_nodes + 1, sizeof(*p->dynamic));
    if (!p->is_dynamic || !p->dynamic) return OCT_ERR_MEMORY;
    for (const oct_node *n = p->g->first; n; n = n->next) {
        bool dynamic = (n->op->flags & at_run_time) != 0;

        for (int32_t i = 0; i < n->n_in && !dynamic; i++)
            dynamic = n->in[i] && n->in[i]->producer && p->is_dynamic[n->in[i]->producer->id];
        for (int32_t i = 0; i < n->n_out && !dynamic; i++)
            dynamic = n->out[i] && (!oct_type_is_static(&n->out[i]->type) ||
                                    oct_dtype_get(n->out[i]->type.dtype)->bits == 0);
        p->is_dynamic[n->id] = dynamic;
        if (dynamic) p->dynamic[p->n_dynamic++] = n;
    }
    return OCT_OK;
}

static oct_status prepare_graph(oct_plan *p)
{
    oct_graph_params_to_consts(
        p->g); /* nothing changes parameters while a plan for inference runs */
    OCT_TRY(bind_dims(p));
    OCT_TRY(check_operators(p));
    OCT_TRY(check_codes(p));
    OCT_TRY(keep_values(p));
    if (!p->options.as_is && !p->options.plain)
        OCT_TRY(oct_pipeline_run(p->g, p->options.simulate ? "execute" : "integer", NULL, NULL));
    OCT_TRY(oct_graph_infer(p->g));
    OCT_TRY(check_work(p));
    p->n_ids = p->g->n_value_ids;
    OCT_TRY(mark_kept(p));
    return find_dynamic(p);
}

/* --- steps --- */

static oct_status make_kernels(oct_plan *p)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        oct_step *s = &p->steps[i];

        if (s->kernel->make) OCT_TRY(s->kernel->make(p, s));
        p->scratch_size = OCT_MAX(p->scratch_size, s->scratch_size);
    }
    return OCT_OK;
}

/* Runs make views of constants; mark constants shared now, because runs on several threads could
 * not do so safely. */
static void mark_shared(oct_plan *p)
{
    for (int32_t i = 0; i < p->n_ids; i++) {
        const oct_value *v = p->g->values[i];
        oct_tensor *t = p->computed[i] ? p->computed[i] : v ? v->data : NULL;

        if (t && !t->read_only) t->read_only = true;
    }
}

static oct_status compile(oct_plan *p)
{
    OCT_TRY(prepare_graph(p));
    for (int l = 0; l < OCT_LAYOUT_COUNT; l++) {
        p->slot_of[l] = oct_plan_alloc(p, (size_t)p->n_ids + 1, sizeof(int32_t));
        if (!p->slot_of[l]) return OCT_ERR_MEMORY;
        memset(p->slot_of[l], -1, ((size_t)p->n_ids + 1) * sizeof(int32_t));
    }
    OCT_TRY(oct_plan_fuse(p));
    OCT_TRY(oct_plan_choose(p));
    OCT_TRY(oct_plan_narrow(p));
    OCT_TRY(oct_plan_schedule(p));
    OCT_TRY(oct_plan_recompute(p, p->max_block));
    OCT_TRY(oct_plan_check(p));
    OCT_TRY(oct_plan_alias(p));
    OCT_TRY(oct_plan_place(p));
    OCT_TRY(oct_plan_check(p));
    mark_shared(p);
    return make_kernels(p);
}

oct_status oct_plan_new(const oct_graph *g, const oct_plan_options *options, oct_plan **out)
{
    OCT_ENTER(g->ctx);

    return oct_plan_new_watching(g, options, NULL, out);
}

static oct_status new_plan(const oct_graph *g, const oct_plan_options *options,
                           const uint8_t *wanted, bool is_apart, oct_plan_training training,
                           oct_plan **out)
{
    oct_plan *p = oct_calloc(g->ctx, 1, sizeof(*p));
    oct_status st = OCT_ERR_MEMORY;

    if (!p) return OCT_ERR_MEMORY;
    p->ctx = g->ctx;
    p->wanted = wanted;
    p->is_apart = is_apart;
    p->max_block = training.max_block;
    p->is_bf16 = training.is_bf16;
    read_options(&p->options, options);
    p->n_threads = p->options.n_threads > 0 ? p->options.n_threads : oct_ctx_threads(g->ctx);
    oct_parallel_set_threads(p->n_threads); /* kernels are prepared for that many */
    if (!(p->arena = oct_arena_new(g->ctx))) goto fail;
    if ((st = oct_dnnl_new(g->ctx, &p->dnnl))) goto fail;
    if ((st = oct_graph_clone(g, &p->g))) goto fail;
    if ((st = compile(p))) goto fail;
    oct_parallel_release(); /* runs may belong to other threads */
    p->wanted = NULL;
    *out = p;
    return OCT_OK;
fail:
    oct_plan_free(p);
    return st;
}

oct_status oct_plan_new_watching(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out)
{
    return new_plan(g, options, wanted, false, (oct_plan_training){0}, out);
}

oct_status oct_plan_new_unshared(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out)
{
    return new_plan(g, options, wanted, true, (oct_plan_training){0}, out);
}

oct_status oct_plan_new_training(const oct_graph *g, const oct_plan_options *options,
                                 const oct_plan_training *training, oct_plan **out)
{
    return new_plan(g, options, NULL, false, *training, out);
}

void oct_plan_free(oct_plan *p)
{
    if (!p) return;
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kernel && p->steps[i].kernel->drop)
            p->steps[i].kernel->drop(p, &p->steps[i]);
    for (int32_t i = 0; p->computed && i < p->n_ids; i++)
        oct_tensor_unref(p->computed[i]);
    oct_free(p->ctx, p->steps);
    oct_free(p->ctx, p->slots);
    oct_dnnl_free(p->dnnl);
    oct_graph_free(p->g);
    oct_arena_free(p->arena);
    oct_free(p->ctx, p);
}

/* --- reading a plan --- */

int32_t oct_plan_n_inputs(const oct_plan *p)
{
    return p->g->n_inputs;
}

int32_t oct_plan_n_outputs(const oct_plan *p)
{
    return p->n_outputs;
}

const char *oct_plan_input_name(const oct_plan *p, int32_t i)
{
    return i >= 0 && i < p->g->n_inputs ? p->g->inputs[i]->name : NULL;
}

const char *oct_plan_output_name(const oct_plan *p, int32_t i)
{
    return i >= 0 && i < p->n_outputs ? p->g->outputs[i]->name : NULL;
}

size_t oct_plan_activation_size(const oct_plan *p)
{
    return p->block_size;
}

size_t oct_plan_input_size(const oct_plan *p)
{
    return p->input_size;
}

int64_t oct_plan_macs(const oct_plan *p)
{
    int64_t total = 0;

    for (int32_t i = 0; i < p->n_steps; i++)
        total += p->steps[i].macs;
    return total;
}

int32_t oct_plan_n_steps(const oct_plan *p)
{
    return p->n_steps + p->n_dynamic;
}
