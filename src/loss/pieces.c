/* SPDX-License-Identifier: Apache-2.0 */
/* The terms that losses of detectors are sums of. */
#include "loss/pieces.h"

#include <math.h>

/* All that terms need of one logit, from one exponential. */
typedef struct logit {
    double p, not_p; /* sigmoid(x), sigmoid(-x): 1 - p of a large x would lose its digits */
    double softplus;
} logit;

static logit logit_of(double x)
{
    const double e = exp(-fabs(x)), large = 1 / (1 + e), small = e / (1 + e);

    return (logit){x >= 0 ? large : small, x >= 0 ? small : large, fmax(x, 0) + log1p(e)};
}

static double power(double x, double y)
{
    return y == 2 ? x * x : pow(x, y);
}

double oct_sigmoid_f64(double x)
{
    const double e = exp(-fabs(x));

    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double oct_softplus(double x)
{
    return logit_of(x).softplus;
}

oct_term oct_loss_bce(double x, double t)
{
    const logit l = logit_of(x);

    return (oct_term){l.softplus - t * x, l.p - t};
}

oct_term oct_loss_varifocal(double x, double q, bool is_label, double alpha, double gamma)
{
    const logit l = logit_of(x);

    if (is_label) return (oct_term){q * (l.softplus - q * x), q * (l.p - q)};
    const double w = alpha * power(l.p, gamma);
    return (oct_term){w * l.softplus, w * (gamma * l.not_p * l.softplus + l.p)};
}

oct_term oct_loss_quality_focal(double x, double q, double beta)
{
    const logit l = logit_of(x);
    const double bce = l.softplus - q * x, d = l.p - q, away = fabs(d), w = power(away, beta);
    double dw = 0;

    if (away > 0) dw = beta * w / d * l.p * l.not_p;
    return (oct_term){w * bce, dw * bce + w * d};
}

oct_term oct_loss_focal(double x, double t, double alpha, double gamma)
{
    const double a = alpha > 0 ? alpha * t + (1 - alpha) * (1 - t) : 1;
    const oct_term f = oct_loss_quality_focal(x, t, gamma);

    return (oct_term){a * f.value, a * f.slope};
}

/* Probabilities into p; the logarithm of their common divisor, so that log p[k] = z[k] - result. */
static double softmax(const double *z, int n, double *p)
{
    double most = z[0], sum = 0;

    for (int k = 1; k < n; k++)
        most = fmax(most, z[k]);
    for (int k = 0; k < n; k++)
        sum += p[k] = exp(z[k] - most);
    for (int k = 0; k < n; k++)
        p[k] /= sum;
    return most + log(sum);
}

double oct_dfl_decode(const double *z, int bins, double *p)
{
    double d = 0;

    (void)softmax(z, bins, p);
    for (int k = 1; k < bins; k++)
        d += k * p[k];
    return d;
}

double oct_loss_dfl(const double *z, int bins, double y, double *dz)
{
    const double log_sum = softmax(z, bins, dz);
    const int low = (int)y, high = low + 1 < bins ? low + 1 : low; /* y = bins - 1: weight 0 */
    const double w_high = y - low, w_low = 1 - w_high;

    dz[low] -= w_low;
    dz[high] -= w_high;
    return w_low * (log_sum - z[low]) + w_high * (log_sum - z[high]);
}

static double area(const double b[4])
{
    return fmax(b[2] - b[0], 0) * fmax(b[3] - b[1], 0);
}

double oct_box_iou(const double a[4], const double b[4], double eps)
{
    const double w = fmin(a[2], b[2]) - fmax(a[0], b[0]);
    const double h = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double both = fmax(w, 0) * fmax(h, 0);

    return both / (area(a) + area(b) - both + eps);
}

/* How much of max(a, b)'s derivative is a's: half at a tie, as PyTorch has it. */
static double share_of_max(double a, double b)
{
    return a > b ? 1 : a < b ? 0 : .5;
}

/* The intersection and the smallest box around both, along one axis. */
typedef struct span {
    double both, around;
    double d_both[2], d_around[2]; /* by the predicted box's low and high end */
} span;

static span span_of(double low, double high, double other_low, double other_high)
{
    const double both = fmin(high, other_high) - fmax(low, other_low);
    span s = {.both = fmax(both, 0), .around = fmax(high, other_high) - fmin(low, other_low)};

    if (both >= 0) {
        s.d_both[0] = -share_of_max(low, other_low);
        s.d_both[1] = share_of_max(other_high, high);
    }
    s.d_around[0] = -share_of_max(other_low, low);
    s.d_around[1] = share_of_max(high, other_high);
    return s;
}

/* The denominator `x` with its eps; false: it does not depend on x. */
static bool guard(double *x, const oct_giou_form *form)
{
    if (form->at_least && *x < form->eps) {
        *x = form->eps;
        return false;
    }
    if (!form->at_least) *x += form->eps;
    return true;
}

double oct_loss_giou(const double pred[4], const double truth[4], const oct_giou_form *form,
                     double grad[4])
{
    const span s[2] = {span_of(pred[0], pred[2], truth[0], truth[2]),
                       span_of(pred[1], pred[3], truth[1], truth[3])};
    const double size[2] = {pred[2] - pred[0], pred[3] - pred[1]};
    const double inter = s[0].both * s[1].both;
    double uni = size[0] * size[1] + (truth[2] - truth[0]) * (truth[3] - truth[1]) - inter;
    double enc = s[0].around * s[1].around;
    const bool uni_moves = guard(&uni, form), enc_moves = guard(&enc, form);

    for (int i = 0; grad && i < 4; i++) {
        const int axis = i % 2, end = i / 2;
        const double di = s[axis].d_both[end] * s[!axis].both;
        const double du = uni_moves ? (end ? 1 : -1) * size[!axis] - di : 0;
        const double dc = enc_moves ? s[axis].d_around[end] * s[!axis].around : 0;

        /* loss = 2 - inter / uni - uni / enc */
        grad[i] = -di / uni + inter * du / (uni * uni) - du / enc + uni * dc / (enc * enc);
    }
    return 1 - (inter / uni - (enc - uni) / enc);
}

double oct_loss_ciou(const double pred[4], const double truth[4], double eps, double grad[4])
{
    const double four_by_pi2 = 4 / (3.14159265358979323846 * 3.14159265358979323846);
    const span s[2] = {span_of(pred[0], pred[2], truth[0], truth[2]),
                       span_of(pred[1], pred[3], truth[1], truth[3])};
    const double size[2] = {pred[2] - pred[0], pred[3] - pred[1] + eps};
    const double w = truth[2] - truth[0], h = truth[3] - truth[1] + eps;
    const double inter = s[0].both * s[1].both, uni = size[0] * size[1] + w * h - inter + eps;
    const double iou = inter / uni;
    const double c2 = s[0].around * s[0].around + s[1].around * s[1].around + eps;
    const double off[2] = {truth[0] + truth[2] - pred[0] - pred[2],
                           truth[1] + truth[3] - pred[1] - pred[3]};
    const double rho2 = (off[0] * off[0] + off[1] * off[1]) / 4;
    const double turn = atan(w / h) - atan(size[0] / size[1]), v = four_by_pi2 * turn * turn;
    const double weight = v / (v - iou + (1 + eps));
    const double r2 = size[0] * size[0] + size[1] * size[1];
    const double d_atan[2] = {size[1] / r2, -size[0] / r2}; /* of atan(width / height) */

    for (int i = 0; grad && i < 4; i++) {
        const int axis = i % 2, end = i / 2;
        const double sign = end ? 1 : -1;
        const double di = s[axis].d_both[end] * s[!axis].both;
        const double du = sign * size[!axis] - di;
        const double d_iou = di / uni - inter * du / (uni * uni);
        const double d_c2 = 2 * s[axis].around * s[axis].d_around[end];
        const double d_rho2 = -off[axis] / 2;
        const double d_v = -2 * four_by_pi2 * turn * d_atan[axis] * sign;

        grad[i] = -d_iou + d_rho2 / c2 - rho2 * d_c2 / (c2 * c2) + weight * d_v;
    }
    return 1 - (iou - (rho2 / c2 + v * weight));
}
