/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating nodes whose operands are all constant, within limits of size and work. */
#include "pass/fold/fold.h"

#include <string.h>

#include "op/op.h"
#include "pass/rewrite.h"

/* A result may be this large, or `ratio` times as large as the constants it comes from: anchors
 * and position tables fit (100,000 anchors of an image of 2,000 x 2,000 are 1.6 MB as boxes,
 * made from 0.8 MB of points), while a ConstantOfShape or Tile that would enlarge a file greatly
 * stays a node. */
#define MAX_OUT_BYTES (1 << 20)

#define MAX_GROWTH     (16ll << 20) /* of all results of one run together */
#define MAX_WORK       (1ll << 24)  /* plus some operations for each byte of constants */
#define MAX_DATA_SHAPE 65536 /* operand elements, where the result's size is not known before */

oct_fold_budget oct_fold_budget_for(const oct_graph *g)
{
    const oct_graph *root = g->root;
    oct_fold_budget b = {.growth = MAX_GROWTH, .work = MAX_WORK, .ratio = 2};

    for (int32_t i = 0; i < root->n_value_ids; i++) {
        const oct_value *v = root->values[i];

        if (v && v->data) b.work += 4 * (int64_t)OCT_MIN(v->data->size, (size_t)1 << 40);
    }
    return b;
}

bool oct_fold_possible(const oct_node *n)
{
    const unsigned never = OCT_OP_RANDOM | OCT_OP_HAS_BODY;

    if (!n->op->ref || !n->op->shape || (n->op->flags & never) || n->n_in < 1) return false;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data) return false;
    return n->in[0] != NULL;
}

/* Operators that touch each element once or twice, whatever their shapes are. */
static bool is_linear(const oct_node *n)
{
    static const oct_op *const movers[] = {
        &oct_op_concat,
        &oct_op_expand,
        &oct_op_gather,
        &oct_op_pad,
        &oct_op_slice,
        &oct_op_split,
        &oct_op_tile,
        &oct_op_cast,
        &oct_op_transpose,
        &oct_op_quantize_linear,
        &oct_op_dequantize_linear,
    };

    if (n->op->flags & (OCT_OP_ELEMENTWISE | OCT_OP_VIEW | OCT_OP_IS_COPY)) return true;
    for (size_t i = 0; i < OCT_COUNT(movers); i++)
        if (n->op == movers[i]) return true;
    return false;
}

typedef struct cost {
    int64_t in_len, in_bytes, own_bytes; /* own: read by this node alone, so freed with it */
    int64_t out_len, out_bytes;          /* -1: not known before */
} cost;

static bool add(int64_t *sum, int64_t x)
{
    return x >= 0 && oct_add_i64(*sum, x, sum);
}

static bool measure(const oct_node *n, cost *c)
{
    size_t size;

    *c = (cost){0};
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i];

        if (!v) continue;
        if (!add(&c->in_len, oct_tensor_len(v->data))) return false;
        if (!add(&c->in_bytes, (int64_t)v->data->size)) return false;
        if (v->n_users == 1 && !v->is_output) c->own_bytes += (int64_t)v->data->size;
    }
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_type *t = n->out[i] ? &n->out[i]->type : NULL;

        if (!t) continue;
        if (!oct_type_is_static(t) || !oct_type_bytes(t, &size)) {
            c->out_len = c->out_bytes = -1;
            return (n->op->flags & OCT_OP_DATA_SHAPE) && c->in_len <= MAX_DATA_SHAPE;
        }
        if (!add(&c->out_len, oct_type_len(t)) || size > INT64_MAX) return false;
        if (!add(&c->out_bytes, (int64_t)size)) return false;
    }
    return true;
}

/* Upper bound of operations: any output element may read all operands, unless more is known. */
static int64_t work_of(const oct_node *n, const cost *c)
{
    const int64_t out_len = OCT_MAX(c->out_len, 0), macs = n->op->macs ? n->op->macs(n) : 0;
    int64_t work;

    if (!oct_add_i64(c->in_len, out_len, &work)) return INT64_MAX;
    if (is_linear(n)) return work;
    if (macs > 0) return oct_add_i64(work, macs, &work) ? work : INT64_MAX;
    return oct_mul_i64(c->in_len + 1, out_len + c->in_len + 1, &work) ? work : INT64_MAX;
}

static bool is_affordable(const oct_node *n, oct_fold_budget *b)
{
    cost c;
    int64_t growth, work;

    if (!measure(n, &c)) return false;
    if (c.out_bytes > MAX_OUT_BYTES && c.out_bytes / b->ratio > c.in_bytes) return false;
    growth = OCT_MAX(c.out_bytes - c.own_bytes, 0);
    work = work_of(n, &c);
    if (growth > b->growth || work > b->work) return false;
    b->growth -= growth;
    b->work -= work;
    return true;
}

static bool is_small_enough(const oct_node *n, oct_tensor *const *out)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (out[i] && out[i]->size > MAX_OUT_BYTES && (n->op->flags & OCT_OP_DATA_SHAPE))
            return false;
    return true;
}

static bool is_read(const oct_value *v)
{
    return v && (v->n_users > 0 || v->is_output);
}

/* Outputs with consumers become constants; the others are removed with the node, and the node is
 * removed with its last output: it must not be used after that. */
static oct_status freeze_outputs(oct_node *n, oct_tensor **out, bool *done)
{
    int32_t left = 0;

    for (int32_t i = 0; i < n->n_out; i++)
        left += is_read(n->out[i]);
    *done = left > 0;
    for (int32_t i = 0; left > 0; i++) {
        oct_tensor *t = out[i];

        if (!is_read(n->out[i])) continue;
        left--;
        out[i] = NULL;
        OCT_TRY(oct_value_freeze(n->out[i], t));
    }
    return OCT_OK;
}

oct_status oct_fold_node(oct_node *n, oct_fold_budget *budget, bool *done)
{
    oct_ctx *ctx = n->graph->ctx;
    const int32_t n_out = n->n_out;
    oct_meter meter = {.left = budget->work, .limit = budget->work};
    const oct_env env = {.meter = &meter};
    oct_tensor **slots, **out;
    oct_status st;
    bool all = true;

    *done = false;
    st = oct_node_infer(n);
    if (st) return st == OCT_ERR_MEMORY ? st : OCT_OK;
    if (!is_affordable(n, budget)) return OCT_OK;
    slots = oct_calloc(ctx, (size_t)(n->n_in + n_out) + 1, sizeof(*slots));
    if (!slots) return OCT_ERR_MEMORY;
    out = slots + n->n_in;
    for (int32_t i = 0; i < n->n_in; i++)
        slots[i] = n->in[i] ? n->in[i]->data : NULL;
    st = oct_node_eval(n, slots, out, &env);
    if (st && st != OCT_ERR_MEMORY) st = OCT_OK; /* the run will report the failure */
    for (int32_t i = 0; i < n_out; i++)
        all = all && (out[i] || !n->out[i]);
    if (!st && all && is_small_enough(n, out)) st = freeze_outputs(n, out, done);
    for (int32_t i = 0; i < n_out; i++)
        oct_tensor_unref(out[i]);
    oct_free(ctx, slots);
    return st;
}
