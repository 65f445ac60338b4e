/* SPDX-License-Identifier: Apache-2.0 */
/* minmax: from the smallest to the largest number ever seen. */
#include <math.h>

#include "quant/observe/observer.h"

typedef struct minmax {
    oct_scan *seen, *now; /* oct_observer_n_ranges() */
} minmax;

static oct_status init(oct_observer *o)
{
    const size_t n = (size_t)oct_observer_n_ranges(o);
    minmax *m = o->state;

    m->seen = oct_calloc(o->ctx, n, sizeof(*m->seen));
    m->now = oct_calloc(o->ctx, n, sizeof(*m->now));
    if (!m->seen || !m->now) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        m->seen[i] = (oct_scan){.low = INFINITY, .high = -INFINITY};
    return OCT_OK;
}

static void add(oct_scan *seen, const oct_scan *now, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        seen[i].low = OCT_MIN(seen[i].low, now[i].low);
        seen[i].high = OCT_MAX(seen[i].high, now[i].high);
    }
}

static void see(oct_observer *o, const oct_value_view *s)
{
    const minmax *m = o->state;

    if (oct_observer_scan(o, s, m->now)) add(m->seen, m->now, oct_observer_n_ranges(o));
}

static oct_status merge(oct_observer *o, const oct_observer *other)
{
    const minmax *m = o->state, *t = other->state;

    add(m->seen, t->seen, oct_observer_n_ranges(o));
    return OCT_OK;
}

static oct_status solve(const oct_observer *o, const oct_qspec *spec, float *low, float *high)
{
    const minmax *m = o->state;

    (void)spec;
    for (int64_t i = 0; i < oct_observer_n_ranges(o); i++) {
        low[i] = m->seen[i].low;
        high[i] = m->seen[i].high;
    }
    return OCT_OK;
}

static void fini(oct_observer *o)
{
    const minmax *m = o->state;

    oct_free(o->ctx, m->seen);
    oct_free(o->ctx, m->now);
}

const oct_observer_row oct_observer_minmax = {
    .name = "minmax",
    .help = "the smallest and largest number seen",
    .size = sizeof(minmax),
    .has_channels = true,
    .init = init,
    .see = see,
    .merge = merge,
    .solve = solve,
    .fini = fini,
};
