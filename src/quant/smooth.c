/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SmoothQuant: a few channels in front of a product may be far larger than all others, and take
 * the codes from them. x * W = (x / s) * (s * W), with s for each channel: from the largest
 * number of the channel and of the weights that it meets, as alpha shares it out between them.
 * The division goes into what makes x where that can take it, else it becomes a Mul.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"
#include "exec/run.h"
#include "op/op.h"
#include "pass/affine.h"
#include "pass/rewrite.h"
#include "quant/correct.h"
#include "quant/solve.h"

#define MOST_FACTOR 1e2
#define LEAST_PART  0.1 /* no factor is below that of this part of the channels */

/* A value that products with constant weights read along its last axis. */
typedef struct smoothed {
    oct_value *x;
    int64_t channels;
    float *most[OCT_FEED_MAX_WORKERS]; /* of each channel: the largest magnitude */
    double *factor;
} smoothed;

typedef struct work {
    oct_graph *g;
    const oct_graph *bound;
    oct_arena *arena;
    smoothed *item;
    int32_t n;
    oct_map by_name; /* index + 1 */
    uint8_t *wanted; /* by value id */
    struct seer {
        struct work *w;
        int32_t number;
    } seers[OCT_FEED_MAX_WORKERS];
} work;

/* --- which --- */

static bool is_product(const oct_node *n, const oct_value *x, const oct_graph *g)
{
    oct_weight_axes ax;

    if (n->graph != g || n->n_in < 2 || n->in[0] != x || !oct_weight_axes_of(n, &ax)) return false;
    if (oct_node_is(n, &oct_op_gemm))
        return oct_is_linear_layer(n) && oct_node_attr(n, "transA")->i == 0;
    return oct_node_is(n, &oct_op_mat_mul);
}

static int64_t channels_of(const work *w, const oct_value *x)
{
    const oct_type *t = &w->bound->values[x->id]->type;
    oct_weight_axes ax;
    bool some = false;

    if (x->data || t->dtype != OCT_DTYPE_F32 || !oct_type_is_static(t) || t->rank < 2) return 0;
    for (int32_t i = 0; i < x->n_users; i++) {
        if (!is_product(x->users[i], x, w->g)) continue;
        (void)oct_weight_axes_of(x->users[i], &ax);
        if (ax.n_in != t->dim[t->rank - 1]) return 0;
        some = true;
    }
    return some ? t->dim[t->rank - 1] : 0;
}

static oct_status find(work *w)
{
    for (int32_t i = 0; i < w->bound->n_value_ids; i++) {
        oct_value *x = w->g->values[i];
        const int64_t n = x && x->graph == w->g ? channels_of(w, x) : 0;
        smoothed *s = &w->item[w->n];

        if (n == 0) continue;
        *s = (smoothed){.x = x, .channels = n};
        s->factor = oct_arena_array(w->arena, (size_t)n, sizeof(double));
        if (!s->factor) return OCT_ERR_MEMORY;
        for (int k = 0; k < OCT_FEED_MAX_WORKERS; k++)
            if (!(s->most[k] = oct_arena_array(w->arena, (size_t)n, sizeof(float))))
                return OCT_ERR_MEMORY;
        w->wanted[i] = 1;
        OCT_TRY(oct_map_put(&w->by_name, x->name, (void *)(uintptr_t)(++w->n)));
    }
    return OCT_OK;
}

/* --- one pass over the pictures --- */

static void see_row(const float *x, int64_t n, int64_t step, float *most)
{
    for (int64_t i = 0; i < n; i++) {
        const float y = fabsf(x[i * step]);

        if (!(y <= *most)) *most = y; /* not a number as well */
    }
}

static void see(float *most, int64_t channels, const oct_seen *v)
{
    const float *x = v->data;
    const int64_t rows = oct_type_len(v->type) / OCT_MAX(channels, (int64_t)1);

    if (v->layout != OCT_LAYOUT_CLAST) {
        for (int64_t c = 0; c < channels; c++)
            see_row(x + c, rows, channels, &most[c]);
        return;
    }
    /* [.., channels, dim 1]: the last axis is the innermost but one. */
    for (int64_t i = 0; i < rows / v->type->dim[1]; i++)
        for (int64_t c = 0; c < channels; c++)
            see_row(x + (i * channels + c) * v->pitch, v->type->dim[1], 1, &most[c]);
}

static oct_status on_value(void *user, const oct_seen *v)
{
    const struct seer *k = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&k->w->by_name, v->value->name);

    if (at) see(k->w->item[at - 1].most[k->number], k->w->item[at - 1].channels, v);
    return OCT_OK;
}

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    work *w = user;

    w->seers[worker] = (struct seer){.w = w, .number = worker};
    oct_run_set_seen_hook(r, on_value, &w->seers[worker]);
    return OCT_OK;
}

static oct_status after(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    (void)user, (void)worker, (void)ctx, (void)index;
    return oct_run_show_inputs(r);
}

static oct_status measure(work *w, oct_feed *f)
{
    oct_feed_job job = {.what = "smoothing", .begin = begin, .one = after, .user = w};
    oct_plan_options o;
    oct_plan *plan = NULL;
    oct_status st;

    OCT_TRY(oct_feed_rewind(f, 0));
    oct_plan_options_init(&o);
    oct_feed_workers(f, w->g->ctx, &job.n_workers, &o.n_threads);
    job.n_workers = OCT_MIN(job.n_workers, (int32_t)OCT_FEED_MAX_WORKERS);
    st = oct_plan_new_watching(w->bound, &o, w->wanted, &plan);
    if (!st) st = oct_feed_each(f, plan, &job);
    oct_plan_free(plan);
    for (int32_t i = 0; i < w->n && !st; i++)
        for (int64_t c = 0; c < w->item[i].channels; c++) {
            float *most = &w->item[i].most[0][c];

            for (int k = 1; k < OCT_FEED_MAX_WORKERS; k++)
                if (!(w->item[i].most[k][c] <= *most)) *most = w->item[i].most[k][c];
            if (!isfinite(*most))
                return oct_fail(w->g->ctx, OCT_ERR_FORMAT, "value '%s' is not finite",
                                w->item[i].x->name);
        }
    return st;
}

/* --- factors --- */

/* The largest weight that meets each channel. */
static void weigh(const smoothed *s, const oct_graph *g, double *most)
{
    for (int32_t i = 0; i < s->x->n_users; i++) {
        const oct_node *n = s->x->users[i];
        oct_weight_axes ax;
        int64_t step;
        const float *w;

        if (!is_product(n, s->x, g)) continue;
        (void)oct_weight_axes_of(n, &ax);
        w = n->in[1]->data->data;
        step = ax.in == 0 ? ax.n_out : 1;
        for (int64_t c = 0; c < ax.n_in; c++)
            for (int64_t o = 0; o < ax.n_out; o++)
                most[c] =
                    OCT_MAX(most[c], fabs((double)w[c * step + o * (ax.in == 0 ? 1 : ax.n_in)]));
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static oct_status find_factors(smoothed *s, const oct_graph *g, double alpha, oct_arena *a)
{
    double *w = oct_arena_array(a, (size_t)s->channels, sizeof(double)), least;

    if (!w) return OCT_ERR_MEMORY;
    weigh(s, g, w);
    for (int64_t c = 0; c < s->channels; c++) {
        const double x = (double)s->most[0][c];

        s->factor[c] = x > 0 && w[c] > 0 ? pow(x, alpha) / pow(w[c], 1 - alpha) : 0;
        w[c] = s->factor[c];
    }
    qsort(w, (size_t)s->channels, sizeof(*w), ascending);
    least = OCT_MAX(w[(int64_t)(LEAST_PART * (double)(s->channels - 1))], 1 / MOST_FACTOR);
    least = OCT_MIN(least, MOST_FACTOR);
    for (int64_t c = 0; c < s->channels; c++) {
        s->factor[c] = OCT_MIN(OCT_MAX(s->factor[c], least), MOST_FACTOR);
        if (!isfinite(s->factor[c])) s->factor[c] = 1;
    }
    return OCT_OK;
}

/* --- the side of x --- */

/* A copy of a constant along the last axis (or of one number), divided; NULL if it is not that. */
static oct_status divided(const oct_value *v, const smoothed *s, oct_tensor **out)
{
    const oct_tensor *t = v ? v->data : NULL;
    const int64_t len = t ? oct_tensor_length(t) : 0;
    oct_type type;

    *out = NULL;
    if (!t || t->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    if (len != 1 && (len != s->channels || t->type.dim[t->type.rank - 1] != len)) return OCT_OK;
    type = t->type;
    if (len == 1) type = oct_type_make(OCT_DTYPE_F32, 1, &s->channels);
    OCT_TRY(oct_tensor_make(v->graph->ctx, &type, out));
    for (int64_t c = 0; c < s->channels; c++)
        ((float *)(*out)->data)[c] =
            (float)((double)((const float *)t->data)[len == 1 ? 0 : c] / s->factor[c]);
    return OCT_OK;
}

/* Operand i divided, if it can be: *can says so. Without `change` nothing happens. */
static oct_status divide_const(oct_node *n, int32_t i, const smoothed *s, bool change, bool *can)
{
    oct_tensor *t = NULL;

    OCT_TRY(divided(oct_node_in(n, i), s, &t));
    *can = t != NULL;
    if (t && change) return oct_node_set_const(n, i, "smoothed", t);
    oct_tensor_unref(t);
    return OCT_OK;
}

/* The columns of a product's weight. */
static oct_status divide_columns(oct_node *n, const smoothed *s, bool change, bool *can)
{
    const oct_tensor *w = oct_node_const(n, 1);
    oct_tensor *t = NULL;

    *can =
        w && w->type.dtype == OCT_DTYPE_F32 && w->type.rank == 2 && w->type.dim[1] == s->channels;
    if (!*can || !change) return OCT_OK;
    OCT_TRY(oct_tensor_copy(n->graph->ctx, w, &t));
    for (int64_t i = 0; i < oct_tensor_length(t); i++)
        ((float *)t->data)[i] = (float)((double)((float *)t->data)[i] / s->factor[i % s->channels]);
    return oct_node_set_const(n, 1, "weight", t);
}

static oct_status divide_gemm(oct_node *n, const smoothed *s, oct_arena *a, bool change, bool *can)
{
    oct_affine by;

    *can = oct_is_linear_layer(n) && oct_linear_layer_channels(n) == s->channels;
    if (!*can || !change) return OCT_OK;
    OCT_TRY(oct_affine_identity(a, s->channels, &by));
    for (int64_t c = 0; c < s->channels; c++)
        by.scale[c] = 1 / s->factor[c];
    OCT_TRY(oct_linear_layer_apply_after(n, &by, can));
    return *can ? OCT_OK : oct_node_fail(n, OCT_ERR_FORMAT, "its weights are not finite");
}

static oct_status divide_norm(oct_node *n, const smoothed *s, bool change, bool *can)
{
    OCT_TRY(divide_const(n, 1, s, false, can));
    if (*can && oct_node_in(n, 2)) OCT_TRY(divide_const(n, 2, s, change, can));
    return *can ? divide_const(n, 1, s, change, can) : OCT_OK;
}

/* Makes v smaller by what makes it: sums and Relu pass that on. */
static oct_status divide(oct_value *v, const smoothed *s, oct_arena *a, bool change, bool *can)
{
    oct_node *n = v->producer;
    int k;

    *can = false;
    if (!n || n->graph != v->graph || n->out[0] != v) return OCT_OK;
    if (oct_node_is(n, &oct_op_layer_normalization) || oct_node_is(n, &oct_op_rms_normalization))
        return divide_norm(n, s, change, can);
    if (oct_node_is(n, &oct_op_mat_mul)) return divide_columns(n, s, change, can);
    if (oct_node_is(n, &oct_op_gemm)) return divide_gemm(n, s, a, change, can);
    if (oct_node_is(n, &oct_op_relu) && oct_sole_user(n->in[0]))
        return divide(n->in[0], s, a, change, can);
    if ((k = oct_const_operand(n)) < 0) return OCT_OK;
    if (oct_node_is(n, &oct_op_mul)) return divide_const(n, k, s, change, can);
    if (!oct_node_is(n, &oct_op_add) || !oct_sole_user(n->in[1 - k])) return OCT_OK;
    OCT_TRY(divide(n->in[1 - k], s, a, false, can));
    if (*can) OCT_TRY(divide_const(n, k, s, change, can));
    return *can ? divide(n->in[1 - k], s, a, change, can) : OCT_OK;
}

/* Products alone read x / s; others x itself. */
static oct_status insert(work *w, const smoothed *s)
{
    oct_value *x = s->x, *y = NULL, *in[2] = {x, NULL};
    oct_node *before = x->producer ? x->producer->next : w->g->first, *mul;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &s->channels);
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(w->g->ctx, &type, &t));
    for (int64_t c = 0; c < s->channels; c++)
        ((float *)t->data)[c] = (float)(1 / s->factor[c]);
    if (!(in[1] = oct_value_const(w->g, oct_graph_fresh_name(w->g, "smooth"), t)))
        return OCT_ERR_MEMORY;
    mul = oct_node_new(w->g, before, oct_graph_fresh_name(w->g, "Smooth"), &oct_op_mul, in, 2, NULL,
                       1);
    if (!mul) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_infer(mul));
    y = mul->out[0];
    for (int32_t i = x->n_users - 1; i >= 0; i--)
        if (is_product(x->users[i], x, w->g)) OCT_TRY(oct_node_set_input(x->users[i], 0, y));
    return OCT_OK;
}

/* --- the side of the weights --- */

static oct_status grow_weight(oct_node *n, const smoothed *s)
{
    const oct_tensor *w = n->in[1]->data;
    oct_tensor *t = NULL;
    oct_weight_axes ax;

    (void)oct_weight_axes_of(n, &ax);
    OCT_TRY(oct_tensor_copy(n->graph->ctx, w, &t));
    for (int64_t i = 0; i < oct_tensor_length(t); i++) {
        const int64_t c = ax.in == 0 ? i / ax.n_out : i % ax.n_in;
        float *x = (float *)t->data + i;

        *x = (float)((double)*x * s->factor[c]);
    }
    return oct_node_set_const(n, 1, "weight", t);
}

static oct_status smooth(work *w, smoothed *s, double alpha)
{
    bool only = !s->x->is_output, can = false;

    OCT_TRY(find_factors(s, w->g, alpha, w->arena));
    for (int32_t i = 0; i < s->x->n_users; i++) {
        const bool mine = is_product(s->x->users[i], s->x, w->g);

        if (mine) OCT_TRY(grow_weight(s->x->users[i], s));
        only = only && mine;
    }
    if (only) OCT_TRY(divide(s->x, s, w->arena, true, &can));
    return can ? OCT_OK : insert(w, s);
}

/* --- all of it --- */

static oct_status run(work *w, oct_feed *f, double alpha)
{
    const size_t n = (size_t)w->bound->n_value_ids + 1;

    w->item = oct_arena_array(w->arena, n, sizeof(*w->item));
    w->wanted = oct_arena_array(w->arena, n, 1);
    if (!w->item || !w->wanted) return OCT_ERR_MEMORY;
    OCT_TRY(find(w));
    if (w->n == 0) return OCT_OK;
    OCT_TRY(measure(w, f));
    for (int32_t i = 0; i < w->n; i++)
        OCT_TRY(smooth(w, &w->item[i], alpha));
    return OCT_OK;
}

oct_status oct_smooth(oct_graph *g, const oct_graph *bound, oct_feed *f, double alpha,
                      int32_t *n_products)
{
    work w = {.g = g, .bound = bound, .arena = oct_arena_new(g->ctx)};
    oct_status st;

    if (!w.arena) return OCT_ERR_MEMORY;
    oct_map_init(&w.by_name, g->ctx);
    st = run(&w, f, alpha);
    if (n_products) *n_products = w.n;
    oct_map_fini(&w.by_name);
    oct_arena_free(w.arena);
    return st;
}
