/* SPDX-License-Identifier: Apache-2.0 */
/* Box metrics: making an accumulator, seeing pictures, merging. */
#include "eval/box_eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_id(const void *a, const void *b)
{
    const oct_box_id *x = a, *y = b;

    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int64_t oct_box_find_id(const oct_box_id *ids, int64_t n, int64_t id)
{
    int64_t lo = 0, hi = n;

    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;

        if (ids[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && ids[lo].id == id ? ids[lo].index : -1;
}

static oct_status sort_ids(oct_box_eval *e)
{
    e->image_ids = oct_calloc(e->ctx, (size_t)e->n_images, sizeof(*e->image_ids));
    e->category_ids = oct_calloc(e->ctx, (size_t)e->n_categories, sizeof(*e->category_ids));
    if (!e->image_ids || !e->category_ids) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < e->n_images; i++)
        e->image_ids[i] = (oct_box_id){oct_dataset_image_id(e->truth, i), i};
    for (int32_t i = 0; i < e->n_categories; i++)
        e->category_ids[i] = (oct_box_id){oct_dataset_category_id(e->truth, i), i};
    qsort(e->image_ids, (size_t)e->n_images, sizeof(*e->image_ids), by_id);
    qsort(e->category_ids, (size_t)e->n_categories, sizeof(*e->category_ids), by_id);
    return OCT_OK;
}

oct_status oct_box_eval_new(oct_ctx *ctx, const oct_dataset *truth, oct_box_eval **out)
{
    OCT_ENTER(ctx);
    oct_box_eval *e = oct_calloc(ctx, 1, sizeof(*e));
    oct_status st;

    if (!e) return OCT_ERR_MEMORY;
    e->ctx = ctx;
    e->truth = truth;
    e->n_images = oct_dataset_size(truth);
    e->n_categories = oct_dataset_n_categories(truth);
    e->images = oct_calloc(ctx, (size_t)e->n_images, sizeof(*e->images));
    st = e->images ? sort_ids(e) : OCT_ERR_MEMORY;
    if (st)
        oct_box_eval_free(e);
    else
        *out = e;
    return st;
}

void oct_box_eval_free(oct_box_eval *e)
{
    if (!e) return;
    oct_free(e->ctx, e->images);
    oct_free(e->ctx, e->image_ids);
    oct_free(e->ctx, e->category_ids);
    oct_free(e->ctx, e->hits);
    oct_free(e->ctx, e->rank);
    oct_free(e->ctx, e->labels);
    oct_free(e->ctx, e->work);
    oct_free(e->ctx, e->states);
    oct_free(e->ctx, e->found);
    oct_free(e->ctx, e->ap);
    oct_free(e->ctx, e->ap50);
    oct_free(e->ctx, e->curves);
    oct_free(e->ctx, e->means);
    oct_free(e->ctx, e->n_labels);
    oct_free(e->ctx, e);
}

oct_status oct_box_eval_select(oct_box_eval *e, const int64_t *image_ids, int64_t n)
{
    OCT_ENTER(e->ctx);

    for (int64_t i = 0; i < n; i++)
        if (oct_box_find_id(e->image_ids, e->n_images, image_ids[i]) < 0)
            return oct_fail(e->ctx, OCT_ERR_ARG, "image id %lld is not in the annotations",
                            (long long)image_ids[i]);
    for (int64_t i = 0; i < e->n_images; i++)
        e->images[i].left_out = n > 0;
    for (int64_t i = 0; i < n; i++)
        e->images[oct_box_find_id(e->image_ids, e->n_images, image_ids[i])].left_out = false;
    return OCT_OK;
}

/* "picture 12 (id 139): detection 3: ..." */
static oct_status fail_found(const oct_box_eval *e, int64_t i, int32_t k, const char *why)
{
    return oct_fail(e->ctx, OCT_ERR_ARG, "picture %lld (id %lld): detection %d: %s", (long long)i,
                    (long long)oct_dataset_image_id(e->truth, i), (int)k, why);
}

static oct_status check(const oct_box_eval *e, int64_t i, const oct_detection *found, int32_t n)
{
    if (i < 0 || i >= e->n_images)
        return oct_fail(e->ctx, OCT_ERR_ARG, "picture %lld: the dataset has %lld", (long long)i,
                        (long long)e->n_images);
    if (e->images[i].seen)
        return oct_fail(e->ctx, OCT_ERR_STATE, "picture %lld (id %lld) was seen before",
                        (long long)i, (long long)oct_dataset_image_id(e->truth, i));
    for (int32_t k = 0; k < n; k++) {
        const oct_detection *d = &found[k];

        if (!isfinite(d->x) || !isfinite(d->y) || !isfinite(d->width) || !isfinite(d->height))
            return fail_found(e, i, k, "its box is not a number");
        if (d->width < 0 || d->height < 0) return fail_found(e, i, k, "its size is negative");
        if (!isfinite(d->score)) return fail_found(e, i, k, "its score is not a number");
        if (d->category < 0 || d->category >= e->n_categories)
            return fail_found(e, i, k, "the dataset does not have its category");
    }
    return OCT_OK;
}

oct_status oct_box_eval_see(oct_box_eval *e, int64_t i, const oct_detection *found, int32_t n)
{
    OCT_ENTER(e->ctx);

    OCT_TRY(check(e, i, found, n));
    if (e->images[i].left_out) return OCT_OK;
    OCT_TRY(oct_grow(e->ctx, &e->found, &e->found_cap, (size_t)n, sizeof(*e->found)));
    for (int32_t k = 0; k < n; k++) {
        const oct_detection *d = &found[k];

        e->found[k] = (oct_box_found){.x = (double)d->x,
                                      .y = (double)d->y,
                                      .width = (double)d->width,
                                      .height = (double)d->height,
                                      .score = (double)d->score,
                                      .category = d->category};
    }
    return oct_box_match(e, i, e->found, (size_t)n);
}

oct_status oct_box_eval_merge(oct_box_eval *e, const oct_box_eval *other)
{
    OCT_ENTER(e->ctx);
    size_t n_hits;

    if (e->n_images != other->n_images || e->n_categories != other->n_categories)
        return oct_fail(e->ctx, OCT_ERR_ARG,
                        "metrics of different datasets cannot be merged: %lld pictures in %d "
                        "categories, %lld in %d",
                        (long long)e->n_images, (int)e->n_categories, (long long)other->n_images,
                        (int)other->n_categories);
    for (int64_t i = 0; i < e->n_images; i++)
        if (e->images[i].seen && other->images[i].seen)
            return oct_fail(e->ctx, OCT_ERR_STATE, "picture %lld (id %lld) was seen by both",
                            (long long)i, (long long)oct_dataset_image_id(e->truth, i));
    if (!oct_add_size(e->n_hits, other->n_hits, &n_hits))
        return oct_fail(e->ctx, OCT_ERR_MEMORY, "out of memory: too many detections");
    OCT_TRY(oct_grow(e->ctx, &e->hits, &e->hits_cap, n_hits, sizeof(*e->hits)));

    if (other->n_hits) memcpy(e->hits + e->n_hits, other->hits, other->n_hits * sizeof(*e->hits));
    for (int64_t i = 0; i < e->n_images; i++) {
        if (!other->images[i].seen) continue;
        e->images[i].first = other->images[i].first + e->n_hits;
        e->images[i].n = other->images[i].n;
        e->images[i].seen = true;
    }
    e->n_hits = n_hits;
    return OCT_OK;
}

void oct_box_eval_category(const oct_box_eval *e, int32_t category, double *ap, double *ap50)
{
    const bool known = e->ap && category >= 0 && category < e->n_categories;

    *ap = known ? e->ap[category] : -1;
    *ap50 = known ? e->ap50[category] : -1;
}

/* Of a category, or of all of them if it is -1; NULL if there is none. */
static const double *curve_of(const oct_box_eval *e, const double *curves, int32_t category)
{
    bool any = false;

    if (!e->ap || category < -1 || category >= e->n_categories) return NULL;
    for (int32_t i = 0; i < e->n_categories; i++)
        any |= (category < 0 || category == i) && e->ap50[i] >= 0;
    if (!any) return NULL;
    return curves + (size_t)(category < 0 ? e->n_categories : category) * OCT_BOX_RECALLS;
}

const double *oct_box_eval_curve(const oct_box_eval *e, int32_t category)
{
    return curve_of(e, e->curves, category);
}

const double *oct_box_eval_mean_curve(const oct_box_eval *e, int32_t category)
{
    return curve_of(e, e->means, category);
}

const oct_dataset *oct_box_eval_truth(const oct_box_eval *e)
{
    return e->truth;
}

int64_t oct_box_eval_labels(const oct_box_eval *e, int32_t category)
{
    return e->ap && category >= 0 && category < e->n_categories ? e->n_labels[category] : 0;
}
