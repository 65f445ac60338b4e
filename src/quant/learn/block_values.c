/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between blocks: see block_values.h. */
#include "quant/learn/block_values.h"

#include "op/op.h"
#include "pass/pass.h"
#include "quant/solve/solve.h"
#include "tensor/small_float.h"

enum { LEAST_PICTURES = 4 };

static int64_t len_of(const oct_value *v)
{
    return oct_type_len(&v->type);
}

/* --- memory --- */

static oct_status reserve(oct_block_values *s, oct_block_side side, const oct_value *v)
{
    uint16_t **d = &s->data[side][v->id];
    size_t n;

    if (*d) return OCT_OK;
    if (!oct_mul_size((size_t)len_of(v), (size_t)s->pictures, &n))
        return oct_fail(s->ctx, OCT_ERR_MEMORY, "value '%s' is too large to keep", v->name);
    *d = oct_alloc(s->ctx, (n + 1) * sizeof(**d));
    return *d ? OCT_OK : OCT_ERR_MEMORY;
}

static void drop(oct_block_values *s, int32_t id)
{
    /* Inputs of the network are the same on both sides. */
    if (s->data[OCT_SIDE_NOW][id] != s->data[OCT_SIDE_EXACT][id])
        oct_free(s->ctx, s->data[OCT_SIDE_NOW][id]);
    oct_free(s->ctx, s->data[OCT_SIDE_EXACT][id]);
    s->data[OCT_SIDE_EXACT][id] = s->data[OCT_SIDE_NOW][id] = NULL;
}

/* Bytes that are kept of a picture at the widest place. */
static double widest(const oct_block_values *s)
{
    double now = 0, most = 0;

    for (int32_t i = 0; i < s->g->n_inputs; i++)
        now += (double)len_of(s->g->inputs[i]) * sizeof(uint16_t);
    for (int32_t b = 0; b < s->blocks->n; b++) {
        const oct_block *k = &s->blocks->item[b];

        for (int32_t i = 0; i < k->n_out; i++)
            now += (double)len_of(k->out[i]) * OCT_SIDES * sizeof(uint16_t);
        most = now > most ? now : most;
        for (int32_t i = 0; i < k->n_in; i++)
            if (s->last[k->in[i]->id] == b)
                now -= (double)len_of(k->in[i]) * (k->in[i]->producer ? OCT_SIDES : 1) *
                       sizeof(uint16_t);
        for (int32_t i = 0; i < k->n_out; i++)
            if (s->last[k->out[i]->id] < 0)
                now -= (double)len_of(k->out[i]) * OCT_SIDES * sizeof(uint16_t);
    }
    return most;
}

void oct_block_values_done(oct_block_values *s, int32_t b)
{
    const oct_block *k = &s->blocks->item[b];

    for (int32_t i = 0; i < k->n_in; i++)
        if (s->last[k->in[i]->id] <= b) drop(s, k->in[i]->id);
    for (int32_t i = 0; i < k->n_out; i++)
        if (s->last[k->out[i]->id] <= b) drop(s, k->out[i]->id);
}

void oct_block_values_fini(oct_block_values *s)
{
    for (int32_t i = 0; s->data[0] && s->data[1] && i < s->g->root->n_value_ids; i++)
        drop(s, i);
}

/* --- pictures --- */

/* A network that gives its own inputs: what a feed can fill. */
static oct_status make_echo(const oct_graph *g, oct_plan **plan)
{
    oct_graph *copy = NULL;
    oct_builder b = {0};
    oct_status st = OCT_OK;

    OCT_TRY(oct_graph_clone(g, &copy));
    b.g = copy;
    for (int32_t i = 0; i < copy->n_outputs; i++)
        copy->outputs[i]->is_output = false;
    copy->n_outputs = 0;
    for (int32_t i = 0; i < copy->n_inputs && !st; i++) {
        oct_value *v = oct_emit(&b, &oct_op_identity, copy->inputs[i], NULL, NULL);

        st = b.status ? b.status : oct_graph_add_output(copy, v);
    }
    if (!st) st = oct_drop_dead(copy);
    if (!st) st = oct_plan_new(copy, NULL, plan);
    oct_graph_free(copy);
    return st;
}

static oct_status read_pictures(oct_block_values *s, oct_feed *f, oct_run *r)
{
    int64_t index = 0;

    OCT_TRY(oct_feed_rewind(f, s->pictures));
    for (int64_t i = 0; i < s->pictures; i++) {
        OCT_TRY(oct_feed_take(f, s->ctx, r, &index));
        if (index < 0) return oct_fail(s->ctx, OCT_ERR_STATE, "pictures are missing");
        for (int32_t k = 0; k < s->g->n_inputs; k++) {
            const oct_value *v = s->g->inputs[k];
            void *data = NULL;
            size_t size = 0;

            if (!s->data[OCT_SIDE_EXACT][v->id]) continue;
            OCT_TRY(oct_run_input(r, v->name, &data, &size));
            oct_f32_to_f16_n(data, len_of(v), s->data[OCT_SIDE_EXACT][v->id] + i * len_of(v));
        }
    }
    return OCT_OK;
}

static oct_status read_inputs(oct_block_values *s, oct_feed *f)
{
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    oct_status st = OCT_OK;

    for (int32_t i = 0; i < s->g->n_inputs && !st; i++)
        if (s->last[s->g->inputs[i]->id] >= 0) {
            st = reserve(s, OCT_SIDE_EXACT, s->g->inputs[i]);
            s->data[OCT_SIDE_NOW][s->g->inputs[i]->id] =
                s->data[OCT_SIDE_EXACT][s->g->inputs[i]->id];
        }
    if (!st) st = make_echo(s->g, &plan);
    if (!st) st = oct_run_new(s->ctx, plan, &run);
    if (!st) st = read_pictures(s, f, run);
    oct_run_free(run);
    oct_plan_free(plan);
    return st;
}

oct_status oct_block_values_new(const oct_graph *g, const oct_blocks *b, oct_feed *f, size_t bytes,
                                oct_arena *a, oct_block_values *out)
{
    const size_t n = (size_t)g->root->n_value_ids + 1;
    double room;

    *out = (oct_block_values){.ctx = g->ctx, .blocks = b, .g = g};
    out->last = oct_arena_array(a, n, sizeof(*out->last));
    for (int side = 0; side < OCT_SIDES; side++)
        if (!(out->data[side] = oct_arena_array(a, n, sizeof(*out->data[side]))))
            return OCT_ERR_MEMORY;
    out->low = oct_arena_array(a, n, sizeof(*out->low));
    out->high = oct_arena_array(a, n, sizeof(*out->high));
    if (!out->last || !out->low || !out->high) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        out->last[i] = -1;
    for (int32_t k = 0; k < b->n; k++)
        for (int32_t i = 0; i < b->item[k].n_in; i++)
            out->last[b->item[k].in[i]->id] = k;
    room = (double)bytes / OCT_MAX(widest(out), 1.0);
    OCT_TRY(oct_feed_rewind(f, 0));
    out->pictures = oct_feed_size(f);
    if (room < (double)out->pictures)
        out->pictures = OCT_MIN(out->pictures, OCT_MAX((int64_t)room, (int64_t)LEAST_PICTURES));
    return read_inputs(out, f);
}

oct_status oct_block_values_bound(oct_block_values *s, const oct_qmap *m, oct_arena *a)
{
    uint8_t *is_score = NULL;

    OCT_TRY(oct_score_points(m, a, &is_score));
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i], *root = &m->points[oct_qmap_root_index(m, i)];
        int32_t low, high;

        if (!is_score[i] || p->node || root->n != 1) continue;
        oct_qspec_limits(&root->spec, &low, &high);
        s->low[p->value->id] = (float)(low - root->zero[0]) * root->scale[0];
        s->high[p->value->id] = (float)(high - root->zero[0]) * root->scale[0];
    }
    return OCT_OK;
}

const float *oct_block_values_within(const oct_block_values *s, const oct_value *v, const float *y,
                                     float *scratch)
{
    const float low = s->low[v->id], high = s->high[v->id];

    if (!(low < high)) return y;
    for (int64_t i = 0; i < len_of(v); i++)
        scratch[i] = OCT_MIN(OCT_MAX(y[i], low), high);
    return scratch;
}

void oct_block_values_read(const oct_block_values *s, oct_block_side side, const oct_value *v,
                           int64_t picture, float *to)
{
    oct_f16_to_f32_n(s->data[side][v->id] + picture * len_of(v), len_of(v), to);
}

void oct_block_values_mix(const oct_block_values *s, const oct_value *v, int64_t picture,
                          double drop, oct_rng *rng, float *to, float *scratch)
{
    enum { DRAWS = 4 }; /* of 16 bits each, from one random number */
    const uint64_t below = (uint64_t)(drop * (UINT16_MAX + 1.0));
    const int64_t n = len_of(v);

    oct_block_values_read(s, OCT_SIDE_NOW, v, picture, to);
    if (!below || !v->producer) return;
    oct_block_values_read(s, OCT_SIDE_EXACT, v, picture, scratch);
    for (int64_t at = 0; at < n; at += DRAWS) {
        uint64_t bits = oct_rng_u64(rng);

        for (int64_t k = at; k < OCT_MIN(at + DRAWS, n); k++, bits >>= 16)
            if ((bits & UINT16_MAX) < below) to[k] = scratch[k];
    }
}

/* --- computing --- */

int64_t oct_block_values_counts(const oct_block_values *s, const oct_value *v, int64_t picture,
                                float *scratch)
{
    const int64_t n = s->objects.cells ? oct_objects_places(&v->type) : 0;

    scratch[0] = 1;
    if (n) oct_objects_spread(&s->objects, picture, &v->type, scratch);
    return n ? n : 1;
}

/* `scratch` has room for the value twice. */
static void compare(const oct_block_values *s, const oct_value *v, int64_t picture, const float *y,
                    float *scratch, oct_block_error *e)
{
    float *counts = scratch + len_of(v);
    const int64_t n = oct_block_values_counts(s, v, picture, counts);
    double error = 0, power = 0;

    oct_block_values_read(s, OCT_SIDE_EXACT, v, picture, scratch);
    for (int64_t i = 0; i < len_of(v); i++) {
        const double d = (double)(y[i] - scratch[i]), w = (double)counts[i % n];

        error += w * d * d;
        power += w * (double)scratch[i] * (double)scratch[i];
    }
    e->error += error / (double)len_of(v);
    e->power += power / (double)len_of(v);
}

static oct_status compute(oct_block_values *s, const oct_block *b, oct_block_run *r,
                          oct_block_side side, float *scratch, oct_block_error *errors)
{
    for (int64_t p = 0; p < s->pictures; p++) {
        for (int32_t i = 0; i < b->n_in; i++)
            oct_block_values_read(s, side, b->in[i], p, r->in[i]);
        OCT_TRY(oct_block_run_execute(r, b));
        for (int32_t i = 0; i < b->n_out; i++) {
            const oct_value *v = b->out[i];
            const float *y = oct_block_values_within(s, v, r->out[i], scratch);

            oct_f32_to_f16_n(y, len_of(v), s->data[side][v->id] + p * len_of(v));
            if (side == OCT_SIDE_NOW)
                compare(s, v, p, r->out[i], scratch,
                        &errors[oct_block_holds_out(p) ? b->n_out + i : i]);
        }
    }
    return OCT_OK;
}

oct_status oct_block_values_compute(oct_block_values *s, int32_t index, const oct_graph *g,
                                    oct_block_side side, oct_block_error *errors)
{
    const oct_block *b = &s->blocks->item[index];
    oct_arena *a = oct_arena_new(s->ctx);
    oct_block_run r = {0};
    float *scratch = NULL;
    int64_t most = 0;
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < b->n_out && !st; i++) {
        st = reserve(s, side, b->out[i]);
        most = OCT_MAX(most, len_of(b->out[i]));
    }
    for (int32_t i = 0; errors && i < 2 * b->n_out; i++)
        errors[i] = (oct_block_error){0};
    if (!st && !(scratch = oct_arena_array(a, (size_t)most * 2 + 1, sizeof(float))))
        st = OCT_ERR_MEMORY;
    if (!st) st = oct_block_run_new(g, b, side == OCT_SIDE_NOW, a, &r);
    if (!st) st = compute(s, b, &r, side, scratch, errors);
    oct_block_run_fini(&r);
    oct_arena_free(a);
    return st;
}
