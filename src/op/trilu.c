/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu: the upper or lower triangle of matrices, zero elsewhere. */
#include "op/grad/rules.h"
#include "op/move.h"

#include <string.h>

enum { UPPER };

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_INT));
    if (x->rank >= 0 && x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, expected 2 or more", (int)x->rank);
    q->out[0] = *x;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    const int64_t cols = x->dim[x->rank - 1], rows = x->dim[x->rank - 2];
    const int64_t total = oct_type_span(x, 0, x->rank - 1);
    const int64_t bound = rows + cols; /* no diagonal is further away */
    const int64_t k = OCT_MAX(-bound, OCT_MIN(oct_read_int(oct_args_in(a, 1), 0), bound));

    if (a->out[0]->size) memset(a->out[0]->data, 0, a->out[0]->size);
    for (int64_t r = 0; r < total; r++) {
        const int64_t diagonal = OCT_MAX(0, OCT_MIN(r % rows + k + !oct_int(a->node, UPPER), cols));

        if (oct_int(a->node, UPPER))
            oct_move_copy(x->dtype, a->in[0]->data, r * cols + diagonal, a->out[0]->data,
                          r * cols + diagonal, cols - diagonal);
        else
            oct_move_copy(x->dtype, a->in[0]->data, r * cols, a->out[0]->data, r * cols, diagonal);
    }
    return OCT_OK;
}

static oct_status grad(const oct_grad_args *a)
{
    oct_node *n = oct_emit_node(
        a->b, &oct_op_trilu, (oct_value *[]){a->dy[0], oct_node_in(a->node, 1)}, a->node->n_in, 1);

    oct_emit_int(a->b, n, "upper", oct_int(a->node, UPPER));
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [UPPER] = {"upper", OCT_ATTR_INT, .def = {.i = 1}},
    {0},
};

const oct_op oct_op_trilu = {
    .name = "Trilu",
    .since = 14,
    .min_in = 1,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
};
