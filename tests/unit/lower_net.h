/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of lowering share: points with scales, and a convolution to lower. */
#ifndef OCT_TESTS_LOWER_NET_H
#define OCT_TESTS_LOWER_NET_H

#include "tests/alloc.h"
#include "tests/unit/quant_net.h"

#include "op/qparams.h"
#include "quant/lower/lower.h"

static const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec s8 = {
    .bits = 8, .is_signed = true, .is_symmetric = true, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec i32 = {.bits = 32, .is_signed = true, .is_symmetric = true, .axis = 0};

/* A point with parameters; n 0: without. */
static inline int32_t point(fixture *f, oct_qmap *m, const oct_qpoint *p, const float *scale,
                            const int32_t *zero, int64_t n)
{
    int32_t at = -1;

    assert_ok(f->ctx, oct_qmap_add(m, p, &at));
    if (n) assert_ok(f->ctx, oct_qpoint_set(m, at, scale, zero, n, "test"));
    return at;
}

static inline int32_t act(fixture *f, oct_qmap *m, const oct_value *v, float scale, int32_t zero)
{
    return point(f, m, &(oct_qpoint){.value = v, .role = OCT_QROLE_ACT, .spec = u8}, &scale, &zero,
                 1);
}

/* Scales of a weight, one for each filter: the largest magnitude is the last code. */
static inline int32_t weight(fixture *f, oct_qmap *m, const oct_value *w)
{
    const int64_t n = w->type.dim[0], inner = oct_type_span(&w->type, 1, w->type.rank);
    oct_qpoint p = {.value = w, .role = OCT_QROLE_WEIGHT, .spec = s8};
    float scale[64];
    int32_t zero[64] = {0};

    p.spec.axis = 0;
    for (int64_t i = 0; i < n; i++) {
        scale[i] = 0;
        for (int64_t k = 0; k < inner; k++)
            scale[i] = fmaxf(scale[i], fabsf(((float *)w->data->data)[i * inner + k]) / 127);
    }
    return point(f, m, &p, scale, zero, n);
}

static inline int32_t bias(fixture *f, oct_qmap *m, const oct_node *n)
{
    return point(f, m,
                 &(oct_qpoint){.value = n->in[2],
                               .node = n,
                               .operand = 2,
                               .role = OCT_QROLE_BIAS,
                               .state = OCT_QSTATE_PASSIVE,
                               .spec = i32},
                 NULL, NULL, 0);
}

static inline int count(const oct_graph *g, const oct_op *op)
{
    int n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += k->op == op;
    return n;
}

static inline oct_graph *lower(fixture *f, const oct_qmap *m, const oct_lower_options *o)
{
    oct_graph *g = NULL;

    assert_ok(f->ctx, oct_lower(m, o, &g));
    return g;
}

static inline oct_qmap *map_for(fixture *f, const char *target)
{
    oct_qmap *m = NULL;

    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named(target), &m));
    return m;
}

static inline oct_tensor *numbers(fixture *f, const oct_type *type, uint64_t seed)
{
    oct_tensor *t = NULL;
    oct_rng rng;

    oct_rng_init(&rng, seed);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, type, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] = (float)(oct_rng_f64(&rng) * 2 - 1);
    return t;
}

/* The first output for this input. */
static inline oct_tensor *eval(fixture *f, const oct_graph *g, oct_tensor *x)
{
    oct_tensor *y[4] = {0};

    assert_ok(f->ctx, oct_graph_eval(g, &x, y, NULL));
    for (int i = 1; i < 4; i++)
        oct_tensor_unref(y[i]);
    return y[0];
}

static inline oct_node *producer_of(oct_value *v, const oct_op *op)
{
    assert_non_null(v->producer);
    if (v->producer->op != op) fail_msg("'%s' is made by %s", v->name, v->producer->op->name);
    return v->producer;
}

/* --- a convolution --- */

typedef struct layer {
    oct_value *x, *y;
    oct_node *conv;
} layer;

static inline layer conv_net(fixture *f, int64_t c_in, int64_t c_out, int64_t group)
{
    oct_rng rng;
    layer n;

    oct_rng_init(&rng, 5);
    n.x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, c_in, 6, 7});
    n.y = conv(f, &rng, n.x, &(conv_case){c_in, c_out, 3, 1, 1, 1, group});
    n.conv = n.y->producer;
    output(f, n.y);
    return n;
}

/* The same layer from values that oct_qspec_fake made. */
static inline void fake_in_place(const oct_qmap *m, int32_t at, oct_tensor *t)
{
    const oct_qpoint *p = &m->points[at];
    const int64_t each = oct_tensor_len(t) / p->n;

    for (int64_t i = 0; i < p->n; i++)
        oct_qspec_fake(&p->spec, p->scale[i], p->zero[i], (float *)t->data + i * each,
                       (float *)t->data + i * each, each);
}

#endif
