/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression: hard or soft, in each class or across classes. */
#include "detect/nms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CATEGORIES = 1 << 20 }; /* networks with NMS inside output any number */

void oct_nms_options_init_sized(oct_nms_options *o, size_t struct_size)
{
    const oct_nms_options all = {.struct_size = struct_size,
                                 .score = 0.01f,
                                 .iou = 0.65f,
                                 .top_k = 30000,
                                 .max_detections = 100};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

void oct_candidates_init(oct_candidates *c, oct_ctx *ctx)
{
    *c = (oct_candidates){.ctx = ctx, .top_k = 1};
}

void oct_candidates_fini(oct_candidates *c)
{
    oct_free(c->ctx, c->items);
    oct_free(c->ctx, c->heads);
    *c = (oct_candidates){.ctx = c->ctx, .top_k = 1};
}

void oct_candidates_start(oct_candidates *c, int32_t top_k)
{
    c->n = 0;
    c->top_k = (size_t)OCT_MAX(top_k, 1);
    c->status = OCT_OK;
}

/* A total order, so that any sorting routine gives the same result. */
static int best_first(const void *pa, const void *pb)
{
    const oct_candidate *a = pa, *b = pb;

    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return (a->category > b->category) - (a->category < b->category);
}

static void sort(oct_candidates *c)
{
    if (c->n > 1) qsort(c->items, c->n, sizeof(*c->items), best_first);
    c->n = OCT_MIN(c->n, c->top_k);
}

void oct_candidates_push(oct_candidates *c, const oct_candidate *box)
{
    const float sum = box->x1 + box->y1 + box->x2 + box->y2 + box->score;

    if (box->category < 0 || box->category >= MAX_CATEGORIES) return;
    if (c->status || !isfinite(sum) || !(box->x2 > box->x1) || !(box->y2 > box->y1)) return;
    if (!isfinite(box->x2 - box->x1) || !isfinite(box->y2 - box->y1)) return;
    /* Keeps up to twice `top_k`, then sorts and drops the worse half, so that memory is bounded. */
    if (c->n / 2 >= c->top_k) sort(c);
    if (c->n == c->cap &&
        (c->status = oct_grow(c->ctx, &c->items, &c->cap, c->n + 1, sizeof(*c->items))))
        return;
    c->items[c->n] = *box;
    c->items[c->n++].next = -1;
}

static float overlap(const oct_candidate *a, const oct_candidate *b)
{
    const float w = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);
    const float h = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    float both, all;

    if (!(w > 0) || !(h > 0)) return 0;
    both = w * h;
    all = (a->x2 - a->x1) * (a->y2 - a->y1) + (b->x2 - b->x1) * (b->y2 - b->y1) - both;
    return all > 0 ? both / all : 0;
}

/* Clips to the picture; false: nothing of it is inside. */
static bool to_picture(const oct_candidate *b, const oct_mapping *m, oct_detection *out)
{
    const float w = (float)m->image_width, h = (float)m->image_height;
    const float x1 = fminf(fmaxf((b->x1 - m->offset_x) / m->scale_x, 0), w);
    const float y1 = fminf(fmaxf((b->y1 - m->offset_y) / m->scale_y, 0), h);
    const float x2 = fminf(fmaxf((b->x2 - m->offset_x) / m->scale_x, 0), w);
    const float y2 = fminf(fmaxf((b->y2 - m->offset_y) / m->scale_y, 0), h);

    *out = (oct_detection){x1, y1, x2 - x1, y2 - y1, b->score, b->category};
    return out->width > 0 && out->height > 0;
}

/* Lists of kept boxes: one for each category, or a single one. */
static oct_status clear_heads(oct_candidates *c, bool agnostic)
{
    size_t n = 1;

    for (size_t i = 0; i < c->n && !agnostic; i++)
        n = OCT_MAX(n, (size_t)OCT_MAX(c->items[i].category, 0) + 1);
    if (n > c->cap_heads) OCT_TRY(oct_grow(c->ctx, &c->heads, &c->cap_heads, n, sizeof(*c->heads)));
    memset(c->heads, 0xff, n * sizeof(*c->heads)); /* -1 */
    return OCT_OK;
}

/* --- a heap, best on top: few of many candidates are ever needed --- */

static void sink(oct_candidate *heap, size_t n, size_t i)
{
    const oct_candidate c = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && best_first(&heap[child + 1], &heap[child]) < 0) child++;
        if (best_first(&heap[child], &c) >= 0) break;
        heap[i] = heap[child];
    }
    heap[i] = c;
}

static void make_heap(oct_candidate *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
}

/* Removes the best of n; it is moved to the end, at n - 1. */
static oct_candidate *pop(oct_candidate *heap, size_t n)
{
    const oct_candidate best = heap[0];

    heap[0] = heap[n - 1];
    if (n > 1) sink(heap, n - 1, 0);
    heap[n - 1] = best;
    return &heap[n - 1];
}

/*
 * Best first; a box is compared with the kept ones of its list only. Since the order is that of
 * scores over all categories, the work stops at max_detections: at most top_k * max_detections
 * comparisons.
 */
static int32_t suppress_hard(oct_candidates *c, const oct_nms_options *o, const oct_mapping *map,
                             oct_detection *out)
{
    int32_t n = 0;

    make_heap(c->items, c->n);
    for (size_t left = c->n; left > 0 && n < o->max_detections; left--) {
        oct_candidate *b = pop(c->items, left);
        int32_t *head = &c->heads[o->agnostic ? 0 : b->category], k = *head;

        if (!to_picture(b, map, &out[n])) continue;
        while (k >= 0 && !(overlap(b, &c->items[k]) > o->iou))
            k = c->items[k].next;
        if (k >= 0) continue;
        b->next = *head;
        *head = (int32_t)(left - 1);
        n++;
    }
    return n;
}

/* Overlapping boxes lose score instead of being removed: score *= exp(-iou^2 / sigma). */
static int32_t suppress_soft(oct_candidates *c, const oct_nms_options *o, const oct_mapping *map,
                             oct_detection *out)
{
    const float width = 1 / o->soft_sigma;
    int32_t n = 0;

    for (size_t i = 0; i < c->n && n < o->max_detections; i++) {
        size_t best = i;
        oct_candidate b;

        for (size_t k = i + 1; k < c->n; k++)
            if (best_first(&c->items[k], &c->items[best]) < 0) best = k;
        b = c->items[best];
        c->items[best] = c->items[i];
        c->items[i] = b;
        if (!(b.score > o->score)) break;
        if (!to_picture(&b, map, &out[n])) continue;
        n++;
        for (size_t k = i + 1; k < c->n; k++) {
            oct_candidate *other = &c->items[k];
            float iou;

            if (!o->agnostic && other->category != b.category) continue;
            if ((iou = overlap(&b, other)) > 0) other->score *= expf(-iou * iou * width);
        }
    }
    return n;
}

oct_status oct_candidates_suppress(oct_candidates *c, const oct_nms_options *o,
                                   const oct_mapping *map, oct_detection *out, int32_t *n)
{
    OCT_TRY(c->status);
    if (c->n > c->top_k) sort(c);
    if (o->soft_sigma > 0) {
        *n = suppress_soft(c, o, map, out);
        return OCT_OK;
    }
    OCT_TRY(clear_heads(c, o->agnostic != 0));
    *n = suppress_hard(c, o, map, out);
    return OCT_OK;
}
