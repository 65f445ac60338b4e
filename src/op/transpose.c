/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose, DepthToSpace and SpaceToDepth: axes in another order. */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

#include <string.h>

enum { PERM };
enum { BLOCKSIZE, MODE };

/* The order of axes; reversed when not given. */
static oct_status read_perm(const oct_node *n, int32_t rank, int32_t perm[OCT_MAX_RANK])
{
    bool seen[OCT_MAX_RANK] = {false};
    const oct_attr *p = &n->attr[PERM];

    for (int32_t d = 0; d < rank; d++)
        perm[d] = rank - 1 - d;
    if (!oct_has(n, PERM)) return OCT_OK;
    if (p->n != rank)
        return oct_node_fail(n, OCT_ERR_SHAPE, "perm has %lld entries for rank %d", (long long)p->n,
                             (int)rank);
    for (int32_t d = 0; d < rank; d++) {
        OCT_TRY(oct_axis(n, p->is[d], rank, &perm[d]));
        if (seen[perm[d]])
            return oct_node_fail(n, OCT_ERR_SHAPE, "perm has axis %d twice", (int)perm[d]);
        seen[perm[d]] = true;
    }
    return OCT_OK;
}

static oct_status transpose_shape(const oct_infer *q)
{
    int32_t perm[OCT_MAX_RANK];
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    q->out[0] = *x;
    if (x->rank < 0 && oct_has(q->node, PERM) && q->node->attr[PERM].n <= OCT_MAX_RANK) {
        q->out[0].rank = (int32_t)q->node->attr[PERM].n;
        for (int32_t d = 0; d < q->out[0].rank; d++)
            q->out[0].dim[d] = -1;
    }
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(read_perm(q->node, x->rank, perm));
    for (int32_t d = 0; d < x->rank; d++)
        q->out[0].dim[d] = x->dim[perm[d]];
    return OCT_OK;
}

static oct_status transpose_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    int64_t xs[OCT_MAX_RANK], ys[OCT_MAX_RANK];
    int32_t perm[OCT_MAX_RANK];
    oct_move m;

    OCT_TRY(read_perm(a->node, x->rank, perm));
    oct_strides(x, xs);
    oct_strides(&a->out[0]->type, ys);
    oct_move_init(&m);
    for (int32_t d = 0; d < x->rank; d++)
        oct_move_add(&m, x->dim[perm[d]], xs[perm[d]], ys[d]);
    oct_move_run(&m, x->dtype, a->in[0]->data, 0, a->out[0]->data, 0, a->n_threads);
    return OCT_OK;
}

/* The side of a block, checked: its square must not overflow. */
static oct_status block_side(const oct_node *n, int64_t *out)
{
    const int64_t b = oct_int(n, BLOCKSIZE);

    if (b < 1 || b > INT32_MAX)
        return oct_node_fail(n, OCT_ERR_SHAPE, "blocksize is %lld", (long long)b);
    *out = b;
    return OCT_OK;
}

static oct_status block_shape(const oct_infer *q, bool to_space)
{
    const oct_type *x;
    int64_t b = 1;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(block_side(q->node, &b));
    oct_type y = oct_type_make(x->dtype, 4, (const int64_t[]){-1, -1, -1, -1});
    if (x->rank >= 0 && x->rank != 4)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, expected 4", (int)x->rank);
    if (x->rank == 4) {
        const int64_t mul[4] = {1, to_space ? 1 : b * b, to_space ? b : 1, to_space ? b : 1};
        const int64_t div[4] = {1, to_space ? b * b : 1, to_space ? 1 : b, to_space ? 1 : b};

        for (int d = 0; d < 4; d++) {
            if (x->dim[d] < 0) continue;
            if (x->dim[d] % div[d] || !oct_mul_i64(x->dim[d] / div[d], mul[d], &y.dim[d]))
                return oct_infer_fail(q, OCT_ERR_SHAPE,
                                      "dim %d is %lld, which blocks of %lld do "
                                      "not divide",
                                      d, (long long)x->dim[d], (long long)b);
        }
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status depth_to_space_shape(const oct_infer *q)
{
    const char *mode = q->node->attr[MODE].s;

    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "mode '%.20s'; it may be DCR or CRD", mode);
    return block_shape(q, true);
}

static oct_status space_to_depth_shape(const oct_infer *q)
{
    return block_shape(q, false);
}

/* Both are a transposition of six axes; `s` is the spatial tensor, `c` the deep one. */
static void move_blocks(const oct_args *a, const oct_type *s, bool to_space, bool crd, int64_t b)
{
    const int64_t n = s->dim[0], ch = s->dim[1], h = s->dim[2] / b, w = s->dim[3] / b;
    const int64_t plane = h * w; /* of the deep tensor */
    const int64_t deep_c = crd ? b * b * plane : plane, deep_y = (crd ? b : b * ch) * plane;
    const int64_t deep_x = (crd ? 1 : ch) * plane;
    const int64_t count[6] = {n, ch, h, b, w, b};
    const int64_t space[6] = {ch * plane * b * b, plane * b * b, w * b * b, w * b, b, 1};
    const int64_t deep[6] = {ch * plane * b * b, deep_c, w, deep_y, 1, deep_x};
    const int in_order[6] = {0, 1, 2, 3, 4, 5}, deep_order[6] = {0, 3, 5, 1, 2, 4};
    const int *order = to_space ? in_order : deep_order;
    oct_move m;

    oct_move_init(&m);
    for (int i = 0; i < 6; i++) {
        const int d = order[i];
        oct_move_add(&m, count[d], to_space ? deep[d] : space[d], to_space ? space[d] : deep[d]);
    }
    oct_move_run(&m, s->dtype, a->in[0]->data, 0, a->out[0]->data, 0, a->n_threads);
}

static oct_status depth_to_space_ref(const oct_args *a)
{
    move_blocks(a, &a->out[0]->type, true, strcmp(a->node->attr[MODE].s, "CRD") == 0,
                oct_int(a->node, BLOCKSIZE));
    return OCT_OK;
}

static oct_status space_to_depth_ref(const oct_args *a)
{
    move_blocks(a, &a->in[0]->type, false, false, oct_int(a->node, BLOCKSIZE));
    return OCT_OK;
}

/* --- gradients --- */

static oct_status transpose_grad(const oct_grad_args *a)
{
    int64_t back[OCT_MAX_RANK];
    int32_t perm[OCT_MAX_RANK];
    const int32_t rank = a->dy[0]->type.rank;

    OCT_TRY(read_perm(a->node, rank, perm));
    for (int32_t d = 0; d < rank; d++)
        back[perm[d]] = d;
    a->dx[0] = oct_grad_transpose(a->b, a->dy[0], back);
    return OCT_OK;
}

/* SpaceToDepth is the inverse of DCR; that of CRD is written out. */
static oct_status depth_to_space_grad(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    const int64_t b = oct_int(a->node, BLOCKSIZE);
    const oct_type blocks = oct_type_make(
        x->dtype, 6, (int64_t[]){x->dim[0], x->dim[1] / (b * b), x->dim[2], b, x->dim[3], b});
    oct_value *v;
    oct_node *n;

    if (strcmp(a->node->attr[MODE].s, "CRD") == 0) {
        v = oct_grad_reshape(a->b, a->dy[0], &blocks);
        v = oct_grad_transpose(a->b, v, (int64_t[]){0, 1, 3, 5, 2, 4});
        a->dx[0] = a->b->status ? NULL : oct_grad_reshape(a->b, v, x);
        return OCT_OK;
    }
    n = oct_emit_node(a->b, &oct_op_space_to_depth, a->dy, 1, 1);
    oct_emit_int(a->b, n, "blocksize", b);
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static oct_status space_to_depth_grad(const oct_grad_args *a)
{
    oct_node *n = oct_emit_node(a->b, &oct_op_depth_to_space, a->dy, 1, 1);

    oct_emit_int(a->b, n, "blocksize", oct_int(a->node, BLOCKSIZE));
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static const oct_attr_def transpose_attrs[] = {
    [PERM] = {"perm", OCT_ATTR_INTS, .def = {.is = NULL}, .no_default = true},
    {0},
};
static const oct_attr_def depth_to_space_attrs[] = {
    [BLOCKSIZE] = {"blocksize", OCT_ATTR_INT, .def = {.i = 0}, .required = true},
    [MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "DCR"}, .n_def = 3},
    {0},
};
static const oct_attr_def space_to_depth_attrs[] = {
    [BLOCKSIZE] = {"blocksize", OCT_ATTR_INT, .def = {.i = 0}, .required = true},
    {0},
};

const oct_op oct_op_transpose = {
    .name = "Transpose",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = transpose_attrs,
    .shape = transpose_shape,
    .ref = transpose_ref,
    .grad = transpose_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_transpose,
};

const oct_op oct_op_depth_to_space = {
    .name = "DepthToSpace",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = depth_to_space_attrs,
    .shape = depth_to_space_shape,
    .ref = depth_to_space_ref,
    .grad = depth_to_space_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_blocks,
};

const oct_op oct_op_space_to_depth = {
    .name = "SpaceToDepth",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = space_to_depth_attrs,
    .shape = space_to_depth_shape,
    .ref = space_to_depth_ref,
    .grad = space_to_depth_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_blocks,
};
