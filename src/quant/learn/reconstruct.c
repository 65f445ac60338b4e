/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruction, block by block: see reconstruct.h. */
#include "quant/learn/reconstruct.h"

#include <string.h>

#include "base/ctx.h"
#include "quant/learn/change.h"
#include "quant/learn/compensate.h"
#include "quant/learn/guard.h"
#include "quant/lower/lower.h"
#include "quant/solve/solve.h"

#define VALUE_BYTES ((size_t)512 << 20)

enum {
    BLOCK_SIZE = 4,
    STEPS = 500,
    LEAST_PICTURES = 4, /* the fourth is the first that is held out */
    /* With few steps AdaRound's way from the middle to codes was no better than going straight
     * through the rounding (yolox_nano, 4-bit weights, 40 steps), and took twice the time. Where it
     * begins to pay was not measured. */
    LEAST_ADAROUND_STEPS = 1000
};
/* AdaRound: larger steps follow the noise of the gradients. */
#define ADAROUND_RATE 0.01
/* Other weights are other rounding errors: AP moves by up to .002 with them either way, as chance
 * has it. What is learned has to take away at least this share of the noise to be worth that. */
#define LEAST_GAIN 0.25
/* LSQ: how far a weight may go in all steps, in steps of its scale. */
#define LSQ_WAY 1.0

typedef struct work {
    oct_qmap *m;
    oct_graph *bound;
    oct_learn_settings settings;
    oct_blocks blocks;
    oct_block_values values;
    oct_guard guard;
    oct_arena *arena;    /* of what is kept to the end */
    oct_change *rounded; /* one for each block: codes that make up for each other */
    oct_change *changes; /* one for each block: what it learned after that */
    bool *learned;       /* two for each block: these were in when all had learned */
    oct_reconstruction *result;
} work;

bool oct_reconstruct_wanted(const oct_quantize_options *o)
{
    return o->adaround || o->lsq;
}

static oct_status read_settings(const oct_qmap *m, const oct_quantize_options *o,
                                oct_learn_settings *out)
{
    const int32_t steps = o->reconstruct_steps > 0 ? o->reconstruct_steps : STEPS;
    const bool lsq = o->lsq || steps < LEAST_ADAROUND_STEPS;

    if (o->adaround && o->lsq)
        return oct_fail(m->ctx, OCT_ERR_ARG, "adaround and lsq: one of them only");
    if (o->reconstruct_steps < 0 || !(o->reconstruct_rate >= 0) || o->block_size < 0 ||
        !(o->reconstruct_gamma >= 0))
        return oct_fail(m->ctx, OCT_ERR_ARG,
                        "steps, rate, block size and gamma of learning are not negative");
    if (!(o->reconstruct_drop >= 0 && o->reconstruct_drop <= 1))
        return oct_fail(m->ctx, OCT_ERR_ARG, "drop_prob %g: a probability of 0 to 1",
                        o->reconstruct_drop);
    *out = (oct_learn_settings){
        .kind = lsq ? OCT_ROUNDING_LSQ : OCT_ROUNDING_ADAROUND,
        .steps = steps,
        .rate =
            o->reconstruct_rate > 0 ? o->reconstruct_rate : (lsq ? LSQ_WAY / steps : ADAROUND_RATE),
        .scales = !o->reconstruct_fix_scales,
        .gamma = o->reconstruct_gamma,
        .drop = o->reconstruct_drop,
        .seed = o->seed,
        .n_threads = oct_ctx_threads(m->ctx),
    };
    return OCT_OK;
}

/* The mean over outputs of error power / signal power. */
static double noise(const oct_block_error *e, int32_t n)
{
    double sum = 0;

    for (int32_t i = 0; i < n; i++)
        sum += e[i].power > 0 ? e[i].error / e[i].power : 0;
    return n ? sum / n : 0;
}

/* Computes the block as the qmap has it now. */
static oct_status compute_now(work *w, int32_t b, oct_block_error *errors)
{
    oct_graph *lowered = NULL;
    oct_status st;

    OCT_TRY(oct_lower(w->m, NULL, &lowered));
    st = oct_block_values_compute(&w->values, b, lowered, OCT_SIDE_NOW, errors);
    oct_graph_free(lowered);
    return st;
}

/* --- one block --- */

/* Would scales have to be moved for the limits of an NPU? */
static oct_status breaks_limits(const work *w, oct_arena *a, bool *breaks)
{
    oct_npu_moves moves = {0};
    oct_qmap *copy = NULL;
    oct_status st;

    *breaks = false;
    if (w->m->target->bias != OCT_BIAS_POW2) return OCT_OK;
    OCT_TRY(oct_qmap_clone(w->m, &copy));
    st = oct_npu_fit(copy, a, &moves);
    *breaks = moves.n > 0;
    oct_qmap_free(copy);
    return st;
}

/* Weights, biases and scales go in; scales that the target does not allow do not. */
static oct_status put_in(work *w, oct_learned *learned, oct_arena *a, oct_change *c)
{
    bool breaks = false;

    OCT_TRY(oct_change_make(w->m->ctx, learned, w->arena, c));
    OCT_TRY(oct_change_swap(c, w->m, w->bound));
    if (c->n_scales) OCT_TRY(breaks_limits(w, a, &breaks));
    if (!breaks) return OCT_OK;
    OCT_TRY(oct_change_swap(c, w->m, w->bound));
    c->n_scales = 0;
    return oct_change_swap(c, w->m, w->bound);
}

/* Codes for few bits: they are kept if the block is better with them. */
static oct_status compensate(work *w, int32_t b, oct_arena *a, oct_block_error *errors,
                             oct_reconstructed *r)
{
    const int32_t n_out = w->blocks.item[b].n_out;
    oct_change *c = &w->rounded[b];
    oct_learned codes;

    OCT_TRY(oct_compensate_block(w->m, w->bound, &w->values, b, a, &codes));
    if (!codes.n_layers) return OCT_OK;
    OCT_TRY(oct_change_make(w->m->ctx, &codes, w->arena, c));
    OCT_TRY(oct_change_swap(c, w->m, w->bound));
    OCT_TRY(compute_now(w, b, errors));
    r->n_layers = codes.n_layers;
    r->after = noise(errors + n_out, n_out);
    if (r->after < r->before) return OCT_OK;
    r->n_layers = 0;
    r->after = r->before;
    OCT_TRY(oct_change_swap(c, w->m, w->bound));
    return compute_now(w, b, errors);
}

static oct_status learn(work *w, int32_t b, const oct_learn_settings *o, oct_arena *a,
                        oct_block_error *errors, oct_reconstructed *r)
{
    const int32_t n_out = w->blocks.item[b].n_out;
    const double so_far = r->after;
    oct_change *c = &w->changes[b];
    oct_learned learned;

    OCT_TRY(oct_learn_block(w->m, &w->values, b, errors, o, a, &learned));
    r->n_layers = OCT_MAX(r->n_layers, learned.n_layers);
    r->was_worse = false;
    if (!learned.n_layers) return OCT_OK;
    oct_change_fini(c);
    OCT_TRY(put_in(w, &learned, a, c));
    OCT_TRY(compute_now(w, b, errors));
    r->after = noise(errors + n_out, n_out);
    if (r->after < so_far) return OCT_OK;
    r->was_worse = true;
    r->after = so_far;
    OCT_TRY(oct_change_swap(c, w->m, w->bound));
    return compute_now(w, b, errors);
}

static oct_status reconstruct_block(work *w, int32_t b, oct_arena *a)
{
    const oct_block *k = &w->blocks.item[b];
    oct_reconstructed *r = &w->result->blocks[b];
    oct_block_error *errors = oct_arena_array(a, (size_t)k->n_out * 2 + 1, sizeof(*errors));
    oct_learn_settings second = w->settings;

    if (!errors) return OCT_ERR_MEMORY;
    OCT_TRY(oct_block_values_compute(&w->values, b, w->m->g, OCT_SIDE_EXACT, NULL));
    OCT_TRY(compute_now(w, b, errors));
    r->before = r->after = noise(errors + k->n_out, k->n_out);
    if (k->n_layers) OCT_TRY(compensate(w, b, a, errors, r));
    if (k->n_layers) OCT_TRY(learn(w, b, &w->settings, a, errors, r));
    /* Too few steps for some blocks: going straight through the rounding is safer. */
    second.kind = OCT_ROUNDING_LSQ;
    second.rate = LSQ_WAY / second.steps;
    if (r->was_worse && w->settings.kind == OCT_ROUNDING_ADAROUND)
        OCT_TRY(learn(w, b, &second, a, errors, r));
    r->was_worse = r->was_worse && !w->rounded[b].is_in;
    oct_log(w->m->ctx, OCT_LOG_INFO, "block %d of %d, %s to %s: noise / signal %.3g, now %.3g%s",
            (int)b + 1, (int)w->blocks.n, r->first, r->last, r->before, r->after,
            r->was_worse ? " (what was learned was worse)" : "");
    oct_block_values_done(&w->values, b);
    return OCT_OK;
}

static oct_status run(work *w, oct_arena *names)
{
    oct_arena *a = oct_arena_new(w->m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t b = 0; b < w->blocks.n && !st; b++) {
        const oct_block *k = &w->blocks.item[b];
        oct_reconstructed *r = &w->result->blocks[b];

        r->first = oct_arena_strdup(names, k->nodes[0]->name);
        r->last = oct_arena_strdup(names, k->nodes[k->n_nodes - 1]->name);
        st = r->first && r->last ? reconstruct_block(w, b, a) : OCT_ERR_MEMORY;
        oct_arena_reset(a);
        if (!st) st = oct_progress(w->m->ctx, "learning blocks", b + 1, w->blocks.n);
    }
    oct_arena_free(a);
    return st;
}

/* --- the whole network --- */

/* What the first n blocks learned is in the network, the rest is not. What came last goes first. */
static oct_status keep(work *w, int32_t n)
{
    for (int32_t b = 0; b < w->blocks.n; b++) {
        oct_change *both[] = {&w->rounded[b], &w->changes[b]};
        const bool in = b < n;

        for (int i = 0; i < 2; i++) {
            const int k = in ? i : 1 - i;

            if (w->learned[2 * b + k] && both[k]->is_in != in)
                OCT_TRY(oct_change_swap(both[k], w->m, w->bound));
        }
    }
    return OCT_OK;
}

static oct_status measure(void *arg, int32_t n, double *noise)
{
    work *w = arg;

    OCT_TRY(keep(w, n));
    return oct_guard_measure(&w->guard, w->m, noise);
}

/* The network is worse with all changes: those of the last blocks are put back. */
static oct_status undo_last(work *w)
{
    int32_t good = 0;

    OCT_TRY(oct_guard_search(w->blocks.n, w->result->before, measure, w, &good, &w->result->after));
    OCT_TRY(keep(w, good));
    for (int32_t b = good; b < w->blocks.n; b++)
        w->result->blocks[b].was_undone = w->learned[2 * b] || w->learned[2 * b + 1];
    oct_log(w->m->ctx, OCT_LOG_WARN,
            "what the last %d of %d blocks learned made the whole network worse on pictures held "
            "out, and is put back",
            (int)(w->blocks.n - good), (int)w->blocks.n);
    return OCT_OK;
}

/* Too little was gained: the network is as calibration left it. */
static oct_status undo_all(work *w)
{
    OCT_TRY(keep(w, 0));
    for (int32_t b = 0; b < w->blocks.n; b++)
        w->result->blocks[b].was_undone = w->learned[2 * b] || w->learned[2 * b + 1];
    oct_log(w->m->ctx, OCT_LOG_WARN,
            "what blocks learned takes away only %.0f %% of the noise on pictures held out (%.3g, "
            "now %.3g): all of it is put back",
            100 * (1 - w->result->after / w->result->before), w->result->before, w->result->after);
    w->result->after = w->result->before;
    return OCT_OK;
}

static oct_status judge(work *w)
{
    bool any = false;

    w->learned = oct_arena_array(w->arena, (size_t)w->blocks.n * 2 + 1, sizeof(*w->learned));
    if (!w->learned) return OCT_ERR_MEMORY;
    for (int32_t b = 0; b < w->blocks.n; b++) {
        any |= w->learned[2 * b] = w->rounded[b].is_in;
        any |= w->learned[2 * b + 1] = w->changes[b].is_in;
    }
    w->result->after = w->result->before;
    if (!any) return OCT_OK;
    OCT_TRY(oct_guard_measure(&w->guard, w->m, &w->result->after));
    oct_log(w->m->ctx, OCT_LOG_INFO, "all blocks: noise / signal %.3g, now %.3g", w->result->before,
            w->result->after);
    if (!(w->result->after <= w->result->before)) OCT_TRY(undo_last(w));
    if (!(w->result->after <= (1 - LEAST_GAIN) * w->result->before)) OCT_TRY(undo_all(w));
    for (int32_t b = 0; b < w->blocks.n; b++)
        w->result->n_changed += OCT_MAX(w->changes[b].is_in ? w->changes[b].n_layers : 0,
                                        w->rounded[b].is_in ? w->rounded[b].n_layers : 0);
    return OCT_OK;
}

/* Few bits, or scales that are powers of two: only then errors are so large that it matters where
 * they are. */
static bool is_coarse(const oct_qmap *m)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qspec *s = &m->points[i].spec;

        if (m->points[i].role == OCT_QROLE_WEIGHT && (s->bits < 8 || s->is_pow2)) return true;
    }
    return false;
}

static oct_status prepare(work *w, oct_feed *f, const oct_quantize_options *o, oct_arena *names)
{
    oct_reconstruction *out = w->result;

    OCT_TRY(read_settings(w->m, o, &w->settings));
    OCT_TRY(oct_blocks_find(w->m, o->block_size > 0 ? o->block_size : BLOCK_SIZE, w->arena,
                            &w->blocks));
    out->blocks = oct_arena_array(names, (size_t)w->blocks.n + 1, sizeof(*out->blocks));
    w->changes = oct_arena_array(w->arena, (size_t)w->blocks.n + 1, sizeof(*w->changes));
    w->rounded = oct_arena_array(w->arena, (size_t)w->blocks.n + 1, sizeof(*w->rounded));
    if (!out->blocks || !w->changes || !w->rounded) return OCT_ERR_MEMORY;
    out->n = w->blocks.n;
    OCT_TRY(oct_block_values_new(w->bound, &w->blocks, f, VALUE_BYTES, w->arena, &w->values));
    OCT_TRY(oct_block_values_bound(&w->values, w->m, w->arena));
    out->pictures = w->values.pictures;
    if (out->pictures < LEAST_PICTURES)
        return oct_fail(w->m->ctx, OCT_ERR_ARG,
                        "%lld pictures are too few for blocks to learn from: %d are the least",
                        (long long)out->pictures, (int)LEAST_PICTURES);
    if (is_coarse(w->m))
        OCT_TRY(oct_objects_find(w->bound, o->family, w->values.data[OCT_SIDE_EXACT],
                                 w->values.pictures, w->arena, &w->values.objects));
    OCT_TRY(oct_guard_new(w->bound, &w->values, w->arena, &w->guard));
    return oct_guard_measure(&w->guard, w->m, &out->before);
}

oct_status oct_reconstruct(oct_qmap *m, oct_graph *bound, oct_feed *f,
                           const oct_quantize_options *o, oct_arena *a, oct_reconstruction *out)
{
    work w = {.m = m, .bound = bound, .result = out};
    oct_status st = (w.arena = oct_arena_new(m->ctx)) ? OCT_OK : OCT_ERR_MEMORY;

    *out = (oct_reconstruction){0};
    if (!st) st = prepare(&w, f, o, a);
    if (!st) st = run(&w, a);
    if (!st) st = judge(&w);
    for (int32_t b = 0; w.changes && w.rounded && b < w.blocks.n; b++) {
        oct_change_fini(&w.changes[b]);
        oct_change_fini(&w.rounded[b]);
    }
    oct_guard_fini(&w.guard);
    if (w.values.data[0]) oct_block_values_fini(&w.values);
    oct_arena_free(w.arena);
    return st;
}
