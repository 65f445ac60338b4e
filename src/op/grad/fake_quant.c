/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FakeQuant: y = s * (clip(round(x / s) + z, low, high) - z), the values that have codes, rounded
 * half to even as QuantizeLinear does; z is rounded when it is used. Operands: x, step, zero (0 if
 * absent); the latter two have one element, or one for each index of the axis.
 *
 * FakeQuantGrad, from x, dy, step, zero:
 *   dx    = dy where the code is in range, else 0 (straight through the rounding)
 *   dstep = sum of dy * (code - z - x / s in range, else the end of the range), as LSQ has it; 0 in
 *           range if only clipping counts, as PACT has it
 *   dzero = sum of -s * dy out of range
 * the sums times grad_scale; for logarithmic steps dstep also times s * ln 2.
 */
#include "op/grad/fake_quant.h"

#include <math.h>

#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { X, STEP, ZERO };
enum { G_X, G_DY, G_STEP, G_ZERO };
enum { DX, DSTEP, DZERO };
enum { LOW, HIGH, AXIS, STEP_KIND, ROLE, LEARNS, GRAD_SCALE };

#define MOST_LOG2 120.0 /* as quantization limits scales: see oct_qspec_solve() */
#define LN2       0.69314718055994530942

double oct_step_scale(oct_step_kind kind, double step)
{
    const double log2_scale = kind == OCT_STEP_LOG2_WHOLE ? rint(step) : step;

    if (kind == OCT_STEP_SCALE) return fmax(fabs(step), 0x1p-60);
    return exp2(fmin(fmax(log2_scale, -MOST_LOG2 / 2), MOST_LOG2));
}

double oct_step_of_scale(oct_step_kind kind, double scale)
{
    return kind == OCT_STEP_SCALE ? scale : log2(scale);
}

void oct_fake_read(const oct_node *n, oct_fake_attrs *out)
{
    *out = (oct_fake_attrs){.low = (double)oct_node_attr(n, "low")->i,
                            .high = (double)oct_node_attr(n, "high")->i,
                            .axis = (int)oct_node_attr(n, "axis")->i,
                            .kind = (oct_step_kind)oct_node_attr(n, "step_kind")->i,
                            .role = (oct_fake_role)oct_node_attr(n, "role")->i,
                            .learns = (unsigned)oct_node_attr(n, "learns")->i,
                            .grad_scale = (double)oct_node_attr(n, "grad_scale")->f};
}

void oct_fake_write(oct_builder *b, oct_node *n, const oct_fake_attrs *a)
{
    oct_emit_int(b, n, "low", (int64_t)a->low);
    oct_emit_int(b, n, "high", (int64_t)a->high);
    oct_emit_int(b, n, "axis", a->axis);
    oct_emit_int(b, n, "step_kind", a->kind);
    oct_emit_int(b, n, "role", a->role);
    oct_emit_int(b, n, "learns", (int64_t)a->learns);
    oct_emit_f32(b, n, "grad_scale", (float)a->grad_scale);
}

/* --- shapes --- */

/* One element, or one for each index of the axis. */
static oct_status check_params(const oct_infer *q, int i)
{
    const int64_t axis = oct_int(q->node, AXIS);
    const oct_type *x = q->in[0], *t = q->in[i];

    if (!oct_type_is_static(t) || !oct_type_is_static(x)) return OCT_OK;
    if (axis < -1 || axis >= x->rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %lld of rank %d", (long long)axis,
                              (int)x->rank);
    if (oct_type_len(t) != (axis < 0 ? 1 : x->dim[axis]))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld steps or zero points",
                              (long long)oct_type_len(t));
    return OCT_OK;
}

static oct_status check(const oct_infer *q, int first)
{
    const int64_t low = oct_int(q->node, LOW), high = oct_int(q->node, HIGH),
                  kind = oct_int(q->node, STEP_KIND);

    if (low >= high || low < INT32_MIN || high > INT32_MAX || kind < OCT_STEP_SCALE ||
        kind > OCT_STEP_LOG2_WHOLE)
        return oct_infer_fail(q, OCT_ERR_ARG, "codes %lld to %lld, step of kind %lld",
                              (long long)low, (long long)high, (long long)kind);
    for (int i = 0; i < q->node->n_in; i++) {
        const oct_type *t;

        if (!q->in[i]) continue;
        OCT_TRY(oct_infer_need(q, i, &t));
        OCT_TRY(oct_infer_check(q, i, OCT_SET(OCT_DTYPE_F32) | OCT_SET(OCT_DTYPE_F64)));
        if (i >= first) OCT_TRY(check_params(q, i));
    }
    q->out[0] = *q->in[0];
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    return check(q, STEP);
}

static oct_status shape_grad(const oct_infer *q)
{
    OCT_TRY(check(q, G_STEP));
    if (q->node->n_out > DSTEP) q->out[DSTEP] = *q->in[G_STEP];
    if (q->node->n_out > DZERO) q->out[DZERO] = *q->in[q->node->n_in > G_ZERO ? G_ZERO : G_STEP];
    return OCT_OK;
}

/* --- plain kernels --- */

typedef struct job {
    oct_fake_attrs a;
    oct_lanes lanes; /* around the axis */
    const void *x, *dy, *step, *zero;
    void *y;      /* or dx */
    double *sums; /* of each index of the axis: dstep, dzero */
} job;

#define DEFINE_KERNELS(T, RINT, name)                                                              \
    typedef struct grid_##name {                                                                   \
        T scale, zero, low, high; /* low, high: of code - zero */                                  \
    } grid_##name;                                                                                 \
                                                                                                   \
    static grid_##name grid_of_##name(const job *j, int64_t i)                                     \
    {                                                                                              \
        const double s = oct_step_scale(j->a.kind, (double)((const T *)j->step)[i]);               \
        const double z = j->zero ? rint((double)((const T *)j->zero)[i]) : 0;                      \
                                                                                                   \
        return (grid_##name){(T)s, (T)z, (T)(j->a.low - z), (T)(j->a.high - z)};                   \
    }                                                                                              \
                                                                                                   \
    static void round_##name(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const int64_t inner = j->lanes.inner;                                                      \
                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const grid_##name g = grid_of_##name(j, i % j->lanes.n);                               \
            const T *x = (const T *)j->x + i * inner;                                              \
            T *y = (T *)j->y + i * inner;                                                          \
                                                                                                   \
            for (int64_t k = 0; k < inner; k++) {                                                  \
                T t = x[k] / g.scale;                                                              \
                                                                                                   \
                t = t > g.low ? t : g.low;                                                         \
                t = t < g.high ? t : g.high;                                                       \
                y[k] = g.scale * RINT(t);                                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* All rows of the indices begin <= i < end of the axis. */                                    \
    static void grad_##name(void *arg, int64_t begin, int64_t end)                                 \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const int64_t inner = j->lanes.inner;                                                      \
                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const grid_##name g = grid_of_##name(j, i);                                            \
            const T rounding = j->a.learns & OCT_FAKE_CLIPS_ONLY ? 0 : 1;                          \
            double dstep = 0, dzero = 0;                                                           \
                                                                                                   \
            for (int64_t o = 0; o < j->lanes.outer; o++) {                                         \
                const int64_t at = (o * j->lanes.n + i) * inner;                                   \
                const T *x = (const T *)j->x + at, *dy = (const T *)j->dy + at;                    \
                T *dx = (T *)j->y + at;                                                            \
                                                                                                   \
                for (int64_t k = 0; k < inner; k++) {                                              \
                    const T t = x[k] / g.scale, r = RINT(t);                                       \
                    const bool in = r >= g.low && r <= g.high;                                     \
                    const T end_ = r > g.high ? g.high : g.low;                                    \
                                                                                                   \
                    dx[k] = in ? dy[k] : 0;                                                        \
                    dstep += (double)(dy[k] * (in ? (r - t) * rounding : end_));                   \
                    dzero -= in ? 0 : (double)(g.scale * dy[k]);                                   \
                }                                                                                  \
            }                                                                                      \
            if (j->a.kind != OCT_STEP_SCALE) dstep *= (double)g.scale * LN2;                       \
            j->sums[2 * i] = dstep * j->a.grad_scale;                                              \
            j->sums[2 * i + 1] = dzero * j->a.grad_scale;                                          \
        }                                                                                          \
    }

DEFINE_KERNELS(float, rintf, f32)
DEFINE_KERNELS(double, rint, f64)

static oct_lanes lanes_of(const oct_type *x, int axis)
{
    const oct_lanes all = {.outer = 1, .n = 1, .inner = oct_type_len(x)};

    return axis < 0 ? all : oct_lanes_of(x, axis);
}

static oct_status read_operands(const oct_args *a, oct_work w, int step, job *j)
{
    OCT_TRY(oct_args_check(a));
    oct_fake_read(a->node, &j->a);
    j->lanes = lanes_of(&a->in[0]->type, j->a.axis);
    OCT_TRY(oct_work_in(a, 0, w, &j->x));
    OCT_TRY(oct_work_in(a, step, w, &j->step));
    if (a->node->n_in > step + 1) OCT_TRY(oct_work_in(a, step + 1, w, &j->zero));
    return oct_work_out(a, 0, w, &j->y);
}

static oct_status ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->in[0]->type.dtype);
    job j = {0};

    OCT_TRY(read_operands(a, w, STEP, &j));
    oct_parallel_for(a->n_threads, j.lanes.outer * j.lanes.n, 1,
                     w == OCT_WORK_F64 ? round_f64 : round_f32, &j);
    oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

static oct_status put_sums(const oct_args *a, oct_work w, int i, const job *j, int which)
{
    void *out = NULL;

    if (i >= a->node->n_out || !a->out[i]) return OCT_OK;
    OCT_TRY(oct_work_out(a, i, w, &out));
    for (int64_t k = 0; k < j->lanes.n; k++) {
        if (w == OCT_WORK_F64)
            ((double *)out)[k] = j->sums[2 * k + which];
        else
            ((float *)out)[k] = (float)j->sums[2 * k + which];
    }
    oct_work_done(a, i, w, out);
    return OCT_OK;
}

static oct_status ref_grad(const oct_args *a)
{
    const oct_work w = oct_work_of(a->in[0]->type.dtype);
    job j = {0};

    OCT_TRY(read_operands(a, w, G_STEP, &j));
    OCT_TRY(oct_work_in(a, G_DY, w, &j.dy));
    j.sums = oct_args_scratch(a, 2 * (size_t)j.lanes.n + 1, sizeof(*j.sums));
    if (!j.sums) return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, j.lanes.n, 1, w == OCT_WORK_F64 ? grad_f64 : grad_f32, &j);
    oct_work_done(a, DX, w, j.y);
    OCT_TRY(put_sums(a, w, DSTEP, &j, 0));
    return put_sums(a, w, DZERO, &j, 1);
}

/* --- the rows --- */

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_value *zero = n->n_in > ZERO ? n->in[ZERO] : NULL;
    oct_value *const in[] = {n->in[X], a->dy[0], n->in[STEP], zero};
    oct_node *g = oct_emit_node(a->b, &oct_op_fake_quant_grad, in, zero ? 4 : 3, zero ? 3 : 2);

    oct_emit_attrs_of(a->b, g, n);
    (void)oct_emitted(a->b, g);
    if (a->b->status) return a->b->status;
    a->dx[X] = g->out[DX];
    a->dx[STEP] = g->out[DSTEP];
    if (zero) a->dx[ZERO] = g->out[DZERO];
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [LOW] = {"low", OCT_ATTR_INT, .required = true},
    [HIGH] = {"high", OCT_ATTR_INT, .required = true},
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = -1}},
    [STEP_KIND] = {"step_kind", OCT_ATTR_INT},
    [ROLE] = {"role", OCT_ATTR_INT},
    [LEARNS] = {"learns", OCT_ATTR_INT},
    [GRAD_SCALE] = {"grad_scale", OCT_ATTR_F32, .def = {.f = 1}},
    {0},
};

const oct_op oct_op_fake_quant = {
    .name = "FakeQuant",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_fake_quant_grad = {
    .name = "FakeQuantGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 3,
    .max_in = 4,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape_grad,
    .ref = ref_grad,
    .flow = OCT_FLOW_STOP,
};
