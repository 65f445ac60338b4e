/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: the graph with Q and DQ nodes means exactly what the qmap says.
 * Over 700 lines: one small network and its qmap, built here, serve every rule of lowering.
 */
#include "tests/alloc.h"
#include "tests/unit/quant_net.h"

#include <unistd.h>

#include <jansson.h>

#include "op/qparams.h"
#include "quant/io/ppq.h"
#include "quant/lower/lower.h"

static const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec s8 = {
    .bits = 8, .is_signed = true, .is_symmetric = true, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec i32 = {.bits = 32, .is_signed = true, .is_symmetric = true, .axis = 0};

/* A point with parameters; n 0: without. */
static int32_t point(fixture *f, oct_qmap *m, const oct_qpoint *p, const float *scale,
                     const int32_t *zero, int64_t n)
{
    int32_t at = -1;

    assert_ok(f->ctx, oct_qmap_add(m, p, &at));
    if (n) assert_ok(f->ctx, oct_qpoint_set(m, at, scale, zero, n, "test"));
    return at;
}

static int32_t act(fixture *f, oct_qmap *m, const oct_value *v, float scale, int32_t zero)
{
    return point(f, m, &(oct_qpoint){.value = v, .role = OCT_QROLE_ACT, .spec = u8}, &scale, &zero,
                 1);
}

/* Scales of a weight, one for each filter: the largest magnitude is the last code. */
static int32_t weight(fixture *f, oct_qmap *m, const oct_value *w)
{
    const int64_t n = w->type.dim[0], inner = oct_type_span(&w->type, 1, w->type.rank);
    oct_qpoint p = {.value = w, .role = OCT_QROLE_WEIGHT, .spec = s8};
    float scale[64];
    int32_t zero[64] = {0};

    p.spec.axis = 0;
    for (int64_t i = 0; i < n; i++) {
        scale[i] = 0;
        for (int64_t k = 0; k < inner; k++)
            scale[i] = fmaxf(scale[i], fabsf(((float *)w->data->data)[i * inner + k]) / 127);
    }
    return point(f, m, &p, scale, zero, n);
}

static int32_t bias(fixture *f, oct_qmap *m, const oct_node *n)
{
    return point(f, m,
                 &(oct_qpoint){.value = n->in[2],
                               .node = n,
                               .operand = 2,
                               .role = OCT_QROLE_BIAS,
                               .state = OCT_QSTATE_PASSIVE,
                               .spec = i32},
                 NULL, NULL, 0);
}

static int count(const oct_graph *g, const oct_op *op)
{
    int n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += k->op == op;
    return n;
}

static oct_graph *lower(fixture *f, const oct_qmap *m, const oct_lower_options *o)
{
    oct_graph *g = NULL;

    assert_ok(f->ctx, oct_lower(m, o, &g));
    return g;
}

static oct_qmap *map_for(fixture *f, const char *target)
{
    oct_qmap *m = NULL;

    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named(target), &m));
    return m;
}

static oct_tensor *numbers(fixture *f, const oct_type *type, uint64_t seed)
{
    oct_tensor *t = NULL;
    oct_rng rng;

    oct_rng_init(&rng, seed);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, type, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] = (float)(oct_rng_f64(&rng) * 2 - 1);
    return t;
}

/* The first output for this input. */
static oct_tensor *eval(fixture *f, const oct_graph *g, oct_tensor *x)
{
    oct_tensor *y[4] = {0};

    assert_ok(f->ctx, oct_graph_eval(g, &x, y, NULL));
    for (int i = 1; i < 4; i++)
        oct_tensor_unref(y[i]);
    return y[0];
}

static oct_node *producer_of(oct_value *v, const oct_op *op)
{
    assert_non_null(v->producer);
    if (v->producer->op != op) fail_msg("'%s' is made by %s", v->name, v->producer->op->name);
    return v->producer;
}

/* --- a convolution --- */

typedef struct layer {
    oct_value *x, *y;
    oct_node *conv;
} layer;

static layer conv_net(fixture *f, int64_t c_in, int64_t c_out, int64_t group)
{
    oct_rng rng;
    layer n;

    oct_rng_init(&rng, 5);
    n.x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, c_in, 6, 7});
    n.y = conv(f, &rng, n.x, &(conv_case){c_in, c_out, 3, 1, 1, 1, group});
    n.conv = n.y->producer;
    output(f, n.y);
    return n;
}

/* The same layer from values that oct_qspec_fake made. */
static void fake_in_place(const oct_qmap *m, int32_t at, oct_tensor *t)
{
    const oct_qpoint *p = &m->points[at];
    const int64_t each = oct_tensor_len(t) / p->n;

    for (int64_t i = 0; i < p->n; i++)
        oct_qspec_fake(&p->spec, p->scale[i], p->zero[i], (float *)t->data + i * each,
                       (float *)t->data + i * each, each);
}

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

/* --- biases --- */

static void adds_shifts(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m;
    float shift[8];
    oct_graph *g;
    oct_node *c, *b;

    assert_ok(f->ctx, oct_node_set_input(n.conv, 2, NULL)); /* a layer without a bias */
    m = map_for(f, "octet");
    for (int i = 0; i < 8; i++)
        shift[i] = 0.25f * (float)i;
    act(f, m, n.x, 0.01f, 100);
    weight(f, m, n.conv->in[1]);
    assert_ok(f->ctx, oct_qmap_shift(m, n.conv, shift, 8));
    g = lower(f, m, NULL);
    c = oct_graph_find_node(g, n.conv->name);
    b = producer_of(c->in[2], &oct_op_dequantize_linear);
    for (int i = 0; i < 8; i++) {
        const float s = ((float *)b->in[1]->data->data)[i];

        assert_true(fabsf((float)oct_tensor_get_i64(b->in[0]->data, i) * s - shift[i]) <= s);
    }
    oct_graph_free(g);
    oct_qmap_free(m);
}

static void shifts_products(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){2, 3});
    const float shift[4] = {1, 2, 3, 4};
    oct_tensor *in, *plain, *moved;
    oct_qmap *m;
    oct_value *y;
    oct_graph *g;

    oct_rng_init(&rng, 1);
    y = emit(f, &oct_op_mat_mul, x, weights(f, &rng, 2, (int64_t[]){3, 4}));
    output(f, y);
    m = map_for(f, "octet");
    assert_ok(f->ctx, oct_qmap_shift(m, y->producer, shift, 4));
    g = lower(f, m, NULL);
    assert_string_equal(g->outputs[0]->name, y->name);
    in = numbers(f, &x->type, 2);
    plain = eval(f, f->g, in);
    moved = eval(f, g, in);
    for (int i = 0; i < 8; i++)
        assert_float_equal(((float *)moved->data)[i], ((float *)plain->data)[i] + shift[i % 4], 0);
    oct_tensor_unref(in);
    oct_tensor_unref(plain);
    oct_tensor_unref(moved);
    oct_graph_free(g);
    oct_qmap_free(m);
}

static void take_log(void *user, oct_log_level level, const char *text)
{
    if (level == OCT_LOG_WARN) snprintf(user, 200, "%s", text);
}

static void limits_large_biases(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    char said[200] = "";
    oct_graph *g;
    oct_node *b;

    ((float *)n.conv->in[2]->data->data)[3] = -1e9f;
    act(f, m, n.x, 0.01f, 100);
    weight(f, m, n.conv->in[1]);
    bias(f, m, n.conv);
    oct_ctx_set_log(f->ctx, take_log, said);
    g = lower(f, m, &(oct_lower_options){0}); /* for a file: simulations do not warn */
    b = producer_of(oct_graph_find_node(g, n.conv->name)->in[2], &oct_op_dequantize_linear);
    assert_int_equal(oct_tensor_get_i64(b->in[0]->data, 3), -(1 << 30)); /* sums must not wrap */
    assert_non_null(strstr(said, "1 biases"));
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* A power of two of its own, 16 bits. */
static void quantizes_pow2_biases(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "npu-pow2");
    oct_qpoint p = {.value = n.conv->in[2], .role = OCT_QROLE_BIAS, .spec = s8};
    const float scale = 0x1p-13f;
    const int32_t zero = 0;
    oct_graph *g;
    oct_node *b;

    p.spec.bits = 16;
    p.spec.is_pow2 = true;
    point(f, m, &p, &scale, &zero, 1);
    g = lower(f, m, NULL);
    b = producer_of(oct_graph_find_node(g, n.conv->name)->in[2], &oct_op_dequantize_linear);
    assert_int_equal(b->in[0]->type.dtype, OCT_DTYPE_I16);
    assert_int_equal(g->info.opsets[0].version, 21);
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* --- kinds of codes --- */

static void limits_codes_the_spec_forbids(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 3, 4});
    oct_value *y = emit(f, &oct_op_identity, x, NULL);
    oct_tensor *in, *out;

    output(f, y);
    in = numbers(f, &x->type, 9);
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        oct_qmap *m = map_for(f, "octet");
        oct_qpoint p = {.value = x, .role = OCT_QROLE_ACT, .spec = s8};
        const float scale[2] = {0.02f, 0.03f};
        const int32_t zero[2] = {0, 0};
        oct_graph *g;

        p.spec.bits = 6;
        p.spec.is_narrow = true;
        p.spec.axis = per_channel ? 1 : OCT_QSPEC_PER_TENSOR;
        point(f, m, &p, scale, zero, 1 + per_channel);
        g = lower(f, m, NULL);
        out = eval(f, g, in);
        for (int i = 0; i < 24; i++) {
            const float s = scale[per_channel ? i / 12 : 0];
            float want;

            oct_qspec_fake(&p.spec, s, 0, &((float *)in->data)[i], &want, 1);
            assert_float_equal(((float *)out->data)[i], want, 0);
        }
        oct_tensor_unref(out);
        oct_graph_free(g);
        oct_qmap_free(m);
    }
    oct_tensor_unref(in);
}

static void feeds_and_gives_codes(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_value *z = emit(f, &oct_op_relu, n.y, NULL);
    oct_qmap *m;
    oct_graph *g;

    output(f, z);
    m = map_for(f, "octet");
    act(f, m, n.x, 0.01f, 100);
    act(f, m, n.y, 0.1f, 128);
    weight(f, m, n.conv->in[1]);
    g = lower(f, m, &(oct_lower_options){.int8_io = true});
    assert_string_equal(g->inputs[0]->name, "x");
    assert_int_equal(g->inputs[0]->type.dtype, OCT_DTYPE_U8);
    assert_string_equal(g->outputs[0]->name, n.y->name);
    assert_int_equal(g->outputs[0]->type.dtype, OCT_DTYPE_U8);
    assert_int_equal(g->outputs[1]->type.dtype, OCT_DTYPE_F32);
    assert_int_equal(count(g, &oct_op_quantize_linear), 1);
    oct_graph_free(g);
    oct_qmap_free(m);
}

/* An output that is float up to here becomes codes only if they are fine enough for it. */
static void check_output(fixture *f, float scale, oct_dtype want)
{
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    oct_graph *g;

    act(f, m, n.x, 0.01f, 100);
    m->points[act(f, m, n.y, scale, 0)].only_given = true;
    weight(f, m, n.conv->in[1]);
    g = lower(f, m, &(oct_lower_options){.int8_io = true});
    assert_int_equal(g->inputs[0]->type.dtype, OCT_DTYPE_U8);
    assert_int_equal(g->outputs[0]->type.dtype, want);
    oct_graph_free(g);
    oct_qmap_free(m);
}

static void outputs_of_fine_steps_are_codes(void **state)
{
    check_output(*state, 0.1f, OCT_DTYPE_U8);
}

static void outputs_of_coarse_steps_stay_float(void **state)
{
    check_output(*state, 1.5f, OCT_DTYPE_F32);
}

static void refuses_nonsense(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "octet");
    const int32_t at = act(f, m, n.x, 0.01f, 300);
    oct_graph *g = NULL;

    assert_fails(f->ctx, oct_lower(m, NULL, &g), OCT_ERR_STATE, "'x': zero point 300");
    m->points[at].zero[0] = 0;
    m->points[at].scale[0] = 0;
    assert_fails(f->ctx, oct_lower(m, NULL, &g), OCT_ERR_STATE, "'x': scale 0");
    m->points[at].n = 0;
    assert_fails(f->ctx, oct_lower(m, NULL, &g), OCT_ERR_STATE, "'x' has no scale yet");
    m->points[at].n = 3;
    assert_fails(f->ctx, oct_lower(m, NULL, &g), OCT_ERR_SHAPE, "3 scales do not fit");
    assert_null(g);
    oct_qmap_free(m);
}

/* --- files --- */

static void writes_small_files(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 32, 64, 1);
    oct_qmap *m = map_for(f, "octet");
    oct_tensor *x = numbers(f, &n.x->type, 3), *a, *b;
    char folder[64], path[2][96];
    oct_graph *g, *again = NULL;
    long size[2];

    act(f, m, n.x, 0.01f, 100);
    weight(f, m, n.conv->in[1]);
    bias(f, m, n.conv);
    g = lower(f, m, NULL);
    make_folder(folder);
    for (int i = 0; i < 2; i++) {
        FILE *file;

        snprintf(path[i], sizeof(path[i]), "%s/%d.onnx", folder, i);
        assert_ok(f->ctx, oct_onnx_save(i ? g : f->g, path[i], NULL));
        assert_non_null(file = fopen(path[i], "rb"));
        fseek(file, 0, SEEK_END);
        size[i] = ftell(file);
        fclose(file);
    }
    assert_true(size[0] > size[1] * 34 / 10);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path[1], &again));
    a = eval(f, g, x);
    b = eval(f, again, x);
    assert_true(oct_tensor_equal(a, b));
    oct_tensor_unref(a);
    oct_tensor_unref(b);
    oct_tensor_unref(x);
    oct_graph_free(g);
    oct_graph_free(again);
    oct_qmap_free(m);
    remove_folder(folder);
}

static void writes_ppq(void **state)
{
    fixture *f = *state;
    layer n = conv_net(f, 4, 8, 1);
    oct_qmap *m = map_for(f, "openvino");
    char folder[64], path[96];
    const char *name = NULL;
    json_t *j, *c;
    int hash = 0;

    act(f, m, n.x, 0.5f, 100);
    weight(f, m, n.conv->in[1]);
    bias(f, m, n.conv);
    snprintf(path, sizeof(path), "%s/quant_cfg.json", make_folder(folder));
    assert_ok(f->ctx, oct_qmap_save_ppq(m, path));
    assert_non_null(j = json_load_file(path, 0, NULL));
    c = json_object_get(json_object_get(json_object_get(j, "configs"), n.conv->name), "x");
    assert_non_null(c);
    assert_int_equal(json_unpack(c, "{s:s, s:i}", "state", &name, "dominator", &hash), 0);
    assert_string_equal(name, "ACTIVATED");
    assert_int_equal(hash, 1);
    assert_true(json_is_true(json_object_get(json_object_get(c, "policy"), "ASYMMETRICAL")));
    c = json_object_get(json_object_get(json_object_get(j, "values"), "1"), "scale");
    assert_true(json_real_value(c) == 0.5);
    c = json_object_get(json_object_get(j, "dispatchings"), n.conv->name);
    assert_string_equal(json_string_value(c), "OPENVINO_INT8");
    json_decref(j);
    oct_qmap_free(m);
    remove_folder(folder);
}

/* --- no memory --- */

static oct_status small_job(oct_ctx *ctx)
{
    const oct_type t = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 3, 3});
    const float scale[2] = {0.5f, 0.25f};
    const int32_t zero[2] = {1, 2};
    oct_graph *f = NULL, *g = NULL;
    oct_qmap *m = NULL;
    oct_status st;
    oct_value *x, *y = NULL;

    if ((st = oct_graph_new(ctx, "g", &f))) return st;
    st = OCT_ERR_MEMORY;
    if (!(x = oct_value_new(f, "x", &t)) || oct_graph_add_input(f, x)) goto done;
    {
        oct_builder b = {.g = f};
        oct_qpoint p = {.value = x, .role = OCT_QROLE_ACT, .spec = u8};
        int32_t at;

        p.spec.axis = 1;
        p.spec.bits = 7;
        y = oct_emit(&b, &oct_op_relu, x, NULL, NULL);
        if ((st = b.status) || (st = oct_graph_add_output(f, y))) goto done;
        if ((st = oct_qmap_new(f, oct_target_named("octet"), &m)) ||
            (st = oct_qmap_add(m, &p, &at)))
            goto done;
        if ((st = oct_qpoint_set(m, at, scale, zero, 2, "test"))) goto done;
        st = oct_lower(m, NULL, &g);
    }
done:
    oct_qmap_free(m);
    oct_graph_free(g);
    oct_graph_free(f);
    return st;
}

static void survives_without_memory(void **state)
{
    (void)state;
    fail_each_allocation(small_job);
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
        TEST(adds_shifts),
        TEST(shifts_products),
        TEST(limits_large_biases),
        TEST(quantizes_pow2_biases),
        TEST(limits_codes_the_spec_forbids),
        TEST(feeds_and_gives_codes),
        TEST(outputs_of_fine_steps_are_codes),
        TEST(outputs_of_coarse_steps_stay_float),
        TEST(refuses_nonsense),
        TEST(writes_small_files),
        TEST(writes_ppq),
        TEST(survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
