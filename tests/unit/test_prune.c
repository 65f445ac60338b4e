/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning: random networks without their channels compute what they compute with zeros there. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_block, setup, teardown),
        cmocka_unit_test_setup_teardown(random_networks, setup, teardown),
    };

    return run_test_group(tests);
}
