/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantizing with a promise. The search says which layers to try in float; here they are added to
 * the ignored ones and the network is quantized again, so that all that depends on a layer being
 * float (its neighbours' points, shared scales, bias correction) is decided as always.
 */
#include "control/control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <octet/analyze.h>

#include "base/machine.h"
#include "base/map.h"
#include "base/sized.h"
#include "base/str.h"
#include "control/search.h"
#include "op/op.h"
#include "quant/quantized.h"

#define USUAL_LIMIT          0.01
#define USUAL_RANKING_IMAGES 16
#define USUAL_SCORES         40

struct oct_control {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_control_summary summary;
    oct_control_step *steps;
    size_t n_steps, steps_cap;
    const char **restored;
};

typedef struct job {
    oct_control *c;
    const oct_graph *g;
    const oct_dataset *images;
    oct_quantize_options o;
    oct_control_options how;
    oct_quantized *last, *kept;

    const char **names; /* of all nodes of the network that is quantized */
    double *work;
    int32_t n;
    oct_map by_name; /* index + 1 */
    int64_t params;
} job;

void oct_control_options_init_sized(oct_control_options *o, size_t struct_size)
{
    const oct_control_options all = {.struct_size = struct_size,
                                     .limit = USUAL_LIMIT,
                                     .ranking_images = USUAL_RANKING_IMAGES,
                                     .max_scores = USUAL_SCORES};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- quantizing with some layers in float --- */

/* is_float NULL: as the settings have it. */
static oct_status quantize(const job *j, const uint8_t *is_float, oct_quantized **out)
{
    oct_quantize_options o = j->o;
    const char **names;
    int32_t n = j->o.ignored.n_names;
    oct_status st;

    names = oct_calloc(j->c->ctx, (size_t)n + (size_t)j->n + 1, sizeof(*names));
    if (!names) return OCT_ERR_MEMORY;
    if (n) memcpy(names, j->o.ignored.names, (size_t)n * sizeof(*names));
    for (int32_t i = 0; is_float && i < j->n; i++)
        if (is_float[i]) names[n++] = j->names[i];
    o.ignored.names = names;
    o.ignored.n_names = n;
    st = oct_quantize(j->g, j->images, &o, out);
    oct_free(j->c->ctx, names);
    return st;
}

/* The nodes of the network, with their work. */
static oct_status list_nodes(job *j)
{
    const oct_graph *g = j->last->bound;
    const size_t n = (size_t)g->n_nodes + 1;

    j->names = oct_arena_array(j->c->arena, n, sizeof(*j->names));
    j->work = oct_arena_array(j->c->arena, n, sizeof(*j->work));
    if (!j->names || !j->work) return OCT_ERR_MEMORY;
    for (const oct_node *node = g->first; node; node = node->next) {
        const int64_t macs = node->op->macs ? node->op->macs(node) : 0;

        j->params += oct_weight_count(node);
        if (!node->name || !*node->name || oct_map_get(&j->by_name, node->name)) continue;
        if (!(j->names[j->n] = oct_arena_strdup(j->c->arena, node->name))) return OCT_ERR_MEMORY;
        j->work[j->n] = (double)OCT_MAX(macs, (int64_t)0) + 1;
        OCT_TRY(oct_map_put(&j->by_name, j->names[j->n], (void *)(uintptr_t)(j->n + 1)));
        j->n++;
    }
    return OCT_OK;
}

/* --- what the search asks for --- */

/* Higher is better in the search. */
static double turned(const job *j, double score)
{
    return j->how.promise == OCT_PROMISE_MOST ? -score : score;
}

static int32_t count_floats(const job *j, const uint8_t *is_float)
{
    int32_t n = 0;

    for (int32_t i = 0; i < j->n; i++)
        n += is_float[i] != 0;
    return n;
}

/* The network without layers in float is there already when the search begins. */
static oct_status score(void *user, const uint8_t *is_float, double *out)
{
    job *j = user;

    if (count_floats(j, is_float)) {
        oct_status st;

        oct_quantized_free(j->last);
        j->last = NULL;
        st = quantize(j, is_float, &j->last);
        if (st == OCT_ERR_ARG) { /* nothing is left to quantize */
            *out = -INFINITY;
            return OCT_OK;
        }
        if (st) return st;
    }
    OCT_TRY(j->how.measure(j->how.user, oct_quantized_graph(j->last), out));
    *out = turned(j, *out);
    return OCT_OK;
}

/* Of all that works on integers, with weights or without. One layer has to stay, or there is no
 * INT8 network: the one with weights that does the least harm is not ranked. */
static oct_status rank_layers(job *j, const oct_graph *quantized, const uint8_t *is_float,
                              double *harm)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    oct_analysis *a = NULL;
    oct_analyze_options o;
    int32_t n = 0, least = -1;

    oct_analyze_options_init(&o);
    o.images = j->how.ranking_images;
    o.graphwise = o.statistics = 0;
    o.preprocess = j->o.preprocess;
    o.family = j->o.family;
    OCT_TRY(oct_analyze(j->g, quantized, j->images, &o, &a));
    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++) {
        const uintptr_t at = (uintptr_t)oct_map_get(&j->by_name, l.name);

        if (!at || l.reason || l.in_tail || is_float[at - 1]) continue;
        harm[at - 1] = OCT_MAX(l.alone.noise, 0.0);
        n++;
        if (l.weight_bits && (least < 0 || harm[at - 1] < harm[least])) least = (int32_t)at - 1;
    }
    oct_analysis_free(a);
    if (!j->c->summary.candidates) j->c->summary.candidates = n;
    if (least >= 0) harm[least] = -1;
    return OCT_OK;
}

/* By the error at the network's outputs with one layer quantized at a time. */
static oct_status rank(void *user, const uint8_t *is_float, double *harm)
{
    job *j = user;
    oct_quantized *q = NULL;
    oct_status st;

    if (!count_floats(j, is_float)) /* the first one is always kept */
        return rank_layers(j, oct_quantized_graph(j->kept), is_float, harm);
    OCT_TRY(quantize(j, is_float, &q));
    st = rank_layers(j, oct_quantized_graph(q), is_float, harm);
    oct_quantized_free(q);
    return st;
}

/* Weights in integers take a byte, others four. */
static int64_t bytes_of(const job *j, double share)
{
    return (int64_t)((double)j->params * (4 - 3 * share));
}

static oct_status step(void *user, const oct_search_step *from)
{
    job *j = user;
    oct_control *c = j->c;
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_control_step to = {.struct_size = sizeof(to),
                           .move = from->kind,
                           .layer = from->first >= 0 ? j->names[from->first] : NULL,
                           .changed = from->n,
                           .restored = from->floats,
                           .score = turned(j, from->score),
                           .holds = from->holds,
                           .is_kept = from->is_kept};

    if (j->last) {
        oct_quantized_summary(j->last, &s);
        to.macs_quantized_share = s.macs_quantized_share;
        to.weight_bytes = bytes_of(j, s.weights_quantized_share);
    }
    OCT_TRY(oct_grow(c->ctx, &c->steps, &c->steps_cap, c->n_steps + 1, sizeof(*c->steps)));
    c->steps[c->n_steps++] = to;
    if (from->kind == OCT_CONTROL_START) c->summary.first_score = to.score;
    if (from->is_kept) {
        oct_quantized_free(j->kept);
        j->kept = j->last;
        j->last = NULL;
    }
    if (j->how.on_step) j->how.on_step(j->how.on_step_user, &to);
    return OCT_OK;
}

/* --- the whole --- */

static oct_status check(oct_ctx *ctx, const oct_control_options *o)
{
    if (!o->measure)
        return oct_fail(ctx, OCT_ERR_ARG, "a promise needs something to measure it by");
    if (o->promise < OCT_PROMISE_DROP || o->promise > OCT_PROMISE_MOST)
        return oct_fail(ctx, OCT_ERR_ARG, "there is no promise of kind %d", (int)o->promise);
    if (!isfinite(o->limit) || (o->promise != OCT_PROMISE_LEAST && o->limit < 0))
        return oct_fail(ctx, OCT_ERR_ARG, "%g is no limit of a promise", o->limit);
    if (o->ranking_images < 0 || o->max_scores < 0)
        return oct_fail(ctx, OCT_ERR_ARG, "a promise cannot be kept with negative numbers");
    return OCT_OK;
}

static bool is_drop(const job *j)
{
    return j->how.promise == OCT_PROMISE_DROP || j->how.promise == OCT_PROMISE_RELATIVE_DROP;
}

/* Names of restored layers, and all that the file says. */
static oct_status write_promise(job *j, const uint8_t *is_float)
{
    oct_control *c = j->c;
    oct_promise p = {.kind = j->how.promise,
                     .limit = j->how.limit,
                     .measure = j->how.name ? j->how.name : "score",
                     .float_score = c->summary.float_score,
                     .score = c->summary.score,
                     .held = c->summary.holds};
    oct_status st;
    oct_str s;

    c->restored = oct_arena_array(c->arena, (size_t)j->n + 1, sizeof(*c->restored));
    if (!c->restored) return OCT_ERR_MEMORY;
    oct_str_init(&s, c->ctx);
    for (int32_t i = 0; i < j->n; i++) {
        if (!is_float[i]) continue;
        oct_str_printf(&s, "%s%s", p.restored ? "," : "", j->names[i]);
        c->restored[p.restored++] = j->names[i];
    }
    p.layers = s.s;
    c->summary.restored = p.restored;
    st = s.failed ? OCT_ERR_MEMORY : oct_promise_write(j->kept->qdq, &p);
    oct_str_fini(&s);
    return st;
}

static oct_status search(job *j)
{
    oct_control_summary *to = &j->c->summary;
    oct_search s = {.ctx = j->c->ctx,
                    .max_scores = j->how.max_scores,
                    .user = j,
                    .score = score,
                    .rank = rank,
                    .step = step};

    to->float_score = NAN;
    if (is_drop(j)) OCT_TRY(j->how.measure(j->how.user, j->g, &to->float_score));
    to->need = oct_promise_need(j->how.promise, j->how.limit, to->float_score);
    OCT_TRY(quantize(j, NULL, &j->last));
    OCT_TRY(list_nodes(j));
    s.n = s.most = j->n;
    s.work = j->work;
    s.need = turned(j, to->need);
    if (!(s.is_float = oct_arena_alloc(j->c->arena, (size_t)j->n + 1))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_search_run(&s));
    to->holds = s.holds;
    to->score = turned(j, s.score_kept);
    to->scores = s.n_scores;
    return write_promise(j, s.is_float);
}

static oct_status control_new(oct_ctx *ctx, oct_control **out)
{
    oct_control *c = oct_calloc(ctx, 1, sizeof(*c));

    if (!c) return OCT_ERR_MEMORY;
    c->ctx = ctx;
    if (!(c->arena = oct_arena_new(ctx))) {
        oct_free(ctx, c);
        return OCT_ERR_MEMORY;
    }
    *out = c;
    return OCT_OK;
}

oct_status oct_quantize_controlled(const oct_graph *g, const oct_dataset *images,
                                   const oct_quantize_options *options,
                                   const oct_control_options *control, oct_quantized **out,
                                   oct_control **result)
{
    OCT_ENTER(g->ctx);
    const int64_t start = oct_time_ns();
    job j = {.g = g, .images = images};
    oct_status st;

    oct_quantize_options_init(&j.o);
    if (options) memcpy(&j.o, options, OCT_MIN(options->struct_size, sizeof(j.o)));
    oct_control_options_init(&j.how);
    if (control) memcpy(&j.how, control, OCT_MIN(control->struct_size, sizeof(j.how)));
    OCT_TRY(check(g->ctx, &j.how));
    if (!j.how.ranking_images) j.how.ranking_images = USUAL_RANKING_IMAGES;
    if (!j.how.max_scores) j.how.max_scores = USUAL_SCORES;
    OCT_TRY(control_new(g->ctx, &j.c));
    oct_map_init(&j.by_name, g->ctx);
    st = search(&j);
    oct_map_fini(&j.by_name);
    oct_quantized_free(j.last);
    j.c->summary.seconds = (double)(oct_time_ns() - start) * 1e-9;
    if (st)
        oct_quantized_free(j.kept);
    else
        *out = j.kept;
    if (st || !result)
        oct_control_free(j.c);
    else
        *result = j.c;
    return st;
}

/* --- asking --- */

void oct_control_free(oct_control *c)
{
    if (!c) return;
    oct_free(c->ctx, c->steps);
    oct_arena_free(c->arena);
    oct_free(c->ctx, c);
}

void oct_control_get_summary(const oct_control *c, oct_control_summary *s)
{
    oct_sized_give(s, &c->summary, sizeof(c->summary));
}

int32_t oct_control_step_at(const oct_control *c, int32_t i, oct_control_step *to)
{
    if (i < 0 || (size_t)i >= c->n_steps) return 0;
    oct_sized_give(to, &c->steps[i], sizeof(c->steps[i]));
    return 1;
}

const char *oct_control_restored(const oct_control *c, int32_t i)
{
    return i >= 0 && i < c->summary.restored ? c->restored[i] : NULL;
}
