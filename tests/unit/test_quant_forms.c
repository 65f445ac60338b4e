/* SPDX-License-Identifier: Apache-2.0 */
/* Forms that ONNX Runtime computes fast give the same numbers as the plain ones. */
#include "tests/unit/place_net.h"

#include <math.h>

#include "quant/lower/lower.h"

static void set_weight(placed *p, int32_t point)
{
    const oct_value *w = p->m->points[point].value;
    const int64_t n = w->type.dim[0];
    float scale[16];
    int32_t zero[16] = {0};

    assert_true(n <= 16);
    for (int64_t i = 0; i < n; i++)
        scale[i] = 0.01f + 0.001f * (float)i;
    assert_ok(p->f->ctx, oct_qpoint_set(p->m, point, scale, zero, n, "test"));
}

/* All activations have one scale. */
static void quantize(placed *p)
{
    const float scale = 0.03f;
    const int32_t zero = 120;

    place(p);
    for (int32_t i = 0; i < p->m->n_points; i++) {
        if (p->m->points[i].role == OCT_QROLE_WEIGHT) set_weight(p, i);
        if (p->m->points[i].role == OCT_QROLE_ACT && p->m->points[i].state == OCT_QSTATE_ACTIVE)
            assert_ok(p->f->ctx, oct_qpoint_set(p->m, i, &scale, &zero, 1, "test"));
    }
}

static int count(const oct_graph *g, const oct_op *op)
{
    int n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += k->op == op;
    return n;
}

static oct_tensor *eval(placed *p, const oct_graph *g, oct_tensor *x)
{
    oct_tensor *y[4] = {0};

    assert_ok(p->f->ctx, oct_graph_eval(g, &x, y, NULL));
    for (int i = 1; i < 4; i++)
        oct_tensor_unref(y[i]);
    return y[0];
}

/* The graph for a file, after its first result was compared with a simulation's. */
static oct_graph *file_of(placed *p)
{
    const oct_lower_options o = {0};
    oct_graph *plain = NULL, *file = NULL;
    oct_tensor *x = NULL, *a, *b;

    assert_ok(p->f->ctx, oct_lower(p->m, NULL, &plain));
    assert_ok(p->f->ctx, oct_lower(p->m, &o, &file));
    assert_ok(p->f->ctx, oct_tensor_make(p->f->ctx, &p->f->g->inputs[0]->type, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)x->data)[i] = (float)(oct_rng_f64(&p->rng) * 4 - 2);
    a = eval(p, plain, x);
    b = eval(p, file, x);
    assert_true(oct_type_equal(&a->type, &b->type));
    for (int64_t i = 0; i < oct_tensor_len(a); i++) {
        const float want = ((float *)a->data)[i], got = ((float *)b->data)[i];

        assert_true(fabsf(want - got) <= 1e-4f * (1 + fabsf(want)));
    }
    oct_tensor_unref(a);
    oct_tensor_unref(b);
    oct_tensor_unref(x);
    oct_graph_free(plain);
    return file;
}

static oct_value *doubled(placed *p, oct_value *x, const char *coordinates, const char *nearest)
{
    oct_tensor *t = NULL;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, (int64_t[]){4});
    oct_node *n;

    assert_ok(p->f->ctx, oct_tensor_make(p->f->ctx, &type, &t));
    memcpy(t->data, (float[]){1, 1, 2, 3}, t->size);
    n = node(p->f, &oct_op_resize, x, NULL, oct_value_const(p->f->g, NULL, t));
    assert_ok(p->f->ctx, oct_node_set_str(n, "mode", "nearest"));
    assert_ok(p->f->ctx, oct_node_set_str(n, "coordinate_transformation_mode", coordinates));
    assert_ok(p->f->ctx, oct_node_set_str(n, "nearest_mode", nearest));
    return infer(p->f, n);
}

static void repeated_pixels_are_copies(void **state)
{
    static const struct {
        const char *coordinates, *nearest;
        int n_resize;
    } cases[] = {{"asymmetric", "floor", 0},
                 {"half_pixel", "round_prefer_floor", 0},
                 {"asymmetric", "ceil", 1}};

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        placed p;
        oct_graph *g;
        oct_value *x;

        if (i > 0) {
            teardown(state);
            setup(state);
        }
        start(&p, *state, "ort");
        x = layer(&p, "a", image(&p, 4), 4);
        x = layer(&p, "b", doubled(&p, x, cases[i].coordinates, cases[i].nearest), 4);
        output(&p, emit(p.f, &oct_op_exp, x, NULL));
        quantize(&p);
        g = file_of(&p);
        assert_int_equal(count(g, &oct_op_resize), cases[i].n_resize);
        oct_graph_free(g);
        finish(&p);
    }
}

static void a_concat_of_one_scale_joins_codes(void **state)
{
    placed p;
    oct_graph *g;
    oct_value *x, *y;

    start(&p, *state, "ort");
    x = image(&p, 4);
    y = join(&p, layer(&p, "a", x, 4), layer(&p, "b", x, 4), 1);
    output(&p, emit(p.f, &oct_op_exp, layer(&p, "c", y, 4), NULL));
    quantize(&p);
    g = file_of(&p);
    for (const oct_node *n = g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_concat)) assert_int_equal(n->in[0]->type.dtype, OCT_DTYPE_U8);
    assert_int_equal(count(g, &oct_op_concat), 1);
    oct_graph_free(g);
    finish(&p);
}

static void a_last_layer_of_single_pixels_is_a_product(void **state)
{
    const conv_case one = {4, 5, 1, 1, 1, 0, 1};
    placed p;
    oct_graph *g;
    oct_value *y;

    start(&p, *state, "ort");
    y = conv(p.f, &p.rng, layer(&p, "a", image(&p, 4), 4), &one);
    output(&p, emit(p.f, &oct_op_exp, y, NULL));
    quantize(&p);
    p.m->points[p.m->of_value[y->id]].state = OCT_QSTATE_OFF;
    g = file_of(&p);
    assert_int_equal(count(g, &oct_op_gemm), 1);
    assert_int_equal(count(g, &oct_op_conv), 1); /* the first */
    oct_graph_free(g);
    finish(&p);
}

/* Boxes and scores of two levels. */
static void parts_that_are_split_again_are_never_joined(void **state)
{
    const int64_t rows[] = {1, 8, -1}, parts[] = {4, 4};
    oct_value *in[2], *a, *b;
    oct_node *split;
    oct_graph *g;
    placed p;

    start(&p, *state, "ort");
    a = image(&p, 4);
    b = emit(p.f, &oct_op_exp, a, NULL);
    for (int i = 0; i < 2; i++)
        in[i] = emit(p.f, &oct_op_reshape, join(&p, a, b, 1), oct_ints(&p.f->b, rows, 3));
    in[0] = join(&p, in[0], in[1], 2);
    in[1] = oct_ints(&p.f->b, parts, 2);
    split = oct_emit_node(&p.f->b, &oct_op_split, in, 2, 2);
    assert_ok(p.f->ctx, oct_node_set_int(split, "axis", 1));
    assert_ok(p.f->ctx, oct_node_infer(split));
    output(&p, emit(p.f, &oct_op_sub, split->out[0], split->out[1]));
    assert_ok(p.f->ctx, oct_qmap_new(p.f->g, oct_target_named("ort"), &p.m));
    g = file_of(&p);
    assert_int_equal(count(g, &oct_op_split), 0);
    assert_int_equal(count(g, &oct_op_concat), 2);
    oct_graph_free(g);
    finish(&p);
}

/* Two levels side by side, or one; sides or pixels first; from a layer or from anywhere. */
static void bins_lie_side_by_side(void **state)
{
    const conv_case one = {4, 16, 1, 1, 1, 0, 1};

    for (int i = 0; i < 8; i++) {
        const bool is_quantized = i & 1, has_levels = i & 2, by_pixel = i & 4;
        const oct_node *soft;
        oct_value *x, *y;
        oct_graph *g;
        placed p;

        if (i > 0) {
            teardown(state);
            setup(state);
        }
        start(&p, *state, "ort");
        x = layer(&p, "a", image(&p, 4), 4);
        y = conv(p.f, &p.rng, x, &one);
        x = has_levels ? reshape(p.f, y, 3, (const int64_t[]){1, 16, 64}) : y;
        if (has_levels) x = join(&p, x, emit(p.f, &oct_op_exp, x, NULL), 2);
        x = means(p.f, &p.rng, x, 4, by_pixel);
        output(&p, emit(p.f, &oct_op_exp, x, NULL));
        if (is_quantized) {
            quantize(&p);
            p.m->points[p.m->of_value[y->id]].state = OCT_QSTATE_OFF;
        } else {
            assert_ok(p.f->ctx, oct_qmap_new(p.f->g, oct_target_named("ort"), &p.m));
        }
        g = file_of(&p);
        assert_int_equal(count(g, &oct_op_softmax), has_levels ? 2 : 1);
        for (soft = g->first; !oct_node_is(soft, &oct_op_softmax);)
            soft = soft->next;
        assert_int_equal(oct_node_attr(soft, "axis")->i, 2);
        assert_int_equal(soft->out[0]->type.dim[2], 4);
        assert_int_equal(count(g, &oct_op_conv), is_quantized ? 1 : 2);
        /* nothing is turned back between a product and its means */
        if (is_quantized && !has_levels)
            assert_int_equal(count(g, &oct_op_transpose), by_pixel ? 1 : 2);
        oct_graph_free(g);
        finish(&p);
    }
}

/* Volumes, batches that a Reshape makes of pixels, and a sum that leaves out every other side: all
 * look much like means of pictures. */
static void what_only_looks_like_means_is_right_too(void **state)
{
    static const int64_t volume[] = {1, 16, 2, 4, 4}, batches[] = {4, 16, 16};

    for (int i = 0; i < 3; i++) {
        oct_value *x;
        oct_graph *g;
        placed p;

        if (i > 0) {
            teardown(state);
            setup(state);
        }
        start(&p, *state, "ort");
        x = i == 0 ? graph_input(p.f, "x", OCT_DTYPE_F32, 5, volume) : image(&p, 16);
        x = emit(p.f, &oct_op_exp, x, NULL);
        if (i == 1) x = reshape(p.f, x, 3, batches);
        x = means(p.f, &p.rng, x, 4, false);
        if (i == 2) {
            assert_ok(p.f->ctx, oct_node_set_ints(x->producer, "strides", (int64_t[]){2, 1}, 2));
            assert_ok(p.f->ctx, oct_node_set_ints(x->producer, "pads", (int64_t[]){2, 0, 2, 0}, 4));
            x = infer(p.f, x->producer);
            assert_int_equal(x->type.dim[2], 4);
        }
        output(&p, emit(p.f, &oct_op_exp, x, NULL));
        assert_ok(p.f->ctx, oct_qmap_new(p.f->g, oct_target_named("ort"), &p.m));
        g = file_of(&p);
        assert_int_equal(count(g, &oct_op_mat_mul), i == 1);
        oct_graph_free(g);
        finish(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(repeated_pixels_are_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(a_concat_of_one_scale_joins_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_last_layer_of_single_pixels_is_a_product, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(parts_that_are_split_again_are_never_joined, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bins_lie_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(what_only_looks_like_means_is_right_too, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
