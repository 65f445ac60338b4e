/* SPDX-License-Identifier: Apache-2.0 */
/* RandomNormal, RandomUniform, the same shaped like an operand, Bernoulli and Multinomial. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "op/work.h"

/* All these rows have these, in the same places. */
enum { DTYPE, SEED, MEAN, SCALE, LOW = MEAN, HIGH = SCALE, SHAPE, SAMPLE_SIZE = MEAN };

/* Starts from the seed; without one, from the node's name. */
static void start(oct_rng *r, const oct_node *n)
{
    uint32_t bits;

    if (!oct_has(n, SEED)) {
        oct_rng_init(r, oct_hash_bytes(n->name, strlen(n->name), 0));
        return;
    }
    memcpy(&bits, &n->attr[SEED].f, sizeof(bits));
    oct_rng_init(r, bits);
}

/* The type in attribute dtype; without it, that of operand 0. */
static oct_status out_dtype(const oct_infer *q, unsigned set, oct_dtype *out)
{
    const oct_node *n = q->node;
    oct_dtype t = OCT_DTYPE_NONE;

    if (oct_has(n, DTYPE))
        OCT_TRY(oct_dtype_attr(n, oct_int(n, DTYPE), &t));
    else
        t = q->in[0]->dtype;
    if (t != OCT_DTYPE_NONE && !(set >> t & 1u))
        return oct_infer_fail(q, OCT_ERR_TYPE, "cannot draw numbers of type %s", oct_dtype_name(t));
    *out = t;
    return OCT_OK;
}

static oct_status shape_given(const oct_infer *q)
{
    const oct_attr *shape = &q->node->attr[SHAPE];
    oct_dtype t = OCT_DTYPE_NONE;

    OCT_TRY(out_dtype(q, OCT_SET_FLOAT, &t));
    return oct_type_of_dims(q->node, t, shape->is, shape->n, &q->out[0]);
}

static oct_status shape_like(const oct_infer *q)
{
    const oct_type *x;
    oct_dtype t = OCT_DTYPE_NONE;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(out_dtype(q, OCT_SET_FLOAT, &t));
    q->out[0] = *x;
    q->out[0].dtype = t;
    return OCT_OK;
}

static oct_status shape_bernoulli(const oct_infer *q)
{
    const oct_type *x;
    oct_dtype t = OCT_DTYPE_NONE;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(out_dtype(q, OCT_SET_NUMERIC | OCT_SET_BOOL, &t));
    q->out[0] = *x;
    q->out[0].dtype = t;
    return OCT_OK;
}

static oct_status normal(const oct_args *a)
{
    oct_tensor *y = a->out[0];
    oct_rng r;

    start(&r, a->node);
    for (int64_t i = 0, n = oct_tensor_len(y); i < n; i++) {
        const double v = oct_f32(a->node, MEAN) + oct_f32(a->node, SCALE) * oct_rng_normal(&r);

        oct_store_f64(y->type.dtype, y->data, i, 1, &v);
    }
    return OCT_OK;
}

static oct_status uniform(const oct_args *a)
{
    const double low = oct_f32(a->node, LOW), high = oct_f32(a->node, HIGH);
    oct_tensor *y = a->out[0];
    oct_rng r;

    start(&r, a->node);
    for (int64_t i = 0, n = oct_tensor_len(y); i < n; i++) {
        const double v = low + (high - low) * oct_rng_f64(&r);

        oct_store_f64(y->type.dtype, y->data, i, 1, &v);
    }
    return OCT_OK;
}

static oct_status bernoulli(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    oct_tensor *y = a->out[0];
    oct_rng r;

    start(&r, a->node);
    for (int64_t i = 0, n = oct_tensor_len(y); i < n; i++) {
        const int64_t v = oct_rng_f64(&r) < oct_tensor_get_f64(x, i);

        oct_store_i64(y->type.dtype, y->data, i, 1, &v);
    }
    return OCT_OK;
}

// clang-format off
#define DTYPE_ATTR [DTYPE] = {"dtype", OCT_ATTR_INT, .no_default = true}
#define SEED_ATTR  [SEED] = {"seed", OCT_ATTR_F32, .no_default = true}
#define F32_DTYPE  [DTYPE] = {"dtype", OCT_ATTR_INT, .def.i = OCT_DTYPE_F32}
#define NUMBER(at, name, value) [at] = {name, OCT_ATTR_F32, .def.f = value}
#define SHAPE_ATTR [SHAPE] = {"shape", OCT_ATTR_INTS, .no_default = true, .required = true}

static const oct_attr_def normal_attrs[] = {
    F32_DTYPE, SEED_ATTR, NUMBER(MEAN, "mean", 0), NUMBER(SCALE, "scale", 1), SHAPE_ATTR, {0}};
static const oct_attr_def normal_like_attrs[] = {
    DTYPE_ATTR, SEED_ATTR, NUMBER(MEAN, "mean", 0), NUMBER(SCALE, "scale", 1), {0}};
static const oct_attr_def uniform_attrs[] = {
    F32_DTYPE, SEED_ATTR, NUMBER(LOW, "low", 0), NUMBER(HIGH, "high", 1), SHAPE_ATTR, {0}};
static const oct_attr_def uniform_like_attrs[] = {
    DTYPE_ATTR, SEED_ATTR, NUMBER(LOW, "low", 0), NUMBER(HIGH, "high", 1), {0}};
static const oct_attr_def bernoulli_attrs[] = {DTYPE_ATTR, SEED_ATTR, {0}};
static const oct_attr_def multinomial_attrs[] = {
    [DTYPE] = {"dtype", OCT_ATTR_INT, .def.i = OCT_DTYPE_I32}, SEED_ATTR,
    [SAMPLE_SIZE] = {"sample_size", OCT_ATTR_INT, .def.i = 1}, {0}};
// clang-format on

#define ROW(sym, onnx, since_, n_in_, attrs_, shape_, ref_)                                        \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = n_in_,                                                                           \
        .max_in = n_in_,                                                                           \
        .attrs = attrs_,                                                                           \
        .shape = shape_,                                                                           \
        .ref = ref_,                                                                               \
        .flags = OCT_OP_RANDOM,                                                                    \
    }

ROW(random_normal, "RandomNormal", 7, 0, normal_attrs, shape_given, normal);
ROW(random_normal_like, "RandomNormalLike", 7, 1, normal_like_attrs, shape_like, normal);
ROW(random_uniform, "RandomUniform", 7, 0, uniform_attrs, shape_given, uniform);
ROW(random_uniform_like, "RandomUniformLike", 7, 1, uniform_like_attrs, shape_like, uniform);
ROW(bernoulli, "Bernoulli", 15, 1, bernoulli_attrs, shape_bernoulli, bernoulli);

/* --- Multinomial: classes drawn by their log-probabilities, row by row --- */

static oct_status shape_multinomial(const oct_infer *q)
{
    const int64_t samples = oct_int(q->node, SAMPLE_SIZE);
    const oct_type *x;
    oct_dtype t = OCT_DTYPE_NONE;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(out_dtype(q, OCT_SET(OCT_DTYPE_I32) | OCT_SET(OCT_DTYPE_I64), &t));
    if (samples < 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "sample_size is %lld", (long long)samples);
    if (x->rank >= 0 && x->rank != 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, expected 2", x->rank);
    if (x->rank == 2 && x->dim[1] == 0 && samples > 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "there is no class to draw");
    q->out[0] = oct_type_make(t, 2, (int64_t[]){x->rank == 2 ? x->dim[0] : -1, samples});
    return OCT_OK;
}

/* Running sums of the classes' shares, the largest taken out first so that none overflows. */
static void cumulate(const double *x, int64_t n, double *sum)
{
    double top = -INFINITY, total = 0;

    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum[i] = total += isfinite(top) ? exp(x[i] - top) : 1;
}

static oct_status multinomial(const oct_args *a)
{
    const oct_type *t = &a->in[0]->type;
    oct_tensor *y = a->out[0];
    const int64_t n = t->dim[1], samples = y->type.dim[1];
    double *sum = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(*sum));
    const double *x;
    oct_rng r;

    if (!sum) return OCT_ERR_MEMORY;
    OCT_TRY(oct_work_in_f64(a, 0, &x));
    start(&r, a->node);
    for (int64_t b = 0; b < t->dim[0]; b++) {
        cumulate(x + b * n, n, sum);
        for (int64_t s = 0; s < samples; s++) {
            const double at = oct_rng_f64(&r) * sum[n - 1];
            int64_t k = 0;

            while (k + 1 < n && sum[k] <= at)
                k++;
            oct_store_i64(y->type.dtype, y->data, b * samples + s, 1, &k);
        }
    }
    return OCT_OK;
}

ROW(multinomial, "Multinomial", 7, 1, multinomial_attrs, shape_multinomial, multinomial);
