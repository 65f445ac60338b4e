/* SPDX-License-Identifier: Apache-2.0 */
/* Matches the layers of two models by name, and says why some are not faster. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/compare.h"

#define MEMORY_GB_S 10.0 /* limited by memory bandwidth: fewer bits in arithmetic do not help */
#define SHORT_MS    0.01 /* waking the threads takes as long */

/* All steps of a model with one name. */
typedef struct named {
    const cli_step *step; /* the first of them */
    double ms;
} named;

static bool is_move(const oct_step_info *i)
{
    return i->is_reorder || i->is_conversion;
}

/* By name; equal names stay in the order they run. */
static int by_name(const void *a, const void *b)
{
    const cli_step *x = ((const named *)a)->step, *y = ((const named *)b)->step;
    const int order = strcmp(x->info.name, y->info.name);

    return order ? order : x < y ? -1 : x > y;
}

static int find_name(const void *key, const void *entry)
{
    return strcmp(key, ((const named *)entry)->step->info.name);
}

/* Sorted by name, each name once. */
static named *names_of(const cli_measured *m, int *n, double *moves_ms, int *n_moves)
{
    named *list = cli_alloc((size_t)m->n_steps, sizeof(*list));
    int count = 0, kept = 0;

    for (int i = 0; i < m->n_steps; i++) {
        const cli_step *s = &m->steps[i];

        if (is_move(&s->info)) {
            *moves_ms += s->ms;
            ++*n_moves;
        } else {
            list[count++] = (named){s, s->ms};
        }
    }
    if (count) qsort(list, (size_t)count, sizeof(*list), by_name);
    for (int i = 0; i < count; i++)
        if (kept && strcmp(list[kept - 1].step->info.name, list[i].step->info.name) == 0)
            list[kept - 1].ms += list[i].ms;
        else
            list[kept++] = list[i];
    *n = kept;
    return list;
}

static bool is_converted(const cli_measured *m, const cli_step *s)
{
    const int i = (int)(s - m->steps);

    return (i > 0 && m->steps[i - 1].info.is_conversion) ||
           (i + 1 < m->n_steps && m->steps[i + 1].info.is_conversion);
}

static const char *why_no_gain(const cli_measured *m, const cli_layer *l)
{
    const oct_step_info *i = &l->other->info;

    if (i->is_plain) return "plain kernel";
    if (!i->is_integer)
        return is_converted(m, l->other) ? "stays float, conversion around it" : "stays float";
    if (is_converted(m, l->other)) return "conversion around it";
    if (l->other_ms < SHORT_MS) return "too short to gain";
    if ((double)i->bytes * 1e-6 > l->other_ms * MEMORY_GB_S) return "memory-bound";
    return "integer kernel no faster";
}

double cli_layer_gain(const cli_layer *l)
{
    return l->first && l->other && l->other_ms > 0 ? l->first_ms / l->other_ms : 0;
}

/* Slowest first; those of the first model alone come last. */
static int by_time(const void *a, const void *b)
{
    const cli_layer *x = a, *y = b;
    const double tx = x->other ? x->other_ms : -1 / (1 + x->first_ms);
    const double ty = y->other ? y->other_ms : -1 / (1 + y->first_ms);

    return tx < ty ? 1 : tx > ty ? -1 : 0;
}

void cli_layers_init(cli_layers *l, const cli_measured *first, const cli_measured *other)
{
    int n_first, n_other;
    named *a, *b;

    *l = (cli_layers){0};
    a = names_of(first, &n_first, &l->first_moves_ms, &l->first_moves);
    b = names_of(other, &n_other, &l->other_moves_ms, &l->other_moves);
    l->list = cli_alloc((size_t)n_first + (size_t)n_other, sizeof(*l->list));
    for (int i = 0; i < n_other; i++) {
        cli_layer *layer = &l->list[l->n++];
        const named *same =
            n_first ? bsearch(b[i].step->info.name, a, (size_t)n_first, sizeof(*a), find_name)
                    : NULL;

        *layer = (cli_layer){.other = b[i].step, .other_ms = b[i].ms};
        if (!same) continue;
        layer->first = same->step;
        layer->first_ms = same->ms;
        if (cli_layer_gain(layer) < CLI_LAYER_GAIN) layer->why = why_no_gain(other, layer);
    }
    for (int i = 0; i < n_first; i++)
        if (!n_other || !bsearch(a[i].step->info.name, b, (size_t)n_other, sizeof(*b), find_name))
            l->list[l->n++] = (cli_layer){.first = a[i].step, .first_ms = a[i].ms};
    if (l->n) qsort(l->list, (size_t)l->n, sizeof(*l->list), by_time);
    free(a);
    free(b);
}

void cli_layers_fini(cli_layers *l)
{
    free(l->list);
}
