/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of lowering share: the copy of the graph that gets Q and DQ nodes. */
#ifndef OCT_QUANT_LOWER_LOWER_PARTS_H
#define OCT_QUANT_LOWER_LOWER_PARTS_H

#include "quant/lower/lower.h"

typedef struct oct_lowering {
    oct_ctx *ctx;
    const oct_qmap *m;
    const oct_target *target;
    oct_lower_options options;
    oct_graph *g;            /* the copy: ids are those of the original */
    oct_arena *arena;        /* for the time of lowering */
    oct_node **nodes;        /* by id: of the copy */
    const oct_node **from;   /* by id: of the original */
    int32_t n_nodes;         /* ids of the original; nodes made here have larger ones */
    int32_t *first;          /* by node id: where its operands start in `claimed` */
    uint8_t *claimed;        /* operands that have a point of their own */
    oct_value *(*shared)[2]; /* by point: its scale and zero point, for those it dominates */
    oct_map names;
    oct_map common;      /* constants that several nodes read, by name */
    oct_map originals;   /* by name of a value: that of the float constant it replaces */
    int opset;           /* that the types need */
    int64_t n_saturated; /* biases beyond 32 bits */
    bool rounds_otherwise;
    bool is_trial; /* nothing is written to a file */
} oct_lowering;

/* --- lower_emit.c --- */

/* "BASE_SUFFIX", with a number appended if that name is in use. NULL: no memory. */
const char *oct_lowering_name(oct_lowering *l, const char *base, const char *suffix);

/* A constant of that name. Takes the reference to t. */
oct_status oct_lowering_const(oct_lowering *l, oct_graph *g, const char *base, const char *suffix,
                              oct_tensor *t, oct_value **out);

/* What Q and DQ nodes need. */
typedef struct oct_lowering_params {
    const char *base; /* for names */
    oct_dtype dtype;
    int axis;
    int64_t n;
    const float *scale;
    const int32_t *zero; /* NULL: all 0 */
    bool is_const;       /* codes of a constant */
} oct_lowering_params;

/* As constants: scale, then zero point (NULL where it is 0 and can be left out). */
oct_status oct_lowering_constants(oct_lowering *l, oct_graph *g, const oct_lowering_params *p,
                                  oct_value *out[2]);

/* A QuantizeLinear or DequantizeLinear before `before`, with those constants. */
oct_status oct_lowering_qdq(oct_lowering *l, oct_graph *g, oct_node *before, const oct_op *op,
                            oct_value *x, const oct_lowering_params *p,
                            oct_value *const constants[2], oct_value **out);

/* x with its axes in another order; NULL: see the builder's status. */
oct_value *oct_lowering_transpose(oct_builder *b, oct_value *x, const int64_t *perm);

/* Fails unless a point has parameters that fit its value; `base` of out is the value's name. */
oct_status oct_lowering_check(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root,
                              const oct_value *v, oct_lowering_params *out);

/* --- lower.c --- */

/* Consumers of v that have no point of their own read `to`. */
oct_status oct_lowering_rewire(oct_lowering *l, oct_value *v, oct_value *to);
bool oct_lowering_has_readers(const oct_lowering *l, const oct_value *v);

/* lower_weights.c: a constant as integers; what its consumers read. */
oct_status oct_lowering_weight(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root,
                               oct_value *v, oct_node *before, oct_value **out);

/* lower_bias.c: what correction adds, and biases as integers. */
oct_status oct_lowering_shifts(oct_lowering *l); /* of nodes that cannot have a bias */
oct_status oct_lowering_biases(oct_lowering *l);

/* lower_npu.c: means as sums times k / 2^n, slopes as k / 256; before points are lowered. */
oct_status oct_lowering_npu(oct_lowering *l);

/* lower_names.c: final names, when all nodes are there. */
oct_status oct_lowering_names(oct_lowering *l);

/* ort_softmax.c: for runtimes that are slow along other axes than the last. */
oct_status oct_lowering_softmax(oct_lowering *l);

/* ort_resize.c, ort_dfl.c, ort_matmul.c: for runtimes that compute in NHWC. */
oct_status oct_lowering_codes(oct_lowering *l);
oct_status oct_lowering_dfl(oct_lowering *l); /* after ort_matmul.c, whose last step it undoes */
oct_status oct_lowering_products(oct_lowering *l);

#endif
