/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of detectors' losses: known values, and derivatives against finite differences. */
#include "base/rng.h"
#include "loss/anchors.h"
#include "loss/background.h"
#include "loss/pieces.h"
#include "tests/test.h"

static const oct_giou_form giou_form = {1e-10, false};

static void near(double have, double want, double tolerance)
{
    if (!(fabs(have - want) <= tolerance)) fail_msg("%.10g, expected %.10g", have, want);
}

static void all_near(const double *have, const double *want, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        near(have[i], want[i], tolerance);
}

static void known_overlaps(void **state)
{
    const double pred[4] = {1, 2, 5, 7}, truth[4] = {2, 1, 6, 6};
    const double far[4] = {0, 0, 2, 2}, away[4] = {3, 3, 6, 5};
    double g[4];

    (void)state;
    near(oct_loss_giou(pred, truth, &giou_form, g), .63809524, 6e-9);
    all_near(g, (double[]){-.09653061, .12517007, -.16088435, .08344671}, 4, 6e-9);
    near(oct_loss_giou(far, away, &giou_form, g), 1.66666667, 6e-9);
    all_near(g, (double[]){.01111111, 0, -.06666667, -.06666667}, 4, 6e-9);
    near(oct_loss_ciou(pred, truth, 1e-7, g), .60421547, 6e-9);
    all_near(g, (double[]){-.08754915, .10823017, -.14394446, .07116805}, 4, 6e-9);
    near(oct_box_iou(pred, truth, 0), 12. / 28, 1e-15);
    near(oct_box_iou(far, away, 1e-9), 0, 0);
}

static void known_distribution(void **state)
{
    const double z[5] = {.2, -.1, 1, .3, -.5};
    double dz[5], p[5];

    (void)state;
    near(oct_loss_dfl(z, 5, 2.3, dz), 1.12705664, 6e-9);
    all_near(dz, (double[]){.17959398, .13304649, -.30030625, -.10151796, .08918373}, 5, 6e-9);
    near(oct_dfl_decode(z, 5, p), 1.88461505, 6e-9);
    near(p[0] + p[1] + p[2] + p[3] + p[4], 1, 1e-15);
    /* The ends of the range. */
    near(oct_loss_dfl(z, 5, 0, dz), -log(p[0]), 1e-14);
    near(oct_loss_dfl(z, 5, 4, dz), -log(p[4]), 1e-14);
}

enum { BCE, VARIFOCAL_NO, VARIFOCAL_YES, QUALITY, QUALITY_ODD, FOCAL, FOCAL_PLAIN, N_TERMS };

static oct_term term(int kind, double x, double q)
{
    switch (kind) {
    case BCE:
        return oct_loss_bce(x, q);
    case VARIFOCAL_NO:
        return oct_loss_varifocal(x, 0, false, .75, 2);
    case VARIFOCAL_YES:
        return oct_loss_varifocal(x, q, true, .75, 2);
    case QUALITY:
        return oct_loss_quality_focal(x, q, 2);
    case QUALITY_ODD:
        return oct_loss_quality_focal(x, q, 1.5);
    case FOCAL:
        return oct_loss_focal(x, q, .25, 2);
    default:
        return oct_loss_focal(x, q, -1, 2);
    }
}

/* The formulas as they are written in papers, good for moderate logits. */
static double plain(int kind, double x, double q)
{
    const double p = 1 / (1 + exp(-x)), t = kind == VARIFOCAL_NO ? 0 : q;
    const double bce = -t * log(p) - (1 - t) * log(1 - p);

    switch (kind) {
    case BCE:
        return bce;
    case VARIFOCAL_NO:
        return .75 * p * p * bce;
    case VARIFOCAL_YES:
        return q * bce;
    case QUALITY_ODD:
        return pow(fabs(p - q), 1.5) * bce;
    case FOCAL:
        return (.25 * q + .75 * (1 - q)) * (p - q) * (p - q) * bce;
    default:
        return (p - q) * (p - q) * bce;
    }
}

static void terms_of_logits(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_TERMS; kind++)
        for (double x = -6; x < 6; x += .37)
            for (double q = 0; q <= 1; q += .25) {
                const double h = 1e-5;
                const oct_term t = term(kind, x, q);
                const double slope =
                    (term(kind, x + h, q).value - term(kind, x - h, q).value) / (2 * h);

                near(t.value, plain(kind, x, q), 1e-12);
                near(t.slope, slope, 1e-8);
            }
}

/* Large logits neither overflow nor lose the loss. */
static void terms_of_large_logits(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_TERMS; kind++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const oct_term t = term(kind, sign * 800., .5);

            assert_true(isfinite(t.value) && isfinite(t.slope));
        }
    near(oct_loss_bce(800, 0).value, 800, 0);
    near(oct_loss_bce(-800, 1).value, 800, 0);
    near(oct_loss_bce(-40, 0).value / exp(-40), 1, 1e-12);
    near(oct_loss_varifocal(800, 0, false, .75, 2).slope, .75, 1e-12);
    near(oct_loss_varifocal(3, 0, true, .75, 2).slope, 0, 0);
}

static double overlap(int kind, const double p[4], const double t[4], double *g)
{
    static const oct_giou_form nanodet = {1e-7, true};

    return kind == 0   ? oct_loss_giou(p, t, &giou_form, g)
           : kind == 1 ? oct_loss_giou(p, t, &nanodet, g)
                       : oct_loss_ciou(p, t, 1e-7, g);
}

/* CIoU with the weight of the aspect ratio held, as its derivative has it. */
static double ciou_held(const double p[4], const double t[4], const double at[4])
{
    const double pi = acos(-1);
    const double va = atan((t[2] - t[0]) / (t[3] - t[1])) - atan((at[2] - at[0]) / (at[3] - at[1]));
    const double vp = atan((t[2] - t[0]) / (t[3] - t[1])) - atan((p[2] - p[0]) / (p[3] - p[1]));
    const double v0 = 4 / (pi * pi) * va * va, v = 4 / (pi * pi) * vp * vp;
    const double w0 = v0 / (v0 - oct_box_iou(at, t, 1e-7) + 1 + 1e-7);
    const double iou = oct_box_iou(p, t, 1e-7), w = v / (v - iou + 1 + 1e-7);

    return oct_loss_ciou(p, t, 1e-7, NULL) - v * w + v * w0;
}

static void slopes_of_overlaps(void **state)
{
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 3);
    for (int round = 0; round < 300; round++) {
        double p[4], t[4], g[4];

        for (int i = 0; i < 2; i++) {
            p[i] = 10 * oct_rng_f64(&rng);
            t[i] = 10 * oct_rng_f64(&rng);
            p[i + 2] = p[i] + .5 + 6 * oct_rng_f64(&rng);
            t[i + 2] = t[i] + .5 + 6 * oct_rng_f64(&rng);
        }
        for (int kind = 0; kind < 3; kind++) {
            overlap(kind, p, t, g);
            for (int i = 0; i < 4; i++) {
                const double h = 1e-6, x = p[i], at[4] = {p[0], p[1], p[2], p[3]};
                double high, low;

                p[i] = x + h;
                high = kind == 2 ? ciou_held(p, t, at) : overlap(kind, p, t, NULL);
                p[i] = x - h;
                low = kind == 2 ? ciou_held(p, t, at) : overlap(kind, p, t, NULL);
                p[i] = x;
                near(g[i], (high - low) / (2 * h), 1e-6);
            }
        }
    }
}

/* A box without area, equal boxes: no number is lost. */
static void degenerate_boxes(void **state)
{
    const double point[4] = {2, 2, 2, 2}, box[4] = {1, 1, 3, 4};
    double g[4];

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const double *pairs[3][2] = {{point, box}, {box, box}, {point, point}};

        for (int k = 0; k < 3; k++) {
            assert_true(isfinite(overlap(kind, pairs[k][0], pairs[k][1], g)));
            for (int i = 0; i < 4; i++)
                assert_true(isfinite(g[i]));
        }
        near(overlap(kind, box, box, g), 0, 1e-6);
    }
}

static void slopes_of_distributions(void **state)
{
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 4);
    for (int round = 0; round < 50; round++) {
        double z[17], dz[17], p[17], scrap[17];
        const double y = 16 * oct_rng_f64(&rng), h = 1e-5;

        for (int k = 0; k < 17; k++)
            z[k] = 4 * oct_rng_f64(&rng) - 2;
        oct_loss_dfl(z, 17, y, dz);
        const double mean = oct_dfl_decode(z, 17, p);
        for (int k = 0; k < 17; k++) {
            const double x = z[k];
            double loss, d;

            z[k] = x + h;
            loss = oct_loss_dfl(z, 17, y, scrap);
            d = oct_dfl_decode(z, 17, scrap);
            z[k] = x - h;
            loss -= oct_loss_dfl(z, 17, y, scrap);
            d -= oct_dfl_decode(z, 17, scrap);
            z[k] = x;
            near(dz[k], loss / (2 * h), 1e-8);
            near(p[k] * (k - mean), d / (2 * h), 1e-8);
        }
    }
}

static void anchors(void **state)
{
    const int64_t strides[] = {8, 16}, sizes[] = {2, 3, 1, 2};
    double point[16], stride[8];
    oct_anchor_levels l;

    (void)state;
    assert_true(oct_anchor_levels_read(strides, 2, sizes, 4, &l));
    assert_int_equal(oct_anchors_count(&l), 8);
    oct_anchors_fill(&l, .5, point, stride);
    all_near(point, (double[]){4, 4, 12, 4, 20, 4, 4, 12, 12, 12, 20, 12, 8, 8, 24, 8}, 16, 0);
    all_near(stride, (double[]){8, 8, 8, 8, 8, 8, 16, 16}, 8, 0);
    oct_anchors_fill(&l, 0, point, stride);
    all_near(point + 8, (double[]){8, 8, 16, 8, 0, 0, 16, 0}, 8, 0);
    assert_false(oct_anchor_levels_read(strides, 2, sizes, 3, &l));
    assert_false(oct_anchor_levels_read(strides, 2, (int64_t[]){2, 0, 1, 2}, 4, &l));
    assert_false(oct_anchor_levels_read((int64_t[]){8, -1}, 2, sizes, 4, &l));
    assert_false(oct_anchor_levels_read(strides, 1, (int64_t[]){1, (int64_t)1 << 40}, 2, &l));
    assert_false(oct_anchor_levels_read(strides, 0, sizes, 0, &l));
}

static oct_term background_term(const oct_dfl_loss *loss, double x)
{
    switch (loss->term) {
    case OCT_CLASS_VARIFOCAL:
        return oct_loss_varifocal(x, 0, false, .75, 2);
    case OCT_CLASS_FOCAL:
        return oct_loss_focal(x, 0, loss->focal_alpha, 2);
    default:
        return oct_loss_bce(x, 0);
    }
}

/* Many at a time in float: each slope and the sum are those of the terms in double. */
static void terms_of_background(void **state)
{
    static const oct_dfl_loss losses[] = {
        {.term = OCT_CLASS_BCE},
        {.term = OCT_CLASS_VARIFOCAL},
        {.term = OCT_CLASS_FOCAL, .focal_alpha = .25},
        {.term = OCT_CLASS_FOCAL, .focal_alpha = -1},
    };
    enum { N = 1203 };
    float x[N], dx[N];

    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) / 12; /* -50 .. 50 */
    for (size_t k = 0; k < OCT_COUNT(losses); k++) {
        double sum = 0;
        const double have = oct_loss_background(&losses[k], x, N, .125, dx);

        for (int i = 0; i < N; i++) {
            const oct_term t = background_term(&losses[k], (double)x[i]);

            sum += t.value;
            near((double)dx[i], .125 * t.slope, 1e-6 * .125 * fabs(t.slope) + 1e-37);
        }
        near(have, sum, 2e-7 * sum);
        near(oct_loss_background(&losses[k], x, N, .125, NULL), have, 0);
    }
    x[7] = NAN; /* is not hidden */
    assert_true(isnan(oct_loss_background(&losses[0], x, N, 1, NULL)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_overlaps),          cmocka_unit_test(known_distribution),
        cmocka_unit_test(terms_of_logits),         cmocka_unit_test(terms_of_large_logits),
        cmocka_unit_test(terms_of_background),     cmocka_unit_test(slopes_of_overlaps),
        cmocka_unit_test(degenerate_boxes),        cmocka_unit_test(anchors),
        cmocka_unit_test(slopes_of_distributions),
    };

    return run_test_group(tests);
}
