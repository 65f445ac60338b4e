/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: the cells and the rows. */
#include "op/recurrent.h"

/* Bias k (of 2 * n_gates) of a direction, element i; 0 if there is none. */
static double bias(const oct_rnn *r, int dir, int k, int64_t i)
{
    return r->b ? r->b[(dir * 2 * r->kind->n_gates + k) * r->hidden + i] : 0;
}

/* gates = W x + R h, for gates [from, to); biases not added. */
static void linear(const oct_rnn *r, int dir, int from, int to, const double *x, const double *h,
                   double *gates)
{
    const int64_t n = r->hidden, row = (dir * r->kind->n_gates + from) * n;

    oct_rnn_product((to - from) * n, r->input, r->w + row * r->input, x, gates + from * n, false);
    if (h) oct_rnn_product((to - from) * n, n, r->r + row * n, h, gates + from * n, true);
}

/* --- RNN --- */

static void rnn_cell(const oct_rnn *r, int dir, const double *x, double *h, double *c,
                     double *gates)
{
    (void)c;
    linear(r, dir, 0, 1, x, h, gates);
    for (int64_t i = 0; i < r->hidden; i++)
        h[i] = oct_rnn_apply(r, dir, 0, gates[i] + bias(r, dir, 0, i) + bias(r, dir, 1, i));
}

static const oct_rnn_kind rnn_kind = {
    .n_gates = 1, .n_acts = 1, .default_act = {"Tanh"}, .cell = rnn_cell};

static oct_status rnn_shape(const oct_infer *q)
{
    return oct_rnn_shape(q, &rnn_kind);
}

static oct_status rnn_ref(const oct_args *a)
{
    return oct_rnn_run(a, &rnn_kind);
}

#define SHARED_ATTRS                                                                               \
    {.name = "activation_alpha", .kind = OCT_ATTR_F32S, .no_default = true},                       \
        {.name = "activation_beta", .kind = OCT_ATTR_F32S, .no_default = true},                    \
        {.name = "activations", .kind = OCT_ATTR_STRINGS, .no_default = true},                     \
        {.name = "clip", .kind = OCT_ATTR_F32, .no_default = true},                                \
        {.name = "direction", .kind = OCT_ATTR_STRING, .def = {.s = "forward"}, .n_def = 7},       \
        {.name = "hidden_size", .kind = OCT_ATTR_INT, .no_default = true},                         \
    {                                                                                              \
        .name = "layout", .kind = OCT_ATTR_INT                                                     \
    }

static const oct_attr_def rnn_attrs[] = {SHARED_ATTRS, {0}};

const oct_op oct_op_rnn = {
    .name = "RNN",
    .since = 14,
    .min_in = 3,
    .max_in = 6,
    .min_out = 0,
    .max_out = 2,
    .attrs = rnn_attrs,
    .shape = rnn_shape,
    .ref = rnn_ref,
    .flow = OCT_FLOW_STOP,
};

/* --- GRU: gates z (update), r (reset), h (hidden) --- */

static void gru_cell(const oct_rnn *r, int dir, const double *x, double *h, double *c,
                     double *gates)
{
    const int64_t n = r->hidden;
    const oct_attr *a = oct_node_attr(r->node, "linear_before_reset");
    const bool linear_first = a && a->kind == OCT_ATTR_INT && a->i != 0;
    const double *hidden = r->r + (dir * 3 + 2) * n * n;
    double *z = gates, *reset = gates + n, *next = gates + 2 * n;

    linear(r, dir, 0, 2, x, h, gates);
    linear(r, dir, 2, 3, x, NULL, gates);
    for (int64_t i = 0; i < n; i++) {
        z[i] = oct_rnn_apply(r, dir, 0, z[i] + bias(r, dir, 0, i) + bias(r, dir, 3, i));
        reset[i] = oct_rnn_apply(r, dir, 0, reset[i] + bias(r, dir, 1, i) + bias(r, dir, 4, i));
        next[i] += bias(r, dir, 2, i);
    }
    if (linear_first) { /* r * (R h + b) */
        oct_rnn_product(n, n, hidden, h, c, false);
        for (int64_t i = 0; i < n; i++)
            next[i] += reset[i] * (c[i] + bias(r, dir, 5, i));
    } else { /* R (r * h) + b */
        for (int64_t i = 0; i < n; i++) {
            c[i] = reset[i] * h[i];
            next[i] += bias(r, dir, 5, i);
        }
        oct_rnn_product(n, n, hidden, c, next, true);
    }
    for (int64_t i = 0; i < n; i++)
        h[i] = (1 - z[i]) * oct_rnn_apply(r, dir, 1, next[i]) + z[i] * h[i];
}

static const oct_rnn_kind gru_kind = {
    .n_gates = 3, .n_acts = 2, .default_act = {"Sigmoid", "Tanh"}, .cell = gru_cell};

static oct_status gru_shape(const oct_infer *q)
{
    return oct_rnn_shape(q, &gru_kind);
}

static oct_status gru_ref(const oct_args *a)
{
    return oct_rnn_run(a, &gru_kind);
}

static const oct_attr_def gru_attrs[] = {
    SHARED_ATTRS, {.name = "linear_before_reset", .kind = OCT_ATTR_INT}, {0}};

const oct_op oct_op_gru = {
    .name = "GRU",
    .since = 14,
    .min_in = 3,
    .max_in = 6,
    .min_out = 0,
    .max_out = 2,
    .attrs = gru_attrs,
    .shape = gru_shape,
    .ref = gru_ref,
    .flow = OCT_FLOW_STOP,
};

/* --- LSTM: gates i (input), o (output), f (forget), c (cell) --- */

/* Peephole k of a direction times a cell state; 0 if there is none. */
static double peephole(const oct_rnn *r, int dir, int k, int64_t i, double cell)
{
    return r->p ? r->p[(dir * 3 + k) * r->hidden + i] * cell : 0;
}

static void lstm_cell(const oct_rnn *r, int dir, const double *x, double *h, double *c,
                      double *gates)
{
    const int64_t n = r->hidden;
    const oct_attr *a = oct_node_attr(r->node, "input_forget");
    const bool coupled = a && a->kind == OCT_ATTR_INT && a->i != 0;

    linear(r, dir, 0, 4, x, h, gates);
    for (int g = 0; g < 4; g++)
        for (int64_t i = 0; i < n; i++)
            gates[g * n + i] += bias(r, dir, g, i) + bias(r, dir, g + 4, i);
    for (int64_t i = 0; i < n; i++) {
        const double in = oct_rnn_apply(r, dir, 0, gates[i] + peephole(r, dir, 0, i, c[i]));
        const double forget =
            coupled ? 1 - in
                    : oct_rnn_apply(r, dir, 0, gates[2 * n + i] + peephole(r, dir, 2, i, c[i]));
        const double cell = oct_rnn_apply(r, dir, 1, gates[3 * n + i]);

        c[i] = forget * c[i] + in * cell;
        h[i] = oct_rnn_apply(r, dir, 0, gates[n + i] + peephole(r, dir, 1, i, c[i])) *
               oct_rnn_activate(r, dir, 2, c[i]);
    }
}

static const oct_rnn_kind lstm_kind = {.n_gates = 4,
                                       .n_acts = 3,
                                       .default_act = {"Sigmoid", "Tanh", "Tanh"},
                                       .has_c = true,
                                       .cell = lstm_cell};

static oct_status lstm_shape(const oct_infer *q)
{
    return oct_rnn_shape(q, &lstm_kind);
}

static oct_status lstm_ref(const oct_args *a)
{
    return oct_rnn_run(a, &lstm_kind);
}

static const oct_attr_def lstm_attrs[] = {
    SHARED_ATTRS, {.name = "input_forget", .kind = OCT_ATTR_INT}, {0}};

const oct_op oct_op_lstm = {
    .name = "LSTM",
    .since = 14,
    .min_in = 3,
    .max_in = 8,
    .min_out = 0,
    .max_out = 3,
    .attrs = lstm_attrs,
    .shape = lstm_shape,
    .ref = lstm_ref,
    .flow = OCT_FLOW_STOP,
};
