/* SPDX-License-Identifier: Apache-2.0 */
/* What the integer kernels share: parameters in the form of the vector code, rows of a tensor. */
#ifndef OCT_EXEC_INT8_INT8_KERNEL_H
#define OCT_EXEC_INT8_INT8_KERNEL_H

#include "exec/kernel.h"
#include "exec/simd/int8/simd_int8.h"

/* u8 codes with one scale, or one for each channel (axis 1). */
bool oct_codes_are_u8(const oct_codes *c);

/* Is operand i of the step such codes, and not a constant? */
bool oct_step_in_u8(const oct_plan *p, const oct_step *s, int32_t i);

/* Is the result such codes, or f32? */
bool oct_step_out_u8_or_f32(const oct_plan *p, const oct_step *s);

static inline bool oct_step_out_is_codes(const oct_step *s)
{
    return s->integer->out.dtype != OCT_DTYPE_NONE;
}

/* For the vector code; the arrays live as long as the plan. */
oct_status oct_int8_codes_make(oct_plan *p, const oct_codes *c, oct_int8_codes *out);

/* Memory of the plan, aligned to a cache line. */
void *oct_plan_alloc_aligned(oct_plan *p, size_t size);

/* Packs an epilogue into memory of the plan. */
oct_status oct_int8_epilogue_make(oct_plan *p, const oct_int8_epilogue_spec *s,
                                  oct_int8_epilogue *f);

/* A tensor as rows. NHWC with any pitch: the parameters go along a row. NCHW: a row has one
 * parameter, and `n_params` rows follow each other with parameters of their own. */
typedef struct oct_int8_grid {
    oct_int8_strides r; /* a: operand, y: result */
    int64_t n_params;   /* 1: every row uses the parameters from their start */
} oct_int8_grid;

void oct_int8_grid_make(const oct_plan *p, int32_t in, int32_t out, int64_t n_codes, int32_t axis,
                        oct_int8_grid *g);

#endif
