/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a network over a dataset and keeps what it answers. */
#include "eval/answers.h"

#include <math.h>
#include <string.h>

#include "detect/detector.h"
#include "exec/run.h"

enum {
    MOST_SAMPLES = 16384,       /* of an output and item */
    LEAST_SAMPLES = 256,        /* the same, where there are many items */
    ALL_SAMPLES = 16 * 1048576, /* of all items and outputs together, about */
};

/* --- one worker --- */

/* What a worker has of its own. */
typedef struct worker {
    oct_detector *detector;  /* NULL: noise alone */
    oct_distance *distances; /* of each output of the network compared with */
    float *samples;
} worker;

typedef struct asker {
    const oct_asking *how;
    const oct_dataset *d;
    oct_answers *answers;
    oct_detector *detector;
    oct_mapping map;    /* from the network's input to itself */
    int32_t *output_of; /* by output of the network compared with: this one's, or -1 */
    worker workers[OCT_MAX_WORKERS];
} asker;

/* All memory is taken before threads begin: they have contexts of their own. */
static oct_status make_workers(asker *a, int32_t n)
{
    const oct_answers *exact = a->how->exact;

    for (int32_t i = 0; exact && i < n; i++) {
        worker *w = &a->workers[i];

        w->distances =
            oct_calloc(a->answers->ctx, (size_t)exact->n_outputs + 1, sizeof(*w->distances));
        w->samples = oct_calloc(a->answers->ctx, (size_t)exact->cap + 1, sizeof(float));
        if (!w->distances || !w->samples) return OCT_ERR_MEMORY;
        for (int32_t k = 0; k < exact->n_outputs; k++)
            oct_distance_init(&w->distances[k], NULL);
    }
    return OCT_OK;
}

static void free_workers(asker *a)
{
    for (int32_t i = 0; i < OCT_MAX_WORKERS; i++) {
        worker *w = &a->workers[i];

        for (int32_t k = 0; w->distances && k < a->how->exact->n_outputs; k++)
            oct_distance_merge(&a->how->distances[k], &w->distances[k]);
        oct_free(a->answers->ctx, w->distances);
        oct_free(a->answers->ctx, w->samples);
    }
}

static oct_status begin(void *user, int32_t number, oct_run *r)
{
    asker *a = user;

    return a->detector ? oct_detector_copy(r->ctx, a->detector, &a->workers[number].detector)
                       : OCT_OK;
}

static void end(void *user, int32_t number)
{
    asker *a = user;

    oct_detector_free(a->workers[number].detector);
    a->workers[number].detector = NULL;
}

/* --- outputs --- */

/* Numbers that are spread over the whole output; the step is odd, to meet all channels. */
static int64_t sample(const oct_tensor *t, int64_t cap, float *to)
{
    const int64_t len = oct_type_len(&t->type);
    const int64_t step = OCT_MAX((len + cap - 1) / cap, (int64_t)1) | 1;
    int64_t n = 0;

    for (int64_t i = 0; i < len && n < cap; i += step)
        to[n++] = t->type.dtype == OCT_DTYPE_F32 ? ((const float *)t->data)[i]
                                                 : (float)oct_tensor_get_f64(t, i);
    return n;
}

static oct_status keep_samples(const oct_answers *a, oct_run *r, oct_answer *to)
{
    for (int32_t i = 0; i < a->n_outputs; i++) {
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(r, i, &t));
        to->lengths[i] = t->type.dtype == OCT_DTYPE_STRING ? 0 : oct_type_len(&t->type);
        if (to->lengths[i]) (void)sample(t, a->cap, to->samples + i * a->cap);
    }
    return OCT_OK;
}

/* An output whose length depends on what was found has nothing to compare where it differs. */
static oct_status compare_samples(const asker *a, worker *w, oct_run *r, int64_t index)
{
    const oct_answers *exact = a->how->exact;
    const oct_answer *kept = &exact->items[index];

    for (int32_t i = 0; i < exact->n_outputs; i++) {
        const oct_tensor *t = NULL;

        if (a->output_of[i] < 0 || !kept->lengths[i]) continue;
        OCT_TRY(oct_run_output(r, a->output_of[i], &t));
        if (t->type.dtype == OCT_DTYPE_STRING || oct_type_len(&t->type) != kept->lengths[i])
            continue;
        oct_distance_see(&w->distances[i], kept->samples + i * exact->cap, w->samples,
                         sample(t, exact->cap, w->samples));
    }
    return OCT_OK;
}

/* --- what a family reads from them --- */

int32_t oct_answer_best(const float *scores, int32_t n, int32_t *top)
{
    int32_t n_top = 0;

    for (int32_t i = 0; i < n; i++) {
        int32_t at = n_top;

        if (isnan(scores[i])) continue;
        while (at > 0 && scores[i] > scores[top[at - 1]])
            at--;
        if (at >= OCT_ANSWER_TOP) continue;
        n_top = OCT_MIN(n_top + 1, (int32_t)OCT_ANSWER_TOP);
        memmove(top + at + 1, top + at, (size_t)(n_top - 1 - at) * sizeof(*top));
        top[at] = i;
    }
    return n_top;
}

static oct_status read_outputs(const asker *a, worker *w, oct_run *r, oct_answer *to)
{
    const float *scores = NULL;
    int32_t n;

    if (a->answers->kind == OCT_COMPARED_CLASSES) {
        OCT_TRY(oct_detector_scores(w->detector, r, 0, &scores, &n));
        to->n_top = oct_answer_best(scores, n, to->top);
        return OCT_OK;
    }
    return oct_detector_decode(w->detector, r, 0, &a->map, &a->how->nms, to->found, &to->n_found);
}

static oct_status one(void *user, int32_t number, oct_ctx *ctx, oct_run *r, int64_t index)
{
    asker *a = user;
    worker *w = &a->workers[number];
    oct_answer *to;

    if (index >= a->answers->n)
        return oct_fail(ctx, OCT_ERR_STATE, "the data has more items than before");
    to = &a->answers->items[index];
    if (a->detector) OCT_TRY(read_outputs(a, w, r, to));
    return a->how->exact ? compare_samples(a, w, r, index) : keep_samples(a->answers, r, to);
}

/* --- the network --- */

static oct_status find_family(asker *a, const oct_graph *bound)
{
    const char *family = a->how->family;
    const bool given = family && strcmp(family, "auto") != 0;

    if (family && strcmp(family, "none") == 0) return OCT_OK;
    if (oct_detector_new(bound, family, &a->detector)) {
        a->detector = NULL;
        if (given) return OCT_ERR_ARG;
        return OCT_OK; /* no family reads it: there is noise still */
    }
    OCT_TRY(oct_detector_check(a->detector));
    a->answers->kind =
        oct_detector_is_classifier(a->detector) ? OCT_COMPARED_CLASSES : OCT_COMPARED_BOXES;
    a->answers->n_classes = oct_detector_n_classes(a->detector);
    return OCT_OK;
}

/* The size of the picture's input, so that boxes stay in its pixels. */
static void map_to_itself(asker *a)
{
    oct_preprocess p;

    oct_preprocess_init(&p);
    if (a->how->has_preprocess)
        p = a->how->preprocess;
    else if (a->detector)
        oct_detector_preprocess(a->detector, &p);
    a->map =
        (oct_mapping){.scale_x = 1, .scale_y = 1, .image_width = p.width, .image_height = p.height};
}

static oct_status name_outputs(asker *a, const oct_graph *bound)
{
    const oct_answers *exact = a->how->exact;
    oct_answers *to = a->answers;

    to->n_outputs = bound->n_outputs;
    if (!exact) {
        to->names = oct_calloc(to->ctx, (size_t)to->n_outputs + 1, sizeof(*to->names));
        if (!to->names) return OCT_ERR_MEMORY;
        for (int32_t i = 0; i < to->n_outputs; i++)
            if (!(to->names[i] = oct_strdup(to->ctx, bound->outputs[i]->name)))
                return OCT_ERR_MEMORY;
        to->cap = ALL_SAMPLES / (OCT_MAX(to->n, 1) * OCT_MAX(to->n_outputs, 1));
        to->cap = OCT_MAX(OCT_MIN(to->cap, MOST_SAMPLES), LEAST_SAMPLES);
        return OCT_OK;
    }
    a->output_of = oct_calloc(to->ctx, (size_t)exact->n_outputs + 1, sizeof(*a->output_of));
    if (!a->output_of) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < exact->n_outputs; i++) {
        /* By name; renamed ones by their place. */
        a->output_of[i] = exact->n_outputs == bound->n_outputs ? i : -1;
        for (int32_t k = 0; k < bound->n_outputs; k++)
            if (strcmp(bound->outputs[k]->name, exact->names[i]) == 0) a->output_of[i] = k;
    }
    return OCT_OK;
}

static oct_status make_items(asker *a)
{
    oct_answers *to = a->answers;

    for (int64_t i = 0; i < to->n; i++) {
        oct_answer *item = &to->items[i];

        if (to->kind == OCT_COMPARED_BOXES &&
            !(item->found = oct_calloc(to->ctx, (size_t)a->how->nms.max_detections + 1,
                                       sizeof(*item->found))))
            return OCT_ERR_MEMORY;
        if (!to->cap) continue;
        item->lengths = oct_calloc(to->ctx, (size_t)to->n_outputs + 1, sizeof(*item->lengths));
        item->samples =
            oct_calloc(to->ctx, (size_t)to->n_outputs * (size_t)to->cap + 1, sizeof(float));
        if (!item->lengths || !item->samples) return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status ask(asker *a, oct_feed *f, const oct_graph *bound)
{
    oct_feed_job job = {.what = a->how->what, .begin = begin, .one = one, .end = end, .user = a};
    oct_plan_options o = a->how->plan;
    oct_answers *to = a->answers;
    oct_plan *plan = NULL;
    oct_status st;

    to->n = oct_feed_size(f);
    if (!(to->items = oct_calloc(to->ctx, (size_t)to->n + 1, sizeof(*to->items))))
        return OCT_ERR_MEMORY;
    if (a->how->exact && a->how->exact->n != to->n)
        return oct_fail(to->ctx, OCT_ERR_STATE, "the data has %lld items, and had %lld before",
                        (long long)to->n, (long long)a->how->exact->n);
    if (!oct_dataset_is_tensors(a->d)) OCT_TRY(find_family(a, bound));
    map_to_itself(a);
    OCT_TRY(name_outputs(a, bound));
    OCT_TRY(make_items(a));
    oct_feed_workers(f, to->ctx, &job.n_workers, &o.n_threads);
    OCT_TRY(make_workers(a, job.n_workers));
    OCT_TRY(oct_plan_new(bound, &o, &plan));
    st = oct_feed_each(f, plan, &job);
    oct_plan_free(plan);
    return st;
}

oct_status oct_answers_new(const oct_graph *g, const oct_dataset *d, const oct_asking *how,
                           oct_answers **out)
{
    const oct_feed_options o = {
        .preprocess = how->has_preprocess ? &how->preprocess : NULL,
        .family = how->family && strcmp(how->family, "none") != 0 ? how->family : NULL,
        .limit = how->limit,
    };
    oct_answers *to = oct_calloc(g->ctx, 1, sizeof(*to));
    asker a = {.how = how, .d = d, .answers = to};
    oct_graph *opened = NULL, *bound = NULL;
    oct_feed *f = NULL;
    oct_status st;

    if (!to) return OCT_ERR_MEMORY;
    to->ctx = g->ctx;
    st = oct_graph_float_io(g, &opened);
    if (!st) st = oct_feed_new(opened ? opened : g, d, &o, &bound, &f);
    if (!st) st = ask(&a, f, bound);
    free_workers(&a);
    oct_free(to->ctx, a.output_of);
    oct_detector_free(a.detector);
    oct_feed_free(f);
    oct_graph_free(bound);
    oct_graph_free(opened);
    if (st)
        oct_answers_free(to);
    else
        *out = to;
    return st;
}

void oct_answers_free(oct_answers *a)
{
    if (!a) return;
    for (int64_t i = 0; a->items && i < a->n; i++) {
        oct_free(a->ctx, a->items[i].found);
        oct_free(a->ctx, a->items[i].lengths);
        oct_free(a->ctx, a->items[i].samples);
    }
    for (int32_t i = 0; a->names && i < a->n_outputs; i++)
        oct_free(a->ctx, (void *)a->names[i]);
    oct_free(a->ctx, a->items);
    oct_free(a->ctx, a->names);
    oct_free(a->ctx, a);
}
