/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers keep weights of 8 bits where fewer were asked for. */
#include "quant/bits/few_bits.h"

#include "tests/unit/place_net.h"
#include "tests/unit/quant_job.h"

/* The most noise for the weights comes first; what does no harm gets no room. */
static void noise_for_weights_decides(void **state)
{
    static const struct {
        oct_few_bits_layer layers[4];
        double share;
        bool keeps[4];
    } of[] = {
        {{{.01, .04}, {.03, .04}, {.02, .04}, {.5, .9}}, .1, {false, true, true, false}},
        {{{.01, .04}, {.03, .12}, {.02, .04}, {.05, .04}}, .1, {false, false, true, true}},
        {{{.1, .09}, {.09, .02}, {.001, .01}, {.08, .02}}, .1, {false, true, true, true}},
        {{{-.01, .01}, {0, .01}, {1e-9, .01}, {.1, .2}}, .1, {false, false, true, false}},
        {{{.01, .01}, {.01, .01}, {.01, .01}, {.01, .01}}, .025, {true, true, false, false}},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(of); i++) {
        oct_arena *a = oct_arena_new(f->ctx);
        oct_few_bits_layer l[4];

        memcpy(l, of[i].layers, sizeof(l));
        assert_ok(f->ctx, oct_few_bits_pick(l, 4, of[i].share, a));
        for (int k = 0; k < 4; k++)
            if (l[k].keeps != of[i].keeps[k])
                fail_msg("case %d, layer %d: %d", (int)i, k, l[k].keeps);
        oct_arena_free(a);
    }
}

/* A convolution, its weights times `factor`, and Relu. */
static oct_value *layer_of(fixture *f, oct_rng *rng, oct_value *x, const conv_case *c, float factor,
                           const char *name)
{
    oct_value *y = conv(f, rng, x, c);
    oct_tensor *w = y->producer->in[1]->data;

    for (int64_t i = 0; i < oct_tensor_len(w); i++)
        ((float *)w->data)[i] *= factor;
    y->producer->name = name;
    return emit(f, &oct_op_relu, y, NULL);
}

static int bits_of(const oct_quantized *q, const char *name)
{
    const oct_node *n = oct_graph_find_node(oct_quantized_graph(q), name);
    const oct_node *dq = n ? n->in[1]->producer : NULL;

    while (dq &&
           !oct_node_is(dq, &oct_op_dequantize_linear)) /* folded scales are undone after it */
        dq = dq->in[0]->producer;
    assert_non_null(dq);
    return dq->in[0]->type.dtype == OCT_DTYPE_I4 ? 4 : 8;
}

/* There is room (91 of 456 weights) for one of two layers of 64. The first hardly matters. */
static void the_layer_that_matters_keeps_8_bits(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    const conv_case small = {8, 8, 1, 1, 1, 0, 1};
    oct_value *x, *y, *a, *b;
    oct_dataset *d;
    oct_quantize_options o;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 16, 16});
    y = layer_of(f, &rng, x, &(conv_case){3, 8, 1, 1, 1, 0, 1}, 1, "first");
    a = layer_of(f, &rng, y, &small, .003f, "faint");
    b = layer_of(f, &rng, y, &small, 1, "loud");
    y = emit(f, &oct_op_add, a, b);
    y = layer_of(f, &rng, y, &(conv_case){8, 4, 3, 1, 1, 1, 1}, 1, "big");
    y = layer_of(f, &rng, y, &(conv_case){4, 4, 1, 1, 1, 0, 1}, 1, "last");
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    d = items(t, x, 2);
    oct_quantize_options_init(&o);
    o.weight_bits = 4;
    o.tail = "off";
    for (int k = 0; k < 3; k++) {
        const oct_quant_override over = {.name = "loud", .weight_bits = 4};
        const bool named = k == 1; /* who names a layer has the last word */
        oct_quantized *q = NULL;

        o.overrides = &over;
        o.n_overrides = named;
        o.override_size = sizeof(over);
        o.weight_bits_ratio = k == 2 ? 1 : 0; /* room for none: 4 bits wherever they may be */
        assert_ok(f->ctx, oct_quantize(f->g, d, &o, &q));
        assert_int_equal(bits_of(q, "first"), 8);
        if (!named) assert_int_equal(bits_of(q, "faint"), 4);
        assert_int_equal(bits_of(q, "loud"), k == 0 ? 8 : 4);
        assert_int_equal(bits_of(q, "big"), 4);
        assert_int_equal(bits_of(q, "last"), 8);
        oct_quantized_free(q);
    }
    o.weight_bits_ratio = 1.5;
    assert_fails(f->ctx, oct_quantize(f->g, d, &o, &(oct_quantized *){NULL}), OCT_ERR_ARG,
                 "weight_bits_ratio 1.5: a share of 0 to 1");
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(noise_for_weights_decides, setup, teardown),
        cmocka_unit_test_setup_teardown(the_layer_that_matters_keeps_8_bits, setup_files,
                                        teardown_files),
    };

    return run_test_group(tests);
}
