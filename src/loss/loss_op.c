/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators of losses share. */
#include "loss/loss_op.h"

#include <string.h>

#include "op/op.h"

oct_status oct_loss_shape(const oct_infer *q, int n_pred, int64_t n_parts)
{
    const oct_dtype dtype = q->in[0]->dtype;

    q->out[0] = oct_type_make(dtype, 0, NULL);
    if (q->node->n_out > 1) q->out[1] = oct_type_make(dtype, 1, &n_parts);
    for (int i = 0; i < n_pred && i + 2 < q->node->n_out; i++)
        q->out[i + 2] = *q->in[i];
    return OCT_OK;
}

oct_status oct_loss_need(const oct_infer *q, int i, int32_t rank, unsigned set,
                         const oct_type **out)
{
    OCT_TRY(oct_infer_need(q, i, out));
    OCT_TRY(oct_infer_check(q, i, set));
    if ((*out)->rank >= 0 && (*out)->rank != rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d has %d dims, not %d", i,
                              (int)(*out)->rank, (int)rank);
    return OCT_OK;
}

oct_status oct_loss_fits(const oct_infer *q, const oct_type *x, const oct_type *labels)
{
    if (labels->rank != 3 || x->rank < 1) return OCT_OK;
    if (labels->dim[2] >= 0 && labels->dim[2] != OCT_LABEL_SIZE)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "labels are rows of %d numbers, not %lld",
                              OCT_LABEL_SIZE, (long long)labels->dim[2]);
    if (labels->dim[0] >= 0 && x->dim[0] >= 0 && labels->dim[0] != x->dim[0])
        return oct_infer_fail(q, OCT_ERR_SHAPE, "labels of %lld pictures for predictions of %lld",
                              (long long)labels->dim[0], (long long)x->dim[0]);
    return OCT_OK;
}

oct_status oct_loss_levels(const oct_node *n, int strides, int sizes, int64_t n_anchors,
                           oct_anchor_levels *out)
{
    const oct_attr *s = &n->attr[strides], *z = &n->attr[sizes];

    if (s->kind != OCT_ATTR_INTS || z->kind != OCT_ATTR_INTS ||
        !oct_anchor_levels_read(s->is, s->n, z->is, z->n, out))
        return oct_node_fail(n, OCT_ERR_SHAPE, "strides and sizes of feature maps do not fit");
    if (oct_anchors_count(out) != n_anchors)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld predictions for %lld cells of feature maps",
                             (long long)n_anchors, (long long)oct_anchors_count(out));
    return OCT_OK;
}

static int find_setting(const oct_loss_setting *settings, const char *name)
{
    for (int i = 0; settings[i].name; i++)
        if (strcmp(settings[i].name, name) == 0) return i;
    return -1;
}

static void emit_setting(oct_builder *b, oct_node *n, const oct_attr_def *def,
                         const oct_loss_job *job, int setting)
{
    switch (def->kind) {
    case OCT_ATTR_F32:
        oct_emit_f32(b, n, def->name, (float)job->number[setting]);
        break;
    case OCT_ATTR_INT:
        oct_emit_int(b, n, def->name, (int64_t)job->number[setting]);
        break;
    default:
        oct_emit_str(b, n, def->name, job->word[setting]);
    }
}

oct_node *oct_loss_emit(oct_builder *b, const oct_op *op, const oct_loss_setting *settings,
                        const oct_loss_job *job, oct_value *const *in, int32_t n_in, int32_t n_pred)
{
    oct_node *n = oct_emit_node(b, op, in, n_in, n_pred + 2);

    for (int i = 0; n && i < oct_op_n_attrs(op); i++) {
        const int setting = find_setting(settings, op->attrs[i].name);

        if (setting >= 0) emit_setting(b, n, &op->attrs[i], job, setting);
    }
    return n;
}

oct_status oct_loss_emitted(oct_builder *b, oct_node *n, oct_loss_found *out)
{
    if (!oct_emitted(b, n)) return b->status;
    out->loss = n->out[0];
    out->parts = n->out[1];
    return OCT_OK;
}

void oct_loss_store(const oct_args *a, const double *parts, int n_parts)
{
    double sum = 0;

    for (int i = 0; i < n_parts; i++)
        sum += parts[i];
    if (oct_args_out(a, 0)) oct_store_f64(a->out[0]->type.dtype, a->out[0]->data, 0, 1, &sum);
    if (oct_args_out(a, 1))
        oct_store_f64(a->out[1]->type.dtype, a->out[1]->data, 0, n_parts, parts);
}

void oct_loss_clear(oct_tensor *t)
{
    size_t size;

    if (t && oct_type_bytes(&t->type, &size)) memset(t->data, 0, size);
}
