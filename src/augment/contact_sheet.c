/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as one picture, with its boxes: to look at what a network is trained on. */
#include <math.h>
#include <string.h>

#include <octet/detect.h>

#include "augment/ring.h"
#include "data/image/image.h"
#include "data/image/preprocess.h"

#define GAP      6    /* pixels between pictures */
#define MOST     2400 /* pixels of a side: pictures become smaller then */
#define NO_SCORE (-1.0f)

/* The sheet's cells. */
typedef struct sheet {
    oct_ctx *ctx;
    oct_image *im;
    int32_t columns, rows, width, height; /* of a cell */
    oct_detection *found;
} sheet;

static void plan_cells(sheet *s, int32_t batch, int32_t width, int32_t height)
{
    double scale;

    s->columns = OCT_MAX((int32_t)ceil(sqrt((double)batch * height / width)), 1);
    s->columns = OCT_MIN(s->columns, batch);
    s->rows = (batch + s->columns - 1) / s->columns;
    scale = OCT_MIN((double)MOST / ((double)s->columns * width),
                    (double)MOST / ((double)s->rows * height));
    scale = OCT_MIN(scale, 1.0);
    s->width = OCT_MAX((int32_t)(width * scale), 1);
    s->height = OCT_MAX((int32_t)(height * scale), 1);
}

/* What oct_detections_draw() draws, in pixels of a cell. */
static int32_t boxes_of(const oct_batches *b, const sheet *s, const void *labels, int32_t i)
{
    const int32_t m = b->sampler.max_boxes;
    const float sx = (float)s->width / (float)b->p.width;
    const float sy = (float)s->height / (float)b->p.height;
    const float *row = (const float *)labels + (size_t)i * (size_t)m * 5;
    int32_t n = 0;

    if (b->labels.classes) {
        s->found[0] = (oct_detection){.width = (float)s->width,
                                      .height = (float)s->height,
                                      .score = NO_SCORE,
                                      .category = (int32_t)((const int64_t *)labels)[i]};
        return 1;
    }
    for (; n < m && row[0] >= 0; n++, row += 5)
        s->found[n] = (oct_detection){.x = row[1] * sx,
                                      .y = row[2] * sy,
                                      .width = (row[3] - row[1]) * sx,
                                      .height = (row[4] - row[2]) * sy,
                                      .score = NO_SCORE,
                                      .category = (int32_t)row[0]};
    return n;
}

static oct_status make_cell(const oct_batches *b, const sheet *s, const float *from,
                            oct_image **out)
{
    oct_preprocess p;
    oct_image *large = NULL;
    oct_status st;

    oct_preprocess_init(&p);
    p.width = s->width;
    p.height = s->height;
    p.fit = OCT_FIT_STRETCH;
    p.layout = OCT_IMAGE_NHWC;
    OCT_TRY(oct_image_new(s->ctx, b->p.width, b->p.height, &large));
    oct_to_input_back(&b->to_input, from, oct_image_rgb(large));
    st = oct_image_new(s->ctx, s->width, s->height, out);
    if (!st) st = oct_preprocess_run(s->ctx, &p, large, OCT_DTYPE_U8, oct_image_rgb(*out), NULL);
    oct_image_free(large);
    return st;
}

static void put_cell(const sheet *s, const oct_image *cell, int32_t i)
{
    const size_t pitch = (size_t)s->im->width * 3, row = (size_t)s->width * 3;
    const size_t x = (size_t)(i % s->columns) * (size_t)(s->width + GAP);
    const size_t y = (size_t)(i / s->columns) * (size_t)(s->height + GAP);

    for (size_t k = 0; k < (size_t)s->height; k++)
        memcpy(s->im->rgb + (y + k) * pitch + x * 3, cell->rgb + k * row, row);
}

static oct_status draw_all(const oct_batches *b, sheet *s, const float *images, const void *labels,
                           const char *const *names, int32_t n_names)
{
    const size_t size = oct_to_input_size(&b->to_input);

    s->found = oct_calloc(s->ctx, (size_t)b->sampler.max_boxes + 1, sizeof(*s->found));
    if (!s->found) return OCT_ERR_MEMORY;
    OCT_TRY(oct_image_new(s->ctx, s->columns * (s->width + GAP) - GAP,
                          s->rows * (s->height + GAP) - GAP, &s->im));
    memset(s->im->rgb, 0xff, (size_t)s->im->width * (size_t)s->im->height * 3);
    for (int32_t i = 0; i < b->batch; i++) {
        oct_image *cell = NULL;
        oct_status st = make_cell(b, s, images + (size_t)i * size, &cell);

        if (!st)
            st = oct_detections_draw(s->ctx, cell, s->found, boxes_of(b, s, labels, i), names,
                                     n_names);
        if (!st) put_cell(s, cell, i);
        oct_image_free(cell);
        if (st) return st;
    }
    return OCT_OK;
}

oct_status oct_batches_draw(const oct_batches *b, const float *images, const void *labels,
                            const char *const *names, int32_t n_names, const char *path)
{
    OCT_ENTER(b->ctx);
    sheet s = {.ctx = b->ctx};
    oct_status st;

    plan_cells(&s, b->batch, b->p.width, b->p.height);
    st = draw_all(b, &s, images, labels, names, n_names);
    if (!st) st = oct_image_save(b->ctx, s.im, path);
    oct_free(b->ctx, s.found);
    oct_image_free(s.im);
    return st;
}
