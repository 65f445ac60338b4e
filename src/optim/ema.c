/* SPDX-License-Identifier: Apache-2.0 */
/* The moving average of weights and running statistics. */
#include "optim/ema.h"

#include <math.h>
#include <string.h>

static double constant_decay(double decay, int64_t n, int64_t total)
{
    (void)n;
    (void)total;
    return decay;
}

/* Little of the first updates is kept: they are far from where training ends. */
static double rising_decay(double decay, int64_t n, int64_t total)
{
    (void)total;
    return decay * (1.0 - exp(-(double)n / 2000.0));
}

static double threshold_decay(double decay, int64_t n, int64_t total)
{
    (void)total;
    return fmin(decay, (1.0 + (double)n) / (10.0 + (double)n));
}

static double exp_decay(double decay, int64_t n, int64_t total)
{
    return decay * (1.0 - exp(-15.0 * (double)n / (double)OCT_MAX(total, 1)));
}

/* PaddleDetection counts from 0. */
static double paddle_decay(double decay, int64_t n, int64_t total)
{
    return threshold_decay(decay, n - 1, total);
}

static const oct_ema_row rows[] = {
    {"constant", "the same decay all the time", 0.9998, constant_decay, false},
    {"ultralytics", "0.9999 (1 - e^(-n/2000))", 0.9999, rising_decay, false},
    {"yolox", "0.9998 (1 - e^(-n/2000))", 0.9998, rising_decay, false},
    {"nanodet", "as yolox", 0.9998, rising_decay, false},
    {"threshold", "(1 + n) / (10 + n), at most 0.9997: YOLO-NAS", 0.9997, threshold_decay, false},
    {"exp", "0.9999 (1 - e^(-15 n/N)) for N steps in all", 0.9999, exp_decay, false},
    {"paddle", "(1 + n) / (10 + n), at most 0.9998, from zeros", 0.9998, paddle_decay, true},
};

const oct_ema_row *oct_ema_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(rows) ? &rows[i] : NULL;
}

const oct_ema_row *oct_ema_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static double decay_at(const oct_ema_row *row, double decay, int64_t n, int64_t total)
{
    return row->at(decay > 0 ? decay : row->decay, n, total);
}

void oct_ema_start(const oct_ema_row *row, float *average, const float *live, int64_t len)
{
    if (row->from_zero)
        memset(average, 0, (size_t)len * sizeof(*average));
    else
        memcpy(average, live, (size_t)len * sizeof(*average));
}

typedef struct job {
    float *out;
    const float *average, *live;
    float keep, take;
} job;

static void update_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float *restrict out = j->out;
    const float *restrict live = j->live;

    for (int64_t i = begin; i < end; i++)
        out[i] = j->keep * out[i] + j->take * live[i];
}

void oct_ema_update(const oct_ema_row *row, double decay, int64_t n, int64_t total, float *average,
                    const float *live, int64_t len, int n_threads)
{
    const double d = decay_at(row, decay, n, total);
    job j = {.out = average, .live = live, .keep = (float)d, .take = (float)(1.0 - d)};

    oct_parallel_for(n_threads, len, OCT_GRAIN_ELEMENTS, update_range, &j);
}

double oct_ema_weight(const oct_ema_row *row, double decay, int64_t n, int64_t total)
{
    return row->from_zero ? 1.0 - pow(decay_at(row, decay, n, total), (double)n) : 1.0;
}

static void read_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++)
        j->out[i] = j->average[i] * j->take;
}

void oct_ema_read(const oct_ema_row *row, double decay, int64_t n, int64_t total,
                  const float *average, const float *live, float *out, int64_t len, int n_threads)
{
    const double weight = n > 0 ? oct_ema_weight(row, decay, n, total) : 1.0;
    job j = {.out = out, .average = n > 0 ? average : live, .take = (float)(1.0 / weight)};

    oct_parallel_for(n_threads, len, OCT_GRAIN_ELEMENTS, read_range, &j);
}
