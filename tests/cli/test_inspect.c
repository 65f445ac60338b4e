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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boxes_and_scores_under_one_scale_are_told, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(sound_scales_are_not, place_setup, place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
