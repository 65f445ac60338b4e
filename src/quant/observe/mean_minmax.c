/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mean_minmax: the mean over all samples of their smallest and largest numbers.
 *
 * Sums are doubles: floats of similar size add up exactly, so the order does not matter.
 */
#include "quant/observe/observer.h"

typedef struct mean_minmax {
    oct_scan *now; /* oct_observer_n_ranges() */
    double *low, *high;
} mean_minmax;

static oct_status init(oct_observer *o)
{
    const size_t n = (size_t)oct_observer_n_ranges(o);
    mean_minmax *m = o->state;

    m->now = oct_calloc(o->ctx, n, sizeof(*m->now));
    m->low = oct_calloc(o->ctx, n, sizeof(*m->low));
    m->high = oct_calloc(o->ctx, n, sizeof(*m->high));
    return m->now && m->low && m->high ? OCT_OK : OCT_ERR_MEMORY;
}

static void see(oct_observer *o, const oct_value_view *s)
{
    mean_minmax *m = o->state;

    if (!oct_observer_scan(o, s, m->now)) return;
    for (int64_t i = 0; i < oct_observer_n_ranges(o); i++) {
        m->low[i] += (double)m->now[i].low;
        m->high[i] += (double)m->now[i].high;
    }
}

static oct_status merge(oct_observer *o, const oct_observer *other)
{
    mean_minmax *m = o->state;
    const mean_minmax *t = other->state;

    for (int64_t i = 0; i < oct_observer_n_ranges(o); i++) {
        m->low[i] += t->low[i];
        m->high[i] += t->high[i];
    }
    return OCT_OK;
}

static oct_status solve(const oct_observer *o, const oct_qspec *spec, float *low, float *high)
{
    const mean_minmax *m = o->state;

    (void)spec;
    for (int64_t i = 0; i < oct_observer_n_ranges(o); i++) {
        low[i] = (float)(m->low[i] / (double)o->n_samples);
        high[i] = (float)(m->high[i] / (double)o->n_samples);
    }
    return OCT_OK;
}

static void fini(oct_observer *o)
{
    mean_minmax *m = o->state;

    oct_free(o->ctx, m->now);
    oct_free(o->ctx, m->low);
    oct_free(o->ctx, m->high);
}

const oct_observer_row oct_observer_mean_minmax = {
    .name = "mean_minmax",
    .help = "the mean over pictures of their smallest and largest number",
    .size = sizeof(mean_minmax),
    .has_channels = true,
    .init = init,
    .see = see,
    .merge = merge,
    .solve = solve,
    .fini = fini,
};
