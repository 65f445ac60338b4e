/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error of inner values. One picture at a time: the float run leaves samples of each value, the
 * quantized run compares with them, so memory does not depend on the number of pictures.
 */
#include "quant/noise.h"

#include <string.h>

#include "exec/plan.h"
#include "exec/run.h"

#define MOST_SAMPLES 16384 /* of a value; they are spread over all of it */

typedef struct listener {
    oct_noise *values;
    oct_map by_name; /* index + 1 */
    float *samples;  /* MOST_SAMPLES for each value */
    int64_t *n_samples;
    bool compares;
} listener;

/* Element i of the value in its logical order (N C H W), wherever it lies. */
static float element(const oct_seen *s, int64_t i)
{
    const float *x = s->data;
    int64_t channels, pixels;

    if (s->layout != OCT_LAYOUT_CLAST) return x[i];
    channels = s->type->dim[1];
    pixels = oct_type_span(s->type, 2, s->type->rank);
    return x[(i / (channels * pixels) * pixels + i % pixels) * s->pitch + i / pixels % channels];
}

static oct_status on_value(void *user, const oct_seen *s)
{
    listener *l = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&l->by_name, s->value->name);
    const int64_t len = oct_type_len(s->type);
    const int64_t step = OCT_MAX((len + MOST_SAMPLES - 1) / MOST_SAMPLES, (int64_t)1) | 1;
    float *samples;
    int64_t n = 0;

    if (!at || s->type->dtype != OCT_DTYPE_F32) return OCT_OK;
    samples = l->samples + (int64_t)(at - 1) * MOST_SAMPLES;
    for (int64_t i = 0; i < len && n < MOST_SAMPLES; i += step, n++) {
        const float x = element(s, i);

        if (!l->compares) {
            samples[n] = x;
        } else if (n < l->n_samples[at - 1]) {
            const double d = (double)x - (double)samples[n];

            l->values[at - 1].error += d * d;
            l->values[at - 1].signal += (double)samples[n] * (double)samples[n];
        }
    }
    if (!l->compares) l->n_samples[at - 1] = n;
    return OCT_OK;
}

static oct_status make_run(const oct_graph *g, const oct_map *names, bool simulate, oct_plan **plan,
                           oct_run **run)
{
    uint8_t *wanted = oct_calloc(g->ctx, (size_t)g->n_value_ids + 1, 1);
    oct_plan_options o;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->graph == g && oct_map_get(names, g->values[i]->name))
            wanted[i] = 1;
    oct_plan_options_init(&o);
    o.simulate = simulate;
    st = oct_plan_new_watching(g, &o, wanted, plan);
    oct_free(g->ctx, wanted);
    return st ? st : oct_run_new(g->ctx, *plan, run);
}

/* The same item into both. */
static oct_status copy_inputs(const oct_graph *g, oct_run *from, oct_run *to)
{
    for (int32_t i = 0; i < g->n_inputs; i++) {
        void *a = NULL, *b = NULL;
        size_t size = 0, other = 0;

        OCT_TRY(oct_run_input(from, g->inputs[i]->name, &a, &size));
        OCT_TRY(oct_run_input(to, g->inputs[i]->name, &b, &other));
        if (a && b && size == other) memcpy(b, a, size);
    }
    return OCT_OK;
}

static oct_status compare(listener *l, const oct_graph *exact, oct_feed *f, int64_t images,
                          oct_run *float_run, oct_run *quantized_run)
{
    oct_run_set_seen_hook(float_run, on_value, l);
    oct_run_set_seen_hook(quantized_run, on_value, l);
    OCT_TRY(oct_feed_rewind(f, images));
    for (int64_t i = 0; i < images; i++) {
        int64_t index;

        OCT_TRY(oct_feed_take(f, exact->ctx, float_run, &index));
        if (index < 0) break;
        OCT_TRY(copy_inputs(exact, float_run, quantized_run));
        l->compares = false;
        OCT_TRY(oct_run_execute(float_run));
        l->compares = true;
        OCT_TRY(oct_run_execute(quantized_run));
        OCT_TRY(oct_progress(exact->ctx, "comparing", i + 1, images));
    }
    return OCT_OK;
}

oct_status oct_noise_measure(const oct_graph *exact, const oct_graph *quantized, oct_feed *f,
                             int64_t images, oct_noise *values, int32_t n)
{
    oct_ctx *ctx = exact->ctx;
    listener l = {.values = values};
    oct_plan *plans[2] = {NULL, NULL};
    oct_run *runs[2] = {NULL, NULL};
    oct_status st = OCT_OK;

    oct_map_init(&l.by_name, ctx);
    l.samples = oct_calloc(ctx, (size_t)n + 1, MOST_SAMPLES * sizeof(float));
    l.n_samples = oct_calloc(ctx, (size_t)n + 1, sizeof(int64_t));
    if (!l.samples || !l.n_samples) st = OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n && !st; i++)
        st = oct_map_put(&l.by_name, values[i].name, (void *)(uintptr_t)(i + 1));
    if (!st) st = make_run(exact, &l.by_name, false, &plans[0], &runs[0]);
    if (!st) st = make_run(quantized, &l.by_name, true, &plans[1], &runs[1]);
    if (!st) st = compare(&l, exact, f, images, runs[0], runs[1]);
    for (int i = 0; i < 2; i++) {
        oct_run_free(runs[i]);
        oct_plan_free(plans[i]);
    }
    oct_map_fini(&l.by_name);
    oct_free(ctx, l.samples);
    oct_free(ctx, l.n_samples);
    return st;
}
