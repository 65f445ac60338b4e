/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: biases, kinds of codes, files, and no memory. */
#include "tests/unit/lower_net.h"

#include <unistd.h>

#include <jansson.h>

#include "quant/io/ppq.h"

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
    /* Held in 32 bits, which every runtime reads as a bias; the codes are of 16. */
    assert_int_equal(b->in[0]->type.dtype, OCT_DTYPE_I32);
    assert_true(g->info.opsets[0].version < 21);
    for (int64_t i = 0; i < oct_tensor_len(b->in[0]->data); i++)
        assert_true(llabs(oct_tensor_get_i64(b->in[0]->data, i)) <= INT16_MAX);
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
