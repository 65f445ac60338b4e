/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlignGrad: the gradient of the map that regions are read from (averages only). Regions
 * themselves have no gradient: detectors treat proposals as given. */
#include <string.h>

#include "op/grad/layers.h"
#include "op/grad/rules.h"
#include "op/roi_align.h"
#include "op/work.h"

enum { DY, ROIS, IMAGES };

/* One cell: v to each sample's neighbours. */
static void spread(double *dx, int64_t width, const oct_roi_region *r, int64_t row, int64_t col,
                   double v)
{
    for (int64_t i = row * r->samples_y; i < (row + 1) * r->samples_y; i++)
        for (int64_t j = col * r->samples_x; j < (col + 1) * r->samples_x; j++) {
            const oct_roi_sample *y = &r->y[i], *x = &r->x[j];
            const double fy = (double)y->frac, fx = (double)x->frac;

            if (!y->inside || !x->inside) continue;
            dx[y->low * width + x->low] += (1 - fy) * (1 - fx) * v;
            dx[y->low * width + x->high] += (1 - fy) * fx * v;
            dx[y->high * width + x->low] += fy * (1 - fx) * v;
            dx[y->high * width + x->high] += fy * fx * v;
        }
}

static void run_region(const oct_type *x, const oct_type *y, const oct_roi_region *r,
                       const double *dy, double *dx)
{
    const int64_t n_samples = OCT_MAX(r->samples_y * r->samples_x, 1);

    for (int64_t c = 0; c < x->dim[1]; c++) {
        double *plane = dx + (r->image * x->dim[1] + c) * x->dim[2] * x->dim[3];

        for (int64_t i = 0; i < y->dim[2]; i++)
            for (int64_t j = 0; j < y->dim[3]; j++)
                spread(plane, x->dim[3], r, i, j, *dy++ / (double)n_samples);
    }
}

static oct_status shape(const oct_infer *q)
{
    const oct_attr *s = oct_node_attr(q->node, "shape");
    const oct_type *dy, *rois, *images;
    int64_t cells[2];

    OCT_TRY(oct_infer_need(q, DY, &dy));
    OCT_TRY(oct_infer_need(q, ROIS, &rois));
    OCT_TRY(oct_infer_need(q, IMAGES, &images));
    OCT_TRY(oct_infer_check(q, DY, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, ROIS, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, IMAGES, OCT_SET_INT));
    OCT_TRY(oct_roi_check(q, rois, images));
    if (!s || s->n != 4) return oct_infer_fail(q, OCT_ERR_SHAPE, "shape needs four numbers");
    OCT_TRY(oct_type_of_dims(q->node, dy->dtype, s->is, s->n, &q->out[0]));
    cells[0] = oct_node_attr(q->node, "output_height")->i;
    cells[1] = oct_node_attr(q->node, "output_width")->i;
    if (dy->rank >= 0 &&
        (dy->rank != 4 || (dy->dim[1] >= 0 && dy->dim[1] != s->is[1]) ||
         (dy->dim[2] >= 0 && dy->dim[2] != cells[0]) ||
         (dy->dim[3] >= 0 && dy->dim[3] != cells[1]) ||
         (dy->dim[0] >= 0 && rois->rank == 2 && rois->dim[0] >= 0 && dy->dim[0] != rois->dim[0])))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "dy is not [regions x channels x cells]");
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *y = &a->in[DY]->type, *x = &a->out[0]->type;
    const int64_t piece = oct_type_span(y, 1, 4);
    const double *dy;
    void *dx;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_work_in_f64(a, DY, &dy));
    dx = oct_args_scratch(a, (size_t)oct_type_len(x) + 1, sizeof(double));
    if (!dx) return OCT_ERR_MEMORY;
    for (int64_t r = 0; r < y->dim[0] && oct_type_len(x) > 0; r++) {
        oct_roi_region region;

        OCT_TRY(oct_roi_region_at(a, r, x, y, &region));
        run_region(x, y, &region, dy + r * piece, dx);
    }
    oct_store_f64(x->dtype, a->out[0]->data, 0, oct_type_len(x), dx);
    return OCT_OK;
}

oct_status oct_grad_roi_align(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_node *g;

    if (!a->wanted[0]) return OCT_OK;
    if (strcmp(oct_node_attr(n, "mode")->s, "avg") != 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "it has a gradient only with mode avg");
    g = oct_emit_node(a->b, &oct_op_roi_align_grad,
                      (oct_value *[]){a->dy[0], n->in[ROIS], n->in[IMAGES]}, 3, 1);
    oct_emit_attrs_of(a->b, g, n);
    oct_emit_ints(a->b, g, "shape", n->in[0]->type.dim, 4);
    a->dx[0] = oct_emitted(a->b, g);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    {.name = "coordinate_transformation_mode",
     .kind = OCT_ATTR_STRING,
     .def = {.s = "half_pixel"},
     .n_def = 10},
    {.name = "output_height", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "output_width", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "sampling_ratio", .kind = OCT_ATTR_INT},
    {.name = "shape", .kind = OCT_ATTR_INTS, .required = true}, /* of x */
    {.name = "spatial_scale", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    {0},
};

const oct_op oct_op_roi_align_grad = {
    .name = "RoiAlignGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 3,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
