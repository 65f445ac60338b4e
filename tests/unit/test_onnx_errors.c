/* SPDX-License-Identifier: Apache-2.0 */
/* Broken ONNX models: each kind of damage has its own message, and nothing is left behind. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/read.h"
#include "tests/unit/onnx_make.h"

static const int64_t d23[] = {2, 3}, d3[] = {3};
static const float w3[] = {1, 2, 3};

/* A model with one node op(in) -> out and outputs y; `init` may be NULL. */
static pb tiny(pb n, const pb *init)
{
    pb g = {0};

    pb_str(&g, 2, "net");
    add_input(&g, f32("x", 2, d23));
    if (init) add_init(&g, *init);
    add_node(&g, n);
    add_output(&g, f32("y", 2, d23));
    return model_of(&g, 13);
}

static void refuse_init(fixture *f, pb init, oct_status st, const char *text)
{
    const pb m = tiny(node("Relu", "x", "y"), &init);

    refuse(f, &m, st, text);
}

static void cycles(void **state)
{
    fixture *f = *state;
    pb g = {0}, m;

    add_input(&g, f32("x", 2, d23));
    add_node(&g, named(node("Add", "x b", "a"), "first"));
    add_node(&g, named(node("Relu", "a", "b"), "second"));
    add_output(&g, f32("b", 2, d23));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'first' (Add): is part of a cycle");
    m = tiny(named(node("Relu", "y", "y"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Relu): is part of a cycle");
}

static void dangling_names(void **state)
{
    fixture *f = *state;
    pb m = tiny(named(node("Add", "x nowhere", "y"), "n"), NULL), g = {0};

    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Add): input 'nowhere' is neither");
    m = tiny(node("Relu", "x", "z"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "output 'y' of graph 'net' is not made by any node");
    add_node(&g, node("Relu", "q", "r")); /* in a body */
    add_output(&g, f32("r", 2, d23));
    m = tiny(with_attr(node("Body", "x", "y"), attr_graph("g", &g)), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "input 'q' is neither");
}

static void duplicate_outputs(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, init = tensor_raw("w", OCT_DTYPE_F32, 1, d3, w3, sizeof(w3));

    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "y"));
    add_node(&g, node("Neg", "x", "y"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "value 'y' is defined twice");
    m = tiny(node("Relu", "x", "x"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "value 'x' is defined twice");
    m = tiny(node("Relu", "x", "w"), &init);
    refuse(f, &m, OCT_ERR_FORMAT, "value 'w' is defined twice");
    memset(&g, 0, sizeof(g));
    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, d23));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "output 'y' is listed twice");
}

static void dimensions(void **state)
{
    fixture *f = *state;
    const int64_t negative[] = {2, -3}, huge[] = {INT64_MAX, 2}, wide[] = {INT64_MAX / 2},
                  nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    pb g = {0}, m;

    refuse_init(f, tensor_raw("w", OCT_DTYPE_F32, 2, negative, w3, 12), OCT_ERR_FORMAT,
                "initializer 'w': dimension 1 is negative (-3)");
    refuse_init(f, tensor_raw("w", OCT_DTYPE_F32, 2, huge, w3, 12), OCT_ERR_FORMAT,
                "initializer 'w': the number of its elements overflows");
    refuse_init(f, tensor_raw("w", OCT_DTYPE_C128, 1, wide, w3, 12), OCT_ERR_FORMAT,
                "initializer 'w': the number of its bytes overflows");
    refuse_init(f, tensor_raw("w", OCT_DTYPE_F32, 9, nine, w3, 4), OCT_ERR_UNSUPPORTED,
                "initializer 'w': 9 dimensions, at most 8");
    add_input(&g, f32("x", 2, negative));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", -1, NULL));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "value 'x': dimension 1 is negative (-3)");
    memset(&g, 0, sizeof(g));
    add_input(&g, f32("x", 9, nine));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_UNSUPPORTED, "value 'x': 9 dimensions, at most 8");
    memset(&g, 0, sizeof(g));
    add_input(&g, f32("x", 2, huge));
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "value 'x': the number of its elements overflows");
}

static void data(void **state)
{
    fixture *f = *state;
    pb t;

    refuse_init(f, tensor_raw("w", OCT_DTYPE_F32, 1, d3, w3, 11), OCT_ERR_FORMAT,
                "initializer 'w': has 11 bytes of data, but float32[3] needs 12");
    refuse_init(f, tensor_head("w", OCT_DTYPE_F32, 1, d3), OCT_ERR_FORMAT,
                "initializer 'w': has 0 numbers of data, but float32[3] needs 3");
    refuse_init(f, tensor_raw("w", 99, 1, d3, w3, 12), OCT_ERR_FORMAT,
                "initializer 'w': unknown data type 99");
    t = tensor_head("w", OCT_DTYPE_STRING, 1, d3);
    pb_str(&t, 6, "only one");
    refuse_init(f, t, OCT_ERR_FORMAT, "has 1 strings of data, but");
    t = tensor_head("w", OCT_DTYPE_F32, 1, d3);
    pb_int(&t, 14, 7);
    refuse_init(f, t, OCT_ERR_FORMAT, "unknown data location 7");
    t = tensor_head("w", OCT_DTYPE_F32, 1, d3);
    pb_bytes(&t, 4, w3, 11);
    refuse_init(f, t, OCT_ERR_FORMAT, "packed numbers of odd length");
    refuse_init(f, tensor_raw("", OCT_DTYPE_F32, 1, d3, w3, 12), OCT_ERR_FORMAT, "has no name");
}

static void sparse_tensors(void **state)
{
    fixture *f = *state;
    const int64_t one = 1, at = 7;

    for (int i = 0; i < 2; i++) {
        pb sparse = {0}, t, g = {0}, m;

        t = tensor_raw("s", OCT_DTYPE_F32, 1, &one, w3, 4);
        pb_msg(&sparse, 1, &t);
        t = tensor_raw("", i ? OCT_DTYPE_I64 : OCT_DTYPE_F32, 1, &one, &at, i ? 8 : 4);
        pb_msg(&sparse, 2, &t);
        pb_int(&sparse, 3, 3);
        pb_msg(&g, 15, &sparse);
        m = model_of(&g, 13);
        refuse(f, &m, OCT_ERR_FORMAT,
               i ? "sparse index 0 is outside" : "sparse values and indices do not fit");
    }
}

static void attributes(void **state)
{
    fixture *f = *state;
    pb m, a = {0};

    m = tiny(named(with_attr(node("LeakyRelu", "x", "y"), attr_int("alpha", 1)), "n"), NULL);
    refuse(f, &m, OCT_ERR_TYPE, "node 'n' (LeakyRelu): attribute 'alpha' is of the wrong kind");
    m = tiny(named(node("Concat", "x", "y"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Concat): attribute 'axis' must be given");
    m = tiny(with_attr(with_attr(node("Relu", "x", "y"), attr_int("k", 1)), attr_int("k", 2)),
             NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "attribute 'k' is given twice");
    pb_str(&a, 1, "k");
    m = tiny(with_attr(node("Relu", "x", "y"), a), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "attribute 'k' has no value");
    pb_int(&a, 20, 77);
    m = tiny(with_attr(node("Relu", "x", "y"), a), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "attribute 'k' is of unknown type 77");
    m = tiny(with_attr(node("Relu", "x", "y"), attr_ref("k", "outer", 1)), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "refers to a function's attribute outside a function");
    m = tiny(node("Constant", "", "y"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "(Constant): must have one attribute");
    m = tiny(with_attr(node("Constant", "", "y"), attr_int("value", 1)), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "attribute 'value' is unknown or of the wrong kind");
    memset(&a, 0, sizeof(a));
    pb_str(&a, 1, "value");
    pb_int(&a, 20, 4);
    m = tiny(with_attr(node("Constant", "", "y"), a), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "attribute 'value' has no tensor");
}

static void operands(void **state)
{
    fixture *f = *state;
    pb m = tiny(named(node("Relu", "x x", "y"), "n"), NULL);

    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Relu): has 2 inputs, takes at most 1");
    m = tiny(named(node("Add", "x", "y"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Add): has 1 inputs, needs at least 2");
    m = tiny(named(node("Add", "- x", "y"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Add): input 0 must be given");
    m = tiny(named(node("Relu", "x", "y z"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "node 'n' (Relu): has 2 outputs, gives at most 1");
    m = tiny(named(node("", "x", "y"), "n"), NULL);
    refuse(f, &m, OCT_ERR_FORMAT, "no operator is given");
}

static void opsets(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, none = {0};

    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, OCT_OPSET_INTERNAL + 1);
    refuse(f, &m, OCT_ERR_UNSUPPORTED, "is newer than");
    m = model_of(&g, 0);
    refuse(f, &m, OCT_ERR_FORMAT, "opset 0 does not exist");
    pb_int(&none, 1, 8);
    pb_msg(&none, 7, &g);
    refuse(f, &none, OCT_ERR_FORMAT, "does not say which opset");
    add_opset(&none, "org.custom", 1);
    refuse(f, &none, OCT_ERR_FORMAT, "does not say which opset");
}

static void deep_nesting(void **state)
{
    fixture *f = *state;
    pb m, g = {0};

    for (int i = 0; i < OCT_ONNX_MAX_DEPTH + 1; i++) {
        pb outer = {0};

        add_node(&outer, with_attr(node("Body", "", ""), attr_graph("g", &g)));
        g = outer;
    }
    m = model_of(&g, 13);
    refuse(f, &m, OCT_ERR_FORMAT, "nested more than 32 deep");
}

static void broken_bytes(void **state)
{
    fixture *f = *state;
    pb m = tiny(node("Relu", "x", "y"), NULL), zero = {0};
    const size_t whole = m.n;
    oct_graph *g = NULL;

    for (m.n = 0; m.n < whole; m.n++) { /* cut anywhere: never read, never a crash */
        const oct_status st = oct_onnx_load_memory(f->ctx, m.b, m.n, &g);

        assert_int_not_equal(st, OCT_OK);
        assert_true(f->ctx->error[0]);
    }
    m.n = whole - 5;
    refuse(f, &m, OCT_ERR_FORMAT, "broken or truncated protobuf");
    assert_non_null(strstr(oct_ctx_error(f->ctx), "at byte"));
    m.n = 0;
    refuse(f, &m, OCT_ERR_FORMAT, "no graph in it");
    pb_int(&zero, 7, 5); /* a graph that is a number */
    refuse(f, &zero, OCT_ERR_FORMAT, "wrong wire type");
    m.n = whole;
    pb_msg(&m, 7, &zero);
    refuse(f, &m, OCT_ERR_FORMAT, "more than one graph");
    m = tiny(named(node("Relu", "x", "y"), "n"), NULL);
    for (size_t i = 0; i + 1 < m.n; i++)
        if (m.b[i] == 1 && m.b[i + 1] == 'n') m.b[i + 1] = 0;
    refuse(f, &m, OCT_ERR_FORMAT, "node name with a zero byte");
}

/* --- external data --- */

typedef struct folder {
    char path[64], model[128], data[128];
} folder;

static void make_folder(folder *d)
{
    snprintf(d->path, sizeof(d->path), "/tmp/octet-test-XXXXXX");
    assert_non_null(mkdtemp(d->path));
    snprintf(d->model, sizeof(d->model), "%s/m.onnx", d->path);
    snprintf(d->data, sizeof(d->data), "%s/w.bin", d->path);
}

static void drop_folder(const folder *d)
{
    unlink(d->model);
    unlink(d->data);
    rmdir(d->path);
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(p, 1, n, file), n);
    fclose(file);
}

static void external_entry(pb *t, const char *key, const char *v)
{
    pb e = {0};

    pb_str(&e, 1, key);
    pb_str(&e, 2, v);
    pb_msg(t, 13, &e);
}

static pb external_model(const char *location, const char *offset, const char *length)
{
    pb t = tensor_head("w", OCT_DTYPE_F32, 1, d3);

    if (location) external_entry(&t, "location", location);
    if (offset) external_entry(&t, "offset", offset);
    if (length) external_entry(&t, "length", length);
    pb_int(&t, 14, 1);
    return tiny(node("Add", "x w", "y"), &t);
}

static void external_data_are_read_in_place(void **state)
{
    fixture *f = *state;
    const float bytes[] = {9, 1, 2, 3};
    const pb m = external_model("w.bin", "4", "12");
    oct_graph *g = NULL;
    folder d;

    make_folder(&d);
    write_file(d.model, m.b, m.n);
    write_file(d.data, bytes, sizeof(bytes));
    assert_ok(f->ctx, oct_onnx_load(f->ctx, d.model, &g));
    assert_all_close(g->first->in[1]->data, w3, 3, 0);
    assert_true(g->first->in[1]->data->read_only);
    oct_graph_free(g);
    drop_folder(&d);
}

static void bad_external_data(void **state)
{
    static const struct {
        const char *location, *offset, *length;
        oct_status st;
        const char *text;
    } rows[] = {
        {"../w.bin", NULL, NULL, OCT_ERR_FORMAT, "leaves the model's folder with '..'"},
        {"a/../../w.bin", NULL, NULL, OCT_ERR_FORMAT, "leaves the model's folder with '..'"},
        {"/etc/passwd", NULL, NULL, OCT_ERR_FORMAT, "path '/etc/passwd' is absolute"},
        {"w.bin", "8", "12", OCT_ERR_FORMAT, "reach beyond the end of 'w.bin'"},
        {"w.bin", "99", "12", OCT_ERR_FORMAT, "begin at byte 99 of 'w.bin', which has only 16"},
        {"w.bin", "18446744073709551615", "12", OCT_ERR_FORMAT, "begin at byte"},
        {"w.bin", "0", "8", OCT_ERR_FORMAT, "are 8 bytes long, its type needs 12"},
        {"w.bin", "-4", "12", OCT_ERR_FORMAT, "offset '-4' is not a number"},
        {"w.bin", "0", "12x", OCT_ERR_FORMAT, "length '12x' is not a number"},
        {NULL, "0", "12", OCT_ERR_FORMAT, "without a location"},
        {"none.bin", "0", "12", OCT_ERR_IO, "cannot be opened"},
        {".", "0", "12", OCT_ERR_FORMAT, "leaves the model's folder"},
    };
    fixture *f = *state;
    const float bytes[] = {9, 1, 2, 3};
    oct_graph *g = NULL;
    folder d;

    make_folder(&d);
    write_file(d.data, bytes, sizeof(bytes));
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        const pb m = external_model(rows[i].location, rows[i].offset, rows[i].length);

        write_file(d.model, m.b, m.n);
        assert_fails(f->ctx, oct_onnx_load(f->ctx, d.model, &g), rows[i].st, rows[i].text);
        assert_non_null(strstr(oct_ctx_error(f->ctx), d.model));
    }
    drop_folder(&d);
}

static void links_out_of_the_folder(void **state)
{
    fixture *f = *state;
    const pb m = external_model("w.bin", NULL, NULL);
    oct_graph *g = NULL;
    folder d, other;

    make_folder(&d);
    make_folder(&other);
    write_file(other.data, w3, sizeof(w3));
    assert_int_equal(symlink(other.data, d.data), 0);
    write_file(d.model, m.b, m.n);
    assert_fails(f->ctx, oct_onnx_load(f->ctx, d.model, &g), OCT_ERR_FORMAT, "by a symbolic link");
    drop_folder(&d);
    drop_folder(&other);
}

static void memory_has_no_folder(void **state)
{
    const pb m = external_model("w.bin", "0", "12");

    refuse(*state, &m, OCT_ERR_UNSUPPORTED, "a model in memory has no folder");
}

static void files_that_are_not_there(void **state)
{
    fixture *f = *state;
    oct_graph *g = NULL;

    assert_fails(f->ctx, oct_onnx_load(f->ctx, "/nowhere/m.onnx", &g), OCT_ERR_IO,
                 "/nowhere/m.onnx");
}

static void memory_limits_are_kept(void **state)
{
    fixture *f = *state;
    const pb init = tensor_raw("w", OCT_DTYPE_F32, 1, d3, w3, sizeof(w3)),
             m = tiny(node("Add", "x w", "y"), &init);
    oct_graph *g = NULL;
    size_t limit = 4096;

    /* Whatever allocation fails, what was made before it is freed again (teardown checks). */
    for (; limit < (size_t)1 << 22 && !g; limit += limit / 16) {
        oct_ctx_set_memory_limit(f->ctx, limit);
        if (oct_onnx_load_memory(f->ctx, m.b, m.n, &g)) assert_null(g);
    }
    assert_non_null(g);
    oct_graph_free(g);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(cycles),
        T(dangling_names),
        T(duplicate_outputs),
        T(dimensions),
        T(data),
        T(sparse_tensors),
        T(attributes),
        T(operands),
        T(opsets),
        T(deep_nesting),
        T(broken_bytes),
        T(external_data_are_read_in_place),
        T(bad_external_data),
        T(links_out_of_the_folder),
        T(memory_has_no_folder),
        T(files_that_are_not_there),
        T(memory_limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
