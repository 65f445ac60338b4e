/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loss and its gradients at given predictions, for comparing with other programs.
 * usage: loss_values OPERATOR FOLDER [ATTRIBUTE=VALUE,..]...
 *
 * FOLDER has the operands 0.npy, 1.npy .., the last of them the labels; the results are written to
 * loss.npy, parts.npy, grad0.npy .. in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#include "graph/op.h"
#include "loss/dfl_head.h"
#include "loss/yolox.h"

enum { MAX_OPERANDS = 6, MAX_INTS = 32 };

static const oct_op *const ops[] = {&oct_op_yolo_nas_loss, &oct_op_yolov8_loss, &oct_op_yolox_loss};

static oct_status set_attribute(oct_node *n, char *text)
{
    char *value = strchr(text, '=');
    int64_t v[MAX_INTS], n_v = 0;

    if (!value) return oct_node_fail(n, OCT_ERR_ARG, "'%s' is not NAME=VALUE", text);
    *value++ = 0;
    for (int i = 0; i < oct_op_n_attrs(n->op); i++) {
        if (strcmp(n->op->attrs[i].name, text) != 0) continue;
        switch (n->op->attrs[i].kind) {
        case OCT_ATTR_INT:
            return oct_node_set_int(n, text, strtoll(value, NULL, 10));
        case OCT_ATTR_F32:
            return oct_node_set_f32(n, text, strtof(value, NULL));
        case OCT_ATTR_STRING:
            return oct_node_set_str(n, text, value);
        default:
            for (char *s = value; *s && n_v < MAX_INTS; s += *s == ',')
                v[n_v++] = strtoll(s, &s, 10);
            return oct_node_set_ints(n, text, v, n_v);
        }
    }
    return oct_node_fail(n, OCT_ERR_ARG, "no attribute '%s'", text);
}

static oct_status save(oct_ctx *ctx, const oct_tensor *t, const char *folder, int i)
{
    char path[512], name[32] = "loss";

    if (i == 1) (void)snprintf(name, sizeof(name), "parts");
    if (i > 1) (void)snprintf(name, sizeof(name), "grad%d", i - 2);
    (void)snprintf(path, sizeof(path), "%s/%s.npy", folder, name);
    return oct_tensor_save_npy(ctx, t, path);
}

static oct_status run(oct_ctx *ctx, const oct_op *op, const char *folder, char **words, int n_words)
{
    oct_tensor *out[MAX_OPERANDS + 2] = {0};
    oct_value *in[MAX_OPERANDS];
    const int n_in = op->min_in, n_out = n_in + 1;
    oct_graph *g = NULL;
    oct_status st = oct_graph_new(ctx, "loss", &g);
    oct_node *n = NULL;

    for (int i = 0; !st && i < n_in; i++) {
        oct_tensor *t = NULL;
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/%d.npy", folder, i);
        st = oct_tensor_load_npy(ctx, path, &t);
        if (!st && !(in[i] = oct_value_const(g, NULL, t))) st = OCT_ERR_MEMORY;
    }
    if (!st && !(n = oct_node_new(g, NULL, "loss", op, in, n_in, NULL, n_out))) st = OCT_ERR_MEMORY;
    for (int i = 0; !st && i < n_words; i++)
        st = set_attribute(n, words[i]);
    if (!st) st = oct_node_infer(n);
    for (int i = 0; !st && i < n_out; i++)
        st = oct_graph_add_output(g, n->out[i]);
    if (!st) st = oct_graph_eval(g, NULL, out, NULL);
    for (int i = 0; i < n_out; i++) {
        if (!st) st = save(ctx, out[i], folder, i);
        oct_tensor_unref(out[i]);
    }
    oct_graph_free(g);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    const oct_op *op = NULL;
    oct_status st;

    for (size_t i = 0; argc > 2 && i < OCT_COUNT(ops); i++)
        if (strcmp(ops[i]->name, argv[1]) == 0) op = ops[i];
    if (!op || !ctx) {
        (void)fprintf(stderr, "usage: loss_values OPERATOR FOLDER [ATTRIBUTE=VALUE,..]...\n");
        oct_ctx_free(ctx);
        return 2;
    }
    st = run(ctx, op, argv[2], argv + 3, argc - 3);
    if (st) (void)fprintf(stderr, "loss_values: %s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st ? 1 : 0;
}
