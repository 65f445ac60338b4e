/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of the integer loops on shapes of real detectors: GMAC/s for each instruction set. */
#include <octet/octet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "exec/simd/int8/simd_int8.h"

typedef struct bench_case {
    const char *name;
    bool depthwise;
    int64_t c_in, c_out, k, stride, size;
} bench_case;

static const bench_case cases[] = {
    {"3x3 64->64 80x80", false, 64, 64, 3, 1, 80},
    {"1x1 128->128 80x80", false, 128, 128, 1, 1, 80},
    {"1x1 256->256 20x20", false, 256, 256, 1, 1, 20},
    {"3x3 s2 64->128 80x80", false, 64, 128, 3, 2, 80},
    {"3x3 s2 16->32 320x320", false, 16, 32, 3, 2, 320},
    {"3x3 16->16 160x160", false, 16, 16, 3, 1, 160},
    {"3x3 256->256 20x20", false, 256, 256, 3, 1, 20},
    {"1x1 384->128 40x40", false, 384, 128, 1, 1, 40},
    {"1x1 58->58 40x40", false, 58, 58, 1, 1, 40},
    {"1x1 32->32 160x160", false, 32, 32, 1, 1, 160},
    {"first 3x3 s2 3->16 640", false, 3, 16, 3, 2, 640},
    {"first 6x6 s2 3->32 640", false, 3, 32, 6, 2, 640},
    {"dw 3x3 64 104x104", true, 64, 64, 3, 1, 104},
    {"dw 3x3 s2 64 104x104", true, 64, 64, 3, 2, 104},
    {"dw 5x5 96 52x52", true, 96, 96, 5, 1, 52},
    {"dw 5x5 s2 96 52x52", true, 96, 96, 5, 2, 52},
    {"dw 3x3 256 20x20", true, 256, 256, 3, 1, 20},
};

static const oct_act acts[] = {
    {OCT_ACT_RELU, 0, 0}, {OCT_ACT_SWISH, 1, 0}, {OCT_ACT_HARD_SWISH, 0, 0}};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *get(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);

    if (!p) exit(1);
    memset(p, 1, (size + 63) / 64 * 64);
    return p;
}

/* The best of many runs, in seconds. */
static double best_time(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                        int n_threads)
{
    double best = 1e9;
    const double start = now();

    for (int i = 0; i < 10 || now() - start < 0.12; i++) {
        const double t = now();

        oct_int8_conv_run(c, f, io, n_threads);
        best = OCT_MIN(best, now() - t);
    }
    return best;
}

static double measure(const oct_int8 *set, const bench_case *k, const oct_act *act, int n_threads)
{
    const int64_t per = k->depthwise ? 1 : k->c_in, out = (k->size - 1) / k->stride + 1;
    const size_t n_w = (size_t)(k->c_out * per * k->k * k->k);
    oct_int8_conv c = {.depthwise = k->depthwise,
                       .batch = 1,
                       .c_in = k->c_in,
                       .c_out = k->c_out,
                       .in_h = k->size,
                       .in_w = k->size,
                       .in_pitch = k->c_in,
                       .out_h = out,
                       .out_w = out,
                       .out_pitch = k->c_out,
                       .kernel = {k->k, k->k},
                       .stride = {k->stride, k->stride},
                       .dilation = {1, 1},
                       .pad = {(k->k - 1) / 2, (k->k - 1) / 2}};
    int8_t *w = get(n_w);
    uint8_t *x = get((size_t)(k->size * k->size * k->c_in)),
            *y = get((size_t)(out * out * k->c_out));
    float *scale = get((size_t)k->c_out * sizeof(float)), y_scale = 0.05f;
    int32_t zero = 7, x_zero = 128;
    void *memory, *lists = get(oct_int8_epilogue_size(k->c_out)), *scratch;
    oct_int8_epilogue f;
    oct_rng rng;
    double t;

    oct_rng_init(&rng, 1);
    for (size_t i = 0; i < n_w; i++)
        w[i] = (int8_t)(oct_rng_below(&rng, 255) - 127);
    for (int64_t i = 0; i < k->size * k->size * k->c_in; i++)
        x[i] = (uint8_t)oct_rng_below(&rng, 256);
    for (int64_t i = 0; i < k->c_out; i++)
        scale[i] = 1e-4f;
    c.in_step = k->size * k->size * k->c_in;
    c.out_step = out * out * k->c_out;
    memory = get(oct_int8_conv_size(set, &c));
    oct_int8_conv_pack(set,
                       &(oct_int8_weights){.w = w,
                                           .o = per * k->k * k->k,
                                           .c = k->k * k->k,
                                           .t = 1,
                                           .x_zero = &x_zero,
                                           .n_zero = 1},
                       memory, &c);
    oct_int8_epilogue_pack(&(oct_int8_epilogue_spec){.c = k->c_out,
                                                     .scale = scale,
                                                     .act = {*act, {0}},
                                                     .out = OCT_INT8_U8,
                                                     .y = {1, &y_scale, &zero}},
                           lists, &f);
    scratch = get(c.scratch_size * (size_t)n_threads);
    t = best_time(&c, &f, &(oct_int8_io){x, NULL, y, scratch, NULL, NULL}, n_threads);
    free(w);
    free(x);
    free(y);
    free(scale);
    free(memory);
    free(lists);
    free(scratch);
    return (double)(out * out) * (double)n_w / t * 1e-9;
}

/* Arguments: threads [2], instruction sets [1: the best only]. */
int main(int argc, char **argv)
{
    const int n_threads = argc > 1 ? atoi(argv[1]) : 2, n_sets = argc > 2 ? atoi(argv[2]) : 1;
    const oct_int8 *set;

    for (int s = 0; s < n_sets && (set = oct_int8_at(s)); s++) {
        printf("%-24s", set->name);
        for (size_t a = 0; a < OCT_COUNT(acts); a++)
            printf(" %10s", oct_act_name(acts[a].kind));
        printf("   GMAC/s, %d threads\n", n_threads);
        for (size_t i = 0; i < OCT_COUNT(cases); i++) {
            printf("%-24s", cases[i].name);
            for (size_t a = 0; a < OCT_COUNT(acts); a++)
                printf(" %10.1f", measure(set, &cases[i], &acts[a], n_threads));
            printf("\n");
        }
    }
    return 0;
}
