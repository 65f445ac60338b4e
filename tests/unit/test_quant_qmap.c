/* SPDX-License-Identifier: Apache-2.0 */
/* Points, and qmaps as files: what is written comes back bit for bit; broken files are refused. */
#include "tests/alloc.h"

#include "base/rng.h"
#include "op/op.h"
#include "quant/qmap.h"
#include "tests/unit/qmap_equal.h"

/* x -> Conv(w, b) -> c -> Relu -> y */
typedef struct net {
    oct_graph *g;
    oct_value *x, *w, *b, *c, *y;
    oct_node *conv, *relu;
} net;

static oct_status make_net(oct_ctx *ctx, net *n)
{
    const int64_t x_dims[] = {1, 3, 8, 8}, w_dims[] = {4, 3, 1, 1}, b_dims[] = {4};
    const oct_type x_type = oct_type_make(OCT_DTYPE_F32, 4, x_dims);
    oct_tensor *t = NULL, *u = NULL;
    oct_value *in[3];

    *n = (net){0};
    OCT_TRY(oct_graph_new(ctx, "net", &n->g));
    OCT_TRY(oct_tensor_new(ctx, OCT_DTYPE_F32, 4, w_dims, &t));
    n->w = oct_value_const(n->g, "w", t);
    if (!n->w) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tensor_new(ctx, OCT_DTYPE_F32, 1, b_dims, &u));
    n->b = oct_value_const(n->g, "b", u);
    n->x = oct_value_new(n->g, "x \"quoted\" \xc3\xa9", &x_type);
    if (!n->b || !n->x) return OCT_ERR_MEMORY;
    OCT_TRY(oct_graph_add_input(n->g, n->x));
    in[0] = n->x;
    in[1] = n->w;
    in[2] = n->b;
    n->conv = oct_node_new(n->g, NULL, "/model.0/conv", &oct_op_conv, in, 3, NULL, 1);
    if (!n->conv) return OCT_ERR_MEMORY;
    n->c = n->conv->out[0];
    n->relu = oct_node_new(n->g, NULL, "/model.0/act", &oct_op_relu, &n->c, 1, NULL, 1);
    if (!n->relu) return OCT_ERR_MEMORY;
    n->y = n->relu->out[0];
    return oct_graph_add_output(n->g, n->y);
}

static const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec w8 = {
    .bits = 8, .is_signed = true, .is_symmetric = true, .is_narrow = true, .axis = 0};
static const oct_qspec b32 = {.bits = 32, .is_signed = true, .is_symmetric = true, .axis = 0};

static oct_status add_points(const net *n, oct_qmap *m)
{
    const oct_qpoint points[] = {
        {.value = n->x,
         .role = OCT_QROLE_ACT,
         .spec = u8,
         .observer = "mse",
         .has_seen = true,
         .seen_low = -0.7f,
         .seen_high = 2.5f},
        {.value = n->w, .node = n->conv, .operand = 1, .role = OCT_QROLE_WEIGHT, .spec = w8},
        {.value = n->b,
         .node = n->conv,
         .operand = 2,
         .role = OCT_QROLE_BIAS,
         .spec = b32,
         .state = OCT_QSTATE_PASSIVE},
        {.value = n->c,
         .role = OCT_QROLE_ACT,
         .spec = u8,
         .state = OCT_QSTATE_OFF,
         .reason = "inside a group: \"conv + act\""},
        {.value = n->y, .role = OCT_QROLE_ACT, .spec = u8, .state = OCT_QSTATE_DOMINATED},
    };
    /* Floats that are hard to write: subnormal, largest, next to 1, negative zero. */
    const float scales[] = {0.1f, 1.0000001f, 3.4028235e38f, 1e-42f}, shift[] = {-0.0f, 1e-45f, 7};
    const float fold[] = {0.3333333f, 1, 0.7f};
    const int32_t zeros[] = {0, 0, 0, 0}, zero = 117;
    int32_t at;

    for (size_t i = 0; i < OCT_COUNT(points); i++)
        OCT_TRY(oct_qmap_add(m, &points[i], &at));
    OCT_TRY(oct_qpoint_set(m, 0, scales, &zero, 1, "test"));
    OCT_TRY(oct_qpoint_set(m, 1, scales, zeros, 4, "test"));
    if (!(m->points[1].fold = oct_arena_array(m->arena, 3, sizeof(float)))) return OCT_ERR_MEMORY;
    memcpy(m->points[1].fold, fold, sizeof(fold));
    m->points[1].fold_rows = 1;
    m->points[1].fold_columns = 3;
    m->points[1].fold_scale = 0.0123f;
    OCT_TRY(oct_qmap_shift(m, n->conv, shift, 3));
    OCT_TRY(oct_qmap_set_float(m, n->relu, OCT_FLOAT_TAIL, "the tail"));
    m->tail_text = "the tail starts at Relu";
    return OCT_OK;
}

static oct_status make(oct_ctx *ctx, net *n, oct_qmap **m)
{
    OCT_TRY(make_net(ctx, n));
    OCT_TRY(oct_qmap_new(n->g, oct_target_named("octet"), m));
    return add_points(n, *m);
}

static void points_are_found_where_they_apply(void **state)
{
    fixture *f = *state;
    const float more[] = {1, 1, 1};
    oct_qmap *m = NULL;
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    assert_int_equal(oct_qmap_at(m, n.conv, 0), 0);
    assert_int_equal(oct_qmap_at(m, n.conv, 1), 1);
    assert_int_equal(oct_qmap_at(m, n.conv, 2), 2);
    assert_int_equal(oct_qmap_at(m, n.conv, 3), -1);
    assert_int_equal(oct_qmap_at(m, n.relu, 0), 3);
    assert_ptr_equal(oct_qmap_root(m, 4), &m->points[0]);
    assert_ptr_equal(oct_qmap_root(m, 1), &m->points[1]);
    assert_fails(f->ctx, oct_qmap_add(m, &m->points[0], NULL), OCT_ERR_STATE, "already");
    assert_ok(f->ctx, oct_qmap_shift(m, n.conv, more, 3));
    assert_true(oct_qmap_shift_of(m, n.conv)->shift[2] == 8);
    assert_null(oct_qmap_shift_of(m, n.relu));
    assert_fails(f->ctx, oct_qmap_shift(m, n.conv, more, 2), OCT_ERR_ARG, "/model.0/conv");
    assert_fails(f->ctx, oct_qpoint_set(m, 0, (float[]){0}, (int32_t[]){0}, 1, "test"), OCT_ERR_ARG,
                 "scale 0");
    oct_qmap_free(m);
    oct_qmap_free(NULL);
    oct_graph_free(n.g);
}

/* One function writes scales, and says how they came about. */
static void scales_say_who_set_them(void **state)
{
    const float scale = 0.5f, coarse = 1;
    const int32_t zero = 3;
    fixture *f = *state;
    oct_qmap *m = NULL;
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    assert_string_equal(m->points[0].scale_by, "test");
    assert_ok(f->ctx, oct_qpoint_set(m, 0, &scale, &zero, 1, "SiLU grid"));
    assert_ok(f->ctx, oct_qpoint_set(m, 0, &coarse, &zero, 1, "NPU shift"));
    assert_ok(f->ctx, oct_qpoint_set(m, 0, &coarse, &zero, 1, "NPU shift"));
    assert_ok(f->ctx, oct_qpoint_set(m, 0, &coarse, &zero, 1, NULL));
    assert_string_equal(m->points[0].scale_by, "test, SiLU grid, NPU shift");
    /* Point 4 has the parameters of point 0: it takes them over with all that is known of them. */
    assert_int_equal(m->points[4].state, OCT_QSTATE_DOMINATED);
    assert_ok(f->ctx, oct_qpoint_switch_off(m, 0, "too coarse"));
    assert_int_equal(m->points[0].state, OCT_QSTATE_OFF);
    assert_int_equal(m->points[4].state, OCT_QSTATE_ACTIVE);
    assert_true(m->points[4].scale[0] == 1 && m->points[4].zero[0] == 3);
    assert_true(m->points[4].has_seen && m->points[4].seen_low == -0.7f);
    assert_string_equal(m->points[4].scale_by, "test, SiLU grid, NPU shift");
    assert_string_equal(m->points[4].observer, "mse");
    oct_qmap_free(m);
    oct_graph_free(n.g);
}

/* A stage writes what its row in quantize.c says, nothing else. */
static void stages_write_what_they_may(void **state)
{
    const float one = 1, shift[] = {1, 1, 1};
    const int32_t zero = 0;
    fixture *f = *state;
    oct_qmap *m = NULL;
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    m->stage = "observe";
    m->may_write = 0;
    assert_fails(f->ctx, oct_qpoint_set(m, 0, &one, &zero, 1, "x"), OCT_ERR_STATE,
                 "'observe' of quantizing may not write scales");
    assert_fails(f->ctx, oct_qpoint_switch_off(m, 0, "x"), OCT_ERR_STATE, "states of points");
    assert_fails(f->ctx, oct_qmap_set_float(m, n.conv, OCT_FLOAT_OTHER, "x"), OCT_ERR_STATE,
                 "why nodes are float");
    assert_fails(f->ctx, oct_qmap_shift(m, n.conv, shift, 3), OCT_ERR_STATE, "shifts of biases");
    assert_fails(f->ctx, oct_qmap_add(m, &m->points[0], NULL), OCT_ERR_STATE, "points");
    assert_true(m->points[0].scale[0] == 0.1f);
    assert_string_equal(m->points[0].scale_by, "test");
    assert_int_equal(m->points[0].state, OCT_QSTATE_ACTIVE);
    assert_null(m->float_reason[n.conv->id]);
    m->may_write = OCT_QWRITES_SCALES;
    assert_ok(f->ctx, oct_qpoint_set(m, 0, &one, &zero, 1, "x"));
    oct_qmap_free(m);
    oct_graph_free(n.g);
}

static void copies_are_equal_and_apart(void **state)
{
    fixture *f = *state;
    oct_qmap *m = NULL, *copy = NULL;
    char why[128];
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    assert_ok(f->ctx, oct_qmap_clone(m, &copy));
    if (!qmap_equal(m, copy, why, sizeof(why))) fail_msg("%s", why);
    copy->points[1].scale[3] *= 2;
    assert_false(qmap_equal(m, copy, why, sizeof(why)));
    assert_string_equal(why, "scale of 'w'");
    oct_qmap_free(copy);
    oct_qmap_free(m);
    oct_graph_free(n.g);
}

static char *read_all(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    assert_non_null(in);
    assert_non_null(text);
    *size = fread(text, 1, (1 << 16) - 1, in);
    fclose(in);
    return text;
}

static void write_all(const char *path, const char *text, size_t size)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, size, out), size);
    fclose(out);
}

static void files_survive_bit_for_bit(void **state)
{
    fixture *f = *state;
    char folder[64], path[128], why[128];
    char *first, *second;
    oct_qmap *m = NULL, *back = NULL;
    size_t size, size2;
    oct_rng r;
    net n;

    oct_rng_init(&r, 1);
    assert_ok(f->ctx, make(f->ctx, &n, &m));
    snprintf(path, sizeof(path), "%s/q.json", make_folder(folder));
    for (int k = 0; k < 20; k++) { /* any float there is; files are synced, which takes time */
        for (int i = 0; i < 4; i++) {
            const uint32_t bits = (uint32_t)oct_rng_u64(&r) & 0x7fffffff;

            if (k && bits && bits < 0x7f800000) memcpy(&m->points[1].scale[i], &bits, 4);
        }
        assert_ok(f->ctx, oct_qmap_save(m, path));
        assert_ok(f->ctx, oct_qmap_load(n.g, path, &back));
        if (!qmap_equal(m, back, why, sizeof(why))) fail_msg("%s", why);
        if (k < 19) oct_qmap_free(back);
    }
    first = read_all(path, &size);
    assert_ok(f->ctx, oct_qmap_save(back, path));
    second = read_all(path, &size2);
    assert_int_equal(size, size2);
    assert_memory_equal(first, second, size);
    free(first);
    free(second);
    oct_qmap_free(back);
    m->points[0].scale[0] = NAN;
    assert_int_equal(oct_qmap_save(m, path), OCT_ERR_ARG);
    oct_qmap_free(m);
    oct_graph_free(n.g);
    remove_folder(folder);
}

/* The file with `from` replaced by `to` must be refused with this reason. */
static void refuses(const net *n, const char *path, const char *text, const char *from,
                    const char *to, const char *reason)
{
    const char *at = strstr(text, from);
    char *changed = calloc(1, strlen(text) + strlen(to) + 1);
    oct_qmap *m = NULL;

    if (!at || !changed) {
        free(changed);
        fail_msg("'%s' is not in the file", from);
    }
    memcpy(changed, text, (size_t)(at - text));
    strcat(changed, to);
    strcat(changed, at + strlen(from));
    write_all(path, changed, strlen(changed));
    free(changed);
    assert_fails(n->g->ctx, oct_qmap_load(n->g, path, &m),
                 strstr(reason, "version") ? OCT_ERR_UNSUPPORTED : OCT_ERR_FORMAT, reason);
    assert_non_null(strstr(oct_ctx_error(n->g->ctx), path));
    assert_null(m);
}

static void broken_files_are_refused(void **state)
{
    static const char *const cases[][3] = {
        {"\"value\":\"w\"", "\"value\":\"ww\"", "no value 'ww'; did you mean 'w'?"},
        {"\"value\":\"w\"", "\"value\":7", "points[1]: 'value' is not a string"},
        {"/model.0/conv", "/model.0/comv", "did you mean '/model.0/conv'?"},
        {"\"operand\":1", "\"operand\":2", "does not read value 'w' as operand 2"},
        {"\"operand\":1", "\"operand\":-1", "'operand' is -1"},
        {"\"bits\":8", "\"bits\":9", "9 bits"},
        {"\"bits\":8", "\"bits\":99999999999", "'bits' is 99999999999"},
        {"\"signed\":false", "\"signed\":0", "'signed' is not true or false"},
        {"half-even", "half-eve", "did you mean 'half-even'?"},
        {"\"active\"", "\"activ\"", "did you mean 'active'?"},
        {"\"weight\"", "\"weights\"", "did you mean 'weight'?"},
        {"\"zero\":[117]", "\"zero\":[117,1]", "2 zero points for 1 scales"},
        {"\"zero\":[117]", "\"zero\":[256]", "not a code"},
        {"\"zero\":[117]", "\"zero\":[1.5]", "not a code"},
        {"\"scale\":[0.100000001]", "\"scale\":[0.0]", "scale 0 is 0"},
        {"\"scale\":[0.100000001]", "\"scale\":[1e39]", "not a float"},
        {"\"scale\":[0.100000001]", "\"scale\":[\"a\"]", "not a float"},
        {"\"zero\":[117]", "\"zeros\":[117]", "unknown key 'zeros'; did you mean 'zero'?"},
        {"\"zero\":[0,0,0,0]", "\"zero\":[0,0,0]", "3 zero points for 4 scales"},
        {"\"axis\":0", "\"axis\":1", "4 scales for value 'w', which needs 3"},
        {"\"axis\":0", "\"axis\":null", "4 scales for value 'w', which needs 1"},
        {"\"axis\":0", "\"axis\":8", "'axis' is 8"},
        {"\"dominator\":0", "\"dominator\":4", "dominated by itself"},
        {"\"dominator\":0", "\"dominator\":5", "no such point"},
        {"\"dominator\":0", "\"dominator\":-2", "'dominator' is -2"},
        {"\"seen\":[-0.699999988,", "\"seen\":[3.5,", "'seen' is not the smallest"},
        {"\"seen\":[-0.699999988,", "\"seen\":[", "'seen' is not the smallest"},
        {"\"scale_by\":\"test\"", "\"scale_by\":1", "'scale_by' is not a string"},
        {"\"why\":\"tail\"", "\"why\":\"tale\"", "did you mean 'tail'?"},
        {"\"columns\":3", "\"columns\":4", "'fold' has 3 values"},
        {"\"rows\":1", "\"rows\":2147483647", "'fold' has 3 values"},
        {"\"shifts\":[\n{", "\"shifts\":[\n[", "line"},
        {"\"shift\":[", "\"shift\":[],\"x\":[", "unknown key 'x'"},
        {"\"octet_qmap\":1", "\"octet_qmap\":2", "version"},
        {"\"octet_qmap\":1,", "", "no 'octet_qmap'"},
        {"\"points\":", "\"point\":", "unknown key 'point'"},
        {"\"target\":\"octet\"", "\"target\":[]", "'target' is not a string"},
        {"\"target\":\"octet\"", "\"target\":\"octer\"", "did you mean 'octet'?"},
        {"\"target\":\"octet\",", "", "not a qmap: no 'target'"},
        {"\"value\":\"b\",\"node\":\"/model.0/conv\",\"operand\":2",
         "\"value\":\"w\",\"node\":\"/model.0/conv\",\"operand\":1", "already"},
    };
    fixture *f = *state;
    char folder[64], path[128];
    oct_qmap *m = NULL;
    size_t size;
    char *text;
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    snprintf(path, sizeof(path), "%s/q.json", make_folder(folder));
    assert_fails(f->ctx, oct_qmap_load(n.g, path, &m), OCT_ERR_IO, path);
    assert_ok(f->ctx, oct_qmap_save(m, path));
    oct_qmap_free(m);
    text = read_all(path, &size);
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        refuses(&n, path, text, cases[i][0], cases[i][1], cases[i][2]);
    for (size_t cut = 0; cut + 2 < size; cut += 7) { /* without the end it is never whole */
        m = NULL;
        write_all(path, text, cut);
        assert_int_equal(oct_qmap_load(n.g, path, &m), OCT_ERR_FORMAT);
        assert_null(m);
    }
    free(text);
    oct_graph_free(n.g);
    remove_folder(folder);
}

static void cut_out(char *text, const char *from)
{
    char *at = strstr(text, from);

    assert_non_null(at);
    memmove(at, at + strlen(from), strlen(at + strlen(from)) + 1);
}

/* Files of octet 0.1 do not say what was seen, who set a scale, or why in one word. */
static void older_files_are_read(void **state)
{
    fixture *f = *state;
    char folder[64], path[128];
    oct_qmap *m = NULL, *back = NULL;
    size_t size;
    char *text;
    net n;

    assert_ok(f->ctx, make(f->ctx, &n, &m));
    snprintf(path, sizeof(path), "%s/q.json", make_folder(folder));
    assert_ok(f->ctx, oct_qmap_save(m, path));
    text = read_all(path, &size);
    cut_out(text, ",\"scale_by\":\"test\"");
    cut_out(text, ",\"scale_by\":\"test\"");
    cut_out(text, ",\"seen\":[-0.699999988,2.5]");
    cut_out(text, "\"why\":\"tail\",");
    write_all(path, text, strlen(text));
    assert_ok(f->ctx, oct_qmap_load(n.g, path, &back));
    assert_null(back->points[0].scale_by);
    assert_false(back->points[0].has_seen);
    assert_int_equal(back->float_why[n.relu->id], OCT_FLOAT_OTHER);
    assert_true(back->points[0].scale[0] == m->points[0].scale[0]);
    free(text);
    oct_qmap_free(back);
    oct_qmap_free(m);
    oct_graph_free(n.g);
    remove_folder(folder);
}

/* Any byte may be anything: no crash, and what is accepted is whole. */
static void changed_bytes_do_no_harm(void **state)
{
    fixture *f = *state;
    char folder[64], path[128];
    oct_qmap *m = NULL, *copy = NULL;
    size_t size;
    char *text;
    oct_rng r;
    net n;

    oct_rng_init(&r, 5);
    assert_ok(f->ctx, make(f->ctx, &n, &m));
    snprintf(path, sizeof(path), "%s/q.json", make_folder(folder));
    assert_ok(f->ctx, oct_qmap_save(m, path));
    oct_qmap_free(m);
    text = read_all(path, &size);
    for (int k = 0; k < 1000; k++) {
        static const char odd[] = "0179-.e\"[]{},:nt\\\x00\xff";
        char *at = &text[oct_rng_below(&r, size)];
        const char old = *at;

        m = NULL;
        *at = odd[oct_rng_below(&r, sizeof(odd) - 1)];
        write_all(path, text, size);
        if (!oct_qmap_load(n.g, path, &m)) {
            assert_ok(f->ctx, oct_qmap_clone(m, &copy));
            assert_true(qmap_equal(m, copy, NULL, 0));
            oct_qmap_free(copy);
        }
        oct_qmap_free(m);
        *at = old;
    }
    free(text);
    oct_graph_free(n.g);
    remove_folder(folder);
}

static char file_for_memory[128];

static oct_status make_and_save(oct_ctx *ctx)
{
    oct_qmap *m = NULL, *copy = NULL;
    net n;
    oct_status st = make(ctx, &n, &m);

    if (!st) st = oct_qmap_clone(m, &copy);
    if (!st) st = oct_qmap_save(copy, file_for_memory);
    oct_qmap_free(m);
    oct_qmap_free(copy);
    oct_graph_free(n.g);
    return st;
}

static oct_status load(oct_ctx *ctx)
{
    oct_qmap *m = NULL;
    net n;
    oct_status st = make_net(ctx, &n);

    if (!st) st = oct_qmap_load(n.g, file_for_memory, &m);
    oct_qmap_free(m);
    oct_graph_free(n.g);
    return st;
}

static void want_of_memory_is_survived(void **state)
{
    char folder[64];

    (void)state;
    snprintf(file_for_memory, sizeof(file_for_memory), "%s/q.json", make_folder(folder));
    fail_each_allocation(make_and_save);
    fail_each_allocation(load);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(points_are_found_where_they_apply, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_say_who_set_them, setup, teardown),
        cmocka_unit_test_setup_teardown(stages_write_what_they_may, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_are_equal_and_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(files_survive_bit_for_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(older_files_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(changed_bytes_do_no_harm, setup, teardown),
        cmocka_unit_test(want_of_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
