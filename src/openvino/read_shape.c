/* SPDX-License-Identifier: Apache-2.0 */
/* What moves, cuts and selects elements, of IR. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

#define IN(i) oct_from_ir_in(r, l, i)

oct_status oct_from_ir_concat(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value **in = oct_arena_array(r->ir.arena, (size_t)l->n_in + 1, sizeof(*in));
    oct_node *n;

    if (!in) return OCT_ERR_MEMORY;
    OCT_TRY(oct_from_ir_need(r, l, 1));
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

    OCT_TRY(oct_from_ir_one(r, l, 1, &axis));
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
    OCT_TRY(oct_from_ir_need(r, l, 2));
    return cut(r, l, NULL, oct_from_ir_int(l, "num_splits", l->n_out));
}

/* Of one length -1: what the others leave. ONNX says it. */
static oct_status fill_length(oct_from_ir *r, const oct_ir_layer *l, const oct_tensor *t,
                              oct_value **out)
{
    const int64_t n = oct_tensor_len(t);
    int64_t axis = 0, length[64], sum = 0, open = -1;
    const oct_value *x = IN(0);

    OCT_TRY(oct_from_ir_one(r, l, 1, &axis));
    if (n != l->n_out || n > (int64_t)OCT_COUNT(length)) return OCT_OK;
    if (axis < 0) axis += x->type.rank;
    for (int64_t i = 0; i < n; i++) {
        length[i] = oct_tensor_get_i64(t, i);
        if (length[i] == -1)
            open = i;
        else if (length[i] < 0 || length[i] > INT32_MAX)
            return OCT_OK; /* Split will say so */
        else
            sum += length[i];
    }
    if (open < 0 || axis < 0 || axis >= x->type.rank) return OCT_OK;
    if (x->type.dim[axis] >= sum)
        length[open] = x->type.dim[axis] - sum;
    else if (l->out[open].type.rank == x->type.rank && l->out[open].type.dim[axis] >= 0)
        length[open] = l->out[open].type.dim[axis]; /* as the file has it */
    *out = oct_ints(&r->b, length, n);
    return r->b.status;
}

oct_status oct_from_ir_variadic_split(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_tensor *t;
    oct_value *lengths = NULL;

    OCT_TRY(oct_from_ir_need(r, l, 3));
    if ((t = oct_from_ir_const(r, l, 2))) OCT_TRY(fill_length(r, l, t, &lengths));
    if (lengths) return cut(r, l, lengths, 0);
    return cut(r, l, oct_from_ir_cast(r, IN(2), OCT_DTYPE_I64), 0);
}

oct_status oct_from_ir_slice(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[5];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 4));
    in[0] = IN(0);
    in[1] = oct_from_ir_cast(r, IN(1), OCT_DTYPE_I64);
    in[2] = oct_from_ir_cast(r, IN(2), OCT_DTYPE_I64);
    in[4] = oct_from_ir_cast(r, IN(3), OCT_DTYPE_I64);
    in[3] = oct_from_ir_cast(r, IN(4), OCT_DTYPE_I64);
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

    OCT_TRY(oct_from_ir_need(r, l, 3));
    for (int i = 1; i < 4 && i < l->n_in; i++)
        OCT_TRY(oct_from_ir_list(r, l, i, v[i], &n[i]));
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

/* Constants, and what dequantizes them. */
static bool is_weight(const oct_value *v)
{
    const oct_node *by = v ? v->producer : NULL;

    if (!v || v->data) return v != NULL;
    return by && oct_node_is(by, &oct_op_dequantize_linear) && by->in[0] && by->in[0]->data;
}

/* Converters compute the groups of weights from their own shape, which the file has as well. */
static bool has_written_shape(const oct_value *x, const oct_value *shape, const oct_ir_layer *l)
{
    const oct_type *to = l->n_out ? &l->out[0].type : NULL;

    return is_weight(x) && shape && !shape->data && to && to->rank > 0 && oct_type_is_static(to) &&
           oct_type_is_static(&x->type) && oct_type_len(to) == oct_type_len(&x->type);
}

oct_status oct_from_ir_reshape(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = has_written_shape(in[0], IN(1), l)
                ? oct_ints(&r->b, l->out[0].type.dim, l->out[0].type.rank)
                : oct_from_ir_as_list(r, IN(1));
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

    OCT_TRY(oct_from_ir_need(r, l, 2));
    OCT_TRY(oct_from_ir_list(r, l, 1, perm, &len));
    n = oct_emit_node(&r->b, &oct_op_transpose, &x, 1, 1);
    if (len) oct_emit_ints(&r->b, n, "perm", perm, len);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_squeeze(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_op *op = strcmp(l->type, "Squeeze") == 0 ? &oct_op_squeeze : &oct_op_unsqueeze;

    OCT_TRY(oct_from_ir_need(r, l, op == &oct_op_squeeze ? 1 : 2));
    return oct_from_ir_done(r, l, 0,
                            oct_emit(&r->b, op, IN(0), oct_from_ir_as_list(r, IN(1)), NULL));
}

oct_status oct_from_ir_broadcast(oct_from_ir *r, const oct_ir_layer *l)
{
    const char *mode = oct_from_ir_str(l, "mode", "numpy");

    OCT_TRY(oct_from_ir_need(r, l, 2));
    if (strcmp(mode, "explicit") == 0 || l->n_in > 2)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read mode %.40s", mode);
    return oct_from_ir_done(
        r, l, 0, oct_emit(&r->b, &oct_op_expand, IN(0), oct_from_ir_as_list(r, IN(1)), NULL));
}

oct_status oct_from_ir_tile(oct_from_ir *r, const oct_ir_layer *l)
{
    OCT_TRY(oct_from_ir_need(r, l, 2));
    return oct_from_ir_done(
        r, l, 0, oct_emit(&r->b, &oct_op_tile, IN(0), oct_from_ir_as_list(r, IN(1)), NULL));
}
