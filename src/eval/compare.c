/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a network repeats another one, without labels: the other's own detections are the truth.
 *
 * AP is taken with all boxes in one list. The mean over classes would hang on those that have one
 * or two boxes. Boxes of different classes are moved apart, so that they cannot match.
 */
#include <string.h>

#include "base/sized.h"
#include "data/dataset.h"
#include "eval/answers.h"
#include "eval/box_eval.h"

#define USUAL_SURE 0.3
#define USUAL_IOU  0.5
#define APART      1048576.0 /* pixels between the boxes of two classes: more than any input has */

struct oct_comparison {
    oct_ctx *ctx;
    const oct_dataset *d;
    oct_asking how; /* of others */
    char *family;
    double sure, iou;
    oct_answers *exact;
    oct_distance *distances; /* of the last run; one for each output */
};

void oct_compare_options_init_sized(oct_compare_options *o, size_t struct_size)
{
    const oct_compare_options all = {
        .struct_size = struct_size, .sure = USUAL_SURE, .iou = USUAL_IOU};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- boxes --- */

/* How many have a higher score; they are the first ones. */
static int32_t count_above(const oct_answer *a, double score)
{
    int32_t n = 0;

    while (n < a->n_found && (double)a->found[n].score > score)
        n++;
    return n;
}

/* How many of the first n_a boxes of `a` are in `b` too. */
static oct_status count_repeated(oct_ctx *ctx, const oct_answer *a, int32_t n_a,
                                 const oct_answer *b, int32_t n_b, double iou, int64_t *n)
{
    int32_t *partner = oct_calloc(ctx, (size_t)n_a + 1, sizeof(*partner));

    if (!partner) return OCT_ERR_MEMORY;
    oct_detections_match(a->found, n_a, b->found, n_b, (float)iou, partner);
    for (int32_t i = 0; i < n_a; i++)
        *n += partner[i] >= 0;
    oct_free(ctx, partner);
    return OCT_OK;
}

/* A score that falls a little below the limit is no loss: half of it is enough to be found. */
static oct_status compare_found(const oct_answers *exact, const oct_answers *other, double sure,
                                double iou, oct_compare_result *r)
{
    int64_t n_repeated = 0, n_other = 0, n_known = 0;

    r->sure = 0;
    for (int64_t i = 0; i < exact->n; i++) {
        const oct_answer *a = &exact->items[i], *b = &other->items[i];
        const int32_t n_a = count_above(a, sure), n_b = count_above(b, sure);

        OCT_TRY(count_repeated(exact->ctx, a, n_a, b, count_above(b, sure / 2), iou, &n_repeated));
        OCT_TRY(count_repeated(exact->ctx, b, n_b, a, count_above(a, sure / 2), iou, &n_known));
        r->sure += n_a;
        n_other += n_b;
    }
    if (r->sure) r->repeat = (double)n_repeated / (double)r->sure;
    if (n_other) r->added = 1 - (double)n_known / (double)n_other;
    return OCT_OK;
}

/* The sure boxes of the float network's answer i, as labels of a dataset's next item. */
static oct_status add_truth(oct_dataset *d, const oct_answer *a, double sure, oct_labels *labels)
{
    const int32_t n = count_above(a, sure);

    OCT_TRY(oct_dataset_add(d, ""));
    for (int32_t k = 0; k < n; k++) {
        const oct_detection *f = &a->found[k];
        const oct_label l = {.x = (double)f->x + f->category * APART,
                             .y = (double)f->y,
                             .width = (double)f->width,
                             .height = (double)f->height,
                             .area = (double)f->width * (double)f->height};

        OCT_TRY(oct_labels_add(d->ctx, labels, &l));
    }
    return oct_labels_give(d, labels, &d->items[d->n_items - 1]);
}

static oct_status make_truth(const oct_answers *exact, double sure, oct_dataset *d)
{
    oct_labels labels = {0};
    oct_status st = oct_dataset_add_category(d, "any", 0);

    d->is_boxes = true;
    for (int64_t i = 0; !st && i < exact->n; i++)
        st = add_truth(d, &exact->items[i], sure, &labels);
    oct_free(d->ctx, labels.items);
    return st;
}

static oct_status see_found(oct_box_eval *e, int64_t i, const oct_answer *b)
{
    oct_box_found *found = oct_calloc(e->ctx, (size_t)b->n_found + 1, sizeof(*found));
    oct_status st;

    if (!found) return OCT_ERR_MEMORY;
    for (int32_t k = 0; k < b->n_found; k++) {
        const oct_detection *f = &b->found[k];

        found[k] = (oct_box_found){.x = (double)f->x + f->category * APART,
                                   .y = (double)f->y,
                                   .width = (double)f->width,
                                   .height = (double)f->height,
                                   .score = (double)f->score};
    }
    st = oct_box_match(e, i, found, (size_t)b->n_found);
    oct_free(e->ctx, found);
    return st;
}

static oct_status score_found(const oct_answers *exact, const oct_answers *other, double sure,
                              oct_compare_result *r)
{
    oct_dataset *truth = NULL;
    oct_box_eval *e = NULL;
    oct_box_metrics m;
    oct_status st;

    OCT_TRY(oct_dataset_new(exact->ctx, &truth));
    st = make_truth(exact, sure, truth);
    if (!st) st = oct_box_eval_new(exact->ctx, truth, &e);
    for (int64_t i = 0; !st && i < exact->n; i++)
        st = see_found(e, i, &other->items[i]);
    if (!st) st = oct_box_eval_finish(e, 0, &m);
    if (!st) r->ap = m.ap;
    if (!st) r->ap50 = m.ap50;
    oct_box_eval_free(e);
    oct_dataset_close(truth);
    return st;
}

/* --- classes --- */

static void compare_classes(const oct_answers *exact, const oct_answers *other,
                            oct_compare_result *r)
{
    int64_t n_same = 0, n_shared = 0, n_top = 0;

    for (int64_t i = 0; i < exact->n; i++) {
        const oct_answer *a = &exact->items[i], *b = &other->items[i];

        n_same += a->n_top && b->n_top && a->top[0] == b->top[0];
        n_top += a->n_top;
        for (int32_t k = 0; k < a->n_top; k++)
            for (int32_t l = 0; l < b->n_top; l++)
                n_shared += a->top[k] == b->top[l];
    }
    if (exact->n) r->top1 = r->repeat = (double)n_same / (double)exact->n;
    if (n_top && exact->n_classes > OCT_ANSWER_TOP) r->top5 = (double)n_shared / (double)n_top;
}

oct_status oct_answers_compare(const oct_answers *exact, const oct_answers *other, double sure,
                               double iou, oct_compare_result *r)
{
    r->images = exact->n;
    r->kind = (int32_t)exact->kind;
    r->sure = -1;
    r->ap = r->ap50 = r->repeat = r->added = r->top1 = r->top5 = -1;
    if (exact->kind != other->kind)
        return oct_fail(exact->ctx, OCT_ERR_ARG,
                        "the networks cannot be compared: their outputs are not of the same kind");
    if (exact->kind == OCT_COMPARED_CLASSES) compare_classes(exact, other, r);
    if (exact->kind != OCT_COMPARED_BOXES) return OCT_OK;
    OCT_TRY(compare_found(exact, other, sure, iou, r));
    return score_found(exact, other, sure, r);
}

/* --- the whole --- */

static oct_status check(oct_ctx *ctx, const oct_compare_options *o)
{
    if (!(o->sure >= 0 && o->sure < 1))
        return oct_fail(ctx, OCT_ERR_ARG, "a score of %g is not possible: from 0 to 1", o->sure);
    if (!(o->iou > 0 && o->iou <= 1))
        return oct_fail(ctx, OCT_ERR_ARG, "an overlap of %g is not possible: from 0 to 1", o->iou);
    if (o->limit < 0) return oct_fail(ctx, OCT_ERR_ARG, "a negative number of items");
    return OCT_OK;
}

static oct_status read_options(oct_comparison *c, const oct_compare_options *o)
{
    oct_asking *how = &c->how;

    c->sure = o->sure;
    c->iou = o->iou;
    how->limit = o->limit;
    oct_plan_options_init(&how->plan);
    if (o->plan) memcpy(&how->plan, o->plan, OCT_MIN(o->plan->struct_size, sizeof(how->plan)));
    how->plan.struct_size = sizeof(how->plan);
    oct_nms_options_init(&how->nms);
    if (o->nms) memcpy(&how->nms, o->nms, OCT_MIN(o->nms->struct_size, sizeof(how->nms)));
    how->nms.struct_size = sizeof(how->nms);
    if (how->nms.max_detections < 1)
        return oct_fail(c->ctx, OCT_ERR_ARG, "%d detections of a picture are not possible",
                        (int)how->nms.max_detections);
    oct_preprocess_init(&how->preprocess);
    if (o->preprocess) {
        memcpy(&how->preprocess, o->preprocess,
               OCT_MIN(o->preprocess->struct_size, sizeof(how->preprocess)));
        how->preprocess.struct_size = sizeof(how->preprocess);
        how->has_preprocess = true;
    }
    if (o->family && !(c->family = oct_strdup(c->ctx, o->family))) return OCT_ERR_MEMORY;
    how->family = c->family;
    /* The plan's pattern is the caller's; nothing is watched here. */
    how->plan.keep = NULL;
    return OCT_OK;
}

oct_status oct_comparison_new(const oct_graph *exact, const oct_dataset *d,
                              const oct_compare_options *options, oct_comparison **out)
{
    OCT_ENTER(exact->ctx);
    oct_comparison *c = oct_calloc(exact->ctx, 1, sizeof(*c));
    oct_compare_options o;
    oct_status st;

    if (!c) return OCT_ERR_MEMORY;
    c->ctx = exact->ctx;
    c->d = d;
    oct_compare_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    st = check(c->ctx, &o);
    if (!st) st = read_options(c, &o);
    c->how.what = "float network";
    if (!st) st = oct_answers_new(exact, d, &c->how, &c->exact);
    if (!st && !(c->distances =
                     oct_calloc(c->ctx, (size_t)c->exact->n_outputs + 1, sizeof(*c->distances))))
        st = OCT_ERR_MEMORY;
    for (int32_t i = 0; !st && i < c->exact->n_outputs; i++)
        oct_distance_init(&c->distances[i], NULL);
    if (st) {
        oct_comparison_free(c);
        return st;
    }
    c->how.exact = c->exact;
    c->how.distances = c->distances;
    c->how.what = "comparing";
    *out = c;
    return OCT_OK;
}

void oct_comparison_free(oct_comparison *c)
{
    if (!c) return;
    oct_answers_free(c->exact);
    oct_free(c->ctx, c->distances);
    oct_free(c->ctx, c->family);
    oct_free(c->ctx, c);
}

oct_status oct_comparison_run(oct_comparison *c, const oct_graph *other, oct_compare_result *result)
{
    OCT_ENTER(c->ctx);
    oct_compare_result r = {.noise = -1, .cosine = 1};
    oct_answers *found = NULL;
    oct_status st;

    for (int32_t i = 0; i < c->exact->n_outputs; i++)
        oct_distance_init(&c->distances[i], NULL);
    OCT_TRY(oct_answers_new(other, c->d, &c->how, &found));
    st = oct_answers_compare(c->exact, found, c->sure, c->iou, &r);
    oct_answers_free(found);
    if (st) return st;
    for (int32_t i = 0; i < c->exact->n_outputs; i++) {
        const oct_error e = oct_distance_error(&c->distances[i]);

        r.noise = OCT_MAX(r.noise, e.noise);
        r.cosine = OCT_MIN(r.cosine, e.cosine);
    }
    oct_sized_give(result, &r, sizeof(r));
    return OCT_OK;
}

int32_t oct_comparison_output(const oct_comparison *c, int32_t i, const char **name,
                              oct_error *error)
{
    if (i < 0 || i >= c->exact->n_outputs) return 0;
    *name = c->exact->names[i];
    *error = oct_distance_error(&c->distances[i]);
    return 1;
}

oct_status oct_compare(const oct_graph *exact, const oct_graph *other, const oct_dataset *d,
                       const oct_compare_options *options, oct_compare_result *result)
{
    OCT_ENTER(exact->ctx);
    oct_comparison *c = NULL;
    oct_status st = oct_comparison_new(exact, d, options, &c);

    if (!st) st = oct_comparison_run(c, other, result);
    oct_comparison_free(c);
    return st;
}
