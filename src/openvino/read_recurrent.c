/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN of IR: sequences become time-major, a cell is a sequence of one step. */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"
#include "openvino/recurrent.h"

#define IN(i) oct_from_ir_in(r, l, i)

enum { MAX_BLOCKS = 2 * OCT_IR_MAX_GATES };

/* A layer that is being read. */
typedef struct recurrent {
    const oct_ir_cell *cell;
    bool is_sequence; /* not one step */
    bool apart;       /* GRU: the hidden gate has a bias for R h of its own */
    int64_t dirs, hidden;
} recurrent;

/* --- operands --- */

static oct_value *transposed(oct_from_ir *r, oct_value *v, const int64_t *perm, int32_t rank)
{
    oct_node *n = oct_emit_node(&r->b, &oct_op_transpose, &v, 1, 1);

    oct_emit_ints(&r->b, n, "perm", perm, rank);
    return oct_emitted(&r->b, n);
}

/* [1 x ..], of constants without a node. */
static oct_value *lifted(oct_from_ir *r, oct_value *v)
{
    static const int64_t first = 0;
    oct_tensor *view = NULL;
    oct_type t = v->type;

    if (!v->data) return oct_emit(&r->b, &oct_op_unsqueeze, v, oct_ints(&r->b, &first, 1), NULL);
    for (int32_t i = t.rank++; i > 0; i--)
        t.dim[i] = t.dim[i - 1];
    t.dim[0] = 1;
    if (!r->b.status) r->b.status = oct_tensor_view(r->ctx, v->data, &t, &view);
    return r->b.status ? NULL : oct_value_const(r->g, NULL, view);
}

/* Operand i of the rank that a sequence has; a cell lacks one dimension. */
static oct_status operand(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, int32_t i,
                          int32_t rank, oct_value **out)
{
    oct_value *v = IN(i);

    if (v->type.rank != (c->is_sequence ? rank : rank - 1))
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "operand %d has %d dims, not %d", (int)i,
                                v->type.rank, (int)(c->is_sequence ? rank : rank - 1));
    *out = c->is_sequence ? v : lifted(r, v);
    return *out ? OCT_OK : r->b.status ? r->b.status : OCT_ERR_MEMORY;
}

/* What a sequence has first for each picture of the batch, ONNX has for each step or direction. */
static oct_status batch_second(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, int32_t i,
                               oct_value **out)
{
    OCT_TRY(operand(r, l, c, i, 3, out));
    if (c->is_sequence) *out = transposed(r, *out, (const int64_t[]){1, 0, 2}, 3);
    return r->b.status;
}

/* --- gates --- */

/* Blocks of axis 1 that training or quantization keeps from being constant; -1: zeros. */
static oct_value *pick_nodes(oct_from_ir *r, const recurrent *c, oct_value *v, int n_blocks,
                             const int *pick, int n_picked)
{
    const oct_type block = oct_type_make(OCT_DTYPE_F32, 2, (const int64_t[]){c->dirs, c->hidden});
    oct_value *part[MAX_BLOCKS], *zero = NULL;
    oct_tensor *t = NULL;
    oct_node *n = oct_emit_node(&r->b, &oct_op_split, &v, 1, n_blocks);

    oct_emit_int(&r->b, n, "axis", 1);
    oct_emit_int(&r->b, n, "num_outputs", n_blocks);
    (void)oct_emitted(&r->b, n);
    for (int k = 0; k < n_picked && !r->b.status; k++) {
        if (pick[k] < 0 && !zero) {
            if ((r->b.status = oct_tensor_make(r->ctx, &block, &t))) return NULL;
            if (!(zero = oct_value_const(r->g, NULL, t))) r->b.status = OCT_ERR_MEMORY;
        }
        part[k] = pick[k] < 0 ? oct_from_ir_cast(r, zero, v->type.dtype) : n->out[pick[k]];
    }
    if (r->b.status) return NULL;
    n = oct_emit_node(&r->b, &oct_op_concat, part, n_picked, 1);
    oct_emit_int(&r->b, n, "axis", 1);
    return oct_emitted(&r->b, n);
}

/* Weights or biases with their gates where ONNX has them. */
static oct_status reordered(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, int32_t i,
                            int32_t rank, int n_blocks, const int *pick, int n_picked,
                            oct_value **out)
{
    oct_tensor *t = NULL;
    oct_value *v = NULL;

    OCT_TRY(operand(r, l, c, i, rank, &v));
    if (v->type.dim[0] != c->dirs || v->type.dim[1] != n_blocks * c->hidden)
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT,
                                "operand %d is [%lld x %lld ..], not [%lld x %lld ..]", (int)i,
                                (long long)v->type.dim[0], (long long)v->type.dim[1],
                                (long long)c->dirs, (long long)(n_blocks * c->hidden));
    if (!v->data || v->type.dtype != OCT_DTYPE_F32) {
        *out = pick_nodes(r, c, v, n_blocks, pick, n_picked);
        return r->b.status;
    }
    OCT_TRY(oct_ir_pick_blocks(r->ctx, v->data, n_blocks, pick, NULL, n_picked, &t));
    *out = oct_value_const(r->g, NULL, t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* IR adds both biases of a gate beforehand: the second ones of ONNX are 0. */
static oct_status biases(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, int32_t i,
                         oct_value **out)
{
    const int n = c->cell->n_gates;
    int pick[MAX_BLOCKS];

    for (int k = 0; k < n; k++) {
        pick[k] = c->cell->gate_of_ir[k];
        pick[n + k] = -1;
    }
    if (c->apart) pick[2 * n - 1] = n;
    return reordered(r, l, c, i, 2, c->apart ? n + 1 : n, pick, 2 * n, out);
}

/* --- attributes --- */

/* The names ONNX has for IR's activations. */
static const char *find_act(const char *name, size_t len)
{
    static const char *const known[][2] = {
        {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"}, {"relu", "Relu"}, {"hardsigmoid", "HardSigmoid"}};

    for (size_t i = 0; i < OCT_COUNT(known); i++)
        if (strlen(known[i][0]) == len && strncmp(known[i][0], name, len) == 0) return known[i][1];
    return NULL;
}

/* Number i of a list; `otherwise` if it ends before. */
static float number(const oct_ir_layer *l, const char *name, int i, float otherwise)
{
    const char *s = oct_from_ir_str(l, name, "");

    for (s += strspn(s, ", "); *s; s += strspn(s, ", "), i--) {
        if (i == 0) return strtof(s, NULL);
        s += strcspn(s, ", ");
    }
    return otherwise;
}

/* One list for both directions. Numbers are by place in IR; in ONNX only activations that have
 * parameters take one each. */
static oct_status activations(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c,
                              oct_node *n)
{
    const char *s = oct_from_ir_str(l, "activations", ""), *names[2 * OCT_IR_MAX_ACTS];
    const int n_acts = c->cell->n_acts;
    float alpha[2 * OCT_IR_MAX_ACTS], beta[2 * OCT_IR_MAX_ACTS];
    int64_t n_numbers = 0;

    if (!*(s += strspn(s, ", "))) return OCT_OK; /* the defaults are the same */
    for (int i = 0; i < n_acts; i++, s += strspn(s, ", ")) {
        const size_t len = strcspn(s, ", ");

        if (!(names[i] = find_act(s, len)))
            return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "activation '%.*s'",
                                    (int)OCT_MIN(len, 40), s);
        names[n_acts + i] = names[i];
        s += len;
    }
    for (int i = 0; i < n_acts * (int)c->dirs; i++)
        if (strcmp(names[i], "HardSigmoid") == 0) {
            alpha[n_numbers] = number(l, "activations_alpha", i % n_acts, 0.2f);
            beta[n_numbers++] = number(l, "activations_beta", i % n_acts, 0.5f);
        }
    OCT_TRY(oct_node_set_attr(
        n, "activations",
        &(oct_attr){.kind = OCT_ATTR_STRINGS, .given = true, .n = n_acts * c->dirs, .ss = names}));
    if (!n_numbers) return OCT_OK;
    OCT_TRY(oct_node_set_attr(
        n, "activation_alpha",
        &(oct_attr){.kind = OCT_ATTR_F32S, .given = true, .n = n_numbers, .fs = alpha}));
    return oct_node_set_attr(
        n, "activation_beta",
        &(oct_attr){.kind = OCT_ATTR_F32S, .given = true, .n = n_numbers, .fs = beta});
}

static oct_status attributes(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, oct_node *n)
{
    const float clip = (float)oct_from_ir_f64(l, "clip", 0);

    OCT_TRY(r->b.status);
    oct_emit_int(&r->b, n, "hidden_size", c->hidden);
    if (c->is_sequence)
        oct_emit_str(&r->b, n, "direction", oct_from_ir_str(l, "direction", "forward"));
    if (clip > 0) oct_emit_f32(&r->b, n, "clip", clip);
    if (c->cell == &oct_ir_gru) oct_emit_int(&r->b, n, "linear_before_reset", c->apart);
    OCT_TRY(r->b.status);
    return activations(r, l, c, n);
}

/* --- layers --- */

/* All steps, as IR has them, and the last states. */
static oct_status results(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, oct_node *n)
{
    static const int64_t first = 0;

    (void)oct_emitted(&r->b, n);
    OCT_TRY(r->b.status);
    if (c->is_sequence)
        OCT_TRY(
            oct_from_ir_done(r, l, 0, transposed(r, n->out[0], (const int64_t[]){2, 1, 0, 3}, 4)));
    for (int i = 0; i < c->cell->n_states; i++) {
        oct_value *y = n->out[1 + i];

        if (c->is_sequence)
            y = transposed(r, y, (const int64_t[]){1, 0, 2}, 3);
        else
            y = oct_emit(&r->b, &oct_op_squeeze, y, oct_ints(&r->b, &first, 1), NULL);
        OCT_TRY(oct_from_ir_done(r, l, i + (c->is_sequence ? 1 : 0), y));
    }
    return r->b.status;
}

static oct_status check_layer(oct_from_ir *r, const oct_ir_layer *l, const recurrent *c, int32_t w)
{
    OCT_TRY(oct_from_ir_need(r, l, w + 3));
    if (l->n_in > w + 3 || oct_from_ir_bool(l, "input_forget", false))
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED,
                                "octet cannot read peepholes and coupled gates");
    if (c->hidden < 1 || c->hidden > INT32_MAX)
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "hidden_size is %lld", (long long)c->hidden);
    return OCT_OK;
}

static oct_status read_recurrent(oct_from_ir *r, const oct_ir_layer *l, const oct_ir_cell *cell)
{
    const char *direction = oct_from_ir_str(l, "direction", "forward");
    recurrent c = {.cell = cell,
                   .is_sequence = strcmp(l->type + strlen(cell->name), "Sequence") == 0,
                   .apart = oct_from_ir_bool(l, "linear_before_reset", false),
                   .hidden = oct_from_ir_int(l, "hidden_size", 0)};
    const int32_t w = 1 + cell->n_states + (c.is_sequence ? 1 : 0);
    oct_value *in[7] = {NULL};
    oct_node *n;

    c.dirs = c.is_sequence && strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    OCT_TRY(check_layer(r, l, &c, w));
    OCT_TRY(batch_second(r, l, &c, 0, &in[0]));
    OCT_TRY(reordered(r, l, &c, w, 3, cell->n_gates, cell->gate_of_ir, cell->n_gates, &in[1]));
    OCT_TRY(reordered(r, l, &c, w + 1, 3, cell->n_gates, cell->gate_of_ir, cell->n_gates, &in[2]));
    OCT_TRY(biases(r, l, &c, w + 2, &in[3]));
    if (c.is_sequence) in[4] = oct_from_ir_cast(r, IN(w - 1), OCT_DTYPE_I32);
    for (int i = 0; i < cell->n_states; i++)
        OCT_TRY(batch_second(r, l, &c, 1 + i, &in[5 + i]));
    n = oct_emit_node(&r->b, cell->op, in, 5 + cell->n_states, 1 + cell->n_states);
    OCT_TRY(attributes(r, l, &c, n));
    return results(r, l, &c, n);
}

oct_status oct_from_ir_lstm(oct_from_ir *r, const oct_ir_layer *l)
{
    return read_recurrent(r, l, &oct_ir_lstm);
}

oct_status oct_from_ir_gru(oct_from_ir *r, const oct_ir_layer *l)
{
    return read_recurrent(r, l, &oct_ir_gru);
}

oct_status oct_from_ir_rnn(oct_from_ir *r, const oct_ir_layer *l)
{
    return read_recurrent(r, l, &oct_ir_rnn);
}
