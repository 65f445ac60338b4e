/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, normalizations and reductions as IR. */
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "openvino/write.h"

static oct_ir_at scalar(oct_to_ir *w, const oct_node *n, const char *suffix, double v)
{
    return oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, n->name, suffix), v);
}

/* --- activations --- */

/* Constant limits are a Clamp, others a Maximum and a Minimum. */
oct_status oct_to_ir_clip(oct_to_ir *w, const oct_node *n)
{
    const oct_value *low = oct_node_in(n, 1), *high = oct_node_in(n, 2);
    const oct_type *t = &n->out[0]->type;
    oct_ir_at y;

    if (t->dtype == OCT_DTYPE_F32 && (!low || low->data) && (!high || high->data)) {
        OCT_TRY(oct_to_ir_same(w, n, "Clamp", "opset1", 1));
        oct_ir_attr_f64(&w->ir, "min", low ? oct_tensor_get_f64(low->data, 0) : -3.4028234663e38);
        oct_ir_attr_f64(&w->ir, "max", high ? oct_tensor_get_f64(high->data, 0) : 3.4028234663e38);
        return w->ir.status;
    }
    y = oct_to_ir_in(w, n, 0);
    if (low)
        y = oct_to_ir_binary(w, n, high ? "low" : NULL, "Maximum", y, oct_to_ir_in(w, n, 1), t);
    if (high) y = oct_to_ir_binary(w, n, NULL, "Minimum", y, oct_to_ir_in(w, n, 2), t);
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_leaky_relu(oct_to_ir *w, const oct_node *n)
{
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)};

    in[1] = scalar(w, n, "slope", oct_to_ir_f64(n, "alpha", 0.01));
    return oct_to_ir_done(w, n, 0,
                          oct_to_ir_emit(w, n, NULL, "PReLU", "opset1", in, 2, &n->out[0]->type));
}

/* A slope broadcasts from the right in ONNX; of shape [C] it is taken along axis 1 in IR. */
oct_status oct_to_ir_p_relu(oct_to_ir *w, const oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *s = &n->in[1]->type;
    oct_type to = {.dtype = s->dtype, .rank = x->rank};
    oct_ir_at in[2];

    if (x->rank < 1 || !oct_type_is_static(s))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the shape of its slope is not known");
    for (int32_t i = 0; i < x->rank; i++)
        to.dim[i] = i < x->rank - s->rank ? 1 : s->dim[i - (x->rank - s->rank)];
    in[0] = oct_to_ir_in(w, n, 0);
    in[1] = oct_to_ir_reshaped(w, n, n->in[1], &to);
    return oct_to_ir_done(w, n, 0,
                          oct_to_ir_emit(w, n, NULL, "PReLU", "opset1", in, 2, &n->out[0]->type));
}

oct_status oct_to_ir_elu(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Elu", "opset1", 1));
    oct_ir_attr_f64(&w->ir, "alpha", oct_to_ir_f64(n, "alpha", 1));
    return w->ir.status;
}

oct_status oct_to_ir_round(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "Round", "opset5", 1));
    oct_ir_attr_str(&w->ir, "mode", "half_to_even");
    return w->ir.status;
}

oct_status oct_to_ir_gelu(oct_to_ir *w, const oct_node *n)
{
    const char *kind = oct_to_ir_str(w, n, "approximate", "none");

    OCT_TRY(oct_to_ir_same(w, n, "Gelu", "opset7", 1));
    oct_ir_attr_str(&w->ir, "approximation_mode", strcmp(kind, "tanh") == 0 ? "TANH" : "ERF");
    return w->ir.status;
}

oct_status oct_to_ir_hard_sigmoid(oct_to_ir *w, const oct_node *n)
{
    oct_ir_at in[3] = {oct_to_ir_in(w, n, 0)};

    in[1] = scalar(w, n, "alpha", oct_to_ir_f64(n, "alpha", 0.2));
    in[2] = scalar(w, n, "beta", oct_to_ir_f64(n, "beta", 0.5));
    return oct_to_ir_done(
        w, n, 0, oct_to_ir_emit(w, n, NULL, "HardSigmoid", "opset1", in, 3, &n->out[0]->type));
}

oct_status oct_to_ir_swish(oct_to_ir *w, const oct_node *n)
{
    const double alpha = oct_to_ir_f64(n, "alpha", 1);
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)};

    if (alpha != 1) in[1] = scalar(w, n, "beta", alpha);
    return oct_to_ir_done(
        w, n, 0,
        oct_to_ir_emit(w, n, NULL, "Swish", "opset4", in, alpha != 1 ? 2 : 1, &n->out[0]->type));
}

static oct_status softmax(oct_to_ir *w, const oct_node *n, const char *type, const char *version)
{
    OCT_TRY(oct_to_ir_same(w, n, type, version, 1));
    oct_ir_attr_int(&w->ir, "axis", oct_to_ir_int(n, "axis", -1));
    return w->ir.status;
}

oct_status oct_to_ir_softmax(oct_to_ir *w, const oct_node *n)
{
    return softmax(w, n, "SoftMax", "opset8");
}

oct_status oct_to_ir_log_softmax(oct_to_ir *w, const oct_node *n)
{
    return softmax(w, n, "LogSoftmax", "opset5");
}

/* Max, Min and Sum of any number of operands. */
oct_status oct_to_ir_variadic(oct_to_ir *w, const oct_node *n)
{
    const char *type = oct_node_is(n, &oct_op_max)   ? "Maximum"
                       : oct_node_is(n, &oct_op_min) ? "Minimum"
                                                     : "Add";
    oct_ir_at y = oct_to_ir_in(w, n, 0);

    for (int32_t i = 1; i < n->n_in; i++) {
        char suffix[16];

        (void)snprintf(suffix, sizeof(suffix), "%d", (int)i);
        y = oct_to_ir_binary(w, n, i + 1 < n->n_in ? suffix : NULL, type, y, oct_to_ir_in(w, n, i),
                             &n->out[0]->type);
    }
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_reciprocal(oct_to_ir *w, const oct_node *n)
{
    return oct_to_ir_done(w, n, 0,
                          oct_to_ir_binary(w, n, NULL, "Divide", scalar(w, n, "one", 1),
                                           oct_to_ir_in(w, n, 0), &n->out[0]->type));
}

/* --- normalizations --- */

oct_status oct_to_ir_batch_norm(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "BatchNormInference", "opset5", 5));
    oct_ir_attr_f64(&w->ir, "epsilon", oct_to_ir_f64(n, "epsilon", 1e-5));
    return w->ir.status;
}

/* Mean and variance over these axes, then a factor and a term, which broadcast. */
static oct_status normalize(oct_to_ir *w, const oct_node *n, const int64_t *axes, int64_t n_axes,
                            oct_ir_at factor, oct_ir_at term)
{
    const oct_type *t = &n->out[0]->type;
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)}, y;

    in[1] = oct_to_ir_ints(w, n, "axes", axes, n_axes);
    y = oct_to_ir_emit(w, n, "mvn", "MVN", "opset6", in, 2, t);
    oct_ir_attr_f64(&w->ir, "eps", oct_to_ir_f64(n, "epsilon", 1e-5));
    oct_ir_attr_bool(&w->ir, "normalize_variance", true);
    oct_ir_attr_str(&w->ir, "eps_mode", "INSIDE_SQRT");
    y = oct_to_ir_binary(w, n, term.layer < 0 ? NULL : "scaled", "Multiply", y, factor, t);
    if (term.layer >= 0) y = oct_to_ir_binary(w, n, NULL, "Add", y, term, t);
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_instance_norm(oct_to_ir *w, const oct_node *n)
{
    const int32_t rank = n->in[0]->type.rank;
    oct_type wide = {.dtype = OCT_DTYPE_F32, .rank = rank};
    int64_t axes[OCT_MAX_RANK];

    if (rank < 3 || !oct_type_is_static(&n->in[1]->type))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the shape of its operands is not known");
    for (int32_t i = 0; i < rank; i++)
        wide.dim[i] = i == 1 ? n->in[1]->type.dim[0] : 1;
    for (int32_t i = 2; i < rank; i++)
        axes[i - 2] = i;
    return normalize(w, n, axes, rank - 2, oct_to_ir_reshaped(w, n, n->in[1], &wide),
                     oct_to_ir_reshaped(w, n, n->in[2], &wide));
}

oct_status oct_to_ir_layer_norm(oct_to_ir *w, const oct_node *n)
{
    const int32_t rank = n->in[0]->type.rank;
    int64_t axis = oct_to_ir_int(n, "axis", -1), axes[OCT_MAX_RANK];

    if (rank < 1)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the rank of its input is not known");
    if (axis < 0) axis += rank;
    for (int64_t i = axis; i < rank; i++)
        axes[i - axis] = i;
    return normalize(w, n, axes, rank - axis, oct_to_ir_in(w, n, 1), oct_to_ir_in(w, n, 2));
}

oct_status oct_to_ir_group_norm(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "GroupNormalization", "opset12", 3));
    oct_ir_attr_int(&w->ir, "num_groups", oct_to_ir_int(n, "num_groups", 1));
    oct_ir_attr_f64(&w->ir, "epsilon", oct_to_ir_f64(n, "epsilon", 1e-5));
    return w->ir.status;
}

oct_status oct_to_ir_lrn(oct_to_ir *w, const oct_node *n)
{
    const int64_t channels = 1;
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)}, y;

    in[1] = oct_to_ir_ints(w, n, "axes", &channels, 1);
    y = oct_to_ir_emit(w, n, NULL, "LRN", "opset1", in, 2, &n->out[0]->type);
    oct_ir_attr_f64(&w->ir, "alpha", oct_to_ir_f64(n, "alpha", 1e-4));
    oct_ir_attr_f64(&w->ir, "beta", oct_to_ir_f64(n, "beta", 0.75));
    oct_ir_attr_f64(&w->ir, "bias", oct_to_ir_f64(n, "bias", 1));
    oct_ir_attr_int(&w->ir, "size", oct_to_ir_int(n, "size", 1));
    return oct_to_ir_done(w, n, 0, y);
}

/* --- reductions --- */

oct_status oct_to_ir_reduce(oct_to_ir *w, const oct_node *n)
{
    const bool is_norm = oct_node_is(n, &oct_op_reduce_l1) || oct_node_is(n, &oct_op_reduce_l2);
    const int32_t rank = n->in[0]->type.rank;
    int64_t all[OCT_MAX_RANK];
    oct_ir_at in[2] = {oct_to_ir_in(w, n, 0)}, y;

    if (oct_node_in(n, 1)) {
        in[1] = oct_to_ir_in(w, n, 1);
    } else {
        if (rank < 0 || oct_to_ir_int(n, "noop_with_empty_axes", 0))
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its axes are not known");
        for (int32_t i = 0; i < rank; i++)
            all[i] = i;
        in[1] = oct_to_ir_ints(w, n, "axes", all, rank);
    }
    y = oct_to_ir_emit(w, n, NULL, n->op->name, is_norm ? "opset4" : "opset1", in, 2,
                       &n->out[0]->type);
    oct_ir_attr_bool(&w->ir, "keep_dims", oct_to_ir_int(n, "keepdims", 1) != 0);
    return oct_to_ir_done(w, n, 0, y);
}
