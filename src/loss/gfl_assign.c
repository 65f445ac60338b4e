/* SPDX-License-Identifier: Apache-2.0 */
/* Which anchors predict which boxes of a picture: the assigners of NanoDet and PicoDet. */
#include <math.h>

#include "loss/assign_ota.h"
#include "loss/gfl.h"
#include "op/op.h"

/* The costs of dynamic soft labels and of PicoDet's SimOTA. */
static const double COST_LOG_IOU = 3, COST_GIOU = 6, LOG_EPS = 1e-7, FAR = 1e8;
static const double ALPHA = .75; /* of varifocal; gamma is 2, as the exponent of soft labels */
static const oct_giou_form cost_giou = {1e-6, true};

oct_assigned oct_gfl_assigned_of(const oct_gfl_job *j, int64_t i)
{
    const int64_t at = i * j->n_anchors;

    return (oct_assigned){j->assigned.box + at, j->assigned.label + at, j->assigned.q + at};
}

oct_gfl_picture oct_gfl_picture_of(const oct_gfl_job *j, int64_t i)
{
    const int64_t box = i * j->boxes.max, first = i * j->n_anchors;

    return (oct_gfl_picture){
        .j = j,
        .first = first,
        .in = {.levels = &j->levels,
               .n_anchors = j->n_anchors,
               .n_classes = j->n_classes,
               .n_boxes = j->boxes.n[i],
               .point = j->point,
               .stride = j->stride,
               .score = j->score + first * j->n_classes,
               .pred = j->pred + 4 * first,
               .box = j->boxes.box + 4 * box,
               .label = j->boxes.label + box},
    };
}

static double log_of(double p)
{
    return p > 0 ? fmax(log(p), -100) : -100;
}

static double bce(double p, double t)
{
    return -t * log_of(p) - (1 - t) * log_of(1 - p);
}

/* What a class costs that is not the label's. */
static double cost_of_other(oct_gfl_assigner a, double p)
{
    return (a == OCT_GFL_DSL ? 1 : ALPHA) * p * p * -log_of(1 - p);
}

static bool is_inside(const oct_gfl_picture *p, int64_t box, int64_t anchor)
{
    return oct_assign_is_inside(&p->in.point[2 * anchor], &p->in.box[4 * box], 0);
}

static bool is_near(const oct_gfl_picture *p, int64_t box, int64_t anchor)
{
    const double *b = &p->in.box[4 * box], *at = &p->in.point[2 * anchor];
    const double r = (double)oct_f32(p->j->node, OCT_GFL_RADIUS) * p->in.stride[anchor];

    return fabs(at[0] - (b[0] + b[2]) / 2) < r && fabs(at[1] - (b[1] + b[3]) / 2) < r;
}

static void pair(const void *arg, int64_t box, int64_t anchor, double *cost, double *overlap)
{
    const oct_gfl_picture *p = arg;
    const oct_gfl_assigner a = p->j->assigner;
    const double *truth = &p->in.box[4 * box], *pred = &p->in.pred[4 * anchor];
    const double s = p->in.score[anchor * p->in.n_classes + p->in.label[box]];
    const double other = cost_of_other(a, s), q = oct_box_iou(pred, truth, 0);

    *overlap = q;
    *cost = p->j->all[p->first + anchor] - other;
    if (a == OCT_GFL_DSL) {
        *cost += bce(s, q) * (q - s) * (q - s) - COST_LOG_IOU * log(q + LOG_EPS);
        return;
    }
    *cost += q > 0 ? q * bce(s, q) : other;
    *cost += COST_GIOU * oct_loss_giou(pred, truth, &cost_giou, NULL);
    if (!is_inside(p, box, anchor) || !is_near(p, box, anchor)) *cost += FAR;
}

static void assign_by_cost(const oct_gfl_picture *p, const oct_assigned *out)
{
    const oct_gfl_job *j = p->j;
    bool *is_candidate = j->is_candidate + p->first;
    double *all = j->all + p->first;

    for (int64_t k = 0; k < j->n_anchors; k++) {
        is_candidate[k] = false;
        for (int64_t b = 0; b < p->in.n_boxes && !is_candidate[k]; b++)
            is_candidate[k] =
                is_inside(p, b, k) || (j->assigner == OCT_GFL_SIMOTA && is_near(p, b, k));
        all[k] = 0;
        for (int64_t c = 0; is_candidate[k] && c < j->n_classes; c++)
            all[k] += cost_of_other(j->assigner, p->in.score[k * j->n_classes + c]);
    }
    oct_assign_ota(&(oct_ota){oct_int(j->node, OCT_GFL_TOPK), pair, p}, &p->in, is_candidate, out);
}

static oct_atss atss_of(const oct_gfl_job *j)
{
    oct_atss a = j->form->atss;

    a.topk = oct_int(j->node, OCT_GFL_TOPK);
    return a;
}

static oct_tal tal_of(const oct_gfl_job *j)
{
    return (oct_tal){.topk = oct_int(j->node, OCT_GFL_TOPK), .alpha = 1, .beta = 6};
}

size_t oct_gfl_work_size(const oct_gfl_job *j)
{
    const oct_atss atss = atss_of(j);
    const oct_tal tal = tal_of(j);
    const size_t size = j->assigner == OCT_GFL_ATSS  ? oct_assign_atss_work(&atss, &j->levels)
                        : j->assigner == OCT_GFL_TAL ? oct_assign_tal_work(&tal, j->boxes.max)
                                                     : 0;

    return (size / 64 + 1) * 64; /* aligned for the next picture */
}

void oct_gfl_load(const oct_gfl_job *j, int64_t anchor, double z[4 * OCT_GFL_MAX_BINS])
{
    oct_load_f64(j->z->type.dtype, j->z->data, anchor * 4 * j->bins, 4 * (int64_t)j->bins, z);
}

/* Probabilities and boxes, in pixels. */
static void decode(const oct_gfl_job *j, int64_t i)
{
    const int64_t n = j->n_anchors * j->n_classes;
    double z[4 * OCT_GFL_MAX_BINS], p[OCT_GFL_MAX_BINS], *score = j->score + i * n;

    for (int64_t k = 0; k < j->n_anchors; k++) {
        const int64_t at = i * j->n_anchors + k;

        oct_gfl_load(j, at, z);
        for (int e = 0; e < 4; e++) {
            const double d = oct_dfl_decode(z + (ptrdiff_t)e * j->bins, j->bins, p);

            j->pred[4 * at + e] = j->point[2 * k + e % 2] + (e < 2 ? -d : d) * j->stride[k];
        }
    }
    oct_load_f64(j->x->type.dtype, j->x->data, i * n, n, score);
    for (int64_t c = 0; !j->form->is_probability && c < n; c++)
        score[c] = oct_sigmoid_f64(score[c]);
}

void oct_gfl_assign(void *arg, int64_t begin, int64_t end)
{
    const oct_gfl_job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const oct_gfl_picture p = oct_gfl_picture_of(j, i);
        const oct_assigned out = oct_gfl_assigned_of(j, i);
        void *work = j->work + (size_t)i * j->work_size;
        const oct_atss atss = atss_of(j);
        const oct_tal tal = tal_of(j);

        decode(j, i);
        if (!p.in.n_boxes)
            oct_assign_none(&p.in, &out);
        else if (j->assigner == OCT_GFL_ATSS)
            oct_assign_atss(&atss, &p.in, work, &out);
        else if (j->assigner == OCT_GFL_TAL)
            oct_assign_tal(&tal, &p.in, work, &out);
        else
            assign_by_cost(&p, &out);
    }
}
