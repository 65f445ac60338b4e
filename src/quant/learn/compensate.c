/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding with compensation: see compensate.h. */
#include "quant/learn/compensate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "base/parallel.h"
#include "op/conv_geometry.h"
#include "op/op.h"
#include "quant/learn/change.h"
#include "quant/lower/lower.h"
#include "quant/solve/solve.h"
#include "stat/least_squares.h"

enum {
    MOST_INPUTS = 2400,    /* of an output, kernel included: the equations are the square of that */
    LEAST_SAMPLES = 8192,  /* of a layer, if it has so many places */
    SAMPLES_PER_INPUT = 4, /* ... and for layers with many inputs */
    MOST_SAMPLES = 32768,
    CHUNK = 64, /* samples that are summed in float */
    ROWS = 8
};

/* Multiply-adds for the moments of a layer, about; bytes of what the layers of a block give. */
#define MOMENTS_MACS 2e10
#define OUTPUT_BYTES 128e6

/* Of the mean square of an input: how far weights hold on to what they were. */
static const double ridge = 0.02;

/* Scales that are tried, in terms of what the weights alone asked for; the first is that. The best
 * one depends on what is read: it is looked for with the codes that it would give. */
static const float factors[] = {1,     0.95F, 0.9F, 0.85F, 0.8F, 0.75F, 0.7F,
                                0.65F, 1.05F, 1.1F, 1.15F, 1.2F, 1.25F};

/* A layer, and what is known of it. Of each group of channels: k = 1 + its inputs with the kernel;
 * the first is a constant 1, for the bias. */
typedef struct rounded_layer {
    const oct_node *node;
    const oct_qpoint *point;
    oct_conv_geometry at;
    int64_t k, places;
    float *y; /* what the float layer gives: [picture][place][c_out] */
    oct_change change;
} rounded_layer;

typedef struct compensation {
    oct_qmap *m;
    oct_graph *bound;
    const oct_block_values *values;
    const oct_block *block;
    oct_arena *a;
    rounded_layer *layers;
    int32_t n;
    int64_t *pictures; /* those learned from */
    int64_t n_pictures;
} compensation;

/* --- which layers --- */

static oct_status add_layer(compensation *c, const oct_node *n)
{
    rounded_layer *l = &c->layers[c->n];
    const oct_qpoint *p = &c->m->points[oct_qmap_at(c->m, n, 1)];
    double samples;

    if (!oct_node_is(n, &oct_op_conv) || n->in[1]->type.rank != 4 || p->spec.bits >= 8)
        return OCT_OK;
    if (!oct_block_learns_weight(p, n->in[1]) || !oct_own_bias(n)) return OCT_OK;
    *l = (rounded_layer){.node = n, .point = p};
    OCT_TRY(oct_conv_geometry_conv(n, &n->in[0]->type, &n->in[1]->type, &l->at));
    l->k = 1 + l->at.c_in / l->at.group * oct_conv_geometry_kernel_size(&l->at);
    if (l->at.batch != 1 || l->k > MOST_INPUTS) return OCT_OK;
    samples = fmin(MOMENTS_MACS / ((double)l->k * (double)l->k), MOST_SAMPLES);
    samples = fmax(samples, fmax(LEAST_SAMPLES, SAMPLES_PER_INPUT * (double)l->k));
    l->places = (int64_t)samples / c->n_pictures + 1;
    l->places = OCT_MIN(l->places, oct_conv_geometry_out_size(&l->at));
    c->n += l->places > 0;
    return OCT_OK;
}

/* Fewer places, if what the layers give would take too much memory. */
static void limit_bytes(compensation *c)
{
    double bytes = 0;

    for (int32_t i = 0; i < c->n; i++)
        bytes += (double)(c->n_pictures * c->layers[i].places * c->layers[i].at.c_out) * 4;
    for (int32_t i = 0; i < c->n && bytes > OUTPUT_BYTES; i++) {
        rounded_layer *l = &c->layers[i];

        l->places = OCT_MAX((int64_t)((double)l->places * OUTPUT_BYTES / bytes), (int64_t)1);
    }
}

static oct_status find_layers(compensation *c)
{
    const int64_t n = c->values->pictures;

    c->layers = oct_arena_array(c->a, (size_t)c->block->n_layers + 1, sizeof(*c->layers));
    c->pictures = oct_arena_array(c->a, (size_t)n + 1, sizeof(*c->pictures));
    if (!c->layers || !c->pictures) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        if (!oct_block_holds_out(i)) c->pictures[c->n_pictures++] = i;
    for (int32_t i = 0; i < c->block->n_layers; i++)
        OCT_TRY(add_layer(c, c->block->layers[i]));
    limit_bytes(c);
    return OCT_OK;
}

/* --- samples --- */

static void read_inputs(const compensation *c, oct_block_side side, int64_t picture,
                        const oct_block_run *r)
{
    for (int32_t i = 0; i < c->block->n_in; i++)
        oct_block_values_read(c->values, side, c->block->in[i], picture, r->in[i]);
}

/* What the float layers give, of all layers at once: their weights are still the float ones. */
static oct_status sample_outputs(compensation *c)
{
    oct_block ends = *c->block;
    oct_block_run r = {0};
    oct_status st;

    ends.out = oct_arena_array(c->a, (size_t)c->n + 1, sizeof(*ends.out));
    if (!ends.out) return OCT_ERR_MEMORY;
    for (ends.n_out = 0; ends.n_out < c->n; ends.n_out++) {
        rounded_layer *l = &c->layers[ends.n_out];
        const size_t n = (size_t)(c->n_pictures * l->places * l->at.c_out);

        ends.out[ends.n_out] = l->node->out[0];
        if (!(l->y = oct_arena_array(c->a, n + 1, sizeof(float)))) return OCT_ERR_MEMORY;
    }
    st = oct_block_run_new(c->m->g, &ends, false, c->a, &r);
    for (int64_t p = 0; p < c->n_pictures && !st; p++) {
        read_inputs(c, OCT_SIDE_EXACT, c->pictures[p], &r);
        st = oct_block_run_execute(&r, &ends);
        for (int32_t i = 0; i < c->n && !st; i++) {
            const rounded_layer *l = &c->layers[i];
            const int64_t size = oct_conv_geometry_out_size(&l->at), n = l->at.c_out;

            for (int64_t k = 0; k < l->places; k++)
                for (int64_t o = 0; o < n; o++)
                    l->y[(p * l->places + k) * n + o] =
                        r.out[i][o * size + oct_conv_place(&l->at, l->places, p, k)];
        }
    }
    oct_block_run_fini(&r);
    return st;
}

/* --- second moments --- */

/* Sums of products of all groups: h [group][k][k], the lower half, and r [group][k][outputs]. */
typedef struct moments {
    const rounded_layer *l;
    const float *x;      /* windows of a picture: [group][place][k] */
    const float *y;      /* [place][c_out] */
    const float *counts; /* [place] */
    double *h, *r;
    double sum; /* of what all samples count */
} moments;

/* Rows of all groups, one after the other. */
static void add_rows(void *arg, int64_t begin, int64_t end)
{
    const moments *m = arg;
    const int64_t k = m->l->k, n_y = m->l->at.c_out, n_out = n_y / m->l->at.group;
    float sum[MOST_INPUTS + 1];

    for (int64_t row = begin; row < end; row++) {
        const int64_t group = row / k, i = row % k, first = group * n_out;
        double *h = m->h + row * k, *r = m->r + row * n_out;

        for (int64_t s = 0; s < m->l->places; s += CHUNK) {
            const int64_t last = OCT_MIN(s + CHUNK, m->l->places);

            memset(sum, 0, (size_t)(i + 1) * sizeof(*sum));
            for (int64_t p = s; p < last; p++) {
                const float *x = m->x + (group * m->l->places + p) * k;
                const float v = x[i] * m->counts[p];
                const float *y = m->y + p * n_y + first;

                if (v == 0) continue;
                for (int64_t c = 0; c <= i; c++)
                    sum[c] += v * x[c];
                for (int64_t o = 0; o < n_out; o++)
                    r[o] += (double)v * (double)y[o];
            }
            for (int64_t c = 0; c <= i; c++)
                h[c] += (double)sum[c];
        }
    }
}

/* What the layer reads of a picture: computed, or given to the block. */
typedef struct source {
    oct_block to; /* the block up to it */
    oct_block_run run;
    float *given; /* NULL: computed */
} source;

static oct_status read_picture(const compensation *c, source *s, int64_t picture, const float **x)
{
    *x = s->given;
    if (s->given) {
        oct_block_values_read(c->values, OCT_SIDE_NOW, s->to.out[0], picture, s->given);
        return OCT_OK;
    }
    read_inputs(c, OCT_SIDE_NOW, picture, &s->run);
    OCT_TRY(oct_block_run_execute(&s->run, &s->to));
    *x = s->run.out[0];
    return OCT_OK;
}

/* What the sampled places of a picture count, and their sum. */
static double weigh_places(const compensation *c, const rounded_layer *l, int64_t p, float *counts)
{
    const int64_t height = l->at.out[0], width = l->at.out[1];
    double sum = 0;

    for (int64_t i = 0; i < l->places; i++) {
        const int64_t at = oct_conv_place(&l->at, l->places, p, i);

        counts[i] = oct_objects_at(&c->values->objects, c->pictures[p], at / width, at % width,
                                   height, width);
        sum += (double)counts[i];
    }
    return sum;
}

static oct_status add_pictures(const compensation *c, moments *m, source *from, oct_arena *a)
{
    const rounded_layer *l = m->l;
    const int64_t k = l->k, n = l->at.group * l->places * k;
    float *windows = oct_arena_array(a, (size_t)n + 1, sizeof(*windows));
    float *counts = oct_arena_array(a, (size_t)l->places + 1, sizeof(*counts));

    if (!windows || !counts) return OCT_ERR_MEMORY;
    m->x = windows;
    m->counts = counts;
    for (int64_t p = 0; p < c->n_pictures; p++) {
        const float *x;

        OCT_TRY(read_picture(c, from, c->pictures[p], &x));
        m->sum += weigh_places(c, l, p, counts);
        for (int64_t g = 0; g < l->at.group; g++)
            for (int64_t i = 0; i < l->places; i++) {
                float *to = windows + (g * l->places + i) * k;

                *to = 1;
                (void)oct_conv_sample(&l->at, g, x, oct_conv_place(&l->at, l->places, p, i),
                                      to + 1);
            }
        m->y = l->y + p * l->places * l->at.c_out;
        oct_parallel_for(oct_ctx_threads(c->m->ctx), l->at.group * k, ROWS, add_rows, m);
    }
    return OCT_OK;
}

static bool is_given(const oct_block *b, const oct_value *v)
{
    for (int32_t i = 0; i < b->n_in; i++)
        if (b->in[i] == v) return true;
    return false;
}

static oct_status open_source(const compensation *c, const oct_value **input, oct_arena *a,
                              source *s)
{
    oct_graph *lowered = NULL;
    oct_status st;

    s->to = *c->block;
    s->to.out = input;
    s->to.n_out = 1;
    if (is_given(c->block, *input)) {
        s->given = oct_arena_array(a, (size_t)oct_type_len(&(*input)->type) + 1, sizeof(float));
        return s->given ? OCT_OK : OCT_ERR_MEMORY;
    }
    OCT_TRY(oct_lower(c->m, NULL, &lowered));
    st = oct_block_run_new(lowered, &s->to, true, a, &s->run);
    oct_graph_free(lowered);
    return st;
}

/* Runs the quantized block, as it is now, up to what the layer reads. */
static oct_status measure(const compensation *c, moments *m)
{
    const oct_value *input = m->l->node->in[0];
    oct_arena *a = oct_arena_new(c->m->ctx);
    source s = {0};
    oct_status st = a ? open_source(c, &input, a, &s) : OCT_ERR_MEMORY;

    if (!st) st = add_pictures(c, m, &s, a);
    oct_block_run_fini(&s.run);
    oct_arena_free(a);
    return st;
}

/* --- one group of a layer --- */

double oct_round_in_turn(const double *l, int64_t k, const double *unit, double low, double high,
                         double *w, double *scratch)
{
    double error = 0;

    memset(scratch, 0, (size_t)k * sizeof(*scratch));
    for (int64_t j = k - 1; j >= 0; j--) {
        const double best = w[j] + scratch[j] / l[j * k + j];
        const double q = j ? unit[j] * fmin(fmax(rint(best / unit[j]), low), high) : best;
        const double missed = w[j] - q, left = l[j * k + j] * (best - q);

        error += left * left;
        w[j] = q;
        for (int64_t i = 0; i < j; i++)
            scratch[i] += l[j * k + i] * missed;
    }
    return error;
}

/* The equations of a group, in the order in which its weights are rounded: the last first. */
typedef struct equations {
    int64_t k, n_out;
    int64_t *order; /* inputs by how much they vary, after the constant */
    double *l;      /* [k][k]: factors of the moments */
    double *w;      /* [k][n_out]: the best weights that are not rounded */
    double *row, *best, *unit, *scratch;
} equations;

typedef struct ranked {
    double power;
    int64_t input;
} ranked;

static int by_power(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->power != y->power) return x->power < y->power ? -1 : 1;
    return x->input < y->input ? -1 : x->input > y->input;
}

static oct_status equations_new(const rounded_layer *l, oct_arena *a, equations *e)
{
    const size_t k = (size_t)l->k;

    *e = (equations){.k = l->k, .n_out = l->at.c_out / l->at.group};
    e->order = oct_arena_array(a, k, sizeof(*e->order));
    e->l = oct_arena_array(a, k * k, sizeof(*e->l));
    e->w = oct_arena_array(a, k * (size_t)e->n_out, sizeof(*e->w));
    e->row = oct_arena_array(a, k, sizeof(*e->row));
    e->best = oct_arena_array(a, k, sizeof(*e->best));
    e->unit = oct_arena_array(a, k, sizeof(*e->unit));
    e->scratch = oct_arena_array(a, k, sizeof(*e->scratch));
    return e->order && e->l && e->w && e->row && e->best && e->unit && e->scratch ? OCT_OK
                                                                                  : OCT_ERR_MEMORY;
}

/* Constants that are next to never there come first: they are rounded last. */
static oct_status find_order(const equations *e, const double *h, oct_arena *a)
{
    ranked *r = oct_arena_array(a, (size_t)e->k, sizeof(*r));

    if (!r) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < e->k; i++)
        r[i] = (ranked){i ? h[i * e->k + i] : -1, i};
    qsort(r, (size_t)e->k, sizeof(*r), by_power);
    for (int64_t i = 0; i < e->k; i++)
        e->order[i] = r[i].input;
    return OCT_OK;
}

/* Index in the layer's weights of input i (from 1) of output o of a group. */
static int64_t weight_at(const equations *e, int64_t group, int64_t o, int64_t i)
{
    return (group * e->n_out + o) * (e->k - 1) + i - 1;
}

/* Means of n samples; weights hold on to w and b a little. False: no equations that can be solved.
 */
static bool set_up(const equations *e, const double *h, const double *r, double n, int64_t group,
                   const float *w)
{
    double hold = 0;

    for (int64_t i = 1; i < e->k; i++)
        hold += ridge * h[i * e->k + i] / n / (double)(e->k - 1);
    if (!(hold > 0)) return false;
    for (int64_t i = 0; i < e->k; i++) {
        const int64_t at = e->order[i];

        for (int64_t j = 0; j <= i; j++) {
            const int64_t to = e->order[j], big = OCT_MAX(at, to), small = OCT_MIN(at, to);

            e->l[i * e->k + j] = h[big * e->k + small] / n;
        }
        if (at) e->l[i * e->k + i] += hold;
        for (int64_t o = 0; o < e->n_out; o++)
            e->w[i * e->n_out + o] =
                r[at * e->n_out + o] / n + (at ? hold * (double)w[weight_at(e, group, o, at)] : 0);
    }
    if (!oct_factorize(e->l, e->k)) return false;
    oct_substitute(e->l, e->k, e->w, e->n_out);
    return true;
}

/* Rounds one output with a scale that is `factor` times what it was. */
static double round_output(const equations *e, const oct_rounding *r, int64_t group, int64_t o,
                           float factor)
{
    for (int64_t i = 0; i < e->k; i++) {
        e->row[i] = e->w[i * e->n_out + o];
        if (e->order[i])
            e->unit[i] = (double)(r->unit[weight_at(e, group, o, e->order[i])] * factor);
    }
    return oct_round_in_turn(e->l, e->k, e->unit, (double)r->low, (double)r->high, e->row,
                             e->scratch);
}

/* `factor`: of the scales of all outputs, where each may have its own; NULL: they stay. */
static void round_group(const equations *e, const oct_rounding *r, int64_t group, float *w,
                        float *bias, float *factor)
{
    const int n = factor ? (int)(sizeof(factors) / sizeof(*factors)) : 1;

    for (int64_t o = 0; o < e->n_out; o++) {
        const int64_t at = group * e->n_out + o;
        double least = INFINITY;

        for (int t = 0; t < n; t++) {
            const double error = round_output(e, r, group, o, factors[t]);

            if (t && !(error < least)) continue;
            least = error;
            memcpy(e->best, e->row, (size_t)e->k * sizeof(*e->best));
            if (factor) factor[at] = factors[t];
        }
        bias[at] = (float)e->best[0];
        for (int64_t i = 1; i < e->k; i++)
            w[weight_at(e, group, o, e->order[i])] = (float)e->best[i];
    }
}

/* --- one layer --- */

/* Every group, or none if the equations of one cannot be solved. */
static oct_status solve(const compensation *c, const moments *m, oct_arena *a, oct_learned *out)
{
    const rounded_layer *l = m->l;
    const float *w = l->node->in[1]->data->data, *b = l->node->in[2]->data->data;
    const oct_qshift *s = oct_qmap_shift_of(c->m, l->node);
    oct_learned_layer *to = &out->layers[0];
    oct_rounding r;
    equations e;

    *to = (oct_learned_layer){.node = l->node, .n_shift = l->at.c_out};
    to->weight =
        oct_arena_array(c->a, (size_t)oct_tensor_len(l->node->in[1]->data) + 1, sizeof(float));
    to->shift = oct_arena_array(c->a, (size_t)l->at.c_out + 1, sizeof(float));
    if (!to->weight || !to->shift) return OCT_ERR_MEMORY;
    if (l->point->n == l->at.c_out && !l->point->spec.is_pow2) {
        to->n_scale = l->at.c_out;
        if (!(to->scale = oct_arena_array(c->a, (size_t)to->n_scale + 1, sizeof(float))))
            return OCT_ERR_MEMORY;
    }
    OCT_TRY(oct_rounding_make(l->point, OCT_ROUNDING_LSQ, a, &r));
    OCT_TRY(equations_new(l, a, &e));
    for (int64_t g = 0; g < l->at.group; g++) {
        const double *h = m->h + g * e.k * e.k;

        OCT_TRY(find_order(&e, h, a));
        if (!set_up(&e, h, m->r + g * e.k * e.n_out, m->sum, g, w)) return OCT_OK;
        round_group(&e, &r, g, to->weight, to->shift, to->scale);
    }
    for (int64_t o = 0; o < to->n_scale; o++)
        to->scale[o] *= l->point->scale[o];
    for (int64_t o = 0; o < l->at.c_out; o++)
        to->shift[o] -= b[o] + (s ? s->shift[o] : 0);
    out->n_layers = 1;
    return OCT_OK;
}

static oct_status round_layer(compensation *c, rounded_layer *l, oct_learned *out)
{
    const size_t k = (size_t)l->k, rows = k * (size_t)l->at.group;
    moments m = {.l = l};
    oct_learned one = {.layers = out->layers + out->n_layers};
    oct_arena *a = oct_arena_new(c->m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    m.h = oct_calloc(c->m->ctx, rows * k, sizeof(*m.h));
    m.r = oct_calloc(c->m->ctx, k * (size_t)l->at.c_out, sizeof(*m.r));
    if (!m.h || !m.r) st = OCT_ERR_MEMORY;
    if (!st) st = measure(c, &m);
    if (!st) st = solve(c, &m, a, &one);
    oct_free(c->m->ctx, m.h);
    oct_free(c->m->ctx, m.r);
    oct_arena_free(a);
    if (st || !one.n_layers) return st;
    out->n_layers++;
    OCT_TRY(oct_change_make(c->m->ctx, &one, c->a, &l->change));
    return oct_change_swap(&l->change, c->m, c->bound);
}

oct_status oct_compensate_block(oct_qmap *m, oct_graph *bound, const oct_block_values *values,
                                int32_t block, oct_arena *a, oct_learned *out)
{
    compensation c = {
        .m = m, .bound = bound, .values = values, .block = &values->blocks->item[block], .a = a};
    oct_status st, put_back = OCT_OK;

    *out = (oct_learned){0};
    OCT_TRY(find_layers(&c));
    if (!c.n) return OCT_OK;
    if (!(out->layers = oct_arena_array(a, (size_t)c.n + 1, sizeof(*out->layers))))
        return OCT_ERR_MEMORY;
    st = sample_outputs(&c);
    for (int32_t i = 0; i < c.n && !st; i++)
        st = round_layer(&c, &c.layers[i], out);
    for (int32_t i = 0; i < c.n; i++) {
        if (c.layers[i].change.is_in && !put_back)
            put_back = oct_change_swap(&c.layers[i].change, m, bound);
        oct_change_fini(&c.layers[i].change);
    }
    return st ? st : put_back;
}
