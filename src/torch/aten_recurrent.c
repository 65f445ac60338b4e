/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM and GRU: layers and directions become one node for each layer. */
#include "torch/aten.h"

/* How torch's rows of gates become ONNX's. */
typedef struct cell {
    const oct_op *op;
    int n_gates, order[4];
    int n_states;
} cell;

typedef struct stack {
    int64_t n_layers, n_dirs;
    bool has_biases, batch_first;
    oct_value **params;
    int32_t n_params;
    oct_value *states[2]; /* all layers': [layers * directions, batch, size] */
} stack;

/* Gates of w [gates * size, ..] in the other order. */
static oct_value *reorder(oct_aten *a, const cell *c, oct_value *w)
{
    const int64_t size = oct_aten_dim(w, 0) / c->n_gates;
    oct_value *parts[4];

    for (int i = 0; i < c->n_gates; i++)
        parts[i] = oct_aten_slice(a, w, 0, c->order[i] * size, (c->order[i] + 1) * size);
    return oct_aten_concat(a, parts, c->n_gates, 0);
}

/* Parameter `which` (w_ih, w_hh, b_ih, b_hh) of both directions of a layer: [directions, ..]. */
static oct_value *of_layer(oct_aten *a, const cell *c, const stack *s, int64_t layer, int which)
{
    const int64_t n_each = s->has_biases ? 4 : 2;
    oct_value *parts[2];

    for (int64_t d = 0; d < s->n_dirs; d++) {
        const int64_t at = (layer * s->n_dirs + d) * n_each + which;

        if (at >= s->n_params) {
            oct_aten_fail(a, OCT_ERR_FORMAT, "too few weights");
            return NULL;
        }
        parts[d] = oct_aten_unsqueeze(a, reorder(a, c, s->params[at]), 0);
    }
    return s->n_dirs == 1 ? parts[0] : oct_aten_concat(a, parts, 2, 0);
}

/* [seq, dirs, batch, size] as [seq, batch, dirs * size] */
static oct_value *join_directions(oct_aten *a, oct_value *y)
{
    const int64_t dirs = oct_aten_dim(y, 1), size = oct_aten_dim(y, 3);

    if (dirs == 1) return oct_aten_squeeze(a, y, 1);
    y = oct_aten_swap(a, y, 1, 2);
    return ATEN2(reshape, y, oct_aten_ints_of(a, 3, (int64_t)0, (int64_t)0, dirs * size));
}

static oct_value *run_layer(oct_aten *a, const cell *c, const stack *s, int64_t layer, oct_value *x,
                            oct_value *last[2])
{
    const int64_t from = layer * s->n_dirs;
    oct_value *w = of_layer(a, c, s, layer, 0), *r = of_layer(a, c, s, layer, 1), *bias = NULL;
    oct_value *in[7] = {x, w, r};
    oct_node *n;

    if (s->has_biases) {
        bias = oct_aten_concat(
            a, (oct_value *[]){of_layer(a, c, s, layer, 2), of_layer(a, c, s, layer, 3)}, 2, 1);
        in[3] = bias;
    }
    for (int i = 0; i < c->n_states; i++)
        in[5 + i] = oct_aten_slice(a, s->states[i], 0, from, from + s->n_dirs);
    n = oct_aten_node(a, c->op, in, 5 + c->n_states, 1 + c->n_states);
    oct_emit_int(a->b, n, "hidden_size", oct_aten_dim(r, 2));
    oct_emit_str(a->b, n, "direction", s->n_dirs == 2 ? "bidirectional" : "forward");
    if (c->n_states == 1) oct_emit_int(a->b, n, "linear_before_reset", 1);
    if (!oct_aten_done(a, n)) return NULL;
    for (int i = 0; i < c->n_states; i++)
        last[i] = n->out[1 + i];
    return join_directions(a, n->out[0]);
}

static void recurrent(oct_aten *a, const cell *c)
{
    enum { MAX_LAYERS = 64 };
    oct_value *x = oct_aten_tensor(a, "input"), *last[2][MAX_LAYERS], *one[2] = {NULL, NULL};
    stack s = {.n_layers = oct_aten_int(a, "num_layers", 1),
               .n_dirs = oct_aten_bool(a, "bidirectional", false) ? 2 : 1,
               .has_biases = oct_aten_bool(a, "has_biases", true),
               .batch_first = oct_aten_bool(a, "batch_first", false)};
    int32_t n_states = 1;

    s.params = oct_aten_tensors(a, "params", &s.n_params);
    if (c->n_states == 2) {
        oct_value **hx = oct_aten_tensors(a, "hx", &n_states);

        for (int i = 0; hx && i < n_states && i < 2; i++)
            s.states[i] = hx[i];
    } else {
        s.states[0] = oct_aten_tensor(a, "hx");
    }
    if (oct_aten_rank(a, x) != 3 || s.n_layers < 1 || s.n_layers > MAX_LAYERS ||
        n_states != c->n_states)
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "a recurrent network of this shape");
    if (s.batch_first) x = oct_aten_swap(a, x, 0, 1);
    for (int64_t i = 0; i < s.n_layers && !a->b->status; i++) {
        x = run_layer(a, c, &s, i, x, one);
        last[0][i] = one[0];
        last[1][i] = one[1];
    }
    if (a->b->status) return;
    a->out[0] = s.batch_first ? oct_aten_swap(a, x, 0, 1) : x;
    for (int i = 0; i < c->n_states && i + 1 < a->n_out; i++)
        a->out[1 + i] =
            s.n_layers == 1 ? last[i][0] : oct_aten_concat(a, last[i], (int32_t)s.n_layers, 0);
}

/* Gates i, f, g, o become i, o, f, c. */
void oct_aten_lstm(oct_aten *a)
{
    static const cell lstm = {&oct_op_lstm, 4, {0, 3, 1, 2}, 2};

    recurrent(a, &lstm);
}

/* Gates r, z, n become z, r, h. */
void oct_aten_gru(oct_aten *a)
{
    static const cell gru = {&oct_op_gru, 3, {1, 0, 2}, 1};

    recurrent(a, &gru);
}
