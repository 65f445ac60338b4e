/* SPDX-License-Identifier: Apache-2.0 */
/* The table of observers, and what all of them do alike. */
#include "quant/observe/observer.h"

#include <math.h>
#include <octet/quant.h>
#include <string.h>

#include "base/map.h"

static const oct_observer_row *const table[] = {
#define OCT_OBSERVER(sym) &oct_observer_##sym,
#include "quant/observe/observers.def"
#undef OCT_OBSERVER
};

const oct_observer_row *oct_observer_at(int i)
{
    return i >= 0 && i < (int)OCT_COUNT(table) ? table[i] : NULL;
}

const char *oct_observer_name(int32_t i)
{
    const oct_observer_row *row = oct_observer_at(i);

    return row ? row->name : NULL;
}

const oct_observer_row *oct_observer_find(const char *kind)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(kind, table[i]->name) == 0) return table[i];
    return NULL;
}

const char *oct_observer_help(const char *name)
{
    const oct_observer_row *row = oct_observer_find(name);

    return row ? row->help : NULL;
}

void oct_observer_options_init(oct_observer_options *o)
{
    *o = (oct_observer_options){
        .kind = "minmax",
        .percentile = 99.99,
        .bins = 2048,
        .low = {OCT_STAT_MIN, OCT_GATHER_MIN, 1e-4, 0},
        .high = {OCT_STAT_MAX, OCT_GATHER_MAX, 1e-4, 0},
    };
}

static oct_status unknown_kind(oct_ctx *ctx, const char *kind)
{
    oct_nearest near = {kind, 64, table[0]->name};

    for (size_t i = 0; i < OCT_COUNT(table); i++)
        oct_nearest_try(&near, table[i]->name);
    return oct_fail(ctx, OCT_ERR_ARG, "no observer '%s'; did you mean '%s'?", kind, near.name);
}

static oct_status check_options(oct_ctx *ctx, const oct_observer_options *o, int64_t channels)
{
    if (channels < 1)
        return oct_fail(ctx, OCT_ERR_ARG, "an observer of %lld channels", (long long)channels);
    if (o->bins < 16 || o->bins > 65536)
        return oct_fail(ctx, OCT_ERR_ARG, "%d bins: 16 to 65536 are possible", (int)o->bins);
    if (!(o->percentile > 50 && o->percentile <= 100))
        return oct_fail(ctx, OCT_ERR_ARG, "percentile %g: more than 50, at most 100",
                        o->percentile);
    return OCT_OK;
}

oct_status oct_observer_new(oct_ctx *ctx, const oct_observer_options *options, int64_t channels,
                            oct_observer **out)
{
    const oct_observer_row *row = oct_observer_find(options->kind);
    oct_observer *o;
    oct_status st;

    if (!row) return unknown_kind(ctx, options->kind);
    OCT_TRY(check_options(ctx, options, channels));
    if (options->per_channel && !row->has_channels)
        return oct_fail(ctx, OCT_ERR_ARG, "observer '%s' cannot look at channels one by one",
                        row->name);
    if (!(o = oct_calloc(ctx, 1, sizeof(*o)))) return OCT_ERR_MEMORY;
    *o = (oct_observer){.row = row,
                        .ctx = ctx,
                        .options = *options,
                        .channels = channels,
                        .seen_low = INFINITY,
                        .seen_high = -INFINITY};
    o->options.kind = row->name; /* the caller's string may go away */
    if (!(o->state = oct_calloc(ctx, 1, row->size))) {
        oct_free(ctx, o);
        return OCT_ERR_MEMORY;
    }
    st = row->init(o);
    if (st) {
        oct_observer_free(o);
        return st;
    }
    *out = o;
    return OCT_OK;
}

void oct_observer_free(oct_observer *o)
{
    if (!o) return;
    o->row->fini(o); /* also of what init made only a part of */
    oct_free(o->ctx, o->state);
    oct_free(o->ctx, o);
}

void oct_observer_see(oct_observer *o, const oct_value_view *s)
{
    if (s->pixels < 1 || s->channels < 1) return;
    o->row->see(o, s);
    o->n_samples++;
}

bool oct_observer_scan(oct_observer *o, const oct_value_view *s, oct_scan *out)
{
    const bool is_finite =
        oct_observer_n_ranges(o) > 1 ? oct_scan_channels(s, out) : oct_scan_all(s, out);

    if (!is_finite) o->has_bad = true;
    for (int64_t i = 0; i < oct_observer_n_ranges(o) && is_finite; i++) {
        o->seen_low = OCT_MIN(o->seen_low, out[i].low);
        o->seen_high = OCT_MAX(o->seen_high, out[i].high);
    }
    return is_finite;
}

oct_status oct_observer_merge(oct_observer *o, const oct_observer *other)
{
    if (o->row != other->row || oct_observer_n_ranges(o) != oct_observer_n_ranges(other) ||
        o->options.per_channel != other->options.per_channel ||
        o->options.bins != other->options.bins)
        return oct_fail(o->ctx, OCT_ERR_ARG, "observers '%s' and '%s' do not look alike",
                        o->row->name, other->row->name);
    OCT_TRY(o->row->merge(o, other));
    o->n_samples += other->n_samples;
    o->has_bad = o->has_bad || other->has_bad;
    o->seen_low = OCT_MIN(o->seen_low, other->seen_low);
    o->seen_high = OCT_MAX(o->seen_high, other->seen_high);
    return OCT_OK;
}

int64_t oct_observer_n_ranges(const oct_observer *o)
{
    return o->options.per_channel ? o->channels : 1;
}

oct_status oct_observer_solve(const oct_observer *o, const oct_qspec *spec, float *low, float *high)
{
    if (o->n_samples == 0) return oct_fail(o->ctx, OCT_ERR_STATE, "no range: nothing was observed");
    if (o->has_bad) return oct_fail(o->ctx, OCT_ERR_STATE, "no range: NaN or Inf was observed");
    return o->row->solve(o, spec, low, high);
}
