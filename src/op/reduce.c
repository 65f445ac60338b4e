/* SPDX-License-Identifier: Apache-2.0 */
/* All Reduce* operators: axes from an optional input, any number of them, empty ones included. */
#include <math.h>

#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/reduce_grad.h"
#include "op/work.h"

enum { KEEPDIMS, NOOP };

typedef enum reduce_kind {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_LOG_SUM,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_SUM_SQUARE,
    REDUCE_LOG_SUM_EXP,
} reduce_kind;

typedef struct reduce_job {
    reduce_kind kind;
    oct_split s;
    const void *x;
    void *y;
    int64_t lowest, highest; /* of the integer type */
} reduce_job;

/* --- float types add up in double --- */

static double first_real(const reduce_job *j)
{
    switch (j->kind) {
    case REDUCE_MAX:
    case REDUCE_LOG_SUM_EXP:
        return -INFINITY;
    case REDUCE_MIN:
        return INFINITY;
    default:
        return j->kind == REDUCE_PROD;
    }
}

static double last_real(const reduce_job *j, double acc, double shift)
{
    switch (j->kind) {
    case REDUCE_MEAN:
        return acc / (double)j->s.cut_len;
    case REDUCE_L2:
        return sqrt(acc);
    case REDUCE_LOG_SUM:
        return log(acc);
    case REDUCE_LOG_SUM_EXP:
        return log(acc) + shift;
    default:
        return acc;
    }
}

static int64_t first_i64(const reduce_job *j)
{
    if (j->kind == REDUCE_MAX) return j->lowest;
    if (j->kind == REDUCE_MIN) return j->highest;
    return j->kind == REDUCE_PROD;
}

static int64_t last_i64(const reduce_job *j, int64_t acc, int64_t shift)
{
    (void)shift;
    if (j->kind != REDUCE_MEAN) return acc;
    return j->s.cut_len ? acc / j->s.cut_len : 0;
}

#define first_f32 first_real
#define first_f64 first_real
#define last_f32  last_real
#define last_f64  last_real

#define ACC       double
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define T         float
#define FN(f)     f##_f32
#include "op/reduce_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/reduce_kernel.inc"
#undef T
#undef FN
#undef ACC
#undef ADD
#undef MUL

/* Integers wrap. */
#define ACC       int64_t
#define ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MUL(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define T         int64_t
#define FN(f)     f##_i64
#include "op/reduce_kernel.inc"
#undef T
#undef FN

/* --- axes --- */

/* The axes as bits. *known is false while they come from data that is not there yet. */
static oct_status read_axes(const oct_infer *q, int32_t rank, unsigned *cut, bool *known)
{
    int64_t axes[OCT_MAX_RANK];
    int n = 0;

    *cut = 0;
    *known = true;
    if (oct_infer_in(q, 1)) OCT_TRY(oct_infer_ints(q, 1, axes, OCT_MAX_RANK, &n));
    if (n < 0) {
        *known = false;
        return OCT_OK;
    }
    if (n == 0 && !oct_int(q->node, NOOP)) *cut = (1u << rank) - 1;
    for (int i = 0; i < n; i++) {
        int32_t axis;

        OCT_TRY(oct_axis(q->node, axes[i], rank, &axis));
        *cut |= 1u << axis;
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q, unsigned set)
{
    const bool keep = oct_int(q->node, KEEPDIMS) != 0;
    const oct_type *x;
    oct_type y;
    unsigned cut;
    bool known;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, set));
    y = oct_type_unknown(x->dtype);
    if (x->rank >= 0) {
        OCT_TRY(read_axes(q, x->rank, &cut, &known));
        if (known) y.rank = 0;
        if (!known && keep) {
            y.rank = x->rank;
            for (int d = 0; d < x->rank; d++)
                y.dim[d] = x->dim[d] == 1 ? 1 : -1;
        }
        for (int d = 0; d < x->rank && known; d++) {
            if (!(cut >> d & 1u))
                y.dim[y.rank++] = x->dim[d];
            else if (keep)
                y.dim[y.rank++] = 1;
        }
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status shape_numeric(const oct_infer *q)
{
    return shape(q, OCT_SET_NUMERIC);
}

static oct_status shape_order(const oct_infer *q)
{
    return shape(q, OCT_SET_NUMERIC | OCT_SET_BOOL);
}

/* --- kernel --- */

/* Largest and smallest number of an integer type; u64 is handled with its sign bit flipped. */
static void set_bounds(reduce_job *j, oct_dtype t)
{
    const oct_dtype_info *info = oct_dtype_get(t);
    const bool is_signed = info->kind == OCT_DKIND_INT;
    const int bits = info->kind == OCT_DKIND_BOOL ? 1 : info->bits - is_signed;

    j->highest = bits < 63 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
    j->lowest = is_signed || bits == 64 ? -j->highest - 1 : 0;
}

/* Flipping the sign bit makes signed comparison order unsigned numbers. */
static oct_status flip(const oct_args *a, const void **x)
{
    const int64_t n = oct_tensor_len(a->in[0]);
    uint64_t *to = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(*to));

    if (!to) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        to[i] = ((const uint64_t *)*x)[i] ^ (uint64_t)INT64_MIN;
    *x = to;
    return OCT_OK;
}

static oct_work work_of(reduce_kind kind, oct_dtype t)
{
    const oct_work w = oct_work_of(t);
    const bool is_real = kind == REDUCE_L2 || kind == REDUCE_LOG_SUM || kind == REDUCE_LOG_SUM_EXP;

    return w == OCT_WORK_I64 && is_real ? OCT_WORK_F64 : w;
}

static oct_status reduce(const oct_args *a, reduce_kind kind)
{
    static const oct_range_fn fns[] = {reduce_range_f32, reduce_range_f64, reduce_range_i64};
    const oct_type *x = &a->in[0]->type;
    const oct_work w = work_of(kind, x->dtype);
    const bool flips = x->dtype == OCT_DTYPE_U64 && (kind == REDUCE_MAX || kind == REDUCE_MIN);
    reduce_job j = {.kind = kind};
    oct_infer q;
    unsigned cut;
    bool known;
    int64_t grain;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_axes(&q, x->rank, &cut, &known));
    OCT_TRY(oct_work_in(a, 0, w, &j.x));
    OCT_TRY(oct_work_out(a, 0, w, &j.y));
    if (flips) OCT_TRY(flip(a, &j.x));
    j.s = oct_split_axes(x, cut);
    set_bounds(&j, x->dtype);
    grain = OCT_MAX(16384 / OCT_MAX(j.s.cut_len, 1), 1);
    oct_parallel_for(a->n_threads, j.s.kept_len, grain, fns[w], &j);
    for (int64_t i = 0; i < j.s.kept_len && flips; i++)
        ((uint64_t *)j.y)[i] ^= (uint64_t)INT64_MIN;
    oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

/* --- rows --- */

static const oct_attr_def attrs[] = {
    [KEEPDIMS] = {.name = "keepdims", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [NOOP] = {.name = "noop_with_empty_axes", .kind = OCT_ATTR_INT},
    {0},
};

#define REDUCE(sym, op_name, opset, kind, shape_fn)                                                \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        return reduce(a, kind);                                                                    \
    }                                                                                              \
    const oct_op oct_op_reduce_##sym = {                                                           \
        .name = op_name,                                                                           \
        .since = opset,                                                                            \
        .min_in = 1,                                                                               \
        .max_in = 2,                                                                               \
        .attrs = attrs,                                                                            \
        .shape = shape_fn,                                                                         \
        .ref = ref_##sym,                                                                          \
        .grad = oct_grad_reduce_##sym,                                                             \
        .quant = {.in = {OCT_QROLE_ACT}},                                                          \
        .flow = OCT_FLOW_STOP,                                                                     \
    };

// clang-format off
REDUCE(l1, "ReduceL1", 18, REDUCE_L1, shape_numeric)
REDUCE(l2, "ReduceL2", 18, REDUCE_L2, shape_numeric)
REDUCE(log_sum, "ReduceLogSum", 18, REDUCE_LOG_SUM, shape_numeric)
REDUCE(log_sum_exp, "ReduceLogSumExp", 18, REDUCE_LOG_SUM_EXP, shape_numeric)
REDUCE(max, "ReduceMax", 18, REDUCE_MAX, shape_order)
REDUCE(mean, "ReduceMean", 18, REDUCE_MEAN, shape_numeric)
REDUCE(min, "ReduceMin", 18, REDUCE_MIN, shape_order)
REDUCE(prod, "ReduceProd", 18, REDUCE_PROD, shape_numeric)
REDUCE(sum, "ReduceSum", 13, REDUCE_SUM, shape_numeric)
REDUCE(sum_square, "ReduceSumSquare", 18, REDUCE_SUM_SQUARE, shape_numeric)
// clang-format on
