/* SPDX-License-Identifier: Apache-2.0 */
/* octet analyze on a small network: its tables, its JSON, its advice, mistakes. */
#include "cli/program.h"

#include <sys/stat.h>

#include "unit/detect_net.h"

enum { SIDE = 16, N_PICTURES = 2 };

static oct_value *convolution(fixture *f, const char *name, oct_value *x, int64_t in, int64_t out)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){out, in, 1, 1});
    char output[64];
    oct_tensor *w = NULL;
    oct_value *y;
    oct_node *n;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int64_t i = 0; i < out * in; i++)
        ((float *)w->data)[i] = sinf((float)(i * 7 + out)) * 0.3f;
    (void)snprintf(output, sizeof(output), "%s_output_0", name);
    assert_non_null(y = oct_value_new(f->g, output, NULL));
    assert_non_null(n = oct_node_new(f->g, NULL, name, &oct_op_conv,
                                     (oct_value *[]){x, oct_value_const(f->g, NULL, w)}, 2, &y, 1));
    assert_ok(f->ctx, oct_node_infer(n));
    return y;
}

static void make_model(place *p, const char *file, const char *second)
{
    void *state = NULL;
    fixture *f;
    oct_value *x;
    oct_node *n;
    char path[256];

    assert_int_equal(setup(&state), 0);
    f = state;
    x = picture_input(f, 1, SIDE, SIDE);
    x = convolution(f, "/a/Conv", x, 3, 8);
    x = convolution(f, second, x, 8, 8);
    x = convolution(f, "/head/Conv", x, 8, 3);
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_reduce_mean,
                                      (oct_value *[]){x, oct_ints(&f->b, (int64_t[]){2, 3}, 2)}, 2,
                                      1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);
}

static void make_pictures(place *p)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_image *im = NULL;
    char path[256];
    unsigned seed = 1;

    (void)snprintf(path, sizeof(path), "%s/img", p->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    (void)snprintf(path, sizeof(path), "%s/empty", p->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_ok(ctx, oct_image_new(ctx, 20, 20, &im));
    for (int k = 0; k < N_PICTURES; k++) {
        for (int i = 0; i < 20 * 20 * 3; i++) {
            seed = seed * 1103515245u + 12345u;
            oct_image_rgb(im)[i] = (uint8_t)(seed >> 17 & 255u);
        }
        (void)snprintf(path, sizeof(path), "%s/img/%d.png", p->dir, k);
        assert_ok(ctx, oct_image_save(ctx, im, path));
    }
    oct_image_free(im);
    oct_ctx_free(ctx);
}

/* net.onnx, and good.onnx and bad.onnx made from it. */
static int files_setup(void **state)
{
    place *p;

    if (place_setup(state)) return -1;
    p = *state;
    make_model(p, "net.onnx", "/b/Conv");
    make_model(p, "other.onnx", "/else/Conv");
    make_pictures(p);
    if (octet(p, "quantize net.onnx -o good.onnx --images img --quiet --save-qmap q.json"))
        return -1;
    return octet(p, "quantize net.onnx -o bad.onnx --images img --quiet --override "
                    "\"{name: /b/Conv, weight_bits: 2}\"");
}

static const json_t *first(const json_t *j, const char *list)
{
    return json_array_get(json_object_get(j, list), 0);
}

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));

    if (!s) fail_msg("there is no text '%s'", key);
    return s;
}

static void leaves_broken_pictures_out(void **state)
{
    place *p = *state;

    write_file(p, "img/0a.jpg", "no picture", 10);
    assert_int_equal(octet(p, "analyze net.onnx good.onnx --images img --no-layerwise"), 1);
    must_contain(p->last.err, "img/0a.jpg: no picture");
    assert_int_equal(octet(p, "analyze net.onnx good.onnx --images img --no-layerwise --skip-bad"),
                     0);
    must_contain(p->last.err, "img: 1 picture is broken and was left out (img/0a.jpg: ");
    write_file(p, "empty/a.png", "", 0);
    assert_int_equal(octet(p, "analyze net.onnx good.onnx --images empty --skip-bad"), 1);
    must_contain(p->last.err, "no picture is left");
}

static void names_the_bad_layer(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "analyze net.onnx bad.onnx --images img"), 0);
    must_contain(p->last.out, "layer");
    must_contain(p->last.out, "/b/Conv");
    must_contain(p->last.out, "What would help, best first:");
    must_contain(p->last.out, "octet quantize .. --ignore-name /b/Conv");
    must_contain(p->last.out, "2 pictures");
    assert_int_equal(octet(p, "analyze net.onnx bad.onnx --images img --json --limit 1"), 0);
    j = printed_json(p);
    assert_int_equal(json_integer_value(json_object_get(j, "images")), 1);
    json_decref(j);
    assert_int_equal(octet(p, "analyze net.onnx bad.onnx --images img --json"), 0);
    j = printed_json(p);
    assert_string_equal(text(first(j, "layers"), "name"), "/b/Conv");
    assert_string_equal(text(first(j, "advice"), "layer"), "/b/Conv");
    assert_true(json_is_number(json_object_get(first(j, "advice"), "gain")));
    assert_true(
        json_is_number(json_object_get(json_object_get(first(j, "layers"), "alone"), "noise")));
    assert_true(json_is_number(json_object_get(json_object_get(first(j, "layers"), "all"), "kl")));
    assert_true(json_array_size(json_object_get(first(j, "points"), "histogram")) > 0);
    assert_non_null(text(first(j, "outputs"), "name"));
    json_decref(j);
}

static void takes_a_qmap(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "analyze net.onnx --qmap q.json --images img --no-layerwise "
                              "--sort depth --top 2"),
                     0);
    must_contain(p->last.out, "/a/Conv");
    must_contain(p->last.out, "2 shown, sorted by 'depth'");
    assert_null(strstr(p->last.out, "one layer at a time"));
    assert_int_equal(octet(p, "analyze net.onnx good.onnx --images img --plain-loop --quiet"), 0);
    must_contain(p->last.out, "/a/Conv"); /* the tables are what was asked for */
    assert_null(strstr(p->last.out, "one layer at a time took"));
}

static void says_what_is_wrong(void **state)
{
    place *p = *state;
    static const struct {
        const char *words, *error;
        int status;
    } cases[] = {
        {"analyze", "MODEL", 2},
        {"analyze net.onnx --images img", "QUANTIZED is missing", 2},
        {"analyze net.onnx good.onnx", "--images is missing", 2},
        {"analyze net.onnx good.onnx --qmap q.json --images img", "not both", 2},
        {"analyze net.onnx goood.onnx --images img", "did you mean 'good.onnx'?", 2},
        {"analyze net.onnx good.onnx --images img --sort size", "alone, all, weights, depth", 2},
        {"analyze net.onnx good.onnx --images img --limit 0", "--limit", 2},
        {"analyze net.onnx good.onnx --images empty", "empty", 1},
        {"analyze net.onnx --qmap no.json --images img", "no.json", 1},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        must_refuse(p, cases[i].words, cases[i].status, cases[i].error);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leaves_broken_pictures_out, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(names_the_bad_layer, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(takes_a_qmap, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, files_setup, place_teardown),
    };

    if (argc < 2) return 1;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
