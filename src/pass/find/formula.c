/* SPDX-License-Identifier: Apache-2.0 */
/* Matching formulas written out in small operators. */
#include "pass/find/formula.h"

#include <math.h>

#include "op/op.h"
#include "pass/rewrite.h"

#define MAX_DEPTH 6

bool oct_is_near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* A scalar that does not change the shape of the other operand. */
static bool number_beside(const oct_value *c, const oct_value *x, double *out)
{
    return c && x && oct_const_scalar(c, out) && oct_keeps_shape(&x->type, &c->type);
}

static bool take_apart(oct_value *v, const oct_node *n, oct_product *p, int depth);

static bool take_operand(oct_value *v, oct_product *p, int depth)
{
    return take_apart(v, oct_inner_producer(v), p, depth + 1);
}

static bool take_apart(oct_value *v, const oct_node *n, oct_product *p, int depth)
{
    double c;

    if (n && depth < MAX_DEPTH && oct_node_is(n, &oct_op_mul) && n->n_in == 2) {
        for (int i = 0; i < 2; i++) {
            if (!number_beside(n->in[i], n->in[1 - i], &c)) continue;
            p->scale *= c;
            return take_operand(n->in[1 - i], p, depth);
        }
        return take_operand(n->in[0], p, depth) && take_operand(n->in[1], p, depth);
    }
    if (n && depth < MAX_DEPTH && oct_node_is(n, &oct_op_div) && n->n_in == 2 &&
        number_beside(n->in[1], n->in[0], &c)) {
        p->scale /= c;
        return take_operand(n->in[0], p, depth);
    }
    if (p->n == OCT_MAX_FACTORS) return false;
    p->factor[p->n++] = v;
    return true;
}

bool oct_product_of_node(const oct_node *n, oct_product *p)
{
    *p = (oct_product){.scale = 1};
    if (n->n_out != 1 || !n->out[0]) return false;
    if (!oct_node_is(n, &oct_op_mul) && !oct_node_is(n, &oct_op_div)) return false;
    return take_apart(n->out[0], n, p, 0);
}

bool oct_product_of(oct_value *v, oct_product *p)
{
    *p = (oct_product){.scale = 1};
    return take_apart(v, oct_inner_producer(v), p, 0);
}

oct_value *oct_product_other(const oct_product *p, const oct_value *x)
{
    if (p->n != 2) return NULL;
    if (p->factor[0] == x) return p->factor[1];
    return p->factor[1] == x ? p->factor[0] : NULL;
}

bool oct_is_plus(const oct_value *v, double *c, oct_value **x)
{
    const oct_node *n = oct_inner_producer(v);
    const bool is_sub = oct_node_is(n, &oct_op_sub);

    if ((!oct_node_is(n, &oct_op_add) && !is_sub) || n->n_in != 2) return false;
    for (int i = 0; i < 2; i++) {
        if ((is_sub && i == 0) || !number_beside(n->in[i], n->in[1 - i], c)) continue;
        if (is_sub) *c = -*c;
        *x = n->in[1 - i];
        return true;
    }
    return false;
}

bool oct_is_clip(const oct_value *v, double lo, double hi, oct_value **x)
{
    const oct_node *n = oct_inner_producer(v);
    double c;

    if (!oct_node_is(n, &oct_op_clip) || n->n_in != 3) return false;
    if (!oct_const_scalar(n->in[1], &c) || c != lo) return false;
    if (!oct_const_scalar(n->in[2], &c) || c != hi) return false;
    *x = n->in[0];
    return true;
}

oct_status oct_become_unary(oct_node *n, const oct_op *op, oct_value *x, oct_node **out)
{
    return oct_node_become(n, op, (oct_value *const[]){x}, 1, out);
}
