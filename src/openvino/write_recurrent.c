/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN as sequences of IR, in which the batch comes first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "op/op.h"
#include "openvino/recurrent.h"
#include "openvino/write.h"

enum { X, W, R, B, LENS, H0, C0, P };

/* A node that is being written. */
typedef struct recurrent {
    const oct_ir_cell *cell;
    int64_t seq, batch, dirs, hidden;
    bool batch_first;
    bool apart; /* GRU: R h gets its bias before it is reset */
} recurrent;

/* --- what IR has no form of --- */

static oct_status check_node(const oct_node *n)
{
    const oct_type *x = &n->in[X]->type, *r = &n->in[R]->type;
    const oct_tensor *bias = oct_node_const(n, B);

    if (oct_node_in(n, P) || oct_to_ir_int(n, "input_forget", 0))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "OpenVINO IR has no peepholes and coupled gates");
    if (!oct_node_const(n, W) || !oct_node_const(n, R) || (oct_node_in(n, B) && !bias) ||
        r->dtype != OCT_DTYPE_F32)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet can write it as OpenVINO IR only with constant float32 weights "
                             "and biases");
    if (x->rank != 3 || x->dim[0] < 1 || x->dim[1] < 1)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "the size of its input is not known; give it with --input-shape");
    return OCT_OK;
}

/* --- operands --- */

/* Axes in another order; `order` is NULL where they stay. */
static oct_ir_at transposed(oct_to_ir *w, const oct_node *n, const char *name, oct_ir_at x,
                            const int64_t *order, const oct_type *to)
{
    oct_ir_at in[2] = {x};

    if (!order) return x;
    in[1] = oct_to_ir_ints(w, n, oct_ir_name(&w->ir, name, "order"), order, to->rank);
    return oct_to_ir_emit(w, n, name, "Transpose", "opset1", in, 2, to);
}

/* Operand i or zeros: what comes before the first step. */
static oct_ir_at first_state(oct_to_ir *w, const oct_node *n, const recurrent *c, int32_t i,
                             const char *name)
{
    const oct_type t =
        oct_type_make(n->in[X]->type.dtype, 3, (const int64_t[]){c->batch, c->dirs, c->hidden});
    oct_tensor *zeros = NULL;

    if (oct_node_in(n, i))
        return transposed(w, n, name, oct_to_ir_in(w, n, i),
                          c->batch_first ? NULL : (const int64_t[]){1, 0, 2}, &t);
    if (!w->ir.status) w->ir.status = oct_tensor_make(w->ir.ctx, &t, &zeros);
    return oct_ir_const(&w->ir, oct_ir_name(&w->ir, n->name, name), zeros);
}

/* Operand LENS, or all steps of all. */
static oct_ir_at lengths(oct_to_ir *w, const oct_node *n, const recurrent *c)
{
    const oct_type t = oct_type_make(OCT_DTYPE_I32, 1, &c->batch);
    oct_tensor *all = NULL;

    if (oct_node_in(n, LENS)) return oct_to_ir_in(w, n, LENS);
    if (!w->ir.status) w->ir.status = oct_tensor_make(w->ir.ctx, &t, &all);
    for (int64_t i = 0; i < c->batch && !w->ir.status; i++)
        ((int32_t *)all->data)[i] = (int32_t)c->seq;
    return oct_ir_const(&w->ir, oct_ir_name(&w->ir, n->name, "lengths"), all);
}

/* Weights with their gates where IR has them. */
static oct_ir_at weights(oct_to_ir *w, const oct_node *n, const recurrent *c, int32_t i,
                         const char *name)
{
    const int n_gates = c->cell->n_gates;
    int pick[OCT_IR_MAX_GATES];
    oct_tensor *t = NULL;

    for (int k = 0; k < n_gates; k++)
        pick[c->cell->gate_of_ir[k]] = k;
    if (!w->ir.status)
        w->ir.status =
            oct_ir_pick_blocks(w->ir.ctx, oct_node_const(n, i), n_gates, pick, NULL, n_gates, &t);
    return w->ir.status ? (oct_ir_at){-1, 0}
                        : oct_to_ir_const(w, oct_ir_name(&w->ir, n->name, name), t);
}

/* Both biases of a gate are added, but for the hidden gate of a GRU that keeps them apart. */
static oct_ir_at biases(oct_to_ir *w, const oct_node *n, const recurrent *c)
{
    const int n_gates = c->cell->n_gates, n_blocks = c->apart ? n_gates + 1 : n_gates;
    const oct_type none =
        oct_type_make(OCT_DTYPE_F32, 2, (const int64_t[]){c->dirs, n_blocks * c->hidden});
    int first[OCT_IR_MAX_GATES], second[OCT_IR_MAX_GATES];
    oct_tensor *t = NULL;

    for (int k = 0; k < n_gates; k++) {
        first[c->cell->gate_of_ir[k]] = k;
        second[c->cell->gate_of_ir[k]] = n_gates + k;
    }
    if (c->apart) {
        first[n_gates] = second[n_gates - 1];
        second[n_gates] = second[n_gates - 1] = -1;
    }
    if (!w->ir.status)
        w->ir.status = oct_node_in(n, B)
                           ? oct_ir_pick_blocks(w->ir.ctx, oct_node_const(n, B), 2 * n_gates, first,
                                                second, n_blocks, &t)
                           : oct_tensor_make(w->ir.ctx, &none, &t);
    return w->ir.status ? (oct_ir_at){-1, 0}
                        : oct_to_ir_const(w, oct_ir_name(&w->ir, n->name, "B"), t);
}

/* --- attributes --- */

/* IR has one list for both directions, and no defaults. Activations with parameters are refused. */
static oct_status activations(oct_to_ir *w, const oct_node *n, const recurrent *c)
{
    const oct_attr *names = oct_node_attr(n, "activations");
    const bool has = names && names->n;
    const int n_acts = c->cell->n_acts;
    char text[64] = "";
    size_t at = 0;

    for (int64_t i = 0; i < n_acts * c->dirs; i++) {
        const char *s = has ? names->ss[i] : c->cell->acts[i % n_acts];

        if ((has && strcasecmp(s, names->ss[i % n_acts]) != 0) ||
            (strcasecmp(s, "Sigmoid") != 0 && strcasecmp(s, "Tanh") != 0 &&
             strcasecmp(s, "Relu") != 0))
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                 "octet cannot write activation '%.40s' as OpenVINO IR", s);
        if (i < n_acts)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", s);
    }
    for (char *s = text; *s; s++)
        *s = (char)tolower((unsigned char)*s);
    oct_ir_attr_str(&w->ir, "activations", text);
    return w->ir.status;
}

static oct_status attributes(oct_to_ir *w, const oct_node *n, const recurrent *c)
{
    oct_ir_attr_str(&w->ir, "direction", oct_to_ir_str(w, n, "direction", "forward"));
    oct_ir_attr_int(&w->ir, "hidden_size", c->hidden);
    oct_ir_attr_f64(&w->ir, "clip", oct_to_ir_f64(n, "clip", 0));
    if (c->cell == &oct_ir_gru) oct_ir_attr_bool(&w->ir, "linear_before_reset", c->apart);
    return activations(w, n, c);
}

/* --- nodes --- */

/* All steps [batch x dirs x seq x hidden] and the last states [batch x dirs x hidden], as the node
 * has them. */
static oct_status results(oct_to_ir *w, const oct_node *n, const recurrent *c, oct_ir_at y)
{
    static const int64_t first[] = {0, 2, 1, 3}, second[] = {2, 1, 0, 3}, states[] = {1, 0, 2};
    static const char *const names[] = {"Y", "Y_h", "Y_c"};

    for (int32_t i = 0; i <= c->cell->n_states; i++) {
        const int64_t *order =
            i == 0 ? (c->batch_first ? first : second) : (c->batch_first ? NULL : states);

        if (!oct_node_out(n, i)) continue;
        OCT_TRY(oct_to_ir_done(
            w, n, i, transposed(w, n, names[i], (oct_ir_at){y.layer, i}, order, &n->out[i]->type)));
    }
    return w->ir.status;
}

static oct_status write_recurrent(oct_to_ir *w, const oct_node *n, const oct_ir_cell *cell)
{
    const oct_type *x = &n->in[X]->type;
    const bool first = oct_to_ir_int(n, "layout", 0) != 0;
    recurrent c = {.cell = cell, .batch_first = first};
    const char *type = oct_arena_printf(w->ir.arena, "%sSequence", cell->name);
    oct_type out[3], in_type;
    oct_ir_at in[7], y;
    int32_t n_in = 0;

    OCT_TRY(check_node(n));
    if (!type) return OCT_ERR_MEMORY;
    c.seq = x->dim[first ? 1 : 0];
    c.batch = x->dim[first ? 0 : 1];
    c.dirs = n->in[R]->type.dim[0];
    c.hidden = n->in[R]->type.dim[2];
    c.apart = oct_to_ir_int(n, "linear_before_reset", 0) != 0;
    in_type = oct_type_make(x->dtype, 3, (const int64_t[]){c.batch, c.seq, x->dim[2]});
    out[0] = oct_type_make(x->dtype, 4, (const int64_t[]){c.batch, c.dirs, c.seq, c.hidden});
    out[1] = out[2] = oct_type_make(x->dtype, 3, (const int64_t[]){c.batch, c.dirs, c.hidden});
    in[n_in++] = transposed(w, n, "X", oct_to_ir_in(w, n, X),
                            first ? NULL : (const int64_t[]){1, 0, 2}, &in_type);
    in[n_in++] = first_state(w, n, &c, H0, "H");
    if (cell->n_states == 2) in[n_in++] = first_state(w, n, &c, C0, "C");
    in[n_in++] = lengths(w, n, &c);
    in[n_in++] = weights(w, n, &c, W, "W");
    in[n_in++] = weights(w, n, &c, R, "R");
    in[n_in++] = biases(w, n, &c);
    y = oct_ir_add(&w->ir, n->name, type, cell->version, in, n_in, out, 1 + cell->n_states);
    OCT_TRY(attributes(w, n, &c));
    return results(w, n, &c, y);
}

oct_status oct_to_ir_lstm(oct_to_ir *w, const oct_node *n)
{
    return write_recurrent(w, n, &oct_ir_lstm);
}

oct_status oct_to_ir_gru(oct_to_ir *w, const oct_node *n)
{
    return write_recurrent(w, n, &oct_ir_gru);
}

oct_status oct_to_ir_rnn(oct_to_ir *w, const oct_node *n)
{
    return write_recurrent(w, n, &oct_ir_rnn);
}
