/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge-branches: parallel convolutions over one input whose results are added become one.
 *
 *        x ──┬── Conv 3x3 ── BN ──┐
 *            ├── Conv 1x1 ── Mul ─┼── Add ──   becomes   x ── Conv 3x3 ──
 *            └── (BN) ────────────┘
 *
 * A convolution is linear in its weights, a smaller kernel is a larger one with zeros around it,
 * and x itself is a 1x1 kernel with ones on the diagonal. This is how RepVGG and QARepVGG blocks
 * are brought from the form they were trained in to the one they are run in.
 */
#include <math.h>
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_LEAVES 16
#define MAX_DEPTH  32

/* One term of the sum: a convolution of x, or x itself, then scaled and shifted by channel. */
typedef struct leaf {
    oct_node *conv; /* NULL: x itself */
    oct_conv_geometry geo;
    oct_affine after;
} leaf;

typedef struct sum {
    oct_node *root;
    oct_arena *scratch;
    oct_value *x;
    int64_t channels;
    leaf leaf[MAX_LEAVES];
    int n, n_convs, big; /* big: the leaf with the largest kernel */
} sum;

static bool is_sum(const oct_node *n)
{
    if (!oct_node_is(n, &oct_op_add) && !oct_node_is(n, &oct_op_sum)) return false;
    if (n->n_in < 2 || n->n_out != 1 || !n->out[0]) return false;
    for (int32_t i = 0; i < n->n_in; i++)
        if (!n->in[i] || n->in[i]->data) return false;
    return true;
}

static bool is_branch_conv(const oct_node *n, oct_conv_geometry *geo)
{
    if (!oct_node_is(n, &oct_op_conv) || !oct_is_linear_layer(n)) return false;
    return !oct_conv_geometry_conv(n, &n->in[0]->type, &n->in[1]->type, geo) &&
           oct_conv_pads_are_known(geo) && geo->c_in > 0;
}

static oct_status add_leaf(sum *s, oct_node *conv, const oct_conv_geometry *geo, oct_value *x,
                           const oct_affine *after, bool *fits)
{
    if (s->n == MAX_LEAVES || (s->x && s->x != x)) {
        *fits = false;
        return OCT_OK;
    }
    leaf *l = &s->leaf[s->n++];

    s->x = x;
    s->n_convs += conv != NULL;
    l->conv = conv;
    if (conv) l->geo = *geo;
    OCT_TRY(oct_affine_identity(s->scratch, s->channels, &l->after));
    oct_affine_then(&l->after, after);
    return OCT_OK;
}

/* Splits v into terms; `after` is the scale and shift applied to v on the way to the root. */
static oct_status collect(sum *s, oct_value *v, const oct_affine *after, int depth, bool *fits)
{
    oct_node *n = v == s->root->out[0] ? s->root : oct_inner_producer(v);
    oct_conv_geometry geo;
    oct_affine a = {0}, rest;

    if (depth > MAX_DEPTH) *fits = false;
    if (!*fits) return OCT_OK;
    if (n && n->graph != s->root->graph) n = NULL;
    if (n && is_branch_conv(n, &geo)) return add_leaf(s, n, &geo, n->in[0], after, fits);
    if (n && is_sum(n)) {
        OCT_TRY(oct_affine_identity(s->scratch, s->channels, &rest)); /* a shift counts once */
        for (int32_t i = 0; i < n->n_in && *fits; i++) {
            OCT_TRY(collect(s, n->in[i], i ? &rest : after, depth + 1, fits));
            if (i == 0) memcpy(rest.scale, after->scale, (size_t)s->channels * sizeof(double));
        }
        return OCT_OK;
    }
    if (n) OCT_TRY(oct_affine_of(n, s->scratch, &a));
    if (!a.x || a.channels != s->channels) return add_leaf(s, NULL, NULL, v, after, fits);
    oct_affine_then(&a, after);
    return collect(s, a.x, &a, depth + 1, fits);
}

/* Offset of the small kernel in the big one, in units of its dilation; false: it does not fit. */
static bool place(const oct_conv_geometry *big, const oct_conv_geometry *small, int64_t *offset)
{
    if (small->n != big->n || small->group != big->group || small->c_in != big->c_in) return false;
    for (int i = 0; i < big->n; i++) {
        const int64_t d = big->dilation[i], shift = big->pad_begin[i] - small->pad_begin[i];
        const int64_t reach = big->pad_begin[i] + big->pad_end[i] - d * (big->kernel[i] - 1);
        const int64_t small_reach =
            small->pad_begin[i] + small->pad_end[i] - small->dilation[i] * (small->kernel[i] - 1);

        if (small->stride[i] != big->stride[i]) return false;
        if (small->kernel[i] > 1 && small->dilation[i] != d) return false;
        if (shift < 0 || shift % d != 0 || reach != small_reach) return false;
        offset[i] = shift / d;
        if (offset[i] + small->kernel[i] > big->kernel[i]) return false;
    }
    return true;
}

/* x itself, as a convolution. */
static void describe_identity(leaf *l, const oct_conv_geometry *big)
{
    l->geo = *big;
    for (int i = 0; i < big->n; i++) {
        l->geo.kernel[i] = l->geo.stride[i] = l->geo.dilation[i] = 1;
        l->geo.pad_begin[i] = l->geo.pad_end[i] = 0;
    }
}

static bool is_mergeable(sum *s, int64_t offset[MAX_LEAVES][OCT_MAX_SPATIAL])
{
    int64_t largest = 0;

    if (s->n < 2 || s->n_convs < 1) return false;
    for (int i = 0; i < s->n; i++) {
        const int64_t size = s->leaf[i].conv ? oct_conv_geometry_kernel_size(&s->leaf[i].geo) : 0;

        if (size > largest) {
            largest = size;
            s->big = i;
        }
    }
    const oct_conv_geometry *big = &s->leaf[s->big].geo;

    if (s->x->type.dtype != OCT_DTYPE_F32 || big->c_out != s->channels) return false;
    for (int i = 0; i < s->n; i++) {
        if (!s->leaf[i].conv) {
            if (big->c_in != s->channels) return false;
            describe_identity(&s->leaf[i], big);
        }
        if (s->leaf[i].geo.c_out != s->channels) return false;
        if (!place(big, &s->leaf[i].geo, offset[i])) return false;
    }
    return true;
}

/* Index in the big kernel of element k of a small one. */
static int64_t kernel_index(const oct_conv_geometry *big, const oct_conv_geometry *small,
                            const int64_t *offset, int64_t k)
{
    int64_t at = 0, step = 1;

    for (int i = big->n - 1; i >= 0; i--) {
        at += (offset[i] + k % small->kernel[i]) * step;
        k /= small->kernel[i];
        step *= big->kernel[i];
    }
    return at;
}

/* Adds one term to weights w (channels x c_in/group x kernel) and biases b. */
static void accumulate(const sum *s, const leaf *l, const int64_t *offset, double *w, double *b)
{
    const oct_conv_geometry *big = &s->leaf[s->big].geo;
    const int64_t n_in = big->c_in / big->group, per_group = s->channels / big->group;
    const int64_t k_big = oct_conv_geometry_kernel_size(big);
    const int64_t k_small = oct_conv_geometry_kernel_size(&l->geo);
    const float *from = l->conv ? l->conv->in[1]->data->data : NULL;
    const oct_tensor *bias = l->conv ? oct_node_const(l->conv, 2) : NULL;

    for (int64_t o = 0; o < s->channels; o++) {
        const double scale = l->after.scale[o];
        double *to = w + o * n_in * k_big;

        b[o] += l->after.shift[o];
        if (bias) b[o] += scale * (double)((const float *)bias->data)[o];
        if (!l->conv) {
            to[(o % per_group) * k_big + kernel_index(big, &l->geo, offset, 0)] += scale;
            continue;
        }
        for (int64_t i = 0; i < n_in; i++)
            for (int64_t k = 0; k < k_small; k++)
                to[i * k_big + kernel_index(big, &l->geo, offset, k)] +=
                    scale * (double)from[(o * n_in + i) * k_small + k];
    }
}

static oct_status round_to_f32(oct_ctx *ctx, const oct_type *type, const double *x,
                               oct_tensor **out)
{
    const int64_t len = oct_type_len(type);

    OCT_TRY(oct_tensor_make(ctx, type, out));
    for (int64_t i = 0; i < len; i++)
        ((float *)(*out)->data)[i] = (float)x[i];
    return OCT_OK;
}

static bool all_finite(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite((float)x[i])) return false;
    return true;
}

/* The convolution with the largest kernel absorbs all terms. */
static oct_status merge(sum *s, int64_t offset[MAX_LEAVES][OCT_MAX_SPATIAL], int *n_changed)
{
    oct_node *conv = s->leaf[s->big].conv;
    oct_ctx *ctx = conv->graph->ctx;
    const oct_type wt = conv->in[1]->type, bt = oct_type_make(OCT_DTYPE_F32, 1, &s->channels);
    const int64_t len = oct_type_len(&wt);
    double *w = oct_calloc(ctx, (size_t)(len + s->channels), sizeof(double)), *b = w ? w + len : w;
    oct_tensor *wf = NULL, *bf = NULL;
    oct_status st = w ? OCT_OK : OCT_ERR_MEMORY;

    for (int i = 0; i < s->n && !st; i++)
        accumulate(s, &s->leaf[i], offset[i], w, b);
    if (st || !all_finite(w, len + s->channels)) goto done;
    if ((st = round_to_f32(ctx, &wt, w, &wf))) goto done;
    if ((st = round_to_f32(ctx, &bt, b, &bf))) goto done;
    st = oct_node_set_const(conv, 1, "weight", wf);
    wf = NULL;
    if (st) goto done;
    st = oct_node_set_const(conv, 2, "bias", bf);
    bf = NULL;
    if (st) goto done;
    st = oct_node_take_output(conv, s->root);
    ++*n_changed;
done:
    oct_tensor_unref(wf);
    oct_tensor_unref(bf);
    oct_free(ctx, w);
    return st;
}

static oct_status visit(oct_node *n, oct_arena *scratch, int *n_changed)
{
    sum s = {.root = n, .scratch = scratch};
    int64_t offset[MAX_LEAVES][OCT_MAX_SPATIAL] = {{0}};
    const oct_type *t = &n->out[0]->type;
    oct_affine nothing;
    bool fits = true;

    if (t->dtype != OCT_DTYPE_F32 || t->rank < 3 || t->dim[1] < 1) return OCT_OK;
    s.channels = t->dim[1];
    OCT_TRY(oct_affine_identity(scratch, s.channels, &nothing));
    OCT_TRY(collect(&s, n->out[0], &nothing, 0, &fits));
    if (!fits || !is_mergeable(&s, offset)) return OCT_OK;
    return merge(&s, offset, n_changed);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    oct_arena *scratch = oct_arena_new(g->ctx);
    oct_status st = scratch ? OCT_OK : OCT_ERR_MEMORY;

    for (oct_node *n = g->first, *next; n && !st; n = next) {
        next = n->next; /* n may go away, and nodes before it */
        if (!is_sum(n)) continue;
        st = visit(n, scratch, n_changed);
        oct_arena_reset(scratch);
    }
    oct_arena_free(scratch);
    return st;
}

const oct_pass oct_pass_merge_branches = {
    .name = "merge-branches",
    .help =
        "make one Conv of parallel ones that are added: RepVGG, QARepVGG, their identity branch",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
