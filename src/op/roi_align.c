/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: each region of a feature map sampled into a grid of fixed size. */
#include "op/roi_align.h"

#include <math.h>
#include <string.h>

#include "op/grad/layers.h"
#include "op/move.h"

enum { COORD, MODE, HEIGHT, SAMPLING, WIDTH, SCALE };

#define MAX_SAMPLES 4096 /* along one side of a cell; regions lie within real images */

static int64_t attr_int(const oct_node *n, const char *name)
{
    return oct_node_attr(n, name)->i;
}

oct_status oct_roi_check(const oct_infer *q, const oct_type *rois, const oct_type *images)
{
    const oct_node *n = q->node;
    const char *coord = oct_node_attr(n, "coordinate_transformation_mode")->s;
    const int64_t height = attr_int(n, "output_height"), width = attr_int(n, "output_width"),
                  sampling = attr_int(n, "sampling_ratio");

    if (strcmp(coord, "half_pixel") != 0 && strcmp(coord, "output_half_pixel") != 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED,
                              "coordinate_transformation_mode '%.30s' is not known", coord);
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX || sampling < 0 ||
        sampling > MAX_SAMPLES)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "output %lld x %lld, sampling_ratio %lld",
                              (long long)height, (long long)width, (long long)sampling);
    if ((rois->rank >= 0 && rois->rank != 2) || (images->rank >= 0 && images->rank != 1) ||
        (rois->rank == 2 && rois->dim[1] >= 0 && rois->dim[1] != 4) ||
        (rois->rank == 2 && images->rank == 1 && rois->dim[0] >= 0 && images->dim[0] >= 0 &&
         rois->dim[0] != images->dim[0]))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "expected X [N,C,H,W], rois [R,4], indices [R]");
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *rois, *batch;
    const char *mode = q->node->attr[MODE].s;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &rois));
    OCT_TRY(oct_infer_need(q, 2, &batch));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, 2, OCT_SET_INT));
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "mode '%.20s' is not known", mode);
    OCT_TRY(oct_roi_check(q, rois, batch));
    if (x->rank >= 0 && x->rank != 4)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "expected X [N,C,H,W], rois [R,4], indices [R]");
    q->out[0] = oct_type_make(x->dtype, 4,
                              (const int64_t[]){rois->rank == 2 ? rois->dim[0] : -1,
                                                x->rank == 4 ? x->dim[1] : -1,
                                                oct_int(q->node, HEIGHT), oct_int(q->node, WIDTH)});
    return OCT_OK;
}

/* Positions of all samples of n_cells cells along an axis of `len` elements. */
static void place(float start, float cell, int64_t n_cells, int64_t n_samples, int64_t len,
                  oct_roi_sample *out)
{
    for (int64_t i = 0; i < n_cells * n_samples; i++) {
        const float step = (float)(i % n_samples) + 0.5f;
        float v = start + (float)(i / n_samples) * cell + step * cell / (float)n_samples;
        oct_roi_sample *s = &out[i];

        s->inside = v >= -1.0f && v <= (float)len;
        if (!s->inside) continue;
        v = fmaxf(v, 0);
        s->low = (int64_t)v;
        if (s->low >= len - 1) {
            s->low = s->high = len - 1;
            s->frac = 0;
        } else {
            s->high = s->low + 1;
            s->frac = v - (float)s->low;
        }
    }
}

/* One cell: ny x nx samples of a channel. As in other runtimes, max is over the weighted
 * neighbours, not over their sum. */
static float cell_value(const float *plane, int64_t w, const oct_roi_sample *ys, int64_t ny,
                        const oct_roi_sample *xs, int64_t nx, bool take_max)
{
    float sum = 0, best = 0;

    for (int64_t i = 0; i < ny; i++)
        for (int64_t j = 0; j < nx; j++) {
            const oct_roi_sample *y = &ys[i], *x = &xs[j];
            float v[4] = {0, 0, 0, 0};

            if (y->inside && x->inside) {
                v[0] = (1 - y->frac) * (1 - x->frac) * plane[y->low * w + x->low];
                v[1] = (1 - y->frac) * x->frac * plane[y->low * w + x->high];
                v[2] = y->frac * (1 - x->frac) * plane[y->high * w + x->low];
                v[3] = y->frac * x->frac * plane[y->high * w + x->high];
            }
            const float top = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
            best = (i == 0 && j == 0) ? top : fmaxf(best, top);
            sum += v[0] + v[1] + v[2] + v[3];
        }
    return take_max ? best : sum / (float)OCT_MAX(ny * nx, 1);
}

/* A region along one axis: where it starts, how long a cell is, samples in each. */
typedef struct extent {
    float start, cell;
    int64_t samples;
} extent;

static oct_status measure(const oct_args *a, float from, float to, int64_t n_cells, extent *e)
{
    const bool half =
        strcmp(oct_node_attr(a->node, "coordinate_transformation_mode")->s, "half_pixel") == 0;
    const float scale = oct_node_attr(a->node, "spatial_scale")->f, offset = half ? 0.5f : 0;
    float size;

    e->start = from * scale - offset;
    size = to * scale - offset - e->start;
    if (!half) size = fmaxf(size, 1); /* at least one element */
    e->cell = size / (float)n_cells;
    e->samples = attr_int(a->node, "sampling_ratio");
    if (e->samples > 0) return OCT_OK;
    if (!(fabsf(e->cell) <= (float)MAX_SAMPLES))
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "a region reaches from %g to %g", (double)from,
                             (double)to);
    e->samples = (int64_t)fmaxf(ceilf(e->cell), 0);
    return OCT_OK;
}

oct_status oct_roi_region_at(const oct_args *a, int64_t r, const oct_type *x, const oct_type *y,
                             oct_roi_region *out)
{
    const int64_t ph = y->dim[2], pw = y->dim[3];
    extent ey, ex;
    float roi[4];

    out->image = oct_tensor_get_i64(a->in[2], r);
    if (out->image < 0 || out->image >= x->dim[0])
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "region %lld is in picture %lld of %lld",
                             (long long)r, (long long)out->image, (long long)x->dim[0]);
    oct_load_f32(a->in[1]->type.dtype, a->in[1]->data, r * 4, 4, roi);
    OCT_TRY(measure(a, roi[0], roi[2], pw, &ex));
    OCT_TRY(measure(a, roi[1], roi[3], ph, &ey));
    out->samples_y = ey.samples;
    out->samples_x = ex.samples;
    out->y = oct_args_scratch(a, (size_t)(ph * ey.samples) + 1, sizeof(*out->y));
    out->x = oct_args_scratch(a, (size_t)(pw * ex.samples) + 1, sizeof(*out->x));
    if (!out->y || !out->x) return OCT_ERR_MEMORY;
    place(ey.start, ey.cell, ph, ey.samples, x->dim[2], out->y);
    place(ex.start, ex.cell, pw, ex.samples, x->dim[3], out->x);
    return OCT_OK;
}

static void run_region(const oct_args *a, const float *x, const oct_roi_region *r, float *out)
{
    const oct_type *xt = &a->in[0]->type, *yt = &a->out[0]->type;
    const int64_t h = xt->dim[2], w = xt->dim[3], ph = yt->dim[2], pw = yt->dim[3];
    const bool take_max = strcmp(a->node->attr[MODE].s, "max") == 0;

    for (int64_t c = 0; c < xt->dim[1]; c++) {
        const float *plane = x + (r->image * xt->dim[1] + c) * h * w;

        for (int64_t i = 0; i < ph; i++)
            for (int64_t j = 0; j < pw; j++)
                *out++ = cell_value(plane, w, r->y + i * r->samples_y, r->samples_y,
                                    r->x + j * r->samples_x, r->samples_x, take_max);
    }
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *y = &a->out[0]->type;
    const int64_t len = oct_type_len(x), piece = oct_type_span(y, 1, 4);
    float *data = oct_args_scratch(a, (size_t)OCT_MAX(len, 1), sizeof(*data));
    float *out = oct_args_scratch(a, (size_t)OCT_MAX(piece, 1), sizeof(*out));

    if (!data || !out) return OCT_ERR_MEMORY;
    if (y->dim[0] > 0 && piece > 0 && len == 0)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "the feature map is empty");
    oct_load_f32(x->dtype, a->in[0]->data, 0, len, data);
    for (int64_t r = 0; r < y->dim[0]; r++) {
        oct_roi_region region;

        OCT_TRY(oct_roi_region_at(a, r, x, y, &region));
        run_region(a, data, &region, out);
        oct_store_f32(y->dtype, a->out[0]->data, r * piece, piece, out);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [COORD] = {"coordinate_transformation_mode", OCT_ATTR_STRING, .def = {.s = "half_pixel"},
               .n_def = 10},
    [MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "avg"}, .n_def = 3},
    [HEIGHT] = {"output_height", OCT_ATTR_INT, .def = {.i = 1}},
    [SAMPLING] = {"sampling_ratio", OCT_ATTR_INT, .def = {.i = 0}},
    [WIDTH] = {"output_width", OCT_ATTR_INT, .def = {.i = 1}},
    [SCALE] = {"spatial_scale", OCT_ATTR_F32, .def = {.f = 1.0f}},
    {0},
};

const oct_op oct_op_roi_align = {
    .name = "RoiAlign",
    .since = 16,
    .min_in = 3,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_roi_align,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
