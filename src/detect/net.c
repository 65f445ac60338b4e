/* SPDX-License-Identifier: Apache-2.0 */
/* Examining a network: its picture input, the anchors its outputs come from, its tail. */
#include <stdio.h>
#include <string.h>

#include "detect/detector.h"
#include "detect/family.h"
#include "graph/op.h"

enum { OPEN_SIZE = 640 }; /* for an input whose size is open: what YOLO networks are made for */

/* --- the input --- */

static bool takes_picture(const oct_value *v)
{
    const oct_type *t = &v->type;

    if (v->data ||
        (t->dtype != OCT_DTYPE_F32 && t->dtype != OCT_DTYPE_F16 && t->dtype != OCT_DTYPE_U8))
        return false;
    return t->rank == 4 &&
           (t->dim[1] == 3 || t->dim[1] == 1 || t->dim[1] < 0 || t->dim[3] == 3 || t->dim[3] == 1);
}

/* RT-DETR and D-FINE have "orig_target_sizes": int64 [n, 2], width and height. */
static bool takes_sizes(const oct_value *v)
{
    const oct_type *t = &v->type;

    if (t->dtype != OCT_DTYPE_I64 && t->dtype != OCT_DTYPE_I32 && t->dtype != OCT_DTYPE_F32)
        return false;
    return t->rank == 2 && t->dim[1] == 2 && strstr(v->name, "size");
}

static oct_status find_input(oct_net *net, const oct_graph *g)
{
    const oct_value *other = NULL;
    char text[OCT_TYPE_TEXT_SIZE];

    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_value *v = g->inputs[i];

        if (v->data) continue;
        if (!net->input && takes_picture(v))
            net->input = v;
        else if (!net->sizes && takes_sizes(v))
            net->sizes = v;
        else
            other = v;
    }
    if (!net->input)
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                        "no input takes a picture (float32, float16 or uint8 [n,3,height,width] or "
                        "[n,height,width,3]); '%s' is %s",
                        other ? other->name : "", other ? oct_type_text(&other->type, text) : "");
    if (other)
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                        "input '%s' is wanted besides the picture '%s'; it cannot be filled here. "
                        "Tensors for all inputs can be given instead (octet quantize --data "
                        "FILE.npz); detectors that want sizes beside the picture can be exported "
                        "without their post-processing",
                        other->name, net->input->name);
    return OCT_OK;
}

static bool is_nhwc(const oct_type *t)
{
    const bool first = t->dim[1] == 3 || t->dim[1] == 1;
    const bool last = t->dim[3] == 3 || t->dim[3] == 1;

    return last && !first;
}

/* Size of an open axis: what is asked for, what the file's metadata says, or YOLO's usual size. */
static int64_t open_size(const oct_net *net, const oct_preprocess *asked, int axis)
{
    const bool is_height = axis == (net->is_nhwc ? 1 : 2);
    const int32_t says = is_height ? net->says.height : net->says.width;

    if (!asked && net->says.has_preprocess) asked = &net->says.preprocess;
    if (asked) return is_height ? asked->height : asked->width;
    return says ? says : OPEN_SIZE;
}

/* A copy with all dims of the input known. */
static oct_status bind(oct_net *net, const oct_preprocess *asked, oct_graph **bound)
{
    oct_type t = net->input->type;
    const int axis_c = net->is_nhwc ? 3 : 1;

    for (int i = 0; i < 4; i++)
        if (t.dim[i] < 0) t.dim[i] = i == 0 ? 1 : i == axis_c ? 3 : open_size(net, asked, i);
    OCT_TRY(oct_graph_clone(net->g, bound));
    net->g = *bound;
    OCT_TRY(oct_graph_set_input_shape(*bound, net->input->name, 4, t.dim));
    net->input = net->sizes = NULL;
    return find_input(net, *bound);
}

oct_status oct_net_init(oct_net *net, const oct_graph *g, const oct_preprocess *asked,
                        oct_graph **bound)
{
    const oct_type *t;

    *net = (oct_net){.g = g};
    OCT_TRY(oct_metadata_read(g, &net->says));
    OCT_TRY(find_input(net, g));
    net->is_nhwc = is_nhwc(&net->input->type);
    if (!oct_type_is_static(&net->input->type)) OCT_TRY(bind(net, asked, bound));
    t = &net->input->type;
    if (t->dim[1] < 1 || t->dim[2] < 1 || t->dim[3] < 1 || t->dim[1] > INT16_MAX ||
        t->dim[2] > INT16_MAX || t->dim[3] > INT16_MAX)
        return oct_fail(g->ctx, OCT_ERR_SHAPE, "input '%s' is no picture of a usual size",
                        net->input->name);
    net->height = (int32_t)t->dim[net->is_nhwc ? 1 : 2];
    net->width = (int32_t)t->dim[net->is_nhwc ? 2 : 3];
    return OCT_OK;
}

void oct_net_fini(oct_net *net)
{
    oct_metadata_fini(&net->says);
}

int64_t oct_net_mask_channels(const oct_net *net)
{
    const oct_type *t = oct_net_out(net, 1);

    return t && t->rank == 4 && t->dim[1] > 0 ? t->dim[1] : 0;
}

/* --- anchors --- */

int64_t oct_net_cells(const oct_net *net, int32_t stride)
{
    return (int64_t)((net->width + stride - 1) / stride) * ((net->height + stride - 1) / stride);
}

oct_levels oct_net_levels(const oct_net *net, int64_t n, int32_t per_cell)
{
    static const int32_t first_and_count[][2] = {{8, 3}, {8, 4}, {4, 4}, {16, 2}, {8, 5}};

    for (size_t i = 0; i < OCT_COUNT(first_and_count); i++) {
        oct_levels l = {.n = first_and_count[i][1]};
        int64_t cells = 0;

        for (int32_t k = 0; k < l.n; k++) {
            l.stride[k] = first_and_count[i][0] << k;
            cells += oct_net_cells(net, l.stride[k]);
        }
        if (cells * per_cell == n) return l;
    }
    return (oct_levels){0};
}

/* --- the tail: everything after the last layers with weights --- */

/* Where the tail begins. A projection with constant distances (DFL) is no layer here: what
 * identifies a family comes after it. */
static bool has_weights(const oct_node *n)
{
    return n->op->flow == OCT_FLOW_SOURCE;
}

oct_status oct_net_tail(const oct_net *net, const oct_value *v, oct_node_test fn, bool *found)
{
    oct_ctx *ctx = net->g->ctx;
    const size_t n_ids = (size_t)net->g->root->n_node_ids + 1;
    uint8_t *seen = oct_calloc(ctx, n_ids, 1);
    const oct_node **stack = oct_calloc(ctx, n_ids, sizeof(*stack));
    size_t n = 0;

    *found = false;
    if (seen && stack && v->producer) {
        seen[v->producer->id] = 1;
        stack[n++] = v->producer;
    }
    while (n && !*found) {
        const oct_node *node = stack[--n];

        if (fn(node)) *found = true;
        if (has_weights(node)) continue;
        for (int32_t i = 0; i < node->n_in; i++) {
            const oct_node *from = node->in[i] ? node->in[i]->producer : NULL;

            if (!from || seen[from->id]) continue;
            seen[from->id] = 1; /* each node once: the stack has room for all of them */
            stack[n++] = from;
        }
    }
    oct_free(ctx, stack);
    oct_free(ctx, seen);
    return seen && stack ? OCT_OK : OCT_ERR_MEMORY;
}

bool oct_node_is_sigmoid(const oct_node *n)
{
    return strcmp(n->op->name, "Sigmoid") == 0 || strcmp(n->op->name, "QLinearSigmoid") == 0;
}

bool oct_node_is_softmax(const oct_node *n)
{
    return strcmp(n->op->name, "Softmax") == 0 || strcmp(n->op->name, "QLinearSoftmax") == 0;
}

/* A constant with an element for each cell, not one for each channel or one for all. */
static bool is_grid(const oct_value *v)
{
    enum { FEWEST_CELLS = 32 };
    const oct_type *t = v && v->data ? &v->data->type : NULL;
    int n_long = 0;

    if (!t || t->rank < 2 || oct_type_len(t) < FEWEST_CELLS) return false;
    for (int i = 0; i < t->rank; i++)
        n_long += t->dim[i] > 1;
    return n_long > 1 || t->rank != 4 || t->dim[1] == 1;
}

bool oct_node_decodes_boxes(const oct_node *n)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};

    if (strcmp(n->op->name, "Exp") == 0 || strcmp(n->op->name, "Pow") == 0) return true;
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        if (strcmp(n->op->name, ops[i]) == 0)
            return is_grid(oct_node_in(n, 0)) || is_grid(oct_node_in(n, 1));
    return false;
}

bool oct_net_has_op(const oct_net *net, const char *op)
{
    for (const oct_node *n = net->g->first; n; n = n->next)
        if (strcmp(n->op->name, op) == 0) return true;
    return false;
}

/* --- for others --- */

/*
 * The network is told the size of its own input: boxes are in its pixels then, as those of other
 * networks, and are scaled to the picture with them.
 */
static oct_status set_sizes(oct_graph *g, const char *name, int32_t batch, int32_t width,
                            int32_t height)
{
    for (int32_t i = 0; i < g->n_inputs; i++) {
        oct_value *v = g->inputs[i];
        const oct_type type = oct_type_make(v->type.dtype, 2, (int64_t[]){batch, 2});
        oct_tensor *t = NULL;

        if (strcmp(v->name, name) != 0) continue;
        OCT_TRY(oct_tensor_make(g->ctx, &type, &t));
        for (int64_t k = 0; k < 2 * (int64_t)batch; k++) {
            const double x = k % 2 ? height : width;

            oct_store_f64(type.dtype, t->data, k, 1, &x);
        }
        v->type = type;
        v->data = t;
        return oct_graph_infer(g);
    }
    return OCT_OK;
}

oct_status oct_detector_bind(const oct_graph *g, int32_t batch, int32_t width, int32_t height,
                             oct_graph **out)
{
    oct_net net = {.g = g};
    oct_graph *bound = NULL;
    oct_type t;
    char what[64];
    oct_status st;

    OCT_TRY(find_input(&net, g));
    t = net.input->type;
    net.is_nhwc = is_nhwc(&t);
    t.dim[0] = batch;
    if (t.dim[net.is_nhwc ? 3 : 1] < 0) t.dim[net.is_nhwc ? 3 : 1] = 3;
    t.dim[net.is_nhwc ? 1 : 2] = height;
    t.dim[net.is_nhwc ? 2 : 3] = width;
    OCT_TRY(oct_graph_clone(g, &bound));
    st = t.dim[0] != net.input->type.dim[0] && net.input->type.dim[0] > 0
             ? oct_detector_free_batch(bound, net.input->type.dim[0])
             : OCT_OK;
    if (!st && !oct_type_equal(&t, &net.input->type))
        st = oct_graph_set_input_shape(bound, net.input->name, 4, t.dim);
    if (!st && net.sizes) st = set_sizes(bound, net.sizes->name, batch, width, height);
    if (st) {
        (void)snprintf(what, sizeof(what), "with batch %d and pictures of %dx%d", (int)batch,
                       (int)width, (int)height);
        oct_graph_free(bound);
        return oct_fail_at(g->ctx, st, what);
    }
    *out = bound;
    return OCT_OK;
}

oct_status oct_detector_input(const oct_graph *g, const oct_value **out)
{
    oct_net net = {.g = g};

    OCT_TRY(find_input(&net, g));
    *out = net.input;
    return OCT_OK;
}
