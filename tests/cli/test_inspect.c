/* SPDX-License-Identifier: Apache-2.0 */
/* octet inspect on networks that are quantized already: faults are told, sound ones are not. */
#include "cli/program.h"

#include "op/op.h"

/* codes.onnx: boxes up to 640 and scores up to 1, joined; the result has codes of `scale`. */
static void make_joined(place *p, float scale)
{
    void *state = NULL;
    fixture *f;
    oct_value *x[2], *y;
    oct_node *n;
    char path[256];

    assert_int_equal(setup(&state), 0);
    f = state;
    for (int i = 0; i < 2; i++) {
        oct_value *s = oct_scalar(&f->b, i ? 1 / 255.0f : 2.5f);

        x[i] = graph_input(f, i ? "scores" : "boxes", OCT_DTYPE_F32, 2, (int64_t[]){1, 4});
        x[i] = oct_emit(&f->b, &oct_op_quantize_linear, x[i], s, NULL);
        x[i] = oct_emit(&f->b, &oct_op_dequantize_linear, x[i], s, NULL);
    }
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_concat, x, 2, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(f->ctx, oct_node_infer(n));
    y = oct_emit(&f->b, &oct_op_quantize_linear, n->out[0], oct_scalar(&f->b, scale), NULL);
    y = oct_emit(&f->b, &oct_op_dequantize_linear, y, oct_scalar(&f->b, scale), NULL);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_int_equal(f->b.status, OCT_OK);
    (void)snprintf(path, sizeof(path), "%s/codes.onnx", p->dir);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);
}

static size_t n_warnings(place *p)
{
    json_t *j;
    size_t n;

    assert_int_equal(octet(p, "inspect codes.onnx --json"), 0);
    j = printed_json(p);
    assert_true(json_is_array(json_object_get(j, "warnings")));
    n = json_array_size(json_object_get(j, "warnings"));
    json_decref(j);
    return n;
}

static void boxes_and_scores_under_one_scale_are_told(void **state)
{
    place *p = *state;

    make_joined(p, 2.5f);
    assert_int_equal(n_warnings(p), 1);
    assert_int_equal(octet(p, "inspect codes.onnx"), 0);
    must_contain(p->last.out, "What is wrong with it:");
    must_contain(p->last.out, "nothing but zeros");
}

static void sound_scales_are_not(void **state)
{
    place *p = *state;

    make_joined(p, 1 / 255.0f);
    assert_int_equal(n_warnings(p), 0);
    assert_int_equal(octet(p, "inspect codes.onnx"), 0);
    assert_null(strstr(p->last.out, "wrong"));
}

static void write_qmap(place *p, const char *text)
{
    char path[256];
    FILE *out;

    (void)snprintf(path, sizeof(path), "%s/q.json", p->dir);
    assert_non_null(out = fopen(path, "w"));
    (void)fputs(text, out);
    (void)fclose(out);
}

static void scales_are_shown(void **state)
{
    place *p = *state;
    json_t *j, *row;

    make_joined(p, 2.5f);
    assert_int_equal(octet(p, "inspect codes.onnx --scales"), 0);
    must_contain(p->last.out, "value");
    must_contain(p->last.out, "boxes");
    must_contain(p->last.out, "0..638"); /* 255 steps of 2.5 */
    assert_null(strstr(p->last.out, "set by"));
    assert_int_equal(octet(p, "inspect codes.onnx --scales --filter '^score'"), 0);
    must_contain(p->last.out, "1 of 3 quantized tensors");
    assert_int_equal(octet(p, "inspect codes.onnx --scales --filter skore"), 2);
    must_contain(p->last.err, "no quantized tensor matches 'skore'; did you mean 'scores'?");
    write_qmap(p, "{\"octet_qmap\":1,\"points\":[{\"value\":\"boxes\",\"observer\":\"mse\","
                  "\"scale_by\":\"mse, NPU shift\",\"seen\":[-1.5,640]}]}");
    assert_int_equal(octet(p, "inspect codes.onnx --scales --qmap q.json"), 0);
    must_contain(p->last.out, "mse, NPU shift");
    must_contain(p->last.out, "-1.5..640");
    assert_int_equal(octet(p, "inspect codes.onnx --scales --qmap q.json --json --filter boxes"),
                     0);
    j = printed_json(p);
    row = json_array_get(json_object_get(j, "scales"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "value")), "boxes");
    assert_string_equal(json_string_value(json_object_get(row, "type")), "uint8");
    assert_string_equal(json_string_value(json_object_get(row, "observer")), "mse");
    assert_true(json_number_value(json_array_get(json_object_get(row, "scale"), 0)) == 2.5);
    assert_true(json_number_value(json_array_get(json_object_get(row, "seen"), 1)) == 640);
    json_decref(j);
}

static void what_has_no_scales_is_said(void **state)
{
    place *p = *state;

    make_joined(p, 2.5f);
    assert_int_equal(octet(p, "inspect codes.onnx --qmap codes.onnx"), 2);
    must_contain(p->last.err, "give --scales too");
    write_qmap(p, "{}");
    assert_int_equal(octet(p, "inspect codes.onnx --scales --qmap q.json"), 1);
    must_contain(p->last.err, "q.json");
    must_contain(p->last.err, "--save-qmap");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boxes_and_scores_under_one_scale_are_told, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(sound_scales_are_not, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(scales_are_shown, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_has_no_scales_is_said, place_setup, place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
