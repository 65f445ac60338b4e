/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning: random networks without their channels compute what they compute with zeros there. */
#include "prune/schedule.h"
#include "prune_blocks.h"

/* The input's channels are none of a layer, so the first block is one. Ends in a classifier. */
static void finish(maker *m, oct_value *x)
{
    const int64_t *d = x->type.dim, w[2] = {d[1] * d[2] * d[3], 5}, flat = 1;
    oct_value *y;

    y = with_axis(m, &oct_op_flatten, emit(m->f, &oct_op_relu, x, NULL), NULL, flat);
    y = emit(m->f, &oct_op_mat_mul, y, weights(m->f, &m->rng, 2, w));
    assert_ok(m->f->ctx, oct_graph_add_output(m->f->g, y));
}

static oct_value *start(maker *m, fixture *f, uint64_t seed)
{
    const int64_t dims[4] = {1, 4, 8, 8};

    m->f = f;
    oct_rng_init(&m->rng, seed);
    return plain(m, graph_input(f, "x", OCT_DTYPE_F32, 4, dims));
}

static void begin(oct_prune_options *o, double channels)
{
    oct_prune_options_init(o);
    o->channels = channels;
    o->multiple = 1;
}

/* --- each block alone: it lets channels go --- */

static void try_block(fixture *f, size_t i)
{
    oct_prune_options o;
    oct_value *x;
    double gone;
    maker m;

    x = blocks[i](&m, start(&m, f, 100 + i));
    finish(&m, plain(&m, x));
    begin(&o, .5);
    gone = prune_both(f, f->g, &o, "block");
    if (gone < .3) fail_msg("block %zu: only %.3f of the MACs went", i, gone);
}

static void each_block(void **state)
{
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(blocks); i++) {
        try_block(f, i);
        oct_graph_free(f->g);
        assert_ok(f->ctx, oct_graph_new(f->ctx, "test", &f->g));
        f->b = (oct_builder){.g = f->g};
    }
}

/* --- random networks --- */

static double try_random(fixture *f, uint64_t seed)
{
    static const char *const kinds[] = {"l1", "l2", "geometric_median", "bn_scale"};
    oct_prune_options o;
    char what[32];
    oct_value *x;
    maker m;
    int n;

    x = start(&m, f, seed);
    n = 3 + (int)oct_rng_below(&m.rng, 6);
    for (int i = 0; i < n; i++) {
        oct_value *y;

        if (x->type.dim[1] > 32 || x->type.dim[1] % 4) x = layer(&m, x, 8, 1, 1);
        y = blocks[oct_rng_below(&m.rng, OCT_COUNT(blocks))](&m, x);
        if (y->type.dim[2] == 8) x = y;
    }
    finish(&m, x);
    begin(&o, .1 + .8 * oct_rng_f64(&m.rng));
    o.importance = kinds[oct_rng_below(&m.rng, OCT_COUNT(kinds))];
    o.global = (int32_t)oct_rng_below(&m.rng, 2);
    snprintf(what, sizeof(what), "seed %d", (int)seed);
    return prune_both(f, f->g, &o, what);
}

static void random_networks(void **state)
{
    fixture *f = *state;
    double sum = 0;

    for (uint64_t seed = 0; seed < 60; seed++) {
        sum += try_random(f, seed);
        oct_graph_free(f->g);
        assert_ok(f->ctx, oct_graph_new(f->ctx, "test", &f->g));
        f->b = (oct_builder){.g = f->g};
    }
    assert_true(sum / 60 > .3);
}

/* --- schedules --- */

static double level(const char *name, double initial, int32_t steps, int32_t epoch)
{
    return oct_prune_schedule_level(oct_prune_schedule_find(name), initial, .5, steps, epoch);
}

static void assert_level(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol)) fail_msg("level %.9g, want %.9g", got, want);
}

/* NNCF's formulas: the end is the target; with a bias three quarters come in an eighth. */
static void schedules(void **state)
{
    (void)state;
    assert_level(level("baseline", 0, 9, 0), .5, 1e-12);
    assert_level(level("exponential", 0, 3, 0), 0, 1e-12);
    assert_level(level("exponential", 0, 3, 1), 1 - sqrt(.5), 1e-12);
    assert_level(level("exponential", .1, 5, 2), 1 - .9 * sqrt(.5 / .9), 1e-12);
    assert_level(level("exponential", 0, 3, 2), .5, 1e-12);
    assert_level(level("exponential", 0, 3, 7), .5, 1e-12);
    assert_level(level("exponential", 0, 1, 0), .5, 1e-12);
    assert_level(level("exponential_with_bias", 0, 9, 0), 0, 1e-9);
    assert_level(level("exponential_with_bias", .05, 9, 0), .05, 1e-9);
    assert_level(level("exponential_with_bias", 0, 9, 1), .375, 1e-9);
    assert_level(level("exponential_with_bias", .05, 9, 1), .375, 1e-9);
    assert_level(level("exponential_with_bias", 0, 9, 8), .5, 1e-9);
}

/* --- zeros --- */

/* Cutting what a mask set to zero is cutting at once. */
static void masks_are_cut(void **state)
{
    fixture *f = *state;
    oct_graph *cut = NULL, *mask = NULL, *both = NULL;
    oct_prune_options o;
    char why[256];
    oct_value *x;
    maker m;

    x = start(&m, f, 5);
    for (size_t i = 0; i < 6; i++)
        x = blocks[i](&m, x);
    finish(&m, x);
    begin(&o, .5);
    assert_ok(f->ctx, oct_prune_run(f->g, &o, &cut, NULL));
    o.mask = 1;
    assert_ok(f->ctx, oct_prune_run(f->g, &o, &mask, NULL));
    oct_prune_options_init(&o);
    o.zeros = 1;
    assert_ok(f->ctx, oct_prune_run(mask, &o, &both, NULL));
    if (!oct_graph_equal(cut, both, why, sizeof(why))) fail_msg("%s", why);
    oct_graph_free(cut);
    oct_graph_free(mask);
    oct_graph_free(both);
}

/* --- importance and targets --- */

/* The weight itself stands for its gradient: small ones matter little then, too. */
static oct_status gradient(void *user, const char *weight, const float **out, int64_t *n)
{
    const oct_value *w = user;

    *out = strcmp(weight, w->name) == 0 ? (const float *)w->data->data : NULL;
    *n = *out ? oct_tensor_len(w->data) : 0;
    return OCT_OK;
}

static float *filter(const oct_graph *g, const char *name, int64_t i, int64_t *len)
{
    const oct_value *w = oct_graph_find_value(g, name);

    assert_non_null(w);
    *len = oct_tensor_len(w->data) / w->type.dim[0];
    return (float *)w->data->data + i * *len;
}

static void least_important_goes_first(void **state)
{
    static const char *const kinds[] = {"l1", "l2", "taylor"};
    fixture *f = *state;
    oct_prune_options o;
    oct_graph *mask = NULL;
    const oct_value *w;
    maker m;
    int64_t n;
    oct_value *x = start(&m, f, 9);
    float *third;

    finish(&m, plain(&m, x));
    w = f->g->first->in[1];
    third = filter(f->g, w->name, 2, &n);
    for (int64_t i = 0; i < n; i++)
        third[i] *= .01f;
    for (size_t k = 0; k < OCT_COUNT(kinds); k++) {
        begin(&o, 1.0 / (double)w->type.dim[0]);
        o.mask = 1;
        o.importance = kinds[k];
        o.gradient = gradient;
        o.gradient_user = (void *)(uintptr_t)w;
        assert_ok(f->ctx, oct_prune_run(f->g, &o, &mask, NULL));
        third = filter(mask, w->name, 2, &n);
        for (int64_t i = 0; i < n; i++)
            assert_true(third[i] == 0.0f);
        oct_graph_free(mask);
    }
}

/* The share that was asked for, or a little more: channels come in fours. */
static void targets_are_met(void **state)
{
    fixture *f = *state;
    oct_prune_totals t = {.struct_size = sizeof(t)};
    oct_prune_result *r = NULL;
    oct_graph *small = NULL;
    oct_prune_options o;
    oct_value *x;
    maker m;

    x = start(&m, f, 21);
    for (int i = 0; i < 4; i++)
        x = emit(f, &oct_op_relu, layer(&m, x, 32, 3, 1), NULL);
    finish(&m, x);
    for (int global = 0; global < 2; global++)
        for (int by_params = 0; by_params < 2; by_params++) {
            double gone;

            oct_prune_options_init(&o);
            o.multiple = 4;
            o.global = global;
            *(by_params ? &o.params_target : &o.flops_target) = .4;
            assert_ok(f->ctx, oct_prune_run(f->g, &o, &small, &r));
            oct_prune_get_totals(r, &t);
            gone = by_params ? 1 - (double)t.params_left / (double)t.params
                             : 1 - (double)t.macs_left / (double)t.macs;
            if (gone < .4 || gone > .44) fail_msg("%.3f went, want .4", gone);
            for (const oct_node *n = small->first; n; n = n->next)
                if (oct_node_is(n, &oct_op_conv)) assert_int_equal(n->out[0]->type.dim[1] % 4, 0);
            oct_prune_result_free(r);
            oct_graph_free(small);
        }
}

/* Two files tell the same as the pruning did. */
static void networks_are_compared(void **state)
{
    fixture *f = *state;
    oct_prune_totals t = {.struct_size = sizeof(t)}, u = {.struct_size = sizeof(u)};
    oct_prune_layer a = {.struct_size = sizeof(a)}, b = {.struct_size = sizeof(b)};
    oct_prune_result *r = NULL, *q = NULL;
    oct_graph *small = NULL, *other = NULL;
    oct_prune_options o;
    oct_value *x;
    maker m;

    x = start(&m, f, 21);
    for (int i = 0; i < 3; i++)
        x = emit(f, &oct_op_relu, layer(&m, x, 32, 3, 1), NULL);
    finish(&m, x);
    begin(&o, .5);
    assert_ok(f->ctx, oct_prune_run(f->g, &o, &small, &r));
    assert_ok(f->ctx, oct_prune_compare(f->g, small, &q));
    oct_prune_get_totals(r, &t);
    oct_prune_get_totals(q, &u);
    assert_memory_equal(&t, &u, sizeof(t));
    for (int32_t i = 0; oct_prune_get_layer(r, i, &a); i++) {
        assert_true(oct_prune_get_layer(q, i, &b));
        assert_string_equal(a.name, b.name);
        assert_true(a.channels_left == b.channels_left && a.macs_left == b.macs_left);
    }
    oct_prune_result_free(q);
    assert_ok(f->ctx, oct_graph_clone(small, &other));
    for (oct_node *n = other->first; n; n = n->next)
        n->name = "?";
    assert_fails(f->ctx, oct_prune_compare(f->g, other, &q), OCT_ERR_ARG, "names");
    assert_null(q);
    oct_prune_result_free(r);
    oct_graph_free(small);
    oct_graph_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_block, setup, teardown),
        cmocka_unit_test_setup_teardown(random_networks, setup, teardown),
        cmocka_unit_test_setup_teardown(least_important_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(targets_are_met, setup, teardown),
        cmocka_unit_test_setup_teardown(masks_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(networks_are_compared, setup, teardown),
        cmocka_unit_test(schedules),
    };

    return run_test_group(tests);
}
