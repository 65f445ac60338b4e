/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of any length. */
#ifndef OCT_OP_FFT_H
#define OCT_OP_FFT_H

#include "op/op.h"

/* Real and imaginary part, side by side. */
typedef struct oct_complex {
    double re, im;
} oct_complex;

typedef struct oct_fft {
    int64_t n; /* length of the signal */
    int64_t m; /* of the transforms it is done with: n, or a power of two */
    bool inverse;
    bool single;                  /* rounds every step to float */
    oct_complex *roots;           /* exp(-2 pi i k / m), m of them */
    oct_complex *work;            /* m */
    oct_complex *chirp;           /* n; NULL if m == n */
    oct_complex *kernel, *signal; /* m each, with the chirp */
} oct_fft;

/* Memory is scratch of the call. `single`: compute in float if the length has small factors. */
oct_status oct_fft_init(oct_fft *f, const oct_args *a, int64_t n, bool inverse, bool single);

/* In place; the inverse is divided by n. */
void oct_fft_run(const oct_fft *f, oct_complex *x);

#endif
