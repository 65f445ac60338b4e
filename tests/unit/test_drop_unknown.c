/* SPDX-License-Identifier: Apache-2.0 */
/* Operators octet does not know: what lies before them is run and quantized. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include <octet/quant.h>

/* A node of an operator that nobody knows, with one result that is an output. */
static oct_value *mystery(fixture *f, const char *name, oct_value *x, bool is_output)
{
    const oct_op *op = oct_op_opaque(f->g, "my.domain", "Mystery");
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 8, 8, 8});
    oct_value *y;

    assert_non_null(op);
    assert_non_null(y = oct_value_new(f->g, name, &type));
    assert_non_null(oct_node_new(f->g, NULL, name, op, &x, 1, &y, 1));
    if (is_output) assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    return y;
}

static oct_value *layer(fixture *f, oct_value *x)
{
    oct_rng rng;

    oct_rng_init(&rng, 4);
    return emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){8, 8, 3, 1, 1, 1, 1}), NULL);
}

/* What it reads becomes the output, in its place; what follows it goes as well. */
static void values_before_become_outputs(void **state)
{
    fixture *f = *state;
    oct_value *x = picture(f, 1, 8, 8, 8), *a = layer(f, x), *b = layer(f, a), *y;
    int32_t n = 0;

    y = mystery(f, "m", a, false);
    assert_ok(f->ctx, oct_graph_add_output(f->g, emit(f, &oct_op_relu, y, NULL)));
    assert_ok(f->ctx, oct_graph_add_output(f->g, b));
    assert_ok(f->ctx, oct_graph_drop_unknown(f->g, &n));
    assert_int_equal(n, 2);
    assert_int_equal(f->g->n_outputs, 2);
    assert_ptr_equal(f->g->outputs[0], a);
    assert_ptr_equal(f->g->outputs[1], b);
    assert_ok(f->ctx, oct_graph_drop_unknown(f->g, &n));
    assert_int_equal(n, 0);
}

/* Layers after it would be lost: nothing is dropped, and running it says why. */
static void layers_are_not_dropped(void **state)
{
    fixture *f = *state;
    oct_value *y = mystery(f, "m", layer(f, picture(f, 1, 8, 8, 8)), false);
    const int32_t n_nodes = (output(f, layer(f, y)), f->g->n_nodes);
    int32_t n = 1;

    assert_ok(f->ctx, oct_graph_drop_unknown(f->g, &n));
    assert_int_equal(n, 0);
    assert_int_equal(f->g->n_nodes, n_nodes);
}

/* The network is quantized up to it, and the file has it still. */
static void quantizes_up_to_it(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 8, 8, 8);
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_dataset *d;
    const oct_graph *g;

    (void)mystery(f, "m", layer(f, layer(f, x)), true);
    d = items(t, x, 2);
    oct_quantize_options_init(&o);
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(f->g, d, &o, &q));
    oct_quantized_summary(q, &s);
    assert_int_equal(s.layers_quantized, 2);
    g = oct_quantized_graph(q);
    assert_int_equal(g->n_outputs, 1);
    assert_string_equal(g->outputs[0]->name, "m");
    assert_string_equal(g->outputs[0]->producer->op->name, "Mystery");
    oct_quantized_free(q);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_before_become_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_not_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(quantizes_up_to_it, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
