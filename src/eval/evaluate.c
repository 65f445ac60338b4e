/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating a network: prepares it for the dataset, runs the workers, collects the figures. */
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "detect/detector.h"
#include "eval/workers.h"
#include "graph/graph.h"

void oct_eval_options_init_sized(oct_eval_options *o, size_t struct_size)
{
    const oct_eval_options all = {.struct_size = struct_size, .batch = 1};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* What an evaluation owns. */
typedef struct evaluation {
    oct_eval_options o;
    oct_eval_job job;
    oct_graph *opened, *bound; /* with float inputs and outputs; with shapes */
    oct_detector *detector;
    oct_plan *plan;
    oct_preprocess preprocess;
    oct_dtype dtype;
    int32_t *to_category;
    oct_results results;
} evaluation;

static oct_status check(oct_ctx *ctx, const oct_dataset *d, const oct_eval_options *o)
{
    if (o->batch < 1) return oct_fail(ctx, OCT_ERR_ARG, "batch %d is not possible", (int)o->batch);
    if (oct_dataset_is_tensors(d))
        return oct_fail(ctx, OCT_ERR_ARG, "a dataset of tensors has no labels to score against");
    if (oct_dataset_size(d) < 1) return oct_fail(ctx, OCT_ERR_ARG, "the dataset has no pictures");
    return OCT_OK;
}

/* --- the network --- */

/* The network with the batch's shape, and its detector. */
static oct_status prepare_network(evaluation *e, const oct_graph *g)
{
    oct_detector *first = NULL;
    const oct_value *input = NULL;
    size_t size = 0;

    oct_preprocess_init(&e->preprocess);
    if (e->o.preprocess) {
        memcpy(&e->preprocess, e->o.preprocess,
               OCT_MIN(e->o.preprocess->struct_size, sizeof(e->preprocess)));
    } else {
        OCT_TRY(oct_detector_new(g, e->o.family, &first));
        oct_detector_preprocess(first, &e->preprocess);
        oct_detector_free(first);
    }
    OCT_TRY(oct_detector_bind(g, e->o.batch, e->preprocess.width, e->preprocess.height, &e->bound));
    OCT_TRY(oct_detector_new(e->bound, e->o.family, &e->detector));
    if (e->o.names) OCT_TRY(oct_detector_set_names(e->detector, e->o.names));
    OCT_TRY(oct_detector_check(e->detector));
    OCT_TRY(oct_detector_input(e->bound, &input));
    if (!oct_type_bytes(&input->type, &size))
        return oct_fail(e->job.ctx, OCT_ERR_SHAPE, "input '%s' is too large", input->name);
    e->job.input = input->name;
    e->job.item_size = size / (size_t)e->o.batch;
    e->dtype = input->type.dtype;
    return OCT_OK;
}

static oct_status prepare_plan(evaluation *e, const oct_dataset *d)
{
    const int64_t n_parts = (oct_dataset_size(d) + e->o.batch - 1) / e->o.batch;
    oct_plan_options o;
    int32_t n_threads;

    oct_plan_options_init(&o);
    if (e->o.plan) memcpy(&o, e->o.plan, OCT_MIN(e->o.plan->struct_size, sizeof(o)));
    n_threads = o.n_threads > 0 ? o.n_threads : oct_ctx_threads(e->job.ctx);
    e->job.n_workers = oct_job_workers(n_threads, n_parts);
    o.struct_size = sizeof(o);
    o.n_threads = n_threads / e->job.n_workers;
    return oct_plan_new(e->bound, &o, &e->plan);
}

/* --- classes --- */

/* The network's class to the dataset's category: given, or found. */
static oct_status map_boxes(evaluation *e, const oct_dataset *d)
{
    const int32_t n_have = oct_dataset_n_categories(d), *map = e->o.category_map;
    int32_t n = oct_detector_n_classes(e->detector) ? oct_detector_n_classes(e->detector) : n_have;
    oct_class_map *found = NULL;

    if (!map) OCT_TRY(oct_class_map_new(e->detector, d, &found));
    if (found) n = oct_class_map_size(found);
    if (!(e->to_category = oct_calloc(e->job.ctx, (size_t)n + 1, sizeof(*e->to_category)))) {
        oct_class_map_free(found);
        return OCT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n; i++)
        e->to_category[i] = map ? map[i] : oct_class_map_category(found, i);
    oct_class_map_free(found);
    for (int32_t i = 0; i < n; i++)
        if (e->to_category[i] >= n_have)
            return oct_fail(e->job.ctx, OCT_ERR_ARG, "class %d has no category %d to go to", (int)i,
                            (int)e->to_category[i]);
    e->job.to_category = e->to_category;
    e->job.n_to_category = n;
    return OCT_OK;
}

/* The dataset's class to the network's: 1001 classes count from the background. */
static oct_status map_classes(evaluation *e, const oct_dataset *d)
{
    const int32_t n_says = oct_detector_n_classes(e->detector);
    int32_t most = -1;

    for (int64_t i = 0; i < oct_dataset_size(d); i++) {
        const int32_t k = oct_dataset_class(d, i);

        if (k < 0)
            return oct_fail(e->job.ctx, OCT_ERR_ARG,
                            "%s: no class is known of it; a classifier is scored on a list "
                            "'name class' or on folders named after classes",
                            oct_dataset_path(d, i));
        most = OCT_MAX(most, k);
    }
    if (most >= n_says)
        return oct_fail(e->job.ctx, OCT_ERR_ARG, "the dataset has a class %d, the network only %d",
                        (int)most, (int)n_says);
    if (n_says != 1001 || most >= 1000) return OCT_OK; /* the same numbers */
    if (!(e->to_category = oct_calloc(e->job.ctx, 1000, sizeof(*e->to_category))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < 1000; i++)
        e->to_category[i] = i + 1;
    e->job.to_category = e->to_category;
    e->job.n_to_category = 1000;
    return OCT_OK;
}

static oct_status prepare_scores(evaluation *e, const oct_dataset *d)
{
    oct_ctx *ctx = e->job.ctx;

    if (oct_detector_is_classifier(e->detector)) {
        if (e->o.results)
            return oct_fail(ctx, OCT_ERR_ARG, "a classifier has no detections to write to %s",
                            e->o.results);
        return map_classes(e, d);
    }
    OCT_TRY(map_boxes(e, d));
    OCT_TRY(oct_box_eval_new(ctx, d, &e->job.boxes));
    if (!e->o.results) return OCT_OK;
    OCT_TRY(oct_results_open(ctx, e->o.results, &e->results));
    e->job.results = &e->results;
    return OCT_OK;
}

/* --- the whole --- */

static oct_status run(evaluation *e, const oct_dataset *d)
{
    oct_eval_job *j = &e->job;
    const int32_t n_loaders = OCT_MAX(e->o.loader_threads, 1);
    oct_loader_options o;
    oct_status st;

    /* Pictures to prefetch: what the workers may need at once, and one more for each loading
     * thread. */
    oct_loader_options_init(&o);
    o.preprocess = &e->preprocess;
    o.dtype = (int32_t)e->dtype;
    o.n_threads = n_loaders;
    o.depth = j->n_workers * e->o.batch + n_loaders;
    OCT_TRY(oct_loader_new(j->ctx, d, &o, &j->loader));
    st = oct_eval_work(j);
    oct_loader_free(j->loader);
    j->loader = NULL;
    if (!st && j->results) st = oct_results_commit(j->results);
    return st;
}

static oct_status gather(evaluation *e, int64_t start_ns, oct_eval_result *out)
{
    const oct_eval_job *j = &e->job;
    oct_eval_result r = {.struct_size = out->struct_size,
                         .images = j->n_done,
                         .skipped = oct_dataset_size(j->d) - j->n_done,
                         .top1 = -1,
                         .top5 = -1};
    const int64_t score_start = oct_time_ns();

    if (j->boxes)
        OCT_TRY(oct_box_eval_finish(j->boxes, 0, &r.box));
    else
        oct_topk_finish(&j->topk, &r.top1, &r.top5);
    r.score_seconds = (double)(j->times.score + oct_time_ns() - score_start) * 1e-9;
    r.seconds = (double)(oct_time_ns() - start_ns) * 1e-9;
    r.network_seconds = (double)j->times.network * 1e-9;
    r.decode_seconds = (double)j->times.decode * 1e-9;
    r.preprocess_seconds = (double)j->times.preprocess * 1e-9;
    r.post_seconds = (double)j->times.post * 1e-9;
    memcpy(out, &r, OCT_MIN(out->struct_size, sizeof(r)));
    return OCT_OK;
}

oct_status oct_eval_run(const oct_graph *g, const oct_dataset *d, const oct_eval_options *options,
                        oct_eval_result *result, oct_box_eval **eval)
{
    OCT_ENTER(g->ctx);
    evaluation e = {.job = {.ctx = g->ctx, .d = d}};
    int64_t start_ns;
    oct_status st;

    oct_eval_options_init(&e.o);
    if (options) memcpy(&e.o, options, OCT_MIN(options->struct_size, sizeof(e.o)));
    if ((st = check(g->ctx, d, &e.o))) goto done;
    if ((st = oct_graph_float_io(g, &e.opened))) goto done;
    if ((st = prepare_network(&e, e.opened ? e.opened : g))) goto done;
    if ((st = prepare_plan(&e, d))) goto done;
    if ((st = prepare_scores(&e, d))) goto done;
    e.job.plan = e.plan;
    e.job.detector = e.detector;
    oct_nms_options_init(&e.job.nms);
    if (e.o.nms) memcpy(&e.job.nms, e.o.nms, OCT_MIN(e.o.nms->struct_size, sizeof(e.job.nms)));
    e.job.batch = e.o.batch;
    start_ns = oct_time_ns(); /* of the pictures, without compiling */
    if ((st = run(&e, d))) goto done;
    if ((st = gather(&e, start_ns, result))) goto done;
    if (eval) {
        *eval = e.job.boxes;
        e.job.boxes = NULL;
    }
done:
    oct_results_abort(&e.results);
    oct_box_eval_free(e.job.boxes);
    oct_free(g->ctx, e.to_category);
    oct_plan_free(e.plan);
    oct_detector_free(e.detector);
    oct_graph_free(e.bound);
    oct_graph_free(e.opened);
    return st;
}
