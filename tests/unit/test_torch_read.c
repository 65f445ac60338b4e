/* SPDX-License-Identifier: Apache-2.0 */
/* torch.export archives made by hand: weights, operators in place, and what is refused. */
#include <unistd.h>

#include "tests/unit/torch_make.h"
#include "torch/aten.h"

static const float storage[] = {0, 1, 2, 3, 4, 5, 6, 7};

typedef struct made {
    archive a;
    oct_arena *arena;
} made;

/* The whole archive: a program, and the weight w over `storage`. */
static void make(made *m, fixture *f, const program *p, const char *config)
{
    m->arena = oct_arena_new(f->ctx);
    assert_non_null(m->arena);
    archive_init(&m->a, f->ctx);
    archive_text(&m->a, "net/archive_format", "pt2");
    archive_text(&m->a, "net/models/model.json", program_json(m->arena, p));
    archive_text(&m->a, "net/data/weights/model_weights_config.json",
                 config ? config
                        : config_json(m->arena, INT(2) "," INT(3), INT(3) "," INT(1), "0"));
    archive_add(&m->a, "net/data/weights/weight_0", storage, sizeof(storage));
    archive_end(&m->a);
}

static void unmake(made *m)
{
    archive_fini(&m->a);
    oct_arena_free(m->arena);
}

static oct_graph *read_program(fixture *f, const program *p, const char *config)
{
    oct_graph *g = NULL;
    made m;

    make(&m, f, p, config);
    assert_ok(f->ctx, oct_torch_load_memory(f->ctx, m.a.bytes.s, m.a.bytes.len, &g));
    unmake(&m);
    return g;
}

/* The result of a program for this x of 2x3. */
static void assert_result(fixture *f, const program *p, const char *config, const double x[6],
                          const float *want, int64_t n)
{
    oct_graph *g = read_program(f, p, config);
    oct_tensor *in = tensor_of(f->ctx, OCT_DTYPE_F32, 2, (int64_t[]){2, 3}, x), *out = NULL;

    assert_ok(f->ctx, oct_graph_eval(g, &in, &out, NULL));
    assert_all_close(out, want, n, 1e-6f);
    oct_tensor_unref(out);
    oct_tensor_unref(in);
    oct_graph_free(g);
}

static void assert_refused(fixture *f, const program *p, const char *config, oct_status st,
                           const char *text)
{
    oct_graph *g = NULL;
    made m;

    make(&m, f, p, config);
    assert_fails(f->ctx, oct_torch_load_memory(f->ctx, m.a.bytes.s, m.a.bytes.len, &g), st, text);
    assert_null(g);
    unmake(&m);
}

static const program plain_sum = {
    .nodes = NODE("add.Tensor", ARG("self", T("x")) "," ARG("other", T("p_w")), T("y")),
    .metas = X_2X3,
    .out = "y",
};

static void weights_have_strides_and_offsets(void **state)
{
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    const double x[6] = {0};

    assert_result(f, &plain_sum, NULL, x, (float[]){0, 1, 2, 3, 4, 5}, 6);
    assert_result(f, &plain_sum, config_json(a, INT(2) "," INT(3), INT(1) "," INT(2), "2"), x,
                  (float[]){2, 4, 6, 3, 5, 7}, 6);
    assert_result(f, &plain_sum, config_json(a, INT(2) "," INT(3), INT(0) "," INT(1), "5"), x,
                  (float[]){5, 6, 7, 5, 6, 7}, 6);
    oct_arena_free(a);
}

/* x is negated in place, and the sum reads it under its old name. */
static void operators_in_place_change_what_a_name_means(void **state)
{
    static const program p = {
        .nodes = NODE("neg_.default", ARG("self", T("x")), T("neg_")) "," NODE(
            "add.Tensor", ARG("self", T("x")) "," ARG("other", T("p_w")), T("y")),
        .metas = X_2X3,
        .out = "y",
    };

    assert_result(*state, &p, NULL, (double[]){1, 2, 3, 4, 5, 6}, (float[]){-1, -1, -1, -1, -1, -1},
                  6);
}

/* A row, then a part of it is overwritten: whole and other views see it. */
static void writing_a_view_changes_the_whole(void **state)
{
    static const program p = {
        .nodes = NODE("clone.default", ARG("self", T("x")), T("c")) "," NODE(
            "select.int", ARG("self", T("c")) "," ARG("dim", INT(0)) "," ARG("index", INT(1)),
            T("row")) "," NODE("transpose.int",
                               ARG("self", T("c")) "," ARG("dim0", INT(0)) "," ARG("dim1", INT(1)),
                               T("t")) "," NODE("slice.Tensor",
                                                ARG("self", T("row")) "," ARG("dim", INT(0)) "," ARG(
                                                    "start",
                                                    INT(1)) "," ARG("end",
                                                                    INT(9223372036854775807)),
                                                T("part")) "," NODE("fill_.Scalar",
                                                                    ARG("self", T("part")) "," ARG(
                                                                        "value", INT(7)),
                                                                    T("fill_")),
        .metas = X_2X3,
        .out = "t",
    };
    program whole = p;

    whole.out = "c";
    assert_result(*state, &p, NULL, (double[]){1, 2, 3, 4, 5, 6}, (float[]){1, 4, 2, 7, 3, 7}, 6);
    assert_result(*state, &whole, NULL, (double[]){1, 2, 3, 4, 5, 6}, (float[]){1, 2, 3, 4, 7, 7},
                  6);
}

/* The batch of a view is left open where the size of x is symbolic. */
static void symbolic_sizes_stay_open(void **state)
{
    static const program p = {
        .nodes = "{'target':'torch.ops.aten.sym_size.int','inputs':[" ARG("self", T("x")) "," ARG(
            "dim",
            INT(0)) "],'outputs':[{'as_sym_int':{'as_name':'n'}}],'metadata':{}},"
                    "{'target':'_operator.mul','inputs':[" ARG(
                        "a", "{'as_sym_int':{'as_name':'n'}"
                             "}") "," ARG("b", INT(3)) "],"
                                                       "'outputs':[{'as_sym_int':{'as_name':'m'}}],"
                                                       "'metadata':{}}," NODE(
                                                           "view.default",
                                                           ARG("self", T("x")) "," ARG(
                                                               "size", "{'as_sym_ints':[{'as_name':"
                                                                       "'m'},{'as_int':1}]}"),
                                                           T("y")),
        .metas =
            "'x':{'dtype':7,'sizes':[{'as_expr':{'expr_str':'Symbol(\\\"s7\\\")','hint':null}},"
            "{'as_int':3}],'strides':[{'as_int':3},{'as_int':1}],"
            "'storage_offset':{'as_int':0},'layout':7}",
        .out = "y",
    };

    assert_result(*state, &p, NULL, (double[]){1, 2, 3, 4, 5, 6}, (float[]){1, 2, 3, 4, 5, 6}, 6);
}

static void weights_stay_in_the_file(void **state)
{
    fixture *f = *state;
    char path[] = "/tmp/octet-test-torch-XXXXXX";
    const int fd = mkstemp(path);
    oct_graph *g = NULL;
    made m;

    make(&m, f, &plain_sum, NULL);
    assert_true(fd >= 0 && write(fd, m.a.bytes.s, m.a.bytes.len) == (ssize_t)m.a.bytes.len);
    unmake(&m);
    assert_ok(f->ctx, oct_model_load(f->ctx, path, &g)); /* its name says nothing */
    assert_true(g->first->in[1]->data->read_only);
    assert_string_equal(g->first->in[1]->name, "w");
    oct_graph_free(g);
    close(fd);
    unlink(path);
}

/* --- weights that torch.save() wrote --- */

#define TEXT(n, s) "X" n "\0\0\0" s
#define STORAGE                                                                                    \
    "(" TEXT("\7", "storage") "ctorch\nFloatStorage\n" TEXT("\1", "0") TEXT("\3", "cpu") "K\10tQ"
#define TENSOR(offset)                                                                             \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE offset "K\2K\3\x86K\3K\1\x86\x89"               \
    "ccollections\nOrderedDict\n)RtR"

/* The form of PyTorch 2.8, with this pickle as the state dict. */
static oct_status load_pickle(fixture *f, const char *pickle, size_t n, oct_graph **out)
{
    oct_arena *arena = oct_arena_new(f->ctx);
    archive inner, outer;
    oct_status st;

    archive_init(&inner, f->ctx);
    archive_add(&inner, "archive/data.pkl", pickle, n);
    archive_add(&inner, "archive/data/0", storage, sizeof(storage));
    archive_end(&inner);
    archive_init(&outer, f->ctx);
    archive_text(&outer, "net/models/model.json", program_json(arena, &plain_sum));
    archive_add(&outer, "net/data/weights/model.pt", inner.bytes.s, inner.bytes.len);
    archive_end(&outer);
    st = oct_torch_load_memory(f->ctx, outer.bytes.s, outer.bytes.len, out);
    archive_fini(&inner);
    archive_fini(&outer);
    oct_arena_free(arena);
    return st;
}

static void pickles_of_tensors_are_read(void **state)
{
    static const char pickle[] = "\x80\2}q\0(" TEXT("\1", "w") TENSOR("K\1") "u.";
    fixture *f = *state;
    oct_graph *g = NULL;

    assert_ok(f->ctx, load_pickle(f, pickle, sizeof(pickle) - 1, &g));
    assert_all_close(g->first->in[1]->data, (float[]){1, 2, 3, 4, 5, 6}, 6, 0);
    oct_graph_free(g);
}

static void other_pickles_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        oct_status st;
        const char *text;
    } rows[] = {
#define ROW(bytes, st, text) {bytes, sizeof(bytes) - 1, st, text}
        ROW("\x80\2cos\nsystem\n" TEXT("\2", "ls") "\x85R.", OCT_ERR_UNSUPPORTED,
            "a pickle with more than tensors: os system"),
        ROW("\x80\2}(" TEXT("\1", "w") TENSOR("K\3") "u.", OCT_ERR_FORMAT,
            "reaches beyond its 32 bytes"),
        ROW("\x80\2}(" TEXT("\1", "w"), OCT_ERR_FORMAT, "it ends early"),
        ROW("\x80\2R.", OCT_ERR_FORMAT, "its stack is empty"),
        ROW("\x80\2h\7.", OCT_ERR_FORMAT, "memory that nobody wrote"),
        ROW("\x80\2X\xff\xff\xff\xff.", OCT_ERR_FORMAT, "it ends early"),
        ROW("\x80\2K\1.", OCT_ERR_UNSUPPORTED, "not a dict of tensors"),
        ROW("\x80\2}.", OCT_ERR_FORMAT, "weight 'w' is not in the archive"),
        ROW("\x80\2\x95", OCT_ERR_UNSUPPORTED, "opcode 0x95"),
#undef ROW
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        oct_graph *g = NULL;

        assert_fails(f->ctx, load_pickle(f, rows[i].bytes, rows[i].n, &g), rows[i].st,
                     rows[i].text);
        assert_null(g);
    }
}

/* --- refused --- */

static void unknown_operators_are_named_at_once(void **state)
{
    static const program p = {
        .nodes = NODE("foo.default", ARG("self", T("x")),
                      T("a")) "," NODE("bar_.out", ARG("self", T("a")), T("y")),
        .metas = X_2X3,
        .out = "y",
    };

    assert_refused(*state, &p, NULL, OCT_ERR_UNSUPPORTED,
                   "these operators of torch.export: aten.foo.default, aten.bar_.out; try "
                   "ep.run_decompositions()");
}

static void what_lies_outside_is_refused(void **state)
{
    static const struct {
        const char *sizes, *strides, *offset, *text;
    } rows[] = {
        {INT(2) "," INT(3), INT(3) "," INT(1), "3", "reaches beyond its 32 bytes"},
        {INT(2) "," INT(3), INT(4611686018427387904) "," INT(1), "0", "reaches beyond"},
        {INT(2) "," INT(9), INT(3) "," INT(1), "0", "reaches beyond"},
        {INT(4611686018427387904) "," INT(4611686018427387904), INT(0) "," INT(0), "0",
         "symbolic or overflows"},
        {INT(2) "," INT(-3), INT(3) "," INT(1), "0", "a size is negative"},
        {INT(2), INT(3) "," INT(1), "0", "without sizes and strides"},
    };
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);

    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        assert_refused(f, &plain_sum,
                       config_json(a, rows[i].sizes, rows[i].strides, rows[i].offset),
                       OCT_ERR_FORMAT, rows[i].text);
    oct_arena_free(a);
}

static void broken_programs_are_refused(void **state)
{
    static const struct {
        program p;
        oct_status st;
        const char *text;
    } rows[] = {
        /* two nodes that read each other */
        {{.nodes = NODE("relu.default", ARG("self", T("b")),
                        T("a")) "," NODE("relu.default", ARG("self", T("a")), T("b")),
          .metas = X_2X3,
          .out = "b"},
         OCT_ERR_FORMAT,
         "'b' is read before anything makes it"},
        {{.nodes = NODE("relu.default", ARG("self", T("x")), T("x")), .metas = X_2X3, .out = "x"},
         OCT_ERR_FORMAT,
         "two values are called 'x'"},
        {{.nodes = NODE("relu.default", "", T("y")), .metas = X_2X3, .out = "y"},
         OCT_ERR_FORMAT,
         "node 'y' (aten.relu.default): argument 'self' is not a tensor"},
        {{.nodes = "", .metas = X_2X3, .out = "y", .schema = "99"},
         OCT_ERR_UNSUPPORTED,
         "schema 99 of torch.export"},
        {{.nodes = "[[[", .metas = "", .out = "y"}, OCT_ERR_FORMAT, "model.json: line 1"},
        {{.nodes = "{}", .metas = "", .out = "y"}, OCT_ERR_FORMAT, "the target of a node"},
    };

    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        assert_refused(*state, &rows[i].p, NULL, rows[i].st, rows[i].text);
}

static void assert_archive_refused(fixture *f, archive *a, const char *text)
{
    oct_graph *g = NULL;

    archive_end(a);
    assert_fails(f->ctx, oct_torch_load_memory(f->ctx, a->bytes.s, a->bytes.len, &g),
                 OCT_ERR_FORMAT, text);
    archive_fini(a);
}

/* Sizes in the directory that the bytes do not bear out take no memory. */
static void bombs_are_refused(void **state)
{
    fixture *f = *state;
    archive a;

    archive_init(&a, f->ctx);
    archive_put(&a, "n/models/model.json", "abcd", 4, 4000000000u, 8);
    assert_archive_refused(f, &a, "4000000000 bytes cannot come out of 4");
    archive_init(&a, f->ctx);
    archive_put(&a, "n/models/model.json", "abcd", 4, 400, 0);
    assert_archive_refused(f, &a, "has two sizes");
    archive_init(&a, f->ctx);
    archive_put(&a, "n/models/model.json", "abcd", 4, 400, 8);
    assert_archive_refused(f, &a, "n/models/model.json");
    archive_init(&a, f->ctx);
    archive_text(&a, "n/data.pkl", "");
    assert_archive_refused(f, &a, "no exported program in it");
}

/* Lists inside lists, as deep as they fit. */
static void deep_json_is_refused(void **state)
{
    fixture *f = *state;
    char deep[20001];
    const program p = {.nodes = deep, .metas = "", .out = "y"};

    memset(deep, '[', 10000);
    memset(deep + 10000, ']', 10000);
    deep[20000] = '\0';
    assert_refused(f, &p, NULL, OCT_ERR_FORMAT, "model.json: line 1");
}

static void rows_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 1; oct_aten_at(i); i++) {
        if (strcmp(oct_aten_at(i - 1)->target, oct_aten_at(i)->target) >= 0)
            fail_msg("aten.def: %s is out of order", oct_aten_at(i)->target);
        assert_ptr_equal(oct_aten_find(oct_aten_at(i)->target), oct_aten_at(i));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weights_have_strides_and_offsets),
        TEST(operators_in_place_change_what_a_name_means),
        TEST(writing_a_view_changes_the_whole),
        TEST(symbolic_sizes_stay_open),
        TEST(weights_stay_in_the_file),
        TEST(pickles_of_tensors_are_read),
        TEST(other_pickles_are_refused),
        TEST(unknown_operators_are_named_at_once),
        TEST(what_lies_outside_is_refused),
        TEST(broken_programs_are_refused),
        TEST(bombs_are_refused),
        TEST(deep_json_is_refused),
        TEST(rows_are_sorted),
    };

    return run_test_group(tests);
}
