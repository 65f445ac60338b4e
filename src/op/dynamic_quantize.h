/* SPDX-License-Identifier: Apache-2.0 */
/* The scale and zero point that dynamic quantization gives to data. */
#ifndef OCT_OP_DYNAMIC_QUANTIZE_H
#define OCT_OP_DYNAMIC_QUANTIZE_H

#include <stdint.h>

/* uint8, over the range of x widened to hold 0. */
void oct_dynamic_range(const float *x, int64_t n, float *scale, uint8_t *zero);

#endif
