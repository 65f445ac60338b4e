/* SPDX-License-Identifier: Apache-2.0 */
/* What QuantizeLinear and DequantizeLinear say about integer codes: x = (code - zero) * scale. */
#ifndef OCT_OP_QPARAMS_H
#define OCT_OP_QPARAMS_H

#include "graph/op.h"

typedef struct oct_codes {
    oct_dtype dtype;
    int32_t axis; /* one scale for each index of it; -1: one for all */
    int64_t n;    /* scales: 1, or the length of the axis */
    const oct_tensor *scale;
    const oct_tensor *zero; /* NULL: all zero; else as many as scales */
    bool was_signed;        /* by a QLinear operator to signed bytes, whatever they are now */
    int32_t last;           /* the largest code, below that of the type; 0: the type's */
} oct_codes;

bool oct_node_is_quantize(const oct_node *n);   /* of either domain */
bool oct_node_is_dequantize(const oct_node *n); /* of either domain */

/*
 * The constant parameters of a node between f32 and integers; false if it has none such, is
 * blocked, or has a scale too large or too small to compute with in integers.
 */
bool oct_codes_of(const oct_node *n, oct_codes *out);

/* The largest code if it is below that of the type; 0: it is the type's. */
int32_t oct_codes_last(const oct_node *n, oct_dtype t);

/* The smallest and the largest code. */
void oct_codes_limits(const oct_codes *c, int32_t *low, int32_t *high);

/* Do equal codes have equal values, and is the largest the same? */
bool oct_codes_equal(const oct_codes *a, const oct_codes *b);

/* A scale that is zero or NaN would make everything downstream meaningless: refused by name. */
oct_status oct_codes_check(const oct_node *n);

static inline float oct_codes_scale(const oct_codes *c, int64_t i)
{
    return ((const float *)c->scale->data)[c->n > 1 ? i : 0];
}

static inline int32_t oct_codes_zero(const oct_codes *c, int64_t i)
{
    return c->zero ? (int32_t)oct_tensor_get_i64(c->zero, c->n > 1 ? i : 0) : 0;
}

#endif
