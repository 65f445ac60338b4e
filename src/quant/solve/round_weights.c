/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding weights so that errors of neighbouring taps cancel. */
#include "quant/solve/round_weights.h"

#include "op/op.h"

int64_t oct_weight_taps(const oct_qpoint *p)
{
    const oct_type *t = &p->value->type;
    const int64_t taps = t->rank > 2 ? oct_type_span(t, 2, t->rank) : 1;

    /* the taps of a transposed convolution go to different pixels */
    if (!p->node || p->node->op != &oct_op_conv || p->role != OCT_QROLE_WEIGHT) return 1;
    return taps <= OCT_MAX_TAPS ? taps : 1;
}

/* Moves the code whose error has this sign and is the largest by one; false: none can be. */
static bool move_one(const oct_qspec *s, int32_t *code, double *error, int64_t n, int sign)
{
    int32_t low, high;
    int64_t best = -1;

    oct_qspec_limits(s, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        if (sign > 0 ? code[i] <= low : code[i] >= high) continue;
        if (error[i] * sign > (best < 0 ? 0 : error[best] * sign)) best = i;
    }
    if (best < 0) return false;
    code[best] -= sign;
    error[best] -= sign;
    return true;
}

/* Of rounding alone. What is clipped is wrong by whole steps: neighbours that made up for those
 * would not be near their own values any more. */
static double rounding_error(const oct_qspec *s, float scale, int32_t zero, float x, int32_t code)
{
    const double error = (double)(code - zero) - (double)(x / scale);
    int32_t low, high;

    oct_qspec_limits(s, &low, &high);
    return (code == low && error > 0.5) || (code == high && error < -0.5) ? 0 : error;
}

void oct_round_weights(const oct_qspec *s, float scale, int32_t zero, const float *x, int32_t *code,
                       int64_t n)
{
    double error[OCT_MAX_TAPS], sum = 0;

    for (int64_t i = 0; i < n; i++)
        code[i] = oct_qspec_code(s, scale, zero, x[i]);
    if (n < 2 || n > OCT_MAX_TAPS) return;
    for (int64_t i = 0; i < n; i++) {
        error[i] = rounding_error(s, scale, zero, x[i], code[i]);
        sum += error[i];
    }
    for (const int sign = sum > 0 ? 1 : -1; sum * sign > 0.5; sum -= sign)
        if (!move_one(s, code, error, n, sign)) return;
}
