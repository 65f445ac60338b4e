/* SPDX-License-Identifier: Apache-2.0 */
/* Whole quantizations of small networks that were once refused, or quantized wrongly. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

/* Quantizes the fixture's graph; the noise of its first output must be below `most`. */
static void quantizes(files *t, const oct_dataset *d, const char *target, double most)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;
    double noise;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    noise = job_noise(t, q);
    if (!(noise < most)) fail_msg("target %s: noise %g, want %g", target, noise, most);
    oct_quantized_free(q);
}

static const char *const targets[] = {"octet", "ort", "openvino", "tensorrt", "npu-pow2"};

enum { N_TARGETS = sizeof(targets) / sizeof(*targets) };

/* --- one weight, several readers --- */

static oct_value *softmax(fixture *f, oct_value *x, int64_t axis)
{
    oct_node *n = node(f, &oct_op_softmax, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", axis));
    return infer(f, n);
}

/* Distances to the sides of a box, at two levels, by one projection (YOLO-NAS has such heads): the
 * factors that are folded into the projection differ from level to level. */
static void projects_levels_by_one_weight(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *w, *part[2];
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    x = picture(f, 1, 3, 8, 8);
    w = weights(f, &rng, 4, (int64_t[]){1, 8, 1, 1});
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    for (int i = 0; i < 2; i++) {
        const int64_t side = i ? 4 : 8;

        y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){8, 8, 3, i + 1, 1, 1, 1}), NULL);
        part[i] = conv(f, &rng, y, &(conv_case){8, 32, 1, 1, 1, 0, 1});
        part[i] = reshape(f, part[i], 4, (int64_t[]){1, 4, 8, side * side});
        part[i] = softmax(f, transpose(f, part[i], 4, (int64_t[]){0, 2, 1, 3}), 1);
        part[i] = emit(f, &oct_op_conv, part[i], w);
        output(f, part[i]);
    }
    d = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, d, targets[i], 0.02);
    oct_dataset_close(d);
}

/* Heads that are applied to several levels, as YOLO-FastestV2's: all their weights are shared, and
 * sigmoid and softmax follow. */
static void shares_heads_between_levels(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *w[3], *out[3];
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 6);
    x = picture(f, 1, 3, 16, 16);
    w[0] = weights(f, &rng, 4, (int64_t[]){12, 8, 1, 1});
    w[1] = weights(f, &rng, 4, (int64_t[]){3, 8, 1, 1});
    w[2] = weights(f, &rng, 4, (int64_t[]){5, 8, 1, 1});
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    for (int i = 0; i < 2; i++) {
        y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){8, 8, 3, 2, 1, 1, 8}), NULL);
        for (int k = 0; k < 3; k++)
            out[k] = emit(f, &oct_op_conv, y, w[k]);
        out[0] = emit(f, &oct_op_sigmoid, out[0], NULL);
        out[1] = emit(f, &oct_op_sigmoid, out[1], NULL);
        out[2] = softmax(f, out[2], 1);
        output(f, transpose(f, concat(f, out, 3, 1), 4, (int64_t[]){0, 2, 3, 1}));
    }
    d = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, d, targets[i], 0.02);
    oct_dataset_close(d);
}

/* --- division --- */

/* A variance, the small number that keeps it from zero, a root and a division, as normalisation is
 * written by hand; a product reads the variance too. Rounded to codes, small ones would be 0. */
static void does_not_divide_by_zero(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *d, *v, *square;
    oct_node *n;
    oct_dataset *data;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    x = picture(f, 1, 4, 8, 8);
    y = conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1});
    for (int64_t i = 0; i < 4 * 9 * 4; i++) /* half of the channels hardly vary */
        ((float *)y->producer->in[1]->data->data)[i] *= 1e-3f;
    n = node(f, &oct_op_reduce_mean, y, oct_ints(&f->b, (int64_t[]){2, 3}, 2), NULL);
    d = emit(f, &oct_op_sub, y, infer(f, n));
    square = emit(f, &oct_op_mul, d, d);
    n = node(f, &oct_op_reduce_mean, square, oct_ints(&f->b, (int64_t[]){2, 3}, 2), NULL);
    v = emit(f, &oct_op_add, infer(f, n), oct_scalar(&f->b, 1e-5f));
    output(f, emit(f, &oct_op_div, d, emit(f, &oct_op_sqrt, v, NULL)));
    output(f, emit(f, &oct_op_conv, v, weights(f, &rng, 4, (int64_t[]){4, 8, 1, 1})));
    data = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, data, targets[i], 2);
    oct_dataset_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(projects_levels_by_one_weight, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(shares_heads_between_levels, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(does_not_divide_by_zero, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
