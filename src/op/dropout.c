/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: a copy at inference; in training mode a seeded share of elements is set to zero. */
#include <string.h>

#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/moments.h"
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

/*
 * The Mersenne Twister: with it a seed gives the mask that the standard's reference
 * implementation draws.
 */
enum { TWISTER_LEN = 624 };

typedef struct twister {
    uint32_t s[TWISTER_LEN];
    int at;
} twister;

static void twister_init(twister *t, uint32_t seed)
{
    for (int i = 0; i < TWISTER_LEN; i++) {
        t->s[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + (uint32_t)i + 1;
    }
    t->at = TWISTER_LEN;
}

static uint32_t twister_next(twister *t)
{
    uint32_t y;

    for (int i = 0; t->at == TWISTER_LEN && i < TWISTER_LEN; i++) {
        y = (t->s[i] & 0x80000000u) | (t->s[(i + 1) % TWISTER_LEN] & 0x7fffffffu);
        t->s[i] = t->s[(i + 397) % TWISTER_LEN] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at %= TWISTER_LEN;
    y = t->s[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Uniform in [0, 1). */
static double twister_f64(twister *t)
{
    const uint32_t high = twister_next(t) >> 5, low = twister_next(t) >> 6;

    return (high * 0x1p26 + low) * 0x1p-53;
}

/* The seed; without one, the node's name makes it. */
static uint32_t seed_of(const oct_node *n)
{
    if (oct_has(n, SEED)) return (uint32_t)oct_int(n, SEED);
    return (uint32_t)oct_hash_bytes(n->name, strlen(n->name), 0);
}

static oct_status train(const oct_args *a, double ratio)
{
    const oct_work w = oct_work_of(a->in[DATA]->type.dtype);
    const double exact = 1 / (1 - ratio), scale = w == OCT_WORK_F64 ? exact : (double)(float)exact;
    const int64_t n = oct_tensor_len(a->in[DATA]);
    oct_tensor *mask = oct_args_out(a, 1);
    const void *x;
    void *y;
    twister t;

    OCT_TRY(oct_work_in(a, DATA, w, &x));
    OCT_TRY(oct_work_out(a, 0, w, &y));
    twister_init(&t, seed_of(a->node));
    for (int64_t i = 0; i < n; i++) {
        const bool keep = twister_f64(&t) >= ratio;

        if (y) oct_work_put(w, y, i, keep ? oct_work_get(w, x, i) * scale : 0);
        if (mask) ((bool *)mask->data)[i] = keep;
    }
    oct_work_done(a, 0, w, y);
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

/* Linear in the data: the same mask and factor. */
static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_value *mode = oct_node_in(n, TRAINING_MODE);
    oct_value *mask = oct_node_out(n, 1), *ratio = oct_node_in(n, RATIO), *scale;
    oct_node *g;

    if (!a->dy[0]) return OCT_OK;
    if (!mode || (mode->data && !oct_tensor_get_i64(mode->data, 0))) {
        a->dx[0] = a->dy[0];
        return OCT_OK;
    }
    if (mask && mode->data) {
        const oct_dtype t = a->dy[0]->type.dtype;

        ratio = ratio ? oct_grad_cast(a->b, ratio, t) : oct_grad_number(a, DATA, 0.5);
        scale = OCT_EMIT2(sub, oct_grad_number(a, DATA, 1), ratio);
        scale = OCT_EMIT2(div, oct_grad_cast(a->b, mask, t), scale);
        a->dx[0] = oct_grad_sum_to(a->b, OCT_EMIT2(mul, a->dy[0], scale), n->in[DATA]);
        return OCT_OK;
    }
    g = oct_emit_node(a->b, &oct_op_dropout, (oct_value *[]){a->dy[0], ratio, n->in[TRAINING_MODE]},
                      3, 1);
    oct_emit_int(a->b, g, "seed", seed_of(n));
    a->dx[0] = oct_emitted(a->b, g);
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
    .grad = grad,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_RANDOM, /* not a copy: training_mode may be fed */
    .moves = &oct_moves_dropout,
};
