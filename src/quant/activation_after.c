/* SPDX-License-Identifier: Apache-2.0 */
/* The activation that consumes a value. For runtimes without an operator for SiLU it is written
 * out as Sigmoid and Mul. */
#include "quant/activation_after.h"

#include "op/op.h"
#include "pass/rewrite.h"

#define SLOPE_STEP (1.0 / 64)

static bool find_gate(const oct_value *v, const oct_node *gate, const oct_node *mul,
                      oct_following_act *b)
{
    oct_act act;

    if (!oct_node_is(mul, &oct_op_mul) || !oct_act_of(gate, &act)) return false;
    if (gate->in[0] != v || oct_sole_user(gate->out[0]) != mul) return false;
    *b = (oct_following_act){.act = act,
                             .gate = gate->out[0],
                             .result = mul->out[0],
                             .name = act.kind == OCT_ACT_SIGMOID        ? "SiLU"
                                     : act.kind == OCT_ACT_HARD_SIGMOID ? "HardSwish"
                                                                        : "its activation"};
    return true;
}

oct_following_act oct_activation_after(const oct_value *v)
{
    const oct_node *u = oct_sole_user(v);
    oct_following_act b = {.act = {.kind = OCT_ACT_NONE}, .result = v, .name = ""};
    oct_act act;

    if (u && u->in[0] == v && oct_act_of(u, &act))
        return (oct_following_act){.act = act, .result = u->out[0], .name = u->op->name};
    if (v->n_users == 2 && !v->is_output && !find_gate(v, v->users[0], v->users[1], &b))
        (void)find_gate(v, v->users[1], v->users[0], &b);
    return b;
}

double oct_following_act_apply(const oct_following_act *b, double x)
{
    const double y = b->act.kind == OCT_ACT_NONE ? x : (double)oct_act_apply(&b->act, (float)x);

    return b->gate ? x * y : y;
}

double oct_following_act_slope(const oct_following_act *b, double x)
{
    if (b->act.kind == OCT_ACT_NONE) return 1;
    return (oct_following_act_apply(b, x + SLOPE_STEP) -
            oct_following_act_apply(b, x - SLOPE_STEP)) /
           (2 * SLOPE_STEP);
}

bool oct_is_silu(const oct_value *v)
{
    const oct_node *n = v->producer;

    if (oct_node_is(n, &oct_op_swish)) return true;
    if (!oct_node_is(n, &oct_op_mul)) return false;
    for (int i = 0; i < 2; i++) {
        const oct_node *s = n->in[i]->producer;

        if (oct_node_is(s, &oct_op_sigmoid) && s->in[0] == n->in[1 - i]) return true;
    }
    return false;
}
