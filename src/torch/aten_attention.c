/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, spelt out as products and a softmax, which is what quantization works on. */
#include <math.h>

#include "torch/aten.h"

static oct_value *number(oct_aten *a, const oct_value *like, double v)
{
    return like ? oct_aten_scalar(a, like->type.dtype, v) : NULL;
}

/* Row i may see columns 0 to i. */
static oct_value *causal_mask(oct_aten *a, const oct_value *scores)
{
    const int32_t rank = oct_aten_rank(a, scores);
    const int64_t n = oct_aten_dim(scores, rank - 2), m = oct_aten_dim(scores, rank - 1);
    oct_value *ones, *kept;
    oct_node *node;

    if (n < 1 || m < 1) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "a causal mask of a size that is not known");
        return NULL;
    }
    ones = oct_aten_filled(a, oct_aten_ints_of(a, 2, n, m), OCT_DTYPE_BOOL, 1);
    node = oct_aten_node(a, &oct_op_trilu, &ones, 1, 1);
    oct_emit_int(a->b, node, "upper", 0);
    kept = oct_aten_done(a, node);
    return ATEN3(where, kept, number(a, scores, 0), number(a, scores, -HUGE_VAL));
}

/* True in a mask means: is seen. */
static oct_value *given_mask(oct_aten *a, oct_value *mask, const oct_value *scores)
{
    if (!mask || mask->type.dtype != OCT_DTYPE_BOOL) return mask;
    return ATEN3(where, mask, number(a, scores, 0), number(a, scores, -HUGE_VAL));
}

void oct_aten_attention(oct_aten *a)
{
    oct_value *q = oct_aten_tensor(a, "query"), *k = oct_aten_tensor(a, "key");
    oct_value *v = oct_aten_tensor(a, "value"), *mask = oct_aten_optional(a, "attn_mask"), *s;
    const int32_t rank = oct_aten_rank(a, q), rank_k = oct_aten_rank(a, k);
    const int64_t width = oct_aten_dim(q, rank - 1);
    const double scale = oct_aten_f64(a, "scale", width > 0 ? 1 / sqrt((double)width) : 0);

    if (oct_aten_bool(a, "enable_gqa", false) &&
        oct_aten_dim(q, rank - 3) != oct_aten_dim(k, rank_k - 3))
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "heads of queries that share keys (enable_gqa)");
    if (oct_aten_f64(a, "dropout_p", 0) != 0)
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED,
                      "it was exported in training mode; call model.eval() before "
                      "torch.export.export()");
    if (scale == 0 || rank < 2 || rank_k < 2)
        oct_aten_fail(a, OCT_ERR_SHAPE, "the size of its heads is not known");
    if (a->b->status) return;
    s = ATEN2(mat_mul, q, oct_aten_swap(a, k, rank_k - 2, rank_k - 1));
    s = ATEN2(mul, s, number(a, s, scale));
    if (a->b->status) return;
    if (oct_aten_bool(a, "is_causal", false)) s = ATEN2(add, s, causal_mask(a, s));
    if (mask) s = ATEN2(add, s, given_mask(a, mask, s));
    a->out[0] = ATEN2(mat_mul, oct_aten_softmax(a, &oct_op_softmax, s, -1), v);
}
