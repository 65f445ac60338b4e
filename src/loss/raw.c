/* SPDX-License-Identifier: Apache-2.0 */
/* Finding raw predictions upstream of Sigmoid and box arithmetic. */
#include "loss/raw.h"

#include "op/op.h"

enum {
    MAX_DEPTH = 64,   /* nodes between an output and the last layers with weights */
    FIRST_STRIDE = 8, /* of all families here */
};

bool oct_raw_is_float(const oct_value *v)
{
    return v && (v->type.dtype == OCT_DTYPE_F32 || v->type.dtype == OCT_DTYPE_F64);
}

bool oct_raw_is_move(const oct_node *n)
{
    return (n->op->moves && (!n->op->moves->is_move || n->op->moves->is_move(n))) ||
           n->op->flags & (OCT_OP_IS_COPY | OCT_OP_VIEW);
}

/* --- without Sigmoid --- */

typedef struct logits_job {
    oct_builder *b;
    oct_value **made; /* by value id: what it is without Sigmoid; NULL: not visited */
    bool fits;        /* no other nodes were met */
} logits_job;

static oct_value *logits_of(logits_job *j, oct_value *v, int depth);

/* The node again, on operands without Sigmoid; the node itself if they are the same. */
static void copy_without(logits_job *j, oct_node *n, int depth)
{
    oct_value **in = oct_arena_array(j->b->g->arena, (size_t)n->n_in + 1, sizeof(oct_value *));
    bool differs = false;
    oct_node *copy = n;

    if (!in) {
        j->b->status = OCT_ERR_MEMORY;
        return;
    }
    for (int32_t i = 0; i < n->n_in && !j->b->status; i++) {
        in[i] = oct_raw_is_float(n->in[i]) ? logits_of(j, n->in[i], depth + 1) : n->in[i];
        differs |= in[i] != n->in[i];
    }
    if (j->b->status || !j->fits) return;
    if (differs) {
        copy = oct_emit_node(j->b, n->op, in, n->n_in, n->n_out);
        if (copy) oct_emit_attrs_of(j->b, copy, n);
        if (!oct_emitted(j->b, copy)) return;
    }
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) j->made[n->out[i]->id] = copy->out[i];
}

static oct_value *logits_of(logits_job *j, oct_value *v, int depth)
{
    oct_node *n = v->producer;

    if (j->b->status || !j->fits) return NULL;
    if (j->made[v->id]) return j->made[v->id];
    if (!n || n->op->flow == OCT_FLOW_SOURCE)
        j->made[v->id] = v;
    else if (depth > MAX_DEPTH)
        j->fits = false;
    else if (oct_node_is(n, &oct_op_sigmoid))
        j->made[v->id] = n->in[0];
    else if (oct_raw_is_move(n))
        copy_without(j, n, depth);
    else
        j->fits = false;
    return j->fits ? j->made[v->id] : NULL;
}

oct_status oct_raw_logits(oct_builder *b, oct_value *v, oct_value **out)
{
    logits_job j = {.b = b, .fits = true};

    *out = NULL;
    if (b->status) return b->status;
    j.made = oct_arena_array(b->g->arena, (size_t)b->g->root->n_value_ids, sizeof(*j.made));
    if (!j.made) return b->status = OCT_ERR_MEMORY;
    *out = logits_of(&j, v, 0);
    return b->status;
}

oct_status oct_raw_search(oct_value *v, oct_raw_test fn, void *arg, oct_value **out)
{
    oct_graph *g = v->graph;
    const size_t n_ids = (size_t)g->root->n_value_ids;
    oct_value **queue = oct_arena_array(g->arena, n_ids, sizeof(*queue)); /* each value once */
    bool *seen = oct_arena_array(g->arena, n_ids, sizeof(*seen));
    size_t n = 0;

    *out = NULL;
    if (!queue || !seen) return OCT_ERR_MEMORY;
    queue[n++] = v;
    seen[v->id] = true;
    for (size_t i = 0; i < n; i++) {
        const oct_node *from = queue[i]->producer;

        if (fn(arg, queue[i])) {
            *out = queue[i];
            return OCT_OK;
        }
        if (!from || from->op->flow == OCT_FLOW_SOURCE) continue;
        for (int32_t k = 0; k < from->n_in; k++) {
            if (!oct_raw_is_float(from->in[k]) || seen[from->in[k]->id]) continue;
            seen[from->in[k]->id] = true;
            queue[n++] = from->in[k];
        }
    }
    return OCT_OK;
}

/* --- other forms --- */

oct_value *oct_raw_rows(oct_builder *b, oct_value *v)
{
    oct_node *n;

    if (b->status) return NULL;
    if (v->type.rank == 4) {
        const int64_t dim[3] = {v->type.dim[0], v->type.dim[1], v->type.dim[2] * v->type.dim[3]};

        v = oct_emit(b, &oct_op_reshape, v, oct_ints(b, dim, 3), NULL);
    }
    n = oct_emit_node(b, &oct_op_transpose, &v, 1, 1);
    oct_emit_ints(b, n, "perm", (int64_t[]){0, 2, 1}, 3);
    return oct_emitted(b, n);
}

oct_value *oct_raw_join(oct_builder *b, oct_value *const *v, int32_t n, int64_t axis)
{
    oct_node *node;

    if (b->status || n == 1) return b->status ? NULL : v[0];
    node = oct_emit_node(b, &oct_op_concat, v, n, 1);
    oct_emit_int(b, node, "axis", axis);
    return oct_emitted(b, node);
}

oct_value *oct_raw_channels(oct_builder *b, oct_value *v, int64_t from, int64_t to)
{
    oct_node *n;

    if (b->status) return NULL;
    n = oct_emit_node(b, &oct_op_slice,
                      (oct_value *[]){v, oct_ints(b, &from, 1), oct_ints(b, &to, 1),
                                      oct_ints(b, (int64_t[]){2}, 1)},
                      4, 1);
    return oct_emitted(b, n);
}

/* --- feature maps --- */

oct_status oct_raw_picture(const oct_graph *g, const oct_value *labels, int64_t *height,
                           int64_t *width)
{
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_value *v = g->inputs[i];
        const oct_type *t = &v->type;
        bool is_nhwc;

        if (v == labels || v->data || t->rank != 4 || !oct_type_is_static(t)) continue;
        is_nhwc = t->dim[3] <= 3 && t->dim[1] > 3;
        *height = t->dim[is_nhwc ? 1 : 2];
        *width = t->dim[is_nhwc ? 2 : 3];
        return OCT_OK;
    }
    return oct_fail(g->ctx, OCT_ERR_SHAPE,
                    "no input of the network takes pictures of a known size: set the shapes of its "
                    "inputs first");
}

int64_t oct_raw_levels_add(oct_raw_levels *l, int64_t stride, int64_t height, int64_t width)
{
    const int64_t high = oct_ceil_div(height, stride), wide = oct_ceil_div(width, stride);

    l->stride[l->n] = stride;
    l->size[2 * l->n] = high;
    l->size[2 * l->n + 1] = wide;
    l->n++;
    return high * wide;
}

bool oct_raw_levels_of(int64_t n, int64_t height, int64_t width, oct_raw_levels *out)
{
    int64_t cells = 0, stride = FIRST_STRIDE;

    out->n = 0;
    for (; out->n < OCT_RAW_MAX_LEVELS && cells < n && stride <= OCT_MAX(height, width);
         stride *= 2)
        cells += oct_raw_levels_add(out, stride, height, width);
    return cells == n;
}

void oct_raw_emit_levels(oct_builder *b, oct_node *n, const oct_raw_levels *l)
{
    oct_emit_ints(b, n, "strides", l->stride, l->n);
    oct_emit_ints(b, n, "sizes", l->size, 2 * (int64_t)l->n);
}
