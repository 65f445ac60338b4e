/* SPDX-License-Identifier: Apache-2.0 */
/* MaxUnpool: puts each element back where MaxPool's indices say it came from. */
#include <string.h>

#include "op/conv_geometry.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { KERNEL, PADS, STRIDES };
enum { X, INDICES, OUTPUT_SHAPE };

/* The shape the indices count in: what a MaxPool with these attributes had as its input. */
static oct_status pooled_from(const oct_node *n, const oct_type *x, oct_type *out)
{
    oct_conv_geometry g;
    oct_type like = *x;

    *out = oct_type_unknown(x->dtype);
    if (x->rank < 0) return OCT_OK;
    for (int d = 2; d < like.rank; d++)
        like.dim[d] = -1; /* only attributes are needed: sizes are not those of a MaxPool input */
    OCT_TRY(oct_conv_geometry_pool(n, &like, &g));
    *out = *x;
    for (int d = 0; d < g.n; d++) {
        int64_t *size = &out->dim[d + 2];

        if (*size < 0) continue;
        if (!oct_conv_pads_are_known(&g)) { /* an auto_pad, which this operator does not have */
            *size = -1;
            continue;
        }
        if (*size > INT32_MAX) return oct_node_fail(n, OCT_ERR_SHAPE, "input is too large");
        *size = (*size - 1) * g.stride[d] + g.kernel[d] - g.pad_begin[d] - g.pad_end[d];
        if (*size < 0) return oct_node_fail(n, OCT_ERR_SHAPE, "pads are larger than the output");
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *index;
    int64_t dims[OCT_MAX_RANK];
    oct_type y;
    int n = 0;

    OCT_TRY(oct_infer_need(q, X, &x));
    OCT_TRY(oct_infer_need(q, INDICES, &index));
    OCT_TRY(oct_infer_check(q, X, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, INDICES, OCT_SET(OCT_DTYPE_I64)));
    OCT_TRY(pooled_from(q->node, x, &y));
    for (int d = 0; d < x->rank && index->rank >= 0; d++)
        if (index->rank != x->rank ||
            (index->dim[d] >= 0 && x->dim[d] >= 0 && index->dim[d] != x->dim[d]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "indices and input differ in shape");
    if (oct_infer_in(q, OUTPUT_SHAPE)) {
        OCT_TRY(oct_infer_ints(q, OUTPUT_SHAPE, dims, OCT_MAX_RANK, &n));
        if (n >= 0 && x->rank >= 0 && n != x->rank)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "output_shape has %d dims, input %d", n,
                                  x->rank);
        for (int d = 0; d < y.rank; d++) {
            if (n >= 0 && dims[d] < (d < 2 ? OCT_MAX(x->dim[d], 0) : 0))
                return oct_infer_fail(q, OCT_ERR_SHAPE, "output_shape[%d] is %lld", d,
                                      (long long)dims[d]);
            y.dim[d] = n >= 0 ? dims[d] : -1;
        }
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[X], *y = a->out[0];
    const size_t size = oct_dtype_size(x->type.dtype);
    const int64_t *index = a->in[INDICES]->data;
    oct_type from;
    int64_t len;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(pooled_from(a->node, &x->type, &from));
    len = oct_type_len(&from);
    memset(y->data, 0, y->size);
    for (int64_t i = 0; i < oct_tensor_len(x); i++) {
        int64_t rest = index[i], at = 0, step = 1;
        bool inside = true;

        if (rest < 0 || rest >= len)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "index %lld is outside the output",
                                 (long long)rest);
        for (int d = from.rank - 1; d >= 0; d--) {
            const int64_t k = rest % from.dim[d];

            inside = inside && k < y->type.dim[d];
            at += k * step;
            step *= y->type.dim[d];
            rest /= from.dim[d];
        }
        if (inside)
            memcpy((char *)y->data + (size_t)at * size, (const char *)x->data + (size_t)i * size,
                   size);
    }
    return OCT_OK;
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *y = &a->dy[0]->type;
    const oct_type flat = oct_type_make(y->dtype, 1, (int64_t[]){oct_type_len(y)});
    oct_type from;

    OCT_TRY(pooled_from(n, &n->in[X]->type, &from));
    if (!oct_type_equal(&from, y))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if output_shape is what the window gives");
    a->dx[X] = oct_emit(a->b, &oct_op_gather, oct_grad_reshape(a->b, a->dy[0], &flat),
                        n->in[INDICES], NULL);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    [KERNEL] = {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    [PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_max_unpool = {
    .name = "MaxUnpool",
    .since = 11,
    .min_in = 2,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
