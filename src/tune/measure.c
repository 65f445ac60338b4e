/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes with the settings of a trial, and scores what comes of it. */
#include <string.h>

#include "tune/space.h"
#include "tune/tune.h"

enum { FEW_TO_CALIBRATE = 32 }; /* with fewer, a single unusual picture decides the ranges */

/* --- recipes --- */

oct_status oct_tune_recipe(oct_tune_bench *b, const char *settings, oct_recipe **out)
{
    oct_recipe *r = NULL;
    const char *text;
    oct_status st;

    OCT_TRY(oct_recipe_text(b->base, &text));
    OCT_TRY(oct_recipe_new(b->ctx, &r));
    st = oct_recipe_load_memory(r, "the recipe", text, strlen(text));
    if (!st) st = oct_space_apply(b->ctx, settings, r);
    if (st) {
        oct_recipe_free(r);
        return st;
    }
    *out = r;
    return OCT_OK;
}

/* --- pictures --- */

static int32_t as_i32(int64_t n)
{
    return (int32_t)OCT_MIN(n, (int64_t)INT32_MAX);
}

/* The last round has what the recipe says, so that the recipe repeats it. */
oct_status oct_tune_calibration(oct_tune_bench *b, int32_t round, oct_dataset **out)
{
    oct_dataset_options d;

    if (!b->calibrate[round]) {
        oct_dataset_options_init(&d);
        oct_recipe_get_data(b->base, &d);
        if (round < OCT_TUNE_ROUNDS - 1)
            d.subset_size =
                as_i32(OCT_MIN(b->n_calibrate, OCT_MAX(oct_halving_images(b->n_calibrate, round),
                                                       (int64_t)FEW_TO_CALIBRATE)));
        OCT_TRY(oct_dataset_open(b->ctx, &d, &b->calibrate[round]));
    }
    *out = b->calibrate[round];
    return OCT_OK;
}

static void score_options(const oct_tune_bench *b, oct_dataset_options *d)
{
    oct_dataset_options_init(d);
    if (b->has_labels)
        oct_recipe_get_eval_data(b->base, d);
    else
        oct_recipe_get_data(b->base, d);
}

static oct_status open_score(oct_tune_bench *b, int32_t round, int64_t images, oct_dataset **out)
{
    oct_dataset_options d;

    if (!b->score[round]) {
        score_options(b, &d);
        d.subset_size = as_i32(images);
        OCT_TRY(oct_dataset_open(b->ctx, &d, &b->score[round]));
    }
    *out = b->score[round];
    return OCT_OK;
}

/* How many pictures there are to score on. */
static oct_status count_score(oct_tune_bench *b, int64_t *n)
{
    oct_dataset_options o;
    oct_dataset *d = NULL;

    score_options(b, &o);
    OCT_TRY(oct_dataset_open(b->ctx, &o, &d));
    *n = oct_dataset_size(d);
    oct_dataset_close(d);
    return OCT_OK;
}

oct_status oct_tune_bench_init(oct_tune_bench *b, const oct_graph *g, oct_recipe *base,
                               const oct_tune_options *o)
{
    oct_recipe_job job = {.struct_size = sizeof(job)};
    oct_dataset_options d;
    oct_dataset *images;

    oct_recipe_get_job(base, &job);
    oct_dataset_options_init(&d);
    oct_recipe_get_data(base, &d);
    b->g = g;
    b->base = base;
    b->o = o;
    b->has_labels = job.eval != 0;
    if (!d.images)
        return oct_fail(b->ctx, OCT_ERR_ARG, "the recipe names no pictures to calibrate on");
    OCT_TRY(oct_tune_calibration(b, OCT_TUNE_ROUNDS - 1, &images));
    b->n_calibrate = oct_dataset_size(images);
    OCT_TRY(count_score(b, &b->n_score));
    if (o->images > 0) b->n_score = OCT_MIN(b->n_score, o->images);
    if (b->n_score < 1 || b->n_calibrate < 1)
        return oct_fail(b->ctx, OCT_ERR_ARG, "there are no pictures to tune on");
    return OCT_OK;
}

void oct_tune_bench_fini(oct_tune_bench *b)
{
    for (int i = 0; i < OCT_TUNE_ROUNDS; i++) {
        oct_comparison_free(b->comparison[i]);
        oct_dataset_close(b->calibrate[i]);
        oct_dataset_close(b->score[i]);
    }
    oct_run_free(b->run);
    oct_plan_free(b->plan);
}

/* --- networks --- */

oct_status oct_tune_quantize(oct_tune_bench *b, const char *settings, int32_t round,
                             oct_quantized **out)
{
    oct_quantize_options o;
    oct_recipe *r = NULL;
    oct_dataset *images;
    oct_status st;

    OCT_TRY(oct_tune_calibration(b, round, &images));
    OCT_TRY(oct_tune_recipe(b, settings, &r));
    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(r, &o);
    o.preprocess = b->o->preprocess;
    st = oct_quantize(b->g, images, &o, out);
    oct_recipe_free(r);
    return st;
}

/* --- scores --- */

static const char *family_of(const oct_tune_bench *b)
{
    oct_quantize_options q;

    oct_quantize_options_init(&q);
    oct_recipe_get_quantize(b->base, &q);
    return q.family;
}

static oct_status score_by_labels(oct_tune_bench *b, const oct_graph *g, const oct_dataset *d,
                                  oct_trial *t)
{
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_box_eval *boxes = NULL;
    oct_eval_options o;

    oct_eval_options_init(&o);
    o.family = family_of(b);
    o.preprocess = b->o->preprocess;
    o.names = b->o->names;
    o.loader_threads = oct_ctx_threads(b->ctx);
    OCT_TRY(oct_eval_run(g, d, &o, &r, &boxes));
    t->measure = boxes ? "AP" : "top-1";
    t->score = boxes ? OCT_MAX(r.box.ap, 0) : r.top1;
    oct_box_eval_free(boxes);
    return OCT_OK;
}

/* Where the float network is sure of nothing, only the numbers themselves are left. */
static void take_comparison(const oct_compare_result *r, oct_trial *t)
{
    if (r->kind == OCT_COMPARED_BOXES && r->sure > 0) {
        t->measure = "AP of float's boxes";
        t->score = OCT_MAX(r->ap, 0);
    } else if (r->kind == OCT_COMPARED_CLASSES) {
        t->measure = r->top5 < 0 ? "same top 1" : "same top 1 and 5";
        t->score = r->top5 < 0 ? r->top1 : (r->top1 + r->top5) / 2;
    } else {
        t->measure = "1 - noise";
        t->score = OCT_MAX(0, 1 - r->noise);
    }
}

/* How much of what the float network says does this one say, too? */
static oct_status score_by_float(oct_tune_bench *b, const oct_graph *g, const oct_dataset *d,
                                 oct_trial *t)
{
    oct_compare_result r = {.struct_size = sizeof(r)};
    oct_comparison **c = &b->comparison[t->round];
    oct_compare_options o;

    if (!*c) {
        oct_compare_options_init(&o);
        o.family = family_of(b);
        o.preprocess = b->o->preprocess;
        OCT_TRY(oct_comparison_new(b->g, d, &o, c));
    }
    OCT_TRY(oct_comparison_run(*c, g, &r));
    take_comparison(&r, t);
    return OCT_OK;
}

oct_status oct_tune_score(oct_tune_bench *b, const oct_graph *g, oct_trial *t)
{
    oct_dataset *d;

    OCT_TRY(open_score(b, t->round, t->images, &d));
    return b->has_labels ? score_by_labels(b, g, d, t) : score_by_float(b, g, d, t);
}
