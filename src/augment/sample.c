/* SPDX-License-Identifier: Apache-2.0 */
/* One sample: runs the rows of augment.def, writes the labels. */
#include "augment/sample.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DRAWS 32 /* until a picture with boxes is found; then one without will do */

#define OCT_AUGMENT(sym) extern const oct_augment_row oct_augment_##sym;
#include "augment/augment.def"
#undef OCT_AUGMENT

static const oct_augment_row *const rows[] = {
#define OCT_AUGMENT(sym) &oct_augment_##sym,
#include "augment/augment.def"
#undef OCT_AUGMENT
};

const oct_augment_row *oct_augment_row_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(rows) ? rows[i] : NULL;
}

/* --- random numbers --- */

uint64_t oct_key_mix(uint64_t key, uint64_t with)
{
    oct_rng r;

    oct_rng_init(&r, key);
    oct_rng_init(&r, oct_rng_u64(&r) ^ (with * 0xd1b54a32d192ed03u));
    return oct_rng_u64(&r);
}

bool oct_chance(oct_rng *r, double probability)
{
    return oct_rng_f64(r) < probability;
}

double oct_between(oct_rng *r, double lo, double hi)
{
    return lo + (hi - lo) * oct_rng_f64(r);
}

/* A number for a row's name (FNV-1a), so that rows can be added without changing the others'. */
static uint64_t name_number(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

/* --- pictures --- */

static bool has_boxes(const oct_sample *s, int64_t index)
{
    int32_t n = 0;
    const oct_label *labels = oct_dataset_labels(s->sampler->labels->d, index, &n);
    oct_train_box box;

    for (int32_t i = 0; i < n; i++)
        if (oct_train_box_of(s->sampler->labels, &labels[i], &box)) return true;
    return false;
}

oct_status oct_sample_draw(oct_sample *s, oct_rng *r, bool with_boxes, int64_t *index,
                           const oct_image **out)
{
    const oct_train_labels *l = s->sampler->labels;
    const int64_t first = (int64_t)oct_rng_below(r, (uint64_t)l->n_usable);
    int64_t at = first;

    for (int i = 0; with_boxes && i < MAX_DRAWS && !has_boxes(s, l->usable[at]); i++)
        at = (int64_t)oct_rng_below(r, (uint64_t)l->n_usable);
    /* From there on, the first that is not broken. */
    for (int64_t i = 0; i < l->n_usable; i++, at = (at + 1) % l->n_usable) {
        *index = l->usable[at];
        OCT_TRY(oct_picture_get(&s->scratch->user, *index, out));
        if (*out) return OCT_OK;
    }
    return oct_fail(s->ctx, OCT_ERR_FORMAT, "no picture is left: all %lld are broken",
                    (long long)l->n_usable);
}

/* The sample's own picture; if it is broken and may be left out, any other. */
static oct_status find_picture(oct_sample *s)
{
    oct_rng r;

    OCT_TRY(oct_picture_get(&s->scratch->user, s->index, &s->im));
    if (s->im) return OCT_OK;
    oct_rng_init(&r, oct_key_mix(s->key, name_number("instead")));
    return oct_sample_draw(s, &r, false, &s->index, &s->im);
}

/* --- rows --- */

static oct_rng numbers_of(const oct_sample *s, const oct_augment_row *row)
{
    oct_rng r;

    oct_rng_init(&r, oct_key_mix(s->key, name_number(row->name)));
    return r;
}

oct_status oct_sample_arrange(oct_sample *s)
{
    s->scene = (oct_scene){.part = {0, 0, s->im->width, s->im->height}};
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        oct_rng r = numbers_of(s, rows[i]);

        if (rows[i]->arrange) OCT_TRY(rows[i]->arrange(s, &r));
    }
    return oct_scene_draw(s);
}

static oct_status change(oct_sample *s)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        oct_rng r = numbers_of(s, rows[i]);

        if (rows[i]->change) OCT_TRY(rows[i]->change(s, &r));
    }
    return OCT_OK;
}

/* --- labels --- */

/* The largest first; equal ones by their places, so that the order is always the same. */
static int by_size(const void *pa, const void *pb)
{
    const oct_train_box *a = pa, *b = pb;
    const double u = (a->x2 - a->x1) * (a->y2 - a->y1), v = (b->x2 - b->x1) * (b->y2 - b->y1);

    if (u != v) return u > v ? -1 : 1;
    if (a->x1 != b->x1) return a->x1 < b->x1 ? -1 : 1;
    if (a->y1 != b->y1) return a->y1 < b->y1 ? -1 : 1;
    return (a->k > b->k) - (a->k < b->k);
}

static void write_boxes(const oct_sample *s, float *labels, int32_t *n_boxes, int32_t *n_dropped)
{
    const int32_t room = s->sampler->max_boxes;
    oct_train_box *boxes = s->scratch->boxes;
    const size_t n = OCT_MIN(s->n_boxes, (size_t)room);

    if (s->n_boxes > n) qsort(boxes, s->n_boxes, sizeof(*boxes), by_size);
    for (size_t i = 0; i < (size_t)room; i++) {
        const oct_train_box b = i < n ? boxes[i] : (oct_train_box){.k = -1};
        float *row = labels + i * 5;

        row[0] = (float)b.k;
        row[1] = (float)b.x1;
        row[2] = (float)b.y1;
        row[3] = (float)b.x2;
        row[4] = (float)b.y2;
    }
    *n_boxes = (int32_t)n;
    *n_dropped = (int32_t)(s->n_boxes - n);
}

oct_status oct_sample_make(oct_ctx *ctx, const oct_sampler *sampler, oct_scratch *scratch,
                           const oct_sample_job *job, int32_t *n_boxes, int32_t *n_dropped)
{
    oct_sample s = {.ctx = ctx,
                    .sampler = sampler,
                    .a = job->is_closed ? &sampler->closed : &sampler->numbers,
                    .p = sampler->p,
                    .scratch = scratch,
                    .key = job->key,
                    .index = job->index,
                    .pixels = {sampler->p->width, sampler->p->height, job->rgb}};
    oct_status st = find_picture(&s);

    *n_boxes = *n_dropped = 0;
    if (!st) st = oct_sample_arrange(&s);
    if (!st) st = change(&s);
    oct_picture_user_done(&scratch->user);
    if (st) return st;
    if (job->labels)
        write_boxes(&s, job->labels, n_boxes, n_dropped);
    else
        *job->picture = oct_train_class_of(sampler->labels, s.index);
    return OCT_OK;
}

void oct_scratch_free(oct_scratch *s, oct_ctx *ctx)
{
    oct_picture_user_close(&s->user);
    oct_free(ctx, s->canvas);
    oct_free(ctx, s->other);
    oct_free(ctx, s->boxes);
    *s = (oct_scratch){0};
}
