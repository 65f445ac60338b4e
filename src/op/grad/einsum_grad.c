/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of an Einsum is another Einsum: of the result's gradient and the other operands. */
#include "op/einsum_equation.h"
#include "op/grad/rules.h"

#define MAX_EQUATION 256 /* operands times labels, with separators */

typedef struct grad_equation {
    char text[MAX_EQUATION];
    size_t len;
    oct_value *in[OCT_EINSUM_OPERANDS];
    int n_in;
    char letter[OCT_EINSUM_LABELS]; /* that a label is written as */
    bool is_used[OCT_EINSUM_DOT];
} grad_equation;

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static oct_status fresh_letter(const oct_node *n, grad_equation *g, char *out)
{
    for (int l = 0; l < OCT_EINSUM_DOT; l++)
        if (!g->is_used[l]) {
            g->is_used[l] = true;
            *out = letters[l];
            return OCT_OK;
        }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its gradient needs more labels than there are");
}

static void add_char(grad_equation *g, char c)
{
    if (g->len < MAX_EQUATION - 1) g->text[g->len++] = c;
}

/* One more operand; its labels follow. */
static oct_status add_operand(const oct_node *n, grad_equation *g, oct_value *v)
{
    if (g->n_in == OCT_EINSUM_OPERANDS)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its gradient has more than %d operands",
                             OCT_EINSUM_OPERANDS);
    if (g->n_in) add_char(g, ',');
    g->in[g->n_in++] = v;
    return OCT_OK;
}

/* A constant of ones [n], or a unit matrix [n x n]: it spreads a gradient along one more axis. */
static oct_value *spreader(const oct_grad_args *a, int64_t n, bool is_matrix)
{
    const double one = 1;
    const oct_type type =
        oct_type_make(a->node->out[0]->type.dtype, is_matrix ? 2 : 1, (int64_t[]){n, n});
    oct_value *v = oct_grad_filled(a->b, &type, is_matrix ? 0 : 1);

    for (int64_t i = 0; v && is_matrix && i < n; i++)
        oct_store_f64(type.dtype, v->data->data, i * n + i, 1, &one);
    return v;
}

static oct_status name_labels(const oct_node *n, const oct_einsum *e, grad_equation *g)
{
    for (int l = 0; l < OCT_EINSUM_DOT; l++)
        if (e->n_uses[l]) {
            g->letter[l] = letters[l];
            g->is_used[l] = true;
        }
    for (int l = OCT_EINSUM_DOT; l < OCT_EINSUM_LABELS; l++)
        if (e->n_uses[l]) OCT_TRY(fresh_letter(n, g, &g->letter[l]));
    return OCT_OK;
}

/*
 * Labels of operand k, as those of the gradient's result. One that stands nowhere else is summed:
 * its gradient is the same along it. One that stands twice took a diagonal: only that gets any.
 */
static oct_status result_labels(const oct_grad_args *a, const oct_einsum *e, int k, bool *has,
                                grad_equation *g, char *out)
{
    bool seen[OCT_EINSUM_LABELS] = {false};

    for (int d = 0; d < e->rank[k]; d++) {
        const int l = e->label[k][d];

        out[d] = g->letter[l];
        if (seen[l]) {
            if (a->node->in[k]->type.dim[d] != e->dim[l])
                return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED,
                                     "a diagonal that broadcasts has no gradient");
            OCT_TRY(add_operand(a->node, g, spreader(a, e->dim[l], true)));
            OCT_TRY(fresh_letter(a->node, g, &out[d]));
            add_char(g, g->letter[l]);
            add_char(g, out[d]);
        } else if (!has[l]) {
            OCT_TRY(add_operand(a->node, g, spreader(a, e->dim[l], false)));
            add_char(g, out[d]);
            has[l] = true;
        }
        seen[l] = true;
    }
    return OCT_OK;
}

static oct_status grad_operand(const oct_grad_args *a, const oct_einsum *e, int k)
{
    bool has[OCT_EINSUM_LABELS] = {false};
    grad_equation g = {.len = 0};
    char out[OCT_MAX_RANK];
    oct_node *n;

    OCT_TRY(name_labels(a->node, e, &g));
    OCT_TRY(add_operand(a->node, &g, a->dy[0]));
    for (int i = 0; i < e->n_out; i++) {
        add_char(&g, g.letter[e->out[i]]);
        has[e->out[i]] = true;
    }
    for (int i = 0; i < e->n_in; i++) {
        if (i == k) continue;
        OCT_TRY(add_operand(a->node, &g, a->node->in[i]));
        for (int d = 0; d < e->rank[i]; d++) {
            add_char(&g, g.letter[e->label[i][d]]);
            has[e->label[i][d]] = true;
        }
    }
    OCT_TRY(result_labels(a, e, k, has, &g, out));
    add_char(&g, '-');
    add_char(&g, '>');
    for (int d = 0; d < e->rank[k]; d++)
        add_char(&g, out[d]);
    n = oct_emit_node(a->b, &oct_op_einsum, g.in, g.n_in, 1);
    oct_emit_str(a->b, n, "equation", g.text);
    a->dx[k] = oct_grad_sum_to(a->b, oct_emitted(a->b, n), a->node->in[k]);
    return OCT_OK;
}

oct_status oct_grad_einsum(const oct_grad_args *a)
{
    const oct_type *in[OCT_EINSUM_OPERANDS];
    oct_einsum e;

    for (int i = 0; i < a->node->n_in; i++)
        in[i] = &a->node->in[i]->type;
    OCT_TRY(oct_einsum_read(a->node, in, &e));
    for (int i = 0; i < e.n_in; i++)
        if (a->wanted[i]) OCT_TRY(grad_operand(a, &e, i));
    return OCT_OK;
}
