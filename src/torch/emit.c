/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that translating functions emit, named after the module they come from. */
#include <string.h>

#include "torch/aten.h"

/* "/layer1/0/conv1/Conv", as exporters to ONNX name nodes. */
static const char *node_name(oct_aten *a, const oct_op *op)
{
    char *name =
        oct_arena_printf(a->t->arena, "%s%s/%s", *a->n->path ? "/" : "", a->n->path, op->name);
    const size_t len = strlen(a->n->path);

    for (size_t i = 0; name && i <= len && name[i]; i++)
        if (name[i] == '.') name[i] = '/';
    return name ? oct_torch_unique(a->t, &a->t->node_names, name) : NULL;
}

oct_node *oct_aten_node(oct_aten *a, const oct_op *op, oct_value *const *in, int32_t n_in,
                        int32_t n_out)
{
    const char *name;
    oct_node *n;

    if (a->b->status) return NULL;
    if (!(name = node_name(a, op)) ||
        !(n = oct_node_new(a->t->g, NULL, name, op, in, n_in, NULL, n_out))) {
        a->b->status = OCT_ERR_MEMORY;
        return NULL;
    }
    if (*a->n->classes)
        n->doc = oct_arena_printf(a->t->g->arena, OCT_TORCH_DOC "%s", a->n->classes);
    return n;
}

oct_value *oct_aten_done(oct_aten *a, oct_node *n)
{
    return oct_emitted(a->b, n);
}

oct_value *oct_aten_emit(oct_aten *a, const oct_op *op, oct_value *x, oct_value *y, oct_value *z)
{
    oct_value *const in[] = {x, y, z};

    return oct_aten_done(a, oct_aten_node(a, op, in, z ? 3 : y ? 2 : x ? 1 : 0, 1));
}

int32_t oct_aten_rank(oct_aten *a, const oct_value *v)
{
    if (a->b->status || !v) return 0;
    if (v->type.rank >= 0) return v->type.rank;
    oct_aten_fail(a, OCT_ERR_SHAPE, "the number of dimensions of '%.200s' is not known", v->name);
    return 0;
}

int64_t oct_aten_dim(const oct_value *v, int32_t axis)
{
    return v && axis >= 0 && axis < v->type.rank ? v->type.dim[axis] : -1;
}

/* --- constants --- */

oct_value *oct_aten_ints_of(oct_aten *a, int n, ...)
{
    int64_t v[OCT_MAX_RANK];
    va_list args;

    va_start(args, n);
    for (int i = 0; i < n; i++)
        v[i] = va_arg(args, int64_t);
    va_end(args);
    return oct_ints(a->b, v, n);
}

oct_value *oct_aten_scalar(oct_aten *a, oct_dtype dtype, double v)
{
    if (dtype == OCT_DTYPE_NONE) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "its type is not known");
    return oct_scalar_of(a->b, dtype, v);
}

oct_value *oct_aten_cast(oct_aten *a, oct_value *v, oct_dtype to)
{
    oct_node *n;

    if (a->b->status || !v || v->type.dtype == to || to == OCT_DTYPE_NONE) return v;
    n = oct_aten_node(a, &oct_op_cast, &v, 1, 1);
    oct_emit_int(a->b, n, "to", (int64_t)to);
    return oct_aten_done(a, n);
}

oct_value *oct_aten_filled(oct_aten *a, oct_value *shape, oct_dtype dtype, double v)
{
    return ATEN2(expand, oct_aten_scalar(a, dtype, v), shape);
}

/* --- shapes --- */

oct_value *oct_aten_reshape(oct_aten *a, oct_value *v, const int64_t *dims, int n)
{
    return ATEN2(reshape, v, oct_ints(a->b, dims, n));
}

oct_value *oct_aten_transpose(oct_aten *a, oct_value *v, const int64_t *perm, int n)
{
    oct_node *node = oct_aten_node(a, &oct_op_transpose, &v, 1, 1);

    oct_emit_ints(a->b, node, "perm", perm, n);
    return oct_aten_done(a, node);
}

oct_value *oct_aten_swap(oct_aten *a, oct_value *v, int32_t x, int32_t y)
{
    const int32_t rank = oct_aten_rank(a, v);
    int64_t perm[OCT_MAX_RANK];

    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == x ? y : i == y ? x : i;
    return oct_aten_transpose(a, v, perm, rank);
}

oct_value *oct_aten_slice(oct_aten *a, oct_value *v, int64_t axis, int64_t begin, int64_t end)
{
    oct_value *const in[] = {v, oct_ints(a->b, &begin, 1), oct_ints(a->b, &end, 1),
                             oct_ints(a->b, &axis, 1)};

    return oct_aten_done(a, oct_aten_node(a, &oct_op_slice, in, 4, 1));
}

oct_value *oct_aten_squeeze(oct_aten *a, oct_value *v, int64_t axis)
{
    return ATEN2(squeeze, v, oct_ints(a->b, &axis, 1));
}

oct_value *oct_aten_unsqueeze(oct_aten *a, oct_value *v, int64_t axis)
{
    return ATEN2(unsqueeze, v, oct_ints(a->b, &axis, 1));
}

oct_value *oct_aten_concat(oct_aten *a, oct_value *const *v, int32_t n, int64_t axis)
{
    oct_node *node = oct_aten_node(a, &oct_op_concat, v, n, 1);

    oct_emit_int(a->b, node, "axis", axis);
    return oct_aten_done(a, node);
}

oct_value *oct_aten_softmax(oct_aten *a, const oct_op *op, oct_value *v, int64_t axis)
{
    oct_node *node = oct_aten_node(a, op, &v, 1, 1);

    oct_emit_int(a->b, node, "axis", axis);
    return oct_aten_done(a, node);
}

oct_value *oct_aten_reduce(oct_aten *a, const oct_op *op, oct_value *v, const int64_t *axes, int n,
                           bool keep)
{
    oct_value *const in[] = {v, n ? oct_ints(a->b, axes, n) : NULL};
    oct_node *node = oct_aten_node(a, op, in, n ? 2 : 1, 1);

    oct_emit_int(a->b, node, "keepdims", keep);
    return oct_aten_done(a, node);
}

/* Known shapes become constants at once, so that little of it is left in the graph. */
oct_value *oct_aten_shape_of(oct_aten *a, oct_value *v)
{
    if (a->b->status || !v) return NULL;
    if (oct_type_is_static(&v->type)) return oct_ints(a->b, v->type.dim, v->type.rank);
    return ATEN1(shape, v);
}

oct_value *oct_aten_size_of(oct_aten *a, oct_value *v, int32_t axis)
{
    const int64_t dim = oct_aten_dim(v, axis);

    if (dim >= 0) return oct_ints(a->b, &dim, 1);
    return oct_aten_slice(a, oct_aten_shape_of(a, v), 0, axis, axis + 1);
}
