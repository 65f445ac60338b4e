/* SPDX-License-Identifier: Apache-2.0 */
/* Searching: the space, mixed precision, halving and the Pareto front. */
#include "test.h"

#include "tune/mixed.h"
#include "tune/select.h"
#include "tune/space.h"

/* --- selection --- */

static oct_trial result(int64_t id, const char *settings, double score, double ms, int64_t bytes)
{
    return (oct_trial){.id = id,
                       .kind = OCT_TRIAL_INT8,
                       .state = OCT_TRIAL_DONE,
                       .images = 8,
                       .settings = settings,
                       .score = score,
                       .ms = ms,
                       .bytes = bytes,
                       .digest = "",
                       .error = ""};
}

static void rounds_grow(void **state)
{
    (void)state;
    assert_int_equal(oct_halving_images(900, 0), 100);
    assert_int_equal(oct_halving_images(900, 1), 300);
    assert_int_equal(oct_halving_images(900, 2), 900);
    assert_int_equal(oct_halving_images(20, 0), 8);
    assert_int_equal(oct_halving_images(5, 0), 5);
    assert_int_equal(oct_halving_keep(24), 8);
    assert_int_equal(oct_halving_keep(4), 2);
    assert_int_equal(oct_halving_keep(1), 1);
}

/* The default first, then the best; a smaller one although it is worse; no network twice. */
static void the_best_go_on(void **state)
{
    const oct_budget any = {.max_drop = -1};
    oct_trial list[8];
    int32_t out[8], n;

    (void)state;
    list[0] = result(1, "", .50, 5, 100);
    list[1] = result(2, "a=1\n", .70, 5, 100);
    list[2] = result(3, "b=1\n", .60, 5, 100);
    list[3] = result(4, "c=1\n", .40, 5, 50);
    list[4] = result(5, "d=1\n", .30, 5, 60);
    list[5] = result(6, "e=1\n", .70, 5, 100);
    list[6] = result(7, "f=1\n", .90, 5, 100);
    list[6].state = OCT_TRIAL_FAILED;
    list[7] = result(8, "g=1\n", .99, 5, 100);
    list[7].round = 1;
    n = oct_halving_select(list, 8, 0, &any, out);
    assert_int_equal(n, 3); /* a third of six, and the small one */
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 1); /* before its equal, which came later */
    assert_int_equal(out[2], 3);
    list[1].digest = list[5].digest = "same";
    list[5].score = .95;
    n = oct_halving_select(list, 8, 0, &any, out);
    assert_int_equal(out[1], 1);
    for (int32_t i = 0; i < n; i++)
        assert_int_not_equal(out[i], 5);
}

static void budgets_decide(void **state)
{
    oct_trial list[4];

    (void)state;
    list[0] = result(1, "", .80, 9, 2000000);
    list[1] = result(2, "a=1\n", .84, 12, 3000000);
    list[2] = result(3, "b=1\n", .78, 4, 1000000);
    list[3] = result(4, "", .85, 20, 8000000);
    list[3].kind = OCT_TRIAL_FLOAT;
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = -1}), 1);
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = -1, .max_ms = 10}), 0);
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = -1, .max_mb = 1.5}), 2);
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = .06}), 0);
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = .1}), 2);
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = .001}), -1);
    /* A later round counts only once the default was measured in it. */
    list[1].round = 1;
    assert_int_equal(oct_trials_best(list, 4, &(oct_budget){.max_drop = -1}), 0);
}

static void the_front_is_undominated(void **state)
{
    oct_trial list[5];
    bool is[5];

    (void)state;
    list[0] = result(1, "", .80, 9, 200);
    list[1] = result(2, "a=1\n", .80, 9, 200); /* equal: the first counts */
    list[2] = result(3, "b=1\n", .70, 5, 300);
    list[3] = result(4, "c=1\n", .60, 6, 300); /* worse than b in everything */
    list[4] = result(5, "d=1\n", .10, 99, 10); /* the smallest */
    oct_pareto_front(list, 5, 0, is);
    assert_true(is[0] && !is[1] && is[2] && !is[3] && is[4]);
    oct_pareto_front(list, 5, 1, is);
    assert_false(is[0] || is[2] || is[4]);
}

/* --- the space --- */

static int32_t list_space(oct_arena *arena, const oct_space_options *o, int32_t n,
                          const char ***list)
{
    int32_t got = 0;

    assert_int_equal(oct_space_list(arena, o, n, list, &got), OCT_OK);
    return got;
}

static void settings_are_reproducible(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    const oct_space_options o = {.seed = 5}, other = {.seed = 6};
    const char **a, **b, **c;
    bool differ = false;

    assert_int_equal(list_space(arena, &o, 60, &a), 60);
    assert_int_equal(list_space(arena, &o, 60, &b), 60);
    assert_int_equal(list_space(arena, &other, 60, &c), 60);
    assert_string_equal(a[0], "");
    assert_string_equal(a[1], "ranges.activations=mse\n");
    for (int i = 0; i < 60; i++) {
        assert_string_equal(a[i], b[i]);
        differ |= strcmp(a[i], c[i]) != 0;
        for (int k = 0; k < i; k++)
            assert_string_not_equal(a[i], a[k]);
    }
    assert_true(differ);
    oct_arena_free(arena);
}

static void fixed_settings_are_not_varied(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    const oct_space_options o = {.fixed = "target: ort\nranges.activations: kl\n", .slow = true};
    const char **list;
    const int32_t n = list_space(arena, &o, 80, &list);
    bool overflow = false, slow = false;

    for (int32_t i = 0; i < n; i++) {
        assert_null(strstr(list[i], "ranges.activations"));
        overflow |= strstr(list[i], "overflow_fix") != NULL;
        slow |= strstr(list[i], "adaround") != NULL;
    }
    assert_true(overflow && slow);
    assert_int_equal(list_space(arena, &(oct_space_options){.seed = 1}, 80, &list), 80);
    for (int32_t i = 0; i < 80; i++)
        assert_true(!strstr(list[i], "overflow_fix") && !strstr(list[i], "adaround"));
    oct_arena_free(arena);
}

static void settings_become_a_recipe(void **state)
{
    static const char good[] = "ranges.activations=percentile\nranges.percentile=99.9\n"
                               "ignored_scope.names=/a/b\nignored_scope.names=/c\n"
                               "overrides={name: 'it''s', weight_bits: 4}\n";
    fixture *f = *state;
    oct_quantize_options o;
    oct_recipe *r = NULL;

    assert_int_equal(oct_recipe_new(f->ctx, &r), OCT_OK);
    assert_int_equal(oct_space_apply(f->ctx, good, r), OCT_OK);
    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(r, &o);
    assert_string_equal(o.activation_ranges, "percentile");
    assert_true(o.percentile > 99.89 && o.percentile < 99.91);
    assert_int_equal(o.ignored.n_names, 2);
    assert_int_equal(o.n_overrides, 1);
    assert_string_equal(o.overrides[0].name, "it's");
    assert_int_equal(o.overrides[0].weight_bits, 4);
    /* The file of trials may be anybody's: it does not name files to write. */
    assert_int_equal(oct_space_apply(f->ctx, "output=/etc/passwd\n", r), OCT_ERR_FORMAT);
    assert_int_equal(oct_space_apply(f->ctx, "nonsense", r), OCT_ERR_FORMAT);
    assert_int_equal(oct_space_apply(f->ctx, "ranges.activations=none such\n", r), OCT_ERR_ARG);
    oct_recipe_free(r);
}

static void merging_keeps_both(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);

    assert_string_equal(oct_space_merge(arena, "a=1\n", "b=2\n"), "a=1\nb=2\n");
    assert_null(oct_space_merge(arena, "c=0\na=1\n", "a=2\n"));
    assert_string_equal(oct_space_merge(arena, "a=1\n", "aa=2\n"), "a=1\naa=2\n");
    oct_arena_free(arena);
}

/* --- mixed precision --- */

static void a_multiplier_picks_widths(void **state)
{
    const oct_mixed_layer layers[] = {
        {"bad", {-1, 10, 1, 0}, {0, 1, 2, 4}, .5},
        {"good", {.5, .1, .05, 0}, {.5, 1, 2, 4}, .5},
    };
    const unsigned precise = 1u << OCT_WIDTH_8 | 1u << OCT_WIDTH_A16 | 1u << OCT_WIDTH_FLOAT;
    oct_width pick[2];

    (void)state;
    oct_mixed_pick(layers, 2, precise, 100, pick);
    assert_true(pick[0] == OCT_WIDTH_8 && pick[1] == OCT_WIDTH_8);
    oct_mixed_pick(layers, 2, precise, 5, pick);
    assert_true(pick[0] == OCT_WIDTH_A16 && pick[1] == OCT_WIDTH_8);
    oct_mixed_pick(layers, 2, precise, .1, pick);
    assert_true(pick[0] == OCT_WIDTH_FLOAT && pick[1] == OCT_WIDTH_8);
    oct_mixed_pick(layers, 2, 1u << OCT_WIDTH_W4 | 1u << OCT_WIDTH_8, 1, pick);
    assert_true(pick[0] == OCT_WIDTH_8 && pick[1] == OCT_WIDTH_W4);
}

static void the_worst_layers_come_first(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    const oct_mixed_layer layers[] = {
        {"a", {.2, .1, -1, 0}, {.5, 1, 2, 4}, .25},
        {"b", {9, 8, -1, 0}, {.5, 1, 2, 4}, .25},
        {"c", {.3, .2, -1, 0}, {.5, 1, 2, 4}, .25},
        {"d", {99, .3, .2, 0}, {.5, 1, 2, 4}, .25},
    };
    const char **list;
    int32_t n;

    assert_int_equal(oct_mixed_settings(arena, layers, 4, "ignored_scope.names=z\n", &list, &n),
                     OCT_OK);
    assert_true(n >= 5);
    assert_string_equal(list[0], "ignored_scope.names=z\nignored_scope.names=b\n");
    assert_null(strstr(list[1], "ignored")); /* 4 bits where they do the least harm */
    assert_non_null(strstr(list[1], "weight_bits: 4"));
    assert_null(strstr(list[1], "'d'"));
    assert_int_equal(oct_mixed_settings(arena, layers, 0, "", &list, &n), OCT_OK);
    assert_int_equal(n, 0);
    oct_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_grow),
        cmocka_unit_test(the_best_go_on),
        cmocka_unit_test(budgets_decide),
        cmocka_unit_test(the_front_is_undominated),
        cmocka_unit_test_setup_teardown(settings_are_reproducible, setup, teardown),
        cmocka_unit_test_setup_teardown(fixed_settings_are_not_varied, setup, teardown),
        cmocka_unit_test_setup_teardown(settings_become_a_recipe, setup, teardown),
        cmocka_unit_test_setup_teardown(merging_keeps_both, setup, teardown),
        cmocka_unit_test(a_multiplier_picks_widths),
        cmocka_unit_test_setup_teardown(the_worst_layers_come_first, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
