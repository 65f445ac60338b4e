/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenes to pixels and boxes. A view that only scales and shifts is drawn at once, each picture
 * resized from its own pixels. Other views are drawn as they would be without them, as large as
 * they will be seen, and warped then.
 */
#include <math.h>
#include <string.h>

#include "augment/sample.h"
#include "data/image/preprocess.h"
#include "data/image/resample.h"

#define MAX_SIDE   (1 << 30)
#define LEAST_SIDE 0.01 /* of a box, whatever the settings: thinner ones have no area as floats */

double oct_round_to_pixel(double v)
{
    return floor(v + 0.5);
}

void oct_fill(const oct_rgb *to, uint8_t level)
{
    memset(to->at, level, (size_t)to->width * (size_t)to->height * 3);
}

static oct_area rounded(oct_area a)
{
    return (oct_area){oct_round_to_pixel(a.x1), oct_round_to_pixel(a.y1), oct_round_to_pixel(a.x2),
                      oct_round_to_pixel(a.y2)};
}

static oct_area meet(oct_area a, oct_area b)
{
    return (oct_area){OCT_MAX(a.x1, b.x1), OCT_MAX(a.y1, b.y1), OCT_MIN(a.x2, b.x2),
                      OCT_MIN(a.y2, b.y2)};
}

static bool is_empty(oct_area a)
{
    return !(a.x2 > a.x1) || !(a.y2 > a.y1);
}

/* --- pixels --- */

static void put_row(const uint8_t *planes, int32_t n, uint8_t *to)
{
    const uint8_t *r = planes, *g = planes + n, *b = planes + 2 * (size_t)n;

    for (int32_t i = 0; i < n; i++) {
        to[3 * i] = r[i];
        to[3 * i + 1] = g[i];
        to[3 * i + 2] = b[i];
    }
}

oct_status oct_paste(oct_ctx *ctx, oct_interpolation interpolation, const oct_image *im,
                     oct_area at, oct_area clip, const oct_rgb *to)
{
    const oct_area all = {0, 0, to->width, to->height};
    const oct_area where = rounded(at), shows = meet(meet(where, rounded(clip)), all);
    oct_resampler *r = NULL;
    oct_span x, y;

    if (is_empty(shows)) return OCT_OK;
    if (where.x2 - where.x1 > MAX_SIDE || where.y2 - where.y1 > MAX_SIDE)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                        "a picture of %d x %d pixels is too long and thin to be enlarged",
                        (int)im->width, (int)im->height);
    x = (oct_span){im->width, (int32_t)(where.x2 - where.x1), (int32_t)(shows.x1 - where.x1),
                   (int32_t)(shows.x2 - shows.x1)};
    y = (oct_span){im->height, (int32_t)(where.y2 - where.y1), (int32_t)(shows.y1 - where.y1),
                   (int32_t)(shows.y2 - shows.y1)};
    OCT_TRY(oct_resampler_new(ctx, interpolation, im, x, y, &r));
    for (int32_t i = 0; i < y.count; i++) {
        const size_t row = (size_t)shows.y1 + (size_t)i;

        put_row(oct_resampler_next(r), x.count,
                to->at + (row * (size_t)to->width + (size_t)shows.x1) * 3);
    }
    oct_resampler_free(r);
    return OCT_OK;
}

/* Through a matrix that scales and shifts only. */
static oct_area through(const oct_matrix *m, oct_area a)
{
    return (oct_area){m->xx * a.x1 + m->x0, m->yy * a.y1 + m->y0, m->xx * a.x2 + m->x0,
                      m->yy * a.y2 + m->y0};
}

static uint8_t pad_level(const oct_preprocess *p)
{
    return (uint8_t)lrintf(OCT_MIN(OCT_MAX(p->pad, 0.0f), 255.0f));
}

static oct_status draw_tiles(const oct_sample *s, const oct_matrix *m, const oct_rgb *to)
{
    const oct_scene *sc = &s->scene;

    oct_fill(to, pad_level(s->p));
    for (int i = 0; i < sc->n_tiles; i++)
        OCT_TRY(oct_paste(s->ctx, (oct_interpolation)s->p->interpolation, sc->tile[i].im,
                          through(m, sc->tile[i].at), through(m, sc->tile[i].clip), to));
    return OCT_OK;
}

/* --- boxes --- */

/* The corners' bounding box. */
static oct_area around(const oct_matrix *m, oct_area a)
{
    const double xs[] = {a.x1, a.x2, a.x1, a.x2}, ys[] = {a.y1, a.y1, a.y2, a.y2};
    oct_area out = {INFINITY, INFINITY, -INFINITY, -INFINITY};

    for (int i = 0; i < 4; i++) {
        const double x = m->xx * xs[i] + m->xy * ys[i] + m->x0;
        const double y = m->yx * xs[i] + m->yy * ys[i] + m->y0;

        out = (oct_area){OCT_MIN(out.x1, x), OCT_MIN(out.y1, y), OCT_MAX(out.x2, x),
                         OCT_MAX(out.y2, y)};
    }
    return out;
}

static double size_of(const oct_matrix *m)
{
    return fabs(m->xx * m->yy - m->xy * m->yx);
}

static bool is_kept(const oct_augment *a, oct_area b, double area)
{
    const double w = b.x2 - b.x1, h = b.y2 - b.y1;

    if (!(w > OCT_MAX(a->keep_side, LEAST_SIDE)) || !(h > OCT_MAX(a->keep_side, LEAST_SIDE)))
        return false;
    if (!(w * h > a->keep_area * area)) return false;
    return w <= a->keep_aspect * h && h <= a->keep_aspect * w;
}

/* Where a tile was drawn, and what happens after. */
typedef struct drawn {
    oct_area at, clip;
    const oct_matrix *then;
    const oct_image *im;
} drawn;

/* A box of the picture to the network's input; false: nothing of it is to be kept. */
static bool place_box(const oct_sample *s, const drawn *d, oct_train_box *b)
{
    const oct_area picture = {0, 0, d->im->width, d->im->height};
    const oct_area input = {0, 0, s->p->width, s->p->height};
    const oct_matrix m = {.xx = (d->at.x2 - d->at.x1) / d->im->width,
                          .x0 = d->at.x1,
                          .yy = (d->at.y2 - d->at.y1) / d->im->height,
                          .y0 = d->at.y1};
    oct_area a = meet((oct_area){b->x1, b->y1, b->x2, b->y2}, picture);
    double area, x, y;

    if (is_empty(a)) return false;
    a = through(&m, a);
    area = (a.x2 - a.x1) * (a.y2 - a.y1) * size_of(d->then);
    x = (a.x1 + a.x2) / 2;
    y = (a.y1 + a.y2) / 2;
    if (s->scene.by_centre &&
        (x < d->clip.x1 || x >= d->clip.x2 || y < d->clip.y1 || y >= d->clip.y2))
        return false;
    a = meet(a, d->clip);
    if (is_empty(a)) return false;
    a = meet(around(d->then, a), input);
    if (!is_kept(s->a, a, area)) return false;
    *b = (oct_train_box){a.x1, a.y1, a.x2, a.y2, area, b->k};
    return true;
}

static oct_status place_boxes(oct_sample *s, const oct_matrix *m, const oct_matrix *then)
{
    const oct_train_labels *l = s->sampler->labels;
    oct_scratch *t = s->scratch;

    for (int i = 0; i < s->scene.n_tiles && !l->classes; i++) {
        const oct_tile *tile = &s->scene.tile[i];
        const drawn d = {rounded(through(m, tile->at)), rounded(through(m, tile->clip)), then,
                         tile->im};
        int32_t n = 0;
        const oct_label *labels = oct_dataset_labels(l->d, tile->index, &n);

        OCT_TRY(
            oct_grow(s->ctx, &t->boxes, &t->cap_boxes, s->n_boxes + (size_t)n, sizeof(*t->boxes)));
        for (int32_t k = 0; k < n; k++) {
            oct_train_box b;

            if (oct_train_box_of(l, &labels[k], &b) && place_box(s, &d, &b))
                t->boxes[s->n_boxes++] = b;
        }
    }
    return OCT_OK;
}

/* --- the whole --- */

/* Memory for the canvas of a warp: kept from sample to sample. */
static oct_status make_canvas(const oct_sample *s, double scale, oct_rgb *out)
{
    oct_scratch *t = s->scratch;
    size_t size;

    out->width = OCT_MAX((int32_t)ceil(s->scene.width * scale), 1);
    out->height = OCT_MAX((int32_t)ceil(s->scene.height * scale), 1);
    if (!oct_mul_size((size_t)out->width, (size_t)out->height, &size) ||
        !oct_mul_size(size, 3, &size))
        return oct_fail(s->ctx, OCT_ERR_MEMORY, "out of memory: a canvas of %d x %d pixels",
                        (int)out->width, (int)out->height);
    if (size > t->canvas_size) {
        oct_free(s->ctx, t->canvas);
        t->canvas_size = 0;
        if (!(t->canvas = oct_alloc(s->ctx, size))) return OCT_ERR_MEMORY;
        t->canvas_size = size;
    }
    out->at = t->canvas;
    return OCT_OK;
}

oct_status oct_scene_draw(oct_sample *s)
{
    const oct_matrix *v = &s->scene.view;
    const oct_matrix nothing = {.xx = 1, .yy = 1};
    double scale;
    oct_matrix smaller, rest;
    oct_rgb canvas;

    if (v->xy == 0 && v->yx == 0 && v->xx > 0 && v->yy > 0) {
        OCT_TRY(draw_tiles(s, v, &s->pixels));
        return place_boxes(s, v, &nothing);
    }
    /* The warp takes four pixels for each one: it must not reduce, or pixels would be skipped. */
    scale = OCT_MIN(sqrt(size_of(v)), 1.0);
    OCT_TRY(make_canvas(s, scale, &canvas));
    smaller = (oct_matrix){.xx = scale, .yy = scale};
    rest = (oct_matrix){v->xx / scale, v->xy / scale, v->x0, v->yx / scale, v->yy / scale, v->y0};
    OCT_TRY(draw_tiles(s, &smaller, &canvas));
    oct_warp(&canvas, &rest, pad_level(s->p), &s->pixels);
    return place_boxes(s, &smaller, &rest);
}

void oct_scene_fit(oct_scene *sc, const oct_preprocess *p, const oct_image *im, int64_t index)
{
    const double w = sc->part.x2 - sc->part.x1, h = sc->part.y2 - sc->part.y1;
    const oct_placement at =
        oct_preprocess_place(p, OCT_MAX((int32_t)w, 1), OCT_MAX((int32_t)h, 1));
    const double sx = at.to_width / w, sy = at.to_height / h;
    const oct_area part = {at.x, at.y, (double)at.x + at.to_width, (double)at.y + at.to_height};
    const double x = at.x - sc->part.x1 * sx, y = at.y - sc->part.y1 * sy;

    sc->width = p->width;
    sc->height = p->height;
    sc->n_tiles = 1;
    sc->tile[0] = (oct_tile){.im = im,
                             .index = index,
                             .at = {x, y, x + im->width * sx, y + im->height * sy},
                             .clip = meet(part, (oct_area){0, 0, p->width, p->height})};
    sc->view = (oct_matrix){.xx = 1, .yy = 1};
}
