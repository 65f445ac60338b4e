/* SPDX-License-Identifier: Apache-2.0 */
/* Which anchors predict which boxes of a picture: YOLOX's SimOTA. */
#include <math.h>

#include "loss/assign_ota.h"
#include "loss/pieces.h"
#include "loss/yolox.h"
#include "op/op.h"

/* Of the cost of assigning an anchor to a box. */
static const double COST_IOU = 3, FURTHEST_LOG = 100;

/* BCE on a probability, with logarithms as PyTorch clamps them: of target 1 and 0. */
static double log_of(double p)
{
    return p > 0 ? fmax(log(p), -FURTHEST_LOG) : -FURTHEST_LOG;
}

void oct_yolox_load(const oct_yolox_picture *p, int64_t anchor, int64_t first, int64_t n,
                    double *to)
{
    const oct_yolox_job *j = p->j;

    oct_load_f64(j->x->type.dtype, j->x->data,
                 (p->i * j->n_anchors + anchor) * j->n_channels + first, n, to);
}

/* The score that the cost is about: sqrt of the probabilities of class and object. */
static double joint(double cls, double obj)
{
    return sqrt(oct_sigmoid_f64(cls) * oct_sigmoid_f64(obj));
}

static double joint_of(const oct_yolox_picture *p, int64_t anchor, int64_t c)
{
    double cls, obj;

    oct_yolox_load(p, anchor, OCT_YOLOX_AT_OBJ, 1, &obj);
    oct_yolox_load(p, anchor, OCT_YOLOX_AT_CLASSES + c, 1, &cls);
    return joint(cls, obj);
}

static bool is_near(const oct_yolox_picture *p, int64_t box, int64_t anchor)
{
    const double *b = &p->in.box[4 * box], *at = &p->in.point[2 * anchor];
    const double r = (double)oct_f32(p->j->node, OCT_YOLOX_RADIUS) * p->in.stride[anchor];
    const double x = (b[0] + b[2]) / 2, y = (b[1] + b[3]) / 2;

    return fabs(at[0] - x) < r && fabs(at[1] - y) < r;
}

static bool is_inside(const oct_yolox_picture *p, int64_t box, int64_t anchor)
{
    return oct_assign_is_inside(&p->in.point[2 * anchor], &p->in.box[4 * box], 0);
}

static void pair(const void *arg, int64_t box, int64_t anchor, double *cost, double *overlap)
{
    const oct_yolox_picture *p = arg;
    const bool old = p->j->box_or_centre;
    const double s = joint_of(p, anchor, p->in.label[box]);
    const bool fits = is_near(p, box, anchor) && (!old || is_inside(p, box, anchor));

    *overlap = oct_box_iou(&p->in.pred[4 * anchor], &p->in.box[4 * box], old ? 1e-9 : 0);
    *cost =
        p->all[anchor] + log_of(1 - s) - log_of(s) - COST_IOU * log(*overlap + OCT_YOLOX_LOG_EPS);
    if (!fits) *cost += old ? 1e5 : 1e6;
}

static void decode(const oct_yolox_job *j, const double *x, int64_t anchor, double *box)
{
    const double s = j->stride[anchor], w = exp(x[2]) * s / 2, h = exp(x[3]) * s / 2;
    const double cx = j->point[2 * anchor] + (x[0] - .5) * s;
    const double cy = j->point[2 * anchor + 1] + (x[1] - .5) * s;

    box[0] = cx - w;
    box[1] = cy - h;
    box[2] = cx + w;
    box[3] = cy + h;
}

oct_assigned oct_yolox_assigned_of(const oct_yolox_job *j, int64_t i)
{
    const int64_t at = i * j->n_anchors;

    return (oct_assigned){j->assigned.box + at, j->assigned.label + at, j->assigned.q + at};
}

oct_yolox_picture oct_yolox_picture_of(const oct_yolox_job *j, int64_t i)
{
    const int64_t first = i * j->boxes.max;

    return (oct_yolox_picture){
        .j = j,
        .i = i,
        .all = j->all + i * j->n_anchors,
        .in = {.levels = &j->levels,
               .n_anchors = j->n_anchors,
               .n_classes = j->n_channels - OCT_YOLOX_AT_CLASSES,
               .n_boxes = j->boxes.n[i],
               .point = j->point,
               .stride = j->stride,
               .pred = j->pred + 4 * i * j->n_anchors,
               .box = j->boxes.box + 4 * first,
               .label = j->boxes.label + first},
    };
}

static void assign(const oct_yolox_job *j, int64_t i)
{
    const oct_yolox_picture p = oct_yolox_picture_of(j, i);
    const oct_assigned out = oct_yolox_assigned_of(j, i);
    bool *is_candidate = j->is_candidate + i * j->n_anchors;
    double *pred = j->pred + 4 * i * j->n_anchors, *all = j->all + i * j->n_anchors;
    double *x = j->row + 2 * i * j->n_channels;

    for (int64_t k = 0; k < j->n_anchors; k++) {
        oct_yolox_load(&p, k, 0, OCT_YOLOX_AT_CLASSES, x);
        decode(j, x, k, pred + 4 * k);
        is_candidate[k] = false;
        for (int64_t b = 0; b < p.in.n_boxes && !is_candidate[k]; b++)
            is_candidate[k] = is_near(&p, b, k) || (j->box_or_centre && is_inside(&p, b, k));
        all[k] = 0;
        if (!is_candidate[k]) continue;
        oct_yolox_load(&p, k, 0, j->n_channels, x);
        for (int64_t c = OCT_YOLOX_AT_CLASSES; c < j->n_channels; c++)
            all[k] -= log_of(1 - joint(x[c], x[OCT_YOLOX_AT_OBJ]));
    }
    oct_assign_ota(&(oct_ota){oct_int(j->node, OCT_YOLOX_TOPK), pair, &p}, &p.in, is_candidate,
                   &out);
}

void oct_yolox_assign(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        assign(arg, i);
}
