/* SPDX-License-Identifier: Apache-2.0 */
/* Normal equations in double, of some hundred to two thousand unknowns. Matrices are by rows. */
#ifndef OCT_STAT_LEAST_SQUARES_H
#define OCT_STAT_LEAST_SQUARES_H

#include "base/status.h"

/* a[k][k] = the mean of x x' over n samples x[n][k]. */
void oct_gram(oct_ctx *ctx, const float *x, int64_t n, int64_t k, double *a);

/* a = l l' by Cholesky, l in the lower half of a. False: a is not positive definite or finite. */
bool oct_factorize(double *a, int64_t n);

/* l l' x = b for all m columns of b[n][m], in place. */
void oct_substitute(const double *l, int64_t n, double *b, int64_t m);

#endif
