/* SPDX-License-Identifier: Apache-2.0 */
/* percentile: all but a small part of the numbers at either end. */
#include "quant/observe/density.h"

/* Symmetric: of distances from 0. Asymmetric: of either end on its own. */
static oct_status solve(const oct_observer *o, const oct_qspec *spec, const oct_density *d,
                        float *low, float *high)
{
    const double part = o->options.percentile / 100;

    if (spec->is_symmetric && d->low < 0) {
        const float end = (float)oct_density_abs_quantile(d, part);

        *low = OCT_MAX(-end, (float)d->low);
        *high = OCT_MIN(end, (float)d->high);
        return OCT_OK;
    }
    *low = (float)oct_density_quantile(d, 1 - part);
    *high = (float)oct_density_quantile(d, part);
    return OCT_OK;
}

const oct_observer_row oct_observer_percentile = OCT_HISTOGRAM_OBSERVER(
    "percentile", "all but a small part of the numbers at either end", solve);
