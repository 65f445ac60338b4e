/* SPDX-License-Identifier: Apache-2.0 */
/* Activations: which a node is, by its row, and their values. */
#include "op/act.h"

#include <math.h>

bool oct_act_of(const oct_node *n, oct_act *act)
{
    const oct_act_row *row = n->op->act;
    oct_act a;

    if (!row || !n->in[0] || n->in[0]->type.dtype != OCT_DTYPE_F32) return false;
    a = (oct_act){.kind = row->kind};
    if (row->read && !row->read(n, &a)) return false;
    *act = a;
    return true;
}

/* Fused multiplications, so that the last bit is what machines with such an instruction give. */
static float rational_sigmoid(float x)
{
    static const float odd[] = OCT_ACT_LOGISTIC_ODD, even[] = OCT_ACT_LOGISTIC_EVEN;
    const float y = fminf(fmaxf(x, -OCT_ACT_LOGISTIC_LIMIT), OCT_ACT_LOGISTIC_LIMIT);
    float p = odd[0], q = even[0];

    for (size_t i = 1; i < OCT_COUNT(odd); i++)
        p = fmaf(p, y * y, odd[i]);
    for (size_t i = 1; i < OCT_COUNT(even); i++)
        q = fmaf(q, y * y, even[i]);
    return fminf(fmaxf(p * y / q + 0.5f, 0), 1);
}

float oct_act_apply(const oct_act *act, float x)
{
    const float a = act->a, b = act->b;

    switch (act->kind) {
#define OCT_ACT(kind, name, y, y64)                                                                \
    case OCT_ACT_##kind:                                                                           \
        return y;
#include "op/acts.def"
#undef OCT_ACT
    default:
        return x;
    }
}

/* --- in f64 --- */

/* Neither exponential overflows, and small results keep their digits. */
static double logistic(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double normal(double x)
{
    return erfc(-x * 0.70710678118654752440) / 2;
}

static double gelu_tanh(double x)
{
    return tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
}

double oct_act_value(const oct_act *act, double x)
{
    const double a = (double)act->a, b = (double)act->b;

    switch (act->kind) {
#define OCT_ACT(kind, name, y, y64)                                                                \
    case OCT_ACT_##kind:                                                                           \
        return y64;
#include "op/acts.def"
#undef OCT_ACT
    default:
        return x;
    }
}

const char *oct_act_name(oct_act_kind kind)
{
    static const char *const names[OCT_ACT_COUNT] = {
        [OCT_ACT_NONE] = "none",
#define OCT_ACT(kind, name, y, y64) [OCT_ACT_##kind] = name,
#include "op/acts.def"
#undef OCT_ACT
    };

    return names[kind];
}
