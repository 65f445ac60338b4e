/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing: DOT that Graphviz can read, whatever the names are. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analyze/dot.h"
#include "base/file.h"
#include "op/op.h"

/* x -> Relu (with this name) -> y */
static void make_chain(fixture *f, const char *name)
{
    oct_value *x = graph_input(f, name, OCT_DTYPE_F32, 2, (int64_t[]){-1, 4}), *y;
    oct_node *n = oct_node_new(f->g, NULL, name, &oct_op_relu, &x, 1, NULL, 1);

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_infer(n));
    y = n->out[0];
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
}

static void draw(fixture *f, const char *extension, char *path)
{
    struct stat sb;

    snprintf(path, 64, "/tmp/octet-draw-%ld.%s", (long)getpid(), extension);
    assert_ok(f->ctx, oct_graph_draw(f->g, path));
    assert_int_equal(stat(path, &sb), 0);
    assert_true(sb.st_size > 100);
    unlink(path);
}

static void every_format_is_written(void **state)
{
    static const char *const extensions[] = {"dot", "svg", "png", "pdf"};
    char path[64];

    make_chain(*state, "plain");
    for (size_t i = 0; i < OCT_COUNT(extensions); i++)
        draw(*state, extensions[i], path);
}

/* Browsers have other fonts than Graphviz: only text that is anchored at its middle stays there. */
static void svg_text_is_centred_on_its_node(void **state)
{
    fixture *f = *state;
    char path[64], want[64], *svg, *at;
    oct_file *file = NULL;
    double cx;

    make_chain(f, "plain");
    snprintf(path, sizeof(path), "/tmp/octet-draw-%ld.svg", (long)getpid());
    assert_ok(f->ctx, oct_graph_draw(f->g, path));
    assert_ok(f->ctx, oct_file_map(f->ctx, path, &file));
    svg = strndup((const char *)oct_file_data(file), oct_file_size(file));
    oct_file_unref(file);
    unlink(path);
    assert_non_null(svg);
    assert_null(strstr(svg, "text-anchor=\"start\""));
    at = strstr(svg, "<ellipse"); /* the input */
    assert_non_null(at);
    assert_int_equal(sscanf(strstr(at, "cx="), "cx=\"%lf\"", &cx), 1);
    snprintf(want, sizeof(want), "text-anchor=\"middle\" dy=\"1.5\" x=\"%.2f\"", cx);
    assert_non_null(strstr(at, want));
    free(svg);
}

static void hostile_names_are_drawn(void **state)
{
    char path[64];

    make_chain(*state, "\"]; evil [label=<<B>x</B>>];\\N \\\" & &#0; \xff\xc3 \x01 } digraph {");
    draw(*state, "svg", path);
}

static void weights_are_not_nodes_and_types_are_labels(void **state)
{
    fixture *f = *state;
    oct_value *in[2] = {graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){3}),
                        input(f, 3, (float[]){1, 2, 3})};
    oct_node *n = oct_node_new(f->g, NULL, "add", &oct_op_add, in, 2, NULL, 1);
    oct_str text;

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    oct_str_init(&text, f->ctx);
    assert_ok(f->ctx, oct_graph_dot(f->g, &text));
    assert_non_null(strstr(text.s, "in0 -> n0 [weight=4, label=\"  float32 3\""));
    assert_non_null(strstr(text.s, "n0 -> out0"));
    assert_null(strstr(text.s, "n1"));
    oct_str_fini(&text);
}

static void unknown_formats_are_refused(void **state)
{
    fixture *f = *state;

    make_chain(f, "plain");
    assert_fails(f->ctx, oct_graph_draw(f->g, "/tmp/x.gif"), OCT_ERR_ARG, ".svg");
    assert_fails(f->ctx, oct_graph_draw(f->g, "/tmp/x"), OCT_ERR_ARG, ".svg");
    assert_int_equal(oct_graph_draw(f->g, "/nosuchfolder/x.dot"), OCT_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_format_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(svg_text_is_centred_on_its_node, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_names_are_drawn, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_not_nodes_and_types_are_labels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(unknown_formats_are_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
