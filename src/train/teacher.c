/* SPDX-License-Identifier: Apache-2.0 */
/* Self-distillation: see teacher.h. */
#include "train/teacher.h"

#include "base/ctx.h"
#include "exec/run.h"
#include "op/op.h"

struct oct_teacher {
    oct_ctx *ctx;
    oct_plan *plan;
    oct_run *run;
    void **value; /* one for each pair */
    size_t *size;
    int32_t n;
};

/* A copy of the network whose outputs are the values that pairs name. */
static oct_status choose_outputs(const oct_graph *from, const oct_loss_pair *pairs, int32_t n,
                                 oct_graph **out)
{
    oct_builder b = {0};
    oct_graph *g = NULL;

    OCT_TRY(oct_graph_clone(from, &g));
    *out = b.g = g;
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    for (int32_t i = 0; i < n; i++) {
        oct_value *v = oct_graph_find_value(g, pairs[i].value->name);

        if (!v)
            return oct_fail(g->ctx, OCT_ERR_ARG,
                            "the network as it came has no value '%s' to learn from",
                            pairs[i].value->name);
        v = oct_emit(&b, &oct_op_identity, v, NULL, NULL);
        OCT_TRY(b.status);
        OCT_TRY(oct_graph_add_output(g, v));
    }
    return OCT_OK;
}

static oct_status bind_all(oct_teacher *t, const char *input, const float *images)
{
    oct_io_info info = {.struct_size = sizeof(info)};
    void *own = NULL;
    size_t size = 0;

    OCT_TRY(oct_run_input(t->run, input, &own, &size));
    OCT_TRY(oct_run_bind_input(t->run, input, images, size));
    for (int32_t i = 0; i < t->n; i++) {
        if (!oct_plan_output_info(t->plan, i, &info) || !info.size)
            return oct_fail(t->ctx, OCT_ERR_SHAPE, "a value to learn from has no known shape");
        t->size[i] = info.size;
        if (!(t->value[i] = oct_calloc(t->ctx, 1, info.size))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_run_bind_output(t->run, i, t->value[i], info.size));
    }
    return OCT_OK;
}

static oct_status build(oct_teacher *t, const oct_graph *g, const oct_loss_pair *pairs,
                        const char *input, const float *images, int n_threads)
{
    oct_plan_options o;
    oct_graph *own = NULL;
    oct_status st;

    t->value = oct_calloc(t->ctx, (size_t)t->n + 1, sizeof(*t->value));
    t->size = oct_calloc(t->ctx, (size_t)t->n + 1, sizeof(*t->size));
    if (!t->value || !t->size) return OCT_ERR_MEMORY;
    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    st = choose_outputs(g, pairs, t->n, &own);
    if (!st) st = oct_plan_new(own, &o, &t->plan);
    oct_graph_free(own);
    if (!st) st = oct_run_new(t->ctx, t->plan, &t->run);
    return st ? st : bind_all(t, input, images);
}

oct_status oct_teacher_new(const oct_graph *g, const oct_loss_pair *pairs, int32_t n,
                           const char *input, const float *images, int n_threads, oct_teacher **out)
{
    oct_teacher *t = oct_calloc(g->ctx, 1, sizeof(*t));
    oct_status st;

    if (!t) return OCT_ERR_MEMORY;
    t->ctx = g->ctx;
    t->n = n;
    st = build(t, g, pairs, input, images, n_threads);
    if (st) {
        oct_teacher_free(t);
        return st;
    }
    *out = t;
    return OCT_OK;
}

void oct_teacher_free(oct_teacher *t)
{
    if (!t) return;
    oct_run_free(t->run);
    oct_plan_free(t->plan);
    for (int32_t i = 0; t->value && i < t->n; i++)
        oct_free(t->ctx, t->value[i]);
    oct_free(t->ctx, t->value);
    oct_free(t->ctx, t->size);
    oct_free(t->ctx, t);
}

oct_status oct_teacher_run(oct_teacher *t)
{
    return oct_run_execute(t->run);
}

const void *oct_teacher_value(const oct_teacher *t, int32_t i, size_t *size)
{
    *size = t->size[i];
    return t->value[i];
}
