/* SPDX-License-Identifier: Apache-2.0 */
/* GflLoss: its terms, and the operator. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "loss/assign_ota.h"
#include "loss/gfl.h"
#include "op/grad/rules.h"
#include "op/work.h"

static const double ALPHA = .75;     /* of varifocal; its gamma and quality focal's beta are 2 */
static const double BELOW_LAST = .1; /* how far a target distance stays below the last bin */

/* --- terms --- */

/* Varifocal on a probability: its derivative is by p. Logarithms and denominators are bounded as
 * frameworks do. */
static oct_term varifocal_p(double p, double q)
{
    const double log_p = p > 0 ? fmax(log(p), -100) : -100;
    const double log_n = p < 1 ? fmax(log1p(-p), -100) : -100;
    const double slope = 1 / fmax(p * (1 - p), 1e-12);

    if (q > 0) return (oct_term){q * (-q * log_p - (1 - q) * log_n), q * (p - q) * slope};
    return (oct_term){ALPHA * p * p * -log_n, ALPHA * (2 * p * -log_n + p * p * p * slope)};
}

/*
 * The same, or quality focal, on a logit x with probability p. There is one for each anchor and
 * class, so p, which assigning needs as well, is not computed again (pieces.c has the plain forms).
 */
static oct_term class_term(const oct_gfl_form *f, double x, double p, double q)
{
    const double softplus = x > 0 ? x - log(p) : -log1p(-p), n = 1 - p, d = p - q;
    const double bce = softplus - q * x;

    if (!f->is_varifocal) return (oct_term){d * d * bce, 2 * d * p * n * bce + d * d * d};
    if (q > 0) return (oct_term){q * bce, q * d};
    return (oct_term){ALPHA * p * p * bce, ALPHA * p * p * (2 * n * bce + p)};
}

/* The weight of an assigned anchor's box. */
static double box_weight(const oct_gfl_picture *p, const oct_assigned *t, int64_t k)
{
    double most = 0;

    if (p->j->form->is_probability) return t->q[k];
    for (int64_t c = 0; c < p->in.n_classes; c++)
        most = fmax(most, p->in.score[k * p->in.n_classes + c]);
    return most;
}

/* Overlap and distances of an assigned anchor, in strides. */
static void add_box(const oct_gfl_picture *p, int64_t k, const double *truth, double w, double *sum)
{
    const oct_gfl_job *j = p->j;
    const double s = p->in.stride[k];
    const double w_iou = w * j->scale[OCT_GFL_IOU], w_dfl = w * j->scale[OCT_GFL_DFL] / 4;
    double pred[4], target[4], slope[4], prob[OCT_GFL_MAX_BINS], dz[OCT_GFL_MAX_BINS];
    double all[4 * OCT_GFL_MAX_BINS];

    oct_gfl_load(j, p->first + k, all);
    for (int e = 0; e < 4; e++) {
        pred[e] = p->in.pred[4 * k + e] / s;
        target[e] = truth[e] / s;
    }
    sum[OCT_GFL_IOU] += w_iou * oct_loss_giou(pred, target, &j->form->giou, slope);
    for (int e = 0; e < 4; e++) {
        const double sign = e < 2 ? -1 : 1; /* of a distance in its corner */
        const double away = sign * (target[e] - p->in.point[2 * k + e % 2] / s);
        const double y = fmin(fmax(away, 0), j->bins - 1 - BELOW_LAST);
        const double *z = all + (ptrdiff_t)e * j->bins, d = oct_dfl_decode(z, j->bins, prob);

        sum[OCT_GFL_DFL] += w_dfl * oct_loss_dfl(z, j->bins, y, dz);
        for (int b = 0; b < j->bins; b++)
            dz[b] = w_dfl * dz[b] + w_iou * sign * slope[e] * prob[b] * (b - d);
        if (j->dz)
            oct_store_f64(j->dz->type.dtype, j->dz->data, (4 * (p->first + k) + e) * j->bins,
                          j->bins, dz);
    }
}

/* The scores of an anchor. */
static void add_classes(const oct_gfl_picture *p, int64_t k, int32_t label, double q, double *x,
                        double *sum)
{
    const oct_gfl_job *j = p->j;
    const int64_t n = j->n_classes, at = (p->first + k) * n;
    const double scale = j->scale[OCT_GFL_CLS], *score = p->in.score + k * n;
    double *dx = x + n;

    oct_load_f64(j->x->type.dtype, j->x->data, at, n, x);
    for (int64_t c = 0; c < n; c++) {
        const double target = c == label ? q : 0;
        const oct_term t = j->form->is_probability ? varifocal_p(x[c], target)
                                                   : class_term(j->form, x[c], score[c], target);

        sum[OCT_GFL_CLS] += scale * t.value;
        dx[c] = scale * t.slope;
    }
    if (j->dx) oct_store_f64(j->dx->type.dtype, j->dx->data, at, n, dx);
}

static void add_pictures(void *arg, int64_t begin, int64_t end)
{
    const oct_gfl_job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const oct_gfl_picture p = oct_gfl_picture_of(j, i);
        const oct_assigned t = oct_gfl_assigned_of(j, i);
        double *sum = j->sum + i * OCT_GFL_PARTS, *row = j->row + 2 * i * j->n_classes;

        for (int64_t k = 0; k < j->n_anchors; k++) {
            add_classes(&p, k, t.label[k], t.q[k], row, sum);
            if (t.box[k] >= 0)
                add_box(&p, k, &p.in.box[4 * (int64_t)t.box[k]], box_weight(&p, &t, k), sum);
        }
    }
}

/* What the sums are multiplied with: weights over the numbers that the form divides by. */
static void find_scales(oct_gfl_job *j)
{
    const oct_gfl_form *f = j->form;
    double n_cls = 0, n_box = 0, n_all = 0;

    for (int64_t i = 0; i < j->n_pictures; i++) {
        const oct_gfl_picture p = oct_gfl_picture_of(j, i);
        const oct_assigned t = oct_gfl_assigned_of(j, i);
        double n = 0;

        for (int64_t k = 0; k < j->n_anchors; k++) {
            if (t.box[k] < 0) continue;
            n++;
            n_box += box_weight(&p, &t, k);
        }
        n_all += n;
        n_cls += f->counts_each ? fmax(n, 1) : n;
    }
    n_cls = f->is_probability ? fmax(n_box, 1) : fmax(n_cls, 1);
    if (f->at_least_1) n_box = fmax(n_box, 1);
    for (int k = 0; k < OCT_GFL_PARTS; k++) {
        const double over = k == OCT_GFL_CLS ? n_cls : n_box;

        j->scale[k] = (double)oct_f32(j->node, OCT_GFL_WEIGHTS + k) / over;
        if (!f->at_least_1 && n_all == 0) j->scale[k] = 0;
    }
}

/* --- the operator --- */

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *z, *t;

    OCT_TRY(oct_loss_need(q, OCT_GFL_SCORES, OCT_PRED_RANK, OCT_SET_FLOAT, &x));
    OCT_TRY(oct_loss_need(q, OCT_GFL_DISTANCES, OCT_PRED_RANK, OCT_SET_FLOAT, &z));
    OCT_TRY(oct_loss_need(q, OCT_GFL_LABELS, 3, OCT_SET_FLOAT, &t));
    if (oct_type_is_static(x) && oct_type_is_static(z)) {
        if (x->dim[0] != z->dim[0] || x->dim[1] != z->dim[1])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "scores and distances do not fit each other");
        if (x->dim[2] < 1 || x->dim[2] > INT32_MAX)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld classes", (long long)x->dim[2]);
        if (z->dim[2] % 4 || z->dim[2] < 4 * OCT_GFL_MIN_BINS || z->dim[2] > 4 * OCT_GFL_MAX_BINS)
            return oct_infer_fail(q, OCT_ERR_SHAPE,
                                  "%lld numbers are no four distributions of %d to %d bins",
                                  (long long)z->dim[2], OCT_GFL_MIN_BINS, OCT_GFL_MAX_BINS);
    }
    OCT_TRY(oct_loss_fits(q, x, t));
    return oct_loss_shape(q, 2, OCT_GFL_PARTS);
}

static oct_status read_attributes(const oct_args *a, oct_gfl_job *j)
{
    static const oct_gfl_form *const forms[] = {&oct_gfl_nanodet, &oct_gfl_nanodet_plus,
                                                &oct_gfl_picodet, &oct_gfl_picodet_v2};
    static const char *const assigners[] = {"atss", "tal", "dsl", "simota"};
    const oct_node *n = a->node;
    const int64_t topk = oct_int(n, OCT_GFL_TOPK);
    int assigner = -1;

    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (strcmp(forms[i]->name, n->attr[OCT_GFL_FORM].s) == 0) j->form = forms[i];
    for (size_t i = 0; i < OCT_COUNT(assigners); i++)
        if (strcmp(assigners[i], n->attr[OCT_GFL_ASSIGNER].s) == 0) assigner = (int)i;
    if (!j->form || assigner < 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "form '%.40s' with assigner '%.40s'",
                             n->attr[OCT_GFL_FORM].s, n->attr[OCT_GFL_ASSIGNER].s);
    if (topk < 1 || topk > OCT_OTA_MAX_TOPK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "topk must be from 1 to %d", OCT_OTA_MAX_TOPK);
    j->assigner = (oct_gfl_assigner)assigner;
    return oct_loss_levels(n, OCT_GFL_STRIDES, OCT_GFL_SIZES, j->n_anchors, &j->levels);
}

static oct_status allocate(const oct_args *a, oct_gfl_job *j)
{
    const size_t n = (size_t)j->n_anchors, all = (size_t)(j->n_pictures * j->n_anchors) + 1;

    j->work_size = oct_gfl_work_size(j);
    j->point = oct_args_scratch(a, n, 2 * sizeof(double));
    j->stride = oct_args_scratch(a, n, sizeof(double));
    j->score = oct_args_scratch(a, all, (size_t)j->n_classes * sizeof(double));
    j->row =
        oct_args_scratch(a, (size_t)j->n_pictures + 1, 2 * (size_t)j->n_classes * sizeof(double));
    j->pred = oct_args_scratch(a, all, 4 * sizeof(double));
    j->all = oct_args_scratch(a, all, sizeof(double));
    j->is_candidate = oct_args_scratch(a, all, sizeof(bool));
    j->work = oct_args_scratch(a, (size_t)j->n_pictures + 1, j->work_size);
    j->assigned.box = oct_args_scratch(a, all, sizeof(int32_t));
    j->assigned.label = oct_args_scratch(a, all, sizeof(int32_t));
    j->assigned.q = oct_args_scratch(a, all, sizeof(double));
    j->sum = oct_args_scratch(a, (size_t)j->n_pictures + 1, OCT_GFL_PARTS * sizeof(double));
    if (!j->point || !j->stride || !j->score || !j->row || !j->pred || !j->all ||
        !j->is_candidate || !j->work || !j->assigned.box || !j->assigned.label || !j->assigned.q ||
        !j->sum)
        return OCT_ERR_MEMORY;
    oct_anchors_fill(&j->levels, j->form->offset, j->point, j->stride);
    for (size_t i = 0; i < 2 * n; i++)
        j->point[i] += j->form->shift;
    return OCT_OK;
}

static oct_status gfl_ref(const oct_args *a)
{
    oct_gfl_job j = {.node = a->node};
    double parts[OCT_GFL_PARTS] = {0};

    OCT_TRY(oct_args_check(a));
    j.n_pictures = a->in[OCT_GFL_SCORES]->type.dim[0];
    j.n_anchors = a->in[OCT_GFL_SCORES]->type.dim[1];
    j.n_classes = a->in[OCT_GFL_SCORES]->type.dim[2];
    j.bins = (int)(a->in[OCT_GFL_DISTANCES]->type.dim[2] / 4);
    OCT_TRY(read_attributes(a, &j));
    j.x = a->in[OCT_GFL_SCORES];
    j.z = a->in[OCT_GFL_DISTANCES];
    j.dx = oct_args_out(a, 2);
    j.dz = oct_args_out(a, 3);
    oct_loss_clear(j.dz); /* of anchors that are not assigned */
    OCT_TRY(oct_label_boxes_read(a, OCT_GFL_LABELS, j.n_classes, &j.boxes));
    OCT_TRY(allocate(a, &j));
    oct_parallel_for(a->n_threads, j.n_pictures, 1, oct_gfl_assign, &j);
    find_scales(&j);
    oct_parallel_for(a->n_threads, j.n_pictures, 1, add_pictures, &j);
    for (int64_t i = 0; i < j.n_pictures * OCT_GFL_PARTS; i++)
        parts[i % OCT_GFL_PARTS] += j.sum[i];
    oct_loss_store(a, parts, OCT_GFL_PARTS);
    return OCT_OK;
}

#define WEIGHT(part) [OCT_GFL_WEIGHTS + (part)]
static const oct_attr_def attrs[] = {
    WEIGHT(OCT_GFL_CLS) = {.name = "weight_cls", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    WEIGHT(OCT_GFL_IOU) = {.name = "weight_iou", .kind = OCT_ATTR_F32, .def = {.f = 2}},
    WEIGHT(OCT_GFL_DFL) = {.name = "weight_dfl", .kind = OCT_ATTR_F32, .def = {.f = .25F}},
    [OCT_GFL_TOPK] = {.name = "topk", .kind = OCT_ATTR_INT, .def = {.i = 9}},
    [OCT_GFL_RADIUS] = {.name = "radius", .kind = OCT_ATTR_F32, .def = {.f = 2.5F}},
    [OCT_GFL_ASSIGNER] = {.name = "assigner", .kind = OCT_ATTR_STRING, .def = {.s = "atss"}},
    [OCT_GFL_FORM] = {.name = "form", .kind = OCT_ATTR_STRING, .def = {.s = "nanodet"}},
    [OCT_GFL_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .required = true},
    [OCT_GFL_SIZES] = {.name = "sizes", .kind = OCT_ATTR_INTS, .required = true},
    {0},
};
#undef WEIGHT

const oct_op oct_op_gfl_loss = {
    .name = "GflLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = gfl_ref,
    .grad = oct_loss_grad,
};
