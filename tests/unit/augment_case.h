/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of augmentation share: pictures of one white rectangle, batches of them. */
#ifndef OCT_TESTS_AUGMENT_CASE_H
#define OCT_TESTS_AUGMENT_CASE_H

#include "tests/unit/data_files.h"

#include "augment/batches.h"
#include "data/dataset.h"

/* One label of a picture. */
static inline oct_label label_of(double x, double y, double w, double h, int32_t category)
{
    return (oct_label){
        .x = x, .y = y, .width = w, .height = h, .area = w * h, .category = category};
}

/* A dataset of boxes without pictures; categories "a", "b", "c". */
static inline oct_dataset *new_dataset(const files *t)
{
    oct_dataset *d = NULL;

    assert_ok(t->ctx, oct_dataset_new(t->ctx, &d));
    d->kind = "test";
    d->is_boxes = true;
    assert_ok(t->ctx, oct_dataset_add_category(d, "a", 1));
    assert_ok(t->ctx, oct_dataset_add_category(d, "b", 2));
    assert_ok(t->ctx, oct_dataset_add_category(d, "c", 3));
    return d;
}

static inline void add_labels(const files *t, oct_dataset *d, const oct_label *labels, size_t n)
{
    oct_labels l = {0};

    for (size_t i = 0; i < n; i++)
        assert_ok(t->ctx, oct_labels_add(t->ctx, &l, &labels[i]));
    assert_ok(t->ctx, oct_labels_give(d, &l, &d->items[d->n_items - 1]));
    oct_free(t->ctx, l.items);
}

/* Adds a picture of this level with a white rectangle for each label. */
static inline void add_picture(const files *t, oct_dataset *d, int w, int h, int level,
                               const oct_label *labels, size_t n)
{
    char name[32];
    oct_image *im = NULL;

    snprintf(name, sizeof(name), "%03zu.png", d->n_items);
    assert_ok(t->ctx, oct_image_new(t->ctx, w, h, &im));
    memset(im->rgb, level, (size_t)w * (size_t)h * 3);
    for (size_t i = 0; i < n; i++)
        for (int y = (int)labels[i].y; y < (int)(labels[i].y + labels[i].height); y++)
            for (int x = (int)labels[i].x; x < (int)(labels[i].x + labels[i].width); x++)
                if (x >= 0 && y >= 0 && x < w && y < h) memset(im->rgb + (y * w + x) * 3, 255, 3);
    assert_ok(t->ctx, oct_image_save(t->ctx, im, below(t, name)));
    oct_image_free(im);
    assert_ok(t->ctx, oct_dataset_add(d, oct_arena_strdup(d->arena, below(t, name))));
    add_labels(t, d, labels, n);
}

/* n pictures, of two sizes, each with a white rectangle in its inner part. */
static inline oct_dataset *rectangles(const files *t, int n)
{
    oct_dataset *d = new_dataset(t);

    for (int i = 0; i < n; i++) {
        const oct_label l = label_of(14 + i % 7, 12 + i % 5, 17 + i % 3, 13 + i % 4, i % 3);

        add_picture(t, d, i % 2 ? 64 : 50, i % 2 ? 48 : 66, 0, &l, 1);
    }
    return d;
}

/* Batches, and room for one of them. */
typedef struct batch_case {
    oct_ctx *ctx;
    oct_preprocess p;
    oct_augment a;
    oct_batches_options o;
    oct_batches *b;
    float *images, *labels;
    oct_batch_info info;
} batch_case;

/* The options can be changed before start(). Nothing is augmented; padding is black. */
static inline batch_case *new_case(const files *t, int width, int height)
{
    batch_case *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->ctx = t->ctx;
    oct_preprocess_init(&c->p);
    c->p.width = width;
    c->p.height = height;
    c->p.pad = 0;
    c->p.scale = 1;
    oct_augment_init(&c->a, NULL);
    c->o = (oct_batches_options){.batch = 2,
                                 .preprocess = &c->p,
                                 .augment = &c->a,
                                 .seed = 1,
                                 .shuffle = true,
                                 .n_threads = 1};
    return c;
}

static inline void start(batch_case *c, const oct_dataset *d)
{
    assert_ok(c->ctx, oct_batches_new(c->ctx, d, &c->o, &c->b));
    c->images = calloc(oct_batches_image_size(c->b), sizeof(float));
    c->labels = calloc((size_t)c->o.batch * (size_t)(oct_batches_max_boxes(c->b) + 1) * 5, 8);
    assert_true(c->images && c->labels);
}

static inline void take(batch_case *c)
{
    assert_ok(c->ctx, oct_batches_next(c->b, c->images, c->labels, &c->info));
}

static inline void stop(batch_case *c)
{
    oct_batches_free(c->b);
    free(c->images);
    free(c->labels);
    c->b = NULL;
    c->images = c->labels = NULL;
}

static inline void free_case(batch_case *c)
{
    stop(c);
    free(c);
}

/* Row k of the labels of picture i. */
static inline const float *row_of(const batch_case *c, int i, int k)
{
    return c->labels + ((size_t)i * (size_t)oct_batches_max_boxes(c->b) + (size_t)k) * 5;
}

static inline int count_rows(const batch_case *c, int i)
{
    int n = 0;

    while (n < oct_batches_max_boxes(c->b) && row_of(c, i, n)[0] >= 0)
        n++;
    return n;
}

/* FNV-1a of all the bytes of a batch. */
static inline uint64_t sum_of(const batch_case *c)
{
    const size_t n_images = oct_batches_image_size(c->b) * sizeof(float);
    const size_t n_labels =
        c->o.classes ? (size_t)c->o.batch * sizeof(int64_t)
                     : (size_t)c->o.batch * (size_t)oct_batches_max_boxes(c->b) * 5 * sizeof(float);
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n_images; i++)
        h = (h ^ ((const uint8_t *)c->images)[i]) * 0x100000001b3u;
    for (size_t i = 0; i < n_labels; i++)
        h = (h ^ ((const uint8_t *)c->labels)[i]) * 0x100000001b3u;
    return h;
}

#endif
