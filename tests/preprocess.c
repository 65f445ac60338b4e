/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures to network inputs, for comparing with other programs, and how long it takes.
 * usage: preprocess WORDS OUT.npy IMAGE...
 *        preprocess WORDS --time IMAGE...
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <octet/data.h>

#include "base/machine.h"
#include "base/status.h"

#define ROUNDS 20

typedef struct timing {
    int64_t decode_ns, preprocess_ns;
} timing;

static oct_status load(oct_ctx *ctx, const oct_preprocess *p, const char *path, void *dst,
                       timing *best)
{
    oct_image *im = NULL;
    oct_status st;
    int64_t start = oct_time_ns(), middle;

    OCT_TRY(oct_image_load(ctx, path, NULL, &im));
    middle = oct_time_ns();
    st = oct_preprocess_run(ctx, p, im, OCT_DTYPE_F32, dst, NULL);
    best->decode_ns = OCT_MIN(best->decode_ns, middle - start);
    best->preprocess_ns = OCT_MIN(best->preprocess_ns, oct_time_ns() - middle);
    oct_image_free(im);
    return st;
}

static oct_status make(oct_ctx *ctx, const char *words, const char *out, char **images, int n)
{
    const bool timed = !strcmp(out, "--time");
    oct_preprocess p;
    oct_tensor *t = NULL;
    oct_status st = OCT_OK;
    char *dst;

    oct_preprocess_init(&p);
    OCT_TRY(oct_preprocess_parse(ctx, &p, words));
    const int64_t channels = p.color == OCT_COLOR_GRAY ? 1 : 3;
    const int64_t nchw[] = {n, channels, p.height, p.width};
    const int64_t nhwc[] = {n, p.height, p.width, channels};

    OCT_TRY(oct_tensor_new(ctx, OCT_DTYPE_F32, 4, p.layout == OCT_IMAGE_NCHW ? nchw : nhwc, &t));
    dst = oct_tensor_mutable(t);
    for (int i = 0; !st && i < n; i++) {
        timing best = {INT64_MAX, INT64_MAX};

        for (int k = 0; !st && k < (timed ? ROUNDS : 1); k++)
            st = load(ctx, &p, images[i], dst + (size_t)i * oct_tensor_size(t) / (size_t)n, &best);
        if (!st && timed)
            printf("%s: decode %.3f ms, preprocess %.3f ms\n", images[i],
                   (double)best.decode_ns / 1e6, (double)best.preprocess_ns / 1e6);
    }
    if (!st && !timed) st = oct_tensor_save_npy(ctx, t, out);
    oct_tensor_unref(t);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_status st;

    if (argc < 4 || !ctx) {
        fprintf(stderr, "usage: preprocess WORDS OUT.npy|--time IMAGE...\n");
        return 2;
    }
    st = make(ctx, argv[1], argv[2], argv + 3, argc - 3);
    if (st) fprintf(stderr, "preprocess: %s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st ? 1 : 0;
}
