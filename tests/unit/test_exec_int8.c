/* SPDX-License-Identifier: Apache-2.0 */
/* Integer convolutions of each instruction set against sums made here and their plain twin. */
#include "tests/unit/int8_data.h"

/* --- convolution --- */

typedef struct shape {
    int64_t c_in, c_out, kh, kw, stride, dilation, pad, batch, h, w, more; /* more: pitch beyond */
} shape;

static const shape dense_shapes[] = {
    {3, 16, 3, 3, 2, 1, 1, 1, 21, 34, 0},  {3, 24, 6, 6, 2, 1, 2, 1, 18, 20, 0},
    {16, 16, 3, 3, 1, 1, 1, 1, 13, 13, 0}, {32, 32, 1, 1, 1, 1, 0, 2, 9, 7, 0},
    {48, 80, 1, 1, 1, 1, 0, 1, 17, 19, 5}, {64, 144, 3, 3, 1, 1, 1, 1, 10, 10, 0},
    {7, 5, 3, 3, 1, 1, 1, 2, 6, 5, 3},     {5, 33, 5, 5, 2, 1, 2, 1, 20, 11, 0},
    {8, 58, 3, 3, 1, 2, 2, 1, 12, 30, 8},  {8, 8, 7, 7, 1, 1, 3, 1, 4, 4, 0},
    {58, 58, 1, 1, 1, 1, 0, 1, 7, 9, 58},  {300, 70, 1, 1, 2, 1, 0, 1, 9, 9, 0},
    {12, 49, 1, 5, 1, 1, 0, 1, 1, 70, 0},  {512, 40, 3, 3, 1, 1, 1, 1, 3, 3, 0},
    {1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0},     {1, 3, 3, 3, 1, 1, 1, 1, 5, 5, 0},
    {20, 17, 2, 2, 2, 1, 0, 1, 6, 6, 1},   {4, 100, 3, 3, 3, 1, 1, 3, 8, 8, 0},
    {4, 8, 3, 3, 1, 3, 4, 1, 5, 6, 0},     {16, 32, 3, 3, 2, 1, 1, 1, 40, 120, 0},
    {80, 80, 3, 3, 1, 1, 1, 1, 16, 24, 0}, {67, 50, 3, 3, 1, 1, 0, 2, 13, 14, 3},
    {64, 32, 3, 3, 1, 1, 2, 1, 22, 21, 0}, {320, 33, 3, 3, 1, 1, 1, 1, 8, 8, 0},
    {40, 64, 3, 3, 1, 1, 1, 1, 14, 20, 0}, {32, 128, 3, 3, 1, 1, 1, 1, 12, 12, 0},
};

static const shape depthwise_shapes[] = {
    {64, 64, 3, 3, 1, 1, 1, 1, 15, 15, 0}, {58, 58, 3, 3, 2, 1, 1, 2, 14, 9, 6},
    {24, 24, 5, 5, 1, 1, 2, 1, 7, 70, 0},  {7, 7, 3, 3, 1, 1, 1, 1, 8, 8, 0},
    {40, 40, 5, 5, 2, 1, 2, 1, 4, 3, 0},   {80, 80, 7, 7, 1, 1, 3, 1, 9, 9, 3},
    {16, 16, 3, 3, 1, 2, 2, 1, 11, 12, 0}, {100, 100, 9, 1, 1, 1, 0, 1, 12, 3, 0},
    {1, 1, 3, 3, 1, 1, 1, 1, 4, 4, 0},     {130, 130, 3, 3, 3, 1, 1, 1, 9, 130, 0},
    {32, 32, 1, 1, 1, 1, 0, 1, 5, 40, 0},  {3, 3, 4, 4, 2, 1, 1, 1, 9, 9, 1},
};

/* One convolution with its operands. */
typedef struct conv_case {
    oct_int8_conv c;
    oct_int8_weights w;
    uint8_t *x;
    int8_t *filters;
    int32_t *zeros, *bias;
    int64_t outputs;
} conv_case;

static void case_init(conv_case *k, const shape *s, bool depthwise, oct_rng *rng, bool extreme)
{
    const int64_t taps = s->kh * s->kw, per = depthwise ? 1 : s->c_in;
    oct_int8_conv *c = &k->c;

    *c = (oct_int8_conv){.depthwise = depthwise,
                         .batch = s->batch,
                         .c_in = s->c_in,
                         .c_out = s->c_out,
                         .in_h = s->h,
                         .in_w = s->w,
                         .in_pitch = s->c_in + s->more,
                         .kernel = {s->kh, s->kw},
                         .stride = {s->stride, s->stride},
                         .dilation = {s->dilation, s->dilation},
                         .pad = {s->pad, s->pad}};
    c->out_h = (s->h + 2 * s->pad - (s->kh - 1) * s->dilation - 1) / s->stride + 1;
    c->out_w = (s->w + 2 * s->pad - (s->kw - 1) * s->dilation - 1) / s->stride + 1;
    c->out_pitch = s->c_out + s->more;
    c->residual_pitch = s->c_out + 2 * s->more;
    c->in_step = s->h * s->w * c->in_pitch;
    c->out_step = c->out_h * c->out_w * c->out_pitch;
    c->residual_step = c->out_h * c->out_w * c->residual_pitch;
    k->outputs = s->batch * c->out_step - s->more;
    k->x = random_codes(rng, s->batch * c->in_step - s->more);
    k->filters = (int8_t *)random_codes(rng, s->c_out * per * taps);
    k->zeros = random_zeros(rng, s->c_in);
    k->bias = random_zeros(rng, s->c_out);
    if (extreme) {
        memset(k->x, 255, (size_t)(s->batch * c->in_step - s->more));
        memset(k->filters, -128, (size_t)(s->c_out * per * taps));
    }
    k->w = (oct_int8_weights){.w = k->filters,
                              .o = per * taps,
                              .c = taps,
                              .t = 1,
                              .x_zero = k->zeros,
                              .n_zero = s->c_in,
                              .bias = k->bias};
}

static void case_fini(conv_case *k)
{
    free(k->x);
    free(k->filters);
    free(k->zeros);
    free(k->bias);
}

/* The sum of one output element, from its definition. */
static int32_t sum_of(const conv_case *k, int64_t n, int64_t y, int64_t x, int64_t o)
{
    const oct_int8_conv *c = &k->c;
    const int64_t per = c->depthwise ? 1 : c->c_in;
    int32_t sum = k->bias[o];

    for (int64_t i = 0; i < per; i++)
        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                const int64_t iy = y * c->stride[0] - c->pad[0] + ky * c->dilation[0];
                const int64_t ix = x * c->stride[1] - c->pad[1] + kx * c->dilation[1];
                const int64_t channel = c->depthwise ? o : i;

                if (iy < 0 || iy >= c->in_h || ix < 0 || ix >= c->in_w) continue;
                sum += (k->x[n * c->in_step + (iy * c->in_w + ix) * c->in_pitch + channel] -
                        k->zeros[channel]) *
                       k->filters[((o * per + i) * c->kernel[0] + ky) * c->kernel[1] + kx];
            }
    return sum;
}

/* Packs and runs; the result and the memory are the caller's. */
static void *run_conv(const oct_int8 *set, const conv_case *k, const oct_int8_epilogue_spec *spec,
                      const void *residual, int n_threads)
{
    oct_int8_conv c = k->c;
    oct_int8_epilogue f;
    void *memory = get(oct_int8_conv_size(set, &c)), *lists = get(oct_int8_epilogue_size(c.c_out));
    const size_t size = (size_t)k->outputs * (spec->out == OCT_INT8_U8 ? 1 : 4);
    void *y = malloc(size), *scratch;

    assert_non_null(y);
    memset(y, 0xee, size);
    oct_int8_conv_pack(set, &k->w, memory, &c);
    oct_int8_epilogue_pack(spec, lists, &f);
    scratch = get(c.scratch_size * (size_t)n_threads);
    oct_int8_conv_run(&c, &f, &(oct_int8_io){k->x, residual, y, scratch, NULL, NULL}, n_threads);
    free(memory);
    free(lists);
    free(scratch);
    return y;
}

static void check_sums(const shape *s, bool depthwise, bool extreme, uint64_t seed)
{
    oct_rng rng;
    conv_case k;
    const oct_int8 *set;

    oct_rng_init(&rng, seed);
    case_init(&k, s, depthwise, &rng, extreme);
    for (int i = 0; (set = oct_int8_at(i)); i++) {
        const oct_int8_epilogue_spec spec = {.c = s->c_out, .out = OCT_INT8_S32};
        int32_t *y = run_conv(set, &k, &spec, NULL, 1 + (i + (int)seed) % 2);
        int64_t at = 0;

        for (int64_t n = 0; n < k.c.batch; n++)
            for (int64_t p = 0; p < k.c.out_h * k.c.out_w; p++)
                for (int64_t o = 0; o < k.c.out_pitch && at < k.outputs; o++, at++) {
                    const int32_t want = o < s->c_out
                                             ? sum_of(&k, n, p / k.c.out_w, p % k.c.out_w, o)
                                             : (int32_t)0xeeeeeeee;

                    if (y[at] != want)
                        fail_msg("%s, case %d%s: pixel %d channel %d: %d, not %d", set->name,
                                 (int)seed, depthwise ? " (depthwise)" : "", (int)p, (int)o, y[at],
                                 want);
                }
        free(y);
    }
    case_fini(&k);
}

static void sums_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < OCT_COUNT(dense_shapes); i++)
        check_sums(&dense_shapes[i], false, false, i);
    for (size_t i = 0; i < OCT_COUNT(depthwise_shapes); i++)
        check_sums(&depthwise_shapes[i], true, false, i);
}

/*
 * 255 * -128 twice is beyond 16 bits: the multiply-add of AVX2 alone would saturate. The 3x3 with
 * most channels has sums too large for Winograd's method.
 */
static void extreme_products_do_not_saturate(void **state)
{
    (void)state;
    for (size_t i = 0; i < OCT_COUNT(dense_shapes); i++)
        check_sums(&dense_shapes[i], false, true, i);
    for (size_t i = 0; i < 6; i++)
        check_sums(&depthwise_shapes[i], true, true, i);
}

/* --- what follows --- */

typedef struct finish_case {
    oct_int8_epilogue_spec spec;
    void *residual;
    char what[80];
} finish_case;

/* One convolution with everything behind it, each set against the plain one. */
static void check_finish(const conv_case *k, const finish_case *f)
{
    const bool exact = f->spec.act[0].kind <= OCT_ACT_LEAKY && f->spec.act[1].kind <= OCT_ACT_LEAKY;
    const oct_int8 *set, *plain = plain_set();
    void *want;

    want = run_conv(plain, k, &f->spec, f->residual, 1);
    for (int i = 0; (set = oct_int8_at(i)) && set != plain; i++) {
        void *got = run_conv(set, k, &f->spec, f->residual, 1);

        if (f->spec.out == OCT_INT8_U8)
            compare_codes(set->name, f->what, got, want, k->outputs, exact);
        else
            compare_floats(set->name, f->what, got, want, k->outputs);
        free(got);
    }
    free(want);
}

static void check_acts(const conv_case *k, oct_rng *rng, int64_t each)
{
    const int64_t c = k->c.c_out, rest = k->c.batch * k->c.residual_step;
    float *scale = random_floats(rng, c, 1e-4f, 4e-4f), *bias = random_floats(rng, c, -1, 1);
    float *y_scale = random_floats(rng, c, 0.01f, 0.05f),
          *r_scale = random_floats(rng, c, 0.01f, 0.03f);
    int32_t *y_zero = random_zeros(rng, c), *r_zero = random_zeros(rng, c);
    uint8_t *codes = random_codes(rng, rest);
    float *floats = random_floats(rng, rest, -3, 3);

    for (size_t i = 0; i < OCT_COUNT(acts) * 8; i++) {
        const size_t a = i % OCT_COUNT(acts), way = i / OCT_COUNT(acts);
        finish_case f = {.spec = {.c = c,
                                  .scale = scale,
                                  .bias = way % 2 ? bias : NULL,
                                  .act = {acts[a], {0}},
                                  .r = {each, r_scale, r_zero},
                                  .residual_scale = 0.5f,
                                  .out = way == 2 || way == 5 ? OCT_INT8_F32 : OCT_INT8_U8,
                                  .y = {each, y_scale, y_zero}}};

        if (way >= 3) {
            f.spec.residual = way >= 6 ? OCT_INT8_F32 : OCT_INT8_U8;
            f.residual = way >= 6 ? (void *)floats : (void *)codes;
            f.spec.act[1] = acts[way == 4 ? 1 : way == 7 ? 4 : 0];
        }
        snprintf(f.what, sizeof(f.what), "%s way %d", oct_act_name(acts[a].kind), (int)way);
        check_finish(k, &f);
    }
    free(scale);
    free(bias);
    free(y_scale);
    free(r_scale);
    free(y_zero);
    free(r_zero);
    free(codes);
    free(floats);
}

static void activations_residuals_and_rounding(void **state)
{
    static const shape shapes[] = {{8, 71, 1, 1, 1, 1, 0, 1, 37, 9, 3},
                                   {33, 64, 1, 1, 1, 1, 0, 2, 31, 8, 0},
                                   {32, 48, 3, 3, 1, 1, 1, 1, 8, 12, 5}};
    static const shape dw = {53, 53, 3, 3, 1, 1, 1, 1, 30, 17, 2};

    (void)state;
    for (int i = 0; i < 4; i++) {
        oct_rng rng;
        conv_case k;

        oct_rng_init(&rng, (uint64_t)i);
        case_init(&k, i < 3 ? &shapes[i] : &dw, i == 3, &rng, false);
        check_acts(&k, &rng, i == 1 ? 1 : k.c.c_out);
        case_fini(&k);
    }
}

/* Sums fit 64 times into 32 bits without their biases, but not with them. */
static void large_biases(void **state)
{
    static const shape s = {32, 48, 3, 3, 1, 1, 1, 1, 8, 12, 0};
    const float y_scale = 0.02f;
    const int32_t y_zero = 7;
    float *scale;
    oct_rng rng;
    conv_case k;

    (void)state;
    oct_rng_init(&rng, 1);
    case_init(&k, &s, false, &rng, false);
    scale = random_floats(&rng, s.c_out, 1e-4f, 4e-4f);
    k.bias[5] = 40000000;
    k.bias[20] = -40000000;
    for (int i = 0; i < 5; i += 4) {
        finish_case f = {.spec = {.c = s.c_out,
                                  .scale = scale,
                                  .act = {acts[i], {0}},
                                  .out = OCT_INT8_U8,
                                  .y = {1, &y_scale, &y_zero}},
                         .what = "large biases"};

        check_finish(&k, &f);
    }
    free(scale);
    case_fini(&k);
}

/* The short form is ONNX Runtime's: one product, rounded half to even. Here every sum is a tie. */
static void ties_go_to_even(void **state)
{
    const float scale = 0.5f, y_scale = 1;
    const int32_t zero = 0;
    const oct_int8 *set;

    (void)state;
    for (int s = 0; (set = oct_int8_at(s)); s++) {
        int32_t sum[96] = {0};
        uint8_t y[6];
        void *memory = get(oct_int8_epilogue_size(1));
        oct_int8_epilogue f;

        oct_int8_epilogue_pack(
            &(oct_int8_epilogue_spec){
                .c = 1, .scale = &scale, .out = OCT_INT8_U8, .y = {1, &y_scale, &zero}},
            memory, &f);
        for (int i = 0; i < 6; i++) {
            sum[i * 16] = 2 * i + 1;
            set->epilogue(&f, &(oct_int8_rows){sum + i * 16, 16, 0, 1, 1, y + i, 1, NULL, 0});
        }
        assert_memory_equal(y, ((uint8_t[]){0, 2, 2, 4, 4, 6}), 6);
        sum[0] = INT32_MAX;
        sum[16] = INT32_MIN;
        set->epilogue(&f, &(oct_int8_rows){sum, 16, 0, 1, 2, y, 1, NULL, 0});
        assert_int_equal(y[0], 255);
        assert_int_equal(y[1], 0);
        free(memory);
    }
}

/* Sums and scales beyond what a network has; the results leave the range of codes on both sides. */
static void swish_at_its_limits(void **state)
{
    enum { C = 16, ROWS = 7 };
    static const int32_t sums[ROWS] = {INT32_MIN, -100000, -300, 0, 17, 4000, INT32_MAX};
    static const float sizes[8] = {0, 1e-38f, 1e-30f, 1e-9f, 1e-4f, 0.002f, 0.02f, 1e3f};
    const float y_scale = 0.1f;
    const int32_t zero = 2;
    float scale[C];
    const oct_int8_epilogue_spec spec = {.c = C,
                                         .scale = scale,
                                         .act = {{OCT_ACT_SWISH, 1, 0}, {0}},
                                         .out = OCT_INT8_U8,
                                         .y = {1, &y_scale, &zero}};
    const oct_int8 *set, *plain = plain_set();

    (void)state;
    for (int n = 7; n <= 8; n++) { /* results that integers can hold, and others */
        uint8_t want[ROWS * C], got[ROWS * C];

        for (int i = 0; i < C; i++)
            scale[i] = sizes[i % n];
        for (int s = -1; (set = s < 0 ? plain : oct_int8_at(s)); s++) {
            int32_t sum[ROWS * C];
            void *memory = get(oct_int8_epilogue_size(C));
            oct_int8_epilogue f;

            for (int i = 0; i < ROWS * C; i++)
                sum[i] = sums[i / C];
            oct_int8_epilogue_pack(&spec, memory, &f);
            assert_int_equal(f.no_overflow, n == 7);
            set->epilogue(&f, &(oct_int8_rows){sum, C, 0, C, ROWS, s < 0 ? want : got, C, NULL, 0});
            if (s >= 0) assert_memory_equal(got, want, sizeof(want));
            free(memory);
        }
        assert_int_equal(want[0], zero);      /* no scale */
        assert_int_equal(want[2 * C + 5], 0); /* -0.2 is two steps and more below zero */
        assert_int_equal(want[(ROWS - 1) * C + 6], 255);
    }
}

/* A matrix [k][n], rows of pixels, zero points given when it runs. */
static void matrix_product_with_late_zero_points(void **state)
{
    enum { M = 37, K = 45, N = 83 };
    const oct_int8 *set;
    oct_rng rng;
    uint8_t *x, *w;

    (void)state;
    oct_rng_init(&rng, 1);
    x = random_codes(&rng, M * K);
    w = random_codes(&rng, K * N);
    for (int s = 0; (set = oct_int8_at(s)); s++) {
        oct_int8_conv c = {.batch = 1,
                           .c_in = K,
                           .c_out = N,
                           .in_h = 1,
                           .in_w = M,
                           .in_pitch = K,
                           .out_h = 1,
                           .out_w = M,
                           .out_pitch = N,
                           .kernel = {1, 1},
                           .stride = {1, 1},
                           .dilation = {1, 1}};
        void *memory = get(oct_int8_conv_size(set, &c)), *lists = get(oct_int8_epilogue_size(N));
        int32_t y[M][N], base[128] = {0};
        oct_int8_epilogue f;
        void *scratch;

        oct_int8_conv_pack(set, &(oct_int8_weights){.w = (int8_t *)w, .o = 1, .c = N}, memory, &c);
        oct_int8_epilogue_pack(&(oct_int8_epilogue_spec){.c = N, .out = OCT_INT8_S32}, lists, &f);
        scratch = get(c.scratch_size);
        for (int i = 0; i < N; i++)
            base[i] = -c.sum[i] * 77;
        oct_int8_conv_run(&c, &f, &(oct_int8_io){x, NULL, y, scratch, base, NULL}, 1);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                int32_t want = 0;

                for (int k = 0; k < K; k++)
                    want += (x[m * K + k] - 77) * (int8_t)w[k * N + n];
                assert_int_equal(y[m][n], want);
            }
        free(memory);
        free(lists);
        free(scratch);
    }
    free(x);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(extreme_products_do_not_saturate),
        cmocka_unit_test(activations_residuals_and_rounding),
        cmocka_unit_test(large_biases),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(swish_at_its_limits),
        cmocka_unit_test(matrix_product_with_late_zero_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
