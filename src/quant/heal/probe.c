/* SPDX-License-Identifier: Apache-2.0 */
/* The error of a qmap at the values the network is read by: see probe.h. */
#include "quant/heal/probe.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "exec/plan.h"
#include "exec/run.h"
#include "op/op.h"
#include "quant/lower/lower.h"
#include "stat/noise.h"

enum { OUTPUT_PLACES = 65536 }; /* compared in a picture, at most */

/* --- what is looked at --- */

static bool is_tail(const oct_qmap *m, const oct_node *n)
{
    return m->float_why[n->id] == OCT_FLOAT_TAIL;
}

/* Made before the tail, and read by it or by nothing that follows. */
static bool is_read_out(const oct_qmap *m, const oct_value *v)
{
    if (v->type.dtype != OCT_DTYPE_F32 || oct_type_len(&v->type) < 1) return false;
    if (v->is_output) return true;
    for (int32_t i = 0; i < v->n_users; i++)
        if (is_tail(m, v->users[i])) return true;
    return false;
}

static oct_status add_value(oct_probe *p, const oct_value *v, int64_t most)
{
    oct_probe_value *x = &p->values[p->n++];

    *x = (oct_probe_value){.value = v, .most = OCT_MIN(most, oct_type_len(&v->type))};
    x->exact = oct_arena_array(p->arena, (size_t)p->pictures + 1, sizeof(*x->exact));
    x->n = oct_arena_array(p->arena, (size_t)p->pictures + 1, sizeof(*x->n));
    return x->exact && x->n ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status find_values(oct_probe *p, const oct_qmap *m)
{
    const oct_graph *g = p->bound;

    p->values = oct_arena_array(p->arena, 2 * (size_t)g->n_nodes + 1, sizeof(*p->values));
    if (!p->values) return OCT_ERR_MEMORY;
    for (const oct_node *n = g->first; n; n = n->next)
        if (n->n_out == 1 && n->out[0] && !is_tail(m, n) && is_read_out(m, n->out[0]))
            OCT_TRY(add_value(p, n->out[0], OUTPUT_PLACES));
    p->n_outputs = p->n;
    for (const oct_node *n = g->first; n; n = n->next) {
        oct_weight_axes ax;

        if (oct_weight_axes_of(n, &ax)) OCT_TRY(add_value(p, n->out[0], OCT_NOISE_SAMPLES));
    }
    return OCT_OK;
}

/* --- looking --- */

typedef struct look {
    oct_probe *p;
    oct_map by_name; /* index + 1 of a value; an output that is a layer's result has two */
    int64_t picture;
    bool compares, layers;
    float *scratch;
} look;

static int64_t sample(const oct_probe_value *v, const oct_seen *s, float *to)
{
    const int64_t len = oct_type_len(s->type);
    const int64_t step = OCT_MAX((len + v->most - 1) / v->most, (int64_t)1) | 1;
    int64_t n = 0;

    for (int64_t i = 0; i < len && n < v->most; i += step)
        to[n++] = oct_seen_number(s, i);
    return n;
}

static oct_status keep(look *l, oct_probe_value *v, const oct_seen *s)
{
    float *x = oct_arena_array(l->p->arena, (size_t)v->most + 1, sizeof(*x));
    double mean = 0;
    int64_t n;

    if (!x) return OCT_ERR_MEMORY;
    n = sample(v, s, x);
    for (int64_t i = 0; i < n && v < l->p->values + l->p->n_outputs; i++)
        mean += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        v->power += ((double)x[i] - mean) * ((double)x[i] - mean);
    v->exact[l->picture] = x;
    v->n[l->picture] = n;
    return OCT_OK;
}

static void compare(const look *l, oct_probe_value *v, const oct_seen *s)
{
    const float *x = v->exact[l->picture];
    const int64_t n = x ? sample(v, s, l->scratch) : 0;

    if (n != v->n[l->picture]) return;
    for (int64_t i = 0; i < n; i++) {
        const double e = (double)l->scratch[i] - (double)x[i];

        v->error += isfinite(e) ? e * e : 0;
    }
}

static oct_status on_value(void *user, const oct_seen *s)
{
    look *l = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&l->by_name, s->value->name);

    if (!at || s->type->dtype != OCT_DTYPE_F32) return OCT_OK;
    for (int32_t i = (int32_t)at - 1; i < l->p->n; i++) {
        oct_probe_value *v = &l->p->values[i];

        if (strcmp(v->value->name, s->value->name) != 0) continue;
        if (!l->compares)
            OCT_TRY(keep(l, v, s));
        else
            compare(l, v, s);
        if (i >= l->p->n_outputs) break;
        i = l->p->n_outputs - 1; /* it may be a layer's result, too */
    }
    return OCT_OK;
}

/* --- running --- */

static oct_status begin(look *l)
{
    const int32_t n = l->layers ? l->p->n : l->p->n_outputs;
    int64_t most = 1;

    for (int32_t i = n - 1; i >= 0; i--) {
        oct_probe_value *v = &l->p->values[i];

        v->error = 0;
        most = OCT_MAX(most, v->most);
        OCT_TRY(oct_map_put(&l->by_name, v->value->name, (void *)(uintptr_t)(i + 1)));
    }
    l->scratch = oct_alloc(l->p->ctx, (size_t)most * sizeof(*l->scratch));
    return l->scratch ? OCT_OK : OCT_ERR_MEMORY;
}

/* Both networks are simulated: so what is the same in both is computed by the same steps. */
static oct_status make_run(look *l, const oct_graph *g, oct_plan **plan, oct_run **run)
{
    uint8_t *wanted = oct_calloc(g->ctx, (size_t)g->n_value_ids + 1, 1);
    oct_plan_options o;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->graph == g &&
            oct_map_get(&l->by_name, g->values[i]->name))
            wanted[i] = 1;
    oct_plan_options_init(&o);
    o.simulate = 1;
    st = oct_plan_new_watching(g, &o, wanted, plan);
    oct_free(g->ctx, wanted);
    OCT_TRY(st);
    OCT_TRY(oct_run_new(g->ctx, *plan, run));
    oct_run_set_seen_hook(*run, on_value, l);
    return OCT_OK;
}

static oct_status keep_inputs(oct_probe *p, oct_run *r, int64_t picture)
{
    float **in = oct_arena_array(p->arena, (size_t)p->bound->n_inputs + 1, sizeof(*in));

    if (!(p->in[picture] = in)) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->bound->n_inputs; i++) {
        void *data = NULL;

        OCT_TRY(oct_run_input(r, p->bound->inputs[i]->name, &data, &p->in_size[i]));
        in[i] = oct_arena_array(p->arena, p->in_size[i] + 1, 1);
        if (!in[i]) return OCT_ERR_MEMORY;
        memcpy(in[i], data, p->in_size[i]);
    }
    return OCT_OK;
}

static oct_status give_inputs(const oct_probe *p, oct_run *r, int64_t picture)
{
    for (int32_t i = 0; i < p->bound->n_inputs; i++) {
        void *data = NULL;
        size_t size = 0;

        OCT_TRY(oct_run_input(r, p->bound->inputs[i]->name, &data, &size));
        if (data && size == p->in_size[i]) memcpy(data, p->in[picture][i], size);
    }
    return OCT_OK;
}

/* f NULL: the pictures that were kept. */
static oct_status run_all(look *l, oct_feed *f, oct_run *r)
{
    oct_probe *p = l->p;

    if (f) OCT_TRY(oct_feed_rewind(f, p->pictures));
    for (l->picture = 0; l->picture < p->pictures; l->picture++) {
        int64_t index = 0;

        if (f) OCT_TRY(oct_feed_take(f, p->ctx, r, &index));
        if (index < 0) break;
        OCT_TRY(f ? keep_inputs(p, r, l->picture) : give_inputs(p, r, l->picture));
        OCT_TRY(oct_run_execute(r));
        p->runs++;
    }
    if (f) p->pictures = l->picture;
    return OCT_OK;
}

static oct_status look_at(look *l, const oct_graph *g, oct_feed *f)
{
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    oct_status st;

    oct_map_init(&l->by_name, l->p->ctx);
    st = begin(l);
    if (!st) st = make_run(l, g, &plan, &run);
    if (!st) st = run_all(l, f, run);
    oct_run_free(run);
    oct_plan_free(plan);
    oct_free(l->p->ctx, l->scratch);
    oct_map_fini(&l->by_name);
    return st;
}

/* --- the whole --- */

static oct_status fill(oct_probe *p, const oct_qmap *m, oct_feed *f)
{
    look l = {.p = p, .layers = true};

    p->in = oct_arena_array(p->arena, (size_t)p->pictures + 1, sizeof(*p->in));
    p->in_size = oct_arena_array(p->arena, (size_t)p->bound->n_inputs + 1, sizeof(*p->in_size));
    if (!p->in || !p->in_size) return OCT_ERR_MEMORY;
    OCT_TRY(find_values(p, m));
    return look_at(&l, p->bound, f);
}

oct_status oct_probe_new(const oct_graph *bound, const oct_qmap *m, oct_feed *f, int64_t pictures,
                         oct_probe **out)
{
    oct_probe *p = oct_calloc(bound->ctx, 1, sizeof(*p));
    oct_status st;

    if (!p) return OCT_ERR_MEMORY;
    *p = (oct_probe){.ctx = bound->ctx,
                     .bound = bound,
                     .pictures = OCT_MIN(pictures, oct_feed_size(f)),
                     .arena = oct_arena_new(bound->ctx)};
    st = p->arena ? fill(p, m, f) : OCT_ERR_MEMORY;
    if (st) {
        oct_probe_free(p);
        return st;
    }
    *out = p;
    return OCT_OK;
}

void oct_probe_free(oct_probe *p)
{
    if (!p) return;
    oct_arena_free(p->arena);
    oct_free(p->ctx, p);
}

static double noise_of(const oct_probe_value *v)
{
    return v->power > 0 ? v->error / v->power : 0;
}

oct_status oct_probe_measure(oct_probe *p, const oct_qmap *m, double *noise, double *layers)
{
    look l = {.p = p, .layers = layers != NULL, .compares = true};
    oct_graph *lowered = NULL;
    oct_status st = oct_lower(m, NULL, &lowered);

    if (!st) st = look_at(&l, lowered, NULL);
    oct_graph_free(lowered);
    OCT_TRY(st);
    *noise = 0;
    for (int32_t i = 0; i < p->n_outputs; i++)
        *noise += noise_of(&p->values[i]) / p->n_outputs;
    for (int32_t i = p->n_outputs; i < p->n && layers; i++)
        layers[i - p->n_outputs] = noise_of(&p->values[i]);
    return OCT_OK;
}
