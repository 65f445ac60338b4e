/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of heads with class logits and distributions over distances, as an operator. */
#include "loss/dfl_head.h"

#include "loss/loss_op.h"
#include "op/work.h"

enum { CLS, REG, LABELS };

static bool differs(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a != b;
}

static oct_status read_levels(const oct_node *n, oct_anchor_levels *out)
{
    const oct_attr *strides = &n->attr[OCT_DFL_ATTR_STRIDES];
    const oct_attr *sizes = &n->attr[OCT_DFL_ATTR_SIZES];

    if (!oct_anchor_levels_read(strides->is, strides->n, sizes->is, sizes->n, out))
        return oct_node_fail(n, OCT_ERR_SHAPE,
                             "strides [n] and sizes [2 n], height and width of each feature map in "
                             "cells, do not fit each other or are out of range");
    return OCT_OK;
}

oct_status oct_dfl_head_shape(const oct_infer *q)
{
    const oct_type *cls, *reg, *labels, *epoch;
    oct_anchor_levels levels;

    OCT_TRY(oct_loss_need(q, CLS, OCT_PRED_RANK, OCT_SET_FLOAT, &cls));
    OCT_TRY(oct_loss_need(q, REG, OCT_PRED_RANK, OCT_SET_FLOAT, &reg));
    OCT_TRY(oct_loss_need(q, LABELS, 3, OCT_SET_FLOAT, &labels));
    if (oct_node_in(q->node, OCT_DFL_EPOCH))
        OCT_TRY(oct_loss_need(q, OCT_DFL_EPOCH, 0, OCT_SET_FLOAT, &epoch));
    OCT_TRY(read_levels(q->node, &levels));
    if (cls->dtype != reg->dtype)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "scores and distances are of different types");
    if (cls->rank < 0 || reg->rank < 0 || labels->rank < 0) return oct_loss_shape(q, 2, 3);
    if (differs(cls->dim[0], reg->dim[0]) || differs(cls->dim[0], labels->dim[0]) ||
        differs(reg->dim[0], labels->dim[0]))
        return oct_infer_fail(
            q, OCT_ERR_SHAPE, "scores of %lld, distances of %lld and labels of %lld pictures",
            (long long)cls->dim[0], (long long)reg->dim[0], (long long)labels->dim[0]);
    if (differs(cls->dim[1], oct_anchors_count(&levels)) ||
        differs(reg->dim[1], oct_anchors_count(&levels)))
        return oct_infer_fail(q, OCT_ERR_SHAPE,
                              "scores of %lld and distances of %lld anchors; the feature maps have "
                              "%lld cells",
                              (long long)cls->dim[1], (long long)reg->dim[1],
                              (long long)oct_anchors_count(&levels));
    if (cls->dim[2] == 0 || cls->dim[2] > INT32_MAX)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld classes", (long long)cls->dim[2]);
    if (reg->dim[2] >= 0 &&
        (reg->dim[2] % 4 || reg->dim[2] < 8 || reg->dim[2] > 4 * OCT_DFL_MAX_BINS))
        return oct_infer_fail(
            q, OCT_ERR_SHAPE,
            "%lld values for the distances of an anchor, not 4 times 2 to %d bins",
            (long long)reg->dim[2], OCT_DFL_MAX_BINS);
    if (differs(labels->dim[2], OCT_LABEL_SIZE))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "labels have %lld values, not %d",
                              (long long)labels->dim[2], OCT_LABEL_SIZE);
    return oct_loss_shape(q, 2, OCT_DFL_N_PARTS);
}

oct_status oct_dfl_head_ref(const oct_args *a, const oct_dfl_loss *loss,
                            const int order[OCT_DFL_N_PARTS])
{
    double parts[OCT_DFL_N_PARTS], ordered[OCT_DFL_N_PARTS];
    oct_dfl_head h = {0};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_levels(a->node, &h.levels));
    h.batch = a->in[CLS]->type.dim[0];
    h.n_anchors = a->in[CLS]->type.dim[1];
    h.n_classes = a->in[CLS]->type.dim[2];
    h.bins = (int)(a->in[REG]->type.dim[2] / 4);
    h.dtype = a->in[CLS]->type.dtype;
    h.cls = a->in[CLS]->data;
    h.reg = a->in[REG]->data;
    h.d_cls = oct_args_out(a, 2) ? a->out[2]->data : NULL;
    h.d_reg = oct_args_out(a, 3) ? a->out[3]->data : NULL;
    OCT_TRY(oct_label_boxes_read(a, LABELS, h.n_classes, &h.labels));
    OCT_TRY(oct_args_spend(a, h.batch * h.labels.max * h.n_anchors));
    OCT_TRY(oct_dfl_head_alloc(&h, loss, a->scratch, a->n_threads));
    oct_dfl_head_assign(&h, loss);
    oct_dfl_head_sum(&h, loss, parts);
    for (int i = 0; i < OCT_DFL_N_PARTS; i++)
        ordered[i] = parts[order[i]];
    oct_loss_store(a, ordered, OCT_DFL_N_PARTS);
    return OCT_OK;
}
