/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the layers that make most of the error at the outputs, and mends them: see heal.h. */
#include "quant/heal/heal.h"

#include "op/op.h"

enum {
    PICTURES = 4,
    MOST_MENDS = 6,
    MOST_SUSPECTS = 6,    /* tried between two mends */
    FEWEST_TRIALS = 8,    /* with however few pictures */
    IMAGES_PER_TRIAL = 12 /* to calibrate on: bounds the time by that of the float pass */
};

#define QUIET     5e-3 /* of the variance: nobody sees a smaller error */
#define DOMINATES 0.5  /* of the error at the outputs, by one layer or a few */
#define COUNTS    0.25 /* where several together dominate: the least of one of them */
#define ENOUGH    0.8  /* of what float removes */
#define FLOAT     0.75 /* of the network's work, at most: who quantizes wants integers */

/* State of one healing. */
typedef struct work {
    const oct_heal_job *j;
    oct_probe *p;
    oct_healing *done;
    oct_arena *a;      /* scratch */
    const oct_qmap *m; /* as mended so far */
    oct_qmap *owned;   /* the same; NULL: nothing is mended yet */
    double noise;      /* of m, at the outputs */
    double *layers;    /* and at the results of layers */
    double floats;     /* share of the work that is float by now, to mend it */
    int32_t n_trials, most_trials;
} work;

/* A way that was tried. */
typedef struct trial {
    oct_qmap *m; /* NULL: it is none for this layer */
    double noise;
} trial;

static oct_status try_mend(work *w, const oct_node *const *layers, int32_t n, oct_mend_kind kind,
                           trial *t)
{
    oct_status st;

    *t = (trial){.m = NULL};
    OCT_TRY(oct_heal_mend(w->j, w->m, layers, n, kind, &t->m));
    if (!t->m) return OCT_OK;
    w->n_trials++;
    if ((st = oct_probe_measure(w->p, t->m, &t->noise, NULL))) {
        oct_qmap_free(t->m);
        t->m = NULL;
    }
    return st;
}

/* Without all suspects together: is most of the error gone? If not, none of them need be tried. */
static oct_status is_any_guilty(work *w, const oct_node *const *list, int32_t n, bool *yes)
{
    trial t;

    OCT_TRY(try_mend(w, list, n, OCT_MEND_FLOAT, &t));
    *yes = t.m && t.noise < (1 - DOMINATES) * w->noise;
    oct_qmap_free(t.m);
    return OCT_OK;
}

/* The suspect without which most of the error is gone, or that makes far more of it than the others
 * do; NULL: none. */
static oct_status find_culprit(work *w, const oct_node **layer, trial *best)
{
    const oct_node *list[MOST_SUSPECTS];
    bool yes = false;
    int32_t n;

    *layer = NULL;
    oct_arena_reset(w->a);
    OCT_TRY(oct_heal_suspects(w->p, w->m, w->layers, w->a, MOST_SUSPECTS, list, &n));
    if (n) OCT_TRY(is_any_guilty(w, list, n, &yes));
    for (int32_t i = 0; i < n && yes && w->n_trials < w->most_trials; i++) {
        trial t;

        OCT_TRY(try_mend(w, &list[i], 1, OCT_MEND_FLOAT, &t));
        if (!t.m) continue;
        oct_log(w->p->ctx, OCT_LOG_INFO, "'%s' in float: noise %.3g at the outputs, before %.3g",
                list[i]->name, t.noise, w->noise);
        if (t.noise > (1 - COUNTS) * w->noise || (best->m && t.noise >= best->noise)) {
            oct_qmap_free(t.m);
            continue;
        }
        oct_qmap_free(best->m);
        *best = t;
        *layer = list[i];
        if (t.noise < (1 - DOMINATES) * w->noise) break;
    }
    return OCT_OK;
}

/* The cheapest way that removes nearly as much as float does. */
static oct_status choose(work *w, const oct_node *layer, trial *best, oct_mend_kind *kind)
{
    const double limit = w->noise - ENOUGH * (w->noise - best->noise);

    *kind = OCT_MEND_FLOAT;
    for (int k = 0; k < OCT_MEND_FLOAT && w->n_trials < w->most_trials; k++) {
        trial t;

        OCT_TRY(try_mend(w, &layer, 1, (oct_mend_kind)k, &t));
        if (t.m && t.noise <= limit) {
            oct_qmap_free(best->m);
            *best = t;
            *kind = (oct_mend_kind)k;
            return OCT_OK;
        }
        oct_qmap_free(t.m);
    }
    return OCT_OK;
}

/* --- what is said of it --- */

static double work_share(const work *w, const oct_node *layer)
{
    double all = 0, own = 0;

    for (const oct_node *n = w->j->bound->first; n; n = n->next) {
        const double k = n->op->macs ? (double)OCT_MAX(n->op->macs(n), (int64_t)0) : 0;

        all += k;
        own += n == layer ? k : 0;
    }
    return all > 0 ? own / all : 0;
}

static oct_status note(work *w, const oct_node *layer, oct_mend_kind kind, double alone,
                       const trial *t)
{
    static const struct {
        const char *kind, *text;
    } words[OCT_MEND_COUNT] = {
        [OCT_MEND_CHANNELS] = {"channels", "has a scale for each channel of its input"},
        [OCT_MEND_WHOLE] = {"range", "reads the whole range of its input"},
        [OCT_MEND_CLIPPED] = {"range", "reads 99.9 % of its input, the rest is clipped"},
        [OCT_MEND_FLOAT] = {"float", "stays float"},
    };
    oct_mend *m = &w->done->mends[w->done->n++];

    *m = (oct_mend){.node = layer->name,
                    .kind = words[kind].kind,
                    .error_share = alone,
                    .work_share = work_share(w, layer),
                    .before = w->noise,
                    .after = t->noise};
    m->text = oct_arena_printf(w->j->arena,
                               "'%s' %s: it alone made %.0f %% of the error; %.2g %% "
                               "of the work",
                               layer->name, words[kind].text, 100 * alone, 100 * m->work_share);
    return m->text ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- all of it --- */

static oct_status mend_one(work *w, bool *found)
{
    trial t = {.m = NULL};
    oct_mend_kind kind = OCT_MEND_FLOAT;
    const oct_node *layer;
    double alone;
    oct_status st;

    *found = false;
    OCT_TRY(find_culprit(w, &layer, &t));
    if (!layer) return OCT_OK;
    alone = 1 - t.noise / w->noise;
    st = choose(w, layer, &t, &kind);
    if (!st && kind == OCT_MEND_FLOAT && (w->floats += work_share(w, layer)) > FLOAT) {
        oct_qmap_free(t.m);
        return OCT_OK;
    }
    if (!st) st = note(w, layer, kind, alone, &t);
    if (!st) st = oct_probe_measure(w->p, t.m, &w->noise, w->layers);
    if (st) {
        oct_qmap_free(t.m);
        return st;
    }
    oct_qmap_free(w->owned);
    w->m = w->owned = t.m;
    *found = true;
    return OCT_OK;
}

static oct_status heal(work *w)
{
    bool found = true;

    OCT_TRY(oct_probe_new(w->j->bound, w->m, w->j->feed, PICTURES, &w->p));
    w->layers = w->done->layers =
        oct_arena_array(w->j->arena, (size_t)oct_probe_n_layers(w->p) + 1, sizeof(*w->layers));
    w->done->mends = oct_arena_array(w->j->arena, MOST_MENDS, sizeof(*w->done->mends));
    if (!w->layers || !w->done->mends) return OCT_ERR_MEMORY;
    OCT_TRY(oct_probe_measure(w->p, w->m, &w->noise, w->layers));
    while (found && w->done->n < MOST_MENDS && w->n_trials < w->most_trials && w->noise > QUIET)
        OCT_TRY(mend_one(w, &found));
    w->done->runs = w->p->runs;
    return OCT_OK;
}

oct_status oct_heal(const oct_heal_job *j, const oct_qmap *m, oct_healing *done, oct_qmap **out)
{
    work w = {.j = j, .done = done, .m = m};
    oct_status st = OCT_OK;

    *done = (oct_healing){.n = 0};
    *out = NULL;
    w.most_trials = (int32_t)OCT_MIN(
        OCT_MAX(j->c->images / IMAGES_PER_TRIAL, (int64_t)FEWEST_TRIALS), (int64_t)64);
    if (!(w.a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    st = heal(&w);
    oct_probe_free(w.p);
    oct_arena_free(w.a);
    if (st) {
        oct_qmap_free(w.owned);
        return st;
    }
    *out = w.owned;
    return OCT_OK;
}
