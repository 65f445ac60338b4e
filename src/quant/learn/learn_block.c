/* SPDX-License-Identifier: Apache-2.0 */
/* How one block learns: see learn_block.h. */
#include "quant/learn/learn_block.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "optim/gradients.h"
#include "optim/optimizer.h"
#include "quant/solve/solve.h"

/*
 * AdaRound's costs of values between codes: none in the first part of the steps, then a power that
 * falls from 20 (only what is nearly rounded is pulled) to 2. Its weight is relative to the
 * gradients of the first step, so that it means the same for every layer. In a few hundred steps
 * that alone does not bring all weights to codes, and rounding the rest at once would undo what was
 * learned: so a growing share is rounded for good on the way.
 */
#define WARM_UP     0.1
#define POWER_FIRST 20.0
#define POWER_LAST  2.0
#define PRESSURE    0.25

/* A bias moves by this part of the layer's biases in a step. */
#define BIAS_MOVE 1e-3

/* How far the logarithm of an activation's scale may go: about a tenth of the scale, and beyond the
 * next power of two. Then it stays, a power of two as a whole one, and the weights fit themselves
 * to it. */
#define SCALE_WAY    0.2
#define EXPONENT_WAY 2.5
#define SCALES_STAY  0.6

/*
 * In half of the steps AdaRound has found codes whose errors make up for each other. The other half
 * goes straight through the rounding, as LSQ does: single weights change their codes, two or more
 * steps away, too. They begin nearer to their codes than those of LSQ, which only begin where
 * rounding left them.
 */
#define ALL_SETTLED 0.48
#define REFINE      0.5
#define REFINE_EDGE 0.3f

/* How far from a code weights of LSQ begin, in steps: not on a tie. */
#define EDGE 0.49f

/* How far a weight may go in all steps. */
#define LSQ_WAY 1.0

enum { MOST_BATCH = 8, SETTLINGS = 50 };
#define STEP_MACS 3e8 /* of the forward pass: larger batches gain little for their time */

typedef struct learner {
    oct_block_net *net;
    const oct_block *block;
    const oct_block_values *values;
    const oct_qmap *m;
    const oct_learn_settings *o;
    oct_arena *a;
    oct_rounding *rounding;    /* one for each layer */
    double *pressure;          /* one for each layer */
    float *theta, *sum, *grad; /* flat: what is learned, gradients of weights, of theta */
    float *exact;              /* room for one input */
    const float **at_net, **at_grad;
    oct_optimizer opt;
    int64_t *order; /* pictures that are learned from */
    int64_t n_order, next;
    int32_t batch;
    oct_rng rng;
} learner;

/* --- making --- */

static void list_pictures(learner *l)
{
    for (int64_t i = 0; i < l->values->pictures; i++)
        if (!oct_block_holds_out(i)) l->order[l->n_order++] = i;
    l->next = l->n_order;
}

static double rms(const float *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)OCT_MAX(n, (int64_t)1));
}

static oct_status start_layer(learner *l, int32_t i)
{
    const oct_block_layer *k = &l->net->layers[i];
    oct_params *p = &l->net->params;
    oct_param *bias = k->bias >= 0 ? &p->v[k->bias] : NULL;
    const int64_t at = p->v[k->weight].offset;
    float *now = NULL;

    OCT_TRY(oct_rounding_make(k->point, l->o->kind, l->a, &l->rounding[i]));
    oct_rounding_start(&l->rounding[i], l->net->values + at, l->theta + at);
    OCT_TRY(oct_weight_values(k->point, false, l->a, &now));
    oct_rounding_hold(&l->rounding[i], now, EDGE, l->theta + at);
    if (!bias) return OCT_OK;
    memcpy(l->theta + bias->offset, l->net->values + bias->offset,
           (size_t)bias->len * sizeof(float));
    bias->rate = BIAS_MOVE * (rms(l->theta + bias->offset, bias->len) + 1e-6) / l->o->rate;
    return OCT_OK;
}

static void start_scales(learner *l)
{
    oct_params *p = &l->net->params;

    for (int32_t i = 0; i < l->net->n_scales; i++) {
        const oct_block_scale *s = &l->net->scales[i];
        const double way = s->kind == OCT_STEP_LOG2_WHOLE ? EXPONENT_WAY : SCALE_WAY;

        l->theta[p->v[s->param].offset] = l->net->values[p->v[s->param].offset];
        p->v[s->param].rate = way / l->o->steps / l->o->rate;
    }
}

static oct_status start(learner *l)
{
    const oct_params *p = &l->net->params;
    const double macs = (double)oct_plan_macs(l->net->plan) / 3;
    oct_optimizer_options o;
    int64_t most = 0;

    for (int32_t i = 0; i < l->block->n_in; i++)
        most = OCT_MAX(most, oct_type_len(&l->block->in[i]->type));
    l->exact = oct_arena_array(l->a, (size_t)most + 1, sizeof(*l->exact));
    l->batch = (int32_t)fmin(fmax(STEP_MACS / fmax(macs, 1), 1), MOST_BATCH);
    l->rounding = oct_arena_array(l->a, (size_t)l->net->n_layers + 1, sizeof(*l->rounding));
    l->pressure = oct_arena_array(l->a, (size_t)l->net->n_layers + 1, sizeof(*l->pressure));
    l->order = oct_arena_array(l->a, (size_t)l->values->pictures + 1, sizeof(*l->order));
    l->at_net = oct_arena_array(l->a, (size_t)p->n + 1, sizeof(*l->at_net));
    l->at_grad = oct_arena_array(l->a, (size_t)p->n + 1, sizeof(*l->at_grad));
    l->theta = oct_params_buffer(p);
    l->sum = oct_params_buffer(p);
    l->grad = oct_params_buffer(p);
    if (!l->exact || !l->rounding || !l->pressure || !l->order || !l->at_net || !l->at_grad ||
        !l->theta || !l->sum || !l->grad)
        return OCT_ERR_MEMORY;
    list_pictures(l);
    for (int32_t i = 0; i < l->net->n_layers; i++)
        OCT_TRY(start_layer(l, i));
    start_scales(l);
    oct_params_pointers(p, l->grad, l->at_grad);
    oct_optimizer_options_init(&o);
    return oct_optimizer_init(&l->opt, p, oct_optimizer_find("adam"), &o);
}

/* --- a step --- */

static int64_t next_picture(learner *l)
{
    if (l->next == l->n_order) {
        for (int64_t i = l->n_order - 1; i > 0; i--) {
            const int64_t k = (int64_t)oct_rng_below(&l->rng, (uint64_t)i + 1), t = l->order[i];

            l->order[i] = l->order[k];
            l->order[k] = t;
        }
        l->next = 0;
    }
    return l->order[l->next++];
}

static void set_values(learner *l, bool at_end)
{
    const oct_params *p = &l->net->params;

    for (int32_t i = 0; i < l->net->n_layers; i++) {
        const oct_block_layer *k = &l->net->layers[i];
        const int64_t at = p->v[k->weight].offset;

        oct_rounding_values(&l->rounding[i], l->theta + at, at_end, l->net->values + at);
        if (k->bias >= 0)
            memcpy(l->net->values + p->v[k->bias].offset, l->theta + p->v[k->bias].offset,
                   (size_t)p->v[k->bias].len * sizeof(float));
    }
    for (int32_t i = 0; i < l->net->n_scales; i++) {
        const int64_t at = p->v[l->net->scales[i].param].offset;

        l->net->values[at] = l->theta[at];
    }
}

static oct_status sum_gradients(learner *l)
{
    const oct_params *p = &l->net->params;

    for (int32_t k = 0; k < l->batch; k++) {
        const int64_t picture = next_picture(l);

        for (int32_t i = 0; i < l->block->n_in; i++)
            oct_block_values_mix(l->values, l->block->in[i], picture, l->o->drop, &l->rng,
                                 l->net->in[i], l->exact);
        for (int32_t i = 0; i < l->block->n_out; i++)
            oct_block_values_read(l->values, OCT_SIDE_EXACT, l->block->out[i], picture,
                                  l->net->target[i]);
        for (int32_t i = 0; i < l->block->n_out && l->values->objects.cells; i++)
            if (l->net->counts[i])
                oct_objects_spread(&l->values->objects, picture, &l->block->out[i]->type,
                                   l->net->counts[i]);
        OCT_TRY(oct_block_net_step(l->net));
        for (int32_t i = 0; i < p->n; i++)
            l->at_net[i] = oct_block_net_grad(l->net, i);
        oct_grads_sum(p, l->sum, l->at_net, 1.0 / l->batch, k == 0, l->o->n_threads);
    }
    return OCT_OK;
}

/* Of the gradients with respect to codes. */
static double gradient_size(const oct_rounding *r, const float *dw)
{
    double sum = 0;

    for (int64_t i = 0; i < r->len; i++)
        sum += (double)(dw[i] * r->unit[i]) * (double)(dw[i] * r->unit[i]);
    return sqrt(sum / (double)OCT_MAX(r->len, (int64_t)1));
}

static void set_gradients(learner *l, double done)
{
    const oct_params *p = &l->net->params;
    const double part = (done - WARM_UP) / (ALL_SETTLED - WARM_UP);
    const double power = fmax(POWER_FIRST + (POWER_LAST - POWER_FIRST) * part, POWER_LAST);

    for (int32_t i = 0; i < l->net->n_layers; i++) {
        const oct_block_layer *k = &l->net->layers[i];
        const int64_t at = p->v[k->weight].offset;

        if (!(l->pressure[i] > 0))
            l->pressure[i] = PRESSURE * gradient_size(&l->rounding[i], l->sum + at);
        oct_rounding_grad(&l->rounding[i], l->theta + at, l->sum + at, 1, l->grad + at);
        oct_rounding_pull(&l->rounding[i], l->theta + at, l->o->gamma, l->grad + at);
        if (part >= 0)
            oct_rounding_press(&l->rounding[i], l->theta + at, l->pressure[i], power, l->grad + at);
        if (k->bias >= 0)
            memcpy(l->grad + p->v[k->bias].offset, l->sum + p->v[k->bias].offset,
                   (size_t)p->v[k->bias].len * sizeof(float));
    }
    for (int32_t i = 0; i < l->net->n_scales; i++) {
        const int64_t at = p->v[l->net->scales[i].param].offset;

        l->grad[at] = l->sum[at];
    }
}

/* From here on scales stay as they are. */
static void keep_scales(learner *l)
{
    oct_params *p = &l->net->params;

    for (int32_t i = 0; i < l->net->n_scales; i++) {
        const oct_block_scale *s = &l->net->scales[i];
        float *x = &l->theta[p->v[s->param].offset];

        if (s->kind == OCT_STEP_LOG2_WHOLE) *x = rintf(*x);
        p->v[s->param].frozen = true;
    }
}

/* Weights are rounded for good little by little, all before the last steps. */
static void settle(learner *l, int32_t step)
{
    const double done = (double)(step + 1) / l->o->steps;
    const double share = (done - WARM_UP) / (ALL_SETTLED - WARM_UP);

    if (share <= 0 || step % OCT_MAX(l->o->steps / SETTLINGS, 1) != 0) return;
    for (int32_t i = 0; i < l->net->n_layers; i++) {
        const oct_block_layer *k = &l->net->layers[i];

        oct_rounding_settle(&l->rounding[i], l->theta + l->net->params.v[k->weight].offset,
                            OCT_MIN(share, 1.0));
    }
}

/* Of AdaRound: the codes are found, and the rest of the steps goes as LSQ's do. */
static oct_status refine(learner *l)
{
    oct_optimizer_options o;

    for (int32_t i = 0; i < l->net->n_layers; i++) {
        const oct_block_layer *k = &l->net->layers[i];
        const float *w = k->node->in[1]->data->data;

        oct_rounding_refine(&l->rounding[i], w, REFINE_EDGE,
                            l->theta + l->net->params.v[k->weight].offset);
    }
    oct_optimizer_options_init(&o);
    oct_optimizer_fini(&l->opt);
    return oct_optimizer_init(&l->opt, &l->net->params, oct_optimizer_find("adam"), &o);
}

/* The rate of weights: LSQ's falls to nothing, in the steps that it has. */
static double rate_of(const learner *l, double done)
{
    const double first = l->o->kind == OCT_ROUNDING_LSQ ? 0 : REFINE;
    const double part = (done - first) / (1 - first);
    const double rate = first > 0 ? LSQ_WAY / (l->o->steps * (1 - first)) : l->o->rate;

    return part < 0 ? l->o->rate : rate * 0.5 * (1 + cos(3.14159265358979 * part));
}

static oct_status learn(learner *l)
{
    const int32_t switches = l->o->kind == OCT_ROUNDING_LSQ ? -1 : (int32_t)(REFINE * l->o->steps);

    for (int32_t step = 0; step < l->o->steps; step++) {
        const double done = (double)step / l->o->steps;
        const oct_rates rates = {
            .lr = rate_of(l, done), .bias_lr = l->o->rate * (1 - done), .momentum = -1};

        if (step == switches) OCT_TRY(refine(l));
        if (step == (int32_t)(SCALES_STAY * l->o->steps)) keep_scales(l);
        set_values(l, false);
        OCT_TRY(sum_gradients(l));
        set_gradients(l, done);
        oct_optimizer_step(&l->opt, l->theta, l->at_grad, 1, &rates, l->o->n_threads);
        settle(l, step);
    }
    return OCT_OK;
}

/* --- the result --- */

static oct_status give_layer(learner *l, const oct_block_layer *k, const float *first,
                             oct_learned_layer *out)
{
    const oct_params *p = &l->net->params;
    const oct_param *w = &p->v[k->weight], *b = k->bias >= 0 ? &p->v[k->bias] : NULL;

    *out = (oct_learned_layer){.node = k->node, .n_shift = b ? b->len : 0};
    out->weight = oct_arena_array(l->a, (size_t)w->len + 1, sizeof(float));
    out->shift = b ? oct_arena_array(l->a, (size_t)b->len + 1, sizeof(float)) : NULL;
    if (!out->weight || (b && !out->shift)) return OCT_ERR_MEMORY;
    memcpy(out->weight, l->net->values + w->offset, (size_t)w->len * sizeof(float));
    for (int64_t c = 0; b && c < b->len; c++)
        out->shift[c] = l->theta[b->offset + c] - first[b->offset + c];
    return OCT_OK;
}

static oct_status give(learner *l, const float *first, oct_learned *out)
{
    const oct_params *p = &l->net->params;

    out->layers = oct_arena_array(l->a, (size_t)l->net->n_layers + 1, sizeof(*out->layers));
    out->scales = oct_arena_array(l->a, (size_t)l->net->n_scales + 1, sizeof(*out->scales));
    if (!out->layers || !out->scales) return OCT_ERR_MEMORY;
    set_values(l, true);
    for (int32_t i = 0; i < l->net->n_layers; i++)
        OCT_TRY(give_layer(l, &l->net->layers[i], first, &out->layers[i]));
    out->n_layers = l->net->n_layers;
    for (int32_t i = 0; i < l->net->n_scales; i++) {
        const oct_block_scale *s = &l->net->scales[i];
        const double step = (double)l->theta[p->v[s->param].offset];
        const float scale = (float)oct_step_scale(s->kind, step);

        if (scale != l->m->points[s->point].scale[0])
            out->scales[out->n_scales++] = (oct_learned_scale){s->point, scale};
    }
    return OCT_OK;
}

static oct_status work(learner *l, oct_learned *out)
{
    float *first;

    if (!l->net->n_layers) return OCT_OK;
    OCT_TRY(start(l));
    first = oct_arena_array(l->a, (size_t)l->net->params.len + 1, sizeof(float));
    if (!first) return OCT_ERR_MEMORY;
    memcpy(first, l->theta, (size_t)l->net->params.len * sizeof(float));
    OCT_TRY(learn(l));
    return give(l, first, out);
}

oct_status oct_learn_block(const oct_qmap *m, const oct_block_values *values, int32_t block,
                           const oct_block_error *before, const oct_learn_settings *o, oct_arena *a,
                           oct_learned *out)
{
    const oct_block *b = &values->blocks->item[block];
    learner l = {.block = b, .values = values, .m = m, .o = o, .a = a};
    double *weight = oct_arena_array(a, (size_t)b->n_out + 1, sizeof(*weight));
    oct_status st;

    *out = (oct_learned){0};
    if (!weight) return OCT_ERR_MEMORY;
    oct_rng_init(&l.rng, o->seed + (uint64_t)block);
    /* Outputs count by their relative error, and the loss begins near 1. */
    for (int32_t i = 0; i < b->n_out; i++) {
        const double e = before[i].error / (double)values->pictures;

        weight[i] = e > 1e-30 ? 1 / (e * b->n_out) : 0;
    }
    st = oct_block_net_new(m, b, weight, o->scales, &l.net);
    if (!st) st = work(&l, out);
    if (l.net) oct_optimizer_fini(&l.opt);
    oct_free(m->ctx, l.theta);
    oct_free(m->ctx, l.sum);
    oct_free(m->ctx, l.grad);
    oct_block_net_free(l.net);
    return st;
}
