/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels between a convolution and those that read it, which one scale cannot fit: a channel that
 * is many times larger than the others and read with weights as many times smaller, one that
 * nothing reads, one that is constant, a bias far beyond what the weights add. All of that can be
 * undone in the weights: the float network computes the same. Where channels are alike, as they are
 * in most networks, nothing is changed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"
#include "quant/heal/heal.h"

#define WILD  32.0 /* times the median, of the balance between both sides of a channel */
#define SIDE  8.0  /* times the median, of the side that is too large */
#define LEAST 1e-6 /* of the median: channels below are not scaled */
#define FAR   8.0  /* times what the weights of a filter add up to: a bias beyond is moved on */

enum { MOST_READERS = 64, MANY = 6 /* one in so many */ };

/* A convolution and what reads its result, directly or after a Relu. */
typedef struct link {
    oct_node *first, *act; /* act NULL: none */
    oct_node *readers[MOST_READERS];
    int32_t n_readers;
    int64_t channels;
    bool takes_shifts;  /* every reader does, and there is no activation */
    double *up, *down;  /* the largest weight of each channel, on either side */
    double *bias, *sum; /* of the first: its bias, and the sum of each filter's weights */
    double up_median, down_median, sum_median, bias_median;
    double balance; /* the median of sqrt(up / down) */
} link;

/* What becomes of the channels: layers compute first(conv(x)), and conv(then(x)) with the columns
 * in `zero` left out. */
typedef struct cure {
    oct_affine first, then, zero;
    int32_t n;      /* channels */
    bool has_zero;  /* some columns are zeroed */
    bool all_sizes; /* so many channels are too large or small that none tells what is usual */
} cure;

/* --- finding --- */

static bool is_layer(const oct_node *n)
{
    return oct_node_is(n, &oct_op_conv) && oct_is_linear_layer(n) && n->in[1]->n_users == 1;
}

/* f(s * x) = s * f(x) for all s > 0, channel by channel. */
static bool scales_along(const oct_node *n)
{
    if (oct_node_is(n, &oct_op_relu) || oct_node_is(n, &oct_op_leaky_relu)) return true;
    return oct_node_is(n, &oct_op_p_relu) && oct_node_const(n, 1) != NULL;
}

static bool find_link(oct_node *n, link *l)
{
    const oct_value *v = n->out[0];
    oct_node *user;

    *l = (link){.first = n, .takes_shifts = true};
    if (!is_layer(n)) return false;
    if ((user = oct_sole_user(v)) && scales_along(user) && user->in[0] == v) {
        l->act = user;
        l->takes_shifts = false;
        v = user->out[0];
    }
    if (v->is_output || v->n_users < 1 || v->n_users > MOST_READERS) return false;
    l->channels = oct_linear_layer_channels(n);
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_node *u = v->users[i];

        if (u->graph != n->graph || !is_layer(u) || u->in[0] != v || u->in[1] == v) return false;
        if (oct_linear_layer_in_channels(u) != l->channels) return false;
        l->takes_shifts = l->takes_shifts && oct_linear_layer_takes_shifts(u);
        l->readers[l->n_readers++] = u;
    }
    return true;
}

/* --- sizes --- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Of their magnitudes; 0 does not count unless `zeros`. */
static double median(const double *x, int64_t n, bool zeros, double *scratch)
{
    int64_t k = 0;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && (zeros || fabs(x[i]) > 0)) scratch[k++] = fabs(x[i]);
    qsort(scratch, (size_t)k, sizeof(*scratch), by_size);
    return k ? scratch[(k - 1) / 2] : 0;
}

/* Weights of a convolution are [O, C/g, taps..]. */
static void see_reader(const link *l, const oct_node *u)
{
    const oct_type *t = &u->in[1]->type;
    const float *w = u->in[1]->data->data;
    const int64_t taps = oct_type_span(t, 2, t->rank), per_group = t->dim[1];
    const int64_t groups = l->channels / per_group, outs = t->dim[0] / groups;

    for (int64_t i = 0; i < t->dim[0] * per_group * taps; i++) {
        const int64_t o = i / (per_group * taps), c = o / outs * per_group + i / taps % per_group;

        l->down[c] = fmax(l->down[c], fabs((double)w[i]));
    }
}

static oct_status find_sizes(link *l, oct_arena *a)
{
    const oct_tensor *t = l->first->in[1]->data, *b = oct_node_const(l->first, 2);
    const int64_t n = l->channels, span = oct_type_span(&t->type, 1, t->type.rank);
    double *x = oct_arena_array(a, 6 * (size_t)n + 1, sizeof(*x));

    if (!x) return OCT_ERR_MEMORY;
    l->up = x;
    l->down = x + n;
    l->bias = x + 2 * n;
    l->sum = x + 3 * n;
    for (int64_t i = 0; i < n * span; i++) {
        const double w = fabs((double)((const float *)t->data)[i]);

        l->up[i / span] = fmax(l->up[i / span], w);
        l->sum[i / span] += w;
    }
    for (int64_t c = 0; c < n && b; c++)
        l->bias[c] = (double)((const float *)b->data)[c];
    for (int32_t i = 0; i < l->n_readers; i++)
        see_reader(l, l->readers[i]);
    for (int64_t c = 0; c < n; c++)
        x[4 * n + c] = l->down[c] > 0 ? sqrt(l->up[c] / l->down[c]) : 0;
    l->up_median = median(l->up, n, false, x + 5 * n);
    l->down_median = median(l->down, n, false, x + 5 * n);
    l->sum_median = median(l->sum, n, false, x + 5 * n);
    l->bias_median = median(l->bias, n, true, x + 5 * n);
    l->balance = median(x + 4 * n, n, false, x + 5 * n);
    return OCT_OK;
}

/* --- cures of one channel --- */

static double after_act(const link *l, int64_t c, double x)
{
    const oct_tensor *slope = NULL;

    if (!l->act || x >= 0) return x;
    if (oct_node_is(l->act, &oct_op_relu)) return 0;
    if (oct_node_is(l->act, &oct_op_leaky_relu))
        return x * (double)oct_node_attr(l->act, "alpha")->f;
    slope = oct_node_const(l->act, 1);
    return x * oct_tensor_get_f64(slope, oct_tensor_len(slope) == 1 ? 0 : c);
}

static bool readers_take_shifts(const link *l)
{
    for (int32_t i = 0; i < l->n_readers; i++)
        if (!oct_linear_layer_takes_shifts(l->readers[i])) return false;
    return true;
}

/* Always the same number, far from others or read with large weights: a part of the readers'
 * biases, and no channel at all. */
static bool cure_constant(const link *l, cure *k, int64_t c)
{
    const double x = after_act(l, c, l->bias[c]);

    if (l->up[c] > 0) return false;
    if (l->down[c] <= SIDE * l->down_median &&
        fabs(x) <= fmax(FAR * l->sum_median, WILD * l->bias_median))
        return false;
    if (x != 0 && !readers_take_shifts(l)) return false;
    k->first.scale[c] = k->first.shift[c] = 0;
    k->then.shift[c] = x;
    k->zero.scale[c] = 0;
    k->has_zero = true;
    return true;
}

static bool cure_unread(const link *l, cure *k, int64_t c)
{
    if (l->down[c] > 0 || !(l->up[c] > SIDE * l->up_median)) return false;
    k->first.scale[c] = 0;
    return true;
}

/* How much too large a channel is for the weights that read it; 1: as others. */
static double excess(const link *l, int64_t c)
{
    if (!(l->up[c] > LEAST * l->up_median) || !(l->down[c] > LEAST * l->down_median)) return 1;
    return sqrt(l->up[c] / l->down[c]) / l->balance;
}

static bool is_wild(const link *l, int64_t c)
{
    const double by = excess(l, c);

    if (by > WILD) return l->up[c] > SIDE * l->up_median;
    return by < 1 / WILD && l->down[c] > SIDE * l->down_median;
}

static bool cure_size(const link *l, cure *k, int64_t c)
{
    const double by = excess(l, c);

    if (!is_wild(l, c) && !k->all_sizes) return false;
    k->first.scale[c] = 1 / by;
    k->then.scale[c] = by;
    return true;
}

/* After scaling, if any: x / by - b / by, which readers add again. */
static bool cure_bias(const link *l, cure *k, int64_t c)
{
    const double b = fabs(l->bias[c]);

    if (!l->takes_shifts || l->up[c] <= 0 || !(b > WILD * l->bias_median)) return false;
    if (!(b > FAR * fmax(l->sum[c], l->sum_median))) return false;
    k->first.shift[c] = -l->bias[c] * k->first.scale[c];
    k->then.shift[c] = l->bias[c];
    return true;
}

static oct_status find_cure(const link *l, oct_arena *a, cure *k)
{
    int64_t n_wild = 0;

    *k = (cure){.n = 0};
    OCT_TRY(oct_affine_identity(a, l->channels, &k->first));
    OCT_TRY(oct_affine_identity(a, l->channels, &k->then));
    OCT_TRY(oct_affine_identity(a, l->channels, &k->zero));
    for (int64_t c = 0; c < l->channels; c++)
        n_wild += is_wild(l, c);
    k->all_sizes = MANY * n_wild > l->channels;
    for (int64_t c = 0; c < l->channels; c++) {
        bool is_cured = cure_constant(l, k, c) || cure_unread(l, k, c);

        if (!is_cured) {
            is_cured = cure_size(l, k, c);
            is_cured = cure_bias(l, k, c) || is_cured;
        }
        k->n += is_cured;
    }
    return OCT_OK;
}

/* --- all links --- */

static oct_status apply(const link *l, const cure *k)
{
    bool done = false;

    OCT_TRY(oct_linear_layer_apply_after(l->first, &k->first, &done));
    for (int32_t i = 0; i < l->n_readers && done; i++) {
        OCT_TRY(oct_linear_layer_apply_before(l->readers[i], &k->then, &done));
        if (done && k->has_zero)
            OCT_TRY(oct_linear_layer_apply_before(l->readers[i], &k->zero, &done));
    }
    return done ? OCT_OK : oct_node_fail(l->first, OCT_ERR_FORMAT, "its weights are not finite");
}

static oct_status note(const link *l, const cure *k, oct_arena *a, oct_mend *m)
{
    *m = (oct_mend){
        .node = l->first->name, .kind = "equalized", .error_share = -1, .before = -1, .after = -1};
    m->text = oct_arena_printf(a,
                               "'%s' is equalized with what reads it: one scale could not fit %d "
                               "of its %d channels",
                               l->first->name, (int)k->n, (int)l->channels);
    return m->text ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_heal_channels(oct_graph *g, oct_arena *a, oct_mend **mends, int32_t *n)
{
    oct_arena *scratch = oct_arena_new(g->ctx);
    oct_status st = scratch ? OCT_OK : OCT_ERR_MEMORY;

    *n = 0;
    *mends = oct_arena_array(a, (size_t)g->n_nodes + 1, sizeof(**mends));
    if (!*mends) st = OCT_ERR_MEMORY;
    for (oct_node *k = g->first; k && !st; k = k->next) {
        link l;
        cure c = {.n = 0};

        if (!find_link(k, &l)) continue;
        st = find_sizes(&l, scratch);
        if (!st) st = find_cure(&l, scratch, &c);
        if (!st && c.n) st = apply(&l, &c);
        if (!st && c.n) st = note(&l, &c, a, &(*mends)[(*n)++]);
        oct_arena_reset(scratch);
    }
    oct_arena_free(scratch);
    return st;
}
