/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic quantization: scale and zero point of an operand are computed at run time. */
#ifndef OCT_EXEC_COMPILE_FUSE_DYNAMIC_QUANT_H
#define OCT_EXEC_COMPILE_FUSE_DYNAMIC_QUANT_H

/* Operands of such a step: y = act(scale * accumulator + bias); all but x and w may be absent. */
enum {
    OCT_DYNAMIC_X,
    OCT_DYNAMIC_W,
    OCT_DYNAMIC_X_ZERO,
    OCT_DYNAMIC_W_ZERO,
    OCT_DYNAMIC_SCALE, /* absent: the accumulators themselves, in int32 */
    OCT_DYNAMIC_BIAS,
    OCT_DYNAMIC_N_IN
};

#endif
