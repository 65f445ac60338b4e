/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations. */
#include "torch/aten.h"

/* A weight that is not given: one number for each channel. */
static oct_value *channel_default(oct_aten *a, const oct_value *like, int64_t n, double v)
{
    return oct_aten_filled(a, oct_ints(a->b, &n, 1), like->type.dtype, v);
}

static void refuse_training(oct_aten *a, bool is_training)
{
    if (is_training)
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED,
                      "it was exported in training mode; call model.eval() before "
                      "torch.export.export()");
}

/* Without running statistics they are those of x itself, in training and without: timm normalizes
 * weights that way. */
static oct_value *normalize(oct_aten *a, oct_value *x, oct_value *w, oct_value *b)
{
    const int32_t rank = oct_aten_rank(a, x);
    const double eps = oct_aten_f64(a, "eps", 1e-5);
    int64_t axes[OCT_MAX_RANK], dims[OCT_MAX_RANK];
    oct_value *d, *var;
    int n = 0;

    if (a->b->status) return NULL;
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = i == 1 ? -1 : 1;
        if (i != 1) axes[n++] = i;
    }
    d = ATEN2(sub, x, oct_aten_reduce(a, &oct_op_reduce_mean, x, axes, n, true));
    var = oct_aten_reduce(a, &oct_op_reduce_mean, ATEN2(mul, d, d), axes, n, true);
    var = ATEN2(add, var, oct_aten_scalar(a, x->type.dtype, eps));
    d = ATEN2(div, d, ATEN1(sqrt, var));
    if (w) d = ATEN2(mul, d, oct_aten_reshape(a, w, dims, rank));
    return b ? ATEN2(add, d, oct_aten_reshape(a, b, dims, rank)) : d;
}

void oct_aten_batch_norm(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "input"), *w = oct_aten_optional(a, "weight");
    oct_value *b = oct_aten_optional(a, "bias"), *mean = oct_aten_optional(a, "running_mean");
    oct_value *var = oct_aten_optional(a, "running_var");
    oct_node *n;

    if (!mean || !var) {
        a->out[0] = normalize(a, x, w, b);
        return;
    }
    refuse_training(a, oct_aten_bool(a, "training", false));
    if (a->b->status) return;
    if (!w) w = channel_default(a, x, oct_aten_dim(mean, 0), 1);
    if (!b) b = channel_default(a, x, oct_aten_dim(mean, 0), 0);
    n = oct_aten_node(a, &oct_op_batch_normalization, (oct_value *[]){x, w, b, mean, var}, 5, 1);
    oct_emit_f32(a->b, n, "epsilon", (float)oct_aten_f64(a, "eps", 1e-5));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_layer_norm(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "input"), *w = oct_aten_optional(a, "weight");
    oct_value *b = oct_aten_optional(a, "bias");
    int64_t shape[OCT_MAX_RANK];
    const int n_axes = oct_aten_ints(a, "normalized_shape", shape);
    oct_node *n;

    if (a->b->status) return;
    if (!w) w = oct_aten_filled(a, oct_ints(a->b, shape, n_axes), x->type.dtype, 1);
    n = oct_aten_node(a, &oct_op_layer_normalization, (oct_value *[]){x, w, b}, b ? 3 : 2, 1);
    oct_emit_int(a->b, n, "axis", -n_axes);
    oct_emit_f32(a->b, n, "epsilon", (float)oct_aten_f64(a, "eps", 1e-5));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_rms_norm(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "input"), *w = oct_aten_optional(a, "weight");
    int64_t shape[OCT_MAX_RANK];
    const int n_axes = oct_aten_ints(a, "normalized_shape", shape);
    oct_node *n;

    if (a->b->status) return;
    if (!w) w = oct_aten_filled(a, oct_ints(a->b, shape, n_axes), x->type.dtype, 1);
    n = oct_aten_node(a, &oct_op_rms_normalization, (oct_value *[]){x, w}, 2, 1);
    oct_emit_int(a->b, n, "axis", -n_axes);
    oct_emit_f32(a->b, n, "epsilon", (float)oct_aten_f64(a, "eps", 1.1920928955078125e-07));
    a->out[0] = oct_aten_done(a, n);
}

static oct_value *emit_group(oct_aten *a, oct_value *x, int64_t groups)
{
    oct_value *w = oct_aten_optional(a, "weight"), *b = oct_aten_optional(a, "bias");
    const int64_t channels = oct_aten_dim(x, 1);
    oct_node *n;

    if (a->b->status) return NULL;
    if (channels < 1 || groups < 1) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "the number of its channels is not known");
        return NULL;
    }
    if (!w) w = channel_default(a, x, channels, 1);
    if (!b) b = channel_default(a, x, channels, 0);
    n = oct_aten_node(a, &oct_op_group_normalization, (oct_value *[]){x, w, b}, 3, 1);
    oct_emit_int(a->b, n, "num_groups", groups);
    oct_emit_f32(a->b, n, "epsilon", (float)oct_aten_f64(a, "eps", 1e-5));
    return oct_aten_done(a, n);
}

void oct_aten_group_norm(oct_aten *a)
{
    a->out[0] = emit_group(a, oct_aten_tensor(a, "input"), oct_aten_int(a, "num_groups", 1));
}

void oct_aten_native_group_norm(oct_aten *a)
{
    a->out[0] = emit_group(a, oct_aten_tensor(a, "input"), oct_aten_int(a, "group", 1));
}

void oct_aten_instance_norm(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "input");

    if (oct_aten_bool(a, "use_input_stats", true)) {
        a->out[0] = emit_group(a, x, oct_aten_dim(x, 1));
        return;
    }
    oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "InstanceNorm with running statistics");
}

void oct_aten_dropout(oct_aten *a)
{
    const bool is_training = oct_aten_bool(a, "train", false) && oct_aten_f64(a, "p", 0) != 0;

    refuse_training(a, is_training);
    a->out[0] = oct_aten_tensor(a, oct_aten_has(a, "input") ? "input" : "self");
}

/* x / max(norm, eps) is spelt out by normalize(); the norm itself: */
void oct_aten_vector_norm(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const double ord = oct_aten_f64(a, oct_aten_has(a, "p") ? "p" : "ord", 2);
    int64_t axes[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "dim", axes);
    const bool keep = oct_aten_bool(a, "keepdim", false);

    if (ord == 2)
        a->out[0] = oct_aten_reduce(a, &oct_op_reduce_l2, x, axes, n, keep);
    else if (ord == 1)
        a->out[0] = oct_aten_reduce(a, &oct_op_reduce_l1, x, axes, n, keep);
    else if (ord > 1e300)
        a->out[0] = oct_aten_reduce(a, &oct_op_reduce_max, ATEN1(abs, x), axes, n, keep);
    else
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "a norm of order %g", ord);
}
