/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Healing: a few layers can make most of the error at the outputs of a quantized network. They are
 * found by measuring, and mended in the cheapest way that works:
 *
 *   channels.c  before anything is measured: channels that no scale fits, undone in the weights
 *   suspects.c  layers at whose results the error jumps
 *   mend.c      other scales for a layer's input; the layer in float
 *   heal.c      measures what a layer alone does, by giving it back to float; then what mends do
 */
#ifndef OCT_QUANT_HEAL_HEAL_H
#define OCT_QUANT_HEAL_HEAL_H

#include "quant/heal/probe.h"
#include "quant/observe/calibrate.h"

/* Ways to mend a layer, the cheapest first; the last one works for all. */
typedef enum oct_mend_kind {
    OCT_MEND_CHANNELS, /* each channel of its input has a scale of its own */
    OCT_MEND_WHOLE,    /* nothing of its input is clipped */
    OCT_MEND_CLIPPED,  /* more of its input is clipped */
    OCT_MEND_FLOAT,
    OCT_MEND_COUNT
} oct_mend_kind;

/* One that was kept. Strings are the arena's or the graph's. */
typedef struct oct_mend {
    const char *node, *kind; /* "equalized", "channels", "range", "float" */
    const char *text;        /* one sentence */
    double error_share; /* of the error at the outputs, that the layer alone made; -1: not known */
    double work_share;  /* of the network's multiply-adds */
    double before, after; /* error power / variance at the outputs; -1: not measured */
} oct_mend;

typedef struct oct_healing {
    oct_mend *mends;
    int32_t n;
    int64_t runs;   /* of the network */
    double *layers; /* error power / signal power at the result of each layer with weights, in
                       order; NULL: not measured */
} oct_healing;

/* What it works on. */
typedef struct oct_heal_job {
    const oct_graph *bound;
    const oct_target *target;
    const oct_quantize_options *o;
    const oct_calibration *c;
    oct_feed *feed;
    oct_arena *arena; /* of the result */
} oct_heal_job;

/* *out is the qmap with what was mended, or NULL: there was nothing. m stays as it is. */
oct_status oct_heal(const oct_heal_job *j, const oct_qmap *m, oct_healing *done, oct_qmap **out);

/* channels.c: changes weights of the graph so that channels between layers are alike, where they
 * are wildly apart. What was done goes into *mends, in the arena. */
oct_status oct_heal_channels(oct_graph *g, oct_arena *a, oct_mend **mends, int32_t *n);

/* suspects.c: the layers at whose results the error grows most, the worst first. noise: by layer of
 * the probe. *n of them, at most `most`. */
oct_status oct_heal_suspects(const oct_probe *p, const oct_qmap *m, const double *noise,
                             oct_arena *a, int32_t most, const oct_node **list, int32_t *n);

/* mend.c: a copy of the qmap with n layers mended, or NULL: this way is none for them. */
oct_status oct_heal_mend(const oct_heal_job *j, const oct_qmap *m, const oct_node *const *layers,
                         int32_t n, oct_mend_kind kind, oct_qmap **out);

#endif
