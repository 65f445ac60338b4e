/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of any length, in double precision. */
#ifndef OCT_OP_FFT_H
#define OCT_OP_FFT_H

#include "op/op.h"

/* Real and imaginary part, side by side. */
typedef struct oct_complex {
    double re, im;
} oct_complex;

typedef struct oct_fft {
    int64_t n; /* length of the signal */
    int64_t m; /* power of two the work is done in; n if n is one */
    bool inverse;
    oct_complex *roots; /* m / 2 */
    oct_complex *chirp; /* n; NULL if n is a power of two */
    oct_complex *kernel, *work;
} oct_fft;

/* Memory is scratch of the call. */
oct_status oct_fft_init(oct_fft *f, const oct_args *a, int64_t n, bool inverse);

/* In place; the inverse is divided by n. */
void oct_fft_run(const oct_fft *f, oct_complex *x);

#endif
