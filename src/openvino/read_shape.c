/* SPDX-License-Identifier: Apache-2.0 */
/* What moves, cuts and selects elements, of IR. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

#define IN(i) oct_from_ir_in(r, l, i)

static oct_status need(oct_from_ir *r, const oct_ir_layer *l, int32_t n)
{
    return l->n_in >= n ? OCT_OK
                        : oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "%d operands are missing",
                                           (int)(n - l->n_in));
}

/* A constant list of integers, at most OCT_MAX_RANK. */
static oct_status list(oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out, int *n)
{
    const oct_tensor *t = oct_from_ir_const(r, l, i);
    const int64_t len = t ? oct_tensor_len(t) : -1;

    if (len < 0 || len > OCT_MAX_RANK)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "operand %d is not a constant list",
                                (int)i);
    for (int64_t k = 0; k < len; k++)
        out[k] = oct_tensor_get_i64(t, k);
    *n = (int)len;
    return OCT_OK;
}

static oct_status one(oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out)
{
    int64_t v[OCT_MAX_RANK];
    int n = 0;

    OCT_TRY(list(r, l, i, v, &n));
    if (n != 1)
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "operand %d is not one number", (int)i);
    *out = v[0];
    return OCT_OK;
}

/* Shapes and axes are int64 in ONNX. */
static oct_value *wide(oct_from_ir *r, oct_value *v)
{
    oct_node *n;

    if (!v || v->type.dtype == OCT_DTYPE_I64) return v;
    n = oct_emit_node(&r->b, &oct_op_cast, &v, 1, 1);
    oct_emit_int(&r->b, n, "to", OCT_DTYPE_I64);
    return oct_emitted(&r->b, n);
}

/* A list, though IR has a single number. */
static oct_value *as_list(oct_from_ir *r, oct_value *v)
{
    static const int64_t any = -1;

    v = wide(r, v);
    if (!v || v->type.rank != 0) return v;
    return oct_emit(&r->b, &oct_op_reshape, v, oct_ints(&r->b, &any, 1), NULL);
}

oct_status oct_from_ir_concat(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value **in = oct_arena_array(r->ir.arena, (size_t)l->n_in + 1, sizeof(*in));
    oct_node *n;

    if (!in) return OCT_ERR_MEMORY;
    OCT_TRY(need(r, l, 1));
    for (int32_t i = 0; i < l->n_in; i++)
        in[i] = IN(i);
    n = oct_emit_node(&r->b, &oct_op_concat, in, l->n_in, 1);
    oct_emit_int(&r->b, n, "axis", oct_from_ir_int(l, "axis", 0));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

static oct_status cut(oct_from_ir *r, const oct_ir_layer *l, oct_value *lengths, int64_t n_parts)
{
    oct_value *in[2] = {IN(0), lengths};
    int64_t axis = 0;
    oct_node *n;

    OCT_TRY(one(r, l, 1, &axis));
    if (l->n_out < 1) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "no results");
    n = oct_emit_node(&r->b, &oct_op_split, in, lengths ? 2 : 1, l->n_out);
    oct_emit_int(&r->b, n, "axis", axis);
    if (!lengths) oct_emit_int(&r->b, n, "num_outputs", n_parts);
    (void)oct_emitted(&r->b, n);
    for (int32_t i = 0; i < l->n_out && !r->b.status; i++)
        OCT_TRY(oct_from_ir_done(r, l, i, n->out[i]));
    return r->b.status;
}

oct_status oct_from_ir_split(oct_from_ir *r, const oct_ir_layer *l)
{
    OCT_TRY(need(r, l, 2));
    return cut(r, l, NULL, oct_from_ir_int(l, "num_splits", l->n_out));
}

oct_status oct_from_ir_variadic_split(oct_from_ir *r, const oct_ir_layer *l)
{
    OCT_TRY(need(r, l, 3));
    return cut(r, l, wide(r, IN(2)), 0);
}

oct_status oct_from_ir_slice(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[5];
    oct_node *n;

    OCT_TRY(need(r, l, 4));
    in[0] = IN(0);
    in[1] = wide(r, IN(1));
    in[2] = wide(r, IN(2));
    in[4] = wide(r, IN(3));
    in[3] = wide(r, IN(4));
    if (!in[3]) { /* all axes, from the first */
        int64_t axis[OCT_MAX_RANK];
        const int64_t len = in[1]->type.rank == 1 ? in[1]->type.dim[0] : -1;

        if (len < 0 || len > OCT_MAX_RANK)
            return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "the number of axes is not known");
        for (int64_t i = 0; i < len; i++)
            axis[i] = i;
        in[3] = oct_ints(&r->b, axis, len);
    }
    n = oct_emit_node(&r->b, &oct_op_slice, in, 5, 1);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

static bool marked(const int64_t *mask, int n, int i)
{
    return i < n && mask[i];
}

/* Constant begins and ends; masks say which are ignored and which axes vanish or are new. */
oct_status oct_from_ir_strided_slice(oct_from_ir *r, const oct_ir_layer *l)
{
    int64_t v[4][OCT_MAX_RANK], mask[5][OCT_MAX_RANK], starts[OCT_MAX_RANK], ends[OCT_MAX_RANK],
        axes[OCT_MAX_RANK], steps[OCT_MAX_RANK], gone[OCT_MAX_RANK];
    static const char *const names[] = {"begin_mask", "end_mask", "shrink_axis_mask",
                                        "new_axis_mask", "ellipsis_mask"};
    int n[4] = {0}, n_mask[5], n_gone = 0, k = 0;
    oct_value *y, *in[5];
    oct_node *node;

    OCT_TRY(need(r, l, 3));
    for (int i = 1; i < 4 && i < l->n_in; i++)
        OCT_TRY(list(r, l, i, v[i], &n[i]));
    for (int i = 0; i < 5; i++) {
        OCT_TRY(oct_from_ir_ints(r, l, names[i], mask[i], OCT_MAX_RANK, &n_mask[i]));
        for (int m = 0; m < n_mask[i] && i > 2; m++)
            if (mask[i][m])
                return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read %s",
                                        names[i]);
    }
    for (int i = 0; i < n[1] && i < n[2]; i++) {
        const int64_t step = i < n[3] ? v[3][i] : 1;
        const bool all_from = marked(mask[0], n_mask[0], i), all_to = marked(mask[1], n_mask[1], i);

        if (marked(mask[2], n_mask[2], i)) gone[n_gone++] = i;
        if (all_from && all_to && step == 1) continue;
        axes[k] = i;
        steps[k] = step;
        starts[k] = !all_from ? v[1][i] : step > 0 ? 0 : INT64_MAX;
        ends[k] = marked(mask[2], n_mask[2], i) ? (v[1][i] == -1 ? INT64_MAX : v[1][i] + 1)
                  : !all_to                     ? v[2][i]
                  : step > 0                    ? INT64_MAX
                                                : INT64_MIN + 1;
        k++;
    }
    y = IN(0);
    if (k) {
        in[0] = y;
        in[1] = oct_ints(&r->b, starts, k);
        in[2] = oct_ints(&r->b, ends, k);
        in[3] = oct_ints(&r->b, axes, k);
        in[4] = oct_ints(&r->b, steps, k);
        node = oct_emit_node(&r->b, &oct_op_slice, in, 5, 1);
        y = oct_emitted(&r->b, node);
    }
    if (n_gone) y = oct_emit(&r->b, &oct_op_squeeze, y, oct_ints(&r->b, gone, n_gone), NULL);
    if (y == IN(0)) y = oct_emit(&r->b, &oct_op_identity, y, NULL, NULL);
    return oct_from_ir_done(r, l, 0, y);
}

oct_status oct_from_ir_reshape(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(need(r, l, 2));
    in[0] = IN(0);
    in[1] = as_list(r, IN(1));
    n = oct_emit_node(&r->b, &oct_op_reshape, in, 2, 1);
    oct_emit_int(&r->b, n, "allowzero", !oct_from_ir_bool(l, "special_zero", true));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_transpose(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *x = IN(0);
    int64_t perm[OCT_MAX_RANK];
    oct_node *n;
    int len = 0;

    OCT_TRY(need(r, l, 2));
    OCT_TRY(list(r, l, 1, perm, &len));
    n = oct_emit_node(&r->b, &oct_op_transpose, &x, 1, 1);
    if (len) oct_emit_ints(&r->b, n, "perm", perm, len);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_squeeze(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_op *op = strcmp(l->type, "Squeeze") == 0 ? &oct_op_squeeze : &oct_op_unsqueeze;

    OCT_TRY(need(r, l, op == &oct_op_squeeze ? 1 : 2));
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, op, IN(0), as_list(r, IN(1)), NULL));
}

oct_status oct_from_ir_broadcast(oct_from_ir *r, const oct_ir_layer *l)
{
    const char *mode = oct_from_ir_str(l, "mode", "numpy");

    OCT_TRY(need(r, l, 2));
    if (strcmp(mode, "explicit") == 0 || l->n_in > 2)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read mode %.40s", mode);
    return oct_from_ir_done(r, l, 0,
                            oct_emit(&r->b, &oct_op_expand, IN(0), as_list(r, IN(1)), NULL));
}

oct_status oct_from_ir_tile(oct_from_ir *r, const oct_ir_layer *l)
{
    OCT_TRY(need(r, l, 2));
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_tile, IN(0), as_list(r, IN(1)), NULL));
}

oct_status oct_from_ir_pad(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[3];
    oct_node *n;
    const char *mode = oct_from_ir_str(l, "pad_mode", "constant");

    OCT_TRY(need(r, l, 3));
    in[0] = wide(r, IN(1));
    in[1] = wide(r, IN(2));
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

    OCT_TRY(need(r, l, 3));
    OCT_TRY(one(r, l, 2, &axis));
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
        OCT_TRY(list(r, l, which_axes, axes, &n));
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

    OCT_TRY(need(r, l, is_11 ? 2 : 3));
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

    OCT_TRY(need(r, l, 1));
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

static oct_value *cast_to(oct_from_ir *r, oct_value *v, oct_dtype to)
{
    oct_node *n;

    if (!v || v->type.dtype == to) return v;
    n = oct_emit_node(&r->b, &oct_op_cast, &v, 1, 1);
    oct_emit_int(&r->b, n, "to", to);
    return oct_emitted(&r->b, n);
}

oct_status oct_from_ir_shape_of(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "i64"));
    oct_value *y;

    OCT_TRY(need(r, l, 1));
    y = oct_emit(&r->b, &oct_op_shape, IN(0), NULL, NULL);
    return oct_from_ir_done(r, l, 0, cast_to(r, y, to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}

oct_status oct_from_ir_convert(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "destination_type", "?"));
    oct_value *x = IN(0);
    oct_node *n;

    OCT_TRY(need(r, l, 1));
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

    OCT_TRY(need(r, l, 3));
    return oct_from_ir_done(r, l, 0,
                            oct_emit(&r->b, &oct_op_range, cast_to(r, IN(0), to),
                                     cast_to(r, IN(1), to), cast_to(r, IN(2), to)));
}

oct_status oct_from_ir_top_k(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "index_element_type", "i32"));
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(need(r, l, 2));
    in[0] = IN(0);
    in[1] = as_list(r, IN(1));
    n = oct_emit_node(&r->b, &oct_op_top_k, in, 2, 2);
    oct_emit_int(&r->b, n, "axis", oct_from_ir_int(l, "axis", -1));
    oct_emit_int(&r->b, n, "largest", strcmp(oct_from_ir_str(l, "mode", "max"), "min") != 0);
    OCT_TRY(oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n)));
    return oct_from_ir_done(r, l, 1,
                            cast_to(r, n->out[1], to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}

/* Sorted by class, then by score, as ONNX has it. */
oct_status oct_from_ir_nms(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "i64"));
    oct_value *in[5] = {NULL};
    oct_node *n;

    OCT_TRY(need(r, l, 2));
    if (oct_from_ir_bool(l, "sort_result_descending", true))
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED,
                                "octet cannot read results that are sorted across classes");
    for (int32_t i = 0; i < 5 && i < l->n_in; i++)
        in[i] = i == 2 ? as_list(r, IN(i)) : IN(i);
    n = oct_emit_node(&r->b, &oct_op_non_max_suppression, in, l->n_in < 5 ? l->n_in : 5, 1);
    oct_emit_int(&r->b, n, "center_point_box",
                 strcmp(oct_from_ir_str(l, "box_encoding", "corner"), "center") == 0);
    return oct_from_ir_done(
        r, l, 0, cast_to(r, oct_emitted(&r->b, n), to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}
