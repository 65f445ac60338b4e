/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the float network's values at each point where the quantized one has codes. One
 * pass, each worker with its own accumulators, which are merged at the end.
 */
#include "analyze/analyze_parts.h"
#include "analyze/value_stats.h"
#include "exec/plan.h"
#include "exec/run.h"

/* A point to observe; one value may have several. */
typedef struct watch {
    const oct_pair_point *point;
    int64_t n_channels;
    oct_grid grid;
    int32_t next; /* another point of the same value, or -1 */
} watch;

typedef struct survey {
    const oct_pair *p;
    watch *watches;
    int32_t *first;  /* by value id of the exact network: index of its first point, or -1 */
    oct_map by_name; /* the plan has its own values: first point + 1 */
    oct_value_stats *stats[OCT_MAX_WORKERS];
    oct_scan *scratch[OCT_MAX_WORKERS];
    int32_t n_workers;
    oct_arena *arena;
} survey;

typedef struct hook_state {
    survey *s;
    int32_t worker;
} hook_state;

/* --- hooks --- */

static void see(survey *s, int32_t worker, int32_t at, const oct_seen *seen)
{
    for (; at >= 0; at = s->watches[at].next) {
        const watch *k = &s->watches[at];
        const int64_t batch = seen->type->rank >= 2 ? seen->type->dim[0] : 1;
        const int64_t pixels =
            oct_type_len(seen->type) / OCT_MAX(batch * k->n_channels, (int64_t)1);
        const bool last = seen->layout == OCT_LAYOUT_CLAST;
        oct_value_view view = {.data = seen->data,
                               .pixels = pixels,
                               .channels = k->n_channels,
                               .pitch = last ? seen->pitch : k->n_channels,
                               .planar = !last && pixels > 1};

        for (int64_t i = 0; i < batch; i++) {
            oct_value_stats_see(&s->stats[worker][at], &view, s->scratch[worker]);
            view.data += pixels * view.pitch;
        }
    }
}

static oct_status on_value(void *user, const oct_seen *seen)
{
    const hook_state *k = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&k->s->by_name, seen->value->name);

    if (at && seen->type->dtype == OCT_DTYPE_F32) see(k->s, k->worker, (int32_t)at - 1, seen);
    return OCT_OK;
}

typedef struct job {
    survey *s;
    hook_state hooks[OCT_MAX_WORKERS];
} job;

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    job *j = user;

    j->hooks[worker] = (hook_state){j->s, worker};
    oct_run_set_seen_hook(r, on_value, &j->hooks[worker]);
    return OCT_OK;
}

static oct_status after(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    const survey *s = ((const job *)user)->s;

    OCT_TRY(oct_run_show_inputs(r));
    for (int32_t i = 0; i < s->p->n_points; i++)
        if (s->stats[worker][i].has_bad)
            return oct_fail(ctx, OCT_ERR_FORMAT,
                            "value '%s' is not finite for '%s'; is the network sound, and the "
                            "preprocessing right?",
                            s->watches[i].point->value->name, oct_feed_name(s->p->feed, index));
    return OCT_OK;
}

/* --- making --- */

static oct_status make_watches(survey *s)
{
    const oct_pair *p = s->p;

    s->watches = oct_arena_array(s->arena, (size_t)p->n_points + 1, sizeof(*s->watches));
    s->first = oct_arena_array(s->arena, (size_t)p->exact->n_value_ids + 1, sizeof(int32_t));
    if (!s->watches || !s->first) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->exact->n_value_ids; i++)
        s->first[i] = -1;
    for (int32_t i = 0; i < p->n_points; i++) {
        const oct_value *v = p->points[i].value;
        watch *k = &s->watches[i];

        *k = (watch){.point = &p->points[i],
                     .n_channels = v->type.rank >= 2 ? v->type.dim[1] : 1,
                     .next = s->first[v->id]};
        s->first[v->id] = i;
        OCT_TRY(oct_grid_make(s->arena, &k->point->codes, &k->grid));
        OCT_TRY(oct_map_put(&s->by_name, v->name, (void *)(uintptr_t)(i + 1)));
    }
    return OCT_OK;
}

static oct_status make_stats(survey *s)
{
    int64_t most = 1;

    for (int32_t i = 0; i < s->p->n_points; i++)
        most = OCT_MAX(most, s->watches[i].n_channels);
    for (int32_t w = 0; w < s->n_workers; w++) {
        s->stats[w] =
            oct_arena_array(s->arena, (size_t)s->p->n_points + 1, sizeof(oct_value_stats));
        s->scratch[w] = oct_arena_array(s->arena, (size_t)most, sizeof(oct_scan));
        if (!s->stats[w] || !s->scratch[w]) return OCT_ERR_MEMORY;
        for (int32_t i = 0; i < s->p->n_points; i++)
            OCT_TRY(oct_value_stats_init(s->arena, &s->watches[i].grid, s->watches[i].n_channels,
                                         &s->stats[w][i]));
    }
    return OCT_OK;
}

/* --- the pass --- */

static oct_status run_pass(survey *s, int32_t n_threads)
{
    const oct_graph *g = s->p->exact;
    uint8_t *wanted = oct_arena_alloc(s->arena, (size_t)g->n_value_ids + 1);
    job j = {.s = s};
    const oct_feed_job work = {.what = "measuring ranges",
                               .n_workers = s->n_workers,
                               .begin = begin,
                               .one = after,
                               .user = &j};
    oct_plan *plan = NULL;
    oct_plan_options o;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->p->n_points; i++)
        wanted[s->watches[i].point->value->id] = 1;
    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    OCT_TRY(oct_plan_new_watching(g, &o, wanted, &plan));
    st = oct_feed_rewind(s->p->feed, s->p->images);
    if (!st) st = oct_feed_each(s->p->feed, plan, &work);
    oct_plan_free(plan);
    return st;
}

static oct_status fill_point(const survey *s, int32_t i, oct_arena *a, oct_analyzed_point *p)
{
    const oct_pair_point *point = &s->p->points[i];
    const oct_value *v = point->value;

    *p =
        (oct_analyzed_point){.struct_size = sizeof(*p), .type = oct_dtype_name(point->codes.dtype)};
    p->value = oct_arena_strdup(a, v->name);
    p->layer = v->producer ? oct_arena_strdup(a, v->producer->name) : "";
    if (!p->value || !p->layer) return OCT_ERR_MEMORY;
    return oct_value_stats_of_point(&s->stats[0][i], s->arena, a, p);
}

static oct_status survey_all(survey *s, oct_analysis *a)
{
    int32_t n_threads;

    a->points = oct_arena_array(a->arena, (size_t)s->p->n_points + 1, sizeof(*a->points));
    if (!a->points) return OCT_ERR_MEMORY;
    oct_feed_workers(s->p->feed, s->p->ctx, &s->n_workers, &n_threads);
    OCT_TRY(make_watches(s));
    OCT_TRY(make_stats(s));
    OCT_TRY(run_pass(s, n_threads));
    for (int32_t i = 0; i < s->p->n_points; i++) {
        for (int32_t w = 1; w < s->n_workers; w++)
            oct_value_stats_merge(&s->stats[0][i], &s->stats[w][i]);
        OCT_TRY(fill_point(s, i, a->arena, &a->points[i]));
        a->n_points++;
    }
    return OCT_OK;
}

oct_status oct_analyze_statistics(oct_analysis *a, const oct_pair *p)
{
    survey s = {.p = p};
    oct_status st;

    if (p->n_points == 0) return OCT_OK;
    oct_map_init(&s.by_name, p->ctx);
    st = (s.arena = oct_arena_new(p->ctx)) ? survey_all(&s, a) : OCT_ERR_MEMORY;
    oct_map_fini(&s.by_name);
    oct_arena_free(s.arena);
    return st;
}
