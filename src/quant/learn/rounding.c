/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding that is learned: see rounding.h. */
#include "quant/learn/rounding.h"

#include <math.h>

/* How far the sigmoid is stretched beyond 0 and 1. */
#define STRETCH_LOW  (-0.1f)
#define STRETCH_HIGH 1.1f
#define STRETCH      (STRETCH_HIGH - STRETCH_LOW)

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

float oct_adaround_h(float v)
{
    const float h = sigmoid(v) * STRETCH + STRETCH_LOW;

    return h < 0 ? 0 : h > 1 ? 1 : h;
}

float oct_adaround_v(float h)
{
    return -logf(STRETCH / (h - STRETCH_LOW) - 1);
}

double oct_adaround_cost(float h, double b)
{
    return 1 - pow(fabs(2 * (double)h - 1), b);
}

double oct_adaround_slope(float h, double b)
{
    const double d = 2 * (double)h - 1;

    return (d > 0 ? -2 : 2) * b * pow(fabs(d), b - 1);
}

/* The index of a weight's scale. */
static int64_t scale_index(const oct_qpoint *p, int64_t i)
{
    const oct_type *t = &p->value->type;

    if (p->n <= 1) return 0;
    return i / oct_type_span(t, p->spec.axis + 1, t->rank) % p->n;
}

static float fold_of(const oct_qpoint *p, int64_t i)
{
    const oct_type *t = &p->value->type;
    const int64_t inner = oct_type_span(t, 2, t->rank);
    const int64_t row = i / inner / t->dim[1], column = i / inner % t->dim[1];

    return p->fold[row % p->fold_rows * p->fold_columns + column % p->fold_columns];
}

oct_status oct_rounding_make(const oct_qpoint *p, oct_rounding_kind kind, oct_arena *a,
                             oct_rounding *out)
{
    const float *w = p->value->data->data;
    int32_t low, high;

    *out = (oct_rounding){.kind = kind, .len = oct_tensor_len(p->value->data)};
    oct_qspec_limits(&p->spec, &low, &high);
    out->low = (float)low;
    out->high = (float)high;
    out->unit = oct_arena_array(a, (size_t)out->len + 1, sizeof(float));
    out->base = oct_arena_array(a, (size_t)out->len + 1, sizeof(float));
    if (!out->unit || !out->base) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < out->len; i++) {
        out->unit[i] = p->scale[scale_index(p, i)] / (p->fold ? fold_of(p, i) : 1);
        out->base[i] = fminf(fmaxf(floorf(w[i] / out->unit[i]), out->low), out->high - 1);
    }
    return OCT_OK;
}

void oct_rounding_start(const oct_rounding *r, const float *w, float *v)
{
    for (int64_t i = 0; i < r->len; i++) {
        const float x = w[i] / r->unit[i], h = fminf(fmaxf(x - r->base[i], 0), 1);

        v[i] = r->kind == OCT_ROUNDING_LSQ ? x : oct_adaround_v(h);
    }
}

static float held(const oct_rounding *r, float code, float most, float v)
{
    if (code > r->low && v < code - most) return code - most;
    return code < r->high && v > code + most ? code + most : v;
}

void oct_rounding_hold(const oct_rounding *r, const float *now, float most, float *v)
{
    const float up = oct_adaround_v(0.52f); /* the one code is hardly better than the other */

    for (int64_t i = 0; i < r->len; i++) {
        const float code = rintf(now[i] / r->unit[i]);

        if (r->kind == OCT_ROUNDING_LSQ)
            v[i] = held(r, code, most, v[i]);
        else
            v[i] = code > r->base[i] ? fmaxf(v[i], up) : fminf(v[i], -up);
    }
}

void oct_rounding_refine(oct_rounding *r, const float *w, float most, float *v)
{
    for (int64_t i = 0; i < r->len && r->kind == OCT_ROUNDING_ADAROUND; i++)
        v[i] = held(r, r->base[i] + (v[i] >= 0 ? 1.0f : 0.0f), most, w[i] / r->unit[i]);
    r->kind = OCT_ROUNDING_LSQ;
}

static float code_at_end(const oct_rounding *r, float v, int64_t i)
{
    if (r->kind == OCT_ROUNDING_ADAROUND) return r->base[i] + (v >= 0 ? 1.0f : 0.0f);
    return fminf(fmaxf(rintf(v), r->low), r->high);
}

void oct_rounding_values(const oct_rounding *r, const float *v, bool at_end, float *w)
{
    const bool soft = r->kind == OCT_ROUNDING_ADAROUND && !at_end;

    for (int64_t i = 0; i < r->len; i++)
        w[i] = r->unit[i] * (soft ? r->base[i] + oct_adaround_h(v[i]) : code_at_end(r, v[i], i));
}

void oct_rounding_grad(const oct_rounding *r, const float *v, const float *dw, double factor,
                       float *dv)
{
    for (int64_t i = 0; i < r->len; i++) {
        float slope;

        if (r->kind == OCT_ROUNDING_LSQ) {
            slope = v[i] >= r->low - 0.5f && v[i] <= r->high + 0.5f ? 1 : 0;
        } else {
            const float s = sigmoid(v[i]), h = s * STRETCH + STRETCH_LOW;

            slope = h > 0 && h < 1 ? STRETCH * s * (1 - s) : 0;
        }
        dv[i] = (float)factor * dw[i] * r->unit[i] * slope;
    }
}

void oct_rounding_press(const oct_rounding *r, const float *v, double lambda, double b, float *dv)
{
    if (r->kind != OCT_ROUNDING_ADAROUND) return;
    for (int64_t i = 0; i < r->len; i++) {
        const float s = sigmoid(v[i]), h = s * STRETCH + STRETCH_LOW;
        const float d = fabsf(2 * h - 1);

        if (h <= 0 || h >= 1) continue;
        dv[i] += (float)(lambda * 2 * b) * (h > 0.5f ? -1.0f : 1.0f) * powf(d, (float)b - 1) *
                 STRETCH * s * (1 - s);
    }
}

void oct_rounding_pull(const oct_rounding *r, const float *v, double gamma, float *dv)
{
    const float factor = (float)(2 * gamma / (double)OCT_MAX(r->len, (int64_t)1));

    if (r->kind != OCT_ROUNDING_LSQ || !(gamma > 0)) return;
    for (int64_t i = 0; i < r->len; i++)
        dv[i] += factor * r->unit[i] * r->unit[i] * (v[i] - code_at_end(r, v[i], i));
}

/* v where h is 0 or 1 and stays there, whatever momentum is left. */
#define SETTLED 8.0f

enum { BINS = 256 };

/* How far a weight is from being undecided, as one of the bins. */
static int bin_of(float v)
{
    const float d = fabsf(oct_adaround_h(v) - 0.5f) * 2;

    return (int)fminf(d * BINS, BINS - 1);
}

void oct_rounding_settle(const oct_rounding *r, float *v, double share)
{
    const double wanted = share * (double)r->len;
    int64_t count[BINS] = {0}, n = 0;
    int from = BINS;

    if (r->kind != OCT_ROUNDING_ADAROUND) return;
    for (int64_t i = 0; i < r->len; i++)
        count[bin_of(v[i])]++;
    while (from > 0 && (double)n < wanted)
        n += count[--from];
    for (int64_t i = 0; i < r->len; i++)
        if (bin_of(v[i]) >= from) v[i] = v[i] >= 0 ? SETTLED : -SETTLED;
}
