/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bias of 8 bits is wrong by up to half a step of its own, which may be several steps of the
 * result, and the same for every pixel. Weights make up for it: some are rounded the other way, so
 * that the sum of their changes times the means of their inputs is what the bias lost. Those are
 * taken that add least noise for what they give.
 */
#include <math.h>
#include <stdlib.h>

#include "op/op.h"
#include "quant/correct/correct.h"
#include "quant/solve/solve.h"

#define ENOUGH       (1 / 32.0) /* of a step of the bias: what may be left */
#define LEAST_SPREAD 0.01       /* of the layer's mean variance: an input may vary elsewhere */
#define OWN_SHARE    0.25       /* of a tap's own error, beside that of the sum of its kernel */

/* One weight that could be rounded the other way. */
typedef struct candidate {
    double give; /* to the mean of the output, in steps of the weight; positive */
    double cost; /* noise for each unit of that */
    int64_t moved;
} candidate;

typedef struct layer {
    const oct_qpoint *weight;
    const float *error; /* of the quantized weights */
    const oct_calibration *c;
    const oct_watch *x;
    oct_weight_axes ax;
    int64_t d1, taps; /* second axis of the weight; elements below it */
    double floor;     /* added to the variances of inputs */
    candidate *list;  /* one for each input of a filter */
    int64_t *moved;
    int64_t n_moved;
} layer;

static double step_of(const layer *l, int64_t o)
{
    return (double)l->weight->scale[l->weight->n > 1 ? o : 0];
}

/* The tap of kernel (o, in) whose rounding the other way adds least; false: none can be. */
static bool best_tap(const layer *l, int64_t first, double step, int by, double *sum, double *own,
                     int64_t *at)
{
    const float *w = l->weight->value->data->data;
    int32_t low, high;
    bool found = false;

    oct_qspec_limits(&l->weight->spec, &low, &high);
    *sum = 0;
    for (int64_t t = 0; t < l->taps; t++) {
        const double error = (double)l->error[first + t] / step;
        const double code = rint((double)w[first + t] / step + error) + by;

        *sum += fabs(error) <= 1 ? error : 0; /* what is clipped is not made up for */
        if (code < low || code > high || fabs(error + by) > 1) continue;
        if (found && error * by >= *own * by) continue;
        *own = error;
        *at = first + t;
        found = true;
    }
    return found;
}

static int64_t list_candidates(const layer *l, int64_t o, double lack)
{
    const double step = step_of(l, o);
    int64_t n = 0;

    for (int64_t k = 0; k < l->ax.n_in; k++) {
        const int64_t from =
            l->ax.groups > 1 ? o / (l->ax.n_out / l->ax.groups) * l->ax.n_in + k : k;
        const int64_t first = (l->ax.out == 0 ? o * l->d1 + k : k * l->d1 + o) * l->taps;
        const double mean = oct_watch_mean(l->c, l->x, from);
        const int by = mean * lack > 0 ? 1 : -1;
        double sum, own = 0, noise;
        int64_t at = 0;

        if (mean == 0 || !best_tap(l, first, step, by, &sum, &own, &at)) continue;
        /* (e + 1)^2 - e^2, of a kernel's sum and of the tap: neighbouring pixels are much alike */
        noise = fmax(1 + 2 * by * sum, 0) + OWN_SHARE * (1 + 2 * by * own);
        l->list[n++] = (candidate){
            .give = fabs(mean),
            .cost = noise * (oct_watch_variance(l->c, l->x, from) + l->floor) / fabs(mean),
            .moved = by * (at + 1)};
    }
    return n;
}

static int by_cost(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    return (x->moved > y->moved) - (x->moved < y->moved);
}

/* Output o should have `lack` more than it has. */
static void make_up(layer *l, int64_t o, double lack, double enough)
{
    const double step = step_of(l, o);
    double left = fabs(lack) / step;
    int64_t n;

    if (!(fabs(lack) > enough)) return;
    n = list_candidates(l, o, lack);
    qsort(l->list, (size_t)n, sizeof(*l->list), by_cost);
    for (int64_t i = 0; i < n && left * step > enough; i++) {
        if (l->list[i].give >= 2 * left) continue; /* too much */
        l->moved[l->n_moved++] = l->list[i].moved;
        left -= l->list[i].give;
    }
}

/* What the bias of output o is, less what its code stands for. */
static double residue(const oct_qmap *m, const oct_qpoint *bias, int64_t o)
{
    const oct_qshift *s = oct_qmap_shift_of(m, bias->node);
    const int64_t k = bias->n > 1 ? o : 0;
    const float b = ((const float *)bias->value->data->data)[o] + (s ? s->shift[o] : 0);
    const int32_t code = oct_qspec_code(&bias->spec, bias->scale[k], bias->zero[k], b);

    return (double)b - (double)oct_qspec_value(bias->scale[k], bias->zero[k], code);
}

/* Is it a layer of the kind this is for, with all that has to be known? */
static bool is_ready(const oct_qmap *m, const oct_qpoint *bias, int64_t len, layer *l)
{
    const oct_node *n = bias->node;
    const int32_t w = oct_operand_of_role(n, OCT_QROLE_WEIGHT);
    const int32_t k = w >= 0 ? oct_qmap_at(m, n, w) : -1;
    const oct_qpoint *p = k >= 0 ? &m->points[k] : NULL;
    const oct_qshift *s = oct_qmap_shift_of(m, n);

    if (!p || p->state != OCT_QSTATE_ACTIVE || p->node != n || p->n < 1 || p->fold) return false;
    if (oct_node_is(n, &oct_op_conv_transpose) || !oct_weight_axes_of(n, &l->ax)) return false;
    if (l->ax.n_out != len || (bias->n != 1 && bias->n != len) || (s && s->n != len)) return false;
    if (p->n > 1 && (p->n != len || p->spec.axis != l->ax.out)) return false;
    l->weight = p;
    l->x = oct_calibration_of(l->c, n->in[0]);
    return l->x && l->x->sum && l->x->square && l->x->channels == l->ax.n_in * l->ax.groups;
}

static oct_status cancel(oct_qmap *m, const oct_qpoint *bias, const oct_calibration *c,
                         oct_arena *a)
{
    const int64_t len = oct_tensor_len(bias->value->data);
    layer l = {.c = c};
    float *error;

    if (!is_ready(m, bias, len, &l)) return OCT_OK;
    l.d1 = l.weight->value->type.dim[1];
    l.taps = oct_type_span(&l.weight->value->type, 2, l.weight->value->type.rank);
    l.list = oct_arena_array(a, (size_t)l.ax.n_in + 1, sizeof(*l.list));
    l.moved = oct_arena_array(a, (size_t)(l.ax.n_in * len) + 1, sizeof(*l.moved));
    if (!l.list || !l.moved) return OCT_ERR_MEMORY;
    OCT_TRY(oct_weight_values(l.weight, true, a, &error));
    l.error = error;
    for (int64_t i = 0; i < l.x->channels; i++)
        l.floor += LEAST_SPREAD * oct_watch_variance(c, l.x, i) / (double)l.x->channels;
    for (int64_t o = 0; o < len; o++)
        make_up(&l, o, residue(m, bias, o), ENOUGH * (double)bias->scale[bias->n > 1 ? o : 0]);
    return l.n_moved ? oct_qpoint_move(m, (int32_t)(l.weight - m->points), l.moved, l.n_moved)
                     : OCT_OK;
}

oct_status oct_cancel_bias_residues(oct_qmap *m, const oct_calibration *c)
{
    oct_arena *a;
    oct_status st = OCT_OK;

    if (!oct_cancels_residues(m)) return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_BIAS || p->state != OCT_QSTATE_ACTIVE || p->spec.bits > 8 ||
            !p->node || p->n < 1 || !p->value->data)
            continue;
        st = cancel(m, p, c, a);
        oct_arena_reset(a);
    }
    oct_arena_free(a);
    return st;
}
