/* SPDX-License-Identifier: Apache-2.0 */
/* Times of networks, in turns with the float network so that what else the machine does counts for
 * both, and sizes of their files. */
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "onnx/write.h"
#include "tune/tune.h"

enum { MOST_RUNS = 41, LEAST_RUNS = 5 };

#define ENOUGH_NS 500000000LL /* for both networks together */

/* Floats in [0, 1); what else there is stays zero. */
static oct_status fill_inputs(const oct_plan *p, oct_run *r)
{
    oct_io_info io = {.struct_size = sizeof(io)};
    oct_rng rng;

    oct_rng_init(&rng, 1);
    for (int32_t i = 0; oct_plan_input_info(p, i, &io); i++) {
        void *data;
        size_t size;

        OCT_TRY(oct_run_input(r, io.name, &data, &size));
        memset(data, 0, size);
        if (io.dtype != OCT_DTYPE_F32) continue;
        for (size_t k = 0; k < size / sizeof(float); k++)
            ((float *)data)[k] = (float)oct_rng_f64(&rng);
    }
    return OCT_OK;
}

static oct_status open_run(oct_ctx *ctx, const oct_graph *g, oct_plan **plan, oct_run **run)
{
    OCT_TRY(oct_plan_new(g, NULL, plan));
    OCT_TRY(oct_run_new(ctx, *plan, run));
    OCT_TRY(fill_inputs(*plan, *run));
    return oct_run_execute(*run); /* the first one takes longer */
}

static int by_rise(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_rise);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static oct_status time_once(oct_run *r, double *ms)
{
    const int64_t start = oct_time_ns();

    OCT_TRY(oct_run_execute(r));
    *ms = (double)(oct_time_ns() - start) * 1e-6;
    return OCT_OK;
}

/*
 * Turn by turn: the median of the float network's times, and of the ratio of both. What else the
 * machine does slows both of a turn down, so that ratios vary less than times. other may be NULL.
 */
static oct_status in_turns(oct_tune_bench *b, oct_run *other, double *float_ms, double *ratio)
{
    double ms[MOST_RUNS], ratios[MOST_RUNS];
    const int64_t start = oct_time_ns();
    int n = 0;

    while (n < MOST_RUNS && (n < LEAST_RUNS || oct_time_ns() - start < ENOUGH_NS)) {
        OCT_TRY(time_once(b->run, &ms[n]));
        if (other) {
            OCT_TRY(time_once(other, &ratios[n]));
            ratios[n] /= OCT_MAX(ms[n], 1e-6);
        }
        n++;
    }
    *float_ms = median(ms, n);
    *ratio = other ? median(ratios, n) : 1;
    return OCT_OK;
}

oct_status oct_tune_time(oct_tune_bench *b, const oct_graph *g, double *ms)
{
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    double of_float = 0, ratio = 1;
    oct_status st;

    if (!b->run) OCT_TRY(open_run(b->ctx, b->g, &b->plan, &b->run));
    if (g && (st = open_run(b->ctx, g, &plan, &run))) goto done;
    if ((st = in_turns(b, run, &of_float, &ratio))) goto done;
    if (b->float_ms <= 0) b->float_ms = of_float;
    *ms = ratio * b->float_ms;
done:
    oct_run_free(run);
    oct_plan_free(plan);
    return st;
}

/* --- sizes --- */

typedef struct bytes {
    oct_ctx *ctx;
    uint8_t *data;
    size_t n, cap;
} bytes;

static oct_status put(void *user, const void *p, size_t size)
{
    bytes *b = user;
    size_t need;

    if (!oct_add_size(b->n, size, &need))
        return oct_fail(b->ctx, OCT_ERR_MEMORY, "the network is too large");
    OCT_TRY(oct_grow(b->ctx, &b->data, &b->cap, need, 1));
    if (size) memcpy(b->data + b->n, p, size);
    b->n = need;
    return OCT_OK;
}

oct_status oct_tune_weigh(const oct_graph *g, oct_arena *arena, int64_t *n, const char **digest)
{
    bytes b = {.ctx = oct_arena_ctx(arena)};
    char text[OCT_SHA256_TEXT];
    oct_status st = oct_onnx_encode(g, NULL, put, &b);

    if (!st) {
        *digest = oct_arena_strdup(arena, oct_sha256(b.data, b.n, text));
        *n = (int64_t)b.n;
        if (!*digest) st = OCT_ERR_MEMORY;
    }
    oct_free(b.ctx, b.data);
    return st;
}
