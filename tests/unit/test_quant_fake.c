/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantization computes what the quantized file computes, before and after learning. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include "op/grad/rules.h"
#include "quant/learn/fake.h"
#include "quant/quantize.h"

static const char *const targets[] = {"octet",    "ort",      "openvino",
                                      "tensorrt", "npu-pow2", "npu-pow2-pc"};

/* Convolutions, one of them depthwise, a residual, a Concat and pooling. */
static oct_value *network(fixture *f)
{
    oct_value *x = picture(f, 1, 3, 16, 16), *a, *b, *y;
    oct_node *pool;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    a = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 16, 3, 2, 1, 1, 1}), NULL);
    b = conv(f, &rng, a, &(conv_case){16, 16, 3, 1, 1, 1, 16});
    b = emit(f, &oct_op_relu, b, NULL);
    b = conv(f, &rng, b, &(conv_case){16, 16, 1, 1, 1, 0, 1});
    b = emit(f, &oct_op_add, a, b);
    y = concat(f, (oct_value *[]){a, b}, 2, 1);
    pool = node(f, &oct_op_max_pool, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(pool, "kernel_shape", (int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(pool, "strides", (int64_t[]){2, 2}, 2));
    y = conv(f, &rng, infer(f, pool), &(conv_case){32, 8, 3, 1, 1, 1, 1});
    output(f, emit(f, &oct_op_sigmoid, y, NULL));
    return x;
}

static oct_quantized *quantize_for(files *t, const oct_dataset *d, const char *target)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    return q;
}

static double distance(const oct_tensor *a, const oct_tensor *b)
{
    double sum = 0;

    for (int64_t i = 0; i < oct_tensor_len(a); i++)
        sum += pow(oct_tensor_get_f64(a, i) - oct_tensor_get_f64(b, i), 2);
    return sqrt(sum);
}

/* A copy of the float network with FakeQuant nodes. */
static oct_graph *faked(files *t, oct_fake *f, const oct_graph *g)
{
    oct_graph *copy = NULL;

    assert_ok(t->ctx, oct_graph_clone(g, &copy));
    assert_ok(t->ctx, oct_fake_insert(f, copy));
    return copy;
}

/*
 * Biases have 32 bits in the file, so a value at a tie may fall to the other side: what that makes
 * of the outputs is small beside what quantizing makes of them.
 */
static void agree(files *t, oct_quantized *q, oct_fake *f, const oct_graph *learned,
                  const char *target)
{
    oct_graph *copy = faked(t, f, learned), *file = NULL;
    oct_tensor *want, *got, *exact;

    assert_ok(t->ctx, oct_quantized_lower(q, &file));
    want = answer(t, file);
    got = answer(t, copy);
    exact = answer(t, learned);
    if (!(distance(got, want) < .2 * distance(exact, want)))
        fail_msg("%s: %g from the file, which is %g from float", target, distance(got, want),
                 distance(exact, want));
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_tensor_unref(exact);
    oct_graph_free(copy);
    oct_graph_free(file);
}

static void change(oct_graph *g, oct_value *v, oct_rng *rng, float most)
{
    oct_tensor *t = NULL;

    assert_int_equal(oct_tensor_copy(g->ctx, v->data, &t), OCT_OK);
    for (int64_t k = 0; k < oct_tensor_len(t); k++)
        ((float *)t->data)[k] += (float)(oct_rng_f64(rng) * 2 - 1) * most;
    oct_tensor_unref(v->data);
    v->data = t;
}

/* Weights and scales that are a little different, as learning makes them: the operands of FakeQuant
 * nodes that are learned. */
static void learn(oct_graph *g, const oct_graph *copy)
{
    oct_rng rng;

    oct_rng_init(&rng, 21);
    for (const oct_node *n = copy->first; n; n = n->next) {
        if (!oct_node_is(n, &oct_op_fake_quant)) continue;
        if (n->in[0]->data) change(g, g->values[n->in[0]->id], &rng, .02f);
        if (oct_node_attr(n, "learns")->i) change(g, g->values[n->in[1]->id], &rng, .1f);
    }
}

static void file_has_what_was_learned(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, network(t->f), 1);

    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        oct_quantized *q = quantize_for(t, d, targets[i]);
        oct_graph *g = oct_quantized_float(q), *learned = NULL, *copy;
        oct_fake *f = NULL;

        assert_ok(t->ctx, oct_fake_new(g, oct_quantized_map(q), &(oct_fake_options){0}, &f));
        assert_ok(t->ctx, oct_fake_take(f, g)); /* weights on their grids */
        assert_ok(t->ctx, oct_graph_clone(g, &learned));
        agree(t, q, f, learned, targets[i]);
        copy = faked(t, f, g);
        learn(learned, copy);
        oct_graph_free(copy);
        assert_ok(t->ctx, oct_fake_take(f, learned));
        agree(t, q, f, learned, targets[i]);
        oct_graph_free(learned);
        oct_fake_free(f);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

/* Steps of 4 bits are 17 times as wide as those of 8. */
static void grids_are_known(void **state)
{
    static const int32_t bits[] = {8, 4};
    files *t = *state;
    const oct_value *x = network(t->f);
    oct_dataset *d = items(t, x, 1);

    for (size_t i = 0; i < OCT_COUNT(targets); i++)
        for (int b = 0; b < 2; b++) {
            const oct_fake_options fake = {0};
            oct_quantize_options o;
            oct_quantized *q = NULL;
            oct_fake *f = NULL;
            int32_t n[2] = {0};

            oct_quantize_options_init(&o);
            o.target = targets[i];
            o.tail = "off";
            o.weight_bits = bits[b];
            o.weight_bits_ratio = 1;
            assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
            assert_ok(t->ctx,
                      oct_fake_new(oct_quantized_float(q), oct_quantized_map(q), &fake, &f));
            for (const oct_node *k = oct_quantized_float(q)->first; k; k = k->next) {
                oct_fake_grid g;

                if (!oct_node_is(k, &oct_op_conv)) continue;
                g = oct_fake_grid_of(f, k->in[1]);
                if (g.step > 0) n[g.step_of_8_bits < g.step / 10]++; /* others are float */
            }
            assert_true(n[0] + n[1] > 0);
            assert_int_equal(n[1] > 0, bits[b] == 4);
            assert_true(oct_fake_grid_of(f, NULL).step == 0);
            oct_fake_free(f);
            oct_quantized_free(q);
        }
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_has_what_was_learned, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(grids_are_known, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
