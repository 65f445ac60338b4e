/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: what would help, best first, with the options that do it. Errors of single layers add up
 * to about the error of all of them, so a layer's share of the sum is what leaving it in float
 * gains.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_parts.h"
#include "base/str.h"
#include "op/channels.h"
#include "op/op.h"
#include "quant/diagnose.h"
#include "quant/lower/lower.h"

#define ENOUGH       1e-3 /* noise at the outputs that is worth a change: 30 dB */
#define LARGE_SHARE  0.08 /* of the error: a layer to name */
#define TAIL_SHARE   0.02 /* the tail costs nothing in float */
#define ONE_CAUSE    0.25 /* of the error: it is not spread over many layers */
#define MOST_LAYERS  4    /* named */
#define NOISY_POINT  5e-3
#define HARMFUL      0.03 /* of the error, by the layers that read a point */
#define LARGE_SPREAD 16.0
#define MOST_ADVICE  32

typedef struct adviser {
    oct_analysis *a;
    const oct_pair *p;
    double total, tail; /* sums of errors of single layers */
    double total_macs;
    int32_t n_tail; /* layers with integers in the tail */
    double worst;   /* noise of the worst output; < 0: not known */
    bool has_tail_advice;
} adviser;

static oct_status add(adviser *v, const char *layer, double gain, const char *option, char *text)
{
    oct_advice *to = &v->a->advice[v->a->n_advice];

    if (!text || !option) return OCT_ERR_MEMORY;
    if (v->a->n_advice == MOST_ADVICE) return OCT_OK;
    *to = (oct_advice){.struct_size = sizeof(*to), .text = text, .option = option, .gain = gain};
    if (layer && !(to->layer = oct_arena_strdup(v->a->arena, layer))) return OCT_ERR_MEMORY;
    v->a->n_advice++;
    return OCT_OK;
}

/* A name as a shell reads it. */
static const char *ignore_option(adviser *v, const char *name)
{
    const char *plain = "/._-+:,@%=";
    const char *result;
    bool is_plain = *name != '\0';
    oct_str s;

    for (const char *c = name; *c; c++)
        is_plain = is_plain && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                                (*c >= '0' && *c <= '9') || strchr(plain, *c));
    if (is_plain) return oct_arena_printf(v->a->arena, "--ignore-name %s", name);
    oct_str_init(&s, v->a->ctx);
    oct_str_puts(&s, "--ignore-name '");
    for (const char *c = name; *c; c++)
        if (*c == '\'')
            oct_str_puts(&s, "'\\''");
        else
            oct_str_put(&s, c, 1);
    oct_str_puts(&s, "'");
    result = s.failed ? NULL : oct_arena_strdup(v->a->arena, s.s);
    oct_str_fini(&s);
    return result;
}

static double share_of(const adviser *v, double noise)
{
    return v->total > 0 && noise > 0 ? noise / v->total : -1;
}

static void sum_up(adviser *v)
{
    const oct_analysis *a = v->a;

    v->worst = -1;
    for (int32_t i = 0; i < a->n_outputs; i++)
        v->worst = fmax(v->worst, a->outputs[i].error.noise);
    for (int32_t i = 0; i < a->n_layers; i++) {
        const double noise = fmax(a->layers[i].alone.noise, 0);

        v->total_macs += (double)a->layers[i].macs;
        if (a->layers[i].reason) continue;
        v->total += noise;
        v->tail += a->layers[i].in_tail ? noise : 0;
        v->n_tail += a->layers[i].in_tail != 0;
    }
}

/* --- faults --- */

static oct_status advise_fault(adviser *v, const oct_qfault *f)
{
    const char *option = v->n_tail ? "--tail auto" : ignore_option(v, f->node->name);
    const double gain = v->n_tail ? share_of(v, v->tail) : -1;
    char *text = oct_arena_strdup(v->a->arena, f->text);

    if (v->n_tail) v->has_tail_advice = true;
    return add(v, f->node->name, gain, option, text);
}

/* Warnings about the scales of the file; if its integers cannot all be read, there are none. */
static oct_status advise_faults(adviser *v)
{
    oct_qfault *faults = NULL;
    oct_graph *g = NULL;
    oct_qmap *m = NULL;
    oct_status st;
    int n = 0;

    st = oct_raise(v->p->quantized, &g, &m);
    if (st) return st == OCT_ERR_MEMORY ? st : OCT_OK;
    st = oct_qmap_faults(m, v->p->arena, &faults, &n);
    for (int i = 0; i < n && !st; i++)
        st = advise_fault(v, &faults[i]);
    oct_qmap_free(m);
    oct_graph_free(g);
    return st;
}

/* --- the tail --- */

static oct_status advise_tail(adviser *v)
{
    const double share = share_of(v, v->tail);

    if (!v->n_tail || v->has_tail_advice || share < TAIL_SHARE) return OCT_OK;
    v->has_tail_advice = true;
    return add(v, NULL, share, "--tail auto",
               oct_arena_printf(v->a->arena,
                                "%d layers after the network's last convolutions are in integers "
                                "and make %.0f %% of the error at the outputs: leave the tail in "
                                "float, which costs next to no time.",
                                (int)v->n_tail, share * 100));
}

/* --- layers --- */

static bool may_be_named(const oct_analyzed_layer *l)
{
    const oct_op *op = oct_op_find("", l->op);

    return !l->reason && !l->in_tail && l->alone.noise > 0 &&
           (l->weight_bits || op == &oct_op_add || op == &oct_op_mul || op == &oct_op_concat);
}

static int by_error(const void *a, const void *b)
{
    const oct_analyzed_layer *const *x = a, *const *y = b;

    if ((*x)->alone.noise != (*y)->alone.noise)
        return (*x)->alone.noise > (*y)->alone.noise ? -1 : 1;
    return *x < *y ? -1 : 1;
}

static oct_status advise_layer(adviser *v, const oct_analyzed_layer *l)
{
    const double share = share_of(v, l->alone.noise);
    const double macs = v->total_macs > 0 ? (double)l->macs / v->total_macs : 0;

    return add(v, l->name, share, ignore_option(v, l->name),
               oct_arena_printf(v->a->arena,
                                "'%s' (%s) alone makes %.0f %% of the error at the outputs: leave "
                                "it in float. It is %.1f %% of the network's work.",
                                l->name, l->op, share * 100, macs * 100));
}

static oct_status advise_layers(adviser *v)
{
    const oct_analysis *a = v->a;
    const oct_analyzed_layer **list =
        oct_arena_array(v->p->arena, (size_t)a->n_layers + 1, sizeof(*list));
    int32_t n = 0;

    if (!list) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < a->n_layers; i++)
        if (may_be_named(&a->layers[i])) list[n++] = &a->layers[i];
    qsort(list, (size_t)n, sizeof(*list), by_error);
    for (int32_t i = 0; i < OCT_MIN(n, MOST_LAYERS); i++)
        if (share_of(v, list[i]->alone.noise) >= LARGE_SHARE) OCT_TRY(advise_layer(v, list[i]));
    return OCT_OK;
}

/* --- ranges that do not fit together --- */

static const oct_analyzed_point *point_of(const oct_analysis *a, const oct_value *v)
{
    for (int32_t i = 0; i < a->n_points; i++)
        if (strcmp(a->points[i].value, v->name) == 0) return &a->points[i];
    return NULL;
}

static double top_of(const oct_analyzed_point *p)
{
    return fmax(fabs(p->min), fabs(p->max));
}

/* Operands of an Add or Concat under the scale of the result, or under one of their own. */
typedef struct meeting {
    const oct_analyzed_point *least, *most;
    double scale;
} meeting;

static bool look_at_node(const oct_analysis *a, const oct_node *n, meeting *m)
{
    const oct_analyzed_point *out = point_of(a, n->out[0]);

    *m = (meeting){.scale = out && out->n_scales == 1 ? out->scale : 0};
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_analyzed_point *p = n->in[i] && !n->in[i]->data ? point_of(a, n->in[i]) : NULL;

        if (!p) continue;
        if (!m->least || top_of(p) < top_of(m->least)) m->least = p;
        if (!m->most || top_of(p) > top_of(m->most)) m->most = p;
    }
    if (!m->least || m->least == m->most) return false;
    if (m->least->n_scales == 1 && m->most->n_scales == 1 && m->least->scale == m->most->scale)
        m->scale = m->least->scale;
    return m->scale > 0 && top_of(m->least) / m->scale < OCT_FEW_STEPS &&
           top_of(m->most) / m->scale > OCT_MANY_STEPS;
}

static oct_status advise_meetings(adviser *v)
{
    for (int32_t i = 0; i < v->p->n_layers; i++) {
        const oct_node *n = v->p->layers[i].last;
        const oct_analyzed_layer *l = &v->a->layers[i];
        meeting m;

        if ((n->op != &oct_op_concat && n->op != &oct_op_add) || l->reason || l->in_tail) continue;
        if (!look_at_node(v->a, n, &m)) continue;
        OCT_TRY(add(v, n->name, share_of(v, l->alone.noise), ignore_option(v, n->name),
                    oct_arena_printf(v->a->arena,
                                     "'%s' (%s) brings '%s' (up to %.3g) and '%s' (up to %.3g) "
                                     "under one scale of %.3g, which leaves few codes to the "
                                     "latter: leave it in float, or use --target octet, which "
                                     "keeps a scale for each operand.",
                                     n->name, n->op->name, m.most->value, top_of(m.most),
                                     m.least->value, top_of(m.least), m.scale)));
    }
    return OCT_OK;
}

/* --- ranges and biases --- */

typedef struct findings {
    int32_t n_narrow, n_wide, n_uneven;
    const oct_analyzed_point *narrow, *wide, *uneven; /* the noisiest of each kind */
} findings;

static void note(const oct_analyzed_point *p, int32_t *n, const oct_analyzed_point **worst)
{
    ++*n;
    if (!*worst || p->noise > (*worst)->noise) *worst = p;
}

/* Error of the consumers of a value, as a share; 0 before an activation, where a narrow range is
 * no fault: values far below zero become zero anyway. */
static double harm_of(const adviser *v, const oct_analyzed_point *p)
{
    const oct_value *x = oct_graph_find_value(v->p->exact, p->value);
    double sum = 0;

    for (int32_t i = 0; x && i < x->n_users; i++) {
        const oct_node *u = x->users[i];
        const int32_t layer = u->graph == v->p->exact ? v->p->layer_of[u->id] : -1;

        if (u->op->act) return 0;
        if (layer >= 0) sum += fmax(share_of(v, v->a->layers[layer].alone.noise), 0);
    }
    return sum;
}

static void look_at_points(const adviser *v, findings *f)
{
    for (int32_t i = 0; i < v->a->n_points; i++) {
        const oct_analyzed_point *p = &v->a->points[i];

        if (p->noise < NOISY_POINT || harm_of(v, p) < HARMFUL) continue;
        if (p->clipped > 1e-4 && top_of(p) > 1.25 * fmax(fabs(p->low), fabs(p->high)))
            note(p, &f->n_narrow, &f->narrow);
        else if (p->used * 3 < p->levels)
            note(p, &f->n_wide, &f->wide);
        else if (p->n_scales == 1 && p->spread > LARGE_SPREAD)
            note(p, &f->n_uneven, &f->uneven);
    }
}

static oct_status advise_ranges(adviser *v)
{
    oct_arena *a = v->a->arena;
    findings f = {0};

    look_at_points(v, &f);
    if (f.n_narrow)
        OCT_TRY(
            add(v, f.narrow->layer, -1, "--ranges minmax",
                oct_arena_printf(a,
                                 "Points that clip numbers that matter: %d, '%s' most (%.2f %% are "
                                 "beyond the range, noise %.1f %%): take wider ranges.",
                                 (int)f.n_narrow, f.narrow->value, f.narrow->clipped * 100,
                                 f.narrow->noise * 100)));
    if (f.n_wide)
        OCT_TRY(add(v, f.wide->layer, -1, "--ranges mse",
                    oct_arena_printf(a,
                                     "Points that waste codes: %d, '%s' most (%d of %d are used, "
                                     "kurtosis %.0f): take ranges that leave outliers out.",
                                     (int)f.n_wide, f.wide->value, (int)f.wide->used,
                                     (int)f.wide->levels, f.wide->kurtosis)));
    if (f.n_uneven)
        OCT_TRY(
            add(v, f.uneven->layer, -1, "--equalize",
                oct_arena_printf(a,
                                 "Points whose channels of very different ranges have one "
                                 "scale: %d, '%s' most (the widest is %.0f times the median): make "
                                 "them alike, or use --target octet, which has a scale for "
                                 "each channel.",
                                 (int)f.n_uneven, f.uneven->value, f.uneven->spread)));
    return OCT_OK;
}

/* Without a layer that dominates, advice that concerns all of them is left. */
static oct_status advise_biases(adviser *v)
{
    if (v->worst < 10 * ENOUGH || v->total <= 0) return OCT_OK;
    return add(
        v, NULL, -1, "--bias-correction full",
        oct_arena_printf(v->a->arena,
                         "The error (%.1f %% noise at the worst output) is spread over many "
                         "layers: correct biases layer by layer, on the network quantized so "
                         "far.",
                         v->worst * 100));
}

/* --- all of it --- */

static int by_gain(const void *a, const void *b)
{
    const oct_advice *x = a, *y = b;

    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return strcmp(x->text, y->text);
}

oct_status oct_analyze_advice(oct_analysis *a, const oct_pair *p)
{
    adviser v = {.a = a, .p = p};
    int32_t n_first;

    if (!(a->advice = oct_arena_array(a->arena, MOST_ADVICE, sizeof(*a->advice))))
        return OCT_ERR_MEMORY;
    sum_up(&v);
    OCT_TRY(advise_faults(&v)); /* independent of the figures: scores that are all zero are not
                                 * noise */
    n_first = a->n_advice;
    if (v.worst >= 0 && v.worst < ENOUGH && !n_first) return OCT_OK;
    OCT_TRY(advise_tail(&v));
    OCT_TRY(advise_layers(&v));
    OCT_TRY(advise_meetings(&v));
    qsort(a->advice + n_first, (size_t)(a->n_advice - n_first), sizeof(*a->advice), by_gain);
    OCT_TRY(advise_ranges(&v));
    if (n_first || v.has_tail_advice || (a->n_advice > 0 && a->advice[0].gain > ONE_CAUSE))
        return OCT_OK;
    return advise_biases(&v);
}
