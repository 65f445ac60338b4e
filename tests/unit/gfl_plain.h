/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second implementation of the losses of NanoDet and PicoDet: whole matrices of boxes and
 * anchors, probabilities instead of logits, no attention to speed. Targets are computed once, so
 * that its differences are gradients with the assignment held fixed.
 */
#ifndef OCT_TESTS_GFL_PLAIN_H
#define OCT_TESTS_GFL_PLAIN_H

#include "tests/unit/loss_case.h"

enum { PICTURES = 2, SIDE = 64, MAX_ANCHORS = 64 + 16 + 4 + 1, CLASSES = 3, BINS = 8, BOXES = 4 };

typedef struct plain {
    /* the form */
    int levels; /* 3 or 4 */
    const char *assigner;
    int topk;
    double radius;
    bool is_varifocal, is_probability, counts_each, at_least_1, among_takers;
    double offset, shift, margin, weight[3];
    /* predictions and labels; arrays are dense for n_anchors */
    int n_anchors;
    double x[PICTURES * MAX_ANCHORS * CLASSES], z[PICTURES * MAX_ANCHORS * 4 * BINS];
    double label[PICTURES][BOXES][OCT_LABEL_SIZE];
    /* targets */
    int match[PICTURES][MAX_ANCHORS];
    double q[PICTURES][MAX_ANCHORS], w[PICTURES][MAX_ANCHORS], n_cls, n_box;
} plain;

/* Matrices of one picture. */
typedef struct pairs {
    int n; /* boxes */
    double box[MAX_ANCHORS][4];
    double iou[BOXES][MAX_ANCHORS], value[BOXES][MAX_ANCHORS];
    bool taken[BOXES][MAX_ANCHORS];
} pairs;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double score_of(const plain *p, int i, int k, int c)
{
    const double x = p->x[(i * p->n_anchors + k) * CLASSES + c];

    return p->is_probability ? x : sigmoid(x);
}

static void point_of(const plain *p, int k, double at[2], double *stride)
{
    int s = 8;

    for (; k >= SIDE / s * (SIDE / s); s *= 2)
        k -= SIDE / s * (SIDE / s);
    at[0] = (k % (SIDE / s) + p->offset) * s + p->shift;
    at[1] = (double)(k / (SIDE / s)) * s + p->offset * s + p->shift;
    *stride = s;
}

static double mean_distance(const double *z)
{
    double all = 0, sum = 0;

    for (int b = 0; b < BINS; b++) {
        all += exp(z[b]);
        sum += b * exp(z[b]);
    }
    return sum / all;
}

static void box_of(const plain *p, int i, int k, double box[4])
{
    const double *z = p->z + (i * p->n_anchors + k) * 4 * BINS;
    double at[2], s;

    point_of(p, k, at, &s);
    for (int e = 0; e < 4; e++)
        box[e] = at[e % 2] + (e < 2 ? -1 : 1) * s * mean_distance(z + e * BINS);
}

static double overlap(const double *a, const double *b, double *giou)
{
    const double w = fmin(a[2], b[2]) - fmax(a[0], b[0]), h = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double inter = w > 0 && h > 0 ? w * h : 0;
    const double uni = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter;
    const double all =
        (fmax(a[2], b[2]) - fmin(a[0], b[0])) * (fmax(a[3], b[3]) - fmin(a[1], b[1]));

    if (giou) *giou = inter / uni - (all - uni) / all;
    return inter / uni;
}

static bool is_inside(const plain *p, const double *box, int k, double margin)
{
    double at[2], s;

    point_of(p, k, at, &s);
    return at[0] - box[0] > margin && at[1] - box[1] > margin && box[2] - at[0] > margin &&
           box[3] - at[1] > margin;
}

static bool is_near(const plain *p, const double *box, int k)
{
    double at[2], s;

    point_of(p, k, at, &s);
    return fabs(at[0] - (box[0] + box[2]) / 2) < p->radius * s &&
           fabs(at[1] - (box[1] + box[3]) / 2) < p->radius * s;
}

/* The index in [begin, end) of the least value that is allowed and not used; -1: none. */
static int least_of(const double *v, const bool *allowed, const bool *used, int begin, int end)
{
    int best = -1;

    for (int k = begin; k < end; k++)
        if ((!allowed || allowed[k]) && !used[k] && (best < 0 || v[k] < v[best])) best = k;
    return best;
}

/* --- assigners: m->taken --- */

static void take_atss(const plain *p, int i, int j, pairs *m)
{
    const double *box = p->label[i][j] + 1;
    int begin = 0, n = 0, pick[4 * 9];
    double far[MAX_ANCHORS], mean = 0, var = 0;
    bool used[MAX_ANCHORS] = {false};

    for (int k = 0; k < p->n_anchors; k++) {
        double at[2], s;

        point_of(p, k, at, &s);
        far[k] = hypot(at[0] - (box[0] + box[2]) / 2, at[1] - (box[1] + box[3]) / 2);
        m->value[j][k] = overlap(
            box, (double[]){at[0] - 2.5 * s, at[1] - 2.5 * s, at[0] + 2.5 * s, at[1] + 2.5 * s},
            NULL);
    }
    for (int l = 0; l < p->levels; l++) {
        const int end = begin + (SIDE >> (3 + l)) * (SIDE >> (3 + l));

        for (int t = 0, k; t < 9 && (k = least_of(far, NULL, used, begin, end)) >= 0; t++) {
            used[k] = true;
            pick[n++] = k;
        }
        begin = end;
    }
    for (int t = 0; t < n; t++)
        mean += m->value[j][pick[t]] / n;
    for (int t = 0; t < n; t++)
        var += (m->value[j][pick[t]] - mean) * (m->value[j][pick[t]] - mean) / (n - 1);
    for (int t = 0; t < n; t++)
        m->taken[j][pick[t]] =
            m->value[j][pick[t]] >= mean + sqrt(var) && is_inside(p, box, pick[t], p->margin);
}

static void take_tal(const plain *p, int i, int j, pairs *m)
{
    const double *row = p->label[i][j];
    double metric[MAX_ANCHORS];
    bool used[MAX_ANCHORS] = {false};

    for (int k = 0; k < p->n_anchors; k++)
        metric[k] = is_inside(p, row + 1, k, 1e-9)
                        ? -score_of(p, i, k, (int)row[0]) * pow(m->iou[j][k], 6)
                        : 0;
    for (int t = 0; t < p->topk; t++) {
        const int k = least_of(metric, NULL, used, 0, p->n_anchors);

        used[k] = true;
        m->taken[j][k] = is_inside(p, row + 1, k, 1e-9);
    }
    memcpy(m->value[j], m->iou[j], sizeof(m->iou[j]));
}

static double prob_bce(double s, double t)
{
    return -t * fmax(log(s), -100) - (1 - t) * fmax(log(1 - s), -100);
}

/* The cost of classes for one pair. */
static double class_cost(const plain *p, int i, int k, int label, double iou)
{
    double sum = 0;

    for (int c = 0; c < CLASSES; c++) {
        const double s = score_of(p, i, k, c), t = c == label ? iou : 0;

        if (strcmp(p->assigner, "dsl") == 0)
            sum += prob_bce(s, t) * (t - s) * (t - s);
        else
            sum += prob_bce(s, t) * (t > 0 ? t : .75 * (s - t) * (s - t));
    }
    return sum;
}

static void take_by_cost(const plain *p, int i, pairs *m)
{
    const bool is_dsl = strcmp(p->assigner, "dsl") == 0;
    bool candidate[MAX_ANCHORS];

    for (int k = 0; k < p->n_anchors; k++) {
        candidate[k] = false;
        for (int j = 0; j < m->n; j++) {
            const double *row = p->label[i][j];
            const bool in = is_inside(p, row + 1, k, 0), near = is_near(p, row + 1, k);
            double giou;

            candidate[k] |= in || (!is_dsl && near);
            overlap(m->box[k], row + 1, &giou);
            m->value[j][k] = class_cost(p, i, k, (int)row[0], m->iou[j][k]);
            m->value[j][k] +=
                is_dsl ? -3 * log(m->iou[j][k] + 1e-7) : 6 * (1 - giou) + (in && near ? 0 : 1e8);
        }
    }
    for (int j = 0; j < m->n; j++) {
        double sum = 0, best[MAX_ANCHORS];
        bool used[MAX_ANCHORS] = {false};

        for (int k = 0; k < p->n_anchors; k++)
            best[k] = -m->iou[j][k];
        for (int t = 0, k;
             t < p->topk && (k = least_of(best, candidate, used, 0, p->n_anchors)) >= 0; t++) {
            used[k] = true;
            sum += m->iou[j][k];
        }
        for (int t = 0, k; t < fmax(floor(sum), 1); t++)
            if ((k = least_of(m->value[j], candidate, m->taken[j], 0, p->n_anchors)) >= 0)
                m->taken[j][k] = true;
    }
}

/* One box for each anchor. By cost: the least of all; else the largest overlap. */
static void settle(plain *p, int i, const pairs *m, bool by_cost)
{
    for (int k = 0; k < p->n_anchors; k++) {
        int n = 0, best = -1;

        for (int j = 0; j < m->n; j++)
            n += m->taken[j][k];
        for (int j = 0; n && j < m->n; j++) {
            const double v = by_cost ? -m->value[j][k] : m->value[j][k];

            if ((n == 1 || p->among_takers) && !m->taken[j][k]) continue;
            if (best < 0 || v > (by_cost ? -m->value[best][k] : m->value[best][k])) best = j;
        }
        p->match[i][k] = best;
        p->q[i][k] = best < 0 ? 0 : m->iou[best][k];
    }
}

/* The aligned metric in place of the overlap. */
static void align(plain *p, int i, const pairs *m)
{
    for (int j = 0; j < m->n; j++) {
        double most = 0, most_iou = 0;

        for (int k = 0; k < p->n_anchors; k++)
            if (p->match[i][k] == j) {
                const double s = score_of(p, i, k, (int)p->label[i][j][0]);

                p->q[i][k] = s * pow(m->iou[j][k], 6);
                most = fmax(most, p->q[i][k]);
                most_iou = fmax(most_iou, m->iou[j][k]);
            }
        for (int k = 0; k < p->n_anchors; k++)
            if (p->match[i][k] == j) p->q[i][k] *= most_iou / (most + 1e-9);
    }
}

static void assign(plain *p)
{
    const bool by_cost = strcmp(p->assigner, "dsl") == 0 || strcmp(p->assigner, "simota") == 0;
    double n_all = 0, sum_q = 0;

    p->n_cls = p->n_box = 0;
    for (int i = 0; i < PICTURES; i++) {
        pairs m = {0};
        double n = 0;

        while (m.n < BOXES && p->label[i][m.n][0] >= 0)
            m.n++;
        for (int k = 0; k < p->n_anchors; k++) {
            box_of(p, i, k, m.box[k]);
            for (int j = 0; j < m.n; j++)
                m.iou[j][k] = overlap(p->label[i][j] + 1, m.box[k], NULL);
        }
        for (int j = 0; j < m.n; j++) {
            if (strcmp(p->assigner, "atss") == 0) take_atss(p, i, j, &m);
            if (strcmp(p->assigner, "tal") == 0) take_tal(p, i, j, &m);
        }
        if (by_cost) take_by_cost(p, i, &m);
        settle(p, i, &m, by_cost);
        if (strcmp(p->assigner, "tal") == 0) align(p, i, &m);
        for (int k = 0; k < p->n_anchors; k++) {
            double most = 0;

            if (p->match[i][k] < 0) continue;
            for (int c = 0; c < CLASSES; c++)
                most = fmax(most, score_of(p, i, k, c));
            p->w[i][k] = p->is_probability ? p->q[i][k] : most;
            p->n_box += p->w[i][k];
            sum_q += p->q[i][k];
            n++;
        }
        n_all += n;
        p->n_cls += p->counts_each ? fmax(n, 1) : n;
    }
    p->n_cls = fmax(p->is_probability ? sum_q : p->n_cls, 1);
    if (p->at_least_1) p->n_box = fmax(p->n_box, 1);
    if (!p->at_least_1 && n_all == 0) p->n_cls = p->n_box = INFINITY;
}

/* --- the loss of these targets --- */

static double class_value(const plain *p, double s, double t)
{
    if (p->is_varifocal) return prob_bce(s, t) * (t > 0 ? t : .75 * s * s);
    return prob_bce(s, t) * (s - t) * (s - t);
}

static double dfl_value(const double *z, double y)
{
    const int low = (int)y;
    double all = 0;

    for (int b = 0; b < BINS; b++)
        all += exp(z[b]);
    return -(low + 1 - y) * log(exp(z[low]) / all) - (y - low) * log(exp(z[low + 1]) / all);
}

static void parts_of(const plain *p, double out[3])
{
    memset(out, 0, 3 * sizeof(*out));
    for (int i = 0; i < PICTURES; i++)
        for (int k = 0; k < p->n_anchors; k++) {
            const double *row = p->label[i][p->match[i][k] < 0 ? 0 : p->match[i][k]];
            const bool is_assigned = p->match[i][k] >= 0;
            double box[4], giou, at[2], s;

            for (int c = 0; c < CLASSES; c++)
                out[0] += class_value(p, score_of(p, i, k, c),
                                      is_assigned && c == (int)row[0] ? p->q[i][k] : 0) /
                          p->n_cls;
            if (!is_assigned) continue;
            point_of(p, k, at, &s);
            box_of(p, i, k, box);
            overlap(box, row + 1, &giou);
            out[1] += p->w[i][k] * (1 - giou) / p->n_box;
            for (int e = 0; e < 4; e++) {
                const double y = (e < 2 ? at[e] - row[1 + e] : row[1 + e] - at[e % 2]) / s;

                out[2] += p->w[i][k] / 4 / p->n_box *
                          dfl_value(p->z + ((i * p->n_anchors + k) * 4 + e) * BINS,
                                    fmin(fmax(y, 0), BINS - 1 - .1));
            }
        }
    for (int k = 0; k < 3; k++)
        out[k] *= p->weight[k];
}

static double plain_value(void *arg)
{
    double parts[3];

    parts_of(arg, parts);
    return parts[0] + parts[1] + parts[2];
}

/* --- comparing --- */

static void fill(plain *p, uint64_t seed)
{
    oct_rng rng;

    oct_rng_init(&rng, seed);
    p->n_anchors = p->levels == 4 ? MAX_ANCHORS : MAX_ANCHORS - 1;
    fill_random(&rng, p->x, (int64_t)PICTURES * p->n_anchors * CLASSES,
                p->is_probability ? .05 : -2, p->is_probability ? .95 : 2);
    fill_random(&rng, p->z, (int64_t)PICTURES * p->n_anchors * 4 * BINS, -1, 1);
    for (int i = 0; i < PICTURES; i++)
        for (int j = 0; j < BOXES; j++) {
            double *row = p->label[i][j];

            row[0] = (double)oct_rng_below(&rng, CLASSES);
            fill_random(&rng, row + 1, 2, 0, 40);
            row[3] = row[1] + 9 + 30 * oct_rng_f64(&rng);
            row[4] = row[2] + 9 + 30 * oct_rng_f64(&rng);
            for (int e = 1; e < OCT_LABEL_SIZE; e++)
                row[e] = (float)row[e];
        }
}

static void begin(loss_case *c, void **state, const char *row, const plain *p)
{
    *c = loss_begin(state, row);
    loss_input(c, "images", OCT_DTYPE_F32, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE}, NULL);
    loss_pred(c, "x", &oct_op_identity, 3, (int64_t[]){PICTURES, p->n_anchors, CLASSES}, p->x);
    loss_pred(c, "z", &oct_op_identity, 3, (int64_t[]){PICTURES, p->n_anchors, (int64_t)4 * BINS},
              p->z);
    c->job.labels = loss_input(c, "labels", OCT_DTYPE_F32, 3,
                               (int64_t[]){PICTURES, BOXES, OCT_LABEL_SIZE}, p->label[0][0]);
}

/* Values and gradients; of distances, those of assigned anchors and some others. The number of
 * assigned anchors. */
static int compare(loss_case *c, plain *p)
{
    double parts[3];
    int n = 0;

    assign(p);
    loss_attach(c);
    loss_run(c);
    parts_of(p, parts);
    for (int k = 0; k < 3; k++)
        assert_near(c->parts[k], parts[k], 1e-6);
    loss_check_grad(c, 0, p->x, (int64_t)PICTURES * p->n_anchors * CLASSES, plain_value, p, 2e-6);
    for (int64_t i = 0; i < (int64_t)PICTURES * p->n_anchors * 4 * BINS; i++) {
        const int64_t anchor = i / (4 * BINS);
        const bool is_assigned = p->match[anchor / p->n_anchors][anchor % p->n_anchors] >= 0;
        const double h = 1e-5, x0 = p->z[i], have = oct_tensor_get_f64(c->grad[1], i);
        double want;

        n += is_assigned && i % (4 * BINS) == 0;
        if (!is_assigned) {
            assert_near(have, 0, 0);
            continue;
        }
        p->z[i] = x0 + h;
        want = plain_value(p);
        p->z[i] = x0 - h;
        want = (want - plain_value(p)) / (2 * h);
        p->z[i] = x0;
        assert_near(have, want, 2e-6);
    }
    loss_end(c);
    return n;
}

#endif
