/* SPDX-License-Identifier: Apache-2.0 */
/* What LSTM, GRU and RNN share: operand layout, directions, lengths, activations. */
#ifndef OCT_OP_RECURRENT_H
#define OCT_OP_RECURRENT_H

#include "op/work.h"

/* An activation with its parameters. */
typedef struct oct_rnn_act {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
} oct_rnn_act;

typedef struct oct_rnn oct_rnn;

/* One step of one sequence: h (and c) become their next values. `gates` is scratch. */
typedef void (*oct_rnn_cell)(const oct_rnn *r, int dir, const double *x, double *h, double *c,
                             double *gates);

/* What a row of this family is: its numbers of gates and activations, and its cell. */
typedef struct oct_rnn_kind {
    int n_gates;
    int n_acts; /* for each direction */
    const char *default_act[3];
    bool has_c; /* a second state: inputs 6 and 7 (initial_c, peepholes), output 2 */
    oct_rnn_cell cell;
} oct_rnn_kind;

/* A node with everything converted to double. */
struct oct_rnn {
    const oct_rnn_kind *kind;
    const oct_node *node;
    int64_t seq, batch, input, hidden; /* -1: not known */
    int dirs;
    bool batch_first, reverse; /* reverse: the only direction, or the first, goes backwards */
    const double *x, *w, *r, *b, *h0, *c0, *p; /* b, h0, c0, p may be NULL */
    const int64_t *len;                        /* for each sequence; NULL: all full */
    double *y, *y_h, *y_c;                     /* NULL: unused */
    double *scratch;
    double clip; /* 0: none */
    oct_rnn_act act[2][3];
};

oct_status oct_rnn_shape(const oct_infer *q, const oct_rnn_kind *kind);
oct_status oct_rnn_run(const oct_args *a, const oct_rnn_kind *kind);

/* The activation of this ONNX name with its default parameters; false if there is none. */
bool oct_rnn_act_find(const char *name, oct_rnn_act *out);

/* to[0..n) = m[n x k] * v (+ what is there, if add). */
void oct_rnn_product(int64_t n, int64_t k, const double *m, const double *v, double *to, bool add);

/* Activation i of a direction. */
static inline double oct_rnn_activate(const oct_rnn *r, int dir, int i, double x)
{
    const oct_rnn_act *f = &r->act[dir][i];

    return f->fn(x, f->alpha, f->beta);
}

/* The same on a gate, which is clipped first. */
static inline double oct_rnn_apply(const oct_rnn *r, int dir, int i, double x)
{
    if (r->clip > 0) x = x > r->clip ? r->clip : x < -r->clip ? -r->clip : x;
    return oct_rnn_activate(r, dir, i, x);
}

#endif
