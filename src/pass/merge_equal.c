/* SPDX-License-Identifier: Apache-2.0 */
/* merge-equal: constants with the same bytes, and nodes that compute the same, become one. */
#include <string.h>

#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Bytes of a large constant that go into its hash; equal hashes are compared in full. */
#define HASH_BYTES 4096

/* More entries with one hash than this are hostile, or not worth it. */
#define MAX_PROBES 32

/* A table of nodes or constants by hash, never full. */
typedef struct table {
    oct_ctx *ctx;
    void **item;
    uint64_t *hash;
    size_t mask;
} table;

static oct_status table_init(table *t, oct_ctx *ctx, size_t n)
{
    size_t cap = 16;

    while (cap < 2 * n)
        cap *= 2;
    *t = (table){.ctx = ctx, .mask = cap - 1};
    t->item = oct_calloc(ctx, cap, sizeof(*t->item));
    t->hash = oct_calloc(ctx, cap, sizeof(*t->hash));
    return t->item && t->hash ? OCT_OK : OCT_ERR_MEMORY;
}

static void table_fini(table *t)
{
    oct_free(t->ctx, t->item);
    oct_free(t->ctx, t->hash);
}

/* The entry equal to item, or NULL after entering it. */
static void *find_or_add(table *t, void *item, uint64_t hash,
                         bool (*equal)(const void *, const void *))
{
    size_t i = hash & t->mask;
    int probes = 0;

    for (; t->item[i]; i = (i + 1) & t->mask) {
        if (t->hash[i] != hash) continue;
        if (equal(t->item[i], item)) return t->item[i];
        if (++probes > MAX_PROBES) return NULL;
    }
    t->item[i] = item;
    t->hash[i] = hash;
    return NULL;
}

/* --- constants --- */

static uint64_t hash_const(const oct_value *v)
{
    const oct_tensor *t = v->data;
    uint64_t h = oct_hash_bytes(&t->type.dtype, sizeof(t->type.dtype), (uint64_t)t->type.rank);

    h = oct_hash_bytes(t->type.dim, (size_t)t->type.rank * sizeof(int64_t), h);
    return oct_hash_bytes(t->data, OCT_MIN(t->size, HASH_BYTES), h);
}

static bool equal_consts(const void *a, const void *b)
{
    const oct_value *x = a, *y = b;

    return x->graph == y->graph && oct_tensor_equal(x->data, y->data);
}

static oct_status merge_consts(oct_graph *g, int *n_changed)
{
    oct_graph *root = g->root;
    table t;
    oct_status st = table_init(&t, g->ctx, (size_t)root->n_value_ids);

    for (int32_t i = 0; i < root->n_value_ids && !st; i++) {
        oct_value *v = root->values[i], *same;

        if (!v || !v->data || v->producer || v->is_input || v->is_output) continue;
        if (oct_dtype_size(v->data->type.dtype) == 0 || v->n_users == 0) continue;
        same = find_or_add(&t, v, hash_const(v), equal_consts);
        if (!same) continue;
        if ((st = oct_value_replace_uses(v, same))) break;
        st = oct_prune(v);
        ++*n_changed;
    }
    table_fini(&t);
    return st;
}

/* --- nodes --- */

/* One DequantizeLinear for each consumer is how quantized files mark what a pair belongs to:
 * keep it. */
static bool is_mergeable(const oct_node *n)
{
    if (n->op->flags & (OCT_OP_RANDOM | OCT_OP_HAS_BODY) || oct_op_is_opaque(n->op)) return false;
    if (oct_node_is(n, &oct_op_dequantize_linear) || n->n_extra > 0) return false;
    return n->n_out >= 1 && n->n_in >= 1;
}

static bool is_swapped(const oct_node *n)
{
    return (n->op->flags & OCT_OP_COMMUTES) && n->n_in == 2 && n->in[0] && n->in[1] &&
           n->in[0]->id > n->in[1]->id;
}

static const oct_value *operand(const oct_node *n, int32_t i)
{
    return n->in[is_swapped(n) ? 1 - i : i];
}

static uint64_t hash_attr(const oct_attr *a, uint64_t h)
{
    h = oct_hash_bytes(&a->kind, sizeof(a->kind), h);
    if (a->kind == OCT_ATTR_INT) return oct_hash_bytes(&a->i, sizeof(a->i), h);
    if (a->kind == OCT_ATTR_F32) return oct_hash_bytes(&a->f, sizeof(a->f), h);
    if (a->kind == OCT_ATTR_STRING) return oct_hash_bytes(a->s, (size_t)a->n, h);
    if (a->kind == OCT_ATTR_INTS && a->n)
        return oct_hash_bytes(a->is, (size_t)a->n * sizeof(int64_t), h);
    return h; /* other kinds are compared, not hashed */
}

static uint64_t hash_node(const oct_node *n)
{
    uint64_t h = oct_hash_bytes(&n->op, sizeof(n->op), (uint64_t)n->n_out);

    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = operand(n, i);
        const int32_t id = v ? v->id : -1;

        h = oct_hash_bytes(&id, sizeof(id), h);
    }
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        h = hash_attr(&n->attr[i], h);
    return h;
}

static bool equal_attrs(const oct_attr *a, const oct_attr *b)
{
    const size_t n = (size_t)a->n;

    if (a->kind != b->kind) return false;
    if (a->kind == OCT_ATTR_NONE) return true;
    if (a->kind == OCT_ATTR_INT) return a->i == b->i;
    if (a->kind == OCT_ATTR_F32) return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
    if (a->kind == OCT_ATTR_TENSOR) return oct_tensor_equal(a->t, b->t);
    if (a->n != b->n) return false;
    if (a->kind == OCT_ATTR_STRING) return n == 0 || memcmp(a->s, b->s, n) == 0;
    if (a->kind == OCT_ATTR_INTS) return n == 0 || memcmp(a->is, b->is, n * sizeof(int64_t)) == 0;
    if (a->kind == OCT_ATTR_F32S) return n == 0 || memcmp(a->fs, b->fs, n * sizeof(float)) == 0;
    return false;
}

static bool equal_nodes(const void *a, const void *b)
{
    const oct_node *x = a, *y = b;

    if (x->op != y->op || x->n_in != y->n_in || x->n_out != y->n_out) return false;
    for (int32_t i = 0; i < x->n_in; i++)
        if (operand(x, i) != operand(y, i)) return false;
    for (int32_t i = 0; i < x->n_out; i++)
        if (!x->out[i] != !y->out[i]) return false;
    for (int i = 0, k = oct_op_n_attrs(x->op); i < k; i++)
        if (!equal_attrs(&x->attr[i], &y->attr[i])) return false;
    return true;
}

/* Removes n, unless it produces an output of the graph. */
static oct_status merge_into(oct_node *n, oct_node *same, int *n_changed)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !oct_value_can_replace(n->out[i], same->out[i])) return OCT_OK;
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) OCT_TRY(oct_value_replace_uses(n->out[i], same->out[i]));
    oct_node_remove(n);
    ++*n_changed;
    return OCT_OK;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    table t;
    oct_status st;

    if (!g->parent) OCT_TRY(merge_consts(g, n_changed)); /* those of the bodies as well */
    st = table_init(&t, g->ctx, (size_t)g->n_nodes);
    for (oct_node *n = g->first, *next; n && !st; n = next) {
        oct_node *same;

        next = n->next;
        if (!is_mergeable(n)) continue;
        same = find_or_add(&t, n, hash_node(n), equal_nodes);
        if (same) st = merge_into(n, same, n_changed);
    }
    table_fini(&t);
    return st;
}

const oct_pass oct_pass_merge_equal = {
    .name = "merge-equal",
    .help = "merge equal constants and nodes that compute the same",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
