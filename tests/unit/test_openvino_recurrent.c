/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN of OpenVINO IR: gates are where IR has them, and networks come back. */
#include <math.h>

#include "tests/unit/data_files.h"
#include "tests/unit/exec_net.h"
#include "tests/unit/quant_net.h"

/* --- layers of a file, all of whose operands are constants of size 1 but for the gates --- */

typedef struct layer_case {
    const char *type, *data;
    int n_blocks; /* of the biases */
    bool hidden;  /* weights come through a layer, so that they are not constants */
} layer_case;

static const float weight[] = {.7f, .2f, .9f, .4f}, again[] = {.3f, .8f, .1f, .6f},
                   shift[] = {.05f, .15f, .25f, .35f}, steps[] = {.5f, -1.5f};

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static int gates_of(const char *type)
{
    return starts(type, "LSTM") ? 4 : starts(type, "GRU") ? 3 : 1;
}

typedef struct ir_text {
    char xml[16384], edges[4096];
    char bin[1024];
    size_t at, edges_at, bin_at;
    int n_layers;
} ir_text;

static void OCT_PRINTF(2, 3) add(ir_text *x, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    x->at += (size_t)vsnprintf(x->xml + x->at, sizeof(x->xml) - x->at, fmt, args);
    va_end(args);
    assert_true(x->at < sizeof(x->xml));
}

static void edge(ir_text *x, int from, int port, int to, int to_port)
{
    x->edges_at += (size_t)snprintf(
        x->edges + x->edges_at, sizeof(x->edges) - x->edges_at,
        "<edge from-layer=\"%d\" from-port=\"%d\" to-layer=\"%d\" to-port=\"%d\"/>", from, port, to,
        to_port);
    assert_true(x->edges_at < sizeof(x->edges));
}

/* A constant, behind ReLU if it is hidden; the number of its layer. */
static int add_const(ir_text *x, const char *element, const char *shape, const void *data,
                     size_t size, bool hidden)
{
    const int id = x->n_layers++;

    add(x,
        "<layer id=\"%d\" name=\"c%d\" type=\"Const\" version=\"opset1\"><data element_type=\"%s\" "
        "shape=\"%s\" offset=\"%zu\" size=\"%zu\"/><output><port id=\"9\"/></output></layer>",
        id, id, element, shape, x->bin_at, size);
    memcpy(x->bin + x->bin_at, data, size);
    x->bin_at += size;
    if (!hidden) return id;
    add(x,
        "<layer id=\"%d\" name=\"r%d\" type=\"ReLU\" version=\"opset1\"><input><port id=\"0\"/>"
        "</input><output><port id=\"9\"/></output></layer>",
        x->n_layers, x->n_layers);
    edge(x, id, 9, x->n_layers, 0);
    return x->n_layers++;
}

/* A whole file with one layer that reads these layers; ports 9.. are its results. */
static void put_network(files *t, ir_text *x, const layer_case *c, const int *from, int n,
                        int n_out)
{
    char *text = malloc(2 * sizeof(*x));
    const int id = x->n_layers++;

    assert_non_null(text);
    add(x, "<layer id=\"%d\" name=\"cell\" type=\"%s\" version=\"opset5\"><data %s/><input>", id,
        c->type, c->data);
    for (int i = 0; i < n; i++) {
        add(x, "<port id=\"%d\"/>", i);
        edge(x, from[i], 9, id, i);
    }
    add(x, "</input><output>");
    for (int i = 0; i < n_out; i++)
        add(x, "<port id=\"%d\"/>", 9 + i);
    add(x, "</output></layer>");
    for (int i = 0; i < n_out; i++) {
        add(x,
            "<layer id=\"%d\" name=\"y%d\" type=\"Result\" version=\"opset1\"><input>"
            "<port id=\"0\"/></input></layer>",
            x->n_layers, i);
        edge(x, id, 9 + i, x->n_layers++, 0);
    }
    snprintf(text, 2 * sizeof(*x),
             "<?xml version=\"1.0\"?><net name=\"n\" version=\"11\"><layers>%s</layers><edges>%s"
             "</edges></net>",
             x->xml, x->edges);
    put_text(t, "net.xml", text);
    put_bytes(t, "net.bin", x->bin, x->bin_at);
    free(text);
}

static void put_case(files *t, const layer_case *c)
{
    const bool is_sequence = strstr(c->type, "Sequence") != NULL;
    const int gates = gates_of(c->type);
    const char *dirs = is_sequence ? "1," : "";
    const float state = .25f;
    const int32_t length = 2;
    char rows[32], blocks[32];
    int from[8], n = 0;
    ir_text *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    snprintf(rows, sizeof(rows), "%s%d,1", dirs, gates);
    snprintf(blocks, sizeof(blocks), "%s%d", dirs, c->n_blocks);
    from[n++] =
        add_const(x, "f32", is_sequence ? "1,2,1" : "1,1", steps, is_sequence ? 8 : 4, false);
    for (int i = 0; i < (gates == 4 ? 2 : 1); i++)
        from[n++] = add_const(x, "f32", is_sequence ? "1,1,1" : "1,1", &state, 4, c->hidden);
    if (is_sequence) from[n++] = add_const(x, "i32", "1", &length, 4, false);
    from[n++] = add_const(x, "f32", rows, weight, 4 * (size_t)gates, c->hidden);
    from[n++] = add_const(x, "f32", rows, again, 4 * (size_t)gates, c->hidden);
    from[n++] = add_const(x, "f32", blocks, shift, 4 * (size_t)c->n_blocks, c->hidden);
    put_network(t, x, c, from, n, (is_sequence ? 2 : 1) + (gates == 4));
    free(x);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step of the layer as the operator's specification has it. */
static void step(const layer_case *c, double x, double *h, double *cell)
{
    const bool apart = strstr(c->data, "linear_before_reset=\"true\"") != NULL;
    double g[4] = {0}, last;

    for (int i = 0; i < gates_of(c->type); i++)
        g[i] = (double)weight[i] * x + (double)again[i] * *h + (double)shift[i];
    if (starts(c->type, "LSTM")) { /* f, i, c, o */
        *cell = sigmoid(g[0]) * *cell + sigmoid(g[1]) * tanh(g[2]);
        *h = sigmoid(g[3]) * tanh(*cell);
    } else if (starts(c->type, "GRU")) { /* z, r, h */
        last = apart ? sigmoid(g[1]) * ((double)again[2] * *h + (double)shift[3])
                     : (double)again[2] * (sigmoid(g[1]) * *h);
        last = tanh((double)weight[2] * x + (double)shift[2] + last);
        *h = (1 - sigmoid(g[0])) * last + sigmoid(g[0]) * *h;
    } else {
        *h = tanh(g[0]);
    }
}

static void gates_are_where_ir_has_them(void **state)
{
    static const layer_case cases[] = {
        {"LSTMSequence", "hidden_size=\"1\" direction=\"forward\"", 4, false},
        {"LSTMSequence", "hidden_size=\"1\" direction=\"forward\"", 4, true},
        {"LSTMCell", "hidden_size=\"1\" activations=\"sigmoid, tanh, tanh\"", 4, false},
        {"LSTMCell", "hidden_size=\"1\"", 4, true},
        {"GRUSequence", "hidden_size=\"1\" direction=\"forward\"", 3, false},
        {"GRUSequence", "hidden_size=\"1\" linear_before_reset=\"true\"", 4, false},
        {"GRUSequence", "hidden_size=\"1\" linear_before_reset=\"true\"", 4, true},
        {"GRUCell", "hidden_size=\"1\" activations=\"sigmoid,tanh\"", 3, true},
        {"RNNSequence", "hidden_size=\"1\"", 1, false},
        {"RNNCell", "hidden_size=\"1\" activations=\"tanh\"", 1, true},
    };
    files *t = *state;
    oct_graph *own = t->f->g;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const bool is_sequence = strstr(cases[i].type, "Sequence") != NULL;
        double h = .25, c = .25;
        oct_tensor *got[4] = {NULL};

        put_case(t, &cases[i]);
        assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &t->f->g));
        run_graph(t->f, NULL, got);
        for (int k = 0; k < (is_sequence ? 2 : 1); k++) {
            step(&cases[i], (double)steps[k], &h, &c);
            assert_float_equal(oct_tensor_get_f64(got[0], k), h, 1e-6);
        }
        if (is_sequence) assert_float_equal(oct_tensor_get_f64(got[1], 0), h, 1e-6);
        if (gates_of(cases[i].type) == 4)
            assert_float_equal(oct_tensor_get_f64(got[is_sequence ? 2 : 1], 0), c, 1e-6);
        for (int k = 0; k < 4; k++)
            oct_tensor_unref(got[k]);
        oct_graph_free(t->f->g);
    }
    t->f->g = own;
}

static void odd_layers_are_refused(void **state)
{
    static const struct {
        layer_case layer;
        const char *why;
    } cases[] = {
        {{"LSTMSequence", "direction=\"forward\"", 4, false}, "hidden_size is 0"},
        {{"LSTMSequence", "hidden_size=\"9223372036854775807\"", 4, false}, "hidden_size is 9223"},
        {{"LSTMSequence", "hidden_size=\"2\"", 4, false}, "operand 4 is [1 x 4 ..], not [1 x 8"},
        {{"LSTMSequence", "hidden_size=\"2\"", 4, true}, "operand 4 is [1 x 4 ..], not [1 x 8"},
        {{"LSTMSequence", "hidden_size=\"1\" direction=\"bidirectional\"", 4, false},
         "operand 4 is [1 x 4 ..], not [2 x 4"},
        {{"LSTMSequence", "hidden_size=\"1\" direction=\"sideways\"", 4, false}, "'sideways'"},
        {{"LSTMSequence", "hidden_size=\"1\" activations=\"sigmoid\"", 4, false}, "activation ''"},
        {{"RNNCell", "hidden_size=\"1\" activations=\"swirl\"", 1, false}, "activation 'swirl'"},
        {{"LSTMCell", "hidden_size=\"1\" input_forget=\"true\"", 4, false}, "coupled gates"},
        {{"GRUSequence", "hidden_size=\"1\" linear_before_reset=\"true\"", 3, false},
         "operand 5 is [1 x 3 ..], not [1 x 4"},
    };
    files *t = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = NULL;

        put_case(t, &cases[i].layer);
        assert_true(oct_openvino_load(t->ctx, below(t, "net.xml"), &g) != OCT_OK);
        if (!strstr(oct_ctx_error(t->ctx), cases[i].why))
            fail_msg("case %zu: \"%s\", want \"%s\"", i, oct_ctx_error(t->ctx), cases[i].why);
    }
}

/* Too few operands, too many, and one of the wrong rank. */
static void odd_operands_are_refused(void **state)
{
    static const char *const why[] = {"3 operands are missing", "peepholes", "has 1 dims, not 3"};
    static const layer_case layer = {"GRUSequence", "hidden_size=\"1\"", 3, false};
    files *t = *state;

    for (int i = 0; i < 3; i++) {
        oct_graph *g = NULL;
        ir_text *x = calloc(1, sizeof(*x));
        const int from = x ? add_const(x, "f32", "1", steps, 4, false) : -1;

        assert_non_null(x);
        put_network(t, x, &layer, (const int[]){from, from, from, from, from, from, from},
                    (const int[]){3, 7, 6}[i], 2);
        assert_true(oct_openvino_load(t->ctx, below(t, "net.xml"), &g) != OCT_OK);
        assert_non_null(strstr(oct_ctx_error(t->ctx), why[i]));
        free(x);
    }
}

/* --- whole networks --- */

typedef struct net_case {
    const oct_op *op;
    const char *direction;
    bool lengths, states, biases, batch_first, linear_before_reset;
} net_case;

static void make_network(fixture *f, const net_case *c)
{
    const int64_t gates = c->op == &oct_op_lstm ? 4 : c->op == &oct_op_gru ? 3 : 1, hidden = 3;
    const int64_t dirs = strcmp(c->direction, "bidirectional") == 0 ? 2 : 1;
    const int n_states = gates == 4 ? 2 : 1;
    oct_type x = oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){4, 2, 5});
    oct_value *in[7] = {oct_value_new(f->g, "x", &x)};
    oct_rng rng;
    oct_node *n;

    oct_rng_init(&rng, 7);
    assert_ok(f->ctx, oct_graph_add_input(f->g, in[0]));
    in[1] = weights(f, &rng, 3, (int64_t[]){dirs, gates * hidden, 5});
    in[2] = weights(f, &rng, 3, (int64_t[]){dirs, gates * hidden, hidden});
    if (c->biases) in[3] = weights(f, &rng, 2, (int64_t[]){dirs, 2 * gates * hidden});
    if (c->lengths) /* of four or of two sequences */
        in[4] = constant_int(f, OCT_DTYPE_I32, 1, (int64_t[]){c->batch_first ? 4 : 2},
                             (int32_t[]){2, 1, 2, 1});
    for (int i = 0; i < n_states && c->states; i++)
        in[5 + i] = weights(
            f, &rng, 3, (int64_t[]){c->batch_first ? 4 : dirs, c->batch_first ? dirs : 2, hidden});
    n = oct_emit_node(&f->b, c->op, in, 5 + n_states, 1 + n_states);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_str(n, "direction", c->direction));
    assert_ok(f->ctx, oct_node_set_int(n, "hidden_size", hidden));
    assert_ok(f->ctx, oct_node_set_int(n, "layout", c->batch_first));
    if (gates == 3)
        assert_ok(f->ctx, oct_node_set_int(n, "linear_before_reset", c->linear_before_reset));
    (void)infer(f, n);
    for (int i = 0; i <= n_states; i++)
        output(f, n->out[i]);
}

static void networks_come_back(void **state)
{
    static const net_case cases[] = {
        {&oct_op_lstm, "forward", false, false, true, false, false},
        {&oct_op_lstm, "reverse", true, true, true, false, false},
        {&oct_op_lstm, "bidirectional", true, true, true, true, false},
        {&oct_op_gru, "forward", true, false, false, false, false},
        {&oct_op_gru, "reverse", false, true, true, true, true},
        {&oct_op_gru, "bidirectional", false, true, true, false, true},
        {&oct_op_rnn, "bidirectional", true, true, true, false, false},
    };
    files *t = *state;
    fixture *f = t->f;
    oct_graph *own = f->g;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_tensor *want[4] = {NULL}, *got[4] = {NULL};
        oct_graph *made = NULL;

        assert_ok(t->ctx, oct_graph_new(t->ctx, "net", &made));
        f->g = f->b.g = made;
        make_network(f, &cases[i]);
        run_graph(f, NULL, want);
        assert_ok(t->ctx, oct_openvino_save(made, below(t, "net.xml"), NULL));
        assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &f->g));
        run_graph(f, NULL, got);
        for (int k = 0; k < made->n_outputs; k++) {
            assert_same(made->outputs[k]->name, got[k], want[k], 1e-6);
            oct_tensor_unref(want[k]);
            oct_tensor_unref(got[k]);
        }
        oct_graph_free(f->g);
        oct_graph_free(made);
    }
    f->g = f->b.g = own;
}

static void what_ir_lacks_is_refused(void **state)
{
    static const net_case layer = {&oct_op_lstm, "forward", false, false, true, false, false};
    files *t = *state;
    fixture *f = t->f;
    oct_node *n;

    make_network(f, &layer);
    n = f->g->first;
    assert_ok(t->ctx, oct_node_set_int(n, "input_forget", 1));
    assert_fails(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL), OCT_ERR_UNSUPPORTED,
                 "coupled gates");
    assert_ok(t->ctx, oct_node_set_int(n, "input_forget", 0));
    assert_ok(t->ctx, oct_node_set_attr(
                          n, "activations",
                          &(oct_attr){.kind = OCT_ATTR_STRINGS,
                                      .given = true,
                                      .n = 3,
                                      .ss = (const char *const[]){"Sigmoid", "Softsign", "Tanh"}}));
    assert_fails(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL), OCT_ERR_UNSUPPORTED,
                 "activation 'Softsign'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gates_are_where_ir_has_them, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(odd_layers_are_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(odd_operands_are_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(networks_come_back, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(what_ir_lacks_is_refused, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
