/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of sparsity, its schedules, and what files say of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "prune/sparsity.h"

void oct_sparsity_options_init_sized(oct_sparsity_options *o, size_t struct_size)
{
    const oct_sparsity_options defaults = {
        .struct_size = struct_size, .schedule = "polynomial", .steps = 10, .power = .9};

    memset(o, 0, struct_size);
    o->struct_size = struct_size;
    oct_sized_give(o, &defaults, sizeof(defaults));
}

/* --- schedules --- */

static double polynomial(double initial, double level, double part, double power)
{
    return level - (level - initial) * pow(1 - part, power);
}

static double exponential(double initial, double level, double part, double power)
{
    (void)power;
    return 1 - (1 - initial) * pow((1 - level) / (1 - initial), part);
}

static double baseline(double initial, double level, double part, double power)
{
    (void)initial;
    (void)part;
    (void)power;
    return level;
}

static const struct {
    const char *name;
    double (*at)(double initial, double level, double part, double power); /* part: 0 to 1 */
} schedules[] = {{"polynomial", polynomial}, {"exponential", exponential}, {"baseline", baseline}};

const char *oct_sparsity_schedule_name(int32_t i)
{
    return i >= 0 && i < (int32_t)OCT_COUNT(schedules) ? schedules[i].name : NULL;
}

static double level_from(const char *levels, int32_t epoch)
{
    double level = 0;

    for (const char *p = levels; *p;) {
        char *end = NULL;
        const long from = strtol(p, &end, 10);
        const double share = *end == ':' ? strtod(end + 1, &end) : 0;

        if (from <= epoch) level = share;
        p = *end ? end + 1 : end;
    }
    return level;
}

double oct_sparsity_at(const oct_sparsity_options *o, double level, int32_t epoch)
{
    const double part = epoch < o->steps ? (double)epoch / o->steps : 1;

    if (o->levels) return level_from(o->levels, epoch);
    if (part >= 1 || o->initial >= level) return level;
    for (size_t i = 0; i < OCT_COUNT(schedules); i++)
        if (!strcmp(schedules[i].name, o->schedule))
            return schedules[i].at(o->initial, level, part, o->power);
    return level;
}

/* --- files --- */

static oct_sparsity_result count(const oct_sparse *s)
{
    oct_sparsity_result r = {.struct_size = sizeof(r), .weights = s->len, .n_layers = s->n};

    for (int32_t k = 0; k < s->n; k++) {
        const float *w = s->layers[k].value->data->data;
        int64_t n = 0;

        for (int64_t i = 0; i < s->layers[k].len; i++)
            n += w[i] == 0.0f;
        r.zeros += n;
        r.n_dense += n == 0;
    }
    return r;
}

oct_status oct_sparse_tell(oct_graph *g, oct_sparsity_result *result)
{
    oct_sparsity_options all;
    oct_sparsity_result r;
    oct_sparse *s = NULL;
    char text[96];

    oct_sparsity_options_init(&all);
    OCT_TRY(oct_sparse_find(g, &all, &s));
    r = count(s);
    oct_sparse_free(s);
    (void)snprintf(text, sizeof(text), "%.4f of %lld weights of %d layers are zero",
                   (double)r.zeros / (double)OCT_MAX(r.weights, 1), (long long)r.weights,
                   (int)r.n_layers);
    if (result) oct_sized_give(result, &r, sizeof(r));
    return oct_graph_set_metadata(g, OCT_SPARSITY_KEY, text);
}

/* Constants may be the file's own memory: those that change are copied. */
static oct_status zero(oct_sparse *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        oct_value *v = s->layers[i].value;
        oct_tensor *t = NULL;

        OCT_TRY(oct_tensor_copy(s->ctx, v->data, &t));
        oct_sparse_apply(&s->layers[i], t->data);
        oct_tensor_unref(v->data);
        v->data = t;
    }
    return OCT_OK;
}

oct_status oct_sparsify(const oct_graph *g, const oct_sparsity_options *options, oct_graph **out,
                        oct_sparsity_result *result)
{
    OCT_ENTER(g->ctx);
    oct_sparsity_options o;
    oct_graph *copy = NULL;
    oct_sparse *s = NULL;
    double level;
    oct_status st;

    oct_sparsity_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(oct_sparsity_check(g->ctx, &o, false, &level));
    OCT_TRY(oct_graph_clone(g, &copy));
    st = oct_sparse_find(copy, &o, &s);
    if (!st) st = oct_sparse_choose(s, level);
    if (!st) st = zero(s);
    if (!st) st = oct_sparse_tell(copy, result);
    oct_sparse_free(s);
    if (st)
        oct_graph_free(copy);
    else
        *out = copy;
    return st;
}
