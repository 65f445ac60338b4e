/* SPDX-License-Identifier: Apache-2.0 */
/* Labels on channels, and which nodes carry them from operand to result. */
#include "op/channels.h"

#include <string.h>

oct_status oct_labels_new(oct_ctx *ctx, const oct_type *type, int32_t first, bool per_channel,
                          oct_tensor **out)
{
    oct_type t = {.dtype = OCT_DTYPE_I32, .rank = OCT_MAX(type->rank, 0)};
    int64_t n = 1;
    int32_t *label;

    for (int32_t d = 0; d < t.rank; d++)
        t.dim[d] = 1;
    if (per_channel) {
        if (type->rank < 2 || type->dim[1] < 1 || type->dim[1] > OCT_MAX_LABELS)
            return oct_fail(ctx, OCT_ERR_SHAPE, "a value without channels has no labels for them");
        n = t.dim[1] = type->dim[1];
    }
    if (first > INT32_MAX - (int32_t)n) return oct_fail(ctx, OCT_ERR_SHAPE, "too many channels");
    OCT_TRY(oct_tensor_make(ctx, &t, out));
    label = (*out)->data;
    for (int32_t c = 0; c < n; c++)
        label[c] = first + c;
    return OCT_OK;
}

bool oct_labels_channels(const oct_tensor *labels, int64_t channels, int32_t *out)
{
    const oct_type *t = &labels->type;
    const int32_t *label = labels->data;
    const int64_t n = oct_tensor_len(labels);

    if (n < 1 || (n > 1 && (t->rank < 2 || t->dim[1] != n || n != channels))) return false;
    for (int64_t c = 0; c < channels; c++)
        out[c] = label[n > 1 ? c : 0];
    return true;
}

/* Are all slices along this axis the same? */
static bool is_even(const oct_tensor *x, int32_t axis)
{
    const int64_t n = x->type.dim[axis], inner = oct_type_span(&x->type, axis + 1, x->type.rank);
    const int64_t outer = oct_type_span(&x->type, 0, axis);
    const int32_t *label = x->data;

    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 1; i < n; i++)
            if (memcmp(label + (o * n + i) * inner, label + o * n * inner,
                       (size_t)inner * sizeof(*label)) != 0)
                return false;
    return true;
}

void oct_labels_narrow(oct_tensor *x)
{
    int32_t *label = x->data;

    for (int32_t d = 0; d < x->type.rank; d++) {
        const int64_t n = x->type.dim[d], inner = oct_type_span(&x->type, d + 1, x->type.rank);
        const int64_t outer = oct_type_span(&x->type, 0, d);

        if (n < 2 || !is_even(x, d)) continue;
        for (int64_t o = 1; o < outer; o++)
            memmove(label + o * inner, label + o * n * inner, (size_t)inner * sizeof(*label));
        x->type.dim[d] = 1;
        x->size = (size_t)(outer * inner) * sizeof(*label);
    }
}

/* The row's fact, if this node has the operands it speaks of. */
static const oct_data_move *find(const oct_node *n)
{
    return n->n_in < 1 || n->n_out < 1 ? NULL : n->op->moves;
}

int32_t oct_node_n_data(const oct_node *n)
{
    const oct_data_move *m = find(n);

    return !m ? 0 : m->is_variadic ? n->n_in : 1;
}

bool oct_node_moves_data(const oct_node *n)
{
    const oct_data_move *m = find(n);

    if (!m || (m->is_move && !m->is_move(n))) return false;
    for (int32_t i = 0; i < (m->is_variadic ? n->n_in : 1); i++)
        if (!n->in[i] || n->in[i]->data) return false; /* a table of constants: a source itself */
    return true;
}

oct_status oct_labels_through(const oct_node *n, const oct_tensor *const *in, int32_t k,
                              oct_tensor **out)
{
    const oct_data_move *m = find(n);

    *out = NULL;
    if (!m || k < 0 || k >= n->n_out || !n->out[k] || !oct_node_moves_data(n)) return OCT_OK;
    for (int32_t i = 0; i < oct_node_n_data(n); i++)
        if (!in[i] || in[i]->type.rank != n->in[i]->type.rank) return OCT_OK;
    OCT_TRY(m->labels(n, in, k, out));
    if (*out) oct_labels_narrow(*out);
    return OCT_OK;
}
