/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzzing found in the ONNX reader and writer, once each. */
#include "base/str.h"
#include "graph/op.h"
#include "onnx/write.h"
#include "tests/unit/onnx_make.h"

static const int64_t d23[] = {2, 3};

static oct_status to_str(void *user, const void *p, size_t size)
{
    oct_str *s = user;

    oct_str_put(s, p, size);
    return s->failed ? OCT_ERR_MEMORY : OCT_OK;
}

static void round_trip(fixture *f, const pb *m)
{
    oct_graph *g = load(f, m), *back = NULL;
    char why[256] = "";
    oct_str bytes;

    oct_str_init(&bytes, f->ctx);
    assert_ok(f->ctx, oct_onnx_encode(g, NULL, to_str, &bytes));
    assert_ok(f->ctx, oct_onnx_load_memory(f->ctx, bytes.s, bytes.len, &back));
    if (!oct_graph_equal(g, back, why, sizeof(why))) fail_msg("%s", why);
    oct_graph_free(back);
    oct_graph_free(g);
    oct_str_fini(&bytes);
}

static void an_input_declared_as_another_type_where_it_is_an_output(void **state)
{
    pb g = {0}, m, seq = {0}, type = {0}, x = {0};

    pb_msg(&type, 4, &seq);
    pb_str(&x, 1, "x");
    pb_msg(&x, 2, &type);
    add_input(&g, x);
    add_output(&g, f32("x", 2, d23));
    m = model_of(&g, 13);
    round_trip(*state, &m);
}

static void a_constant_nobody_sees(void **state)
{
    pb g = {0}, m;

    add_input(&g, f32("x", 2, d23));
    add_node(&g, with_attr(node("Constant", "", ""), attr_int("value_int", 1)));
    add_node(&g, with_attr(node("Constant", "", "-"), attr_int("value_int", 1)));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    round_trip(*state, &m);
    add_node(&g, with_attr(node("Constant", "", "a b"), attr_int("value_int", 1)));
    m = model_of(&g, 13);
    refuse(*state, &m, OCT_ERR_FORMAT, "has 2 outputs, not one");
}

static void a_shape_no_tensor_can_have(void **state)
{
    const int64_t shape[] = {4, INT64_MAX, 16};
    pb g = {0}, m;

    add_input(&g, value("x", OCT_DTYPE_F32, -1, NULL));
    add_node(&g, with_attr(node("Reshape", "x", "y"), attr_ints("shape", 3, shape)));
    add_output(&g, value("y", OCT_DTYPE_F32, -1, NULL));
    m = model_of(&g, 4);
    refuse(*state, &m, OCT_ERR_SHAPE, "overflows");
}

static void axes_at_the_end_of_the_numbers(void **state)
{
    static const struct {
        const char *op, *in;
        int64_t opset;
    } rows[] = {{"Softmax", "x", 11}, {"Add", "x x", 6}};
    const int64_t axes[] = {INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        for (int k = 0; k < 4; k++) {
            pb g = {0}, m,
               n = with_attr(node(rows[i].op, rows[i].in, "y"), attr_int("broadcast", 1));

            add_input(&g, f32("x", k < 2 ? 2 : -1, d23));
            add_node(&g, with_attr(n, attr_int("axis", axes[k % 2])));
            add_output(&g, f32("y", -1, NULL));
            m = model_of(&g, rows[i].opset);
            refuse(*state, &m, k < 2 ? OCT_ERR_SHAPE : OCT_ERR_UNSUPPORTED, "axis");
            if (i == 0 && k == 1) break; /* an open shape is split at any axis, once it is known */
        }
    }
}

static void kept_attributes_under_another_name(void **state)
{
    fixture *f = *state;
    pb fn = {0}, n, g = {0}, m, o = {0}, type = {0};
    oct_graph *got;

    pb_str(&fn, 1, "F");
    pb_str(&fn, 10, "d");
    pb_names(&fn, 5, "c");
    n = with_attr(node("Optional", "", "c"), attr_ref("type", "of_what", 13));
    pb_msg(&fn, 7, &n);
    pb_int(&o, 2, 15);
    pb_msg(&fn, 9, &o);
    n = with_attr(node("F", "", "y"), attr_msg("of_what", 14, 13, &type));
    pb_str(&n, 7, "d");
    add_node(&g, n);
    add_output(&g, value("y", OCT_DTYPE_F32, -1, NULL));
    m = model_of(&g, 15);
    pb_msg(&m, 25, &fn);
    got = load(f, &m);
    assert_non_null(oct_node_attr(got->first, "type"));
    oct_graph_free(got);
    round_trip(f, &m);
}

/* Types that no reader can find by itself: of an operator it does not know, of a shape that is
 * itself computed, of a shape without an element type. */
static void types_only_the_file_knows(void **state)
{
    static const struct {
        const char *op, *in;
        int dtype;
    } rows[] = {
        {"Foo", "x", OCT_DTYPE_F32},
        {"Foo", "x", OCT_DTYPE_NONE},
        {"Reshape", "x shape", OCT_DTYPE_F32},
        {"NonZero", "x", OCT_DTYPE_I64},
    };
    const int64_t two[] = {2};

    for (size_t i = 0; i < 2 * OCT_COUNT(rows); i++) {
        pb g = {0}, m, declared = value("y", rows[i / 2].dtype, 2, d23);

        add_input(&g, f32("x", 2, d23));
        add_input(&g, value("shape", OCT_DTYPE_I64, 1, two));
        add_input(&g, value("codes", OCT_DTYPE_I8, 2, d23));
        add_input(&g, f32("scale", 0, NULL));
        add_node(&g, node(rows[i / 2].op, rows[i / 2].in, "y"));
        add_node(&g, node("Identity", "y", "z"));
        if (i % 2) add_node(&g, node("DequantizeLinear", "codes scale", "d")); /* fewer types */
        pb_msg(&g, 13, &declared);
        add_output(&g, value("z", OCT_DTYPE_NONE, -1, NULL));
        m = model_of(&g, 13);
        round_trip(*state, &m);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_input_declared_as_another_type_where_it_is_an_output),
        T(a_constant_nobody_sees),
        T(a_shape_no_tensor_can_have),
        T(axes_at_the_end_of_the_numbers),
        T(kept_attributes_under_another_name),
        T(types_only_the_file_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
