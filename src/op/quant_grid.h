/* SPDX-License-Identifier: Apache-2.0 */
/* Which scale belongs to which element: one for all, one for each index of an axis, or blocks. */
#ifndef OCT_OP_QUANT_GRID_H
#define OCT_OP_QUANT_GRID_H

#include "op/op.h"

/* Rows of QuantizeLinear and DequantizeLinear have these attributes, in these places. */
enum {
    OCT_GRID_AXIS,
    OCT_GRID_BLOCK_SIZE,
    OCT_GRID_OUTPUT_DTYPE,
    OCT_GRID_LAST_CODE, /* of codes with fewer bits than their type; set by byte-codes, in no file
                         */
    OCT_GRID_N_ATTRS
};
#define OCT_GRID_ATTRS                                                                             \
    [OCT_GRID_AXIS] = {"axis", OCT_ATTR_INT, .def.i = 1},                                          \
    [OCT_GRID_BLOCK_SIZE] = {"block_size", OCT_ATTR_INT, .def.i = 0},                              \
    [OCT_GRID_OUTPUT_DTYPE] = {"output_dtype", OCT_ATTR_INT, .def.i = 0},                          \
    [OCT_GRID_LAST_CODE] = {"last_code", OCT_ATTR_INT, .def.i = 0}

/* Operand 0 seen as [outer x n x inner]; row r = outer index * n + axis index. */
typedef struct oct_quant_grid {
    int64_t n, inner;
    int64_t block;    /* of the axis that share a scale; 0: not blocked */
    int64_t n_blocks; /* along the axis */
    bool is_single;   /* one scale for all */
} oct_quant_grid;

/* Checks operands 0 (elements), 1 (scales) and 2 (zero points) against each other. */
oct_status oct_quant_grid_check(const oct_infer *q);

/* For static types that passed. */
oct_status oct_quant_grid_init(oct_quant_grid *g, const oct_args *a);

/* The scale of the first element of row r, and the step to the next one's: 0 or 1. */
static inline int64_t oct_quant_grid_at(const oct_quant_grid *g, int64_t r, int64_t *step)
{
    *step = g->block > 0;
    if (g->is_single) return 0;
    if (g->block == 0) return r % g->n;
    return (r / g->n * g->n_blocks + r % g->n / g->block) * g->inner;
}

#endif
