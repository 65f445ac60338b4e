/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: adds the columns that sliding windows would have read back into images. */
#include <string.h>

#include "op/conv_geometry.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { DILATIONS, PADS, STRIDES };
enum { X, IMAGE_SHAPE, BLOCK_SHAPE };

/* Reads attributes `name` of n numbers, each at least lo; `fill` if it is not given. */
static oct_status read_ints(const oct_node *n, int attr, int count, int64_t lo, int64_t fill,
                            int64_t *out)
{
    const oct_attr *a = &n->attr[attr];

    for (int i = 0; i < count; i++)
        out[i] = fill;
    if (!a->kind) return OCT_OK;
    if (a->n != count)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%s has %lld numbers, %d are needed",
                             n->op->attrs[attr].name, (long long)a->n, count);
    for (int i = 0; i < count; i++) {
        if (a->is[i] < lo || a->is[i] > INT32_MAX)
            return oct_node_fail(n, OCT_ERR_SHAPE, "%s[%d] is %lld", n->op->attrs[attr].name, i,
                                 (long long)a->is[i]);
        out[i] = a->is[i];
    }
    return OCT_OK;
}

/*
 * The windows over the image: in[] is the image, out[] the number of windows. *known is false
 * while the shapes are data that is not there yet.
 */
static oct_status read_windows(const oct_infer *q, oct_conv_geometry *g, bool *known)
{
    const oct_node *n = q->node;
    int64_t pads[2 * OCT_MAX_SPATIAL];
    int n_block;

    *g = (oct_conv_geometry){.group = 1};
    *known = false;
    OCT_TRY(oct_infer_ints(q, IMAGE_SHAPE, g->in, OCT_MAX_SPATIAL, &g->n));
    OCT_TRY(oct_infer_ints(q, BLOCK_SHAPE, g->kernel, OCT_MAX_SPATIAL, &n_block));
    if (g->n < 0 || n_block < 0) return OCT_OK;
    if (g->n != n_block || g->n == 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "image has %d dims, block %d", g->n, n_block);
    OCT_TRY(read_ints(n, DILATIONS, g->n, 1, 1, g->dilation));
    OCT_TRY(read_ints(n, STRIDES, g->n, 1, 1, g->stride));
    OCT_TRY(read_ints(n, PADS, 2 * g->n, 0, 0, pads));
    for (int d = 0; d < g->n; d++) {
        int64_t room;

        g->pad_begin[d] = pads[d];
        g->pad_end[d] = pads[g->n + d];
        if (g->in[d] < 1 || g->in[d] > INT32_MAX || g->kernel[d] < 1 || g->kernel[d] > INT32_MAX)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d: image %lld, block %lld", d,
                                  (long long)g->in[d], (long long)g->kernel[d]);
        room =
            g->in[d] + g->pad_begin[d] + g->pad_end[d] - ((g->kernel[d] - 1) * g->dilation[d] + 1);
        if (room < 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "block is larger than the image");
        g->out[d] = room / g->stride[d] + 1;
    }
    *known = true;
    return OCT_OK;
}

/* x must be [N x C * block x windows]; *channels is C. */
static oct_status check_columns(const oct_infer *q, const oct_conv_geometry *g, int64_t *channels)
{
    const oct_type *x = q->in[X];
    int64_t block = 1, windows = 1;

    for (int d = 0; d < g->n; d++)
        if (!oct_mul_i64(block, g->kernel[d], &block) || !oct_mul_i64(windows, g->out[d], &windows))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "block or image is too large");
    if ((x->dim[1] >= 0 && x->dim[1] % block != 0) || (x->dim[2] >= 0 && x->dim[2] != windows))
        return oct_infer_fail(q, OCT_ERR_SHAPE,
                              "input must have a multiple of %lld rows and %lld columns",
                              (long long)block, (long long)windows);
    *channels = x->dim[1] < 0 ? -1 : x->dim[1] / block;
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *t;
    oct_conv_geometry g;
    bool known;

    OCT_TRY(oct_infer_need(q, X, &x));
    OCT_TRY(oct_infer_need(q, IMAGE_SHAPE, &t));
    OCT_TRY(oct_infer_need(q, BLOCK_SHAPE, &t));
    OCT_TRY(oct_infer_check(q, X, OCT_SET_NUMERIC | OCT_SET_BOOL));
    if (x->rank >= 0 && x->rank != 3)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has %d dims, 3 are needed", x->rank);
    OCT_TRY(read_windows(q, &g, &known));
    q->out[0] = oct_type_unknown(x->dtype);
    if (!known) return OCT_OK;
    g.batch = g.c_out = -1;
    if (x->rank == 3) {
        g.batch = x->dim[0];
        OCT_TRY(check_columns(q, &g, &g.c_out));
    }
    for (int d = 0; d < g.n; d++)
        g.out[d] = g.in[d];
    q->out[0] = oct_conv_geometry_type(&g, x->dtype);
    return OCT_OK;
}

/* One channel: columns [block x windows] into an image. */
#define DEFINE_ADD(T, name)                                                                        \
    static void add_##name(const oct_conv_geometry *g, const T *x, T *y)                           \
    {                                                                                              \
        const int64_t zero[OCT_MAX_SPATIAL] = {0};                                                 \
        int64_t k[OCT_MAX_SPATIAL] = {0}, o[OCT_MAX_SPATIAL] = {0};                                \
                                                                                                   \
        do {                                                                                       \
            do {                                                                                   \
                const int64_t at = image_at(g, k, o);                                              \
                                                                                                   \
                if (at >= 0) y[at] += *x;                                                          \
                x++;                                                                               \
            } while (oct_next_index(g->n, o, zero, g->out));                                       \
        } while (oct_next_index(g->n, k, zero, g->kernel));                                        \
    }

/* The element of the image that window o reads through tap k; -1: padding. */
static int64_t image_at(const oct_conv_geometry *g, const int64_t *k, const int64_t *o)
{
    int64_t at = 0;

    for (int d = 0; d < g->n; d++) {
        const int64_t i = o[d] * g->stride[d] - g->pad_begin[d] + k[d] * g->dilation[d];

        if (i < 0 || i >= g->in[d]) return -1;
        at = at * g->in[d] + i;
    }
    return at;
}

DEFINE_ADD(float, f32)
DEFINE_ADD(double, f64)
DEFINE_ADD(uint64_t, u64)

static oct_status ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->in[X]->type.dtype);
    const int64_t n = oct_tensor_len(a->in[X]);
    int64_t image, column;
    oct_conv_geometry g;
    const void *x;
    oct_infer q;
    bool known;
    void *y;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_windows(&q, &g, &known));
    OCT_TRY(check_columns(&q, &g, &g.c_in));
    OCT_TRY(oct_work_in(a, X, w, &x));
    OCT_TRY(oct_work_out(a, 0, w, &y));
    memset(y, 0, (size_t)oct_tensor_len(a->out[0]) * oct_dtype_size(oct_work_dtype(w)));
    image = oct_conv_geometry_in_size(&g);
    column = oct_conv_geometry_kernel_size(&g) * oct_conv_geometry_out_size(&g);
    for (int64_t c = 0; c * column < n; c++) {
        if (w == OCT_WORK_F32) add_f32(&g, (const float *)x + c * column, (float *)y + c * image);
        if (w == OCT_WORK_F64) add_f64(&g, (const double *)x + c * column, (double *)y + c * image);
        if (w == OCT_WORK_I64)
            add_u64(&g, (const uint64_t *)x + c * column, (uint64_t *)y + c * image);
    }
    oct_work_done(a, 0, w, y);
    return OCT_OK;
}

/* Of each element of a column, which one of the image it goes to; padding: the one after the last.
 */
static oct_value *emit_places(oct_builder *b, const oct_conv_geometry *g)
{
    const int64_t zero[OCT_MAX_SPATIAL] = {0}, last = oct_conv_geometry_in_size(g);
    const int64_t n = oct_conv_geometry_kernel_size(g) * oct_conv_geometry_out_size(g);
    int64_t k[OCT_MAX_SPATIAL] = {0}, o[OCT_MAX_SPATIAL] = {0}, i = 0;
    int64_t *places = oct_arena_array(b->g->arena, (size_t)n, sizeof(*places));

    if (!places) b->status = OCT_ERR_MEMORY;
    if (b->status) return NULL;
    do
        do {
            const int64_t at = image_at(g, k, o);

            places[i++] = at < 0 ? last : at;
        } while (oct_next_index(g->n, o, zero, g->out));
    while (oct_next_index(g->n, k, zero, g->kernel));
    return oct_ints(b, places, n);
}

/* Columns are read from the gradient of the image, and zeros from after its end. */
static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[X]->type, *types[] = {x, &n->in[1]->type, &n->in[2]->type};
    const oct_tensor *data[] = {NULL, oct_node_const(n, IMAGE_SHAPE),
                                oct_node_const(n, BLOCK_SHAPE)};
    const oct_infer q = {.ctx = n->graph->ctx, .node = n, .in = types, .data = data};
    oct_type planes, zeros;
    oct_conv_geometry g;
    oct_value *dy;
    oct_node *node;
    bool known;

    OCT_TRY(read_windows(&q, &g, &known));
    if (!known)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its shapes are constant");
    OCT_TRY(check_columns(&q, &g, &g.c_in));
    planes =
        oct_type_make(x->dtype, 2, (int64_t[]){x->dim[0] * g.c_in, oct_conv_geometry_in_size(&g)});
    zeros = planes;
    zeros.dim[1] = 1;
    dy = oct_grad_reshape(a->b, a->dy[0], &planes);
    node = oct_emit_node(a->b, &oct_op_concat,
                         (oct_value *[]){dy, oct_grad_filled(a->b, &zeros, 0)}, 2, 1);
    oct_emit_int(a->b, node, "axis", 1);
    dy = oct_emitted(a->b, node);
    node = oct_emit_node(a->b, &oct_op_gather, (oct_value *[]){dy, emit_places(a->b, &g)}, 2, 1);
    oct_emit_int(a->b, node, "axis", 1);
    dy = oct_emitted(a->b, node);
    a->dx[X] = a->b->status ? NULL : oct_grad_reshape(a->b, dy, x);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    [DILATIONS] = {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    [PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_col2im = {
    .name = "Col2Im",
    .since = 18,
    .min_in = 3,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};
