/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dot products of small integers: the inner loop of integer convolutions and matrix products.
 *
 * Codes are widened to int16 and their zero point is subtracted once, before the loops: a
 * difference of two 8-bit codes fits, and pairs of products add up in int32 without saturating.
 */
#ifndef OCT_OP_IDOT_H
#define OCT_OP_IDOT_H

#include "tensor/dtype.h"

/* y = x - zero for n codes of 8 bits, step elements apart in x. */
void oct_widen(oct_dtype t, const void *x, int64_t from, int64_t step, int64_t n, int32_t zero,
               int16_t *y);

/*
 * c[i * c_row + j] += sum over k of a[i * a_row + k] * b[j * b_row + k], for m rows of a, n of b.
 * Sums wrap.
 */
void oct_idot(int64_t m, const int16_t *a, int64_t a_row, int64_t n, const int16_t *b,
              int64_t b_row, int64_t k, int32_t *c, int64_t c_row);

#endif
