/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ONNX models that are right: names, types, constants, subgraphs, functions. */
#include "graph/op.h"
#include "tests/unit/onnx_make.h"

static const int64_t d23[] = {2, 3}, d3[] = {3}, d2[] = {2};

/* x -> Relu -> y */
static pb relu_graph(void)
{
    pb g = {0};

    pb_str(&g, 2, "net");
    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, d23));
    return g;
}

static void names_types_and_texts_are_kept(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, dim = {0}, shape = {0}, tensor = {0}, type = {0}, x = {0}, prop = {0}, n;
    oct_graph *got;

    pb_str(&dim, 2, "batch");
    pb_msg(&shape, 1, &dim);
    pb_int(&tensor, 1, OCT_DTYPE_F16);
    pb_msg(&tensor, 2, &shape);
    pb_msg(&type, 1, &tensor);
    pb_str(&x, 1, "x");
    pb_msg(&x, 2, &type);
    pb_str(&x, 3, "what goes in");
    pb_str(&g, 2, "net");
    pb_str(&g, 10, "a graph");
    add_input(&g, x);
    n = named(node("Relu", "x", "y"), "/model.22/act");
    pb_str(&n, 6, "an activation");
    add_node(&g, n);
    add_output(&g, value("y", OCT_DTYPE_F16, -1, NULL));
    m = model_of(&g, 17);
    pb_str(&m, 2, "maker");
    pb_str(&m, 3, "1.2");
    pb_str(&m, 4, "org.maker");
    pb_int(&m, 5, 7);
    pb_str(&m, 6, "a model");
    pb_str(&prop, 1, "classes");
    pb_str(&prop, 2, "cat,dog");
    pb_msg(&m, 14, &prop);

    got = load(f, &m);
    assert_string_equal(oct_graph_name(got), "net");
    assert_string_equal(got->doc, "a graph");
    assert_string_equal(got->info.producer_name, "maker");
    assert_string_equal(got->info.producer_version, "1.2");
    assert_string_equal(got->info.domain, "org.maker");
    assert_string_equal(got->info.doc, "a model");
    assert_int_equal(got->info.model_version, 7);
    assert_int_equal(oct_graph_ir_version(got), 8);
    assert_int_equal(oct_graph_opset(got), 17);
    assert_int_equal(got->info.n_props, 1);
    assert_string_equal(got->info.props[0].key, "classes");
    assert_string_equal(got->info.props[0].value, "cat,dog");
    assert_string_equal(oct_graph_metadata(got, "classes"), "cat,dog");
    assert_null(oct_graph_metadata(got, "class"));
    assert_string_equal(oct_graph_metadata_key(got, 0), "classes");
    assert_null(oct_graph_metadata_key(got, 1));
    assert_string_equal(got->inputs[0]->doc, "what goes in");
    assert_string_equal(oct_value_dim_name(got->inputs[0], 0), "batch");
    assert_int_equal(got->inputs[0]->type.dim[0], -1);
    assert_int_equal(got->outputs[0]->type.dtype, OCT_DTYPE_F16);
    assert_int_equal(got->outputs[0]->type.rank, 1); /* inferred */
    assert_string_equal(got->first->name, "/model.22/act");
    assert_string_equal(got->first->doc, "an activation");
    oct_graph_free(got);
}

static void nodes_without_a_name_get_that_of_their_output(void **state)
{
    fixture *f = *state;
    pb g = {0}, m;
    oct_graph *got;

    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "a"));
    add_node(&g, named(node("Relu", "a", "b"), "same"));
    add_node(&g, named(node("Relu", "b", "c"), "same"));
    add_node(&g, named(node("Relu", "c", "y"), "a"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_string_equal(nth_node(got, 0)->name, "a_1"); /* the file's own "a" keeps its name */
    assert_string_equal(nth_node(got, 1)->name, "same");
    assert_string_equal(nth_node(got, 2)->name, "same_1");
    assert_string_equal(nth_node(got, 3)->name, "a");
    oct_graph_free(got);
}

static void initializers_that_are_inputs_are_constants(void **state)
{
    fixture *f = *state;
    const float w[] = {1, 2, 3};
    pb g = {0}, m;
    oct_graph *got;

    add_input(&g, f32("x", 2, d23));
    add_input(&g, f32("w", 1, d3));
    add_init(&g, tensor_raw("w", OCT_DTYPE_F32, 1, d3, w, sizeof(w)));
    add_node(&g, node("Add", "x w", "y"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_int_equal(got->n_inputs, 1);
    assert_all_close(got->first->in[1]->data, w, 3, 0);
    oct_graph_free(got);
}

static void constants_of_every_form(void **state)
{
    fixture *f = *state;
    const float fs[] = {1, 2};
    const int64_t is[] = {5, 6, 7}, one = 1, at = 2;
    const float three = 3;
    pb g = {0}, m, strings = {0}, sparse = {0}, t;
    oct_graph *got;

    pb_str(&strings, 1, "value_strings");
    pb_str(&strings, 9, "ab");
    pb_str(&strings, 9, "");
    pb_int(&strings, 20, 8);
    t = tensor_raw("", OCT_DTYPE_F32, 1, &one, &three, 4);
    pb_msg(&sparse, 1, &t);
    t = tensor_raw("", OCT_DTYPE_I64, 1, &one, &at, 8);
    pb_msg(&sparse, 2, &t);
    pb_int(&sparse, 3, 3);
    t = tensor_raw("", OCT_DTYPE_F32, 1, d2, fs, sizeof(fs));
    add_node(&g, with_attr(node("Constant", "", "a"), attr_msg("value", 5, 4, &t)));
    add_node(&g, with_attr(node("Constant", "", "b"), attr_float("value_float", 2.5f)));
    add_node(&g, with_attr(node("Constant", "", "c"), attr_floats("value_floats", 2, fs)));
    add_node(&g, with_attr(node("Constant", "", "d"), attr_int("value_int", -4)));
    add_node(&g, with_attr(node("Constant", "", "e"), attr_ints("value_ints", 3, is)));
    add_node(&g, with_attr(node("Constant", "", "f"), attr_str("value_string", "text")));
    add_node(&g, with_attr(node("Constant", "", "g"), strings));
    add_node(&g, with_attr(node("Constant", "", "h"), attr_msg("sparse_value", 22, 11, &sparse)));
    add_node(&g, node("Anything", "a b c d e f g h", "y"));
    add_output(&g, f32("y", -1, NULL));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_int_equal(got->n_nodes, 1);

    oct_value **in = got->first->in;

    assert_all_close(in[0]->data, fs, 2, 0);
    assert_int_equal(in[1]->data->type.rank, 0);
    assert_all_close(in[1]->data, (float[]){2.5f}, 1, 0);
    assert_all_close(in[2]->data, fs, 2, 0);
    assert_int_equal(in[3]->data->type.dtype, OCT_DTYPE_I64);
    assert_int_equal(oct_tensor_get_i64(in[3]->data, 0), -4);
    assert_int_equal(oct_tensor_get_i64(in[4]->data, 2), 7);
    assert_int_equal(in[5]->data->type.rank, 0);
    assert_int_equal(((oct_string *)in[5]->data->data)->len, 4);
    assert_memory_equal(((oct_string *)in[6]->data->data)->s, "ab", 2);
    assert_all_close(in[7]->data, (float[]){0, 0, 3}, 3, 0);
    oct_graph_free(got);
}

static void typed_data_fields(void **state)
{
    static const struct {
        int dtype, field;
        int64_t n_numbers, len;
        double want0, want1;
    } rows[] = {
        {OCT_DTYPE_I32, 5, 2, 2, -1, 5}, {OCT_DTYPE_U8, 5, 2, 2, 255, 5},
        {OCT_DTYPE_BOOL, 5, 2, 2, 1, 1}, {OCT_DTYPE_I16, 5, 2, 2, -1, 5},
        {OCT_DTYPE_I64, 7, 2, 2, -1, 5}, {OCT_DTYPE_U32, 11, 2, 2, 4294967295.0, 5},
        {OCT_DTYPE_I4, 5, 2, 3, -1, -1}, {OCT_DTYPE_I2, 5, 2, 5, -1, -1},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        for (int packed = 0; packed < 2; packed++) {
            pb g = {0}, m, list = {0}, t = tensor_head("w", rows[i].dtype, 1, &rows[i].len);
            const int64_t v[] = {-1, 5};
            oct_graph *got;

            for (int k = 0; k < 2; k++) {
                const int64_t x = rows[i].dtype == OCT_DTYPE_BOOL ? 1 : v[k];

                if (packed)
                    pb_varint(&list, (uint64_t)x);
                else
                    pb_int(&t, rows[i].field, x);
            }
            if (packed) pb_msg(&t, rows[i].field, &list);
            add_init(&g, t);
            add_node(&g, node("Anything", "w", "y"));
            add_output(&g, f32("y", -1, NULL));
            m = model_of(&g, 13);
            got = load(f, &m);
            assert_true(oct_tensor_get_f64(got->first->in[0]->data, 0) == rows[i].want0);
            assert_true(oct_tensor_get_f64(got->first->in[0]->data, 1) == rows[i].want1);
            oct_graph_free(got);
        }
    }
}

static void float_data_and_halves(void **state)
{
    fixture *f = *state;
    const float v[] = {1.5f, -2};
    const double w[] = {0.25, 8};
    pb g = {0}, m, t;
    oct_graph *got;

    t = tensor_head("a", OCT_DTYPE_F32, 1, d2);
    pb_bytes(&t, 4, v, sizeof(v));
    add_init(&g, t);
    t = tensor_head("b", OCT_DTYPE_F32, 1, d2);
    pb_float(&t, 4, v[0]);
    pb_float(&t, 4, v[1]);
    add_init(&g, t);
    t = tensor_head("c", OCT_DTYPE_F64, 1, d2);
    pb_bytes(&t, 10, w, sizeof(w));
    add_init(&g, t);
    t = tensor_head("d", OCT_DTYPE_F16, 1, d2); /* bits in int32_data */
    pb_int(&t, 5, 0x3e00);
    pb_int(&t, 5, 0xc000);
    add_init(&g, t);
    t = tensor_head("e", OCT_DTYPE_C64, 0, NULL); /* a real and an imaginary part */
    pb_bytes(&t, 4, v, sizeof(v));
    add_init(&g, t);
    add_node(&g, node("Anything", "a b c d e", "y"));
    add_output(&g, f32("y", -1, NULL));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_all_close(got->first->in[0]->data, v, 2, 0);
    assert_all_close(got->first->in[1]->data, v, 2, 0);
    assert_all_close(got->first->in[2]->data, (float[]){0.25f, 8}, 2, 0);
    assert_all_close(got->first->in[3]->data, v, 2, 0);
    assert_memory_equal(got->first->in[4]->data->data, v, sizeof(v));
    oct_graph_free(got);
}

static void data_that_kernels_cannot_read_in_place_are_copied(void **state)
{
    fixture *f = *state;
    const float w[] = {1, 2, 3};

    for (int shift = 0; shift < 4; shift++) {
        pb g = {0}, m;
        oct_graph *got;
        const oct_tensor *t;

        pb_str(&g, 2, &"netnet"[shift]); /* moves what follows */
        add_init(&g, tensor_raw("w", OCT_DTYPE_F32, 1, d3, w, sizeof(w)));
        add_node(&g, node("Anything", "w", "y"));
        add_output(&g, f32("y", -1, NULL));
        m = model_of(&g, 13);
        got = load(f, &m);
        t = got->first->in[0]->data;
        assert_int_equal((uintptr_t)t->data % 4, 0);
        assert_all_close(t, w, 3, 0);
        oct_graph_free(got);
    }
}

static void unknown_operators_are_kept_whole(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, n, body = relu_graph(), type = {0}, raw;
    oct_graph *got;
    const oct_node *k;

    raw = attr_msg("kind", 14, 13, &type);
    n = named(node("Fancy", "x - x", "- y"), "fancy");
    pb_str(&n, 7, "org.custom");
    n = with_attr(with_attr(n, attr_int("size", 3)), attr_str("mode", "odd"));
    n = with_attr(with_attr(n, attr_graph("body", &body)), raw);
    add_input(&g, f32("x", 2, d23));
    add_node(&g, n);
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    add_opset(&m, "org.custom", 4);
    /* The body's names are those of the graph around it: it gets its own. */
    got = load(f, &m);
    k = got->first;
    assert_true(oct_op_is_opaque(k->op));
    assert_string_equal(oct_node_domain(k), "org.custom");
    assert_int_equal(k->n_in, 3);
    assert_null(k->in[1]);
    assert_null(k->out[0]);
    assert_int_equal(k->n_extra, 4);
    assert_int_equal(oct_node_attr(k, "size")->i, 3);
    assert_string_equal(oct_node_attr(k, "mode")->s, "odd");
    assert_int_equal(oct_node_attr(k, "body")->g->n_nodes, 1);
    assert_int_equal(oct_node_attr(k, "kind")->kind, OCT_ATTR_RAW);
    assert_int_equal(k->out[1]->type.dim[1], 3); /* declared: nothing infers it */
    oct_graph_free(got);
}

static void nodes_in_any_order(void **state)
{
    fixture *f = *state;
    pb g = {0}, m;
    oct_graph *got;

    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "b", "y"));
    add_node(&g, node("Abs", "a", "b"));
    add_node(&g, node("Neg", "x", "a"));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_true(is_op(nth_node(got, 0), "Neg"));
    assert_true(is_op(nth_node(got, 2), "Relu"));
    assert_int_equal(got->outputs[0]->type.dim[0], 2);
    oct_graph_free(got);
}

static void bodies_see_the_graph_around_them(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, yes = {0}, no = {0};
    oct_graph *got, *then;

    pb_str(&yes, 2, "yes");
    add_node(&yes, node("Relu", "x", "r"));
    add_output(&yes, f32("r", 2, d23));
    pb_str(&no, 2, "no");
    add_node(&no, node("Neg", "x", "r")); /* the same name beside it */
    add_output(&no, f32("x", 2, d23));    /* a value of the graph around, given out */
    add_input(&g, f32("x", 2, d23));
    add_input(&g, value("c", OCT_DTYPE_BOOL, 0, NULL));
    add_node(&g, with_attr(with_attr(node("If", "c", "y"), attr_graph("then_branch", &yes)),
                           attr_graph("else_branch", &no)));
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 13);
    got = load(f, &m);
    then = oct_node_attr(got->first, "then_branch")->g;
    assert_ptr_equal(then->first->in[0], got->inputs[0]);
    assert_int_equal(got->inputs[0]->n_users, 3);
    assert_int_equal(oct_node_attr(got->first, "else_branch")->g->n_nodes, 2); /* and a copy */
    oct_graph_free(got);
}

/* A function f(a, b) = relu(a) + b with an inner name, in domain "d". */
static pb function(const char *name, const char *inner_op)
{
    pb fn = {0}, n, o = {0};

    pb_str(&fn, 1, name);
    pb_str(&fn, 10, "d");
    pb_names(&fn, 4, "a b");
    pb_names(&fn, 5, "c");
    n = named(node(inner_op, "a", "t"), "inner");
    if (inner_op[0] == '@') {
        n = node(inner_op + 1, "a b", "t");
        pb_str(&n, 7, "d");
    }
    pb_msg(&fn, 7, &n);
    n = node("Add", "t b", "c");
    pb_msg(&fn, 7, &n);
    pb_str(&o, 1, "");
    pb_int(&o, 2, 13);
    pb_msg(&fn, 9, &o);
    return fn;
}

static pb call_model(const pb *fns, int n_fns)
{
    pb g = {0}, n, m;

    add_input(&g, f32("x", 2, d23));
    n = named(node("F", "x x", "y"), "call");
    pb_str(&n, 7, "d");
    add_node(&g, n);
    add_output(&g, f32("y", 2, d23));
    m = model_of(&g, 17);
    add_opset(&m, "d", 1);
    for (int i = 0; i < n_fns; i++)
        pb_msg(&m, 25, &fns[i]);
    return m;
}

static void functions_are_inlined(void **state)
{
    fixture *f = *state;
    const pb fns[] = {function("F", "@G"), function("G", "Relu")};
    const pb m = call_model(fns, 2);
    oct_graph *got = load(f, &m);

    assert_int_equal(got->n_nodes, 3);
    assert_true(is_op(nth_node(got, 0), "Relu"));
    assert_string_equal(nth_node(got, 0)->name,
                        "call/t/inner"); /* G's call is named by its output */
    assert_string_equal(nth_node(got, 0)->out[0]->name, "call/t/t");
    assert_ptr_equal(got->last->out[0], got->outputs[0]);
    assert_int_equal(got->outputs[0]->type.dim[1], 3);
    oct_graph_free(got);
}

static void functions_get_attributes(void **state)
{
    fixture *f = *state;

    for (int given = 0; given < 2; given++) {
        pb fn = {0}, n, g = {0}, m, o = {0}, a = attr_float("slope", 0.25f);
        oct_graph *got;

        pb_str(&fn, 1, "F");
        pb_str(&fn, 10, "d");
        pb_names(&fn, 4, "a");
        pb_names(&fn, 5, "c");
        pb_msg(&fn, 11, &a);
        n = with_attr(node("LeakyRelu", "a", "c"), attr_ref("alpha", "slope", 1));
        pb_msg(&fn, 7, &n);
        pb_int(&o, 2, 13);
        pb_msg(&fn, 9, &o);
        add_input(&g, f32("x", 2, d23));
        n = node("F", "x", "y");
        pb_str(&n, 7, "d");
        if (given) n = with_attr(n, attr_float("slope", 0.5f));
        add_node(&g, n);
        add_output(&g, f32("y", 2, d23));
        m = model_of(&g, 17);
        pb_msg(&m, 25, &fn);
        got = load(f, &m);
        assert_true(oct_node_attr(got->first, "alpha")->f == (given ? 0.5f : 0.25f));
        oct_graph_free(got);
    }
}

static void functions_may_hand_through(void **state)
{
    fixture *f = *state;
    pb fn = {0}, n, g = {0}, m, o = {0};
    oct_graph *got;

    pb_str(&fn, 1, "F");
    pb_str(&fn, 10, "d");
    pb_names(&fn, 4, "a b");
    pb_names(&fn, 5, "a k");
    n = with_attr(node("Constant", "", "k"), attr_int("value_int", 9));
    pb_msg(&fn, 7, &n);
    n = node("Clip", "a b b", "unused"); /* b is not given by the caller */
    pb_msg(&fn, 7, &n);
    pb_int(&o, 2, 13);
    pb_msg(&fn, 9, &o);
    add_input(&g, f32("x", 2, d23));
    n = node("F", "x", "y k");
    pb_str(&n, 7, "d");
    add_node(&g, n);
    add_output(&g, f32("y", 2, d23));
    add_output(&g, value("k", OCT_DTYPE_I64, 0, NULL));
    m = model_of(&g, 17);
    pb_msg(&m, 25, &fn);
    got = load(f, &m);
    assert_true(is_op(got->outputs[0]->producer, "Identity"));
    assert_int_equal(oct_tensor_get_i64(got->outputs[1]->data, 0), 9);
    assert_int_equal(got->first->n_in, 1);
    oct_graph_free(got);
}

static void a_function_may_not_call_itself(void **state)
{
    fixture *f = *state;
    const pb fns[] = {function("F", "@G"), function("G", "@F")};
    const pb m = call_model(fns, 2);

    refuse(f, &m, OCT_ERR_FORMAT, "calls itself");
}

static void functions_may_not_explode(void **state)
{
    fixture *f = *state;
    pb fns[24];
    pb m;

    for (int i = 0; i < 24; i++) { /* each calls the next one twice */
        char name[8], next[8];
        pb n;

        snprintf(name, sizeof(name), i ? "F%d" : "F", i);
        snprintf(next, sizeof(next), "@F%d", i + 1);
        fns[i] = function(name, i < 23 ? next : "Relu");
        if (i == 23) continue;
        n = node(next + 1, "a b", "again");
        pb_str(&n, 7, "d");
        pb_msg(&fns[i], 7, &n);
    }
    m = call_model(fns, 24);
    refuse(f, &m, OCT_ERR_FORMAT, "functions make more than");
}

static void types_that_are_not_tensors_are_carried(void **state)
{
    fixture *f = *state;
    pb g = {0}, m, type = {0}, seq = {0}, elem = {0}, tensor = {0}, x = {0};
    oct_graph *got;

    pb_int(&tensor, 1, OCT_DTYPE_F32);
    pb_msg(&elem, 1, &tensor);
    pb_msg(&seq, 1, &elem);
    pb_msg(&type, 4, &seq);
    pb_str(&x, 1, "x");
    pb_msg(&x, 2, &type);
    add_input(&g, x);
    add_node(&g, node("SequenceLength", "x", "y"));
    add_output(&g, value("y", OCT_DTYPE_I64, 0, NULL));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_int_equal(got->inputs[0]->raw_type_size, type.n);
    assert_memory_equal(got->inputs[0]->raw_type, type.b, type.n);
    oct_graph_free(got);
}

static void note_warning(void *user, oct_log_level level, const char *msg)
{
    if (level == OCT_LOG_WARN && strstr(msg, "'y' is declared as float32[2x9]")) ++*(int *)user;
}

static void inference_is_believed_and_the_difference_told(void **state)
{
    fixture *f = *state;
    const int64_t wrong[] = {2, 9};
    pb g = {0}, m;
    int n_warnings = 0;
    oct_graph *got;

    add_input(&g, f32("x", 2, d23));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, wrong));
    m = model_of(&g, 13);
    oct_ctx_set_log(f->ctx, note_warning, &n_warnings);
    got = load(f, &m);
    assert_int_equal(got->outputs[0]->type.dim[1], 3);
    assert_int_equal(n_warnings, 1);
    oct_graph_free(got);
}

static void a_dimension_of_minus_one_is_open(void **state)
{
    fixture *f = *state;
    const int64_t dims[] = {-1, 3};
    pb g = {0}, m;
    oct_graph *got;

    add_input(&g, f32("x", 2, dims));
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, f32("y", 2, dims));
    m = model_of(&g, 13);
    got = load(f, &m);
    assert_int_equal(got->inputs[0]->type.dim[0], -1);
    oct_graph_free(got);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(names_types_and_texts_are_kept),
        T(nodes_without_a_name_get_that_of_their_output),
        T(initializers_that_are_inputs_are_constants),
        T(constants_of_every_form),
        T(typed_data_fields),
        T(float_data_and_halves),
        T(data_that_kernels_cannot_read_in_place_are_copied),
        T(unknown_operators_are_kept_whole),
        T(nodes_in_any_order),
        T(bodies_see_the_graph_around_them),
        T(functions_are_inlined),
        T(functions_get_attributes),
        T(functions_may_hand_through),
        T(a_function_may_not_call_itself),
        T(functions_may_not_explode),
        T(types_that_are_not_tensors_are_carried),
        T(inference_is_believed_and_the_difference_told),
        T(a_dimension_of_minus_one_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
