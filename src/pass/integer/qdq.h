/* SPDX-License-Identifier: Apache-2.0 */
/* Creating QuantizeLinear and DequantizeLinear nodes, and moving them past nodes that move data. */
#ifndef OCT_PASS_INTEGER_QDQ_H
#define OCT_PASS_INTEGER_QDQ_H

#include "op/qparams.h"

/* Operands of a Q or DQ node; zero may be NULL. axis -1: one scale for all. */
typedef struct oct_qdq {
    oct_value *scale, *zero;
    int64_t axis;
    bool was_signed; /* as in oct_codes */
    int64_t last;    /* as in oct_codes */
} oct_qdq;

/* Those of an existing node. */
oct_qdq oct_qdq_of(const oct_node *n);

/* The value x, quantized (to_codes) or dequantized, by a node before `before` (NULL: at the end
 * of x's graph). The result is `out`, or a new value named after `base`. */
oct_status oct_qdq_new(oct_graph *g, oct_node *before, bool to_codes, const char *base,
                       oct_value *x, const oct_qdq *l, oct_value *out, oct_value **made);

/* Output k of n becomes codes of this type: a new value, which a DequantizeLinear after n
 * converts to the old one. */
oct_status oct_qdq_dequantize_output(oct_node *n, int32_t k, oct_dtype dtype, const oct_qdq *l);

/* Pad must write the code of zero; false if there is no common one for all channels. */
bool oct_qdq_pad_fits(const oct_node *n, const oct_codes *c);
oct_status oct_qdq_fix_pad(oct_node *n, const oct_codes *c);

/* A 0-D (n = 1) or 1-D constant named after a node. */
oct_status oct_qdq_scales(oct_node *n, const float *scale, int64_t count, oct_value **out);
oct_status oct_qdq_zeros(oct_node *n, oct_dtype dtype, const int32_t *zero, int64_t count,
                         oct_value **out);

#endif
