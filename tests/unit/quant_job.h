/* SPDX-License-Identifier: Apache-2.0 */
/* Whole quantizations of small networks: tensors to calibrate on, the job, what its file says. */
#ifndef OCT_TESTS_QUANT_JOB_H
#define OCT_TESTS_QUANT_JOB_H

#include "tests/unit/data_files.h"
#include "tests/unit/exec_net.h"

enum { N_ITEMS = 4 };

/* Tensors for the input x of the graph, of the values -size to size. */
static inline oct_dataset *items(files *t, const oct_value *x, float size)
{
    oct_dataset *d = NULL;
    oct_rng rng;

    oct_rng_init(&rng, 3);
    put_folder(t, "items");
    for (int i = 0; i < N_ITEMS; i++) {
        char name[32];
        oct_tensor *v = NULL;

        (void)snprintf(name, sizeof(name), "items/%d.npy", i);
        assert_ok(t->ctx, oct_tensor_make(t->ctx, &x->type, &v));
        for (int64_t k = 0; k < oct_tensor_len(v); k++) {
            const double y = (oct_rng_f64(&rng) * 2 - 1) * (double)size;

            oct_store_f64(x->type.dtype, v->data, k, 1, &y);
        }
        assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, v, below(t, name)));
        oct_tensor_unref(v);
    }
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "items"), NULL, false, &d));
    return d;
}

/* The first output of a graph on plain kernels, for a drawn input. */
static inline oct_tensor *answer(files *t, const oct_graph *g)
{
    oct_tensor *x = NULL, *y[2] = {NULL};
    oct_rng rng;

    oct_rng_init(&rng, 9);
    assert_ok(t->ctx, oct_tensor_make(t->ctx, &g->inputs[0]->type, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)x->data)[i] = (float)(oct_rng_f64(&rng) * 2 - 1);
    assert_ok(t->ctx, oct_graph_eval(g, &x, y, NULL));
    oct_tensor_unref(x);
    return y[0];
}

/* Squared error of the quantized network over the power of the float one, of output 0. */
static inline double job_noise(files *t, const oct_quantized *q)
{
    oct_graph *exact = t->f->g;
    oct_tensor *want[8] = {NULL}, *got[8] = {NULL};
    double error = 0, power = 0;

    run_graph(t->f, NULL, want);
    assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &t->f->g));
    run_graph(t->f, NULL, got);
    for (int64_t i = 0; i < oct_tensor_len(want[0]); i++) {
        const double y = oct_tensor_get_f64(want[0], i);
        const double e = oct_tensor_get_f64(got[0], i) - y;

        error += e * e;
        power += y * y;
    }
    oct_graph_free(t->f->g);
    t->f->g = exact;
    for (int i = 0; i < 8; i++) {
        oct_tensor_unref(want[i]);
        oct_tensor_unref(got[i]);
    }
    return error / power;
}

#endif
