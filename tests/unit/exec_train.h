/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of training kernels share. */
#ifndef OCT_TESTS_EXEC_TRAIN_H
#define OCT_TESTS_EXEC_TRAIN_H

#include "unit/exec_net.h"

#include "op/act.h"
#include "op/grad/rules.h"

static inline void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

static inline oct_value *given(fixture *f, const char *name, int32_t rank, const int64_t *dims)
{
    return graph_input(f, name, OCT_DTYPE_F32, rank, dims);
}

static inline void set_window(fixture *f, oct_node *n, const conv_case *c)
{
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){c->kernel, c->kernel}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){c->stride, c->stride}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "dilations", (int64_t[]){c->dilation, c->dilation}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){c->pad, c->pad, c->pad, c->pad}, 4));
    assert_ok(f->ctx, oct_node_set_int(n, "group", c->group));
}

static inline void assert_fast(fixture *f, const char *op)
{
    oct_plan *p = NULL;

    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        if (strcmp(info.op, op) == 0 && info.is_plain) fail_msg("%s has a plain kernel", op);
    }
    oct_plan_free(p);
}

/* The same bytes in each run with the same number of threads. */
static inline void assert_repeatable(fixture *f, int32_t n_threads)
{
    enum { MAX_OUT = 64 };
    oct_tensor *a[MAX_OUT] = {NULL}, *b[MAX_OUT] = {NULL};
    oct_plan_options o;

    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    assert_true(f->g->n_outputs <= MAX_OUT);
    run_graph(f, &o, a);
    run_graph(f, &o, b);
    for (int32_t i = 0; i < f->g->n_outputs; i++) {
        assert_memory_equal(a[i]->data, b[i]->data, a[i]->size);
        oct_tensor_unref(a[i]);
        oct_tensor_unref(b[i]);
    }
}

static inline void set_act(fixture *f, oct_node *n, oct_act_kind kind)
{
    assert_ok(f->ctx, oct_node_set_int(n, "act", kind));
    assert_ok(f->ctx, oct_node_set_f32(n, "act_a", kind == OCT_ACT_CLIP ? -0.5f : 0.25f));
    assert_ok(f->ctx, oct_node_set_f32(n, "act_b", 0.75f));
}

#endif
