/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-layer equalization: a channel between two convolutions may be scaled down in the first and
 * up in the second, as long as the activation between them is positively homogeneous. All channels
 * get the same size seen from both sides, so one scale fits them better. Biases follow their
 * weights.
 *
 * Pairs share layers, so they are iterated until convergence; this works on the largest weight of
 * each filter and channel, and the weights are changed once, at the end.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"
#include "quant/correct/correct.h"
#include "quant/solve/solve.h"

enum { MOST_ROUNDS = 40 };

#define CLOSE     1e-3  /* the largest relative change of a factor at which the iteration ends */
#define MOST_STEP 1e4   /* no channel is scaled by more over all rounds: dead filters */
#define SMALLEST  1e-12 /* weights below are treated as zero */

/* The weights of a layer, seen by channel: the largest of each (output, input) pair. */
typedef struct grid {
    oct_node *layer;
    oct_weight_axes ax;
    int64_t d0, d1;
    float *most; /* d0 x d1, in the order of the weight */
} grid;

typedef struct pair {
    grid *first, *second;
    int64_t channels;
    double *scale; /* of the channels between them: the first is divided, the second multiplied */
} pair;

typedef struct work {
    oct_arena *arena;
    grid **of_node; /* by node id */
    pair *pairs;
    int32_t n;
    double *size[2]; /* of the channels of one pair, seen from the first and the second */
} work;

/* --- channels --- */

static int64_t out_channel(const grid *w, int64_t i, int64_t k)
{
    if (w->ax.out == 0) return i;
    return i / (w->d0 / w->ax.groups) * w->d1 + k; /* ConvTranspose: [C, O/g] */
}

static int64_t in_channel(const grid *w, int64_t i, int64_t k)
{
    if (w->ax.out == 1) return i;
    return i / (w->d0 / w->ax.groups) * w->d1 + k; /* Conv: [O, C/g] */
}

static oct_status find_grid(work *w, oct_node *n, grid **out)
{
    grid *g = w->of_node[n->id];
    const oct_tensor *t = n->in[1]->data;
    const float *x = t->data;
    int64_t taps;

    if ((*out = g)) return OCT_OK;
    if (!(g = oct_arena_array(w->arena, 1, sizeof(*g)))) return OCT_ERR_MEMORY;
    (void)oct_weight_axes_of(n, &g->ax);
    g->layer = n;
    g->d0 = t->type.dim[0];
    g->d1 = t->type.dim[1];
    taps = oct_type_span(&t->type, 2, t->type.rank);
    g->most = oct_arena_array(w->arena, (size_t)(g->d0 * g->d1) + 1, sizeof(float));
    if (!g->most) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < g->d0 * g->d1; i++)
        for (int64_t k = 0; k < taps; k++)
            g->most[i] = OCT_MAX(g->most[i], fabsf(x[i * taps + k]));
    *out = w->of_node[n->id] = g;
    return OCT_OK;
}

/* The largest weight of each output or input channel. */
static void sizes(const grid *g, bool of_outputs, double *size, int64_t n)
{
    memset(size, 0, (size_t)n * sizeof(*size));
    for (int64_t i = 0; i < g->d0; i++)
        for (int64_t k = 0; k < g->d1; k++) {
            const int64_t c = of_outputs ? out_channel(g, i, k) : in_channel(g, i, k);

            size[c] = OCT_MAX(size[c], (double)g->most[i * g->d1 + k]);
        }
}

static void scale_grid(grid *g, bool of_outputs, const double *by)
{
    for (int64_t i = 0; i < g->d0; i++)
        for (int64_t k = 0; k < g->d1; k++) {
            const int64_t c = of_outputs ? out_channel(g, i, k) : in_channel(g, i, k);

            g->most[i * g->d1 + k] = (float)((double)g->most[i * g->d1 + k] * by[c]);
        }
}

/* --- pairs --- */

static bool is_conv(const oct_node *n)
{
    oct_weight_axes ax;

    if (!oct_node_is(n, &oct_op_conv) && !oct_node_is(n, &oct_op_conv_transpose)) return false;
    return oct_is_linear_layer(n) && oct_weight_axes_of(n, &ax);
}

/* f(s * x) = s * f(x) for all s > 0, channel by channel. */
static bool scales_along(const oct_node *n)
{
    if (oct_node_is(n, &oct_op_relu) || oct_node_is(n, &oct_op_leaky_relu)) return true;
    return oct_node_is(n, &oct_op_p_relu) && oct_node_const(n, 1) != NULL;
}

/* The consumer of this convolution that may share factors with it, or NULL. */
static oct_node *partner(const oct_node *n)
{
    oct_node *u = is_conv(n) ? oct_sole_user(n->out[0]) : NULL;

    if (u && scales_along(u) && u->in[0]->producer == n) u = oct_sole_user(u->out[0]);
    if (!u || !is_conv(u) || u->in[1]->n_users != 1 || n->in[1]->n_users != 1) return NULL;
    return oct_linear_layer_channels(n) == oct_linear_layer_in_channels(u) ? u : NULL;
}

static oct_status find_pairs(work *w, oct_graph *g)
{
    int64_t most = 1;

    for (oct_node *n = g->first; n; n = n->next) {
        oct_node *second = partner(n);
        pair *p = &w->pairs[w->n];

        if (!second) continue;
        OCT_TRY(find_grid(w, n, &p->first));
        OCT_TRY(find_grid(w, second, &p->second));
        p->channels = oct_linear_layer_channels(n);
        p->scale = oct_arena_array(w->arena, (size_t)p->channels + 1, sizeof(double));
        if (!p->scale) return OCT_ERR_MEMORY;
        for (int64_t c = 0; c < p->channels; c++)
            p->scale[c] = 1;
        most = OCT_MAX(most, p->channels);
        w->n++;
    }
    for (int i = 0; i < 2; i++)
        if (!(w->size[i] = oct_arena_array(w->arena, (size_t)most + 1, sizeof(double))))
            return OCT_ERR_MEMORY;
    return OCT_OK;
}

/* --- rounds --- */

/* Both sides get the geometric mean. Returns the largest change of a factor. */
static double balance(work *w, pair *p)
{
    double *up = w->size[0], *down = w->size[1]; /* sizes first, then the factors */
    double change = 0;

    sizes(p->first, true, up, p->channels);
    sizes(p->second, false, down, p->channels);
    for (int64_t c = 0; c < p->channels; c++) {
        const double a = up[c], b = down[c];
        double s = a > SMALLEST && b > SMALLEST && isfinite(a) && isfinite(b) ? sqrt(a / b) : 1;

        s = OCT_MIN(OCT_MAX(s * p->scale[c], 1 / MOST_STEP), MOST_STEP) / p->scale[c];
        p->scale[c] *= s;
        up[c] = 1 / s;
        down[c] = s;
        change = OCT_MAX(change, fabs(log(s)));
    }
    scale_grid(p->first, true, up);
    scale_grid(p->second, false, down);
    return change;
}

static oct_status apply(const pair *p, oct_arena *a)
{
    oct_affine shrink, grow;
    bool done = false;

    OCT_TRY(oct_affine_identity(a, p->channels, &shrink));
    OCT_TRY(oct_affine_identity(a, p->channels, &grow));
    for (int64_t c = 0; c < p->channels; c++) {
        shrink.scale[c] = 1 / p->scale[c];
        grow.scale[c] = p->scale[c];
    }
    OCT_TRY(oct_linear_layer_apply_after(p->first->layer, &shrink, &done));
    if (done) OCT_TRY(oct_linear_layer_apply_before(p->second->layer, &grow, &done));
    return done ? OCT_OK
                : oct_node_fail(p->first->layer, OCT_ERR_FORMAT, "its weights are not finite");
}

static oct_status equalize(work *w, oct_graph *g)
{
    double change = 1;

    OCT_TRY(find_pairs(w, g));
    for (int round = 0; round < MOST_ROUNDS && change > CLOSE; round++) {
        change = 0;
        for (int32_t i = 0; i < w->n; i++) {
            const double moved = balance(w, &w->pairs[i]);

            change = OCT_MAX(change, moved);
        }
    }
    for (int32_t i = 0; i < w->n; i++)
        OCT_TRY(apply(&w->pairs[i], w->arena));
    return OCT_OK;
}

oct_status oct_equalize(oct_graph *g, int32_t *n_pairs)
{
    work w = {.arena = oct_arena_new(g->ctx)};
    oct_status st = OCT_ERR_MEMORY;

    if (!w.arena) return st;
    w.of_node = oct_arena_array(w.arena, (size_t)g->root->n_node_ids + 1, sizeof(grid *));
    w.pairs = oct_arena_array(w.arena, (size_t)g->n_nodes + 1, sizeof(pair));
    if (w.of_node && w.pairs) st = equalize(&w, g);
    if (n_pairs) *n_pairs = w.n;
    oct_arena_free(w.arena);
    return st;
}
