/* SPDX-License-Identifier: Apache-2.0 */
/* Mod: the remainder with the divisor's sign, or as C's fmod does it. By zero, integers give 0. */
#include <tgmath.h>

#include "op/elementwise.h"
#include "op/grad/rules.h"

enum { FMOD };

/* -1 apart: INT64_MIN % -1 traps. */
static int64_t rest(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

static int64_t floor_rest(int64_t x, int64_t y)
{
    const int64_t r = rest(x, y);

    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

OCT_BINARY_FLOATS(truncated, fmod(x, y))
OCT_BINARY_FN(truncated_i64, int64_t, int64_t, rest(x, y))
OCT_BINARY_FLOATS(floored,
                  fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0) ? fmod(x, y) + y : fmod(x, y))
OCT_BINARY_FN(floored_i64, int64_t, int64_t, floor_rest(x, y))
OCT_BINARY_FN(mod_u64, uint64_t, uint64_t, y == 0 ? 0 : x % y)

static oct_status ref(const oct_args *a)
{
    static const oct_binary c = {truncated_f32, truncated_f64, truncated_i64, mod_u64, false};
    static const oct_binary python = {floored_f32, floored_f64, floored_i64, mod_u64, false};

    return oct_binary_run(a, oct_int(a->node, FMOD) ? &c : &python, NULL);
}

/* z = x - q y with an integer q, which is constant almost everywhere. */
static oct_status grad(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0], *y = a->node->in[1];

    if (a->wanted[0]) a->dx[0] = oct_grad_sum_to(a->b, a->dy[0], x);
    if (a->wanted[1]) {
        oct_value *q = OCT_EMIT2(div, OCT_EMIT2(sub, a->node->out[0], x), y);

        a->dx[1] = oct_grad_sum_to(a->b, OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(round, q)), y);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {[FMOD] = {"fmod", OCT_ATTR_INT, .def.i = 0}, {0}};

const oct_op oct_op_mod = {
    .name = "Mod",
    .since = 10,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = oct_shape_broadcast_numeric,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};
