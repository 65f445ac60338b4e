/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two .npy files: exit status 1 if they differ by more than a share of the largest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <octet/octet.h>

#include "tensor/tensor.h"

/* The largest difference and the largest magnitude in `a`; NaN only equals NaN. */
static void compare(const oct_tensor *a, const oct_tensor *b, double *worst, double *largest)
{
    *worst = *largest = 0;
    for (int64_t i = 0; i < oct_tensor_len(a); i++) {
        const double x = oct_tensor_get_f64(a, i), y = oct_tensor_get_f64(b, i);

        if (x == y || (isnan(x) && isnan(y))) continue;
        *worst = isnan(x - y) ? (double)INFINITY : fmax(*worst, fabs(x - y));
    }
    for (int64_t i = 0; i < oct_tensor_len(a); i++)
        *largest = fmax(*largest, fabs(oct_tensor_get_f64(a, i)));
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *a = NULL, *b = NULL;
    int failed = 1;
    double worst, largest;

    if (argc != 4 || !ctx) {
        fprintf(stderr, "usage: npy_diff A.npy B.npy SHARE\n");
        return 2;
    }
    if (oct_tensor_load_npy(ctx, argv[1], &a) || oct_tensor_load_npy(ctx, argv[2], &b)) {
        fprintf(stderr, "npy_diff: %s\n", oct_ctx_error(ctx));
    } else if (!oct_type_equal(&a->type, &b->type)) {
        fprintf(stderr, "npy_diff: %s and %s have different types or shapes\n", argv[1], argv[2]);
    } else {
        compare(a, b, &worst, &largest);
        failed = !(worst <= atof(argv[3]) * largest);
        printf("%s, %s: largest difference %.2e, largest value %.2e: %s\n", argv[1], argv[2], worst,
               largest, failed ? "they differ" : "they agree");
    }
    oct_tensor_unref(a);
    oct_tensor_unref(b);
    oct_ctx_free(ctx);
    return failed;
}
