/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of gathering operators scatter, those of scattering ones gather. */
#include "op/grad/gather_grad.h"

#include <string.h>

/* A ScatterND that adds; x is zeros of this type. */
static oct_value *add_nd(oct_builder *b, const oct_type *x, oct_value *indices, oct_value *updates)
{
    oct_value *const in[] = {oct_grad_filled(b, x, 0), indices, updates};
    oct_node *n = oct_emit_node(b, &oct_op_scatter_nd, in, 3, 1);

    oct_emit_str(b, n, "reduction", "add");
    return oct_emitted(b, n);
}

oct_value *oct_grad_gather_elements(oct_builder *b, oct_value *x, oct_value *indices, int64_t axis)
{
    oct_node *n = oct_emit_node(b, &oct_op_gather_elements, (oct_value *[]){x, indices}, 2, 1);

    oct_emit_int(b, n, "axis", axis);
    return oct_emitted(b, n);
}

oct_value *oct_grad_scatter_elements(oct_builder *b, oct_value *x, oct_value *indices,
                                     oct_value *updates, int64_t axis, const char *reduction)
{
    oct_node *n =
        oct_emit_node(b, &oct_op_scatter_elements, (oct_value *[]){x, indices, updates}, 3, 1);

    oct_emit_int(b, n, "axis", axis);
    oct_emit_str(b, n, "reduction", reduction);
    return oct_emitted(b, n);
}

oct_value *oct_grad_of_gather(oct_builder *b, oct_value *dy, oct_value *indices, int32_t axis,
                              const oct_type *x)
{
    const int32_t n = indices->type.rank;
    oct_type tuples = indices->type, first = oct_type_make(x->dtype, 0, NULL);
    int64_t perm[OCT_MAX_RANK], back[OCT_MAX_RANK];
    int32_t k = 0;

    if (b->status) return NULL;
    /* The gathered axis comes first, as ScatterND has it. */
    first.dim[first.rank++] = x->dim[axis];
    back[axis] = 0;
    for (int32_t d = 0; d < n; d++)
        perm[k++] = axis + d;
    for (int32_t d = 0; d < x->rank; d++) {
        if (d == axis) continue;
        back[d] = first.rank;
        first.dim[first.rank++] = x->dim[d];
        perm[k++] = d < axis ? d : d - 1 + n;
    }
    if (n == OCT_MAX_RANK) { /* no room for the axis of tuples */
        b->status = oct_fail(b->g->ctx, OCT_ERR_UNSUPPORTED,
                             "the gradient of a Gather with indices of rank %d", (int)n);
        return NULL;
    }
    tuples.dim[tuples.rank++] = 1;
    if (axis > 0) dy = oct_grad_transpose(b, dy, perm);
    dy = add_nd(b, &first, oct_grad_reshape(b, indices, &tuples), dy);
    return axis > 0 ? oct_grad_transpose(b, dy, back) : dy;
}

static int64_t axis_of(const oct_node *n)
{
    return oct_node_attr(n, "axis")->i;
}

oct_status oct_grad_gather(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, axis_of(a->node), x->rank, &axis));
    a->dx[0] = oct_grad_of_gather(a->b, a->dy[0], a->node->in[1], axis, x);
    return OCT_OK;
}

oct_status oct_grad_gather_elements_of(const oct_grad_args *a)
{
    a->dx[0] = oct_grad_scatter_elements(a->b, oct_grad_filled(a->b, &a->node->in[0]->type, 0),
                                         a->node->in[1], a->dy[0], axis_of(a->node), "add");
    return OCT_OK;
}

/* Indices with the batch's own coordinates before them: [.. x (n + tuple)]. */
static oct_value *with_batch(oct_builder *b, oct_value *indices, int64_t n)
{
    oct_type type = indices->type;
    oct_tensor *t = NULL;
    oct_node *concat;
    oct_value *own;

    type.dtype = OCT_DTYPE_I64;
    type.dim[type.rank - 1] = n;
    if (!b->status) b->status = oct_tensor_make(b->g->ctx, &type, &t);
    if (b->status) return NULL;
    for (int64_t i = 0, count = oct_type_span(&type, 0, type.rank - 1); i < count; i++)
        for (int64_t d = 0; d < n; d++)
            ((int64_t *)t->data)[i * n + d] =
                i / oct_type_span(&type, (int32_t)d + 1, type.rank - 1) % type.dim[d];
    own = oct_value_const(b->g, NULL, t);
    if (!own) b->status = OCT_ERR_MEMORY;
    concat = oct_emit_node(b, &oct_op_concat,
                           (oct_value *[]){own, oct_grad_cast(b, indices, OCT_DTYPE_I64)}, 2, 1);
    oct_emit_int(b, concat, "axis", type.rank - 1);
    return oct_emitted(b, concat);
}

oct_status oct_grad_gather_nd(const oct_grad_args *a)
{
    const int64_t n = oct_node_attr(a->node, "batch_dims")->i;
    oct_value *indices = a->node->in[1];

    if (n > 0) indices = with_batch(a->b, indices, n);
    a->dx[0] = add_nd(a->b, &a->node->in[0]->type, indices, a->dy[0]);
    return OCT_OK;
}

/* Does the node add updates (else it sets them)? Other reductions are refused. */
static oct_status read_reduction(const oct_node *n, bool *adds)
{
    const oct_attr *r = oct_node_attr(n, "reduction");

    *adds = r && strcmp(r->s, "add") == 0;
    if (*adds || !r || strcmp(r->s, "none") == 0) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "reduction '%.20s' has no gradient", r->s);
}

oct_status oct_grad_scatter(const oct_grad_args *a)
{
    oct_value *indices = a->node->in[1], *dy = a->dy[0];
    const int64_t axis = axis_of(a->node);
    bool adds;

    OCT_TRY(read_reduction(a->node, &adds));
    if (a->wanted[0])
        a->dx[0] = adds ? dy
                        : oct_grad_scatter_elements(a->b, dy, indices,
                                                    oct_grad_filled(a->b, &a->node->in[2]->type, 0),
                                                    axis, "none");
    if (a->wanted[2]) a->dx[2] = oct_grad_gather_elements(a->b, dy, indices, axis);
    return OCT_OK;
}

oct_status oct_grad_scatter_nd(const oct_grad_args *a)
{
    oct_value *indices = a->node->in[1], *dy = a->dy[0];
    bool adds;

    OCT_TRY(read_reduction(a->node, &adds));
    if (a->wanted[0])
        a->dx[0] = adds ? dy
                        : OCT_EMIT3(scatter_nd, dy, indices,
                                    oct_grad_filled(a->b, &a->node->in[2]->type, 0));
    if (a->wanted[2]) a->dx[2] = OCT_EMIT2(gather_nd, dy, indices);
    return OCT_OK;
}
