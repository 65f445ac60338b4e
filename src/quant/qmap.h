/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization as side data of a float graph: which tensors are quantized, of what type, with
 * which scales, and why some are not. The graph itself is never edited.
 *
 *   graph ── place ──▶ points without parameters ── solve ──▶ points with scales and zero points
 *                                                 ── correct ──▶ shifts of biases
 *                                                 ── lower ──▶ a graph with Q/DQ nodes
 *
 * Each thing in it has one function that writes it: oct_qmap_add() a point, oct_qpoint_set() its
 * scales and zero points, oct_qpoint_move() codes of weights, oct_qpoint_switch_off() its state,
 * oct_qmap_set_float() why a node is float, oct_qmap_shift() the shift of a bias. The stages that
 * call them, in order, are a table in quant/quantize.c.
 */
#ifndef OCT_QUANT_QMAP_H
#define OCT_QUANT_QMAP_H

#include <octet/quant.h>

#include "quant/target/target.h"

typedef enum oct_qstate {
    OCT_QSTATE_ACTIVE,    /* has parameters of its own */
    OCT_QSTATE_PASSIVE,   /* a bias: its scale follows from input and weight */
    OCT_QSTATE_DOMINATED, /* has the parameters of another point (pass-through, shared scales) */
    OCT_QSTATE_BAKED,     /* the constant already holds values that have codes */
    OCT_QSTATE_OFF,       /* float; `reason` says why */
    OCT_QSTATE_COUNT
} oct_qstate;

const char *oct_qstate_name(oct_qstate s);

/* A tensor that may be quantized: a value, or a value as one of its consumers reads it. */
typedef struct oct_qpoint {
    const oct_value *value;
    const oct_node *node; /* NULL: for all consumers of the value; else for this one alone */
    int32_t operand;      /* of `node` */
    oct_qrole role;       /* OCT_QROLE_ACT, _WEIGHT or _BIAS */
    oct_qspec spec;
    oct_qstate state;
    int32_t dominator;    /* DOMINATED: index of the point whose parameters it has; else -1 */
    const char *reason;   /* OFF: a sentence; else NULL */
    const char *observer; /* how its range is found; NULL: the job's default. Once solved: how it
                             was found */
    float channel_share;  /* ACT, per channel: where scales lie between one for all (0) and each
                             channel's own (1); read by the solver only */
    int64_t n;            /* scales: 1, or one for each index of the axis; 0: not solved yet */
    float *scale;
    int32_t *zero;
    const char *scale_by; /* how the scales came about, stage by stage: "mse_wide, SiLU grid" */
    bool has_seen;        /* seen_low and seen_high are known */
    float seen_low;       /* smallest and largest value in calibration, or of the weight */
    float seen_high;
    /*
     * Weights whose input has a scale for each channel: w * fold is what is quantized, so that the
     * int32 accumulator needs one scale. [1 or O, C/g] in the order of the weight's first two axes;
     * the input's common scale is `fold_scale`. NULL: nothing folded.
     */
    float *fold;
    int64_t fold_rows, fold_columns;
    float fold_scale;
    /*
     * Weights whose codes are one above or below what rounding gives (correct/bias_residue.c): the
     * element's index + 1, negative for one below.
     */
    int64_t *moved;
    int64_t n_moved;
    bool may_have_8_bits; /* WEIGHT: fewer were asked for, and not for this layer by name */
    bool only_given;      /* ACT: only there because the network's output is an integer tensor */
    int32_t next;         /* another point of the same consumer, or -1; set by oct_qmap_add() */
} oct_qpoint;

/* What correction adds to a node's bias (made if it has none). */
typedef struct oct_qshift {
    const oct_node *node;
    int64_t n;
    float *shift;
} oct_qshift;

typedef struct oct_qmap {
    oct_ctx *ctx;
    oct_arena *arena;         /* of all arrays and strings here */
    const oct_graph *g;       /* borrowed */
    const oct_target *target; /* a copy of a row of the table, with what settings changed in it */
    oct_qpoint *points;       /* oct_alloc'ed, grows */
    int32_t n_points;
    size_t cap_points;
    oct_qshift *shifts;
    int32_t n_shifts;
    size_t cap_shifts;
    int32_t *of_value;           /* by value id: the point for all its consumers, or -1 */
    int32_t *of_reader;          /* by node id: the last point for this consumer alone, or -1 */
    int32_t *shift_index;        /* by node id: index into shifts, or -1 */
    const char **float_reason;   /* by node id: why the node runs in float. NULL if it runs in
                                    integers, or is no candidate (shape arithmetic, constants) */
    oct_float_reason *float_why; /* by node id: the same as an enum */
    const char *tail_text;       /* where the tail starts and why, in one sentence; NULL: none */
    const char *stage;           /* the stage that runs now, for errors; NULL: none */
    unsigned may_write;          /* what it may write: OCT_QWRITES_*; all if there is none */
} oct_qmap;

/* What a stage may write. The functions below fail with OCT_ERR_STATE on anything else. */
enum {
    OCT_QWRITES_POINTS = 1u << 0,  /* oct_qmap_add() */
    OCT_QWRITES_SCALES = 1u << 1,  /* oct_qpoint_set(), together with the spec they are for */
    OCT_QWRITES_STATES = 1u << 2,  /* oct_qpoint_switch_off() */
    OCT_QWRITES_REASONS = 1u << 3, /* oct_qmap_set_float() */
    OCT_QWRITES_SHIFTS = 1u << 4,  /* oct_qmap_shift() */
    OCT_QWRITES_CODES = 1u << 5,   /* oct_qpoint_move() */
};

/* The target is copied. NULL: it is set later. */
oct_status oct_qmap_new(const oct_graph *g, const oct_target *t, oct_qmap **out);
void oct_qmap_free(oct_qmap *m);                              /* accepts NULL */
oct_status oct_qmap_clone(const oct_qmap *m, oct_qmap **out); /* for the same graph */

/* Adds a point; strings are copied. Scales come later: n, scale, zero, scale_by and fold of p are
 * not looked at. */
oct_status oct_qmap_add(oct_qmap *m, const oct_qpoint *p, int32_t *index);

/*
 * The one function that writes scales and zero points; both are copied. `by` says how they came
 * about ("mse_wide", "NPU shift") and is added to what scale_by says already.
 */
oct_status oct_qpoint_set(oct_qmap *m, int32_t point, const float *scale, const int32_t *zero,
                          int64_t n, const char *by);

/* Which codes of a weight are one above or below, in place of what was said before; copied. */
oct_status oct_qpoint_move(oct_qmap *m, int32_t point, const int64_t *moved, int64_t n);

/* The point becomes float. If others have their parameters from it, the first of them takes these
 * over and dominates the rest. `why` is not copied. */
oct_status oct_qpoint_switch_off(oct_qmap *m, int32_t point, const char *why);

/* The node runs in float; the sentence is copied. */
oct_status oct_qmap_set_float(oct_qmap *m, const oct_node *node, oct_float_reason why,
                              const char *text);

oct_status oct_qmap_shift(oct_qmap *m, const oct_node *node, const float *shift,
                          int64_t n);                                         /* adds up */
const oct_qshift *oct_qmap_shift_of(const oct_qmap *m, const oct_node *node); /* NULL: none */

/* The point whose parameters this one has: follows dominators. And its index. */
const oct_qpoint *oct_qmap_root(const oct_qmap *m, int32_t point);
int32_t oct_qmap_root_index(const oct_qmap *m, int32_t point);

/* The point that applies when `node` reads operand i, or -1: one for this consumer, else the
 * value's. Its state may be OFF. */
int32_t oct_qmap_at(const oct_qmap *m, const oct_node *node, int32_t operand);

/* A convolution that has quantized weights, so far. */
bool oct_qmap_conv_is_integer(const oct_qmap *m, const oct_node *n);

/* --- files: names instead of pointers; floats survive bit for bit --- */
oct_status oct_qmap_save(const oct_qmap *m, const char *path);
oct_status oct_qmap_load(const oct_graph *g, const char *path, oct_qmap **out);

#endif
