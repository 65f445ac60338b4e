/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink-dequantize: moves a DequantizeLinear downstream of the nodes that only move its result.
 *
 * Scales by channel move along: channels get labels, a node maps them, and downstream of it the
 * labels say which scale a channel has. Nodes after which a label is no longer that of a channel
 * (the first Reshape of a channel shuffle) are passed together with those that follow.
 */
#include "op/channels.h"
#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_CHAIN 4

/* The quantization parameters of all operands, in one list. */
typedef struct source {
    oct_ctx *ctx;
    oct_dtype dtype;
    float *scale;
    int32_t *zero;
    int64_t n;
    const oct_node *like; /* all operands have one scale, the same: this node's */
} source;

static const oct_node *dequantizer(const oct_value *v, oct_codes *c)
{
    const oct_node *n = v ? v->producer : NULL;

    if (!n || n->graph != v->graph || !oct_node_is_dequantize(n) || !oct_codes_of(n, c))
        return NULL;
    return oct_dtype_get(c->dtype)->bits == 8 && (c->n == 1 || c->axis == 1) ? n : NULL;
}

static bool moves(const oct_node *n)
{
    return oct_node_moves_data(n) && n->op != &oct_op_global_max_pool;
}

static void source_fini(source *s)
{
    oct_free(s->ctx, s->scale);
    oct_free(s->ctx, s->zero);
}

static bool operands_fit(const oct_node *n, source *s, int64_t *total)
{
    oct_codes first = {0}, c;

    *total = 0;
    for (int32_t i = 0; i < oct_node_n_data(n); i++) {
        const oct_node *d = dequantizer(n->in[i], &c);

        if (!d || (i > 0 && c.dtype != first.dtype)) return false;
        if (i == 0) {
            first = c;
            s->dtype = c.dtype;
            s->like = c.n == 1 ? d : NULL;
        } else if (c.n != 1 || !s->like || !oct_codes_equal(&c, &first)) {
            s->like = NULL;
        }
        *total += c.n;
    }
    return *total > 0;
}

/* Labels of operand i continue those of the operands before it. */
static oct_status read_operands(const oct_node *n, source *s, int64_t total, oct_tensor **labels)
{
    s->scale = oct_calloc(s->ctx, (size_t)total, sizeof(*s->scale));
    s->zero = oct_calloc(s->ctx, (size_t)total, sizeof(*s->zero));
    if (!s->scale || !s->zero) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < oct_node_n_data(n); i++) {
        oct_codes c;

        dequantizer(n->in[i], &c);
        OCT_TRY(oct_labels_new(s->ctx, &n->in[i]->type, (int32_t)s->n, c.n > 1, &labels[i]));
        for (int64_t k = 0; k < c.n; k++) {
            s->scale[s->n] = oct_codes_scale(&c, k);
            s->zero[s->n++] = oct_codes_zero(&c, k);
        }
    }
    return OCT_OK;
}

/* Parameters of a result whose channels have these labels; *ok false: they do not differ by
 * channel alone. */
static oct_status parameters(const source *s, oct_node *at, const oct_value *v,
                             const oct_tensor *labels, oct_qdq *l, bool *ok)
{
    const int64_t n = v->type.rank >= 2 ? v->type.dim[1] : 1;
    int32_t *label = oct_calloc(s->ctx, (size_t)OCT_MAX(n, 1), sizeof(*label)), *zero = NULL;
    float *scale = oct_calloc(s->ctx, (size_t)OCT_MAX(n, 1), sizeof(*scale));
    bool same = true;
    oct_status st = OCT_OK;

    zero = oct_calloc(s->ctx, (size_t)OCT_MAX(n, 1), sizeof(*zero));
    if (!label || !scale || !zero) st = OCT_ERR_MEMORY;
    *ok = !st && v->type.rank >= 2 && n > 0 && oct_labels_channels(labels, n, label);
    for (int64_t i = 0; i < n && *ok; i++) {
        if (!(*ok = label[i] >= 0 && label[i] < s->n)) break;
        scale[i] = s->scale[label[i]];
        zero[i] = s->zero[label[i]];
        same = same && scale[i] == scale[0] && zero[i] == zero[0];
    }
    if (*ok) {
        st = oct_qdq_scales(at, scale, same ? 1 : n, &l->scale);
        if (!st) st = oct_qdq_zeros(at, s->dtype, zero, same ? 1 : n, &l->zero);
        l->axis = same ? -1 : 1;
    }
    oct_free(s->ctx, label);
    oct_free(s->ctx, scale);
    oct_free(s->ctx, zero);
    return st;
}

/* A chain of nodes that one DequantizeLinear passes at once: first to last. */
typedef struct chain {
    oct_node *node[MAX_CHAIN];
    int n;
    oct_qdq *out; /* for each output of the last */
} chain;

/* The new nodes may use what the old ones used, so these are removed last. */
static oct_status rewrite_from(chain *c, const source *s, oct_value **old)
{
    oct_node *first = c->node[0], *last = c->node[c->n - 1];
    const int32_t n = oct_node_n_data(first);
    oct_codes codes = {0};

    for (int32_t i = 0; i < n; i++) {
        old[i] = first->in[i];
        dequantizer(old[i], &codes);
        OCT_TRY(oct_node_set_input(first, i, old[i]->producer->in[0]));
        if (i == 0) OCT_TRY(oct_qdq_fix_pad(first, &codes));
    }
    for (int i = 0; i + 1 < c->n; i++)
        c->node[i]->out[0]->type.dtype = s->dtype;
    for (int32_t k = 0; k < last->n_out; k++)
        if (last->out[k]) OCT_TRY(oct_qdq_dequantize_output(last, k, s->dtype, &c->out[k]));
    for (int32_t i = 0; i < n; i++) /* the same value may have been read twice */
        if (first->graph->root->values[old[i]->id] == old[i]) OCT_TRY(oct_prune(old[i]));
    return OCT_OK;
}

static oct_status rewrite(chain *c, const source *s)
{
    oct_value **old = oct_calloc(s->ctx, (size_t)oct_node_n_data(c->node[0]), sizeof(*old));
    const oct_status st = old ? rewrite_from(c, s, old) : OCT_ERR_MEMORY;

    oct_free(s->ctx, old);
    return st;
}

/* Follows one output's labels through the chain, which grows until they are those of channels. */
static oct_status follow(chain *c, const source *s, oct_tensor *const *labels, int32_t k, bool *ok)
{
    oct_tensor *now = NULL, *then = NULL;
    oct_node *n = c->node[0];
    oct_status st = oct_labels_through(n, (const oct_tensor *const *)labels, k, &now);

    *ok = false;
    while (!st && now) {
        st = parameters(s, n, n->out[k], now, &c->out[k], ok);
        if (st || *ok || c->n == MAX_CHAIN || n->n_out != 1) break;
        n = oct_sole_user(n->out[0]);
        if (!n || !moves(n) || n->n_out != 1 || oct_node_n_data(n) != 1 ||
            n->op == &oct_op_concat || n->op == &oct_op_pad)
            break;
        c->node[c->n++] = n;
        then = now;
        now = NULL;
        st = oct_labels_through(n, (const oct_tensor *const *)&then, 0, &now);
        oct_tensor_unref(then);
    }
    oct_tensor_unref(now);
    return st;
}

static oct_status find_parameters(chain *c, source *s, bool *ok)
{
    oct_node *n = c->node[0];
    const int32_t k = oct_node_n_data(n);
    oct_tensor **labels;
    int64_t total;
    oct_status st;

    *ok = false;
    if (!operands_fit(n, s, &total) || total > INT32_MAX / 2) return OCT_OK;
    if (s->like) {
        for (int32_t i = 0; i < n->n_out; i++)
            c->out[i] = oct_qdq_of(s->like);
        *ok = true;
        return OCT_OK;
    }
    if (!(labels = oct_calloc(s->ctx, (size_t)k, sizeof(*labels)))) return OCT_ERR_MEMORY;
    st = read_operands(n, s, total, labels);
    *ok = !st;
    for (int32_t i = 0; i < n->n_out && *ok && !st; i++)
        if (n->out[i]) st = follow(c, s, labels, i, ok);
    for (int32_t i = 0; i < k; i++)
        oct_tensor_unref(labels[i]);
    oct_free(s->ctx, labels);
    return st;
}

static oct_status sink(oct_node *n, int *n_changed)
{
    source s = {.ctx = n->graph->ctx};
    chain c = {.node = {n}, .n = 1};
    oct_codes codes;
    bool ok = false;
    oct_status st;

    if (!dequantizer(n->in[0], &codes) || !oct_qdq_pad_fits(n, &codes)) return OCT_OK;
    if (!(c.out = oct_calloc(s.ctx, (size_t)n->n_out, sizeof(*c.out)))) return OCT_ERR_MEMORY;
    st = find_parameters(&c, &s, &ok);
    if (!st && ok) {
        st = rewrite(&c, &s);
        ++*n_changed;
    }
    source_fini(&s);
    oct_free(s.ctx, c.out);
    return st;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->n_in > 0 && n->in[0] && moves(n)) OCT_TRY(sink(n, n_changed));
    }
    return OCT_OK;
}

const oct_pass oct_pass_sink_dequantize = {
    .name = "sink-dequantize",
    .help = "dequantize after data was moved, so that codes are moved",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_INTEGER_PLANS,
};
