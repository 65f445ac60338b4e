/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: a copy at inference; in training mode a seeded share of elements is set to zero. */
#include <string.h>

#include "op/random.h"
#include "op/work.h"

enum { SEED };
enum { DATA, RATIO, TRAINING_MODE };

static oct_status check_scalar(const oct_infer *q, int i, unsigned set)
{
    const oct_type *t = oct_infer_in(q, i);

    OCT_TRY(oct_infer_check(q, i, set));
    if (t && oct_type_is_static(t) && oct_type_len(t) != 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d is not one number", i);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, DATA, OCT_SET_FLOAT));
    OCT_TRY(check_scalar(q, RATIO, OCT_SET_FLOAT));
    OCT_TRY(check_scalar(q, TRAINING_MODE, OCT_SET_BOOL));
    OCT_TRY(oct_shape_same(q));
    if (q->node->n_out > 1) {
        q->out[1] = q->out[0];
        q->out[1].dtype = OCT_DTYPE_BOOL;
    }
    return OCT_OK;
}

static oct_status train(const oct_args *a, double ratio)
{
    const float scale = (float)(1 / (1 - ratio));
    const int64_t n = oct_tensor_length(a->in[DATA]);
    oct_tensor *mask = oct_args_out(a, 1);
    const float *x;
    void *out;
    float *y;
    oct_rng r;

    OCT_TRY(oct_work_in_f32(a, DATA, &x));
    OCT_TRY(oct_work_out(a, 0, OCT_WORK_F32, &out));
    y = out;
    oct_random_init(&r, a->node, SEED);
    for (int64_t i = 0; i < n; i++) {
        const bool keep = oct_rng_f64(&r) >= ratio;

        if (y) y[i] = keep ? x[i] * scale : 0;
        if (mask) ((bool *)mask->data)[i] = keep;
    }
    oct_work_done(a, 0, OCT_WORK_F32, out);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *ratio = oct_args_in(a, RATIO), *mode = oct_args_in(a, TRAINING_MODE);
    const double share = ratio ? oct_tensor_get_f64(ratio, 0) : 0.5;
    oct_tensor *y = oct_args_out(a, 0), *mask = oct_args_out(a, 1);

    if (mode && oct_tensor_get_i64(mode, 0) && share != 0) {
        if (!(share > 0 && share < 1))
            return oct_node_fail(a->node, OCT_ERR_ARG, "the ratio is %g, outside [0, 1)", share);
        return train(a, share);
    }
    if (y && y->size > 0) memcpy(y->data, a->in[DATA]->data, y->size);
    if (mask && mask->size > 0) memset(mask->data, 1, mask->size);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {[SEED] = {"seed", OCT_ATTR_INT, .no_default = true}, {0}};

const oct_op oct_op_dropout = {
    .name = "Dropout",
    .since = 12,
    .min_in = 1,
    .max_in = 3,
    .max_out = 2,
    .min_out = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .quant = {.in = {OCT_QROLE_ACT}, .out = OCT_QROLE_AS_INPUT},
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_RANDOM, /* a pass that drops copies must look at training_mode first */
};
