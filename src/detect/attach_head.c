/* SPDX-License-Identifier: Apache-2.0 */
/* What families emit to decode boxes inside the network: grids, distributions, corners. */
#include "detect/attach.h"

#include <string.h>

#include "op/grad/rules.h"

oct_value *oct_attach_concat(oct_builder *b, int64_t axis, oct_value *const *v, int32_t n)
{
    oct_node *node = oct_emit_node(b, &oct_op_concat, v, n, 1);

    oct_emit_int(b, node, "axis", axis);
    return oct_emitted(b, node);
}

static oct_tensor *new_floats(oct_builder *b, int32_t rank, const int64_t *dims)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    if (!b->status) b->status = oct_tensor_make(b->g->ctx, &type, &t);
    return t;
}

static oct_value *constant(oct_builder *b, oct_tensor *t)
{
    oct_value *v = t ? oct_value_const(b->g, NULL, t) : NULL;

    if (!v && !b->status) b->status = OCT_ERR_MEMORY;
    return v;
}

oct_value *oct_attach_floats(oct_builder *b, int32_t rank, const int64_t *dims, const float *v)
{
    oct_tensor *t = new_floats(b, rank, dims);

    if (t) memcpy(t->data, v, oct_tensor_size(t));
    return constant(b, t);
}

oct_value *oct_attach_corners(oct_builder *b, oct_value *v)
{
    oct_value *centre = oct_grad_part(b, v, 2, 0, 2);
    oct_value *half = oct_grad_scale(b, oct_grad_part(b, v, 2, 2, 4), 0.5);
    oct_value *both[2];

    both[0] = oct_emit(b, &oct_op_sub, centre, half, NULL);
    both[1] = oct_emit(b, &oct_op_add, centre, half, NULL);
    return oct_attach_concat(b, 2, both, 2);
}

oct_value *oct_attach_pixels(oct_builder *b, oct_value *boxes, const oct_reading *r)
{
    const float w = (float)r->width, h = (float)r->height;
    oct_value *most = oct_grad_reduce(b, &oct_op_reduce_max, boxes, (int64_t[]){1, 2}, 2, true);
    oct_value *is_unit = oct_emit(b, &oct_op_less_or_equal, most, oct_scalar(b, 2), NULL);
    oct_value *size = oct_attach_floats(b, 3, (int64_t[]){1, 1, 4}, (float[]){w, h, w, h});
    oct_value *factor = oct_emit(b, &oct_op_where, is_unit, size, oct_scalar(b, 1));

    return oct_emit(b, &oct_op_mul, boxes, factor, NULL);
}

oct_value *oct_attach_scores(oct_builder *b, oct_value *scores, const oct_reading *r)
{
    return r->is_logits ? oct_emit(b, &oct_op_sigmoid, scores, NULL, NULL) : scores;
}

static int64_t cells_of(const oct_reading *r, int32_t stride, int64_t *wide)
{
    *wide = (r->width + stride - 1) / stride;
    return *wide * ((r->height + stride - 1) / stride);
}

static int64_t all_cells(const oct_reading *r)
{
    int64_t n = 0, wide;

    for (int32_t l = 0; l < r->levels.n; l++)
        n += cells_of(r, r->levels.stride[l], &wide);
    return n;
}

oct_value *oct_attach_grid(oct_builder *b, const oct_reading *r, float offset, float shift)
{
    oct_tensor *t = new_floats(b, 3, (int64_t[]){1, all_cells(r), 2});
    float *x = t ? t->data : NULL;

    for (int32_t l = 0; x && l < r->levels.n; l++) {
        const float s = (float)r->levels.stride[l];
        int64_t wide;
        const int64_t n = cells_of(r, r->levels.stride[l], &wide);

        for (int64_t i = 0; i < n; i++) {
            *x++ = ((float)(i % wide) + offset) * s + shift;
            *x++ = ((float)(i / wide) + offset) * s + shift;
        }
    }
    return constant(b, t);
}

oct_value *oct_attach_strides(oct_builder *b, const oct_reading *r)
{
    oct_tensor *t = new_floats(b, 3, (int64_t[]){1, all_cells(r), 1});
    float *x = t ? t->data : NULL;

    for (int32_t l = 0; x && l < r->levels.n; l++) {
        int64_t wide;
        const int64_t n = cells_of(r, r->levels.stride[l], &wide);

        for (int64_t i = 0; i < n; i++)
            *x++ = (float)r->levels.stride[l];
    }
    return constant(b, t);
}

/* The expected value of each distribution, [n, cells, 4]. */
static oct_value *expected(oct_builder *b, oct_value *distances, const oct_reading *r)
{
    const int64_t bins = r->bins, cells = all_cells(r);
    oct_value *shape = oct_ints(b, (int64_t[]){0, cells, 4, bins}, 4), *x, *p;
    oct_tensor *t = new_floats(b, 2, (int64_t[]){bins, 1});
    oct_node *softmax;

    for (int64_t i = 0; t && i < bins; i++)
        ((float *)t->data)[i] = (float)i;
    p = constant(b, t);
    x = oct_emit(b, &oct_op_reshape, distances, shape, NULL);
    softmax = oct_emit_node(b, &oct_op_softmax, &x, 1, 1);
    oct_emit_int(b, softmax, "axis", 3);
    x = oct_emit(b, &oct_op_mat_mul, oct_emitted(b, softmax), p, NULL);
    return oct_emit(b, &oct_op_reshape, x, oct_ints(b, (int64_t[]){0, cells, 4}, 3), NULL);
}

oct_value *oct_attach_dfl(oct_builder *b, oct_value *distances, const oct_reading *r, float shift)
{
    oct_value *x = expected(b, distances, r), *centre = oct_attach_grid(b, r, 0.5f, shift);
    oct_value *both[2];

    x = oct_emit(b, &oct_op_mul, x, oct_attach_strides(b, r), NULL);
    both[0] = oct_emit(b, &oct_op_sub, centre, oct_grad_part(b, x, 2, 0, 2), NULL);
    both[1] = oct_emit(b, &oct_op_add, centre, oct_grad_part(b, x, 2, 2, 4), NULL);
    return oct_attach_concat(b, 2, both, 2);
}

/* [n, cells, k], also of an output without a batch. */
static oct_value *level_output(oct_builder *b, int32_t i)
{
    oct_value *v = b->g->outputs[i];

    if (v->type.rank != 2) return v;
    return oct_emit(b, &oct_op_reshape, v,
                    oct_ints(b, (int64_t[]){1, v->type.dim[0], v->type.dim[1]}, 3), NULL);
}

oct_status oct_attach_levels(oct_builder *b, const oct_reading *r, float shift, oct_head *out)
{
    oct_value *scores[OCT_MAX_LEVELS], *distances[OCT_MAX_LEVELS];

    for (int32_t l = 0; l < r->levels.n; l++) {
        scores[l] = level_output(b, r->level_scores[l]);
        distances[l] = level_output(b, r->level_boxes[l]);
    }
    out->scores = oct_attach_scores(b, oct_attach_concat(b, 1, scores, r->levels.n), r);
    out->boxes = oct_attach_dfl(b, oct_attach_concat(b, 1, distances, r->levels.n), r, shift);
    return b->status;
}
