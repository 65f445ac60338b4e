/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs, split where their channels are of very different magnitudes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_parts.h"
#include "base/str.h"
#include "exec/plan.h"
#include "stat/noise.h"

#define GAP           30.0 /* ratio of magnitudes of channels that mean different things */
#define MOST_CHANNELS 4096
#define MOST_RANGES   4 /* named in a part's name */

/* Magnitudes of the channels of one output. */
typedef struct profile {
    const oct_value *value;
    int32_t axis; /* of the channels; -1: it is not split */
    int64_t n, inner;
    double *top; /* largest magnitude of each */
    uint8_t *is_upper;
} profile;

typedef struct observer {
    profile *profiles;
    int32_t n;
} observer;

/* There are many anchors, and little is needed of each. */
static int32_t channel_axis(const oct_type *t)
{
    int32_t axis = -1;

    if (t->rank == 4) axis = 1;
    if (t->rank == 3) axis = t->dim[1] <= t->dim[2] ? 1 : 2;
    if (t->rank == 2 && t->dim[0] > 1) axis = 1;
    return axis >= 0 && t->dim[axis] > 1 && t->dim[axis] <= MOST_CHANNELS ? axis : -1;
}

static oct_status on_value(void *user, const oct_seen *s)
{
    observer *o = user;

    for (int32_t k = 0; k < o->n; k++) {
        profile *f = &o->profiles[k];

        if (f->axis < 0 || strcmp(f->value->name, s->value->name) != 0) continue;
        for (int64_t i = 0, len = oct_type_len(s->type); i < len; i++) {
            const double x = fabs((double)oct_seen_number(s, i));

            if (x > f->top[i / f->inner % f->n]) f->top[i / f->inner % f->n] = x;
        }
    }
    return OCT_OK;
}

static oct_status see_first_image(const oct_pair *p, observer *o)
{
    uint8_t *wanted = oct_arena_alloc(p->arena, (size_t)p->exact->n_value_ids + 1);
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    int64_t index;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_outputs; i++)
        wanted[p->outputs[i]->id] = 1;
    OCT_TRY(oct_plan_new_watching(p->exact, NULL, wanted, &plan));
    st = oct_run_new(p->ctx, plan, &run);
    if (!st) st = oct_feed_rewind(p->feed, p->images);
    if (!st) st = oct_feed_take(p->feed, p->ctx, run, &index);
    if (!st) oct_run_set_seen_hook(run, on_value, o);
    if (!st) st = oct_run_execute(run);
    oct_run_free(run);
    oct_plan_free(plan);
    return st;
}

/* --- splitting --- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Marks what is above the widest gap. False: the channels are alike. */
static bool find_gap(oct_arena *a, profile *f)
{
    double *sorted = oct_arena_array(a, (size_t)f->n + 1, sizeof(*sorted));
    double widest = GAP, from = 0;
    int64_t n = 0;

    if (!sorted) return false;
    for (int64_t i = 0; i < f->n; i++)
        if (f->top[i] > 0 && isfinite(f->top[i])) sorted[n++] = f->top[i];
    qsort(sorted, (size_t)n, sizeof(*sorted), by_size);
    for (int64_t i = 1; i < n; i++)
        if (sorted[i] / sorted[i - 1] > widest) {
            widest = sorted[i] / sorted[i - 1];
            from = sorted[i];
        }
    for (int64_t i = 0; i < f->n && from > 0; i++)
        f->is_upper[i] = f->top[i] >= from;
    return from > 0;
}

/* "output0[:, 4:84]" */
static oct_status name_part(const oct_pair *p, const profile *f, bool upper, const char **out)
{
    int n = 0;
    oct_str s;

    oct_str_init(&s, p->ctx);
    oct_str_printf(&s, "%s[", f->value->name);
    for (int32_t i = 0; i < f->axis; i++)
        oct_str_puts(&s, ":, ");
    for (int64_t i = 0, end; i<f->n; i = end> i ? end : i + 1) {
        for (end = i; end < f->n && f->is_upper[end] == upper; end++) {
        }
        if (end == i || n > MOST_RANGES) continue;
        if (n++ == MOST_RANGES)
            oct_str_puts(&s, ", ..");
        else
            oct_str_printf(&s, "%s%lld:%lld", n > 1 ? "," : "", (long long)i, (long long)end);
    }
    oct_str_puts(&s, "]");
    *out = s.failed ? NULL : oct_arena_strdup(p->arena, s.s);
    oct_str_fini(&s);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status add_part(oct_pair *p, const profile *f, bool upper)
{
    const int64_t len = oct_type_len(&f->value->type);
    oct_output_slice *o = &p->slices[p->n_slices++];
    int64_t *places = oct_arena_array(p->arena, (size_t)len + 1, sizeof(*places));

    if (!places) return OCT_ERR_MEMORY;
    *o = (oct_output_slice){.value = f->value, .places = places};
    for (int64_t i = 0; i < len; i++)
        if (f->is_upper[i / f->inner % f->n] == upper) places[o->n++] = i;
    return name_part(p, f, upper, &o->name);
}

static void add_whole(oct_pair *p, const oct_value *v)
{
    p->slices[p->n_slices++] =
        (oct_output_slice){.value = v, .name = v->name, .n = oct_type_len(&v->type)};
}

static oct_status make_profile(oct_arena *a, const oct_value *v, profile *f)
{
    *f = (profile){.value = v, .axis = channel_axis(&v->type)};
    if (f->axis < 0) return OCT_OK;
    f->n = v->type.dim[f->axis];
    f->inner = oct_type_span(&v->type, f->axis + 1, v->type.rank);
    f->top = oct_arena_array(a, (size_t)f->n + 1, sizeof(*f->top));
    f->is_upper = oct_arena_alloc(a, (size_t)f->n + 1);
    return f->top && f->is_upper ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_pair_split_outputs(oct_pair *p)
{
    observer o = {.n = p->n_outputs};

    o.profiles = oct_arena_array(p->arena, (size_t)o.n + 1, sizeof(*o.profiles));
    p->slices = oct_arena_array(p->arena, 2 * (size_t)o.n + 1, sizeof(*p->slices));
    if (!o.profiles || !p->slices) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < o.n; i++)
        OCT_TRY(make_profile(p->arena, p->outputs[i], &o.profiles[i]));
    OCT_TRY(see_first_image(p, &o));
    for (int32_t i = 0; i < o.n; i++) {
        profile *f = &o.profiles[i];

        if (f->axis < 0 || !find_gap(p->arena, f)) {
            add_whole(p, f->value);
            continue;
        }
        OCT_TRY(add_part(p, f, true));
        OCT_TRY(add_part(p, f, false));
    }
    return OCT_OK;
}

void oct_output_slice_noise(const oct_output_slice *o, oct_noise *out)
{
    *out = (oct_noise){
        .name = o->value->name, .most = INT64_MAX / 2, .places = o->places, .n_places = o->n};
}
