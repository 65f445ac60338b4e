/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsity: how many weights become zero and which, patterns, schedules, what a file says. */
#include "base/rng.h"
#include "prune/sparsity.h"
#include "prune_blocks.h"

static const float *weights_of(const oct_graph *g, const char *name, int64_t *n)
{
    const oct_value *v = oct_graph_find_value(g, name);

    assert_non_null(v);
    *n = oct_tensor_len(v->data);
    return v->data->data;
}

/* x [1,8,6,6] -> Conv "a" 16 -> Relu -> Conv "b" 6, whose weights are ten times as large. */
static void build(fixture *f)
{
    oct_rng rng;
    oct_value *x, *w[2];

    oct_rng_init(&rng, 7);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 8, 6, 6});
    w[0] = weights(f, &rng, 4, (int64_t[]){16, 8, 3, 3});
    w[1] = weights(f, &rng, 4, (int64_t[]){6, 16, 1, 1});
    w[0]->name = "a";
    w[1]->name = "b";
    for (int64_t i = 0; i < oct_tensor_len(w[1]->data); i++)
        ((float *)w[1]->data->data)[i] *= 10;
    x = emit(f, &oct_op_conv, x, w[0]);
    x = emit(f, &oct_op_relu, x, NULL);
    x = emit(f, &oct_op_conv, x, w[1]);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
}

static int64_t zeros_of(const oct_graph *g, const char *name)
{
    int64_t n, zeros = 0;
    const float *w = weights_of(g, name, &n);

    for (int64_t i = 0; i < n; i++)
        zeros += w[i] == 0.0f;
    return zeros;
}

static void the_smallest_go(void **state)
{
    fixture *f = *state;
    oct_sparsity_result r = {.struct_size = sizeof(r)};
    oct_sparsity_options o;
    oct_graph *g = NULL;
    int64_t n;
    float largest = 0, least = 1e9f;
    const float *before, *after;

    build(f);
    oct_sparsity_options_init(&o);
    o.level = "0.5";
    o.local = 1;
    assert_ok(f->ctx, oct_sparsify(f->g, &o, &g, &r));
    assert_int_equal(r.weights, 16 * 72 + 96);
    assert_int_equal(r.zeros, r.weights / 2);
    assert_int_equal(zeros_of(g, "a"), 16 * 72 / 2);
    assert_int_equal(zeros_of(g, "b"), 48);
    before = weights_of(f->g, "a", &n);
    after = weights_of(g, "a", &n);
    for (int64_t i = 0; i < n; i++) {
        const float x = fabsf(before[i]);

        if (after[i] == 0.0f && x > largest) largest = x;
        if (after[i] != 0.0f) {
            assert_true(after[i] == before[i]);
            if (x < least) least = x;
        }
    }
    assert_true(largest <= least);
    assert_non_null(oct_graph_metadata(g, "octet.sparsity"));
    assert_non_null(strstr(oct_graph_metadata(g, "octet.sparsity"), "0.5000 of 1248 weights"));
    assert_null(oct_graph_metadata(f->g, "octet.sparsity"));
    oct_graph_free(g);
    /* Layers compete in units of their own: the larger weights of b are no reason to spare it. */
    o.local = 0;
    o.keep = "nothing";
    assert_ok(f->ctx, oct_sparsify(f->g, &o, &g, &r));
    assert_int_equal(r.zeros, r.weights / 2);
    assert_true(zeros_of(g, "b") > 0);
    oct_graph_free(g);
}

static void patterns_hold(void **state)
{
    fixture *f = *state;
    oct_sparsity_options o;
    oct_graph *g = NULL;
    int64_t n;
    const float *w;

    build(f);
    oct_sparsity_options_init(&o);
    o.level = "2:4";
    assert_ok(f->ctx, oct_sparsify(f->g, &o, &g, NULL));
    w = weights_of(g, "a", &n); /* [16, 8, 3, 3]: along the 8 */
    for (int64_t out = 0; out < 16; out++)
        for (int64_t half = 0; half < 2; half++)
            for (int64_t k = 0; k < 9; k++) {
                int zeros = 0;

                for (int64_t j = 0; j < 4; j++)
                    zeros += w[((out * 8) + half * 4 + j) * 9 + k] == 0.0f;
                assert_int_equal(zeros, 2);
            }
    oct_graph_free(g);
}

static void schedules_grow(void **state)
{
    oct_sparsity_options o;

    (void)state;
    oct_sparsity_options_init(&o);
    o.initial = .1;
    assert_true(fabs(oct_sparsity_at(&o, .5, 0) - .1) < 1e-6);
    assert_true(fabs(oct_sparsity_at(&o, .5, 5) - (float)(.5 - .4 * pow(.5, .9))) < 1e-6);
    assert_true(fabs(oct_sparsity_at(&o, .5, 10) - .5) < 1e-6);
    assert_true(fabs(oct_sparsity_at(&o, .5, 99) - .5) < 1e-6);
    o.schedule = "exponential";
    assert_true(fabs(oct_sparsity_at(&o, .5, 5) - (float)(1 - .9 * pow(.5 / .9, .5))) < 1e-6);
    o.levels = "0:0.3,40:0.5,80:0.7";
    assert_true(fabs(oct_sparsity_at(&o, 0, 39) - .3) < 1e-6);
    assert_true(fabs(oct_sparsity_at(&o, 0, 40) - .5) < 1e-6);
    assert_true(fabs(oct_sparsity_at(&o, 0, 200) - .7) < 1e-6);
}

static void refuses(void **state)
{
    static const struct {
        const char *level, *error;
    } cases[] = {{NULL, "a share between 0 and 1"},
                 {"1.5", "not '1.5'"},
                 {"half", "not 'half'"},
                 {"4:4", "not '4:4'"},
                 {"0", "not '0'"}};
    fixture *f = *state;
    oct_sparsity_options o;
    oct_graph *g = NULL;
    double level;

    build(f);
    oct_sparsity_options_init(&o);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        o.level = cases[i].level;
        assert_fails(f->ctx, oct_sparsify(f->g, &o, &g, NULL), OCT_ERR_ARG, cases[i].error);
    }
    o.level = "0.5";
    o.only = "nothing";
    assert_fails(f->ctx, oct_sparsify(f->g, &o, &g, NULL), OCT_ERR_UNSUPPORTED, "no layer");
    o.levels = "5:0.3,4:0.5";
    assert_fails(f->ctx, oct_sparsity_check(f->ctx, &o, true, &level), OCT_ERR_ARG, "in order");
    o.levels = NULL;
    o.schedule = "adaptive";
    assert_fails(f->ctx, oct_sparsity_check(f->ctx, &o, true, &level), OCT_ERR_ARG, "adaptive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_smallest_go, setup, teardown),
        cmocka_unit_test_setup_teardown(patterns_hold, setup, teardown),
        cmocka_unit_test(schedules_grow),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown),
    };

    return run_test_group(tests);
}
