/* SPDX-License-Identifier: Apache-2.0 */
/* Classifiers: [n, classes], logits or probabilities; only their order matters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "detect/family.h"
#include "graph/op.h"

/*
 * How pixels were scaled in training is not in the file. Networks from TensorFlow or Keras were
 * mostly trained on x / 127.5 - 1, others on ImageNet's mean and deviation. Signs of the former:
 * the producer's name, 1001 classes (0 is the background), or BatchNormalization with Keras's
 * epsilon of 0.001 in a file that PyTorch did not write.
 */
static bool is_from_tensorflow(const oct_net *net, int64_t n_classes)
{
    const char *producer = net->g->root->info.producer_name;

    if (!producer) producer = "";
    if (n_classes == 1001 || strstr(producer, "keras") || strstr(producer, "tf2onnx")) return true;
    if (strstr(producer, "pytorch")) return false;
    for (const oct_node *n = net->g->first; n; n = n->next) {
        const oct_attr *epsilon;

        if (strcmp(n->op->name, "BatchNormalization") != 0) continue;
        epsilon = oct_node_attr(n, "epsilon");
        return epsilon && fabsf(epsilon->f - 1e-3f) < 1e-6f;
    }
    return false;
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *t = oct_net_out(net, 0);
    int64_t n = 1;

    if (!t || t->rank < 2 || t->dim[0] == 0) return OCT_OK;
    for (int i = 1; i < t->rank; i++)
        if (t->dim[i] < 1 || (i > 1 && t->dim[i] != 1) || !oct_mul_i64(n, t->dim[i], &n))
            return OCT_OK;
    if (n < 2 || n > INT32_MAX) return OCT_OK;
    r->scores = 0;
    r->n_classes = (int32_t)n;
    r->is_tf_scaled = is_from_tensorflow(net, n);
    *sure = net->g->n_outputs == 1 ? OCT_SURE_LIKELY : OCT_SURE_ASKED;
    (void)snprintf(
        r->why, sizeof(r->why), "output [n, %lld]: one score for each class; %s", (long long)n,
        net->says.has_preprocess ? "pixels as the file's metadata tell"
        : r->is_tf_scaled        ? "pixels to -1..1, as networks from TensorFlow and Keras expect"
                                 : "pixels by ImageNet's mean and deviation");
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

    p->fit = OCT_FIT_CROP;
    if (r->is_tf_scaled) p->scale = 127.5f;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = r->is_tf_scaled ? 1 : mean[c];
        p->std[c] = r->is_tf_scaled ? 1 : std[c];
    }
}

const oct_family oct_family_classifier = {
    .name = "classifier",
    .help = "[n, classes]: logits or probabilities of one class for the whole picture",
    .is_classifier = true,
    .match = match,
    .preprocess = preprocess,
};
