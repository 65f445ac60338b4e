/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference over a graph, with small shape arithmetic evaluated on the way. */
#include <string.h>

#include "graph/op.h"

/* Tensors longer than this are never evaluated for their use as shapes. */
#define MAX_KNOWN_LEN  1024
#define MAX_KNOWN_WORK (1 << 20) /* an Einsum may take more than its operands let suspect */

/* What inference found out about values, by id: small tensors computed from shapes. */
typedef struct known {
    oct_ctx *ctx;
    oct_tensor **by_id;
    int32_t n;
} known;

static oct_tensor *known_data(const known *k, const oct_value *v)
{
    if (v->data) return v->data;
    return k && v->id < k->n ? k->by_id[v->id] : NULL;
}

/* Inference decides; what it leaves open is filled from what was known before (value_info). */
static void set_type(oct_value *v, const oct_type *inferred)
{
    oct_type t = *inferred;

    if (t.dtype == OCT_DTYPE_NONE) t.dtype = v->type.dtype;
    if (t.rank < 0) {
        t.rank = v->type.rank;
        memcpy(t.dim, v->type.dim, sizeof(t.dim));
    } else if (t.rank == v->type.rank) {
        for (int i = 0; i < t.rank; i++)
            if (t.dim[i] < 0) t.dim[i] = v->type.dim[i];
    }
    v->is_declared = !oct_type_equal(&t, inferred);
    v->type = t;
}

static oct_status infer_node(oct_node *n, const known *k)
{
    oct_ctx *ctx = n->graph->ctx;
    const size_t n_in = (size_t)OCT_MAX(n->n_in, 1), n_out = (size_t)OCT_MAX(n->n_out, 1);
    const oct_type **in = NULL;
    const oct_tensor **data = NULL;
    oct_type *out = NULL;
    oct_status st = OCT_ERR_MEMORY;

    if (!(in = oct_calloc(ctx, n_in, sizeof(*in)))) goto done;
    if (!(data = oct_calloc(ctx, n_in, sizeof(*data)))) goto done;
    if (!(out = oct_calloc(ctx, n_out, sizeof(*out)))) goto done;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        in[i] = &n->in[i]->type;
        data[i] = known_data(k, n->in[i]);
    }
    for (int32_t i = 0; i < n->n_out; i++)
        out[i] = oct_type_unknown(OCT_DTYPE_NONE);
    st = OCT_OK;
    if (n->op->shape) /* if not, it is opaque: types stay as declared */
        st = n->op->shape(&(oct_infer){.ctx = ctx, .node = n, .in = in, .data = data, .out = out});
    for (int32_t i = 0; i < n->n_out && !st; i++)
        if (n->out[i]) set_type(n->out[i], &out[i]);
done:
    oct_free(ctx, in);
    oct_free(ctx, data);
    oct_free(ctx, out);
    return st;
}

oct_status oct_node_infer(oct_node *n)
{
    return infer_node(n, NULL);
}

static bool is_small(const oct_type *t)
{
    const int64_t len = oct_type_len(t);

    return len >= 0 && len <= MAX_KNOWN_LEN && oct_dtype_size(t->dtype) > 0;
}

/* Can this node be evaluated now, cheaply? Fills in[] with its operands' tensors. */
static bool can_evaluate(const known *k, const oct_node *n, oct_tensor **in)
{
    const unsigned never =
        OCT_OP_RANDOM | OCT_OP_HAS_BODY | OCT_OP_DATA_SHAPE; /* not a function, or not cheap */

    if (!n->op->ref || (n->op->flags & never) || n->n_out != 1 || !n->out[0]) return false;
    if (n->out[0]->id >= k->n || !is_small(&n->out[0]->type)) return false;
    if (n->op->flags & OCT_OP_TYPE_ONLY) return n->in[0] && oct_type_is_static(&n->in[0]->type);
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        in[i] = known_data(k, n->in[i]);
        if (!in[i] || !is_small(&in[i]->type)) return false;
    }
    return true;
}

/* Evaluates shape arithmetic; what cannot be evaluated is simply not known. */
static oct_status learn(known *k, oct_node *n)
{
    oct_meter meter = {.left = MAX_KNOWN_WORK, .limit = MAX_KNOWN_WORK};
    const oct_env env = {.meter = &meter};
    oct_tensor *dummy = NULL, *out = NULL;
    oct_tensor **in = oct_calloc(k->ctx, (size_t)OCT_MAX(n->n_in, 1), sizeof(*in));
    oct_status st = OCT_OK;

    if (!in) return OCT_ERR_MEMORY;
    if (!can_evaluate(k, n, in)) goto done;
    if (n->op->flags & OCT_OP_TYPE_ONLY) {
        if ((st = oct_tensor_borrow(k->ctx, &n->in[0]->type, NULL, &dummy))) goto done;
        in[0] = dummy;
    }
    if (oct_node_eval(n, in, &out, &env) == OCT_OK) {
        oct_tensor_unref(k->by_id[n->out[0]->id]);
        k->by_id[n->out[0]->id] = out;
    }
done:
    oct_tensor_unref(dummy);
    oct_free(k->ctx, in);
    return st;
}

static oct_status infer_graph(oct_graph *g, known *k, int depth);

/* A branch that cannot run with these shapes fails when it is taken, not before: networks for
 * several rates of sound have one branch for each. What it gives is not known. */
static oct_status infer_branch(oct_graph *g, known *k, int depth)
{
    const oct_status st = infer_graph(g, k, depth);

    if (st != OCT_ERR_SHAPE) return st;
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->type.rank = -1;
    return OCT_OK;
}

static oct_status infer_bodies(oct_node *n, known *k, int depth)
{
    const bool chooses = (n->op->flags & OCT_OP_CHOOSES) != 0;

    for (int i = 0, n_attrs = oct_op_n_attrs(n->op); i < n_attrs; i++) {
        if (n->attr[i].kind != OCT_ATTR_GRAPH) continue;
        OCT_TRY(chooses ? infer_branch(n->attr[i].g, k, depth + 1)
                        : infer_graph(n->attr[i].g, k, depth + 1));
    }
    return OCT_OK;
}

static oct_status infer_graph(oct_graph *g, known *k, int depth)
{
    if (depth > 64) return oct_fail(g->ctx, OCT_ERR_FORMAT, "subgraphs are nested too deeply");
    for (oct_node *n = g->first; n; n = n->next) {
        OCT_TRY(infer_bodies(n, k, depth));
        OCT_TRY(infer_node(n, k));
        OCT_TRY(learn(k, n));
    }
    return OCT_OK;
}

oct_status oct_graph_infer(oct_graph *g)
{
    known k = {.ctx = g->ctx, .n = g->root->n_value_ids};
    oct_status st;

    k.by_id = oct_calloc(g->ctx, (size_t)OCT_MAX(k.n, 1), sizeof(oct_tensor *));
    if (!k.by_id) return OCT_ERR_MEMORY;
    st = infer_graph(g, &k, 0);
    for (int32_t i = 0; i < k.n; i++)
        oct_tensor_unref(k.by_id[i]);
    oct_free(g->ctx, k.by_id);
    return st;
}
