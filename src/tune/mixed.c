/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision by Lagrange multipliers: see mixed.h. */
#include "tune/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define BIT(width) (1u << (width))
#define PRECISE    (BIT(OCT_WIDTH_8) | BIT(OCT_WIDTH_A16) | BIT(OCT_WIDTH_FLOAT))
#define SMALL      (BIT(OCT_WIDTH_W4) | BIT(OCT_WIDTH_8))

static const int32_t raised[] = {1, 2, 4, 8};      /* layers above 8 bits */
static const double lowered[] = {0.25, 0.5, 0.75}; /* part of the weights in 4 bits */

void oct_mixed_pick(const oct_mixed_layer *layers, int32_t n, unsigned allowed, double lambda,
                    oct_width *pick)
{
    for (int32_t i = 0; i < n; i++) {
        const oct_mixed_layer *l = &layers[i];
        double best = 0;
        bool any = false;

        pick[i] = OCT_WIDTH_8;
        for (int w = 0; w < OCT_N_WIDTHS; w++) {
            const double sum = l->error[w] + lambda * l->cost[w];

            if (!(allowed & BIT(w)) || l->error[w] < 0 || (any && sum >= best)) continue;
            best = sum;
            any = true;
            pick[i] = (oct_width)w;
        }
    }
}

/* --- the multipliers at which a pick changes --- */

static int by_fall(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

/* Where two widths of a layer are equally good: between such multipliers nothing changes. */
static int32_t find_lambdas(const oct_mixed_layer *layers, int32_t n, unsigned allowed, double *out)
{
    int32_t count = 0;

    for (int32_t i = 0; i < n; i++)
        for (int a = 0; a < OCT_N_WIDTHS; a++)
            for (int b = a + 1; b < OCT_N_WIDTHS; b++) {
                const oct_mixed_layer *l = &layers[i];
                const double gain = l->error[a] - l->error[b], more = l->cost[b] - l->cost[a];

                if (!(allowed & BIT(a)) || !(allowed & BIT(b)) || l->error[a] < 0 ||
                    l->error[b] < 0 || gain <= 0 || more <= 0)
                    continue;
                out[count++] = gain / more;
            }
    qsort(out, (size_t)count, sizeof(*out), by_fall);
    return count;
}

/* --- settings --- */

/* A name in quotes of YAML. */
static void put_name(oct_str *b, const char *name)
{
    oct_str_puts(b, "'");
    for (const char *c = name; *c; c++) {
        if (*c == '\'') oct_str_puts(b, "'");
        oct_str_put(b, c, 1);
    }
    oct_str_puts(b, "'");
}

static void put_layer(oct_str *b, const oct_mixed_layer *l, oct_width w)
{
    if (w == OCT_WIDTH_8) return;
    if (w == OCT_WIDTH_FLOAT) {
        oct_str_printf(b, "ignored_scope.names=%s\n", l->name);
        return;
    }
    oct_str_puts(b, "overrides={name: ");
    put_name(b, l->name);
    oct_str_printf(b, ", %s}\n", w == OCT_WIDTH_W4 ? "weight_bits: 4" : "activation_bits: 16");
}

/* What is made so far. */
typedef struct maker {
    oct_arena *arena;
    const oct_mixed_layer *layers;
    int32_t n;
    const char *begin;
    oct_width *pick;
    const char **list;
    int32_t n_listed;
} maker;

/* `begin` has names that stay float whatever is tried: only needed where others are added, since
 * the list in the settings replaces the recipe's. */
static oct_status add(maker *m)
{
    bool any_float = false;
    char *text = NULL;
    oct_str b;

    oct_str_init(&b, oct_arena_ctx(m->arena));
    for (int32_t i = 0; i < m->n; i++)
        any_float |= m->pick[i] == OCT_WIDTH_FLOAT;
    oct_str_puts(&b, any_float ? m->begin : "");
    for (int32_t i = 0; i < m->n; i++)
        put_layer(&b, &m->layers[i], m->pick[i]);
    if (!b.failed) text = oct_arena_strdup(m->arena, b.s);
    oct_str_fini(&b);
    if (!text) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_listed; i++)
        if (strcmp(m->list[i], text) == 0) return OCT_OK;
    m->list[m->n_listed++] = text;
    return OCT_OK;
}

/* How far a pick is from 8 bits: layers above, or the part of the weights below. */
static double distance(const maker *m, unsigned allowed)
{
    double sum = 0;

    for (int32_t i = 0; i < m->n; i++)
        if (m->pick[i] != OCT_WIDTH_8) sum += allowed == SMALL ? m->layers[i].weight : 1.0;
    return sum;
}

/* The first pick, in the order of the multipliers, that is `goal` away from 8 bits. */
static oct_status find(maker *m, unsigned allowed, const double *lambdas, int32_t n_lambdas,
                       double goal)
{
    for (int32_t k = 0; k < n_lambdas; k++) {
        const int32_t at = allowed == SMALL ? n_lambdas - 1 - k : k;

        /* A little beyond, so that the two widths are not a tie. */
        oct_mixed_pick(m->layers, m->n, allowed, lambdas[at] * (allowed == SMALL ? 1.001 : 0.999),
                       m->pick);
        if (distance(m, allowed) >= goal) return add(m);
    }
    return OCT_OK;
}

oct_status oct_mixed_settings(oct_arena *arena, const oct_mixed_layer *layers, int32_t n,
                              const char *begin, const char ***list, int32_t *n_listed)
{
    const size_t pairs = (size_t)(OCT_N_WIDTHS * OCT_N_WIDTHS);
    maker m = {.arena = arena, .layers = layers, .n = n, .begin = begin};
    double *up = oct_arena_array(arena, (size_t)n * pairs + 1, sizeof(*up));
    double *down = oct_arena_array(arena, (size_t)n * pairs + 1, sizeof(*down));
    int32_t n_up, n_down;

    m.pick = oct_arena_array(arena, (size_t)n + 1, sizeof(*m.pick));
    m.list = oct_arena_array(arena, OCT_COUNT(raised) + OCT_COUNT(lowered), sizeof(*m.list));
    if (!up || !down || !m.pick || !m.list) return OCT_ERR_MEMORY;
    n_up = find_lambdas(layers, n, PRECISE, up);
    n_down = find_lambdas(layers, n, SMALL, down);
    for (size_t i = 0; i < OCT_MAX(OCT_COUNT(raised), OCT_COUNT(lowered)); i++) {
        if (i < OCT_COUNT(raised)) OCT_TRY(find(&m, PRECISE, up, n_up, raised[i]));
        if (i < OCT_COUNT(lowered)) OCT_TRY(find(&m, SMALL, down, n_down, lowered[i]));
    }
    *list = m.list;
    *n_listed = m.n_listed;
    return OCT_OK;
}
