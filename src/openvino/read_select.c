/* SPDX-License-Identifier: Apache-2.0 */
/* Padding, gathering, resizing, blocks of pixels, types and the choice of the best, of IR. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

#define IN(i) oct_from_ir_in(r, l, i)

oct_status oct_from_ir_pad(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[3];
    oct_node *n;
    const char *mode = oct_from_ir_str(l, "pad_mode", "constant");

    OCT_TRY(oct_from_ir_need(r, l, 3));
    in[0] = oct_from_ir_cast(r, IN(1), OCT_DTYPE_I64);
    in[1] = oct_from_ir_cast(r, IN(2), OCT_DTYPE_I64);
    n = oct_emit_node(&r->b, &oct_op_concat, in, 2, 1);
    oct_emit_int(&r->b, n, "axis", 0);
    in[1] = oct_emitted(&r->b, n);
    in[0] = IN(0);
    in[2] = IN(3);
    n = oct_emit_node(&r->b, &oct_op_pad, in, in[2] ? 3 : 2, 1);
    if (strcmp(mode, "symmetric") == 0)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read mode symmetric");
    oct_emit_str(&r->b, n, "mode", mode);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_gather(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2] = {IN(0), IN(1)};
    int64_t axis = 0;
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 3));
    OCT_TRY(oct_from_ir_one(r, l, 2, &axis));
    if (oct_from_ir_int(l, "batch_dims", 0))
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read batch_dims");
    n = oct_emit_node(&r->b, &oct_op_gather, in, 2, 1);
    oct_emit_int(&r->b, n, "axis", axis);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

/* --- resizing --- */

/* Numbers for some axes, as ONNX has them for all; the others stay. */
static oct_status resize_operand(oct_from_ir *r, const oct_ir_layer *l, bool by_size, int32_t which,
                                 int32_t which_axes, oct_value **out)
{
    const oct_tensor *t = oct_from_ir_const(r, l, which);
    const oct_type *x = &IN(0)->type;
    int64_t axes[OCT_MAX_RANK], dims[OCT_MAX_RANK], rank = x->rank;
    oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &rank);
    oct_tensor *scales = NULL;
    int n = 0;

    if (which_axes < l->n_in) {
        OCT_TRY(oct_from_ir_list(r, l, which_axes, axes, &n));
    } else {
        for (n = 0; n < rank; n++)
            axes[n] = n;
    }
    if (!t || rank < 0 || oct_tensor_len(t) != n)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "its sizes or scales are not constant");
    OCT_TRY(oct_tensor_make(r->ctx, &type, &scales));
    for (int64_t i = 0; i < rank; i++) {
        dims[i] = x->dim[i];
        ((float *)scales->data)[i] = 1;
    }
    for (int i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        if (axis < 0 || axis >= rank) {
            oct_tensor_unref(scales);
            return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "axis %lld", (long long)axes[i]);
        }
        dims[axis] = by_size ? oct_tensor_get_i64(t, i) : dims[axis];
        if (!by_size) ((float *)scales->data)[axis] = (float)oct_tensor_get_f64(t, i);
    }
    if (!by_size) {
        *out = oct_value_const(r->g, NULL, scales);
        return *out ? OCT_OK : OCT_ERR_MEMORY;
    }
    oct_tensor_unref(scales);
    for (int64_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return oct_from_ir_fail(
                r, l, OCT_ERR_UNSUPPORTED,
                "sizes of some axes are given, and that of axis %d is not known", (int)i);
    *out = oct_ints(&r->b, dims, rank);
    return r->b.status;
}

oct_status oct_from_ir_interpolate(oct_from_ir *r, const oct_ir_layer *l)
{
    const bool is_11 = l->version && strcmp(l->version, "opset11") == 0;
    const bool by_size =
        strcmp(oct_from_ir_str(l, "shape_calculation_mode", "sizes"), "sizes") == 0;
    const char *mode = oct_from_ir_str(l, "mode", "nearest");
    oct_value *in[4] = {NULL};
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, is_11 ? 2 : 3));
    OCT_TRY(resize_operand(r, l, by_size, is_11 || by_size ? 1 : 2, is_11 ? 2 : 3,
                           &in[by_size ? 3 : 2]));
    if (strncmp(mode, "linear", 6) != 0 && strcmp(mode, "nearest") != 0 &&
        strcmp(mode, "cubic") != 0)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read mode %.40s", mode);
    in[0] = IN(0);
    n = oct_emit_node(&r->b, &oct_op_resize, in, by_size ? 4 : 3, 1);
    oct_emit_str(&r->b, n, "mode", mode[0] == 'l' ? "linear" : mode);
    oct_emit_str(&r->b, n, "coordinate_transformation_mode",
                 oct_from_ir_str(l, "coordinate_transformation_mode", "half_pixel"));
    oct_emit_str(&r->b, n, "nearest_mode",
                 oct_from_ir_str(l, "nearest_mode", "round_prefer_floor"));
    oct_emit_int(&r->b, n, "antialias", oct_from_ir_bool(l, "antialias", false));
    oct_emit_f32(&r->b, n, "cubic_coeff_a", (float)oct_from_ir_f64(l, "cube_coeff", -0.75));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

/* --- others --- */

static oct_status blocks(oct_from_ir *r, const oct_ir_layer *l, const oct_op *op, oct_node **out)
{
    oct_value *x = IN(0);

    OCT_TRY(oct_from_ir_need(r, l, 1));
    *out = oct_emit_node(&r->b, op, &x, 1, 1);
    oct_emit_int(&r->b, *out, "blocksize", oct_from_ir_int(l, "block_size", 1));
    return r->b.status;
}

oct_status oct_from_ir_depth_to_space(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = NULL;

    OCT_TRY(blocks(r, l, &oct_op_depth_to_space, &n));
    oct_emit_str(&r->b, n, "mode",
                 strcmp(oct_from_ir_str(l, "mode", ""), "depth_first") == 0 ? "CRD" : "DCR");
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_space_to_depth(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = NULL;

    if (strcmp(oct_from_ir_str(l, "mode", "blocks_first"), "blocks_first") != 0)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet reads mode blocks_first only");
    OCT_TRY(blocks(r, l, &oct_op_space_to_depth, &n));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

/* [.. x C ..] as [.. x group x C / group ..], both exchanged, and back. */
oct_status oct_from_ir_shuffle_channels(oct_from_ir *r, const oct_ir_layer *l)
{
    const int64_t group = oct_from_ir_int(l, "group", 1);
    const oct_type *t = l->n_in ? &IN(0)->type : NULL;
    int64_t axis = oct_from_ir_int(l, "axis", 1), dims[OCT_MAX_RANK + 1], perm[OCT_MAX_RANK + 1];
    oct_value *y;
    oct_node *n;

    if (t && axis < 0) axis += t->rank;
    if (!t || axis < 0 || axis >= t->rank || t->rank == OCT_MAX_RANK || group < 1 ||
        !oct_type_is_static(t) || t->dim[axis] % group)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED,
                                "its shape is not known, or no multiple");
    for (int32_t i = 0; i <= t->rank; i++) {
        dims[i] = i < axis ? t->dim[i] : i > axis ? t->dim[i - 1] : group;
        perm[i] = i;
    }
    dims[axis + 1] = t->dim[axis] / group;
    perm[axis] = axis + 1;
    perm[axis + 1] = axis;
    y = oct_emit(&r->b, &oct_op_reshape, IN(0), oct_ints(&r->b, dims, t->rank + 1), NULL);
    n = oct_emit_node(&r->b, &oct_op_transpose, &y, 1, 1);
    oct_emit_ints(&r->b, n, "perm", perm, t->rank + 1);
    y = oct_emitted(&r->b, n);
    return oct_from_ir_done(
        r, l, 0, oct_emit(&r->b, &oct_op_reshape, y, oct_ints(&r->b, t->dim, t->rank), NULL));
}

oct_status oct_from_ir_shape_of(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "i64"));
    oct_value *y;

    OCT_TRY(oct_from_ir_need(r, l, 1));
    y = oct_emit(&r->b, &oct_op_shape, IN(0), NULL, NULL);
    return oct_from_ir_done(r, l, 0,
                            oct_from_ir_cast(r, y, to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}

oct_status oct_from_ir_convert(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "destination_type", "?"));
    oct_value *x = IN(0);
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 1));
    if (to == OCT_DTYPE_NONE)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "to type %.40s",
                                oct_from_ir_str(l, "destination_type", "?"));
    if (x->data && x->type.dtype == OCT_DTYPE_F16 && to == OCT_DTYPE_F32) { /* decompressed */
        oct_tensor *t = NULL;

        OCT_TRY(oct_tensor_cast(r->ctx, x->data, to, &t));
        return oct_from_ir_done(r, l, 0, oct_value_const(r->g, oct_from_ir_name(r, l->name), t));
    }
    n = oct_emit_node(&r->b, &oct_op_cast, &x, 1, 1);
    oct_emit_int(&r->b, n, "to", to);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_range(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "f32"));

    OCT_TRY(oct_from_ir_need(r, l, 3));
    return oct_from_ir_done(r, l, 0,
                            oct_emit(&r->b, &oct_op_range, oct_from_ir_cast(r, IN(0), to),
                                     oct_from_ir_cast(r, IN(1), to),
                                     oct_from_ir_cast(r, IN(2), to)));
}

oct_status oct_from_ir_top_k(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "index_element_type", "i32"));
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = oct_from_ir_as_list(r, IN(1));
    n = oct_emit_node(&r->b, &oct_op_top_k, in, 2, 2);
    oct_emit_int(&r->b, n, "axis", oct_from_ir_int(l, "axis", -1));
    oct_emit_int(&r->b, n, "largest", strcmp(oct_from_ir_str(l, "mode", "max"), "min") != 0);
    OCT_TRY(oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n)));
    return oct_from_ir_done(
        r, l, 1, oct_from_ir_cast(r, n->out[1], to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}

/* Sorted by class, then by score, as ONNX has it. */
oct_status oct_from_ir_nms(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "i64"));
    oct_value *in[5] = {NULL};
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    if (oct_from_ir_bool(l, "sort_result_descending", true))
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED,
                                "octet cannot read results that are sorted across classes");
    for (int32_t i = 0; i < 5 && i < l->n_in; i++)
        in[i] = i == 2 ? oct_from_ir_as_list(r, IN(i)) : IN(i);
    n = oct_emit_node(&r->b, &oct_op_non_max_suppression, in, l->n_in < 5 ? l->n_in : 5, 1);
    oct_emit_int(&r->b, n, "center_point_box",
                 strcmp(oct_from_ir_str(l, "box_encoding", "corner"), "center") == 0);
    return oct_from_ir_done(
        r, l, 0,
        oct_from_ir_cast(r, oct_emitted(&r->b, n), to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}
