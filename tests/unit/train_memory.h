/* SPDX-License-Identifier: Apache-2.0 */
/* Two networks in training that are to give the same bytes. */
#ifndef OCT_TESTS_TRAIN_MEMORY_H
#define OCT_TESTS_TRAIN_MEMORY_H

#include "base/rng.h"
#include "exec/plan.h"
#include "exec/run.h"
#include "tests/test.h"
#include "train/net.h"

/* Random pictures, and the same number of random boxes (or a class) for each. */
static inline void fill_random(const oct_train_net *t, const oct_train_net_options *o)
{
    int64_t n = 0;
    float *x = oct_train_net_images(t, &n);
    oct_rng rng;

    oct_rng_init(&rng, 5);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)oct_rng_f64(&rng);
    x = oct_train_net_labels(t, &n);
    if (!o->loss->has_boxes) return; /* class 0 */
    for (int64_t i = 0; i < n; i += OCT_LABEL_SIZE) {
        const double x0 = oct_rng_f64(&rng) * o->width / 2, y0 = oct_rng_f64(&rng) * o->height / 2;

        x[i] = i / OCT_LABEL_SIZE % o->max_boxes < 5 ? (float)oct_rng_below(&rng, 3) : -1;
        x[i + OCT_LABEL_X1] = (float)x0;
        x[i + OCT_LABEL_Y1] = (float)y0;
        x[i + OCT_LABEL_X2] = (float)(x0 + 20 + oct_rng_f64(&rng) * o->width / 3);
        x[i + OCT_LABEL_Y2] = (float)(y0 + 20 + oct_rng_f64(&rng) * o->height / 3);
    }
}

/* Loss, parts, gradients and next statistics are the same, bit for bit. */
static inline void assert_same_bytes(const oct_train_net *a, const oct_train_net *b)
{
    const oct_run *x = oct_train_net_run(a), *y = oct_train_net_run(b);

    for (int32_t i = 0; i < oct_plan_n_outputs(oct_train_net_plan(a)); i++) {
        size_t size = 0;

        assert_true(oct_type_bytes(&x->outputs[i]->type, &size));
        if (memcmp(x->outputs[i]->data, y->outputs[i]->data, size) != 0)
            fail_msg("output '%s' differs", oct_plan_output_name(oct_train_net_plan(a), i));
    }
}

/* The bytes that the error of a refused plan names. */
static inline size_t smallest_of(const char *error)
{
    double mb = 0;

    if (sscanf(error, "training needs %lf MB", &mb) != 1) fail_msg("%s", error);
    return (size_t)(mb * 1e6);
}

/*
 * A step in less and less memory: as much as it takes, three quarters, half, and the least there
 * is, which the error for less names. All of them give the same bytes.
 */
static inline void assert_bounded(oct_ctx *ctx, const oct_graph *g, oct_train_net_options o,
                                  double least)
{
    oct_train_net *free_one = NULL, *t = NULL;
    size_t full, bounds[3];

    o.memory.max = 0;
    assert_ok(ctx, oct_train_net_new(g, &o, &free_one));
    full = oct_train_net_bytes(free_one);
    fill_random(free_one, &o);
    assert_ok(ctx, oct_train_net_step(free_one));
    o.memory.max = 1;
    assert_int_equal(oct_train_net_new(g, &o, &t), OCT_ERR_MEMORY);
    bounds[2] = smallest_of(oct_ctx_error(ctx));
    assert_true((double)bounds[2] < least * (double)full);
    bounds[0] = full * 3 / 4;
    bounds[1] = (full + bounds[2]) / 2;
    for (int i = 0; i < 3; i++) {
        o.memory.max = bounds[i];
        assert_ok(ctx, oct_train_net_new(g, &o, &t));
        assert_true(oct_train_net_bytes(t) <= bounds[i]);
        assert_true(oct_plan_n_steps(oct_train_net_plan(t)) >
                    oct_plan_n_steps(oct_train_net_plan(free_one)));
        fill_random(t, &o);
        assert_ok(ctx, oct_train_net_step(t));
        assert_same_bytes(free_one, t);
        assert_ok(ctx, oct_train_net_step(t)); /* nothing is left over from the step before */
        assert_same_bytes(free_one, t);
        oct_train_net_free(t);
        t = NULL;
    }
    oct_train_net_free(free_one);
}

#endif
