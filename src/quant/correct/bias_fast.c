/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast bias correction: rounded weights shift the mean of a layer's output by (Wq - W) * E[x],
 * which the bias subtracts. E[x] is the float network's, so layers do not depend on each other and
 * one pass over the images is enough.
 */
#include "op/op.h"
#include "quant/correct/correct.h"
#include "quant/solve/solve.h"

/* The sum over kernel taps of weight (i, o), times the mean of input channel. */
static void add_shift(const oct_tensor *w, const oct_weight_axes *ax, const float *error,
                      const oct_calibration *c, const oct_watch *x, double *shift)
{
    const int64_t d0 = w->type.dim[0], d1 = w->type.dim[1];
    const int64_t taps = oct_type_span(&w->type, 2, w->type.rank);

    for (int64_t i = 0; i < d0; i++)
        for (int64_t k = 0; k < d1; k++) {
            const int64_t o = ax->out == 0 ? i : k, in = ax->out == 0 ? k : i;
            int64_t to = o, from = in;
            double sum = 0;

            for (int64_t t = 0; t < taps; t++)
                sum += (double)error[(i * d1 + k) * taps + t];
            if (ax->groups > 1 && ax->out == 0) /* Conv: [O, C/g] */
                from = o / (ax->n_out / ax->groups) * ax->n_in + in;
            if (ax->groups > 1 && ax->out == 1) /* ConvTranspose: [C, O/g] */
                to = in / (d0 / ax->groups) * ax->n_out + o;
            shift[to] -= sum * oct_watch_mean(c, x, from);
        }
}

/* A transposed convolution adds each input to every output only once in `stride` taps. */
static double taps_share(const oct_node *n)
{
    const oct_attr *s = n->op->quant.weight_axis == 1 ? oct_node_attr(n, "strides") : NULL;
    double share = 1;

    for (int64_t i = 0; s && i < s->n; i++)
        share /= (double)OCT_MAX(s->is[i], (int64_t)1);
    return share;
}

static oct_status correct(oct_qmap *m, const oct_qpoint *p, const oct_calibration *c, oct_arena *a)
{
    const oct_watch *x = oct_calibration_of(c, p->node->in[0]);
    const double share = taps_share(p->node);
    oct_weight_axes ax;
    int64_t n;
    double *sum;
    float *error, *shift;

    if (!x || !x->sum || !oct_weight_axes_of(p->node, &ax)) return OCT_OK;
    n = ax.out == 1 ? ax.n_out * ax.groups : ax.n_out;
    if (x->channels != (ax.out == 1 ? ax.n_in : ax.n_in * ax.groups)) return OCT_OK;
    sum = oct_arena_array(a, (size_t)n + 1, sizeof(double));
    shift = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    if (!sum || !shift) return OCT_ERR_MEMORY;
    OCT_TRY(oct_weight_values(p, true, a, &error));
    add_shift(p->value->data, &ax, error, c, x, sum);
    for (int64_t i = 0; i < n; i++)
        shift[i] = (float)(sum[i] * share);
    return oct_qmap_shift(m, p->node, shift, n);
}

oct_status oct_correct_bias_fast(oct_qmap *m, const oct_calibration *c)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_WEIGHT || p->state != OCT_QSTATE_ACTIVE || !p->node || p->n == 0)
            continue;
        st = correct(m, p, c, a);
        oct_arena_reset(a);
    }
    oct_arena_free(a);
    return st;
}
