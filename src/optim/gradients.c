/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over micro-batches, norms and clipping. */
#include "optim/gradients.h"

#include <math.h>

#include "base/parallel.h"

#define LANES 8 /* sums side by side: what a compiler can keep in vectors, whatever their width */

typedef struct job {
    const oct_params *p;
    const float *const *grad; /* NULL: `flat` */
    const float *flat;
    float *sum;
    float factor;
    bool first;
} job;

/* The numbers that a chunk is about; NULL: it is left out. */
static const float *chunk_data(const job *j, const oct_param_chunk *c)
{
    const oct_param *v = &j->p->v[c->param];

    if (!j->grad) return j->flat + v->offset + c->begin;
    return v->frozen || !j->grad[c->param] ? NULL : j->grad[c->param] + c->begin;
}

/* In one order, whatever the instruction set: lane i has the elements i, i + LANES, .. */
static double sum_squares(const float *x, int64_t n)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)x[i + k] * (double)x[i + k];
    }
    for (int k = 0; i < n; i++, k++)
        lane[k] += (double)x[i] * (double)x[i];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

static void norm_chunks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const oct_param_chunk *c = &j->p->chunks[i];
        const float *x = chunk_data(j, c);

        j->p->partial[i] = x ? sum_squares(x, c->end - c->begin) : 0.0;
    }
}

/* The first number that is none. Squares of floats do not overflow a double, nor do their sums. */
static void find_bad(const job *j, oct_grad_norm *out)
{
    for (int64_t i = 0; i < j->p->n_chunks; i++) {
        const oct_param_chunk *c = &j->p->chunks[i];
        const float *x = chunk_data(j, c);

        if (!x || isfinite(j->p->partial[i])) continue;
        for (int64_t k = 0; k < c->end - c->begin; k++) {
            if (isfinite(x[k])) continue;
            out->bad = c->param;
            out->bad_index = c->begin + k;
            out->bad_value = x[k];
            return;
        }
    }
}

static void find_norm(job *j, int n_threads, oct_grad_norm *out)
{
    double sum = 0;

    *out = (oct_grad_norm){.bad = -1};
    oct_parallel_for(n_threads, j->p->n_chunks, 1, norm_chunks, j);
    for (int64_t i = 0; i < j->p->n_chunks; i++)
        sum += j->p->partial[i];
    out->norm = sqrt(sum);
    if (!isfinite(sum)) find_bad(j, out);
}

void oct_grads_norm(const oct_params *p, const float *const *grad, int n_threads,
                    oct_grad_norm *out)
{
    job j = {.p = p, .grad = grad};

    find_norm(&j, n_threads, out);
}

void oct_params_norm(const oct_params *p, const float *flat, int n_threads, oct_grad_norm *out)
{
    job j = {.p = p, .flat = flat};

    find_norm(&j, n_threads, out);
}

double oct_grads_clip(double norm, double max)
{
    const double factor = max / (norm + 1e-6);

    return max > 0 && factor < 1.0 ? factor : 1.0;
}

static void sum_chunks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const float factor = j->factor;

    for (int64_t i = begin; i < end; i++) {
        const oct_param_chunk *c = &j->p->chunks[i];
        const float *restrict x = chunk_data(j, c);
        float *restrict sum = j->sum + j->p->v[c->param].offset + c->begin;
        const int64_t n = c->end - c->begin;

        for (int64_t k = 0; x && j->first && k < n; k++)
            sum[k] = x[k] * factor;
        for (int64_t k = 0; x && !j->first && k < n; k++)
            sum[k] += x[k] * factor;
    }
}

void oct_grads_sum(const oct_params *p, float *sum, const float *const *grad, double factor,
                   bool first, int n_threads)
{
    job j = {.p = p, .grad = grad, .sum = sum, .factor = (float)factor, .first = first};

    oct_parallel_for(n_threads, p->n_chunks, 1, sum_chunks, &j);
}
