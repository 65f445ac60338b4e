/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormTrain and BatchNormTrainGrad in NHWC, the activation included: each goes over its
 * operands twice, once for sums over all pixels, once for the result. The sums of the batch
 * statistics are in double: in float, a part of an image that is all one value (a border) has the
 * same rounding error in every pixel, and these add up. The gradient's sums of some pixels are in
 * float, those over the parts of a tensor in double. Parts do not depend on the number of threads,
 * and are added in order.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "exec/train/bf16.h"
#include "op/grad/rules.h"

enum { X, SCALE, BIAS, MEAN, VAR };
enum { Y, MEAN_NEXT, VAR_NEXT, BATCH_MEAN, INV_STD };
enum { G_X, G_DY, G_SCALE, G_BIAS, G_MEAN, G_INV_STD };
enum { DX, DSCALE, DBIAS };

#define MAX_PARTS 64
#define RUN       64   /* pixels that are summed in float, at most */
#define RUN_SIZE  8192 /* elements of such a run: they should stay in the first-level cache */

typedef struct state {
    const oct_simd *simd;
    oct_act act;
    int64_t pixels, channels; /* pixels: of all images */
    oct_rows x, dy, y;
    int64_t parts, run; /* run: pixels that are summed in float */
    int64_t tile;       /* floats of a thread for rows that are not float32: 0 or three runs */
    double epsilon, momentum;
    bool is_frozen; /* statistics do not depend on x */
} state;

static bool is_known(int64_t act)
{
    return act >= 0 && act < OCT_ACT_RATIONAL_SIGMOID;
}

static bool accepts_any(const oct_plan *p, const oct_step *s, const oct_op *op)
{
    const oct_type *x;

    if (!s->node || s->node->op != op || !oct_step_is_f32(p, s) || !oct_step_is_bare(s))
        return false;
    x = &p->slots[s->in[X]].type;
    for (int32_t i = 0; i < (op == &oct_op_batch_norm_train ? 1 : 2); i++)
        if (p->slots[s->in[i]].data) return false;
    return x->rank >= 2 && x->rank <= 5 && oct_type_len(x) > 0 && s->out[0] >= 0 &&
           is_known(oct_node_attr(s->node, "act")->i);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    *layout = OCT_LAYOUT_CLAST;
    return accepts_any(p, s, &oct_op_batch_norm_train);
}

static bool accepts_grad(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    *layout = OCT_LAYOUT_CLAST;
    return accepts_any(p, s, &oct_op_batch_norm_train_grad);
}

/* Pixels as rows of channels; a matrix [N x C] has no other layout. */
static oct_rows rows_of(const oct_plan *p, int32_t slot)
{
    return (oct_rows){oct_slot_bf16(p, slot), p->slots[slot].layout == OCT_LAYOUT_CLAST
                                                  ? oct_slot_pitch(p, slot)
                                                  : p->slots[slot].type.dim[1]};
}

static double number(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a ? (double)a->f : 0;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[X]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .act = {(oct_act_kind)oct_node_attr(s->node, "act")->i,
                          (float)number(s->node, "act_a"), (float)number(s->node, "act_b")},
                  .pixels = x->dim[0] * oct_type_pixels(x),
                  .channels = x->dim[1],
                  .x = rows_of(p, s->in[X]),
                  .dy = rows_of(p, s->in[s->node->op == &oct_op_batch_norm_train ? 0 : 1]),
                  .y = rows_of(p, s->out[0]),
                  .epsilon = number(s->node, "epsilon"),
                  .momentum = number(s->node, "momentum")};
    st->is_frozen =
        s->node->op == &oct_op_batch_norm_train_grad && oct_node_attr(s->node, "frozen")->i;
    st->parts = OCT_MIN(MAX_PARTS, oct_ceil_div(st->pixels, 4 * RUN));
    st->run = OCT_MAX(4, OCT_MIN(RUN, RUN_SIZE / st->channels));
    if (st->x.bf16 || st->dy.bf16 || st->y.bf16) st->tile = 3 * st->run * st->channels;
    /* two sums in double for each part; two in float for each thread; numbers for each channel */
    s->scratch_size = (size_t)st->channels * ((size_t)st->parts * 2 * sizeof(double) +
                                              (size_t)(2 * p->n_threads + 4) * sizeof(float)) +
                      (size_t)(st->tile * p->n_threads + 16) * sizeof(float); /* vectors read on */
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const void *x, *dy;
    void *y;
    oct_norm m;
    double *sums; /* [part][2][channels] */
    float *some;  /* [thread][2][channels] */
    float *own;   /* [4][channels] */
    float *tiles; /* [thread][tile] */
} job;

static job job_of(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {.st = st, .x = b->in[X], .y = b->out[0], .sums = b->scratch, .m = {.act = st->act}};

    j.some = (float *)(j.sums + st->parts * 2 * st->channels);
    j.own = j.some + 2 * st->channels * b->n_threads;
    j.tiles = j.own + 4 * st->channels;
    return j;
}

/* The rows of all operands from pixel k on, as floats. */
typedef struct views {
    const float *x, *dy;
    float *y;
    int64_t x_pitch, dy_pitch, y_pitch;
} views;

static views look(const job *j, int64_t k, int64_t n)
{
    const state *st = j->st;
    const int64_t c = st->channels, run = st->run * c;
    float *tile = j->tiles + st->tile * oct_parallel_thread();
    views v = {0};

    v.x = oct_rows_read(st->x, j->x, k, n, c, tile, &v.x_pitch);
    if (j->dy) v.dy = oct_rows_read(st->dy, j->dy, k, n, c, tile + run, &v.dy_pitch);
    v.y = oct_rows_begin(st->y, j->y, k, c, tile + 2 * run, &v.y_pitch);
    return v;
}

static void sum_parts(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t c = st->channels;
    float *a = j->some + 2 * c * oct_parallel_thread(), *b = a + c;

    for (int64_t i = begin; i < end; i++) {
        const int64_t last = (i + 1) * st->pixels / st->parts;
        double *to = j->sums + i * 2 * c;

        memset(to, 0, (size_t)(2 * c) * sizeof(*to));
        for (int64_t k = i * st->pixels / st->parts; k < last; k += st->run) {
            const int64_t n = OCT_MIN(st->run, last - k);
            const views v = look(j, k, n);

            if (!j->dy) {
                st->simd->train->moments(v.x, v.x_pitch, n, to, to + c, c);
                continue;
            }
            st->simd->train->norm_sums(&j->m, v.x, v.x_pitch, v.dy, v.dy_pitch, n, a, b, c);
            for (int64_t m = 0; m < c; m++) {
                to[m] += (double)a[m];
                to[c + m] += (double)b[m];
            }
        }
    }
}

/* The sums of all parts, in those of the first. */
static void find_sums(const oct_bound *b, job *j)
{
    const int64_t n = 2 * j->st->channels;

    oct_parallel_for(b->n_threads, j->st->parts, 1, sum_parts, j);
    for (int64_t i = 1; i < j->st->parts; i++)
        for (int64_t k = 0; k < n; k++)
            j->sums[k] += j->sums[i * n + k];
}

static int64_t grain_of(const state *st)
{
    return OCT_MAX(1, OCT_GRAIN_ELEMENTS / st->channels);
}

static bool is_wanted(const oct_bound *b, int i)
{
    return i < b->step->n_out && b->out[i];
}

static void put(const oct_bound *b, int i, int64_t at, double v)
{
    if (is_wanted(b, i)) ((float *)b->out[i])[at] = (float)v;
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i += st->run) {
        const int64_t n = OCT_MIN(st->run, end - i);
        const views v = look(j, i, n);

        st->simd->train->norm(&j->m, v.x, v.x_pitch, v.y, v.y_pitch, n, st->channels);
        oct_rows_write(st->y, j->y, i, n, st->channels, v.y);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const float *scale = b->in[SCALE], *bias = b->in[BIAS], *mean = b->in[MEAN], *var = b->in[VAR];
    const double n = (double)st->pixels, keep = st->momentum;
    job j = job_of(b);
    float *mul = j.own, *add = mul + st->channels, *near = add + st->channels;

    find_sums(b, &j);
    for (int64_t c = 0; c < st->channels; c++) {
        const double m = j.sums[c] / n;
        const double v = fmax(j.sums[st->channels + c] / n - m * m, 0);
        const double inv_std = 1 / sqrt(v + st->epsilon);

        put(b, BATCH_MEAN, c, m);
        put(b, INV_STD, c, inv_std);
        put(b, MEAN_NEXT, c, keep * (double)mean[c] + (1 - keep) * m);
        put(b, VAR_NEXT, c, keep * (double)var[c] + (1 - keep) * v * n / (n - 1));
        mul[c] = (float)(inv_std * (double)scale[c]);
        near[c] = (float)m;
        add[c] = (float)((double)bias[c] - (m - (double)near[c]) * inv_std * (double)scale[c]);
    }
    j.m.mean = near;
    j.m.mul = mul;
    j.m.add = add;
    oct_parallel_for(b->n_threads, st->pixels, grain_of(st), rows, &j);
    return OCT_OK;
}

static void grad_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i += st->run) {
        const int64_t n = OCT_MIN(st->run, end - i);
        const views v = look(j, i, n);

        st->simd->train->norm_grad(&j->m, v.x, v.x_pitch, v.dy, v.dy_pitch, v.y, v.y_pitch, n,
                                   st->channels);
        oct_rows_write(st->y, j->y, i, n, st->channels, v.y);
    }
}

static oct_status run_grad(const oct_bound *b)
{
    const state *st = b->step->state;
    const float *scale = b->in[G_SCALE], *bias = b->in[G_BIAS];
    const double n = (double)st->pixels;
    job j = job_of(b);
    float *mul = j.own, *add = mul + st->channels;
    float *dz = add + st->channels, *dhat = dz + st->channels;

    j.dy = b->in[G_DY];
    j.m.mean = b->in[G_MEAN];
    j.m.inv_std = b->in[G_INV_STD];
    for (int64_t c = 0; c < st->channels; c++) {
        mul[c] = scale[c] * j.m.inv_std[c];
        add[c] = bias[c];
    }
    j.m.mul = mul;
    j.m.add = add;
    if (st->is_frozen && !is_wanted(b, DSCALE) && !is_wanted(b, DBIAS))
        memset(j.sums, 0, (size_t)(2 * st->channels) * sizeof(*j.sums));
    else
        find_sums(b, &j);
    for (int64_t c = 0; c < st->channels; c++) {
        put(b, DBIAS, c, j.sums[c]);
        put(b, DSCALE, c, j.sums[st->channels + c]);
        dz[c] = st->is_frozen ? 0 : (float)(j.sums[c] / n);
        dhat[c] = st->is_frozen ? 0 : (float)(j.sums[st->channels + c] / n);
    }
    j.m.dz = dz;
    j.m.dhat = dhat;
    oct_parallel_for(b->n_threads, st->pixels, grain_of(st), grad_rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_batch_norm_train = {
    .name = "batch-norm-train",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};

const oct_kernel oct_kernel_batch_norm_train_grad = {
    .name = "batch-norm-train-grad",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_grad,
    .make = make,
    .run = run_grad,
};
