/* SPDX-License-Identifier: Apache-2.0 */
/* What moves, cuts and selects elements, as IR. */
#include <string.h>

#include "op/op.h"
#include "openvino/write.h"

static oct_ir_at one_int(oct_to_ir *w, const oct_node *n, const char *suffix, int64_t v)
{
    return oct_ir_ints(&w->ir, oct_ir_name(&w->ir, n->name, suffix), &v, 1, true);
}

/* A layer named as the node, with one result. */
static oct_status finish(oct_to_ir *w, const oct_node *n, const char *type, const char *version,
                         const oct_ir_at *in, int32_t n_in)
{
    return oct_to_ir_done(w, n, 0,
                          oct_to_ir_emit(w, n, NULL, type, version, in, n_in, &n->out[0]->type));
}

oct_status oct_to_ir_concat(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Concat", "opset1", n->n_in));
    oct_ir_attr_int(&w->ir, "axis", oct_to_ir_int(n, "axis", 0));
    return w->ir.status;
}

/* Lengths are those of the results where ONNX leaves them out. */
oct_status oct_to_ir_split(oct_to_ir *w, const oct_node *n)
{
    const int64_t axis = oct_to_ir_int(n, "axis", 0);
    const int32_t rank = n->in[0]->type.rank;
    oct_type *out = oct_arena_array(w->ir.arena, (size_t)n->n_out + 1, sizeof(*out));
    int64_t *length = oct_arena_array(w->ir.arena, (size_t)n->n_out + 1, sizeof(*length));
    oct_ir_at in[3] = {oct_to_ir_in(w, n, 0)}, y;

    if (!out || !length) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_out; i++) {
        out[i] = n->out[i] ? n->out[i]->type : oct_type_unknown(OCT_DTYPE_F32);
        length[i] =
            rank > 0 && out[i].rank == rank ? out[i].dim[axis < 0 ? axis + rank : axis] : -1;
        if (!oct_node_in(n, 1) && length[i] < 0)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the sizes of its results are not known");
    }
    in[1] = one_int(w, n, "axis", axis);
    in[2] = oct_node_in(n, 1) ? oct_to_ir_in(w, n, 1)
                              : oct_to_ir_ints(w, n, "lengths", length, n->n_out);
    y = oct_ir_add(&w->ir, n->name, "VariadicSplit", "opset1", in, 3, out, n->n_out);
    for (int32_t i = 0; i < n->n_out; i++)
        OCT_TRY(oct_to_ir_done(w, n, i, (oct_ir_at){y.layer, i}));
    return w->ir.status;
}

/* IR wants steps before axes, and both. */
oct_status oct_to_ir_slice(oct_to_ir *w, const oct_node *n)
{
    const oct_type *starts = &n->in[1]->type;
    const int64_t len = starts->rank == 1 ? starts->dim[0] : -1;
    int64_t one[OCT_MAX_RANK], axis[OCT_MAX_RANK];
    oct_ir_at in[5] = {oct_to_ir_in(w, n, 0), oct_to_ir_in(w, n, 1), oct_to_ir_in(w, n, 2)};

    if (len < 0 || len > OCT_MAX_RANK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the number of its axes is not known");
    for (int64_t i = 0; i < len; i++) {
        one[i] = 1;
        axis[i] = i;
    }
    in[3] = oct_node_in(n, 4) ? oct_to_ir_in(w, n, 4) : oct_to_ir_ints(w, n, "steps", one, len);
    in[4] = oct_node_in(n, 3) ? oct_to_ir_in(w, n, 3) : oct_to_ir_ints(w, n, "axes", axis, len);
    return finish(w, n, "Slice", "opset8", in, 5);
}

oct_status oct_to_ir_reshape(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Reshape", "opset1", 2));
    oct_ir_attr_bool(&w->ir, "special_zero", !oct_to_ir_int(n, "allowzero", 0));
    return w->ir.status;
}

/* [d0 * .. * d(axis-1), the rest]. */
oct_status oct_to_ir_flatten(oct_to_ir *w, const oct_node *n)
{
    const oct_type *t = &n->in[0]->type;
    int64_t axis = oct_to_ir_int(n, "axis", 1), shape[2] = {0, -1};
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)}, y;

    if (t->rank < 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the rank of its input is not known");
    if (axis < 0) axis += t->rank;
    if (axis != 1) { /* 0 copies the first size, known or not */
        shape[0] = 1;
        for (int64_t i = 0; i < axis; i++) {
            if (t->dim[i] < 0)
                return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the size of its input is not known");
            shape[0] *= t->dim[i];
        }
    }
    in[1] = oct_to_ir_ints(w, n, "shape", shape, 2);
    y = oct_to_ir_emit(w, n, NULL, "Reshape", "opset1", in, 2, &n->out[0]->type);
    oct_ir_attr_bool(&w->ir, "special_zero", true);
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_transpose(oct_to_ir *w, const oct_node *n)
{
    const oct_attr *perm = oct_node_attr(n, "perm");
    const int32_t rank = n->in[0]->type.rank;
    int64_t order[OCT_MAX_RANK];
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)};

    if (rank < 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the rank of its input is not known");
    for (int32_t i = 0; i < rank; i++)
        order[i] =
            perm && perm->kind == OCT_ATTR_INTS && perm->n == rank ? perm->is[i] : rank - 1 - i;
    in[1] = oct_to_ir_ints(w, n, "order", order, rank);
    return finish(w, n, "Transpose", "opset1", in, 2);
}

oct_status oct_to_ir_squeeze(oct_to_ir *w, const oct_node *n)
{
    return oct_to_ir_same(w, n, "Squeeze", "opset1", oct_node_in(n, 1) ? 2 : 1);
}

oct_status oct_to_ir_unsqueeze(oct_to_ir *w, const oct_node *n)
{
    return oct_to_ir_same(w, n, "Unsqueeze", "opset1", 2);
}

oct_status oct_to_ir_expand(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Broadcast", "opset3", 2));
    oct_ir_attr_str(&w->ir, "mode", "bidirectional");
    return w->ir.status;
}

oct_status oct_to_ir_tile(oct_to_ir *w, const oct_node *n)
{
    return oct_to_ir_same(w, n, "Tile", "opset1", 2);
}

oct_status oct_to_ir_pad(oct_to_ir *w, const oct_node *n)
{
    const char *mode = oct_to_ir_str(w, n, "mode", "constant");
    const oct_tensor *pads = oct_node_const(n, 1);
    const int32_t rank = n->in[0]->type.rank;
    int64_t begin[OCT_MAX_RANK], end[OCT_MAX_RANK];
    oct_ir_at in[4] = {oct_to_ir_in(w, n, 0)}, y;

    if (!pads || rank < 0 || oct_node_in(n, 3) || oct_tensor_len(pads) != 2 * rank ||
        strcmp(mode, "wrap") == 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet can write it as OpenVINO IR only with constant pads for all "
                             "axes, not wrapped around");
    for (int32_t i = 0; i < rank; i++) {
        begin[i] = oct_tensor_get_i64(pads, i);
        end[i] = oct_tensor_get_i64(pads, rank + i);
    }
    in[1] = oct_to_ir_ints(w, n, "pads_begin", begin, rank);
    in[2] = oct_to_ir_ints(w, n, "pads_end", end, rank);
    if (oct_node_in(n, 2)) in[3] = oct_to_ir_in(w, n, 2);
    y = oct_to_ir_emit(w, n, NULL, "Pad", "opset12", in, oct_node_in(n, 2) ? 4 : 3,
                       &n->out[0]->type);
    oct_ir_attr_str(&w->ir, "pad_mode", mode);
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_gather(oct_to_ir *w, const oct_node *n)
{
    oct_ir_at in[3] = {oct_to_ir_in(w, n, 0), oct_to_ir_in(w, n, 1)}, y;

    in[2] = one_int(w, n, "axis", oct_to_ir_int(n, "axis", 0));
    y = oct_to_ir_emit(w, n, NULL, "Gather", "opset8", in, 3, &n->out[0]->type);
    oct_ir_attr_int(&w->ir, "batch_dims", 0);
    return oct_to_ir_done(w, n, 0, y);
}

/* --- resizing --- */

/* Sizes of the axes that change, where they are known; else scales. */
static oct_status resize_inputs(oct_to_ir *w, const oct_node *n, oct_ir_at in[3], bool *by_size)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;
    const oct_tensor *scales = oct_node_const(n, 2);
    int64_t size[OCT_MAX_RANK], axis[OCT_MAX_RANK], k = 0;
    float factor[OCT_MAX_RANK];
    oct_tensor *t = NULL;
    oct_type type;

    if (x->rank < 2 || y->rank != x->rank || oct_node_attr(n, "axes"))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "octet cannot write it as OpenVINO IR so");
    *by_size = !scales;
    for (int32_t i = 0; i < x->rank; i++) {
        const bool same = scales ? oct_tensor_get_f64(scales, i) == 1 : x->dim[i] == y->dim[i];

        if (same) continue;
        if (!scales && y->dim[i] < 0)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its size is not known");
        axis[k] = i;
        size[k] = y->dim[i];
        factor[k++] = scales ? (float)oct_tensor_get_f64(scales, i) : 1;
    }
    if (!k) { /* nothing changes */
        axis[k] = x->rank - 1;
        size[k] = y->dim[x->rank - 1];
        factor[k++] = 1;
    }
    type = oct_type_make(OCT_DTYPE_F32, 1, &k);
    OCT_TRY(oct_tensor_make(w->ir.ctx, &type, &t));
    memcpy(t->data, factor, (size_t)k * sizeof(*factor));
    in[0] = oct_to_ir_in(w, n, 0);
    if (*by_size) {
        oct_tensor_unref(t);
        in[1] = oct_to_ir_ints(w, n, "sizes", size, k);
    } else {
        in[1] = oct_ir_const(&w->ir, oct_ir_name(&w->ir, n->name, "scales"), t);
    }
    in[2] = oct_to_ir_ints(w, n, "axes", axis, k);
    return w->ir.status;
}

oct_status oct_to_ir_resize(oct_to_ir *w, const oct_node *n)
{
    static const int64_t no_pads[] = {0};
    const char *mode = oct_to_ir_str(w, n, "mode", "nearest");
    const char *position = oct_to_ir_str(w, n, "coordinate_transformation_mode", "half_pixel");
    oct_ir_at in[3], y;
    bool by_size = false;

    if (strcmp(position, "tf_crop_and_resize") == 0 ||
        strcmp(position, "half_pixel_symmetric") == 0 || oct_to_ir_int(n, "exclude_outside", 0))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "OpenVINO IR has no resizing like this");
    OCT_TRY(resize_inputs(w, n, in, &by_size));
    y = oct_to_ir_emit(w, n, NULL, "Interpolate", "opset11", in, 3, &n->out[0]->type);
    oct_ir_attr_str(&w->ir, "mode", strcmp(mode, "linear") == 0 ? "linear_onnx" : mode);
    oct_ir_attr_str(&w->ir, "shape_calculation_mode", by_size ? "sizes" : "scales");
    oct_ir_attr_str(&w->ir, "coordinate_transformation_mode", position);
    oct_ir_attr_str(&w->ir, "nearest_mode",
                    oct_to_ir_str(w, n, "nearest_mode", "round_prefer_floor"));
    oct_ir_attr_bool(&w->ir, "antialias", oct_to_ir_int(n, "antialias", 0) != 0);
    oct_ir_attr_ints(&w->ir, "pads_begin", no_pads, 1);
    oct_ir_attr_ints(&w->ir, "pads_end", no_pads, 1);
    oct_ir_attr_f64(&w->ir, "cube_coeff", oct_to_ir_f64(n, "cubic_coeff_a", -0.75));
    return oct_to_ir_done(w, n, 0, y);
}

/* --- others --- */

oct_status oct_to_ir_depth_to_space(oct_to_ir *w, const oct_node *n)
{
    const char *mode = oct_to_ir_str(w, n, "mode", "DCR");

    OCT_TRY(oct_to_ir_same(w, n, "DepthToSpace", "opset1", 1));
    oct_ir_attr_int(&w->ir, "block_size", oct_to_ir_int(n, "blocksize", 1));
    oct_ir_attr_str(&w->ir, "mode", strcmp(mode, "CRD") == 0 ? "depth_first" : "blocks_first");
    return w->ir.status;
}

oct_status oct_to_ir_space_to_depth(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "SpaceToDepth", "opset1", 1));
    oct_ir_attr_int(&w->ir, "block_size", oct_to_ir_int(n, "blocksize", 1));
    oct_ir_attr_str(&w->ir, "mode", "blocks_first");
    return w->ir.status;
}

oct_status oct_to_ir_shape(oct_to_ir *w, const oct_node *n)
{
    const int64_t start = oct_to_ir_int(n, "start", 0);

    if (start != 0 || oct_node_attr(n, "end"))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "octet cannot write a part of a shape");
    OCT_TRY(oct_to_ir_same(w, n, "ShapeOf", "opset3", 1));
    oct_ir_attr_str(&w->ir, "output_type", "i64");
    return w->ir.status;
}

oct_status oct_to_ir_cast(oct_to_ir *w, const oct_node *n)
{
    const char *to = oct_ir_element(n->out[0]->type.dtype);

    if (!to)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "OpenVINO IR has no %s",
                             oct_dtype_name(n->out[0]->type.dtype));
    OCT_TRY(oct_to_ir_same(w, n, "Convert", "opset1", 1));
    oct_ir_attr_str(&w->ir, "destination_type", to);
    return w->ir.status;
}

oct_status oct_to_ir_where(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Select", "opset1", 3));
    oct_ir_attr_str(&w->ir, "auto_broadcast", "numpy");
    return w->ir.status;
}

oct_status oct_to_ir_identity(oct_to_ir *w, const oct_node *n)
{
    return oct_to_ir_done(w, n, 0, oct_to_ir_in(w, n, 0));
}

oct_status oct_to_ir_top_k(oct_to_ir *w, const oct_node *n)
{
    const oct_type k_type = {.dtype = OCT_DTYPE_I64};
    oct_type out[2] = {n->out[0] ? n->out[0]->type : n->in[0]->type,
                       n->out[1] ? n->out[1]->type : n->in[0]->type};
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)}, y;

    out[1].dtype = OCT_DTYPE_I64;
    in[1] = oct_to_ir_reshaped(w, n, n->in[1], &k_type);
    y = oct_ir_add(&w->ir, n->name, "TopK", "opset11", in, 2, out, 2);
    oct_ir_attr_int(&w->ir, "axis", oct_to_ir_int(n, "axis", -1));
    oct_ir_attr_str(&w->ir, "mode", oct_to_ir_int(n, "largest", 1) ? "max" : "min");
    oct_ir_attr_str(&w->ir, "sort", oct_to_ir_int(n, "sorted", 1) ? "value" : "none");
    oct_ir_attr_str(&w->ir, "index_element_type", "i64");
    oct_ir_attr_bool(&w->ir, "stable", true);
    OCT_TRY(oct_to_ir_done(w, n, 0, y));
    return oct_to_ir_done(w, n, 1, (oct_ir_at){y.layer, 1});
}

/* Numbers that ONNX leaves out have defaults; they are scalars in IR. */
static oct_ir_at nms_number(oct_to_ir *w, const oct_node *n, int32_t i, const char *suffix,
                            oct_dtype dtype)
{
    const oct_type scalar = {.dtype = dtype};

    if (oct_node_in(n, i)) return oct_to_ir_reshaped(w, n, n->in[i], &scalar);
    return dtype == OCT_DTYPE_I64 ? one_int(w, n, suffix, 0)
                                  : oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, n->name, suffix), 0);
}

oct_status oct_to_ir_nms(oct_to_ir *w, const oct_node *n)
{
    const oct_type out[3] = {n->out[0]->type, oct_type_unknown(OCT_DTYPE_F32),
                             oct_type_make(OCT_DTYPE_I64, 1, (int64_t[]){1})};
    oct_ir_at in[5] = {oct_to_ir_in(w, n, 0), oct_to_ir_in(w, n, 1)}, y;

    in[2] = nms_number(w, n, 2, "max_output_boxes", OCT_DTYPE_I64);
    in[3] = nms_number(w, n, 3, "iou_threshold", OCT_DTYPE_F32);
    in[4] = nms_number(w, n, 4, "score_threshold", OCT_DTYPE_F32);
    y = oct_ir_add(&w->ir, n->name, "NonMaxSuppression", "opset9", in, 5, out, 3);
    oct_ir_attr_str(&w->ir, "box_encoding",
                    oct_to_ir_int(n, "center_point_box", 0) ? "center" : "corner");
    oct_ir_attr_bool(&w->ir, "sort_result_descending", false);
    oct_ir_attr_str(&w->ir, "output_type", "i64");
    return oct_to_ir_done(w, n, 0, y);
}
