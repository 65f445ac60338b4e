/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of pruning: see schedule.h. */
#include "prune/schedule.h"

#include <math.h>
#include <string.h>

struct oct_prune_schedule {
    const char *name;
    double (*level)(double initial, double target, double part); /* part: 0 begin, 1 end */
};

static double baseline(double initial, double target, double part)
{
    (void)initial;
    (void)part;
    return target;
}

/* What is left shrinks by the same factor in each epoch. */
static double exponential(double initial, double target, double part)
{
    return 1 - (1 - initial) * pow((1 - target) / (1 - initial), part);
}

/* a exp(-k part) + b, which has three quarters of the target after an eighth of the epochs: with
 * x = exp(-k / 8), 1 + x + .. + x^7 is known, and grows with x. */
static double exponential_with_bias(double initial, double target, double part)
{
    const double sum = (target - initial) / (.75 * target - initial);
    double low = 0, high = 1, a;

    if (initial >= .75 * target || sum >= 8) return exponential(initial, target, part);
    for (int i = 0; i < 60; i++) {
        const double x = (low + high) / 2;

        *((1 - pow(x, 8)) / (1 - x) < sum ? &low : &high) = x;
    }
    a = (initial - target) / (1 - pow(low, 8));
    return a * pow(low, 8 * part) + initial - a;
}

static const oct_prune_schedule table[] = {
    {"exponential", exponential},
    {"exponential_with_bias", exponential_with_bias},
    {"baseline", baseline},
};

const char *oct_prune_schedule_name(int32_t i)
{
    return i >= 0 && i < (int32_t)OCT_COUNT(table) ? table[i].name : NULL;
}

const oct_prune_schedule *oct_prune_schedule_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

double oct_prune_schedule_level(const oct_prune_schedule *s, double initial, double target,
                                int32_t steps, int32_t epoch)
{
    const double part = steps > 1 ? (double)epoch / (double)(steps - 1) : 1;
    const double level = part >= 1 ? target : s->level(initial, target, part);

    return level < target ? level : target;
}
