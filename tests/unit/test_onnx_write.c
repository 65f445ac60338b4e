/* SPDX-License-Identifier: Apache-2.0 */
/* Writing ONNX models: what is written is read again as it was, in a file that says the truth. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "graph/op.h"
#include "onnx/write.h"
#include "op/grad/rules.h"
#include "op/op.h"
#include "tests/unit/onnx_make.h"

static const int64_t d23[] = {2, 3};

static oct_status to_str(void *user, const void *p, size_t size)
{
    oct_str *s = user;

    oct_str_put(s, p, size);
    return s->failed ? OCT_ERR_MEMORY : OCT_OK;
}

/* Writes, reads, compares; the caller frees the graph, and the bytes after it. */
static oct_graph *again(fixture *f, oct_graph *g, const oct_onnx_options *o, oct_str *bytes)
{
    oct_graph *back = NULL;
    char why[256] = "";

    oct_str_init(bytes, f->ctx);
    assert_ok(f->ctx, oct_onnx_encode(g, o, to_str, bytes));
    assert_ok(f->ctx, oct_onnx_load_memory(f->ctx, bytes->s, bytes->len, &back));
    if (!oct_graph_equal(g, back, why, sizeof(why))) fail_msg("%s", why);
    return back;
}

static void round_trip(fixture *f, oct_graph *g)
{
    oct_str bytes;
    oct_graph *back = again(f, g, NULL, &bytes);

    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static oct_value *emit(fixture *f, const char *op, oct_value *x, oct_value *y)
{
    const oct_op *row = oct_op_find("", op);
    oct_value *v;

    assert_non_null(row);
    v = oct_emit(&f->b, row, x, y, NULL);
    assert_ok(f->ctx, f->b.status);
    return v;
}

static void a_built_graph(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_value *y = emit(f, "LeakyRelu", emit(f, "Add", x, input(f, 3, (float[]){1, 2, 3})), NULL);
    oct_str bytes;
    oct_graph *back;

    assert_ok(f->ctx, oct_node_set_f32(y->producer, "alpha", 0.25f));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    back = again(f, f->g, NULL, &bytes);
    assert_int_equal(oct_graph_opset(back), 13); /* the oldest that is written */
    assert_int_equal(oct_graph_ir_version(back), 8);
    assert_string_equal(back->info.producer_name, "octet");
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static void texts_and_names(void **state)
{
    fixture *f = *state;
    const char *names[OCT_MAX_RANK] = {"batch", NULL};
    const int64_t open[] = {-1, 3};
    oct_prop props[] = {{"classes", "cat,dog"}, {"stride", "32"}};
    oct_opset opsets[] = {{"", 20}, {"org.custom", 3}};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F16, 2, open), *y = emit(f, "Relu", x, NULL);
    oct_str bytes;
    oct_graph *back;

    x->dim_name = names;
    x->doc = "input";
    y->producer->doc = "node";
    f->g->doc = "graph";
    f->g->info = (oct_model_info){.ir_version = 9,
                                  .model_version = 5,
                                  .producer_name = "maker",
                                  .producer_version = "2",
                                  .domain = "org",
                                  .doc = "model",
                                  .opsets = opsets,
                                  .n_opsets = 2,
                                  .props = props,
                                  .n_props = 2};
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    back = again(f, f->g, NULL, &bytes);
    assert_string_equal(back->name, "test");
    assert_string_equal(back->doc, "graph");
    assert_string_equal(back->inputs[0]->doc, "input");
    assert_string_equal(back->first->doc, "node");
    assert_string_equal(oct_value_dim_name(back->inputs[0], 0), "batch");
    assert_null(oct_value_dim_name(back->inputs[0], 1));
    assert_int_equal(oct_graph_opset(back), 20);
    assert_int_equal(oct_graph_ir_version(back), 9);
    assert_int_equal(back->info.model_version, 5);
    assert_string_equal(back->info.producer_name, "maker");
    assert_string_equal(back->info.doc, "model");
    assert_string_equal(back->info.opsets[1].domain, "org.custom");
    assert_int_equal(back->info.opsets[1].version, 3);
    assert_int_equal(back->info.n_props, 3); /* who wrote it, if not its producer */
    assert_string_equal(back->info.props[1].value, "32");
    assert_string_equal(back->info.props[2].key, "octet.writer");
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static void metadata_is_set_replaced_and_removed(void **state)
{
    fixture *f = *state;
    const int64_t dims[] = {1, 3};
    oct_value *y = emit(f, "Relu", graph_input(f, "x", OCT_DTYPE_F32, 2, dims), NULL);
    oct_str bytes;
    oct_graph *back;

    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_null(oct_graph_metadata(f->g, "names"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "names", "a"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "task", "detect"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "stride", "32"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "names", "b"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "task", NULL));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "never", NULL));
    back = again(f, f->g, NULL, &bytes);
    assert_string_equal(oct_graph_metadata(back, "names"), "b");
    assert_string_equal(oct_graph_metadata(back, "stride"), "32");
    assert_null(oct_graph_metadata(back, "task"));
    assert_null(oct_graph_metadata_key(back, 2));
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static void every_attribute_kind(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    const oct_op *op = oct_op_opaque(f->g, "org.custom", "Fancy");
    oct_node *n = oct_node_new(f->g, NULL, "fancy", op, &x, 1, NULL, 1);
    pb raw = {0};
    oct_graph *body = NULL;
    oct_tensor *t = NULL;
    oct_value *inner;

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "i", -7));
    assert_ok(f->ctx, oct_node_set_f32(n, "f", 0.1f));
    assert_ok(f->ctx, oct_node_set_str(n, "s", "text"));
    assert_ok(f->ctx, oct_node_set_str(n, "empty", ""));
    assert_ok(f->ctx, oct_node_set_ints(n, "is", (int64_t[]){1, -2, INT64_MIN}, 3));
    assert_ok(f->ctx, oct_node_set_ints(n, "none", NULL, 0));
    assert_ok(f->ctx, oct_node_set_attr(
                          n, "fs",
                          &(oct_attr){.kind = OCT_ATTR_F32S, .n = 2, .fs = (float[]){NAN, -0.0f}}));
    assert_ok(f->ctx,
              oct_node_set_attr(
                  n, "ss",
                  &(oct_attr){.kind = OCT_ATTR_STRINGS, .n = 2, .ss = (const char *[]){"a", ""}}));
    t = tensor_of(f->ctx, OCT_DTYPE_I4, 2, d23, (double[]){1, 2, 3, -4, 5, -8});
    assert_ok(f->ctx, oct_node_set_attr(n, "t", &(oct_attr){.kind = OCT_ATTR_TENSOR, .t = t}));
    oct_tensor_unref(t);
    pb_str(&raw, 1, "r");
    pb_msg(&raw, 14, &(pb){0});
    pb_int(&raw, 20, 13);
    assert_ok(f->ctx, oct_node_set_attr(n, "r",
                                        &(oct_attr){.kind = OCT_ATTR_RAW,
                                                    .n = (int64_t)raw.n,
                                                    .s = (const char *)raw.b}));
    assert_ok(f->ctx, oct_graph_new_sub(f->g, "body", &body));
    assert_ok(f->ctx, oct_node_set_attr(n, "g", &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = body}));
    f->b.g = body;
    inner =
        emit(f, "Add", x, input(f, 3, (float[]){1, 2, 3})); /* the constant: the outer graph's */
    assert_ok(f->ctx, oct_graph_add_output(body, inner));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    round_trip(f, f->g);
}

static void every_element_type(void **state)
{
    fixture *f = *state;
    const int64_t five = 5;

    for (int t = OCT_DTYPE_F32; t <= OCT_DTYPE_I2; t++) {
        const oct_op *op = oct_op_opaque(f->g, "", "Keep");
        const oct_type type = oct_type_make((oct_dtype)t, 1, &five);
        oct_tensor *data = NULL;
        oct_value *v;

        assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &data));
        if (t == OCT_DTYPE_STRING)
            for (int i = 0; i < 5; i++)
                ((oct_string *)data->data)[i] = (oct_string){"a\0bcd", (size_t)i};
        else
            memset(data->data, 0x15, data->size);
        v = oct_value_const(f->g, NULL, data);
        assert_non_null(v);
        assert_non_null(oct_node_new(f->g, NULL, NULL, op, &v, 1, NULL, 1));
    }
    round_trip(f, f->g);
}

static void empty_and_scalar_constants(void **state)
{
    fixture *f = *state;
    const oct_op *op = oct_op_opaque(f->g, "", "Keep");
    const int64_t none[] = {0, 4};
    oct_value *in[2];

    in[0] = oct_value_const(f->g, "e", tensor_of(f->ctx, OCT_DTYPE_F32, 2, none, NULL));
    in[1] = oct_value_const(f->g, "s", tensor_of(f->ctx, OCT_DTYPE_I64, 0, NULL, (double[]){3}));
    assert_non_null(oct_node_new(f->g, NULL, "k", op, in, 2, NULL, 1));
    round_trip(f, f->g);
}

static void unused_constants_are_not_written(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_str bytes;
    oct_graph *back;

    (void)input(f, 3, (float[]){1, 2, 3});
    assert_ok(f->ctx, oct_graph_add_output(f->g, emit(f, "Relu", x, NULL)));
    back = again(f, f->g, NULL, &bytes);
    for (int32_t i = 0; i < back->n_value_ids; i++)
        assert_null(back->values[i]->data);
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static void opsets_that_operators_and_types_ask_for(void **state)
{
    fixture *f = *state;
    oct_onnx_options o;
    oct_str bytes;
    oct_graph *back;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23), *y = emit(f, "Gelu", x, NULL);

    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    oct_onnx_options_init(&o);
    back = again(f, f->g, &o, &bytes);
    assert_int_equal(oct_graph_opset(back), 20);
    oct_graph_free(back);
    oct_str_fini(&bytes);
    o.opset = 23;
    back = again(f, f->g, &o, &bytes);
    assert_int_equal(oct_graph_opset(back), 23);
    assert_int_equal(oct_graph_ir_version(back), 11);
    oct_graph_free(back);
    oct_str_fini(&bytes);

    oct_str_init(&bytes, f->ctx);
    o.opset = 17;
    assert_fails(f->ctx, oct_onnx_encode(f->g, &o, to_str, &bytes), OCT_ERR_ARG,
                 "opset 17 is too old for Gelu, which needs 20");
    o.opset = 7;
    assert_fails(f->ctx, oct_onnx_encode(f->g, &o, to_str, &bytes), OCT_ERR_ARG, "octet writes 13");
    o.opset = 99;
    assert_fails(f->ctx, oct_onnx_encode(f->g, &o, to_str, &bytes), OCT_ERR_ARG, "octet writes 13");
    assert_int_equal(bytes.len, 0);
    graph_input(f, "q", OCT_DTYPE_U4, 2, d23);
    o.opset = 20;
    assert_fails(f->ctx, oct_onnx_encode(f->g, &o, to_str, &bytes), OCT_ERR_ARG, "needs 21");
    oct_str_fini(&bytes);
}

/* Gradients may hold operators that no file can: the node is named, nothing is written. */
static void training_operators_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_node *n = oct_emit_node(&f->b, &oct_op_act_grad, (oct_value *[]){x, x}, 2, 1);
    oct_str bytes;

    oct_emit_int(&f->b, n, "act", 1);
    assert_ok(f->ctx, oct_graph_add_output(f->g, oct_emitted(&f->b, n)));
    oct_str_init(&bytes, f->ctx);
    assert_fails(f->ctx, oct_onnx_encode(f->g, NULL, to_str, &bytes), OCT_ERR_UNSUPPORTED,
                 "(ActivationGrad): an operator of training graphs");
    assert_int_equal(bytes.len, 0);
    oct_str_fini(&bytes);
}

/* Opset 13 has QuantizeLinear, but not to 16 bits. */
static void codes_of_16_bits_ask_for_their_opset(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_value *in[] = {x, oct_scalar(&f->b, 0.5f), NULL};
    oct_tensor *zero = tensor_of(f->ctx, OCT_DTYPE_I16, 0, NULL, (const double[]){3});
    oct_str bytes;
    oct_graph *back;
    oct_node *q;

    in[2] = oct_value_const(f->g, "zero", zero);
    q = oct_emit_node(&f->b, oct_op_find("", "QuantizeLinear"), in, 3, 1);
    assert_ok(f->ctx, oct_node_infer(q));
    assert_ok(f->ctx, oct_graph_add_output(f->g, q->out[0]));
    back = again(f, f->g, NULL, &bytes);
    assert_int_equal(oct_graph_opset(back), 21);
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

static void attributes_that_came_later(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_value *shape = emit(f, "Shape", x, NULL), *y;
    oct_str bytes;
    oct_graph *back;

    y = emit(f, "Reshape", x, shape);
    assert_ok(f->ctx, oct_node_set_int(y->producer, "allowzero", 1));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_ok(f->ctx, oct_graph_infer(f->g));
    back = again(f, f->g, NULL, &bytes);
    assert_int_equal(oct_graph_opset(back), 14);
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

/* --- files --- */

typedef struct folder {
    char path[64], model[128], data[128];
} folder;

static void make_folder(folder *d)
{
    snprintf(d->path, sizeof(d->path), "/tmp/octet-test-XXXXXX");
    assert_non_null(mkdtemp(d->path));
    snprintf(d->model, sizeof(d->model), "%s/m.onnx", d->path);
    snprintf(d->data, sizeof(d->data), "%s/m.onnx.data", d->path);
}

static void drop_folder(const folder *d)
{
    unlink(d->model);
    unlink(d->data);
    assert_int_equal(rmdir(d->path), 0); /* nothing else is left in it */
}

static void external_data(void **state)
{
    fixture *f = *state;
    const int64_t big[] = {1000};
    static float w[1000];
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, big), *y;
    oct_onnx_options o;
    oct_graph *back = NULL;
    struct stat info;
    char why[256] = "";
    folder d;

    for (int i = 0; i < 1000; i++)
        w[i] = (float)i;
    y = emit(f, "Add", x, input(f, 1000, w));
    y = emit(f, "Mul", y, input(f, 1, (float[]){2})); /* small: stays in the model */
    y = emit(f, "Sub", y, input(f, 1000, w));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    make_folder(&d);
    oct_onnx_options_init(&o);
    o.external_data = 1;
    assert_ok(f->ctx, oct_onnx_save(f->g, d.model, &o));
    assert_int_equal(stat(d.data, &info), 0);
    assert_int_equal(info.st_size, 4096 + 4000); /* each begins on a page of its own */
    assert_ok(f->ctx, oct_onnx_load(f->ctx, d.model, &back));
    assert_true(oct_graph_equal(f->g, back, why, sizeof(why)));
    assert_int_equal((uintptr_t)back->first->in[1]->data->data % 4096, 0);
    /* Over the very files it is mapped from. */
    assert_ok(f->ctx, oct_onnx_save(back, d.model, &o));
    assert_true(oct_graph_equal(f->g, back, why, sizeof(why)));
    oct_graph_free(back);
    back = NULL;
    assert_ok(f->ctx, oct_onnx_load(f->ctx, d.model, &back));
    assert_true(oct_graph_equal(f->g, back, why, sizeof(why)));
    oct_graph_free(back);
    drop_folder(&d);
}

/* Zeros that take no room in memory, more than the disk is large: not to be written onto it. */
static void more_than_the_disk_holds_is_refused(void **state)
{
    fixture *f = *state;
    struct statvfs disk;
    oct_tensor *t = NULL;
    oct_type type;
    oct_value *y;
    void *zeros;
    folder d;

    make_folder(&d);
    assert_int_equal(statvfs(d.path, &disk), 0);
    type = oct_type_make(OCT_DTYPE_I8, 1, &(int64_t){(int64_t)(disk.f_blocks * disk.f_frsize) + 1});
    zeros = mmap(NULL, (size_t)type.dim[0], PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (disk.f_blocks && zeros != MAP_FAILED) { /* else the disk does not say how large it is */
        assert_ok(f->ctx, oct_tensor_borrow(f->ctx, &type, zeros, &t));
        y = emit(f, "Identity", oct_value_const(f->g, NULL, t), NULL);
        assert_ok(f->ctx, oct_graph_add_output(f->g, y));
        assert_fails(f->ctx, oct_onnx_save(f->g, d.model, NULL), OCT_ERR_IO,
                     "are free on its disk");
    }
    if (zeros != MAP_FAILED) assert_int_equal(munmap(zeros, (size_t)type.dim[0]), 0);
    drop_folder(&d);
}

static void one_file(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_graph *back = NULL;
    struct stat info;
    char why[256] = "";
    folder d;

    assert_ok(f->ctx, oct_graph_add_output(f->g, emit(f, "Relu", x, NULL)));
    make_folder(&d);
    assert_ok(f->ctx, oct_onnx_save(f->g, d.model, NULL));
    assert_int_not_equal(stat(d.data, &info), 0);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, d.model, &back));
    assert_true(oct_graph_equal(f->g, back, why, sizeof(why)));
    oct_graph_free(back);
    drop_folder(&d);
    assert_fails(f->ctx, oct_onnx_save(f->g, d.model, NULL), OCT_ERR_IO, d.path);
}

static oct_status stop(void *user, const void *p, size_t size)
{
    (void)p;
    return size ? oct_fail(user, OCT_ERR_IO, "the disk is full") : OCT_OK;
}

static void failures_to_write_are_told(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, d23);
    oct_graph *sub = NULL;

    assert_ok(f->ctx, oct_graph_add_output(f->g, emit(f, "Relu", x, NULL)));
    assert_fails(f->ctx, oct_onnx_encode(f->g, NULL, stop, f->ctx), OCT_ERR_IO, "disk is full");
    assert_ok(f->ctx, oct_graph_new_sub(f->g, "s", &sub));
    assert_fails(f->ctx, oct_onnx_encode(sub, NULL, stop, f->ctx), OCT_ERR_ARG, "subgraph");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_built_graph),
        T(texts_and_names),
        T(metadata_is_set_replaced_and_removed),
        T(every_attribute_kind),
        T(every_element_type),
        T(empty_and_scalar_constants),
        T(unused_constants_are_not_written),
        T(opsets_that_operators_and_types_ask_for),
        T(training_operators_are_refused),
        T(codes_of_16_bits_ask_for_their_opset),
        T(attributes_that_came_later),
        T(external_data),
        T(more_than_the_disk_holds_is_refused),
        T(one_file),
        T(failures_to_write_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
