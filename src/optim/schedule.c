/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates by step. */
#include "optim/schedule.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

const oct_schedule_word oct_decay_words[] = {
    {"constant", "the same rate all the time", OCT_DECAY_CONSTANT},
    {"step", "times a factor at each milestone", OCT_DECAY_STEP},
    {"cosine", "along half a cosine, to the final ratio", OCT_DECAY_COSINE},
    {"linear", "along a line, to the final ratio", OCT_DECAY_LINEAR},
    {NULL, NULL, 0},
};

const oct_schedule_word oct_warmup_words[] = {
    {"none", "begins with the full rate", OCT_WARMUP_NONE},
    {"linear", "rises along a line", OCT_WARMUP_LINEAR},
    {"quadratic", "rises with the square of the step", OCT_WARMUP_QUADRATIC},
    {NULL, NULL, 0},
};

const oct_schedule_word *oct_schedule_word_find(const oct_schedule_word *words, const char *name)
{
    for (; words->name; words++)
        if (strcmp(words->name, name) == 0) return words;
    return NULL;
}

void oct_schedule_init(oct_schedule *s)
{
    *s = (oct_schedule){.lr = 0.01,
                        .final_ratio = 1.0,
                        .momentum = -1,
                        .factor = 0.1,
                        .steps_per_epoch = 1,
                        .epochs = 1,
                        .warmup_bias = -1,
                        .warmup_momentum = -1};
}

static const char *wrong_warmup(const oct_schedule *s)
{
    if (!(s->warmup_steps >= 0 && s->warmup_epochs >= 0 && s->warmup_least_steps >= 0 &&
          s->warmup_most_epochs >= 0))
        return "the length of the warm-up must not be negative";
    if (!(s->warmup_start >= 0 && s->warmup_ratio >= 0 && isfinite(s->warmup_start) &&
          isfinite(s->warmup_ratio) && isfinite(s->warmup_bias)))
        return "the rate where the warm-up begins must not be negative";
    if (!(s->warmup_momentum < 1 && s->momentum < 1)) return "the momentum must be below 1";
    if (s->warmup_momentum >= 0 && s->momentum < 0)
        return "a momentum that warms up needs one to arrive at";
    return NULL;
}

static const char *wrong(const oct_schedule *s)
{
    if (!(s->lr >= 0) || !isfinite(s->lr)) return "the learning rate must not be negative";
    if (!(s->final_ratio >= 0) || !isfinite(s->final_ratio))
        return "the final ratio must not be negative";
    if (s->steps_per_epoch < 1) return "an epoch must have at least one step";
    if (!(s->epochs > 0) || !isfinite(s->epochs * (double)s->steps_per_epoch))
        return "the number of epochs must be above 0";
    if (!(s->horizon >= 0 && isfinite(s->horizon))) return "the horizon must not be negative";
    if (!(s->constant_end >= 0)) return "the epochs at the end must not be negative";
    if (s->n_milestones < 0 || s->n_milestones > OCT_SCHEDULE_MAX_MILESTONES)
        return "too many milestones";
    for (int i = 0; i < s->n_milestones; i++)
        if (!(s->milestone[i] >= (i ? s->milestone[i - 1] : 0.0)))
            return "milestones must be epochs in ascending order";
    if (!(s->factor >= 0) || !isfinite(s->factor)) return "the factor must not be negative";
    return wrong_warmup(s);
}

oct_status oct_schedule_check(oct_ctx *ctx, const oct_schedule *s)
{
    const char *why = wrong(s);

    return why ? oct_fail(ctx, OCT_ERR_ARG, "schedule: %s", why) : OCT_OK;
}

/* Steps of the warm-up. */
static double warmup_length(const oct_schedule *s)
{
    const double epoch = (double)s->steps_per_epoch;
    double n = s->warmup_steps > 0 ? s->warmup_steps : s->warmup_epochs * epoch;

    if (s->warmup == OCT_WARMUP_NONE || n <= 0) return 0.0;
    n = fmax(round(n), s->warmup_least_steps);
    return s->warmup_most_epochs > 0 ? fmin(n, round(s->warmup_most_epochs * epoch)) : n;
}

/* How far the fall is, from 0 to 1. */
static double progress(const oct_schedule *s, int64_t step, double warmup)
{
    const double epoch = (double)s->steps_per_epoch;
    const double at =
        s->by_epoch ? (double)(step / s->steps_per_epoch * s->steps_per_epoch) : (double)step;
    const double begin = s->after_warmup ? warmup : 0.0;
    const double end = s->epochs * (s->horizon > 0 ? s->horizon : 1.0) * epoch -
                       s->constant_end * epoch + (s->plus_one ? 1.0 : 0.0);

    if (at <= begin) return 0.0;
    return at >= end ? 1.0 : (at - begin) / (end - begin);
}

/* Of lr, without warm-up. */
static double ratio_at(const oct_schedule *s, int64_t step, double warmup)
{
    const double x = progress(s, step, warmup);
    double ratio = 1.0;

    switch (s->decay) {
    case OCT_DECAY_CONSTANT:
        break;
    case OCT_DECAY_STEP:
        for (int i = 0; i < s->n_milestones; i++)
            if ((double)step >= s->milestone[i] * (double)s->steps_per_epoch) ratio *= s->factor;
        break;
    case OCT_DECAY_COSINE:
        ratio = 0.5 * (1.0 + cos(PI * x)) * (1.0 - s->final_ratio) + s->final_ratio;
        break;
    case OCT_DECAY_LINEAR:
        ratio = (1.0 - x) * (1.0 - s->final_ratio) + s->final_ratio;
        break;
    }
    return ratio;
}

static double between(double a, double b, double x)
{
    return a + (b - a) * x;
}

void oct_schedule_at(const oct_schedule *s, int64_t step, oct_rates *out)
{
    const double warmup = warmup_length(s);
    const double full = s->lr * ratio_at(s, step, warmup);
    const double start = s->warmup_start + s->warmup_ratio * s->lr;
    double x;

    *out = (oct_rates){.lr = full, .bias_lr = full, .momentum = s->momentum};
    if ((double)step >= warmup) return;
    x = (double)step / (s->warmup_closed ? fmax(warmup - 1.0, 1.0) : warmup);
    if (s->warmup == OCT_WARMUP_QUADRATIC) x *= x;
    out->lr = between(start, full, x);
    out->bias_lr = between(s->warmup_bias >= 0 ? s->warmup_bias : start, full, x);
    if (s->warmup_momentum >= 0) out->momentum = between(s->warmup_momentum, s->momentum, x);
}
