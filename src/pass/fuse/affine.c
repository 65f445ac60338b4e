/* SPDX-License-Identifier: Apache-2.0 */
/* Recognising nodes that scale and shift channels. */
#include "pass/fuse/affine.h"

#include <math.h>

#include "op/op.h"
#include "pass/rewrite.h"

static bool has_channels(const oct_value *x)
{
    return x && x->type.dtype == OCT_DTYPE_F32 && x->type.rank >= 2 && x->type.dim[1] > 0;
}

static oct_status allocate(oct_affine *a, oct_arena *scratch, int64_t channels)
{
    a->channels = channels;
    a->scale = oct_arena_array(scratch, (size_t)channels, sizeof(double));
    a->shift = oct_arena_array(scratch, (size_t)channels, sizeof(double));
    return a->scale && a->shift ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status read_batch_norm(const oct_node *n, oct_arena *scratch, oct_affine *a)
{
    const oct_attr *eps = oct_node_attr(n, "epsilon"), *train = oct_node_attr(n, "training_mode");
    const int64_t channels = n->in[0]->type.dim[1];

    if (!eps || (train && train->i)) return OCT_OK;
    for (int i = 1; i < 5; i++) {
        const oct_tensor *t = oct_node_const(n, i);

        if (!t || !oct_dtype_is_float(t->type.dtype) || oct_tensor_len(t) != channels)
            return OCT_OK;
    }
    for (int32_t i = 1; i < n->n_out; i++)
        if (n->out[i]) return OCT_OK;
    OCT_TRY(allocate(a, scratch, channels));
    for (int64_t c = 0; c < channels; c++) {
        const double gamma = oct_tensor_get_f64(n->in[1]->data, c);
        const double beta = oct_tensor_get_f64(n->in[2]->data, c);
        const double mean = oct_tensor_get_f64(n->in[3]->data, c);
        const double var = oct_tensor_get_f64(n->in[4]->data, c);

        a->scale[c] = gamma / sqrt(var + (double)eps->f);
        a->shift[c] = beta - mean * a->scale[c];
        if (!isfinite(a->scale[c]) || !isfinite(a->shift[c])) return OCT_OK;
    }
    a->x = n->in[0];
    return OCT_OK;
}

/* Does the constant differ by channel at most? *by_channel: it does, else it is one number. */
static bool is_channel_const(const oct_type *x, const oct_type *c, bool *by_channel)
{
    const int channel_at = c->rank - (x->rank - 1); /* where x's axis 1 lies in c */

    *by_channel = false;
    if (!oct_keeps_shape(x, c)) return false;
    for (int i = 0; i < c->rank; i++) {
        if (c->dim[i] == 1) continue;
        if (i != channel_at) return false;
        *by_channel = true;
    }
    return true;
}

static oct_status read_binary(const oct_node *n, oct_arena *scratch, oct_affine *a)
{
    const int at = oct_const_operand(n);
    const oct_value *x = at >= 0 ? n->in[1 - at] : NULL;
    const oct_tensor *c = at >= 0 ? n->in[at]->data : NULL;
    const bool is_sub = oct_node_is(n, &oct_op_sub), is_div = oct_node_is(n, &oct_op_div);
    bool by_channel;

    if (!c || c->type.dtype != OCT_DTYPE_F32 || !has_channels(x)) return OCT_OK;
    if (is_div && at == 0) return OCT_OK; /* c / x */
    if (!is_channel_const(&x->type, &c->type, &by_channel)) return OCT_OK;
    OCT_TRY(allocate(a, scratch, x->type.dim[1]));
    for (int64_t i = 0; i < a->channels; i++) {
        const double e = oct_tensor_get_f64(c, by_channel ? i : 0);

        if (!isfinite(e) || (is_div && (e == 0 || !isfinite(1 / e)))) return OCT_OK;
        if (is_div || oct_node_is(n, &oct_op_mul)) {
            a->scale[i] = is_div ? 1 / e : e;
        } else {
            a->scale[i] = is_sub && at == 0 ? -1 : 1;
            a->shift[i] = is_sub && at == 1 ? -e : e;
        }
    }
    a->x = n->in[1 - at];
    return OCT_OK;
}

oct_status oct_affine_identity(oct_arena *scratch, int64_t channels, oct_affine *out)
{
    *out = (oct_affine){0};
    OCT_TRY(allocate(out, scratch, channels));
    for (int64_t c = 0; c < channels; c++)
        out->scale[c] = 1;
    return OCT_OK;
}

void oct_affine_then(oct_affine *a, const oct_affine *b)
{
    for (int64_t c = 0; c < a->channels; c++) {
        a->scale[c] *= b->scale[c];
        a->shift[c] = a->shift[c] * b->scale[c] + b->shift[c];
    }
}

void oct_affine_after(oct_affine *a, const oct_affine *b)
{
    for (int64_t c = 0; c < a->channels; c++) {
        a->shift[c] += a->scale[c] * b->shift[c];
        a->scale[c] *= b->scale[c];
    }
}

bool oct_affine_shifts(const oct_affine *a)
{
    for (int64_t c = 0; c < a->channels; c++)
        if (a->shift[c] != 0) return true;
    return false;
}

oct_status oct_affine_of(const oct_node *n, oct_arena *scratch, oct_affine *out)
{
    *out = (oct_affine){0};
    if (oct_node_is(n, &oct_op_batch_normalization))
        return n->n_in == 5 && has_channels(n->in[0]) ? read_batch_norm(n, scratch, out) : OCT_OK;
    if (oct_node_is(n, &oct_op_mul) || oct_node_is(n, &oct_op_div) || oct_node_is(n, &oct_op_add) ||
        oct_node_is(n, &oct_op_sub))
        return read_binary(n, scratch, out);
    return OCT_OK;
}
