/* SPDX-License-Identifier: Apache-2.0 */
/* find-gelu: both forms of the Gaussian error linear unit, written out, become Gelu. */
#include <math.h>

#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define SQRT_HALF   0.70710678118654752
#define SQRT_2_PI   0.79788456080286536 /* of 2 / pi */
#define CUBE_FACTOR 0.044715

/* v = scale * x ? */
static bool is_scaled(oct_value *v, const oct_value *x, double scale)
{
    oct_product p;

    return oct_product_of(v, &p) && p.n == 1 && p.factor[0] == x && oct_is_near(p.scale, scale);
}

/* v = 0.044715 * x^power ? */
static bool is_power_term(oct_value *v, const oct_value *x, int power)
{
    const oct_node *n;
    oct_product p;
    double e;
    int left = power;

    if (!oct_product_of(v, &p) || !oct_is_near(p.scale, CUBE_FACTOR)) return false;
    for (int i = 0; i < p.n; i++) {
        n = oct_inner_producer(p.factor[i]);
        if (p.factor[i] == x)
            left -= 1;
        else if (oct_node_is(n, &oct_op_pow) && n->in[0] == x && oct_const_scalar(n->in[1], &e))
            left -= e == 2 || e == 3 ? (int)e : power + 1;
        else
            return false;
    }
    return left == 0;
}

/* v = sqrt(2 / pi) * (x + 0.044715 x^3), or with x taken out: x * (1 + 0.044715 x^2) ? */
static bool is_tanh_argument(oct_value *v, const oct_value *x)
{
    const oct_node *n;
    oct_product p;
    oct_value *other;
    double c;

    if (!oct_product_of(v, &p) || !oct_is_near(p.scale, SQRT_2_PI)) return false;
    if (p.n == 2)
        return (other = oct_product_other(&p, x)) && oct_is_plus(other, &c, &other) && c == 1 &&
               is_power_term(other, x, 2);
    n = p.n == 1 ? oct_inner_producer(p.factor[0]) : NULL;
    if (!oct_node_is(n, &oct_op_add) || n->n_in != 2) return false;
    return (n->in[0] == x && is_power_term(n->in[1], x, 3)) ||
           (n->in[1] == x && is_power_term(n->in[0], x, 3));
}

/* 0.5 * x * (1 + Erf(x / sqrt(2))), or with Tanh of the approximation. */
static oct_value *match(const oct_node *n, bool *is_tanh)
{
    oct_product p;

    if (!oct_product_of_node(n, &p) || p.n != 2 || !oct_is_near(p.scale, 0.5)) return NULL;
    for (int i = 0; i < 2; i++) {
        oct_value *x = p.factor[1 - i], *inner;
        const oct_node *f;
        double c;

        if (!oct_is_plus(p.factor[i], &c, &inner) || c != 1) continue;
        f = oct_inner_producer(inner);
        *is_tanh = oct_node_is(f, &oct_op_tanh);
        if (oct_node_is(f, &oct_op_erf) && is_scaled(f->in[0], x, SQRT_HALF)) return x;
        if (*is_tanh && is_tanh_argument(f->in[0], x)) return x;
    }
    return NULL;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        bool is_tanh;
        oct_value *x = match(n, &is_tanh);
        oct_node *made;

        next = n->next;
        if (!x) continue;
        OCT_TRY(oct_become_unary(n, &oct_op_gelu, x, &made));
        if (is_tanh) OCT_TRY(oct_node_set_str(made, "approximate", "tanh"));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_gelu = {
    .name = "find-gelu",
    .help = "make Gelu of 0.5 * x * (1 + Erf(x / sqrt(2))) and of its Tanh approximation",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .since = 20,
    .in = OCT_IN_ALL,
};
