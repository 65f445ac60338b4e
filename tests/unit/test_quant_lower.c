/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: the graph with Q and DQ nodes means exactly what the qmap says.
 */
#include "tests/unit/lower_net.h"

static void means_what_the_points_say(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    const int32_t x_at = act(f, m, n.x, 0.01f, 100), w_at = weight(f, m, n.conv->in[1]);
    oct_tensor *x = numbers(f, &n.x->type, 3), *in[3] = {0}, *want = NULL, *got;
    oct_graph *g;

    bias(f, m, n.conv);
    g = lower(f, m, NULL);
    assert_int_equal(count(g, &oct_op_quantize_linear), 1);
    assert_int_equal(count(g, &oct_op_dequantize_linear), 3);
    assert_string_equal(g->outputs[0]->name, n.y->name);

    assert_ok(f->ctx, oct_tensor_copy(f->ctx, x, &in[0]));
    assert_ok(f->ctx, oct_tensor_copy(f->ctx, n.conv->in[1]->data, &in[1]));
    assert_ok(f->ctx, oct_tensor_copy(f->ctx, n.conv->in[2]->data, &in[2]));
    fake_in_place(m, x_at, in[0]);
    fake_in_place(m, w_at, in[1]);
    for (int64_t i = 0; i < 8; i++) {
        const float s = 0.01f * m->points[w_at].scale[i];
        float *b = &((float *)in[2]->data)[i];

        *b = (float)rint((double)*b / (double)s) * s;
    }
    assert_ok(f->ctx, oct_node_eval(n.conv, in, &want, NULL));
    got = eval(f, g, x);
    assert_true(oct_tensor_equal(got, want));

    for (int i = 0; i < 3; i++)
        oct_tensor_unref(in[i]);
    oct_tensor_unref(x);
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_graph_free(g);
    oct_qmap_free(m);
}

static void stores_integers(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    const char *const names[] = {"q1", "s1", "z1", "d1", "c2", "s2", "c3", "s3"};
    oct_node *c, *w, *b;
    oct_codes codes_;
    oct_graph *g;

    act(f, m, n.x, 0.01f, 100);
    weight(f, m, n.conv->in[1]);
    bias(f, m, n.conv);
    g = lower(f, m, NULL);
    c = oct_graph_find_node(g, n.conv->name);
    assert_non_null(c);
    w = producer_of(c->in[1], &oct_op_dequantize_linear);
    assert_int_equal(w->in[0]->type.dtype, OCT_DTYPE_I8);
    assert_true(oct_codes_of(w, &codes_));
    assert_int_equal(codes_.axis, 0);
    assert_int_equal(codes_.n, 8);
    b = producer_of(c->in[2], &oct_op_dequantize_linear);
    assert_int_equal(b->in[0]->type.dtype, OCT_DTYPE_I32);
    assert_true(oct_codes_of(b, &codes_));
    assert_int_equal(codes_.axis, 0);
    producer_of(producer_of(c->in[0], &oct_op_dequantize_linear)->in[0], &oct_op_quantize_linear);
    for (int32_t i = 0; i < g->n_value_ids; i++) /* no float weight is left to be written */
        if (g->values[i] && g->values[i]->data && g->values[i]->type.dtype == OCT_DTYPE_F32)
            assert_true(oct_tensor_len(g->values[i]->data) <= 8);
    for (size_t i = 0; i < OCT_COUNT(names); i++) /* short ones for what is new */
        assert_non_null(oct_graph_find_value(g, names[i]));
    assert_string_equal(c->in[1]->name, n.conv->in[1]->name); /* numbers keep theirs */
    assert_string_equal(c->in[2]->name, n.conv->in[2]->name);
    assert_int_equal(g->info.opsets[0].version, 13);
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* Scales for each channel, folded into a dense layer's weight. */
static void folds_and_unfolds(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    const float scale[4] = {0.01f, 0.02f, 0.008f, 0.04f};
    const int32_t zero[4] = {128, 100, 127, 90};
    oct_qpoint p = {.value = n.x, .role = OCT_QROLE_ACT, .spec = u8};
    oct_tensor *x = numbers(f, &n.x->type, 3), *got, *want;
    float fold[4];
    int32_t w_at;
    oct_graph *g;
    oct_node *c, *mul, *b;

    p.spec.axis = 1;
    point(f, m, &p, scale, zero, 4);
    w_at = weight(f, m, n.conv->in[1]);
    for (int i = 0; i < 4; i++)
        fold[i] = scale[i] / 0.04f;
    m->points[w_at].fold = fold;
    m->points[w_at].fold_rows = 1;
    m->points[w_at].fold_columns = 4;
    m->points[w_at].fold_scale = 0.04f;
    bias(f, m, n.conv);
    g = lower(f, m, NULL);
    c = oct_graph_find_node(g, n.conv->name);
    mul = producer_of(c->in[1], &oct_op_mul);
    assert_dims(&mul->in[1]->type, 4, (int64_t[]){1, 4, 1, 1});
    for (int64_t i = 0; i < 8 * 4 * 9; i++) { /* the codes are those of w * fold */
        const oct_tensor *w = n.conv->in[1]->data;
        const float y = ((float *)w->data)[i] * fold[i / 9 % 4];
        const int32_t want_code = oct_qspec_code(&s8, m->points[w_at].scale[i / 36], 0, y);

        assert_int_equal(oct_tensor_get_i64(mul->in[0]->producer->in[0]->data, i), want_code);
    }
    b = producer_of(c->in[2], &oct_op_dequantize_linear);
    for (int i = 0; i < 8; i++)
        assert_true(((float *)b->in[1]->data->data)[i] == 0.04f * m->points[w_at].scale[i]);
    got = eval(f, g, x);
    want = eval(f, f->g, x);
    assert_same("close to float", got, want, 0.05);
    oct_tensor_unref(x);
    oct_tensor_unref(got);
    oct_tensor_unref(want);
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* --- who reads what --- */

static void serves_each_reader(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){5});
    oct_value *a = emit(f, &oct_op_relu, x, NULL), *b = emit(f, &oct_op_relu, x, NULL);
    oct_value *c = emit(f, &oct_op_relu, x, NULL), *d = emit(f, &oct_op_relu, x, NULL);
    oct_qmap *m;
    const float fine = 0.125f;
    const int32_t zero = 3;
    oct_codes codes_;
    oct_graph *g;

    output(f, a), output(f, b), output(f, c), output(f, d);
    m = map_for(f, "octet");
    act(f, m, x, 0.5f, 0);
    point(f, m, &(oct_qpoint){.value = x, .node = b->producer, .role = OCT_QROLE_ACT, .spec = u8},
          &fine, &zero, 1);
    point(f, m,
          &(oct_qpoint){.value = x,
                        .node = c->producer,
                        .role = OCT_QROLE_ACT,
                        .spec = u8,
                        .state = OCT_QSTATE_OFF,
                        .reason = "a test"},
          NULL, NULL, 0);
    g = lower(f, m, NULL);
    assert_int_equal(count(g, &oct_op_quantize_linear), 2);
    assert_ptr_equal(g->values[a->id]->producer->in[0], g->values[d->id]->producer->in[0]);
    assert_true(oct_codes_of(g->values[b->id]->producer->in[0]->producer, &codes_));
    assert_true(oct_codes_scale(&codes_, 0) == fine && oct_codes_zero(&codes_, 0) == zero);
    assert_ptr_equal(g->values[c->id]->producer->in[0], g->inputs[0]);
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* An output that is the value itself stays float. */
static void leaves_outputs_float(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){5});
    oct_value *a = emit(f, &oct_op_relu, x, NULL), *b = emit(f, &oct_op_sigmoid, a, NULL);
    oct_qmap *m;
    oct_graph *g;

    output(f, a), output(f, b);
    m = map_for(f, "octet");
    act(f, m, a, 0.1f, 0);
    g = lower(f, m, NULL);
    producer_of(g->outputs[0], &oct_op_relu);
    producer_of(g->outputs[1]->producer->in[0], &oct_op_dequantize_linear);
    oct_graph_free(g);
    oct_qmap_free(m);
}

static void follows_moves(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){2, 6});
    oct_value *t = emit(f, &oct_op_transpose, x, NULL), *y = emit(f, &oct_op_relu, t, NULL);
    static const char *const targets[] = {"octet", "ort"};

    output(f, y);
    for (int i = 0; i < 2; i++) {
        oct_qmap *m = map_for(f, targets[i]);
        const int32_t at = act(f, m, x, 0.1f, 7);
        oct_codes a, b;
        oct_graph *g;

        point(f, m,
              &(oct_qpoint){.value = t,
                            .role = OCT_QROLE_ACT,
                            .spec = u8,
                            .state = OCT_QSTATE_DOMINATED,
                            .dominator = at},
              NULL, NULL, 0);
        g = lower(f, m, NULL);
        assert_int_equal(count(g, &oct_op_quantize_linear), i + 1);
        if (i == 1) {
            assert_true(oct_codes_of(g->values[y->id]->producer->in[0]->producer, &a));
            assert_true(oct_codes_of(g->values[t->id]->producer->in[0]->producer, &b));
            assert_true(oct_codes_equal(&a, &b));
        }
        oct_graph_free(g);
        oct_qmap_free(m);
    }
}

/* A shared scale on something that was not moved needs its own pair. */
static void shares_scales(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){2, 6});
    oct_value *a = emit(f, &oct_op_relu, x, NULL), *b = emit(f, &oct_op_sigmoid, x, NULL);
    oct_value *const ab[] = {a, b};
    oct_value *c = concat(f, ab, 2, 1), *y = emit(f, &oct_op_relu, c, NULL);
    oct_qmap *m;
    oct_qpoint p = {.role = OCT_QROLE_ACT, .spec = u8, .state = OCT_QSTATE_DOMINATED};
    oct_graph *g;

    output(f, y);
    m = map_for(f, "octet");
    p.dominator = act(f, m, c, 0.1f, 7);
    p.value = a;
    point(f, m, &p, NULL, NULL, 0);
    p.value = b;
    point(f, m, &p, NULL, NULL, 0);
    g = lower(f, m, NULL);
    assert_int_equal(count(g, &oct_op_quantize_linear), 3);
    oct_graph_free(g);
    oct_qmap_free(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(means_what_the_points_say),
        TEST(stores_integers),
        TEST(folds_and_unfolds),
        TEST(serves_each_reader),
        TEST(leaves_outputs_float),
        TEST(follows_moves),
        TEST(shares_scales),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
