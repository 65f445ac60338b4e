/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruction, block by block: see reconstruct.h. */
#include "quant/learn/reconstruct.h"

#include <string.h>

#include "base/ctx.h"
#include "quant/learn/learn_block.h"
#include "quant/lower/lower.h"

#define VALUE_BYTES ((size_t)384 << 20)

enum {
    BLOCK_SIZE = 4,
    STEPS = 500,
    LEAST_PICTURES = 4 /* the fourth is the first that is held out */
};
/* How far something may go in all steps: AdaRound from one end to the other and back, LSQ to a code
 * some steps away. */
#define ADAROUND_WAY 10.0
#define LSQ_WAY      1.0

typedef struct work {
    oct_qmap *m;
    oct_graph *bound;
    oct_learn_settings settings;
    oct_blocks blocks;
    oct_block_values values;
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

    if (o->adaround && o->lsq)
        return oct_fail(m->ctx, OCT_ERR_ARG, "adaround and lsq: one of them only");
    if (o->reconstruct_steps < 0 || !(o->reconstruct_rate >= 0) || o->block_size < 0)
        return oct_fail(m->ctx, OCT_ERR_ARG,
                        "steps, rate and block size of learning are not negative");
    *out = (oct_learn_settings){
        .kind = o->lsq ? OCT_ROUNDING_LSQ : OCT_ROUNDING_ADAROUND,
        .steps = steps,
        .rate = o->reconstruct_rate > 0 ? o->reconstruct_rate
                                        : (o->lsq ? LSQ_WAY : ADAROUND_WAY) / steps,
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

/* --- changing weights and biases --- */

/* Of the graph; *old is what it had, whose reference the caller takes over. */
static oct_status set_weight(work *w, const oct_learned *l, oct_tensor **old)
{
    oct_value *v = w->bound->values[l->node->in[1]->id];
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(w->m->ctx, &v->data->type, &t));
    memcpy(t->data, l->weight, (size_t)oct_tensor_len(t) * sizeof(float));
    *old = v->data;
    v->data = t;
    return l->shift ? oct_qmap_shift(w->m, l->node, l->shift, l->n_shift) : OCT_OK;
}

static oct_status put_back(work *w, const oct_learned *l, oct_tensor **old)
{
    oct_value *v = w->bound->values[l->node->in[1]->id];

    if (!*old) return OCT_OK;
    oct_tensor_unref(v->data);
    v->data = *old;
    *old = NULL;
    for (int64_t i = 0; i < l->n_shift; i++)
        l->shift[i] = -l->shift[i];
    return l->shift ? oct_qmap_shift(w->m, l->node, l->shift, l->n_shift) : OCT_OK;
}

/* --- one block --- */

static oct_status try_learned(work *w, int32_t b, oct_learned *learned, int32_t n, oct_arena *a,
                              oct_block_error *errors, oct_reconstructed *r)
{
    const int32_t n_out = w->blocks.item[b].n_out;
    oct_tensor **old = oct_arena_array(a, (size_t)n + 1, sizeof(*old));
    oct_status st = old ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < n && !st; i++)
        st = set_weight(w, &learned[i], &old[i]);
    if (!st) st = compute_now(w, b, errors);
    r->after = noise(errors + n_out, n_out);
    if (!st && !(r->after < r->before)) {
        r->was_worse = true;
        r->after = r->before;
        for (int32_t i = 0; i < n && !st; i++)
            st = put_back(w, &learned[i], &old[i]);
        if (!st) st = compute_now(w, b, errors);
    } else {
        w->result->n_changed += n;
    }
    for (int32_t i = 0; old && i < n; i++)
        oct_tensor_unref(old[i]);
    return st;
}

static oct_status learn(work *w, int32_t b, const oct_learn_settings *o, oct_arena *a,
                        oct_block_error *errors, oct_reconstructed *r)
{
    oct_learned *learned = NULL;
    int32_t n = 0;

    OCT_TRY(oct_learn_block(w->m, &w->values, b, errors, o, a, &learned, &n));
    r->n_layers = n;
    r->was_worse = false;
    return n ? try_learned(w, b, learned, n, a, errors, r) : OCT_OK;
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
    if (k->n_layers) OCT_TRY(learn(w, b, &w->settings, a, errors, r));
    /* Too few steps for some blocks: going straight through the rounding is safer. */
    second.kind = OCT_ROUNDING_LSQ;
    second.rate = LSQ_WAY / second.steps;
    if (r->was_worse && w->settings.kind == OCT_ROUNDING_ADAROUND)
        OCT_TRY(learn(w, b, &second, a, errors, r));
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

oct_status oct_reconstruct(oct_qmap *m, oct_graph *bound, oct_feed *f,
                           const oct_quantize_options *o, oct_arena *a, oct_reconstruction *out)
{
    work w = {.m = m, .bound = bound, .result = out};
    oct_arena *own = oct_arena_new(m->ctx);
    oct_status st = own ? OCT_OK : OCT_ERR_MEMORY;

    *out = (oct_reconstruction){0};
    if (!st) st = read_settings(m, o, &w.settings);
    if (!st)
        st = oct_blocks_find(m, o->block_size > 0 ? o->block_size : BLOCK_SIZE, own, &w.blocks);
    if (!st) out->blocks = oct_arena_array(a, (size_t)w.blocks.n + 1, sizeof(*out->blocks));
    if (!st && !out->blocks) st = OCT_ERR_MEMORY;
    if (!st) {
        out->n = w.blocks.n;
        st = oct_block_values_new(bound, &w.blocks, f, VALUE_BYTES, own, &w.values);
        out->pictures = w.values.pictures;
    }
    if (!st && out->pictures < LEAST_PICTURES)
        st = oct_fail(m->ctx, OCT_ERR_ARG,
                      "%lld pictures are too few for blocks to learn from: %d are the least",
                      (long long)out->pictures, (int)LEAST_PICTURES);
    if (!st) st = run(&w, a);
    if (w.values.data[0]) oct_block_values_fini(&w.values);
    oct_arena_free(own);
    return st;
}
