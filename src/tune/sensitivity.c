/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each layer alone does to the outputs with 4, 8 and 16 bits, and what that costs. Costs are
 * counted, not measured: the same search has to come to the same settings each time.
 */
#include <string.h>

#include <octet/analyze.h>

#include "base/machine.h"
#include "base/str.h"
#include "tune/mixed.h"
#include "tune/tune.h"

enum { FEW_IMAGES = 4 };

/* Multiply-adds of float and of 16-bit activations against those of bytes, about, on CPUs. */
#define FLOAT_TIME 3.0
#define A16_TIME   3.0

/* The layers, as the default settings leave them. */
typedef struct table {
    oct_arena *arena;
    oct_mixed_layer *layers;
    int32_t n;
} table;

static oct_status analyze(oct_tune_bench *b, const char *settings, oct_quantized **q,
                          oct_analysis **out)
{
    oct_quantize_options s;
    oct_analyze_options o;
    oct_dataset *images;

    oct_quantize_options_init(&s);
    oct_recipe_get_quantize(b->base, &s);
    oct_analyze_options_init(&o);
    o.images = FEW_IMAGES;
    o.graphwise = o.statistics = 0;
    o.family = s.family;
    o.preprocess = b->o->preprocess;
    OCT_TRY(oct_tune_calibration(b, 0, &images));
    OCT_TRY(oct_tune_quantize(b, settings, 0, q));
    return oct_analyze(b->g, oct_quantized_graph(*q), images, &o, out);
}

/* Names go into lines of settings, and have to name one layer. */
static bool is_usable(const oct_analyzed_layer *l)
{
    return l->weight_bits == 8 && l->alone.noise >= 0 && *l->name && !strpbrk(l->name, "\n\r");
}

static void set_costs(oct_mixed_layer *m, double time, double size)
{
    const double seconds[OCT_N_WIDTHS] = {1, 1, A16_TIME, FLOAT_TIME};
    const double room[OCT_N_WIDTHS] = {0.5, 1, 1, 4};

    for (int w = 0; w < OCT_N_WIDTHS; w++)
        m->cost[w] = time * seconds[w] + size * room[w];
    m->weight = size;
}

static oct_status list_layers(const oct_analysis *a, table *t)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    double macs = 1, params = 1;
    int32_t all = 0;

    for (; oct_analysis_layer(a, all, &l); all++)
        if (is_usable(&l)) macs += (double)l.macs, params += (double)l.params;
    if (!(t->layers = oct_arena_array(t->arena, (size_t)all + 1, sizeof(*t->layers))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < all; i++) {
        oct_mixed_layer *m = &t->layers[t->n];

        (void)oct_analysis_layer(a, i, &l);
        if (!is_usable(&l)) continue;
        if (!(m->name = oct_arena_strdup(t->arena, l.name))) return OCT_ERR_MEMORY;
        m->error[OCT_WIDTH_W4] = m->error[OCT_WIDTH_A16] = -1;
        m->error[OCT_WIDTH_8] = l.alone.noise;
        m->error[OCT_WIDTH_FLOAT] = 0;
        set_costs(m, (double)l.macs / macs, (double)l.params / params);
        t->n++;
    }
    return OCT_OK;
}

/* The errors of another network with the same layers. */
static void take_errors(const oct_analysis *a, oct_width w, table *t)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};

    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++) {
        if (l.alone.noise < 0 || (w == OCT_WIDTH_W4 ? l.weight_bits != 4 : l.input_bits != 16))
            continue;
        for (int32_t k = 0; k < t->n; k++)
            if (strcmp(t->layers[k].name, l.name) == 0) t->layers[k].error[w] = l.alone.noise;
    }
}

/* A width that the target does not have is left out. */
static oct_status add_width(oct_tune_bench *b, const char *settings, oct_width w, table *t)
{
    oct_quantized *q = NULL;
    oct_analysis *a = NULL;
    oct_status st = analyze(b, settings, &q, &a);

    if (!st && w == OCT_WIDTH_8)
        st = list_layers(a, t);
    else if (!st)
        take_errors(a, w, t);
    else if (w != OCT_WIDTH_8 && (st == OCT_ERR_ARG || st == OCT_ERR_UNSUPPORTED))
        st = OCT_OK;
    oct_analysis_free(a);
    oct_quantized_free(q);
    return st;
}

static bool has_time(const oct_tune_bench *b)
{
    return !b->sensitivity_ends_ns || oct_time_ns() < b->sensitivity_ends_ns;
}

/* What the recipe keeps float has to be said again where other names are added. */
static oct_status names_so_far(oct_tune_bench *b, oct_arena *arena, const char **out)
{
    oct_quantize_options o;
    oct_str s;

    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(b->base, &o);
    oct_str_init(&s, b->ctx);
    oct_str_puts(&s, "");
    for (int32_t i = 0; i < o.ignored.n_names; i++)
        oct_str_printf(&s, "ignored_scope.names=%s\n", o.ignored.names[i]);
    *out = s.failed ? NULL : oct_arena_strdup(arena, s.s);
    oct_str_fini(&s);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_tune_sensitivity(oct_tune_bench *b, oct_arena *arena, const char ***list, int32_t *n)
{
    static const struct {
        const char *settings;
        oct_width width;
    } widths[] = {{"", OCT_WIDTH_8},
                  {"weight_bits=4\n", OCT_WIDTH_W4},
                  {"activation_bits=16\n", OCT_WIDTH_A16}};
    oct_quantize_options o;
    table t = {.arena = arena};
    const char *begin;

    *n = 0;
    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(b->base, &o);
    if (o.n_overrides) return OCT_OK; /* somebody has decided on bits already */
    OCT_TRY(names_so_far(b, arena, &begin));
    for (size_t i = 0; i < OCT_COUNT(widths) && (i == 0 || has_time(b)); i++)
        OCT_TRY(add_width(b, widths[i].settings, widths[i].width, &t));
    return oct_mixed_settings(arena, t.layers, t.n, begin, list, n);
}
