/* SPDX-License-Identifier: Apache-2.0 */
/* Opset upgrades: the old form of an operator, run in octet's form, gives what it always gave. */
#include "graph/op.h"
#include "onnx/upgrade.h"
#include "tests/unit/onnx_make.h"

/* A model op(x, extra initialisers...) -> y of an old opset, and what it must compute. */
typedef struct old {
    fixture *f;
    pb n; /* the node, with attributes */
    int64_t opset;
    int rank;
    int64_t dims[4];
    const float *x;
    pb inits[3];
    int n_inits;
} old;

static oct_graph *load_old(const old *o)
{
    pb g = {0}, m;

    add_input(&g, f32("x", o->rank, o->dims));
    for (int i = 0; i < o->n_inits; i++)
        add_init(&g, o->inits[i]);
    add_node(&g, o->n);
    add_output(&g, value("y", OCT_DTYPE_NONE, -1, NULL));
    m = model_of(&g, o->opset);
    /* The message dies with this function; what the graph keeps of it is small and copied. */
    {
        oct_graph *got = load(o->f, &m), *copy = NULL;

        for (int32_t i = 0; i < got->n_value_ids; i++) {
            oct_tensor *own = NULL;

            if (!got->values[i] || !got->values[i]->data) continue;
            assert_ok(o->f->ctx, oct_tensor_copy(o->f->ctx, got->values[i]->data, &own));
            oct_tensor_unref(got->values[i]->data);
            got->values[i]->data = own;
        }
        assert_ok(o->f->ctx, oct_graph_clone(got, &copy));
        oct_graph_free(got);
        return copy;
    }
}

static void expect(const old *o, const float *want, int64_t n)
{
    oct_graph *g = load_old(o);
    oct_tensor *in = NULL, *out = NULL;
    double x[64];
    int64_t len = 1;

    for (int i = 0; i < o->rank; i++)
        len *= o->dims[i];
    for (int64_t i = 0; i < len; i++)
        x[i] = o->x ? (double)o->x[i] : (double)i;
    in = tensor_of(o->f->ctx, OCT_DTYPE_F32, o->rank, o->dims, x);
    assert_ok(o->f->ctx, oct_graph_eval(g, &in, &out, NULL));
    assert_all_close(out, want, n, 1e-3f);
    oct_tensor_unref(in);
    oct_tensor_unref(out);
    oct_graph_free(g);
}

static void refuse_old(const old *o, oct_status st, const char *text)
{
    pb g = {0}, m;

    add_input(&g, f32("x", o->rank, o->dims));
    for (int i = 0; i < o->n_inits; i++)
        add_init(&g, o->inits[i]);
    add_node(&g, o->n);
    add_output(&g, f32("y", -1, NULL));
    m = model_of(&g, o->opset);
    refuse(o->f, &m, st, text);
}

static pb vec(const char *name, int64_t n, const float *v)
{
    return tensor_raw(name, OCT_DTYPE_F32, 1, &n, v, (size_t)n * sizeof(*v));
}

static void the_table_is_sorted(void **state)
{
    size_t n;
    const oct_upgrade_row *r = oct_upgrade_table(&n);

    (void)state;
    for (size_t i = 1; i < n; i++) {
        const int c = strcmp(r[i - 1].op, r[i].op);

        if (c > 0 || (c == 0 && r[i - 1].version >= r[i].version))
            fail_msg("%s %d comes before %s %d", r[i - 1].op, r[i - 1].version, r[i].op,
                     r[i].version);
    }
    for (size_t i = 0; i < n; i++)
        assert_true(r[i].version <= OCT_OPSET_INTERNAL);
    assert_int_equal(oct_upgrade_since("Dropout"), 12);
    assert_int_equal(oct_upgrade_since("Nothing"), 1);
}

static void reshape(void **state)
{
    const int64_t to[] = {3, 2};
    old o = {*state, with_attr(node("Reshape", "x", "y"), attr_ints("shape", 2, to)), 1, 2, {2, 3}};

    expect(&o, (float[]){0, 1, 2, 3, 4, 5}, 6);
    o.n = node("Reshape", "x", "y");
    refuse_old(&o, OCT_ERR_FORMAT, "attribute 'shape' must be given");
}

static void axes_as_attributes(void **state)
{
    const int64_t one = 1, front[] = {0, 2};
    old o = {
        *state, with_attr(node("ReduceSum", "x", "y"), attr_ints("axes", 1, &one)), 11, 2, {2, 3}};

    expect(&o, (float[]){3, 12}, 2);
    o.n = node("ReduceSum", "x", "y"); /* all of them */
    expect(&o, (float[]){15}, 1);
    o.n = with_attr(node("ReduceMax", "x", "y"), attr_ints("axes", 1, &one));
    o.opset = 17;
    expect(&o, (float[]){2, 5}, 2);
    o.n = with_attr(node("ReduceMean", "x", "y"), attr_ints("axes", 0, NULL));
    expect(&o, (float[]){2.5f}, 1);
    o.n = with_attr(node("Unsqueeze", "x", "y"), attr_ints("axes", 2, front));
    o.opset = 11;
    expect(&o, (float[]){0, 1, 2, 3, 4, 5}, 6);
    o.n = with_attr(node("Unsqueeze", "x", "y"), attr_int("axes", 1));
    refuse_old(&o, OCT_ERR_FORMAT, "attribute 'axes' is of the wrong kind");
}

static void slices_and_splits(void **state)
{
    const int64_t starts[] = {1}, ends[] = {-1}, axes[] = {1}, sizes[] = {1, 2};
    pb n = with_attr(node("Slice", "x", "y"), attr_ints("starts", 1, starts));
    old o = {*state, n, 9, 2, {2, 3}};

    o.n = with_attr(with_attr(n, attr_ints("ends", 1, ends)), attr_ints("axes", 1, axes));
    expect(&o, (float[]){1, 4}, 2);
    o.n = with_attr(with_attr(node("Split", "x", "z y"), attr_ints("split", 2, sizes)),
                    attr_int("axis", 1));
    o.opset = 11;
    expect(&o, (float[]){1, 2, 4, 5}, 4);
    o.n = node("Split", "x", "y z"); /* in equal parts, along axis 0 */
    expect(&o, (float[]){0, 1, 2}, 3);
}

static void clip_and_pad(void **state)
{
    const int64_t pads[] = {0, 1, 0, 0};
    old o = {*state, with_attr(node("Clip", "x", "y"), attr_float("max", 2)), 6, 2, {1, 4}};

    expect(&o, (float[]){0, 1, 2, 2}, 4);
    o.n = with_attr(o.n, attr_float("min", 1));
    expect(&o, (float[]){1, 1, 2, 2}, 4);
    o.n = with_attr(with_attr(node("Pad", "x", "y"), attr_ints("pads", 4, pads)),
                    attr_float("value", 9));
    expect(&o, (float[]){9, 0, 1, 2, 3}, 5);
    o.n = with_attr(node("Pad", "x", "y"), attr_ints("paddings", 4, pads));
    o.opset = 1;
    expect(&o, (float[]){0, 0, 1, 2, 3}, 5);
}

static void top_k_and_dropout(void **state)
{
    oct_graph *g;
    old o = {*state, with_attr(node("TopK", "x", "y z"), attr_int("k", 2)), 9, 2, {1, 4}};

    expect(&o, (float[]){3, 2}, 2);
    o.n = with_attr(with_attr(node("Dropout", "x", "y"), attr_float("ratio", 0.3f)),
                    attr_int("is_test", 1));
    o.opset = 6;
    expect(&o, (float[]){0, 1, 2, 3}, 4);
    g = load_old(&o);
    assert_all_close(g->first->in[1]->data, (float[]){0.3f}, 1, 0);
    oct_graph_free(g);
}

static void softmax_of_a_matrix(void **state)
{
    const float a = 1 / (1 + expf(1) + expf(2) + expf(3));
    const float flat[] = {a, a * expf(1), a * expf(2), a * expf(3)};
    const float third = 1 / (1 + expf(1)), rows[] = {third, 1 - third, third, 1 - third};
    oct_graph *g;
    old o = {*state, named(node("Softmax", "x", "y"), "sm"), 11, 3, {1, 2, 2}};

    expect(&o, flat, 4); /* axis 1: the last two dimensions together */
    g = load_old(&o);
    assert_int_equal(g->n_nodes, 4);
    assert_non_null(oct_graph_find_node(g, "sm"));
    assert_true(is_op(oct_graph_find_node(g, "sm"), "Softmax"));
    assert_true(is_op(g->last, "Reshape"));
    oct_graph_free(g);
    o.n = with_attr(node("Softmax", "x", "y"), attr_int("axis", -1));
    expect(&o, rows, 4);
    g = load_old(&o);
    assert_int_equal(g->n_nodes, 1);
    oct_graph_free(g);
    o = (old){*state, node("Softmax", "x", "y"), 11, 4, {1, 2, 1, 1}}; /* ones behind the axis */
    g = load_old(&o);
    assert_int_equal(g->n_nodes, 1);
    oct_graph_free(g);
    expect(&o, rows, 2);
    o.n = with_attr(node("Softmax", "x", "y"), attr_int("axis", 4));
    refuse_old(&o, OCT_ERR_SHAPE, "axis 4 is out of range");
}

static void old_broadcasting(void **state)
{
    const float b[] = {10, 20};
    pb n = with_attr(node("Add", "x b", "y"), attr_int("broadcast", 1));
    old o = {*state, with_attr(n, attr_int("axis", 1)), 6, 3, {1, 2, 2}, NULL, {vec("b", 2, b)}, 1};

    expect(&o, (float[]){10, 11, 22, 23}, 4); /* along axis 1 */
    o.n = n;
    expect(&o, (float[]){10, 21, 12, 23}, 4); /* from the end */
    o.n = with_attr(n, attr_int("axis", 5));
    refuse_old(&o, OCT_ERR_SHAPE, "do not fit at axis 5");
    o.n = node("PRelu", "x b", "y");
    o.x = (float[]){-1, -1, -1, -1};
    expect(&o, (float[]){-10, -10, -20, -20}, 4);
}

static void upsample_becomes_resize(void **state)
{
    const float scales[] = {1, 1, 1, 2}, half[] = {1, 1, 1, 0.6f}, up[] = {0, 0, 1, 1};
    oct_graph *g;
    old o = {*state,
             with_attr(node("Upsample", "x", "y"), attr_floats("scales", 4, scales)),
             7,
             4,
             {1, 1, 1, 2}};

    expect(&o, up, 4);
    g = load_old(&o);
    assert_true(is_op(g->first, "Resize"));
    oct_graph_free(g);
    o.n = node("Upsample", "x s", "y");
    o.inits[0] = vec("s", 4, scales);
    o.n_inits = 1;
    o.opset = 9;
    expect(&o, up, 4);
    o.n = node("Resize", "x s", "y");
    o.opset = 10;
    expect(&o, up, 4);
    o.inits[0] = vec("s", 4, half); /* places 0 and 1.67: the pixel after it when shrinking */
    o.dims[3] = 4;
    expect(&o, (float[]){0, 2}, 2);
    o.n = with_attr(with_attr(node("Upsample", "x", "y"), attr_float("height_scale", 1)),
                    attr_float("width_scale", 2));
    o.dims[3] = 2;
    o.n_inits = 0;
    o.opset = 1;
    expect(&o, up, 4);
    o.n = node("Upsample", "x", "y");
    o.opset = 8;
    refuse_old(&o, OCT_ERR_FORMAT, "attribute 'scales' must be given");
}

static void resize_11(void **state)
{
    const int64_t none = 0, four = 4;
    const float scales[] = {1, 1, 1, 2};
    oct_graph *g;
    pb n;
    old o = {*state, node("Resize", "x r s", "y"), 11, 4, {1, 1, 1, 2}};

    o.inits[0] = tensor_raw("r", OCT_DTYPE_F32, 1, &none, NULL, 0);
    o.inits[1] = tensor_raw("s", OCT_DTYPE_F32, 1, &four, scales, sizeof(scales));
    o.n_inits = 2;
    g = load_old(&o);
    assert_null(g->first->in[1]); /* an empty tensor stood for nothing */
    oct_graph_free(g);
    o.n = with_attr(o.n, attr_str("coordinate_transformation_mode", "tf_half_pixel_for_nn"));
    n = o.n;
    expect(&o, (float[]){0, 1, 1, 1}, 4); /* places 0.25, 0.75, 1.25, 1.75, rounded */
    o.n = with_attr(n, attr_str("nearest_mode", "floor"));
    expect(&o, (float[]){0, 0, 1, 1}, 4);
    o.n = with_attr(n, attr_str("nearest_mode", "ceil"));
    refuse_old(&o, OCT_ERR_UNSUPPORTED, "tf_half_pixel_for_nn");
}

static void batch_normalization(void **state)
{
    const float ones[] = {1, 1}, mean[] = {0, 2};
    oct_graph *g;
    old o = {*state, node("BatchNormalization", "x s s m s", "y"), 7, 2, {1, 2}};

    o.inits[0] = vec("s", 2, ones);
    o.inits[1] = vec("m", 2, mean);
    o.n_inits = 2;
    o.n = with_attr(o.n, attr_int("spatial", 0)); /* nothing is left out for a matrix */
    expect(&o, (float[]){1, 0}, 2);
    o.rank = 3;
    o.dims[2] = 1;
    refuse_old(&o, OCT_ERR_UNSUPPORTED, "spatial=0");
    o.n = node("BatchNormalization", "x s s m s", "y a b c d");
    o.opset = 9;
    g = load_old(&o);
    assert_int_equal(g->first->n_out, 3);
    assert_int_equal(oct_node_attr(g->first, "training_mode")->i, 1);
    oct_graph_free(g);
}

static void group_normalization(void **state)
{
    const float scale[] = {1, 10}, bias[] = {0, 100};
    pb n = with_attr(node("GroupNormalization", "x s b", "y"), attr_int("num_groups", 2));
    old o = {*state, n, 18, 3, {1, 4, 1}, (float[]){0, 2, 0, 2}};

    o.inits[0] = vec("s", 2, scale);
    o.inits[1] = vec("b", 2, bias);
    o.n_inits = 2;
    expect(&o, (float[]){-1, 1, 90, 110}, 4);
    o.dims[1] = 3;
    refuse_old(&o, OCT_ERR_SHAPE, "not divisible");
}

static void words_that_changed(void **state)
{
    oct_graph *g;
    old o = {*state, with_attr(node("Cast", "x", "y"), attr_str("to", "INT64")), 5, 2, {1, 2}};

    g = load_old(&o);
    assert_int_equal(g->outputs[0]->type.dtype, OCT_DTYPE_I64);
    oct_graph_free(g);
    o.n = with_attr(node("Cast", "x", "y"), attr_str("to", "NUMBER"));
    refuse_old(&o, OCT_ERR_FORMAT, "not the name of a type");
    o.n = node("Concat", "x x", "y");
    o.opset = 1;
    expect(&o, (float[]){0, 1, 0, 1}, 4);
    o.n = with_attr(node("Relu", "x", "y"), attr_ints("consumed_inputs", 1, (int64_t[]){0}));
    g = load_old(&o);
    assert_int_equal(g->first->n_extra, 0);
    oct_graph_free(g);
    o.n = with_attr(node("Gemm", "x w x", "y"), attr_int("broadcast", 1));
    o.inits[0] = tensor_raw("w", OCT_DTYPE_F32, 2, (int64_t[]){2, 2}, (float[]){1, 0, 0, 1}, 16);
    o.n_inits = 1;
    o.opset = 6;
    expect(&o, (float[]){0, 2}, 2);
    o.n = node("Selu", "x", "y");
    expect(&o, (float[]){0, 1.0507f}, 2);
    o.n_inits = 0;
    o.n = with_attr(node("Scan", "x", "y"), attr_int("num_scan_inputs", 1));
    o.opset = 8;
    refuse_old(&o, OCT_ERR_UNSUPPORTED, "the form it had in opset 8");
}

static void pooling_powers(void **state)
{
    old o = {
        *state, with_attr(node("GlobalLpPool", "x", "y"), attr_float("p", 1)), 1, 3, {1, 1, 3}};

    expect(&o, (float[]){3}, 1);
    o.n = with_attr(node("GlobalLpPool", "x", "y"), attr_float("p", 1.5f));
    refuse_old(&o, OCT_ERR_UNSUPPORTED, "is not an integer");
}

static void modes_of_sampling(void **state)
{
    const int64_t d1112[] = {1, 1, 1, 2}, two[] = {1, 4}, one = 1, zero = 0;
    const float grid[] = {0, 0}, rois[] = {0, 0, 1, 1};
    oct_graph *g;
    old o = {*state,
             with_attr(node("GridSample", "x g", "y"), attr_str("mode", "bilinear")),
             16,
             4,
             {1, 1, 2, 2}};

    o.inits[0] = tensor_raw("g", OCT_DTYPE_F32, 4, d1112, grid, sizeof(grid));
    o.n_inits = 1;
    expect(&o, (float[]){1.5f}, 1);
    o.n = with_attr(node("GridSample", "x g", "y"), attr_str("mode", "bicubic"));
    g = load_old(&o);
    assert_string_equal(oct_node_attr(g->first, "mode")->s, "cubic");
    oct_graph_free(g);
    o.n = node("RoiAlign", "x r i", "y");
    o.inits[0] = tensor_raw("r", OCT_DTYPE_F32, 2, two, rois, sizeof(rois));
    o.inits[1] = tensor_raw("i", OCT_DTYPE_I64, 1, &one, &zero, sizeof(zero));
    o.n_inits = 2;
    o.opset = 10;
    g = load_old(&o);
    assert_string_equal(oct_node_attr(g->first, "coordinate_transformation_mode")->s,
                        "output_half_pixel");
    oct_graph_free(g);
}

static void dft_axis(void **state)
{
    oct_graph *g;
    old o = {*state, node("DFT", "x", "y"), 17, 3, {1, 2, 1}};

    expect(&o, (float[]){1, 0, -1, 0}, 4);
    g = load_old(&o);
    assert_int_equal(g->first->n_in, 3);
    assert_null(g->first->in[1]);
    assert_int_equal(oct_tensor_get_i64(g->first->in[2]->data, 0), 1);
    oct_graph_free(g);
}

static void tiles_and_scatter(void **state)
{
    const int64_t one = 1, at[] = {1}, d11[] = {1, 1};
    const float two = 2, axis = 1, nine = 9;
    old o = {*state, node("Tile", "x t a", "y"), 5, 2, {1, 2}};

    o.inits[0] = tensor_raw("t", OCT_DTYPE_F32, 1, &one, &two, 4);
    o.inits[1] = tensor_raw("a", OCT_DTYPE_F32, 1, &one, &axis, 4);
    o.n_inits = 2;
    expect(&o, (float[]){0, 1, 0, 1}, 4);
    o.n = node("Tile", "x x a", "y");
    refuse_old(&o, OCT_ERR_UNSUPPORTED, "with unknown tiles");
    o.n = with_attr(node("Scatter", "x i u", "y"), attr_int("axis", 1));
    o.inits[0] = tensor_raw("i", OCT_DTYPE_I64, 2, d11, at, 8);
    o.inits[1] = tensor_raw("u", OCT_DTYPE_F32, 2, d11, &nine, 4);
    o.opset = 10;
    expect(&o, (float[]){0, 9}, 2);
}

/* Codes of 4 bits, the lower half of a byte first, in blocks of 16; the second block of a row is
 * padded, and the second row has zero points of its own. */
static void products_of_few_bits_are_unpacked(void **state)
{
    fixture *f = *state;
    const float scales[4] = {0.5f, 2, 1, 4};
    const uint8_t zeros[2] = {0x28, 0x31};
    uint8_t codes[2 * 2 * 8];
    pb g = {0}, n = node("MatMulNBits", "x w s z", "y"), m;
    const oct_tensor *w;
    oct_graph *read;

    for (size_t i = 0; i < sizeof(codes); i++)
        codes[i] = (uint8_t)(i * 37);
    pb_str(&n, 7, "com.microsoft");
    n = with_attr(with_attr(n, attr_int("K", 20)), attr_int("N", 2));
    n = with_attr(with_attr(n, attr_int("bits", 4)), attr_int("block_size", 16));
    add_node(&g, n);
    add_input(&g, f32("x", 2, (int64_t[]){3, 20}));
    add_output(&g, f32("y", 2, (int64_t[]){3, 2}));
    add_init(&g, tensor_raw("w", OCT_DTYPE_U8, 3, (int64_t[]){2, 2, 8}, codes, sizeof(codes)));
    add_init(&g, tensor_raw("s", OCT_DTYPE_F32, 1, (int64_t[]){4}, scales, sizeof(scales)));
    add_init(&g, tensor_raw("z", OCT_DTYPE_U8, 1, (int64_t[]){2}, zeros, sizeof(zeros)));
    m = model_of(&g, 17);
    add_opset(&m, "com.microsoft", 1);
    read = load(f, &m);
    assert_true(is_op(nth_node(read, 0), "MatMul"));
    assert_non_null(w = nth_node(read, 0)->in[1]->data);
    assert_int_equal(w->type.dim[0], 20);
    for (int k = 0; k < 20; k++)
        for (int row = 0; row < 2; row++) {
            const uint8_t byte = codes[row * 16 + k / 2], z = zeros[row];
            const int code = k % 2 ? byte >> 4 : byte & 15, zero = k < 16 ? z & 15 : z >> 4;

            assert_true(((const float *)w->data)[k * 2 + row] ==
                        (float)(code - zero) * scales[row * 2 + k / 16]);
        }
    oct_graph_free(read);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(products_of_few_bits_are_unpacked),
        T(the_table_is_sorted),
        T(reshape),
        T(axes_as_attributes),
        T(slices_and_splits),
        T(clip_and_pad),
        T(top_k_and_dropout),
        T(softmax_of_a_matrix),
        T(old_broadcasting),
        T(upsample_becomes_resize),
        T(resize_11),
        T(batch_normalization),
        T(group_normalization),
        T(words_that_changed),
        T(pooling_powers),
        T(modes_of_sampling),
        T(dft_axis),
        T(tiles_and_scatter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
