/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization as side data of a float graph: where integers stand, of what kind, with which
 * scales, and why some places have none. The graph itself is never edited.
 *
 *   graph ── place ──▶ points without parameters ── solve ──▶ points with scales and zero points
 *                                                 ── correct ──▶ shifts of biases
 *                                                 ── lower ──▶ a graph with Q/DQ nodes
 */
#ifndef OCT_QUANT_QMAP_H
#define OCT_QUANT_QMAP_H

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

/* A place where an integer tensor may stand. */
typedef struct oct_qpoint {
    const oct_value *value;
    const oct_node *node; /* NULL: for all who read the value; else only for this reader */
    int32_t operand;      /* of `node` */
    oct_qrole role;       /* OCT_QROLE_ACT, _WEIGHT or _BIAS */
    oct_qspec spec;
    oct_qstate state;
    int32_t dominator;    /* DOMINATED: index of the point that decides; else -1 */
    const char *reason;   /* OFF: in words; else NULL */
    const char *observer; /* ACT: how its range is found; NULL: the job's default */
    float channel_share;  /* ACT, per channel: where scales lie between one for all (0) and each
                             channel's own (1); only the solver asks */
    int64_t n;            /* scales: 1, or one for each index of the axis; 0: not solved yet */
    float *scale;
    int32_t *zero;
    /*
     * Weights whose input has a scale for each channel: w * fold is what is quantized, so that the
     * integer sum needs one scale. [1 or O, C/g] in the order of the weight's first two axes; the
     * input's common scale is `fold_scale`. NULL: nothing folded.
     */
    float *fold;
    int64_t fold_rows, fold_columns;
    float fold_scale;
    bool only_given; /* ACT: there for nobody but the reader of the network's integer output */
    int32_t next;    /* another point of the same reader, or -1; set by oct_qmap_add() */
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
    int32_t *of_value;         /* by value id: the point for all its readers, or -1 */
    int32_t *of_reader;        /* by node id: the last point for this reader alone, or -1 */
    int32_t *shift_index;      /* by node id: index into shifts, or -1 */
    const char **float_reason; /* by node id: why this node is computed in float; NULL: it is not,
                                  or nobody would expect integers there (shapes, constants) */
    const char *tail_text;     /* where the tail starts and why, in one sentence; NULL: none */
} oct_qmap;

/* The target is copied. NULL: it is set later. */
oct_status oct_qmap_new(const oct_graph *g, const oct_target *t, oct_qmap **out);
void oct_qmap_free(oct_qmap *m);                              /* accepts NULL */
oct_status oct_qmap_clone(const oct_qmap *m, oct_qmap **out); /* for the same graph */

/* Appends a point (strings copied, arrays not yet: see oct_qpoint_set); *index may be NULL. */
oct_status oct_qmap_add(oct_qmap *m, const oct_qpoint *p, int32_t *index);

/* Gives a point its parameters (copied). */
oct_status oct_qpoint_set(oct_qmap *m, int32_t point, const float *scale, const int32_t *zero,
                          int64_t n);
oct_status oct_qmap_shift(oct_qmap *m, const oct_node *node, const float *shift,
                          int64_t n);                                         /* adds up */
const oct_qshift *oct_qmap_shift_of(const oct_qmap *m, const oct_node *node); /* NULL: none */

/* The point that decides: follows dominators. */
const oct_qpoint *oct_qmap_root(const oct_qmap *m, int32_t point);

/* The point that applies when `node` reads operand i, or -1: one for this reader, else the value's.
 * Its state may be OFF. */
int32_t oct_qmap_at(const oct_qmap *m, const oct_node *node, int32_t operand);

/* --- files: names instead of pointers; floats survive bit for bit --- */
oct_status oct_qmap_save(const oct_qmap *m, const char *path);
oct_status oct_qmap_load(const oct_graph *g, const char *path, oct_qmap **out);

#endif
