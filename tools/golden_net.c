/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a detector of tests/golden as training leaves it, with random weights (see
 * tools/regen-golden). Its blocks are QARepVGG's: a 3x3 convolution with BatchNorm, a 1x1
 * convolution and the input itself, summed, with another BatchNorm behind; simplification makes one
 * convolution of each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <octet/octet.h>

#include "base/rng.h"
#include "op/op.h"

#define N_CLASSES 3
#define N_STAGES  4

/* What the helpers share: the first failure stops all that follows. */
typedef struct net {
    oct_ctx *ctx;
    oct_graph *g;
    oct_rng rng;
    int64_t width; /* channels of the first stage */
    int64_t size;  /* of the input picture */
    oct_status status;
} net;

static oct_value *keep(net *t, oct_value *v)
{
    if (!v && !t->status) t->status = OCT_ERR_MEMORY;
    return v;
}

/* A constant: normal numbers around `mean`; never negative if `positive`. */
static oct_value *weights(net *t, const char *block, const char *what, int32_t rank,
                          const int64_t *dims, float mean, float deviation, bool positive)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    char name[128];
    oct_tensor *w = NULL;

    if (t->status || (t->status = oct_tensor_make(t->ctx, &type, &w))) return NULL;
    for (int64_t i = 0; i < oct_type_len(&type); i++) {
        const float x = mean + deviation * (float)oct_rng_normal(&t->rng);
        ((float *)w->data)[i] = positive ? OCT_MAX(x, 0.1f) : x;
    }
    snprintf(name, sizeof(name), "%s.%s", block, what);
    return keep(t, oct_value_const(t->g, name, w));
}

/* A node whose output is named after it. With `made`, the caller sets attributes and infers. */
static oct_value *node(net *t, const char *op, const char *name, oct_value *const *in, int32_t n_in,
                       oct_node **made)
{
    const oct_op *row = oct_op_find("", op);
    char out_name[160];
    oct_value *out;
    oct_node *n;

    if (t->status) return NULL;
    snprintf(out_name, sizeof(out_name), "%s_output_0", name);
    if (!row) {
        t->status = OCT_ERR_UNSUPPORTED;
        return NULL;
    }
    if (!(out = keep(t, oct_value_new(t->g, out_name, NULL)))) return NULL;
    if (!(n = oct_node_new(t->g, NULL, name, row, in, n_in, &out, 1))) {
        t->status = OCT_ERR_MEMORY;
        return NULL;
    }
    if (made) {
        *made = n;
        return out;
    }
    t->status = oct_node_infer(n);
    return out;
}

static oct_value *simple(net *t, const char *op, const char *block, const char *what, oct_value *x,
                         oct_value *y)
{
    char name[128];

    snprintf(name, sizeof(name), "/%s/%s", block, what);
    return node(t, op, name, (oct_value *[]){x, y}, y ? 2 : 1, NULL);
}

static oct_value *conv(net *t, const char *block, const char *what, oct_value *x, int64_t n_out,
                       int64_t kernel, int64_t stride, bool bias)
{
    const int64_t n_in = x ? x->type.dim[1] : 1, pad = kernel / 2;
    const float deviation = sqrtf(1.0f / (float)(n_in * kernel * kernel));
    char name[128];
    oct_value *in[3] = {x};
    oct_value *y;
    oct_node *n = NULL;

    snprintf(name, sizeof(name), "%s.%s.weight", block, what);
    in[1] = weights(t, name, "w", 4, (int64_t[]){n_out, n_in, kernel, kernel}, 0, deviation, false);
    if (bias) in[2] = weights(t, name, "b", 1, &n_out, 0, 0.1f, false);
    snprintf(name, sizeof(name), "/%s/%s/Conv", block, what);
    y = node(t, "Conv", name, in, bias ? 3 : 2, &n);
    if (t->status) return NULL;
    if ((t->status = oct_node_set_ints(n, "kernel_shape", (int64_t[]){kernel, kernel}, 2)) ||
        (t->status = oct_node_set_ints(n, "strides", (int64_t[]){stride, stride}, 2)) ||
        (t->status = oct_node_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4)))
        return NULL;
    t->status = oct_node_infer(n);
    return y;
}

/* With random statistics, as if trained. */
static oct_value *batch_norm(net *t, const char *block, const char *what, oct_value *x)
{
    const int64_t c = x ? x->type.dim[1] : 1;
    char name[128];
    oct_value *in[5] = {x};

    snprintf(name, sizeof(name), "%s.%s", block, what);
    in[1] = weights(t, name, "weight", 1, &c, 1, 0.1f, true);
    in[2] = weights(t, name, "bias", 1, &c, 0, 0.1f, false);
    in[3] = weights(t, name, "running_mean", 1, &c, 0, 0.1f, false);
    in[4] = weights(t, name, "running_var", 1, &c, 1, 0.2f, true);
    snprintf(name, sizeof(name), "/%s/%s/BatchNormalization", block, what);
    return node(t, "BatchNormalization", name, in, 5, NULL);
}

static oct_value *qarepvgg(net *t, const char *block, oct_value *x, int64_t n_out, int64_t stride)
{
    const bool identity = x && stride == 1 && x->type.dim[1] == n_out;
    oct_value *big = conv(t, block, "branch_3x3", x, n_out, 3, stride, false);
    oct_value *small = conv(t, block, "branch_1x1", x, n_out, 1, stride, true);
    oct_value *sum;

    big = batch_norm(t, block, "branch_3x3", big);
    sum = simple(t, "Add", block, "Add", big, small);
    if (identity) sum = simple(t, "Add", block, "Add_1", sum, x);
    sum = batch_norm(t, block, "post_bn", sum);
    return simple(t, "Relu", block, "Relu", sum, NULL);
}

static oct_value *concat(net *t, const char *name, oct_value *const *in, int32_t n_in, int64_t axis)
{
    oct_node *n = NULL;
    oct_value *y = node(t, "Concat", name, in, n_in, &n);

    if (!t->status) t->status = oct_node_set_int(n, "axis", axis);
    if (!t->status) t->status = oct_node_infer(n);
    return y;
}

/* [1, C, H, W] to [1, H*W, C], the way exporters write it: with the shape computed. */
static oct_value *flatten(net *t, const char *block, oct_value *x)
{
    const int64_t dims[] = {1, x ? x->type.dim[1] : 1, -1};
    oct_builder b = {.g = t->g, .status = t->status};
    oct_value *shape = oct_ints(&b, dims, 3);
    char name[128];
    oct_node *n = NULL;
    oct_value *y;

    t->status = b.status;
    y = simple(t, "Reshape", block, "Reshape", x, shape);
    snprintf(name, sizeof(name), "/%s/Transpose", block);
    y = node(t, "Transpose", name, &y, 1, &n);
    if (!t->status) t->status = oct_node_set_ints(n, "perm", (int64_t[]){0, 2, 1}, 3);
    if (!t->status) t->status = oct_node_infer(n);
    return y;
}

/* Boxes and scores of one level. */
static void head(net *t, int level, oct_value *x, oct_value **boxes, oct_value **scores)
{
    char block[64];

    snprintf(block, sizeof(block), "head%d/stem", level);
    x = qarepvgg(t, block, x, 2 * t->width, 1);
    snprintf(block, sizeof(block), "head%d/box", level);
    *boxes = flatten(t, block, conv(t, block, "pred", x, 4, 1, 1, true));
    snprintf(block, sizeof(block), "head%d/cls", level);
    *scores = flatten(t, block, conv(t, block, "pred", x, N_CLASSES, 1, 1, true));
}

static void finish(net *t, const char *name, oct_value *v)
{
    oct_value *out;

    if (t->status) return;
    if (!(out = keep(t, oct_value_new(t->g, name, NULL)))) return;
    if (!oct_node_new(t->g, NULL, name, oct_op_find("", "Identity"), &v, 1, &out, 1)) {
        t->status = OCT_ERR_MEMORY;
        return;
    }
    if (!(t->status = oct_node_infer(out->producer))) t->status = oct_graph_add_output(t->g, out);
}

static void build(net *t)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 3, t->size, t->size});
    oct_value *level[N_STAGES], *boxes[2], *scores[2], *x;

    x = keep(t, oct_value_new(t->g, "image", &type));
    if (!t->status) t->status = oct_graph_add_input(t->g, x);
    x = qarepvgg(t, "stem", x, t->width, 2);
    for (int i = 0; i < N_STAGES; i++) {
        char block[64];

        snprintf(block, sizeof(block), "stage%d/down", i + 1);
        x = qarepvgg(t, block, x, t->width << i, 2);
        for (int j = 0; j < 2; j++) {
            snprintf(block, sizeof(block), "stage%d/block%d", i + 1, j + 1);
            x = qarepvgg(t, block, x, t->width << i, 1);
        }
        level[i] = x;
    }
    x = conv(t, "neck", "reduce", level[3], 2 * t->width, 1, 1, true);
    head(t, 1, x, &boxes[0], &scores[0]);
    x = conv(t, "neck", "side", level[2], 2 * t->width, 1, 1, true);
    x = simple(t, "Mul", "neck", "Mul", x, simple(t, "Sigmoid", "neck", "Sigmoid", x, NULL));
    head(t, 2, x, &boxes[1], &scores[1]);
    finish(t, "boxes", concat(t, "/head/Concat", boxes, 2, 1));
    x = concat(t, "/head/Concat_1", scores, 2, 1);
    finish(t, "scores", simple(t, "Sigmoid", "head", "Sigmoid", x, NULL));
}

/* A picture of soft waves, so that the network has something to look at. */
static oct_status write_picture(const net *t, const char *path)
{
    oct_tensor *image = NULL;
    oct_status st =
        oct_tensor_new(t->ctx, OCT_DTYPE_F32, 4, (int64_t[]){1, 3, t->size, t->size}, &image);
    float *v;

    if (st) return st;
    v = oct_tensor_mutable(image);
    for (int c = 0; v && c < 3; c++)
        for (int64_t y = 0; y < t->size; y++)
            for (int64_t x = 0; x < t->size; x++)
                *v++ = 0.5f + 0.5f * sinf(0.07f * (float)((c + 1) * x) + 0.11f * (float)y);
    st = oct_tensor_save_npy(t->ctx, image, path);
    oct_tensor_unref(image);
    return st;
}

int main(int argc, char **argv)
{
    net t = {.ctx = oct_ctx_new(NULL)};

    t.width = argc > 3 ? atoi(argv[3]) : 24;
    t.size = argc > 4 ? atoi(argv[4]) : 160;
    if (argc < 3 || argc > 5 || t.width < 1 || t.size < 1 || !t.ctx) {
        fprintf(stderr, "usage: golden_net MODEL.onnx PICTURE.npy [WIDTH [SIZE]]\n");
        oct_ctx_free(t.ctx);
        return 2;
    }
    oct_rng_init(&t.rng, 1);
    if (!(t.status = oct_graph_new(t.ctx, "demo", &t.g))) build(&t);
    if (!t.status) t.status = oct_onnx_save(t.g, argv[1], NULL);
    if (!t.status) t.status = write_picture(&t, argv[2]);
    if (t.status) fprintf(stderr, "golden_net: %s\n", oct_ctx_error(t.ctx));
    oct_graph_free(t.g);
    oct_ctx_free(t.ctx);
    return t.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
