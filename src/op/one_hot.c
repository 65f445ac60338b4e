/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot: a new axis that is `on` at the index and `off` everywhere else. */
#include "op/move.h"

enum { AXIS };

static oct_status shape(const oct_infer *q)
{
    const oct_tensor *depth = oct_infer_data(q, 1);
    const oct_type *ix, *t, *values;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &ix));
    OCT_TRY(oct_infer_need(q, 1, &t));
    OCT_TRY(oct_infer_need(q, 2, &values));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_movable(q, 2));
    oct_type y = oct_type_unknown(values->dtype);
    q->out[0] = y;
    if (ix->rank < 0) return OCT_OK;
    if (ix->rank == OCT_MAX_RANK)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "the result's rank is above %d",
                              OCT_MAX_RANK);
    if (values->rank >= 0 && (values->rank != 1 || (values->dim[0] >= 0 && values->dim[0] != 2)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "values must be [off, on]");
    y.rank = ix->rank + 1;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), y.rank, &axis));
    for (int32_t d = 0, from = 0; d < y.rank; d++)
        y.dim[d] = d == axis ? -1 : ix->dim[from++];
    if (depth) {
        y.dim[axis] = oct_read_int(depth, -1);
        if (oct_tensor_len(depth) != 1 || y.dim[axis] < 0)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "depth %lld", (long long)y.dim[axis]);
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *ix = &a->in[0]->type, *y = &a->out[0]->type;
    const int64_t depth = oct_read_int(a->in[1], 0);
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), y->rank, &axis));
    if (y->dim[axis] != depth || oct_tensor_len(a->in[2]) != 2)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "depth %lld does not fit", (long long)depth);
    oct_move_fill(y->dtype, a->in[2]->data, 0, a->out[0]->data, oct_type_len(y), a->n_threads);
    const int64_t inner = oct_type_span(y, axis + 1, y->rank);
    for (int64_t i = 0, n = oct_type_len(ix); i < n; i++) {
        int64_t v;

        oct_load_i64(ix->dtype, a->in[0]->data, i, 1, &v);
        if (v < -depth || v >= depth) continue; /* all off */
        if (v < 0) v += depth;
        oct_move_copy(y->dtype, a->in[2]->data, 1, a->out[0]->data,
                      (i / inner * depth + v) * inner + i % inner, 1);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = -1}},
    {0},
};

const oct_op oct_op_one_hot = {
    .name = "OneHot",
    .since = 9,
    .min_in = 3,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
