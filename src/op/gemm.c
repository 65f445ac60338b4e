/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm: y = alpha * a * b + beta * c, c broadcast; com.microsoft's FusedGemm adds an activation. */
#include <string.h>

#include "op/act.h"
#include "op/grad/mat_mul_grad.h"
#include "op/mm.h"
#include "op/recurrent.h"

enum { ALPHA, BETA, TRANS_A, TRANS_B };

typedef struct dims {
    int64_t m, n, k;
} dims;

static oct_status read_dims(const oct_node *n, const oct_type *a, const oct_type *b, dims *d)
{
    const int ta = oct_int(n, TRANS_A) != 0, tb = oct_int(n, TRANS_B) != 0;
    int64_t kb = -1;

    *d = (dims){-1, -1, -1};
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return oct_node_fail(n, OCT_ERR_SHAPE, "operands have %d and %d dims, 2 are needed",
                             a->rank, b->rank);
    if (a->rank == 2) d->m = a->dim[ta], d->k = a->dim[1 - ta];
    if (b->rank == 2) kb = b->dim[tb], d->n = b->dim[1 - tb];
    if (d->k >= 0 && kb >= 0 && d->k != kb)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld columns on the left, %lld rows on the right",
                             (long long)d->k, (long long)kb);
    return OCT_OK;
}

static oct_status check_c(const oct_infer *q, const oct_type *y)
{
    const oct_type *c = oct_infer_in(q, 2);
    oct_type both = *y;

    if (!c || c->rank < 0) return OCT_OK;
    OCT_TRY(oct_broadcast(q->node, y, c, &both));
    for (int i = 0; i < 2; i++) /* c may be broadcast to the product, never the other way round */
        if (both.rank > 2 || (y->dim[i] >= 0 && both.dim[i] >= 0 && both.dim[i] != y->dim[i]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "c does not fit the product");
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *a, *b;
    dims d;

    OCT_TRY(oct_infer_need(q, 0, &a));
    OCT_TRY(oct_infer_need(q, 1, &b));
    for (int i = 0; i < 3; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET_NUMERIC));
    OCT_TRY(read_dims(q->node, a, b, &d));
    q->out[0] = oct_type_make(a->dtype, 2, (int64_t[]){d.m, d.n});
    return check_c(q, &q->out[0]);
}

#define DEFINE_FINISH(T, name)                                                                     \
    static void finish_##name(const dims *d, T alpha, T beta, T *y, const T *c, int64_t c_row,     \
                              int64_t c_col)                                                       \
    {                                                                                              \
        for (int64_t i = 0; i < d->m; i++)                                                         \
            for (int64_t j = 0; j < d->n; j++) {                                                   \
                const T add = c ? c[i * c_row + j * c_col] : 0;                                    \
                                                                                                   \
                y[i * d->n + j] = alpha * y[i * d->n + j] + beta * add;                            \
            }                                                                                      \
    }

DEFINE_FINISH(float, f32)
DEFINE_FINISH(double, f64)

/* Integers are scaled as reals and cut: sums wrap, and a scale that does not fit gives 0. */
static uint64_t scale_int(double by, uint64_t x)
{
    const double y = by * (double)(int64_t)x;

    return y > -0x1p63 && y < 0x1p63 ? (uint64_t)(int64_t)y : 0;
}

static void finish_i64(const dims *d, double alpha, double beta, uint64_t *y, const uint64_t *c,
                       int64_t c_row, int64_t c_col)
{
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < d->n; j++) {
            uint64_t *p = &y[i * d->n + j];
            const uint64_t add = c ? c[i * c_row + j * c_col] : 0;

            if (alpha != 1) *p = scale_int(alpha, *p);
            *p += beta != 1 ? scale_int(beta, add) : add;
        }
}

static void finish(const oct_args *a, const dims *d, oct_work w, void *y, const void *c)
{
    const oct_type *tc = c ? &a->in[2]->type : NULL;
    const int64_t cols = tc && tc->rank > 0 ? tc->dim[tc->rank - 1] : 1;
    const int64_t c_row = tc && tc->rank == 2 && tc->dim[0] > 1 ? cols : 0, c_col = cols > 1;
    const float alpha = oct_f32(a->node, ALPHA), beta = oct_f32(a->node, BETA);

    if (w == OCT_WORK_F32) finish_f32(d, alpha, beta, y, c, c_row, c_col);
    if (w == OCT_WORK_F64) finish_f64(d, (double)alpha, (double)beta, y, c, c_row, c_col);
    if (w == OCT_WORK_I64) finish_i64(d, (double)alpha, (double)beta, y, c, c_row, c_col);
}

static oct_status ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->out[0]->type.dtype);
    const size_t size = oct_dtype_size(oct_work_dtype(w));
    const bool ta = oct_int(a->node, TRANS_A) != 0, tb = oct_int(a->node, TRANS_B) != 0;
    oct_mm p = {.work = w, .batch = 1};
    const void *c;
    dims d;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_dims(a->node, &a->in[0]->type, &a->in[1]->type, &d));
    OCT_TRY(oct_work_in(a, 0, w, &p.a));
    OCT_TRY(oct_work_in(a, 1, w, &p.b));
    OCT_TRY(oct_work_in(a, 2, w, &c));
    OCT_TRY(oct_work_out(a, 0, w, &p.c));
    if (d.m == 0 || d.n == 0) return OCT_OK;
    if (tb && d.k > 0) {
        void *b = oct_args_scratch(a, (size_t)(d.k * d.n), size);

        if (!b) return OCT_ERR_MEMORY;
        oct_mm_transpose(p.b, d.n, d.k, size, b);
        p.b = b;
    }
    p.m = d.m, p.n = d.n, p.k = d.k;
    p.a_row = ta ? 1 : d.k;
    p.a_col = ta ? d.m : 1;
    p.b_row = p.c_row = d.n;
    OCT_TRY(oct_mm_run(a, &p));
    finish(a, &d, w, p.c, c);
    oct_work_done(a, 0, w, p.c);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    dims d;
    int64_t result;

    if (read_dims(n, &n->in[0]->type, &n->in[1]->type, &d) || d.m < 0 || d.n < 0 || d.k < 0)
        return 0;
    return oct_mul_i64(d.m, d.n, &result) && oct_mul_i64(result, d.k, &result) ? result : 0;
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;

    if (a->wanted[0] || a->wanted[1])
        OCT_TRY(oct_grad_product(a, (double)oct_f32(n, ALPHA), oct_int(n, TRANS_A) != 0,
                                 oct_int(n, TRANS_B) != 0));
    if (n->n_in > 2 && a->wanted[2])
        a->dx[2] = oct_grad_scale(a->b, oct_grad_sum_to(a->b, a->dy[0], n->in[2]),
                                  (double)oct_f32(n, BETA));
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [TRANS_A] = {.name = "transA", .kind = OCT_ATTR_INT},
    [TRANS_B] = {.name = "transB", .kind = OCT_ATTR_INT},
    {0},
};

static bool weight_axes(const oct_node *n, const oct_type *w, oct_weight_axes *out)
{
    const bool is_transposed = n->attr[TRANS_B].i != 0;

    out->out = is_transposed ? 0 : 1;
    out->in = is_transposed ? 1 : 0;
    return w->rank == 2;
}

const oct_op oct_op_gemm = {
    .name = "Gemm",
    .since = 13,
    .min_in = 2,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_BIAS},
              .weight_axis = 1}, /* of an untransposed b: its columns are the filters */
    .flow = OCT_FLOW_SOURCE,
    .weights = {.axes = weight_axes, .takes_factor = true},
    .fuses = OCT_FUSES_ACT,
};

/* --- com.microsoft: Gemm and an activation --- */

enum { ACTIVATION = TRANS_B + 1, ACT_ALPHA, ACT_BETA, ACT_GAMMA };

static oct_status fused_shape(const oct_infer *q)
{
    const oct_attr *name = &q->node->attr[ACTIVATION];
    oct_rnn_act act;

    if (name->kind && name->n && !oct_rnn_act_find(name->s, &act))
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "activation '%.40s'", name->s);
    return shape(q);
}

static oct_status fused_ref(const oct_args *a)
{
    const oct_node *n = a->node;
    const oct_dtype t = a->out[0]->type.dtype;
    oct_rnn_act act;

    OCT_TRY(ref(a));
    if (!n->attr[ACTIVATION].kind || !oct_rnn_act_find(n->attr[ACTIVATION].s, &act)) return OCT_OK;
    if (oct_has(n, ACT_ALPHA)) act.alpha = (double)oct_f32(n, ACT_ALPHA);
    if (oct_has(n, ACT_BETA)) act.beta = (double)oct_f32(n, ACT_BETA);
    for (int64_t i = 0; i < oct_tensor_len(a->out[0]); i++) {
        double v;

        oct_load_f64(t, a->out[0]->data, i, 1, &v);
        v = act.fn(v, act.alpha, act.beta);
        oct_store_f64(t, a->out[0]->data, i, 1, &v);
    }
    return OCT_OK;
}

/* Activations of which there is a gradient. */
static const struct {
    const char *name;
    oct_act_kind kind;
} act_kinds[] = {
    {"Relu", OCT_ACT_RELU}, {"LeakyRelu", OCT_ACT_LEAKY}, {"HardSigmoid", OCT_ACT_HARD_SIGMOID},
    {"Tanh", OCT_ACT_TANH}, {"Sigmoid", OCT_ACT_SIGMOID}, {"Elu", OCT_ACT_ELU},
};

/* The gradient before the activation; what it was applied to is computed anew. */
static oct_status before_activation(const oct_grad_args *a, oct_value **dy)
{
    const oct_node *n = a->node;
    oct_act_kind kind = OCT_ACT_NONE;
    oct_rnn_act act;
    oct_node *gemm, *g;

    if (!oct_has(n, ACTIVATION) || !oct_rnn_act_find(n->attr[ACTIVATION].s, &act)) return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(act_kinds); i++)
        if (strcmp(act_kinds[i].name, n->attr[ACTIVATION].s) == 0) kind = act_kinds[i].kind;
    if (kind == OCT_ACT_NONE)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "with activation '%.40s' it has no gradient",
                             n->attr[ACTIVATION].s);
    if (oct_has(n, ACT_ALPHA)) act.alpha = (double)oct_f32(n, ACT_ALPHA);
    if (oct_has(n, ACT_BETA)) act.beta = (double)oct_f32(n, ACT_BETA);
    gemm = oct_emit_node(a->b, &oct_op_gemm, n->in, n->n_in, 1);
    oct_emit_attrs_of(a->b, gemm, n);
    g = oct_emit_node(a->b, &oct_op_act_grad, (oct_value *[]){oct_emitted(a->b, gemm), *dy}, 2, 1);
    oct_emit_int(a->b, g, "act", (int64_t)kind);
    oct_emit_f32(a->b, g, "act_a", (float)act.alpha);
    oct_emit_f32(a->b, g, "act_b", (float)act.beta);
    *dy = oct_emitted(a->b, g);
    return a->b->status;
}

static oct_status fused_grad(const oct_grad_args *a)
{
    oct_grad_args of_gemm = *a;
    oct_value *dy = a->dy[0];

    OCT_TRY(before_activation(a, &dy));
    of_gemm.dy = &dy;
    return grad(&of_gemm);
}

static const oct_attr_def fused_attrs[] = {
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [TRANS_A] = {.name = "transA", .kind = OCT_ATTR_INT},
    [TRANS_B] = {.name = "transB", .kind = OCT_ATTR_INT},
    [ACTIVATION] = {.name = "activation", .kind = OCT_ATTR_STRING, .no_default = true},
    [ACT_ALPHA] = {.name = "activation_alpha", .kind = OCT_ATTR_F32, .no_default = true},
    [ACT_BETA] = {.name = "activation_beta", .kind = OCT_ATTR_F32, .no_default = true},
    [ACT_GAMMA] = {.name = "activation_gamma", .kind = OCT_ATTR_F32, .no_default = true},
    {0},
};

const oct_op oct_op_ms_fused_gemm = {
    .name = "FusedGemm",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 2,
    .max_in = 3,
    .attrs = fused_attrs,
    .shape = fused_shape,
    .ref = fused_ref,
    .grad = fused_grad,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_BIAS}, .weight_axis = 1},
    .flow = OCT_FLOW_SOURCE,
};
