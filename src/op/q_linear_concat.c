/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QLinearConcat: concatenates 8-bit tensors, each requantized to the output's
 * scale. */
#include "op/quant.h"

enum { AXIS };
enum { Y_SCALE, Y_ZERO, FIRST };

static int n_parts(const oct_node *n)
{
    return (n->n_in - FIRST) / 3;
}

/* Adds part x to the type so far. */
static oct_status join(const oct_infer *q, int32_t axis, const oct_type *x, oct_type *out)
{
    char text[2][OCT_TYPE_TEXT_SIZE];

    if (x->rank != out->rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "ranks differ: %d and %d", x->rank, out->rank);
    for (int d = 0; d < x->rank; d++) {
        if (d == axis) {
            if (x->dim[d] < 0 || out->dim[d] < 0)
                out->dim[d] = -1;
            else if (!oct_add_i64(out->dim[d], x->dim[d], &out->dim[d]))
                return oct_infer_fail(q, OCT_ERR_SHAPE, "the result is too large");
        } else if (out->dim[d] < 0) {
            out->dim[d] = x->dim[d];
        } else if (x->dim[d] >= 0 && x->dim[d] != out->dim[d]) {
            return oct_infer_fail(q, OCT_ERR_SHAPE, "%s does not go with %s along axis %d",
                                  oct_type_text(x, text[0]), oct_type_text(out, text[1]), axis);
        }
    }
    return OCT_OK;
}

static oct_status check_part(const oct_infer *q, int i, oct_dtype like, const oct_type **x)
{
    OCT_TRY(oct_infer_need(q, i, x));
    OCT_TRY(oct_infer_check(q, i, OCT_SET_8BIT));
    if ((*x)->dtype != like && (*x)->dtype != OCT_DTYPE_NONE && like != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "operand %d is %s, expected %s", i,
                              oct_dtype_name((*x)->dtype), oct_dtype_name(like));
    OCT_TRY(oct_quant_check_scale(q, i + 1, 0));
    return oct_quant_check_zero(q, i + 2, like, 0);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *zero = NULL, *x = NULL;
    oct_type out = {.rank = -1};
    int32_t axis;

    OCT_TRY(oct_infer_need(q, Y_ZERO, &zero));
    OCT_TRY(oct_infer_check(q, Y_ZERO, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, Y_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, Y_ZERO, zero->dtype, 0));
    if ((q->node->n_in - FIRST) % 3 != 0)
        return oct_infer_fail(q, OCT_ERR_FORMAT, "operands do not come in threes");
    q->out[0] = oct_type_unknown(zero->dtype);
    for (int i = 0; i < n_parts(q->node); i++) {
        OCT_TRY(check_part(q, FIRST + 3 * i, zero->dtype, &x));
        if (x->rank < 0) return OCT_OK;
        OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
        if (i == 0)
            out = *x;
        else
            OCT_TRY(join(q, axis, x, &out));
    }
    out.dtype = zero->dtype;
    q->out[0] = out;
    return OCT_OK;
}

static float same(const void *p, float x)
{
    (void)p;
    return x;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *t = &a->out[0]->type;
    int64_t outer, inner, at = 0;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), t->rank, &axis));
    outer = oct_type_span(t, 0, axis);
    inner = oct_type_span(t, axis, t->rank);
    for (int i = 0; i < n_parts(a->node); i++) {
        const oct_tensor *x = a->in[FIRST + 3 * i];
        const int64_t n = oct_type_span(&x->type, axis, t->rank);
        oct_quant_table table;

        oct_quant_table_init(&table, t->dtype, oct_quant_scale(a, FIRST + 3 * i + 1),
                             oct_quant_zero(a, FIRST + 3 * i + 2), t->dtype,
                             oct_quant_scale(a, Y_SCALE), oct_quant_zero(a, Y_ZERO), same, NULL);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < n; k++)
                ((uint8_t *)a->out[0]->data)[o * inner + at + k] =
                    table.code[((const uint8_t *)x->data)[o * n + k]];
        at += n;
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .no_default = true, .required = true}, {0}};

const oct_op oct_op_q_linear_concat = {
    .name = "QLinearConcat",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 5,
    .max_in = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_CONCAT,
};
