/* SPDX-License-Identifier: Apache-2.0 */
/* Where pictures show objects: see objects.h. */
#include "quant/learn/objects.h"

#include <math.h>

#include "base/ctx.h"
#include "detect/detector.h"
#include "tensor/small_float.h"

/* A picture is GRID x GRID cells; a detector finds at most MOST objects in it. */
enum { GRID = 40, MOST = 100 };

/* What a place without objects counts, where one in a box of score 1 counts 1 more. */
#define BACKGROUND 0.3F

/* Boxes of lower scores are background, too. */
#define LEAST_SCORE 0.05F

static int32_t cell_of(float at, int32_t size)
{
    const float cell = floorf(at / (float)size * GRID);

    return (int32_t)fminf(fmaxf(cell, 0), GRID - 1);
}

static void mark(const oct_detection *d, const oct_preprocess *p, float *cells)
{
    const int32_t left = cell_of(d->x, p->width), right = cell_of(d->x + d->width, p->width);
    const int32_t top = cell_of(d->y, p->height), bottom = cell_of(d->y + d->height, p->height);

    for (int32_t y = top; y <= bottom; y++)
        for (int32_t x = left; x <= right; x++)
            cells[y * GRID + x] = fmaxf(cells[y * GRID + x], BACKGROUND + d->score);
}

static oct_status fill_inputs(const oct_graph *g, uint16_t *const *inputs, int64_t picture,
                              oct_run *r)
{
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_value *v = g->inputs[i];
        const int64_t n = oct_type_len(&v->type);
        void *data = NULL;
        size_t size = 0;

        if (!inputs[v->id]) continue;
        OCT_TRY(oct_run_input(r, v->name, &data, &size));
        oct_f16_to_f32_n(inputs[v->id] + picture * n, n, data);
    }
    return OCT_OK;
}

static oct_status look(const oct_graph *g, oct_detector *d, uint16_t *const *inputs,
                       int64_t pictures, oct_run *r, float *cells)
{
    oct_detection found[MOST];
    oct_preprocess p;
    oct_mapping same;
    oct_nms_options o;

    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    same =
        (oct_mapping){.scale_x = 1, .scale_y = 1, .image_width = p.width, .image_height = p.height};
    oct_nms_options_init(&o);
    o.score = LEAST_SCORE;
    o.max_detections = MOST;
    for (int64_t k = 0; k < pictures; k++) {
        float *to = cells + k * GRID * GRID;
        int32_t n = 0;

        OCT_TRY(fill_inputs(g, inputs, k, r));
        OCT_TRY(oct_run_execute(r));
        OCT_TRY(oct_detector_decode(d, r, 0, &same, &o, found, &n));
        for (int32_t i = 0; i < GRID * GRID; i++)
            to[i] = BACKGROUND;
        for (int32_t i = 0; i < n; i++)
            mark(&found[i], &p, to);
    }
    return OCT_OK;
}

/* NULL: it is none, or one that cannot be read. */
static oct_status open_detector(const oct_graph *g, const char *family, oct_detector **out)
{
    const oct_status st = oct_detector_new(g, family, out);

    if (st) return st == OCT_ERR_MEMORY ? st : OCT_OK;
    if (!oct_detector_is_classifier(*out) && !oct_detector_check(*out)) return OCT_OK;
    oct_detector_free(*out);
    *out = NULL;
    return OCT_OK;
}

oct_status oct_objects_find(const oct_graph *g, const char *family, uint16_t *const *inputs,
                            int64_t pictures, oct_arena *a, oct_objects *out)
{
    oct_detector *d = NULL;
    oct_plan *plan = NULL;
    oct_run *r = NULL;
    oct_status st;

    *out = (oct_objects){0};
    OCT_TRY(open_detector(g, family, &d));
    if (!d) return OCT_OK;
    out->cells = oct_arena_array(a, (size_t)(pictures * GRID * GRID) + 1, sizeof(float));
    st = out->cells ? oct_plan_new(g, NULL, &plan) : OCT_ERR_MEMORY;
    if (!st) st = oct_run_new(g->ctx, plan, &r);
    if (!st) st = look(g, d, inputs, pictures, r, out->cells);
    oct_run_free(r);
    oct_plan_free(plan);
    oct_detector_free(d);
    return st;
}

float oct_objects_at(const oct_objects *s, int64_t picture, int64_t y, int64_t x, int64_t height,
                     int64_t width)
{
    if (!s->cells) return 1;
    return s->cells[(picture * GRID + y * GRID / height) * GRID + x * GRID / width];
}

int64_t oct_objects_places(const oct_type *t)
{
    return t->rank == 4 && t->dim[0] == 1 ? t->dim[2] * t->dim[3] : 0;
}

void oct_objects_spread(const oct_objects *s, int64_t picture, const oct_type *t, float *to)
{
    const int64_t height = t->dim[2], width = t->dim[3], n = height * width;
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        to[i] = oct_objects_at(s, picture, i / width, i % width, height, width);
        sum += (double)to[i];
    }
    for (int64_t i = 0; i < n; i++)
        to[i] *= (float)((double)n / sum);
}
