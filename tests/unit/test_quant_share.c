/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of channels between their own and one for all, by what channels are worth. */
#include "tests/unit/place_net.h"

#include <math.h>

#include "quant/solve/solve.h"

static oct_qpoint shared(float share)
{
    return (oct_qpoint){.channel_share = share,
                        .spec = {.bits = 8, .axis = 1}}; /* codes from 0 to 255 */
}

static void scales_are_finer_where_weights_are_large(void **state)
{
    const double worth[] = {1, 16, 1};
    const oct_qpoint p = shared(0.5f);
    float scale[] = {1, 1, 0.25f};
    int32_t zero[] = {100, 100, 100};

    (void)state;
    oct_solve_channel_scales(&p, worth, scale, zero, 3);
    assert_true(scale[0] == 2.0f && scale[1] == 1.0f && scale[2] == 1.0f);
    /* the low ends stay: -100, -100 and -25 */
    assert_int_equal(zero[0], 50);
    assert_int_equal(zero[1], 100);
    assert_int_equal(zero[2], 25);
}

static void no_channel_is_clipped(void **state)
{
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 3);
    for (int round = 0; round < 100; round++) {
        const oct_qpoint p = shared((float)oct_rng_f64(&rng) * 0.99f);
        float own[8], scale[8];
        int32_t zero[8] = {0};
        double worth[8];
        int n_own = 0;

        for (int i = 0; i < 8; i++) {
            scale[i] = own[i] = (float)exp(8 * oct_rng_f64(&rng) - 6);
            worth[i] = exp(4 * oct_rng_f64(&rng) - 2);
        }
        oct_solve_channel_scales(&p, worth, scale, zero, 8);
        for (int i = 0; i < 8; i++) {
            assert_true(scale[i] >= own[i] * (1 - 1e-6f));
            n_own += scale[i] <= own[i] * (1 + 1e-6f);
        }
        assert_true(n_own >= 1); /* as fine as can be */
    }
}

static void own_scales_stay(void **state)
{
    const oct_qpoint p = shared(1.0f);
    float scale[] = {1, 0.25f};
    int32_t zero[] = {1, 2};

    (void)state;
    oct_solve_channel_scales(&p, NULL, scale, zero, 2);
    assert_true(scale[0] == 1.0f && scale[1] == 0.25f && zero[1] == 2);
}

/* Two layers read what the first makes, one of them with weights of 3 for its second channel. */
static void worth_is_the_size_of_weights(void **state)
{
    double **worth = NULL, ratio;
    oct_value *x, *heavy, *even;
    int32_t at;
    placed p;

    start(&p, *state, "octet");
    x = emit(p.f, &oct_op_relu, layer(&p, "a", image(&p, 3), 2), NULL);
    heavy = layer(&p, "b", x, 4);
    even = layer(&p, "c", x, 4);
    for (int64_t i = 0; i < 4 * 2 * 9; i++) {
        ((float *)heavy->producer->in[1]->data->data)[i] = i / 9 % 2 ? -3.0f : 1.0f;
        ((float *)even->producer->in[1]->data->data)[i] = 0.5f;
    }
    output(&p, emit(p.f, &oct_op_add, heavy, even));
    place(&p);
    at = p.m->of_value[x->id];
    assert_true(at >= 0 && p.m->points[at].channel_share < 1.0f);
    assert_ok(p.f->ctx, oct_channel_importance(p.m, p.m->arena, &worth));
    assert_non_null(worth[at]);
    /* squares of 1 and 9 have a mean of 5, those of the even layer count as 1 each */
    ratio = sqrt(0.2 + 1) / sqrt(1.8 + 1);
    assert_true(fabs(worth[at][0] / worth[at][1] - ratio) < 1e-9);
    assert_true(fabs(worth[at][0] + worth[at][1] - 2) < 1e-9);
    assert_null(worth[p.m->of_value[p.f->g->inputs[0]->id]]); /* pictures have one scale */
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_finer_where_weights_are_large),
        cmocka_unit_test(no_channel_is_clipped),
        cmocka_unit_test(own_scales_stay),
        cmocka_unit_test_setup_teardown(worth_is_the_size_of_weights, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
