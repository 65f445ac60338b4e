/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of shifters. An NPU with power-of-two scales 2^-p requantizes by shifting, and its
 * shifters have a limited width (the limits are those of AMD's DPU and NPU). Where the best
 * exponents do not fit the shifter, the finer of the two scales gets coarser: that loses bits which
 * the shift would lose anyway.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "quant/activation_after.h"
#include "quant/solve/solve.h"

enum {
    MOST_ROUNDS = 5, /* a change may break a limit elsewhere */
    SUM_INPUTS = 7,  /* exponents of a sum's operands differ by no more */
    SUM_LOW = -7,    /* sums: coarsest operand - result */
    SUM_HIGH = 25,
    PRODUCT_HIGH = 32, /* products of activations: sum of operands - result; at least 0 */
    CUT_HIGH = 16,     /* layers: input + weight - result; at least 0 */
    BIAS_HIGH = 15,    /* layers: input + weight - bias */
    SUM_BITS = 16      /* that a bias may be shifted by, together with the shift to the result */
};

typedef struct shifts {
    oct_qmap *m;
    oct_arena *a;
    float **scale; /* by point: its scales, changed; NULL: as they are in the qmap */
    bool is_changed;
    oct_status failed; /* the first failure */
} shifts;

static const oct_qpoint *decider(const shifts *s, int32_t point)
{
    const oct_qpoint *p = point < 0 ? NULL : &s->m->points[point];

    if (!p || p->state == OCT_QSTATE_OFF) return NULL;
    p = oct_qmap_root(s->m, point);
    return p->n > 0 && p->spec.is_pow2 ? p : NULL;
}

static const oct_qpoint *input_of(const shifts *s, const oct_node *n, int32_t i)
{
    return i < n->n_in && n->in[i] ? decider(s, oct_qmap_at(s->m, n, i)) : NULL;
}

/* The point of a node's result, or of the activation that is fused with it. */
static const oct_qpoint *result_of(const shifts *s, const oct_node *n)
{
    const oct_value *v = n->out[0];

    if (s->m->of_value[v->id] < 0) v = oct_activation_after(v).result;
    return decider(s, s->m->of_value[v->id]);
}

/* p of the scale 2^-p; for channel k, or the one for all. */
static int exponent(const shifts *s, const oct_qpoint *p, int64_t k)
{
    const float *changed = s->scale[p - s->m->points];

    return -ilogbf((changed ? changed : p->scale)[p->n > 1 ? k % p->n : 0]);
}

static void set_exponent(shifts *s, const oct_qpoint *p, int64_t k, int e)
{
    float **changed = &s->scale[p - s->m->points];

    if (!*changed) {
        *changed = oct_arena_array(s->a, (size_t)p->n, sizeof(float));
        if (!*changed) {
            s->failed = OCT_ERR_MEMORY;
            return;
        }
        memcpy(*changed, p->scale, (size_t)p->n * sizeof(float));
    }
    (*changed)[p->n > 1 ? k % p->n : 0] = ldexpf(1.0f, -e);
    s->is_changed = true;
}

static int64_t channels_of(const oct_qpoint *a, const oct_qpoint *b, const oct_qpoint *c)
{
    return OCT_MAX(OCT_MAX(a->n, b->n), c->n);
}

static void fit_sum(shifts *s, const oct_node *n)
{
    const oct_qpoint *a = input_of(s, n, 0), *b = input_of(s, n, 1), *y = result_of(s, n);

    if (!a || !b || !y) return;
    for (int64_t k = 0; k < channels_of(a, b, y); k++) {
        int low = OCT_MIN(exponent(s, a, k), exponent(s, b, k));

        if (exponent(s, a, k) > low + SUM_INPUTS) set_exponent(s, a, k, low + SUM_INPUTS);
        if (exponent(s, b, k) > low + SUM_INPUTS) set_exponent(s, b, k, low + SUM_INPUTS);
        if (low - exponent(s, y, k) < SUM_LOW) set_exponent(s, y, k, low - SUM_LOW);
        if (low - exponent(s, y, k) > SUM_HIGH) set_exponent(s, y, k, low - SUM_HIGH);
    }
}

static void fit_product(shifts *s, const oct_node *n)
{
    const oct_qpoint *a = input_of(s, n, 0), *b = input_of(s, n, 1), *y = result_of(s, n);

    if (!a || !b || !y) return;
    for (int64_t k = 0; k < channels_of(a, b, y); k++) {
        const int whole = exponent(s, a, k) + exponent(s, b, k);

        if (whole < exponent(s, y, k)) set_exponent(s, y, k, whole);
        if (whole - exponent(s, y, k) > PRODUCT_HIGH) set_exponent(s, y, k, whole - PRODUCT_HIGH);
    }
}

/* Exponent of a layer's accumulator: input plus weight. */
static int unit(const shifts *s, const oct_qpoint *x, const oct_qpoint *w, int64_t k)
{
    return exponent(s, w, k) + (w->fold ? -ilogbf(w->fold_scale) : exponent(s, x, k));
}

/* A result finer than its accumulator gains nothing; an accumulator much finer than its result or
 * its bias does not fit the shifter. */
static void fit_layer(shifts *s, const oct_node *n)
{
    const oct_qpoint *x = input_of(s, n, 0), *w = input_of(s, n, 1), *y = result_of(s, n);
    const oct_qpoint *b = input_of(s, n, 2);

    if (!x || !w || !y) return;
    for (int64_t k = 0; k < channels_of(x, w, y); k++) {
        const int cut = unit(s, x, w, k) - exponent(s, y, k);

        if (cut < 0) set_exponent(s, y, k, exponent(s, y, k) + cut);
        if (cut > CUT_HIGH) set_exponent(s, w, k, exponent(s, w, k) - (cut - CUT_HIGH));
    }
    for (int64_t k = 0; b && k < channels_of(x, w, b); k++) {
        const int above = unit(s, x, w, k) - exponent(s, b, k);
        const int low = OCT_MIN(0, unit(s, x, w, k) - exponent(s, y, k) - SUM_BITS);

        if (above < low) set_exponent(s, b, k, unit(s, x, w, k) - low);
        if (above > BIAS_HIGH) set_exponent(s, w, k, exponent(s, w, k) - (above - BIAS_HIGH));
    }
}

static const struct {
    const oct_op *op;
    void (*fit)(shifts *s, const oct_node *n);
} rules[] = {
    {&oct_op_add, fit_sum},       {&oct_op_sub, fit_sum},    {&oct_op_mul, fit_product},
    {&oct_op_conv, fit_layer},    {&oct_op_gemm, fit_layer}, {&oct_op_conv_transpose, fit_layer},
    {&oct_op_mat_mul, fit_layer},
};

static oct_status fit_all(shifts *s)
{
    for (int round = 0; round < MOST_ROUNDS && s->is_changed; round++) {
        s->is_changed = false;
        for (const oct_node *n = s->m->g->first; n; n = n->next)
            for (size_t i = 0; i < OCT_COUNT(rules); i++)
                if (oct_node_is(n, rules[i].op)) rules[i].fit(s, n);
    }
    OCT_TRY(s->failed);
    for (int32_t i = 0; i < s->m->n_points; i++) {
        const oct_qpoint *p = &s->m->points[i];

        if (s->scale[i]) OCT_TRY(oct_qpoint_set(s->m, i, s->scale[i], p->zero, p->n, "NPU shift"));
    }
    return OCT_OK;
}

oct_status oct_npu_shifts(oct_qmap *m)
{
    shifts s = {.m = m, .a = oct_arena_new(m->ctx), .is_changed = true};
    oct_status st = OCT_ERR_MEMORY;

    if (s.a) s.scale = oct_arena_array(s.a, (size_t)m->n_points + 1, sizeof(*s.scale));
    if (s.scale) st = fit_all(&s);
    oct_arena_free(s.a);
    return st;
}
