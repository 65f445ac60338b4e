/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layerwise: the error at the outputs with one layer quantized at a time.
 *
 * One plan holds the float network and, beside it, the quantized subgraph of each layer, which
 * reads the float network's values: one run of it computes both. Then each layer's quantized result
 * replaces the float one in a second run in which only the steps downstream of it are run again.
 */
#include <stdatomic.h>
#include <string.h>

#include "analyze/analyze_parts.h"

#include "base/machine.h"
#include "exec/rerun.h"
#include "stat/distance.h"

typedef struct stretch {
    int64_t at, len;
} stretch;

typedef struct target {
    int32_t slot;
    int64_t len;
    stretch *parts; /* offsets of its elements in the slot, in memory order */
    int64_t n_parts;
} target;

/* State of one worker; the errors of all are merged at the end. */
typedef struct worker {
    oct_rerun second;
    oct_distance *distances; /* layers x targets */
    oct_distance *exact;     /* of each target: only what the float network has */
    float **numbers;         /* of each target, for the current image: the float network's */
    float *scratch;          /* of one target, in the second run */
} worker;

typedef struct shared {
    const oct_pair *p;
    oct_arena *arena;
    oct_graph *g; /* the float network, and all quantized subgraphs */
    oct_plan *plan;
    oct_change *changes; /* by layer; without slots: cannot be measured */
    oct_aims aims;       /* the targets' slots */
    uint8_t *reaches;    /* layers x targets */
    target *targets;
    int32_t n_targets;
    worker workers[OCT_MAX_WORKERS];
    int32_t n_workers;
    atomic_llong n_done; /* layers x images, for progress */
} shared;

/* --- the plan --- */

/* Subgraphs of all layers: made[i] are their results, for each output of the layer's last node. */
static oct_status add_subgraphs(shared *s, oct_value ***made)
{
    const oct_pair *p = s->p;

    for (int32_t i = 0; i < p->n_layers; i++) {
        const oct_pair_layer *u = &p->layers[i];

        if (!u->is_integer) continue;
        made[i] = oct_arena_array(s->arena, (size_t)u->last->n_out + 1, sizeof(**made));
        if (!made[i]) return OCT_ERR_MEMORY;
        OCT_TRY(oct_pair_copy_subgraph(p, u, s->g, made[i]));
    }
    return OCT_OK;
}

/* By value id: values that the plan must keep. */
static oct_status mark_wanted(shared *s, oct_value *const *const *made, uint8_t **out)
{
    const oct_pair *p = s->p;
    uint8_t *wanted = oct_arena_alloc(s->arena, (size_t)s->g->n_value_ids + 1);

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_layers; i++)
        for (int32_t k = 0; made[i] && k < p->layers[i].last->n_out; k++)
            if (made[i][k]) wanted[made[i][k]->id] = wanted[p->layers[i].last->out[k]->id] = 1;
    for (int32_t i = 0; i < p->n_outputs; i++)
        wanted[p->outputs[i]->id] = 1;
    *out = wanted;
    return OCT_OK;
}

/* Which slot is replaced by which. */
static oct_status find_change(shared *s, int32_t layer, oct_value *const *made)
{
    const oct_node *last = s->p->layers[layer].last;
    oct_change *c = &s->changes[layer];
    int32_t *slots = oct_arena_array(s->arena, 2 * (size_t)last->n_out + 1, sizeof(*slots));
    int32_t *from = slots ? slots + last->n_out : NULL;

    if (!slots) return OCT_ERR_MEMORY;
    *c = (oct_change){.to = slots, .from = from};
    for (int32_t k = 0; k < last->n_out; k++) {
        if (!made[k]) continue;
        slots[c->n] = oct_plan_slot_of(s->plan, last->out[k]->name);
        from[c->n] = oct_plan_slot_of(s->plan, made[k]->name);
        if (slots[c->n] < 0 || from[c->n] < 0) { /* made at run time: it has no slot */
            c->n = 0;
            return OCT_OK;
        }
        c->n++;
    }
    return c->n ? oct_change_find(s->plan, &s->aims, s->arena, c) : OCT_OK;
}

/* Offset of element i of a slot, counted as in ONNX. */
static int64_t place_of(const oct_plan *p, int32_t slot, int64_t i)
{
    const oct_slot *s = &p->slots[slot], *whole = s;
    const int64_t pixels = oct_type_pixels(&s->type), channels = oct_slot_channels(s);

    if (s->layout == OCT_LAYOUT_CLAST)
        return (i / (channels * pixels) * pixels + i % pixels) * oct_slot_pitch(p, slot) +
               i / pixels % channels;
    if (!s->strided) return i;
    while (whole->parent >= 0 && whole->strided)
        whole = &p->slots[whole->parent];
    return i / pixels * oct_type_pixels(&whole->type) + i % pixels;
}

/* Contiguous elements are copied at once; their order does not matter. */
static oct_status find_parts(shared *s, target *t, const uint8_t *is_in, int64_t end)
{
    int64_t n = 0;

    for (int64_t i = 0; i < end; i++)
        n += is_in[i] && (i == 0 || !is_in[i - 1]);
    if (!(t->parts = oct_arena_array(s->arena, (size_t)n + 1, sizeof(*t->parts))))
        return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < end; i++) {
        if (!is_in[i]) continue;
        if (i == 0 || !is_in[i - 1]) t->parts[t->n_parts++].at = i;
        t->parts[t->n_parts - 1].len++;
    }
    return OCT_OK;
}

static oct_status add_target(shared *s, const oct_output_slice *o, int32_t slot)
{
    const int64_t len = oct_type_len(&s->plan->slots[slot].type);
    const int64_t end = len > 0 ? place_of(s->plan, slot, len - 1) + 1 : 0;
    uint8_t *is_in = oct_calloc(s->p->ctx, (size_t)end + 1, 1);
    target *t = &s->targets[s->n_targets++];
    oct_status st;

    if (!is_in) return OCT_ERR_MEMORY;
    *t = (target){.slot = slot, .len = o->n};
    for (int64_t i = 0; i < o->n; i++)
        is_in[place_of(s->plan, slot, o->places ? o->places[i] : i)] = 1;
    st = find_parts(s, t, is_in, end);
    oct_free(s->p->ctx, is_in);
    return st;
}

static oct_status find_targets(shared *s)
{
    const oct_pair *p = s->p;

    s->targets = oct_arena_array(s->arena, (size_t)p->n_slices + 1, sizeof(*s->targets));
    if (!s->targets) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_slices; i++) {
        const int32_t slot = oct_plan_slot_of(s->plan, p->slices[i].value->name);

        if (slot >= 0) OCT_TRY(add_target(s, &p->slices[i], slot));
    }
    if (s->n_targets) return OCT_OK;
    return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED,
                    "no output has a shape that is known before running; layers cannot be "
                    "compared one at a time");
}

static oct_status find_aims(shared *s)
{
    int32_t *slots = oct_arena_array(s->arena, (size_t)s->n_targets + 1, sizeof(*slots));

    if (!slots) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_targets; i++)
        slots[i] = s->targets[i].slot;
    s->aims = (oct_aims){.slots = slots, .n = s->n_targets};
    return oct_aims_find(s->plan, s->arena, &s->aims);
}

static oct_status compile(shared *s, int32_t n_threads, const uint8_t *wanted)
{
    oct_plan_options o;

    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    o.simulate = 1;
    return oct_plan_new_unshared(s->g, &o, wanted, &s->plan);
}

static oct_status prepare(shared *s, int32_t n_threads)
{
    const oct_pair *p = s->p;
    const size_t n = (size_t)p->n_layers + 1;
    oct_value ***made = oct_arena_array(s->arena, n, sizeof(*made));
    uint8_t *wanted = NULL;

    s->changes = oct_arena_array(s->arena, n, sizeof(*s->changes));
    s->reaches = oct_arena_array(s->arena, n, (size_t)p->n_slices + 1);
    if (!made || !s->changes || !s->reaches) return OCT_ERR_MEMORY;
    OCT_TRY(oct_graph_clone(p->exact, &s->g));
    OCT_TRY(add_subgraphs(s, made));
    OCT_TRY(mark_wanted(s, (oct_value *const *const *)made, &wanted));
    OCT_TRY(compile(s, n_threads, wanted));
    OCT_TRY(find_targets(s));
    OCT_TRY(find_aims(s));
    for (int32_t i = 0; i < p->n_layers; i++) {
        if (made[i]) OCT_TRY(find_change(s, i, made[i]));
        for (int32_t t = 0; t < s->n_targets && s->changes[i].n; t++)
            s->reaches[i * s->n_targets + t] =
                oct_change_reaches(s->plan, &s->changes[i], s->targets[t].slot);
    }
    return OCT_OK;
}

/* --- one image --- */

/* The elements of a target, contiguous. */
static void gather(const oct_run *r, const target *t, float *to)
{
    const float *x = oct_run_address(r, t->slot);

    for (int64_t i = 0; i < t->n_parts; i++) {
        memcpy(to, x + t->parts[i].at, (size_t)t->parts[i].len * sizeof(float));
        to += t->parts[i].len;
    }
}

static oct_status try_layer(shared *s, worker *w, int32_t layer, const oct_run *first)
{
    OCT_TRY(oct_rerun_run(&w->second, first, &s->changes[layer]));
    for (int32_t i = 0; i < s->n_targets; i++) {
        const target *t = &s->targets[i];
        const int32_t at = layer * s->n_targets + i;

        if (!s->reaches[at]) continue;
        gather(w->second.run, t, w->scratch);
        oct_distance_see(&w->distances[at], w->numbers[i], w->scratch, t->len);
    }
    return OCT_OK;
}

/* The last layers first: the steps that one of them reruns are rerun by those before it as well,
 * so that little has to be copied. */
static oct_status one(void *user, int32_t number, oct_ctx *ctx, oct_run *first, int64_t index)
{
    shared *s = user;
    worker *w = &s->workers[number];
    const int64_t all = s->p->images * s->p->n_layers;

    (void)index;
    oct_rerun_reset(&w->second);
    for (int32_t i = 0; i < s->n_targets; i++) {
        gather(first, &s->targets[i], w->numbers[i]);
        oct_distance_see(&w->exact[i], w->numbers[i], w->numbers[i], s->targets[i].len);
    }
    for (int32_t i = s->p->n_layers - 1; i >= 0; i--) {
        const long long done = atomic_fetch_add(&s->n_done, 1) + 1;

        if (s->changes[i].n) OCT_TRY(try_layer(s, w, i, first));
        if (number == 0) OCT_TRY(oct_progress(ctx, "one layer at a time", done, all));
    }
    return OCT_OK;
}

/* --- workers and results --- */

static oct_status hire(shared *s, worker *w)
{
    const size_t n = (size_t)s->p->n_layers * (size_t)s->n_targets;
    int64_t most = 1;
    uint64_t *counts;

    w->numbers = oct_arena_array(s->arena, (size_t)s->n_targets + 1, sizeof(*w->numbers));
    for (int32_t i = 0; w->numbers && i < s->n_targets; i++) {
        most = OCT_MAX(most, s->targets[i].len);
        w->numbers[i] = oct_arena_array(s->arena, (size_t)s->targets[i].len + 1, sizeof(float));
        if (!w->numbers[i]) return OCT_ERR_MEMORY;
    }
    counts = oct_arena_array(s->arena, n + (size_t)s->n_targets + 1,
                             OCT_DISTANCE_SLOTS * sizeof(*counts));
    w->distances = oct_arena_array(s->arena, n + 1, sizeof(*w->distances));
    w->exact = oct_arena_array(s->arena, (size_t)s->n_targets + 1, sizeof(*w->exact));
    w->scratch = oct_arena_array(s->arena, (size_t)most, sizeof(float));
    if (!counts || !w->distances || !w->exact || !w->scratch || !w->numbers) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++, counts += OCT_DISTANCE_SLOTS) {
        oct_distance_init(&w->distances[i], NULL);
        w->distances[i].other.count = counts;
    }
    for (int32_t i = 0; i < s->n_targets; i++, counts += OCT_DISTANCE_SLOTS) {
        oct_distance_init(&w->exact[i], NULL);
        w->exact[i].exact.count = counts;
    }
    return oct_rerun_new(s->p->ctx, s->plan, &w->second);
}

static void merge(shared *s)
{
    const size_t n = (size_t)s->p->n_layers * (size_t)s->n_targets;

    for (int32_t w = 1; w < s->n_workers; w++) {
        for (size_t i = 0; i < n; i++)
            oct_distance_merge(&s->workers[0].distances[i], &s->workers[w].distances[i]);
        for (int32_t i = 0; i < s->n_targets; i++)
            oct_distance_merge(&s->workers[0].exact[i], &s->workers[w].exact[i]);
    }
}

/* The worst output counts. */
static oct_error error_of(shared *s, int32_t layer)
{
    oct_error worst = {.cosine = 1};

    for (int32_t i = 0; i < s->n_targets; i++) {
        oct_distance *d = &s->workers[0].distances[layer * s->n_targets + i];
        oct_error e;

        if (!s->reaches[layer * s->n_targets + i]) continue;
        d->exact = s->workers[0].exact[i].exact;
        e = oct_distance_error(d);
        if (e.noise > worst.noise) worst = e;
    }
    return worst;
}

static oct_status run_all(shared *s, oct_analysis *a)
{
    const oct_feed_job job = {.one = one, .user = s};
    oct_feed_job with_workers = job;
    int32_t n_threads;

    OCT_TRY(oct_feed_rewind(s->p->feed, s->p->images));
    oct_feed_workers(s->p->feed, s->p->ctx, &s->n_workers, &n_threads);
    OCT_TRY(prepare(s, n_threads));
    for (int32_t i = 0; i < s->n_workers; i++)
        OCT_TRY(hire(s, &s->workers[i]));
    with_workers.n_workers = s->n_workers;
    OCT_TRY(oct_feed_each(s->p->feed, s->plan, &with_workers));
    merge(s);
    for (int32_t i = 0; i < s->p->n_layers; i++)
        if (s->changes[i].n) a->layers[i].alone = error_of(s, i);
    return OCT_OK;
}

oct_status oct_analyze_layerwise(oct_analysis *a, const oct_pair *p)
{
    const int64_t start = oct_time_ns();
    shared s = {.p = p};
    oct_status st;

    st = (s.arena = oct_arena_new(p->ctx)) ? run_all(&s, a) : OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s.n_workers; i++)
        oct_rerun_free(&s.workers[i].second);
    oct_plan_free(s.plan);
    oct_graph_free(s.g);
    oct_arena_free(s.arena);
    a->layerwise_seconds = (double)(oct_time_ns() - start) * 1e-9;
    return st;
}
