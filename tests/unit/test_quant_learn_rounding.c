/* SPDX-License-Identifier: Apache-2.0 */
/* How learned weights are rounded to codes: AdaRound's and LSQ's ways, and their gradients. */
#include "quant/learn/rounding.h"
#include "tests/unit/exec_net.h"

static void rounding_begins_where_weights_are(void **state)
{
    (void)state;
    assert_true(fabsf(oct_adaround_v(0.3f) + 0.69314718f) < 1e-6f);
    assert_true(fabs(oct_adaround_cost(0.3f, 20) - .999999989) < 1e-9);
    assert_true(fabs(oct_adaround_cost(0.3f, 2) - .84) < 1e-6);
    for (int i = 0; i <= 20; i++)
        assert_true(fabsf(oct_adaround_h(oct_adaround_v((float)i / 20)) - (float)i / 20) < 1e-6f);
    assert_true(oct_adaround_h(9) == 1 && oct_adaround_h(-9) == 0);
}

enum { N_OUT = 2, N_IN = 3, N_WEIGHTS = N_OUT * N_IN };

/* A weight of two outputs with scales and folded factors of their own. */
typedef struct weight {
    oct_value *v;
    oct_qpoint p;
    float scale[N_OUT], fold[N_IN];
    int32_t zero[N_OUT];
} weight;

static void make_weight(fixture *f, weight *w, const float *data)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){N_OUT, N_IN});
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    memcpy(t->data, data, t->size);
    *w = (weight){.v = oct_value_const(f->g, "w", t), .scale = {.1f, .2f}, .fold = {1, .5f, .25f}};
    w->p = (oct_qpoint){.value = w->v,
                        .spec = {.bits = 4, .is_signed = true, .is_symmetric = true},
                        .n = N_OUT,
                        .scale = w->scale,
                        .zero = w->zero,
                        .fold = w->fold,
                        .fold_rows = 1,
                        .fold_columns = N_IN};
}

static const float float_weights[N_WEIGHTS] = {.33f, -.71f, 1.9f, -9, .31f, .05f};

/* At the end every weight is a code next to it, also with folded factors; -9 is clipped. */
static void rounding_ends_on_codes(void **state)
{
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    weight w;

    make_weight(f, &w, float_weights);
    for (int kind = 0; kind < 2; kind++) {
        float v[N_WEIGHTS], soft[N_WEIGHTS], hard[N_WEIGHTS];
        oct_rounding r;

        assert_ok(f->ctx, oct_rounding_make(&w.p, (oct_rounding_kind)kind, a, &r));
        oct_rounding_start(&r, float_weights, v);
        oct_rounding_values(&r, v, false, soft);
        oct_rounding_values(&r, v, true, hard);
        for (int i = 0; i < N_WEIGHTS; i++) {
            const float unit = w.scale[i / N_IN] / w.fold[i % N_IN], code = hard[i] / unit;

            assert_true(fabsf(code - rintf(code)) < 1e-5f && code > -8.1f && code < 7.1f);
            if (i == 3) assert_true(rintf(code) == -8);
            if (i != 3) assert_true(fabsf(hard[i] - float_weights[i]) <= unit * .5001f);
            if (i != 3 && kind == OCT_ROUNDING_ADAROUND)
                assert_true(fabsf(soft[i] - float_weights[i]) < 1e-5f);
        }
    }
    oct_arena_free(a);
}

/* Codes that rounding the taps together chose are where learning begins; clipped ones stay clipped.
 */
static void learning_begins_at_the_codes_there_are(void **state)
{
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    float v[N_WEIGHTS], now[N_WEIGHTS], then[N_WEIGHTS];
    oct_rounding r;
    weight w;

    make_weight(f, &w, float_weights);
    for (int kind = 0; kind < 2; kind++) {
        assert_ok(f->ctx, oct_rounding_make(&w.p, (oct_rounding_kind)kind, a, &r));
        oct_rounding_start(&r, float_weights, v);
        oct_rounding_values(&r, v, true, now);
        for (int i = 0; i < N_WEIGHTS; i += 4) { /* not the nearest */
            const float other = float_weights[i] > now[i] ? 1 : -1;

            now[i] += other * r.unit[i];
        }
        oct_rounding_hold(&r, now, .49f, v);
        oct_rounding_values(&r, v, true, then);
        for (int i = 0; i < N_WEIGHTS; i++)
            assert_true(fabsf(then[i] - now[i]) < 1e-6f);
    }
    oct_arena_free(a);
}

/* The codes that AdaRound found are those that LSQ goes on from, wherever the weights are. */
static void refining_keeps_codes(void **state)
{
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    float v[N_WEIGHTS], found[N_WEIGHTS], then[N_WEIGHTS];
    oct_rounding r;
    weight w;

    make_weight(f, &w, float_weights);
    assert_ok(f->ctx, oct_rounding_make(&w.p, OCT_ROUNDING_ADAROUND, a, &r));
    oct_rounding_start(&r, float_weights, v);
    for (int i = 0; i < N_WEIGHTS; i++)
        v[i] = -v[i];
    oct_rounding_values(&r, v, true, found);
    oct_rounding_refine(&r, float_weights, .3f, v);
    assert_int_equal(r.kind, OCT_ROUNDING_LSQ);
    oct_rounding_values(&r, v, false, then);
    for (int i = 0; i < N_WEIGHTS; i++) {
        const float code = then[i] / r.unit[i];

        assert_true(fabsf(then[i] - found[i]) < 1e-6f);
        if (code > -7.5f && code < 6.5f) assert_true(fabsf(v[i] - code) < .301f);
    }
    oct_arena_free(a);
}

/* Of sum(c * w(v)) + lambda * cost, against differences. */
static void rounding_has_gradients(void **state)
{
    static const float c[N_WEIGHTS] = {1, -2, .5f, 3, -1, 2};
    const double lambda = .3, power = 5;
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    float v[N_WEIGHTS], dv[N_WEIGHTS], y[N_WEIGHTS];
    oct_rounding r;
    weight w;

    make_weight(f, &w, float_weights);
    assert_ok(f->ctx, oct_rounding_make(&w.p, OCT_ROUNDING_ADAROUND, a, &r));
    oct_rounding_start(&r, float_weights, v);
    oct_rounding_grad(&r, v, c, 1, dv);
    oct_rounding_press(&r, v, lambda, power, dv);
    for (int i = 0; i < N_WEIGHTS; i++) {
        const float at = v[i], h = oct_adaround_h(at);
        double loss[2];

        if (h <= 0.01f || h >= 0.99f) continue; /* a corner */
        for (int k = 0; k < 2; k++) {
            v[i] = at + (k ? 1e-2f : -1e-2f);
            oct_rounding_values(&r, v, false, y);
            loss[k] =
                (double)(c[i] * y[i]) + lambda * oct_adaround_cost(oct_adaround_h(v[i]), power);
        }
        v[i] = at;
        assert_true(fabs((loss[1] - loss[0]) / 2e-2 - (double)dv[i]) < 2e-3);
    }
    oct_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_begins_where_weights_are),
        cmocka_unit_test_setup_teardown(rounding_ends_on_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(learning_begins_at_the_codes_there_are, setup, teardown),
        cmocka_unit_test_setup_teardown(refining_keeps_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(rounding_has_gradients, setup, teardown),
    };

    return run_test_group(tests);
}
