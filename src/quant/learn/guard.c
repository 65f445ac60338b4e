/* SPDX-License-Identifier: Apache-2.0 */
/* The error of the whole network: see guard.h. */
#include "quant/learn/guard.h"

#include "quant/lower/lower.h"
#include "tensor/small_float.h"

static int64_t len_of(const oct_value *v)
{
    return oct_type_len(&v->type);
}

/* --- what is read and given --- */

/* Does anything read v that is in no block? */
static bool is_read_beyond(const oct_blocks *b, const oct_value *v)
{
    for (int32_t i = 0; i < v->n_users; i++)
        if (b->of_node[v->users[i]->id] < 0) return true;
    return v->is_output;
}

static oct_status find_whole(const oct_graph *g, const oct_block_values *values, oct_arena *a,
                             oct_block *out)
{
    const oct_blocks *b = values->blocks;
    int32_t n_out = 0;

    for (int32_t k = 0; k < b->n; k++)
        n_out += b->item[k].n_out;
    *out = (oct_block){0};
    out->in = oct_arena_array(a, (size_t)g->n_inputs + 1, sizeof(*out->in));
    out->out = oct_arena_array(a, (size_t)n_out + 1, sizeof(*out->out));
    if (!out->in || !out->out) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (values->last[g->inputs[i]->id] >= 0) out->in[out->n_in++] = g->inputs[i];
    for (int32_t k = 0; k < b->n; k++)
        for (int32_t i = 0; i < b->item[k].n_out; i++)
            if (is_read_beyond(b, b->item[k].out[i])) out->out[out->n_out++] = b->item[k].out[i];
    return OCT_OK;
}

/* --- memory --- */

static oct_status reserve(oct_guard *s, const oct_value *v, uint16_t **out)
{
    size_t n;

    if (!oct_mul_size((size_t)len_of(v), (size_t)s->pictures, &n) ||
        !(*out = oct_alloc(s->ctx, (n + 1) * sizeof(**out))))
        return oct_fail(s->ctx, OCT_ERR_MEMORY, "value '%s' is too large to keep", v->name);
    return OCT_OK;
}

static oct_status reserve_all(oct_guard *s, oct_arena *a)
{
    const oct_block *b = &s->whole;

    s->in = oct_arena_array(a, (size_t)b->n_in + 1, sizeof(*s->in));
    s->exact = oct_arena_array(a, (size_t)b->n_out + 1, sizeof(*s->exact));
    s->power = oct_arena_array(a, (size_t)b->n_out + 1, sizeof(*s->power));
    if (!s->in || !s->exact || !s->power) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < b->n_in; i++)
        OCT_TRY(reserve(s, b->in[i], &s->in[i]));
    for (int32_t i = 0; i < b->n_out; i++)
        OCT_TRY(reserve(s, b->out[i], &s->exact[i]));
    return OCT_OK;
}

void oct_guard_fini(oct_guard *s)
{
    for (int32_t i = 0; s->in && i < s->whole.n_in; i++)
        oct_free(s->ctx, s->in[i]);
    for (int32_t i = 0; s->exact && i < s->whole.n_out; i++)
        oct_free(s->ctx, s->exact[i]);
}

/* --- computing --- */

static oct_status execute(const oct_guard *s, oct_block_run *r, int64_t picture)
{
    for (int32_t i = 0; i < s->whole.n_in; i++) {
        const int64_t n = len_of(s->whole.in[i]);

        oct_f16_to_f32_n(s->in[i] + picture * n, n, r->in[i]);
    }
    return oct_block_run_execute(r, &s->whole);
}

static oct_status compute_exact(oct_guard *s, const oct_graph *g, const oct_block_values *values)
{
    oct_arena *a = oct_arena_new(s->ctx);
    oct_block_run r = {0};
    float *scratch = NULL;
    int64_t most = 0;
    oct_status st = a ? oct_block_run_new(g, &s->whole, false, a, &r) : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < s->whole.n_out; i++)
        most = OCT_MAX(most, len_of(s->whole.out[i]));
    if (!st && !(scratch = oct_arena_array(a, (size_t)most * 2 + 1, sizeof(float))))
        st = OCT_ERR_MEMORY;
    for (int64_t p = 0; p < s->pictures && !st; p++) {
        st = execute(s, &r, p);
        for (int32_t i = 0; i < s->whole.n_out && !st; i++) {
            const oct_value *v = s->whole.out[i];
            const float *y = oct_block_values_within(values, v, r.out[i], scratch);
            float *counts = scratch + len_of(v);
            const int64_t n = oct_block_values_counts(values, v, oct_block_held_out(p), counts);

            oct_f32_to_f16_n(y, len_of(v), s->exact[i] + p * len_of(v));
            for (int64_t k = 0; k < len_of(v); k++)
                s->power[i] += (double)counts[k % n] * (double)y[k] * (double)y[k];
        }
    }
    oct_block_run_fini(&r);
    oct_arena_free(a);
    return st;
}

oct_status oct_guard_new(const oct_graph *g, const oct_block_values *values, oct_arena *a,
                         oct_guard *out)
{
    int64_t n = 0;

    *out = (oct_guard){.ctx = g->ctx, .values = values};
    for (int64_t p = 0; p < values->pictures; p++)
        out->pictures += oct_block_holds_out(p);
    OCT_TRY(find_whole(g, values, a, &out->whole));
    OCT_TRY(reserve_all(out, a));
    for (int64_t p = 0; p < values->pictures; p++) {
        if (!oct_block_holds_out(p)) continue;
        for (int32_t i = 0; i < out->whole.n_in; i++) {
            const oct_value *v = out->whole.in[i];
            const uint16_t *from = values->data[OCT_SIDE_EXACT][v->id] + p * len_of(v);

            for (int64_t k = 0; k < len_of(v); k++)
                out->in[i][n * len_of(v) + k] = from[k];
        }
        n++;
    }
    return compute_exact(out, g, values);
}

/* `scratch` has room for the value twice. */
static double error_of(const oct_guard *s, int32_t i, int64_t picture, const float *y,
                       float *scratch)
{
    const oct_value *v = s->whole.out[i];
    const int64_t n = len_of(v);
    float *counts = scratch + n;
    const int64_t plane =
        oct_block_values_counts(s->values, v, oct_block_held_out(picture), counts);
    double error = 0;

    oct_f16_to_f32_n(s->exact[i] + picture * n, n, scratch);
    for (int64_t k = 0; k < n; k++)
        error +=
            (double)counts[k % plane] * (double)(y[k] - scratch[k]) * (double)(y[k] - scratch[k]);
    return s->power[i] > 0 ? error / s->power[i] : 0;
}

static oct_status measure_lowered(const oct_guard *s, const oct_graph *lowered, oct_arena *a,
                                  double *noise)
{
    int64_t most = 0;
    oct_block_run r = {0};
    float *scratch;
    oct_status st;

    for (int32_t i = 0; i < s->whole.n_out; i++)
        most = OCT_MAX(most, len_of(s->whole.out[i]));
    if (!(scratch = oct_arena_array(a, (size_t)most * 2 + 1, sizeof(*scratch))))
        return OCT_ERR_MEMORY;
    st = oct_block_run_new(lowered, &s->whole, true, a, &r);
    for (int64_t p = 0; p < s->pictures && !st; p++) {
        st = execute(s, &r, p);
        for (int32_t i = 0; i < s->whole.n_out && !st; i++)
            *noise += error_of(s, i, p, r.out[i], scratch) / s->whole.n_out;
    }
    oct_block_run_fini(&r);
    return st;
}

oct_status oct_guard_measure(const oct_guard *s, const oct_qmap *m, double *noise)
{
    oct_graph *lowered = NULL;
    oct_arena *a = oct_arena_new(s->ctx);
    oct_status st = a ? oct_lower(m, NULL, &lowered) : OCT_ERR_MEMORY;

    *noise = 0;
    if (!st) st = measure_lowered(s, lowered, a, noise);
    oct_graph_free(lowered);
    oct_arena_free(a);
    return st;
}

oct_status oct_guard_search(int32_t n, double limit, oct_guard_try measure, void *arg,
                            int32_t *kept, double *noise)
{
    *kept = 0;
    *noise = limit;
    while (n - *kept > 1) {
        const int32_t half = (*kept + n) / 2;
        double now;

        OCT_TRY(measure(arg, half, &now));
        if (now <= limit) {
            *noise = now;
            *kept = half;
        } else {
            n = half;
        }
    }
    return OCT_OK;
}
