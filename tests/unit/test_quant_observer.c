/* SPDX-License-Identifier: Apache-2.0 */
/* Observers: order and merging do not matter, ranges are right, bad numbers are noticed. */
#include "tests/alloc.h"

#include <float.h>

#include "base/rng.h"
#include "quant/observe/density.h"

enum { PIXELS = 600, CHANNELS = 19, PITCH = 24, SAMPLES = 7, N = PIXELS * PITCH };

static const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec u4 = {.bits = 4, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec s8 = {.bits = 8, .is_signed = true, .is_symmetric = true, .axis = -1};

/* Heavy tails, channels of different size, some exact zeros; later samples reach farther. */
static void fill(float *x, int64_t n, uint64_t seed)
{
    oct_rng r;

    oct_rng_init(&r, seed);
    for (int64_t i = 0; i < n; i++) {
        const double v = oct_rng_normal(&r) * (1 + (double)(i % 5)) * (1 + (double)seed);
        const double wide = oct_rng_f64(&r) < 1e-3 ? 9 : 1;

        x[i] = i % 17 == 0 ? 0 : (float)(v * wide);
    }
}

static oct_observer *observer(oct_ctx *ctx, const char *kind, bool per_channel)
{
    oct_observer_options p;
    oct_observer *o = NULL;

    oct_observer_options_init(&p);
    p.kind = kind;
    p.per_channel = per_channel;
    p.low.stat = OCT_STAT_QUANTILE;
    p.low.gather = OCT_GATHER_MEAN_NO_OUTLIERS;
    p.high.stat = OCT_STAT_ABS_QUANTILE;
    p.high.gather = OCT_GATHER_MEDIAN;
    assert_ok(ctx, oct_observer_new(ctx, &p, CHANNELS, &o));
    return o;
}

static oct_observer *that_saw(oct_ctx *ctx, const oct_observer_options *p, const oct_value_view *s)
{
    oct_observer *o = NULL;

    assert_ok(ctx, oct_observer_new(ctx, p, s->channels, &o));
    oct_observer_see(o, s);
    return o;
}

static void see(oct_observer *o, int sample, bool planar)
{
    static float x[N];
    const oct_value_view rows = {x, PIXELS, CHANNELS, PITCH, false};
    const oct_value_view planes = {x, PIXELS, CHANNELS, 0, true};

    fill(x, N, (uint64_t)sample);
    oct_observer_see(o, planar ? &planes : &rows);
}

static void merged_is_the_same_as_one_pass(void **state)
{
    fixture *f = *state;

    for (int i = 0; oct_observer_at(i); i++)
        for (int per_channel = 0; per_channel < 2; per_channel++) {
            const char *kind = oct_observer_at(i)->name;
            oct_observer *one = observer(f->ctx, kind, per_channel);
            oct_observer *a = observer(f->ctx, kind, per_channel);
            oct_observer *b = observer(f->ctx, kind, per_channel);
            float low[2][CHANNELS], high[2][CHANNELS];
            const size_t n = (size_t)oct_observer_n_ranges(one);

            assert_int_equal(n, per_channel ? CHANNELS : 1);
            for (int s = 0; s < SAMPLES; s++) {
                see(one, s, s == 3);
                see(s % 2 ? a : b, s, s == 3);
            }
            assert_ok(f->ctx, oct_observer_merge(a, b));
            assert_int_equal(a->n_samples, SAMPLES);
            assert_ok(f->ctx, oct_observer_solve(one, &u8, low[0], high[0]));
            assert_ok(f->ctx, oct_observer_solve(a, &u8, low[1], high[1]));
            for (size_t c = 0; c < n; c++) {
                assert_true(low[0][c] < 0 && high[0][c] > 0);
                if (memcmp(&low[0][c], &low[1][c], 4) || memcmp(&high[0][c], &high[1][c], 4))
                    fail_msg("%s, range %zu: %.9g..%.9g, merged %.9g..%.9g", kind, c,
                             (double)low[0][c], (double)high[0][c], (double)low[1][c],
                             (double)high[1][c]);
            }
            oct_observer_free(one);
            oct_observer_free(a);
            oct_observer_free(b);
        }
}

static void minmax_is_exact(void **state)
{
    fixture *f = *state;
    static float x[N];
    const oct_value_view rows = {x, PIXELS, CHANNELS, PITCH, false};
    oct_observer *all = observer(f->ctx, "minmax", false), *each = observer(f->ctx, "minmax", true);
    float low[CHANNELS], high[CHANNELS], lo, hi;

    fill(x, N, 5);
    oct_observer_see(all, &rows);
    oct_observer_see(each, &rows);
    assert_ok(f->ctx, oct_observer_solve(all, &u8, &lo, &hi));
    assert_ok(f->ctx, oct_observer_solve(each, &u8, low, high));
    for (int c = 0; c < CHANNELS; c++) {
        float want_low = INFINITY, want_high = -INFINITY;

        for (int i = 0; i < PIXELS; i++) {
            want_low = fminf(want_low, x[i * PITCH + c]);
            want_high = fmaxf(want_high, x[i * PITCH + c]);
        }
        assert_true(low[c] == want_low && high[c] == want_high);
        assert_true(lo <= want_low && hi >= want_high);
    }
    oct_observer_free(all);
    oct_observer_free(each);
}

/* Counts by the definition: floor(x / 2^k). */
static void histogram_counts_every_number(void **state)
{
    static float x[20000];
    static uint64_t counts[2][4096];
    oct_histogram h, g;
    oct_scan scan;
    uint64_t total = 0;

    (void)state;
    oct_histogram_init(&h, 4096, counts[0]);
    oct_histogram_init(&g, 4096, counts[1]);
    for (int part = 0; part < 5; part++) {
        const float grow = (float)pow(7, part), shift = part % 2 ? -3 : 3;
        const oct_value_view s = {x, part == 2 ? 37 : 20000, 1, 1, false};
        const oct_value_view back = {x, s.pixels, 1, 1, true};

        fill(x, 20000, (uint64_t)part);
        for (int i = 0; i < 20000; i++)
            x[i] = x[i] * grow + shift * grow;
        assert_true(oct_scan_all(&s, &scan));
        oct_histogram_see(&h, &s, &scan);
        if (part == 4) { /* the other one learns the range first */
            const float ends[2] = {h.low, h.high};
            const oct_value_view e = {ends, 2, 1, 1, false};

            assert_true(oct_scan_all(&e, &scan));
            oct_histogram_see(&g, &e, &scan);
            g.count[0]--;
            g.count[oct_histogram_used(&g) - 1]--;
            assert_true(oct_scan_all(&back, &scan));
            oct_histogram_see(&g, &back, &scan);
        }
        total += (uint64_t)s.pixels;
    }
    assert_int_equal(h.k, g.k);
    assert_true(oct_histogram_used(&h) > 2048 && oct_histogram_used(&h) <= 4096);
    for (int i = 0; i < 20000; i++) { /* the last part, one by one */
        const int64_t bin = (int64_t)floor(ldexp((double)x[i], -h.k)) - h.base;

        assert_true(bin >= 0 && bin < oct_histogram_used(&h));
        assert_true(g.count[bin] > 0);
        g.count[bin]--;
        assert_true(h.count[bin] > 0);
    }
    for (int i = 0; i < 4096; i++) {
        assert_int_equal(g.count[i], 0);
        total -= h.count[i];
    }
    assert_int_equal(total, 0);
}

/* Errors of more than half a step are those of clipping: they count `clip` times. */
static double weighted_error(const oct_qspec *s, float low, float high, const float *x, int64_t n,
                             double clip)
{
    static float y[200000];
    float scale;
    int32_t zero;
    double sum = 0;

    oct_qspec_solve(s, low, high, &scale, &zero);
    oct_qspec_fake(s, scale, zero, x, y, n);
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs((double)x[i] - (double)y[i]);

        sum += error * error * (error > 0.5001 * (double)scale ? clip : 1);
    }
    return sum;
}

static double true_error(const oct_qspec *s, float low, float high, const float *x, int64_t n)
{
    return weighted_error(s, low, high, x, n, 1);
}

/* The least error over a fine grid of both ends. */
static double brute_force(const oct_qspec *s, float low, float high, const float *x, int64_t n,
                          double clip)
{
    double best = DBL_MAX;

    for (int i = 0; i < 40; i++)
        for (int j = 0; j < (s->is_symmetric ? 1 : 40); j++) {
            const float a = s->is_symmetric ? powf(0.95f, (float)i) : powf(0.93f, (float)i);
            const float b = s->is_symmetric ? a : powf(0.93f, (float)j);

            best = fmin(best, weighted_error(s, low * a, high * b, x, n, clip));
        }
    return best;
}

typedef enum shape { HEAVY, SILU, RELU, ONE_SIDED, SHAPES } shape;

static void draw(float *x, int64_t n, shape kind)
{
    oct_rng r;

    oct_rng_init(&r, 7);
    for (int64_t i = 0; i < n; i++) {
        double v = oct_rng_normal(&r);

        v *= oct_rng_f64(&r) < 2e-4 ? 12 : 1;
        if (kind == SILU) v = 3 * v / (1 + exp(-3 * v));
        if (kind == RELU) v = v > 0 ? v : 0;
        if (kind == ONE_SIDED) v = -fabs(v) - 1;
        x[i] = (float)v;
    }
}

static void near_the_best(fixture *f, const char *name, double clip)
{
    static float x[30000];
    const oct_value_view s = {x, 30000, 1, 1, false};
    const oct_qspec *specs[] = {&u8, &s8, &u4};

    for (int kind = 0; kind < SHAPES; kind++)
        for (int k = 0; k < 3; k++) {
            oct_observer_options p;
            oct_observer *o;
            float low, high, min = 0, max = 0;
            double mine, all, best;

            draw(x, 30000, (shape)kind);
            for (int i = 0; i < 30000; i++) {
                min = fminf(min, x[i]);
                max = fmaxf(max, x[i]);
            }
            oct_observer_options_init(&p);
            p.kind = name;
            o = that_saw(f->ctx, &p, &s);
            assert_ok(f->ctx, oct_observer_solve(o, specs[k], &low, &high));
            mine = weighted_error(specs[k], low, high, x, 30000, clip);
            all = weighted_error(specs[k], min, max, x, 30000, clip);
            best = brute_force(specs[k], min, max, x, 30000, clip);
            if (mine > 1.01 * best ||
                (kind == HEAVY && clip == 1 && mine > (specs[k] == &u4 ? 0.5 : 0.95) * all))
                fail_msg("%s, shape %d, spec %d: error %g of %g..%g, minmax %g, best %g", name,
                         kind, k, mine, (double)low, (double)high, all, best);
            oct_observer_free(o);
        }
}

static void mse_is_near_the_best_there_is(void **state)
{
    near_the_best(*state, "mse", 1);
    near_the_best(*state, "mse_wide", 4);
}

/* Bins are fewer for each channel, and side by side not all pixels are counted; the range is nearly
 * as good. */
static void mse_per_channel_is_nearly_as_good(void **state)
{
    enum { LEN = 30000 };
    fixture *f = *state;
    static float x[LEN * 2], pairs[LEN * 2];
    const oct_value_view sights[] = {{x, LEN, 2, 0, true}, {pairs, LEN, 2, 2, false}};
    oct_observer_options p;
    float low[2], high[2];

    draw(x, LEN, HEAVY);
    draw(x + LEN, LEN, SILU);
    for (int i = 0; i < 2 * LEN; i++)
        pairs[i] = x[i % 2 * LEN + i / 2];
    oct_observer_options_init(&p);
    p.kind = "mse";
    p.per_channel = true;
    for (int k = 0; k < 2; k++) {
        oct_observer *o = that_saw(f->ctx, &p, &sights[k]);

        assert_ok(f->ctx, oct_observer_solve(o, &u8, low, high));
        for (int c = 0; c < 2; c++) {
            const float *v = x + LEN * c;
            float min = 0, max = 0;

            for (int i = 0; i < LEN; i++) {
                min = fminf(min, v[i]);
                max = fmaxf(max, v[i]);
            }
            assert_true(true_error(&u8, low[c], high[c], v, LEN) <
                        1.1 * brute_force(&u8, min, max, v, LEN, 1));
        }
        oct_observer_free(o);
    }
}

static void mse_chooses_among_powers_of_two(void **state)
{
    fixture *f = *state;
    static float x[30000];
    const oct_value_view s = {x, 30000, 1, 1, false};
    oct_qspec spec = s8;
    oct_observer *o;
    oct_observer_options p;
    float low, high, scale;
    int32_t zero;
    double best = DBL_MAX;

    spec.is_pow2 = true;
    draw(x, 30000, HEAVY);
    oct_observer_options_init(&p);
    p.kind = "mse";
    o = that_saw(f->ctx, &p, &s);
    assert_ok(f->ctx, oct_observer_solve(o, &spec, &low, &high));
    oct_qspec_solve(&spec, low, high, &scale, &zero);
    assert_true(scale == ldexpf(1, ilogbf(scale)));
    for (int e = -12; e < 4; e++)
        best = fmin(best, true_error(&spec, ldexpf(-128, e), ldexpf(127, e), x, 30000));
    assert_true(true_error(&spec, low, high, x, 30000) == best);
    oct_observer_free(o);
}

static void percentiles_are_near_the_sorted_ones(void **state)
{
    fixture *f = *state;
    static float x[100000];
    const oct_value_view s = {x, 100000, 1, 1, false};
    oct_observer_options p;
    oct_observer *o;
    float low, high;

    for (int i = 0; i < 100000; i++) /* 0, 0.001, .. in a strange order */
        x[i] = (float)((int64_t)i * 7919 % 100000) * 1e-3f - 20;
    oct_observer_options_init(&p);
    p.kind = "percentile";
    p.percentile = 99;
    o = that_saw(f->ctx, &p, &s);
    assert_ok(f->ctx, oct_observer_solve(o, &u8, &low, &high));
    assert_true(fabsf(low - -19) < 0.002f && fabsf(high - 79) < 0.002f);
    assert_ok(f->ctx, oct_observer_solve(o, &s8, &low, &high)); /* |x| below 79 */
    assert_true(low == -20 && fabsf(high - 79) < 0.002f);
    oct_observer_free(o);
}

static void kl_gives_up_a_lonely_outlier(void **state)
{
    fixture *f = *state;
    static float x[100000];
    const oct_value_view s = {x, 100000, 1, 1, false};
    oct_observer_options p;
    oct_observer *o;
    float low, high;
    oct_rng r;

    oct_rng_init(&r, 3);
    for (int i = 0; i < 100000; i++)
        x[i] = (float)oct_rng_normal(&r);
    x[500] = 40;
    oct_observer_options_init(&p);
    p.kind = "kl";
    o = that_saw(f->ctx, &p, &s);
    assert_ok(f->ctx, oct_observer_solve(o, &s8, &low, &high));
    assert_true(high < 20 && high > 2 && low == -high);
    oct_observer_free(o);
}

static float estimate(oct_ctx *ctx, oct_stat stat, oct_gather gather, double clip)
{
    oct_observer_options p;
    oct_observer *o = NULL;
    float low, high;

    oct_observer_options_init(&p);
    p.kind = "estimator";
    p.high.stat = stat;
    p.high.gather = gather;
    p.high.clipping_value = clip;
    p.high.quantile_outlier_prob = 0.1;
    assert_ok(ctx, oct_observer_new(ctx, &p, 1, &o));
    for (int k = 0; k < 5; k++) { /* samples: 0..-100, steps of 1, times 1, 2, 3, 4, 100 */
        float x[101];
        const oct_value_view s = {x, 101, 1, 1, false};

        for (int i = 0; i <= 100; i++)
            x[i] = (float)(-i * (k == 4 ? 100 : k + 1));
        oct_observer_see(o, &s);
    }
    assert_ok(ctx, oct_observer_solve(o, &u8, &low, &high));
    assert_true(low == -10000);
    oct_observer_free(o);
    return high;
}

static void estimator_has_nncf_s_rules(void **state)
{
    fixture *f = *state;

    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MIN, 0) == -10000);
    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MAX, 0) == -100);
    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MEAN, 0) == -2200);
    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MEDIAN, 0) == -300);
    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MEAN_NO_OUTLIERS, 0) == -300);
    assert_true(estimate(f->ctx, OCT_STAT_MIN, OCT_GATHER_MEDIAN_NO_OUTLIERS, 0) == -300);
    assert_true(estimate(f->ctx, OCT_STAT_ABS_MAX, OCT_GATHER_MEDIAN, 0) == 300);
    assert_true(estimate(f->ctx, OCT_STAT_MEAN, OCT_GATHER_MEDIAN, 0) == -150);
    assert_true(estimate(f->ctx, OCT_STAT_ABS_MAX, OCT_GATHER_MEAN, 400) == 280);
    assert_true(fabsf(estimate(f->ctx, OCT_STAT_QUANTILE, OCT_GATHER_MEDIAN, 0) + 30) < 4);
    assert_true(fabsf(estimate(f->ctx, OCT_STAT_ABS_QUANTILE, OCT_GATHER_MEDIAN, 0) - 270) < 4);
}

static void bad_numbers_are_noticed(void **state)
{
    fixture *f = *state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static float x[N];
    const oct_value_view s = {x, PIXELS, CHANNELS, PITCH, false};

    for (int i = 0; oct_observer_at(i); i++)
        for (int per_channel = 0; per_channel < 2; per_channel++)
            for (int k = 0; k < 3; k++) {
                oct_observer *o = observer(f->ctx, oct_observer_at(i)->name, per_channel);
                float low[CHANNELS], high[CHANNELS];

                assert_fails(f->ctx, oct_observer_solve(o, &u8, low, high), OCT_ERR_STATE,
                             "nothing was observed");
                fill(x, N, 1);
                x[CHANNELS] = NAN; /* between the rows: not looked at */
                oct_observer_see(o, &s);
                assert_false(o->has_bad);
                x[(PIXELS - 1) * PITCH + CHANNELS - 1] = bad[k];
                oct_observer_see(o, &s);
                assert_true(o->has_bad);
                assert_fails(f->ctx, oct_observer_solve(o, &u8, low, high), OCT_ERR_STATE, "NaN");
                oct_observer_free(o);
            }
}

static void constant_values_have_ranges(void **state)
{
    fixture *f = *state;
    static const float constants[] = {0, 3.5f, -2, 1e-30f, 1e30f, 1e-42f};

    for (int i = 0; oct_observer_at(i); i++)
        for (size_t k = 0; k < OCT_COUNT(constants); k++) {
            float x[100], low, high, scale;
            const oct_value_view s = {x, 100, 1, 1, false};
            oct_observer_options p;
            oct_observer *o;
            int32_t zero;

            for (int j = 0; j < 100; j++)
                x[j] = constants[k];
            oct_observer_options_init(&p);
            p.kind = oct_observer_at(i)->name;
            o = that_saw(f->ctx, &p, &s);
            assert_ok(f->ctx, oct_observer_solve(o, &u8, &low, &high));
            oct_qspec_solve(&u8, low, high, &scale, &zero);
            assert_true(isnormal(scale));
            if (fabsf(x[0]) > 1e-10f) {
                const int32_t code = oct_qspec_code(&u8, scale, zero, x[0]);

                assert_true(fabsf(oct_qspec_value(scale, zero, code) / x[0] - 1) < 0.02f);
            }
            oct_observer_free(o);
        }
}

static void wrong_options_are_refused(void **state)
{
    fixture *f = *state;
    oct_observer_options p;
    oct_observer *o = NULL, *a, *b;

    oct_observer_options_init(&p);
    p.kind = "percentil";
    assert_fails(f->ctx, oct_observer_new(f->ctx, &p, 1, &o), OCT_ERR_ARG, "'percentile'");
    p.kind = "mse";
    p.bins = 1;
    assert_fails(f->ctx, oct_observer_new(f->ctx, &p, 1, &o), OCT_ERR_ARG, "bins");
    p.bins = 2048;
    p.percentile = 30;
    assert_fails(f->ctx, oct_observer_new(f->ctx, &p, 1, &o), OCT_ERR_ARG, "percentile");
    assert_null(o);
    a = observer(f->ctx, "mse", false);
    b = observer(f->ctx, "kl", false);
    assert_fails(f->ctx, oct_observer_merge(a, b), OCT_ERR_ARG, "alike");
    oct_observer_free(a);
    oct_observer_free(b);
    oct_observer_free(NULL);
}

static void ranges_of_weights(void **state)
{
    fixture *f = *state;
    static float w[3 * 3000];
    oct_qspec spec = s8;
    float low, high, max = 0, min = 0;

    draw(w, 9000, HEAVY);
    for (int i = 0; i < 3000; i++) {
        w[i] = w[3 * i];
        min = fminf(min, w[i]);
        max = fmaxf(max, w[i]);
    }
    for (int i = 2999; i > 0; i--) /* one of three: the step */
        w[3 * i] = w[i];
    for (int narrow = 0; narrow < 2; narrow++) {
        static float x[3000];

        spec.is_narrow = narrow;
        for (int i = 0; i < 3000; i++)
            x[i] = w[3 * i];
        assert_ok(f->ctx, oct_weight_range(f->ctx, "max", &spec, w, 3000, 3, &low, &high));
        assert_true(low == min && high == max);
        assert_ok(f->ctx, oct_weight_range(f->ctx, "mse", &spec, w, 3000, 3, &low, &high));
        assert_true(true_error(&spec, low, high, x, 3000) <=
                    1.01 * brute_force(&spec, min, max, x, 3000, 1));
        assert_ok(f->ctx, oct_weight_range(f->ctx, "percentile", &spec, w, 3000, 3, &low, &high));
        assert_true(low >= min && high <= max && high > 0.3f * max);
    }
    assert_fails(f->ctx, oct_weight_range(f->ctx, "msee", &spec, w, 9, 1, &low, &high), OCT_ERR_ARG,
                 "'mse'");
    w[3] = NAN;
    assert_fails(f->ctx, oct_weight_range(f->ctx, "mse", &spec, w, 9, 1, &low, &high), OCT_ERR_ARG,
                 "NaN");
    memset(w, 0, sizeof(w));
    assert_ok(f->ctx, oct_weight_range(f->ctx, "mse", &spec, w, 9, 1, &low, &high));
    assert_true(low == 0 && high == 0);
}

static oct_status use_all(oct_ctx *ctx)
{
    float x[64], low[4], high[4];
    const oct_value_view s = {x, 16, 4, 4, false};
    oct_status st = OCT_OK;

    fill(x, 64, 1);
    for (int i = 0; oct_observer_at(i) && !st; i++)
        for (int per_channel = 0; per_channel < 2 && !st; per_channel++) {
            oct_observer_options p;
            oct_observer *o = NULL;

            oct_observer_options_init(&p);
            p.kind = oct_observer_at(i)->name;
            p.per_channel = per_channel;
            p.bins = 64;
            p.high.stat = OCT_STAT_QUANTILE;
            p.high.gather = OCT_GATHER_MEDIAN;
            st = oct_observer_new(ctx, &p, 4, &o);
            if (st) break;
            oct_observer_see(o, &s);
            st = oct_observer_solve(o, &u8, low, high);
            oct_observer_free(o);
        }
    if (!st) st = oct_weight_range(ctx, "mse", &s8, x, 64, 1, low, high);
    return st;
}

static void want_of_memory_is_survived(void **state)
{
    (void)state;
    fail_each_allocation(use_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(merged_is_the_same_as_one_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(minmax_is_exact, setup, teardown),
        cmocka_unit_test(histogram_counts_every_number),
        cmocka_unit_test_setup_teardown(mse_is_near_the_best_there_is, setup, teardown),
        cmocka_unit_test_setup_teardown(mse_per_channel_is_nearly_as_good, setup, teardown),
        cmocka_unit_test_setup_teardown(mse_chooses_among_powers_of_two, setup, teardown),
        cmocka_unit_test_setup_teardown(percentiles_are_near_the_sorted_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(kl_gives_up_a_lonely_outlier, setup, teardown),
        cmocka_unit_test_setup_teardown(estimator_has_nncf_s_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_numbers_are_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(constant_values_have_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_options_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_of_weights, setup, teardown),
        cmocka_unit_test(want_of_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
