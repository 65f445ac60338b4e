/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error of inner values. One picture at a time: the float run leaves samples of each value, the
 * quantized run compares with them, so memory does not depend on the number of pictures.
 */
#include "stat/noise.h"

#include <string.h>

#include "exec/plan.h"
#include "exec/run.h"

/* What the float run left of one value. */
typedef struct kept {
    oct_noise *value;
    float *samples;
    int64_t cap, n;
    uintptr_t next; /* index + 1 of another entry for the same value, or 0 */
} kept;

typedef struct listener {
    kept *kept;
    int32_t n;
    oct_map by_name;  /* index + 1 */
    float *other;     /* the quantized run's samples of one value */
    uint64_t *counts; /* of all histograms */
    bool compares;
} listener;

float oct_seen_number(const oct_seen *s, int64_t i)
{
    const float *x = s->data;
    int64_t channels, pixels;

    if (s->layout != OCT_LAYOUT_CLAST) return x[i];
    channels = s->type->dim[1];
    pixels = oct_type_span(s->type, 2, s->type->rank);
    return x[(i / (channels * pixels) * pixels + i % pixels) * s->pitch + i / pixels % channels];
}

static int64_t sample(const oct_noise *v, const oct_seen *s, float *to, int64_t cap)
{
    const int64_t len = oct_type_len(s->type);
    const int64_t step = OCT_MAX((len + cap - 1) / cap, (int64_t)1) | 1;
    int64_t n = 0;

    for (int64_t i = 0; v->places && i < v->n_places; i++)
        if (v->places[i] < len) to[n++] = oct_seen_number(s, v->places[i]);
    for (int64_t i = 0; !v->places && i < len && n < cap; i += step)
        to[n++] = oct_seen_number(s, i);
    return n;
}

static oct_status on_value(void *user, const oct_seen *s)
{
    listener *l = user;
    uintptr_t at = (uintptr_t)oct_map_get(&l->by_name, s->value->name);

    if (s->type->dtype != OCT_DTYPE_F32) return OCT_OK;
    while (at) {
        kept *k = &l->kept[at - 1];

        if (!l->compares)
            k->n = sample(k->value, s, k->samples, k->cap);
        else if (sample(k->value, s, l->other, k->cap) == k->n)
            oct_distance_see(&k->value->distance, k->samples, l->other, k->n);
        at = k->next;
    }
    return OCT_OK;
}

/* Both are simulated: so what is the same in both is computed by the same steps. */
static oct_status make_run(const oct_graph *g, const oct_map *names, oct_plan **plan, oct_run **run)
{
    uint8_t *wanted = oct_calloc(g->ctx, (size_t)g->n_value_ids + 1, 1);
    oct_plan_options o;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->graph == g && oct_map_get(names, g->values[i]->name))
            wanted[i] = 1;
    oct_plan_options_init(&o);
    o.simulate = 1;
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

/* Places that will be compared: no more than there are, as far as that is known. */
static int64_t room_for(const oct_graph *g, const oct_noise *v)
{
    const oct_value *at = oct_graph_find_value(g, v->name);
    const int64_t most = v->most > 0 ? v->most : OCT_NOISE_SAMPLES;
    const int64_t len = at ? oct_type_len(&at->type) : -1;

    if (v->places) return OCT_MAX(v->n_places, (int64_t)1);
    return OCT_MAX(len >= 0 ? OCT_MIN(len, most) : most, (int64_t)1);
}

static oct_status listen(listener *l, const oct_graph *g, oct_noise *values)
{
    const size_t n_counts = 2 * (size_t)OCT_DISTANCE_SLOTS;
    int64_t most = 1;

    l->kept = oct_calloc(g->ctx, (size_t)l->n + 1, sizeof(*l->kept));
    l->counts = oct_calloc(g->ctx, (size_t)l->n + 1, n_counts * sizeof(*l->counts));
    if (!l->kept || !l->counts) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < l->n; i++) {
        kept *k = &l->kept[i];

        *k = (kept){.value = &values[i],
                    .cap = room_for(g, &values[i]),
                    .next = (uintptr_t)oct_map_get(&l->by_name, values[i].name)};
        oct_distance_init(&values[i].distance, l->counts + (size_t)i * n_counts);
        most = OCT_MAX(most, k->cap);
        if (!(k->samples = oct_calloc(g->ctx, (size_t)k->cap, sizeof(float))))
            return OCT_ERR_MEMORY;
        OCT_TRY(oct_map_put(&l->by_name, values[i].name, (void *)(uintptr_t)(i + 1)));
    }
    l->other = oct_calloc(g->ctx, (size_t)most, sizeof(float));
    return l->other ? OCT_OK : OCT_ERR_MEMORY;
}

static void stop_listening(listener *l, oct_ctx *ctx)
{
    for (int32_t i = 0; l->kept && i < l->n; i++) {
        oct_noise *v = l->kept[i].value;

        oct_free(ctx, l->kept[i].samples);
        if (!v) continue;
        v->error = oct_distance_error(&v->distance);
        oct_distance_init(&v->distance, NULL); /* the counts go */
    }
    oct_free(ctx, l->kept);
    oct_free(ctx, l->counts);
    oct_free(ctx, l->other);
    oct_map_fini(&l->by_name);
}

oct_status oct_noise_measure(const oct_graph *exact, const oct_graph *quantized, oct_feed *f,
                             int64_t images, oct_noise *values, int32_t n)
{
    oct_ctx *ctx = exact->ctx;
    listener l = {.n = n};
    oct_plan *plans[2] = {NULL, NULL};
    oct_run *runs[2] = {NULL, NULL};
    oct_status st;

    oct_map_init(&l.by_name, ctx);
    st = listen(&l, exact, values);
    if (!st) st = make_run(exact, &l.by_name, &plans[0], &runs[0]);
    if (!st) st = make_run(quantized, &l.by_name, &plans[1], &runs[1]);
    if (!st) st = compare(&l, exact, f, images, runs[0], runs[1]);
    for (int i = 0; i < 2; i++) {
        oct_run_free(runs[i]);
        oct_plan_free(plans[i]);
    }
    stop_listening(&l, ctx);
    return st;
}
