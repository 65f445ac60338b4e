/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two targets: what rounding takes from biases of 8 bits, weights give that are rounded
 * the other way; steps after SiLU. */
#include "tests/unit/quant_job.h"

#include "quant/quantized.h"
#include "quant/solve/solve.h"

enum { CHANNELS = 16, OUTPUTS = 24, SIDE = 24 };

/* A convolution whose inputs have means, and whose biases are large. */
static oct_value *make(files *t)
{
    static const conv_case k = {CHANNELS, OUTPUTS, 3, 1, 1, 1, 1};
    static const conv_case first = {3, CHANNELS, 3, 1, 1, 1, 1};
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 3, SIDE, SIDE), *y;
    oct_rng rng;
    float *b;

    oct_rng_init(&rng, 11);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &first), NULL);
    y = conv(f, &rng, y, &k);
    b = y->producer->in[2]->data->data;
    for (int i = 0; i < OUTPUTS; i++)
        b[i] = (float)i * .37f - 4;
    y = emit(f, &oct_op_relu, y, NULL);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    return x;
}

static oct_quantized *quantize(files *t, oct_dataset *d, int32_t bias_bits)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.target = "npu-pow2";
    o.bias_bits = bias_bits;
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    return q;
}

/* Codes of weights that are not the nearest, of the layer with large biases. */
static const oct_qpoint *moved_point(const oct_qmap *m)
{
    const oct_qpoint *found = NULL;

    for (int32_t i = 0; i < m->n_points; i++)
        if (m->points[i].n_moved > 0 && (!found || m->points[i].value->type.dim[0] == OUTPUTS))
            found = &m->points[i];
    return found;
}

/* Of the means of output channels: squared error over power. */
static double noise_of(files *t, const oct_graph *g)
{
    oct_graph *exact = t->f->g;
    oct_tensor *want = NULL, *got = NULL;
    double error = 0, power = 0;

    run_graph(t->f, NULL, &want);
    assert_ok(t->ctx, oct_graph_clone(g, &t->f->g));
    run_graph(t->f, NULL, &got);
    for (int64_t c = 0, k = 0; c < OUTPUTS; c++) {
        double y = 0, e = 0;

        for (int64_t i = 0; i < SIDE * SIDE; i++, k++) {
            y += oct_tensor_get_f64(want, k);
            e += oct_tensor_get_f64(got, k) - oct_tensor_get_f64(want, k);
        }
        error += e * e;
        power += y * y;
    }
    oct_graph_free(t->f->g);
    t->f->g = exact;
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    return error / power;
}

static void weights_make_up_for_biases(void **state)
{
    files *t = *state;
    const oct_value *x = make(t);
    oct_dataset *d = items(t, x, 2);
    oct_quantized *q = quantize(t, d, 8), *wide = quantize(t, d, 16);
    const oct_qpoint *p = moved_point(oct_quantized_map(q));
    double cancelled, rounded;
    oct_graph *plain = NULL;
    oct_qmap *m, *copy = NULL;

    assert_non_null(p);
    assert_null(moved_point(oct_quantized_map(wide)));
    for (int64_t i = 0; i < p->n_moved; i++) {
        assert_int_not_equal(p->moved[i], 0);
        for (int64_t k = 0; k < i; k++)
            assert_int_not_equal(p->moved[i] < 0 ? -p->moved[i] : p->moved[i],
                                 p->moved[k] < 0 ? -p->moved[k] : p->moved[k]);
    }
    cancelled = noise_of(t, oct_quantized_graph(q));
    /* The same without. */
    m = oct_quantized_map(q);
    assert_ok(t->ctx, oct_qmap_clone(m, &copy));
    assert_int_equal(moved_point(copy)->n_moved, p->n_moved);
    oct_qmap_free(copy);
    for (int32_t i = 0; i < m->n_points; i++)
        assert_ok(t->ctx, oct_qpoint_move(m, i, NULL, 0));
    assert_ok(t->ctx, oct_quantized_lower(q, &plain));
    rounded = noise_of(t, plain);
    oct_graph_free(plain);
    assert_true(cancelled < .75 * rounded);
    oct_quantized_free(q);
    oct_quantized_free(wide);
    oct_dataset_close(d);
}

/* A file keeps them, and one that names no element is refused. */
static void files_keep_them(void **state)
{
    files *t = *state;
    const oct_value *x = make(t);
    oct_dataset *d = items(t, x, 2);
    oct_quantized *q = quantize(t, d, 8);
    const oct_qpoint *p = moved_point(oct_quantized_map(q));
    oct_qmap *m = oct_quantized_map(q), *read = NULL;
    const int64_t beyond = oct_tensor_len(p->value->data) + 1;

    assert_ok(t->ctx, oct_qmap_save(m, below(t, "q.json")));
    assert_ok(t->ctx, oct_qmap_load(oct_quantized_float(q), below(t, "q.json"), &read));
    assert_memory_equal(moved_point(read)->moved, p->moved, (size_t)p->n_moved * sizeof(int64_t));
    oct_qmap_free(read);
    assert_int_equal(oct_qpoint_move(m, (int32_t)(p - m->points), &beyond, 1), OCT_ERR_ARG);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* The scale after an activation of values in the hundreds. */
static float step_after(files *t, const oct_op *act, oct_dataset **d, bool *is_snapped)
{
    static const conv_case k = {3, CHANNELS, 3, 1, 1, 1, 1}, next = {CHANNELS, 4, 1, 1, 1, 0, 1};
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 3, SIDE, SIDE), *y;
    oct_quantized *q;
    float scale = 0;
    oct_rng rng;

    oct_rng_init(&rng, 2);
    y = conv(f, &rng, x, &k);
    for (int64_t i = 0; i < oct_tensor_len(y->producer->in[1]->data); i++)
        ((float *)y->producer->in[1]->data->data)[i] *= 100;
    y = emit(f, act, y, NULL);
    y->name = "after";
    assert_ok(f->ctx, oct_graph_add_output(f->g, conv(f, &rng, y, &next)));
    if (!*d) *d = items(t, x, 2);
    q = quantize(t, *d, 8);
    for (int32_t i = 0; i < oct_quantized_map(q)->n_points; i++) {
        const oct_qpoint *p = &oct_quantized_map(q)->points[i];

        if (strcmp(p->value->name, "after") != 0) continue;
        scale = p->scale[0];
        *is_snapped = strstr(p->scale_by, "SiLU grid") != NULL;
    }
    oct_quantized_free(q);
    return scale;
}

/* A step above SiLU's lowest value is halved, however large. */
static void coarse_steps_after_silu_are_halved(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    bool is_snapped = false;
    float silu, relu = step_after(t, &oct_op_relu, &d, &is_snapped);

    assert_true(relu > .6f && !is_snapped);
    restart(t->f);
    silu = step_after(t, &oct_op_swish, &d, &is_snapped);
    assert_true(is_snapped);
    assert_true(silu == relu / 2);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_make_up_for_biases, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(files_keep_them, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(coarse_steps_after_silu_are_halved, setup_files,
                                        teardown_files),
    };

    return run_test_group(tests);
}
