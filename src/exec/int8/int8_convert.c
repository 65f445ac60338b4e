/* SPDX-License-Identifier: Apache-2.0 */
/* Quantize, dequantize and requantize: floats to codes, codes to floats, codes of one scale to
 * another. */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"

typedef enum kind { QUANTIZE, DEQUANTIZE, REQUANTIZE } kind;

typedef struct state {
    const oct_int8 *set;
    kind kind;
    oct_int8_codes from, to;
    oct_int8_grid grid;
    size_t in_size, out_size; /* bytes of an element */
    int64_t piece;            /* a single long row is cut into these; 0: rows as they are */
} state;

static bool find_kind(const oct_plan *p, const oct_step *s, kind *k)
{
    if (!s->integer || s->integer->n_chain || s->n_in != 1 || p->slots[s->in[0]].data) return false;
    if (oct_node_is_dequantize(s->node)) {
        *k = DEQUANTIZE;
        return s->integer->in[0].dtype == OCT_DTYPE_U8;
    }
    if (!oct_node_is_quantize(s->node) || s->integer->out.dtype != OCT_DTYPE_U8) return false;
    *k = s->integer->in[0].dtype ? REQUANTIZE : QUANTIZE;
    if (*k == QUANTIZE) return p->slots[s->in[0]].type.dtype == OCT_DTYPE_F32;
    return s->integer->in[0].dtype == OCT_DTYPE_U8 &&
           (s->integer->in[0].axis == s->integer->out.axis || s->integer->in[0].n == 1 ||
            s->integer->out.n == 1);
}

static int32_t axis_of(const oct_step *s)
{
    return OCT_MAX(s->integer->in[0].dtype ? s->integer->in[0].axis : -1,
                   s->integer->out.dtype ? s->integer->out.axis : -1);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    kind k;

    if (!find_kind(p, s, &k)) return false;
    *layout = axis_of(s) < 0 || axis_of(s) == 1 ? OCT_LAYOUT_ANY : OCT_LAYOUT_PLAIN;
    return true;
}

/* All rows have the same parameters: cut anywhere. */
static void cut(state *st)
{
    if (st->grid.r.rows != 1 || st->from.n > 1 || st->to.n > 1) return;
    st->piece = OCT_GRAIN_ELEMENTS;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    static const char *const names[] = {"quantize", "dequantize", "requantize"};
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    if (!find_kind(p, s, &st->kind))
        return oct_fail(p->ctx, OCT_ERR_STATE, "step '%s' does not change codes", s->label);
    st->set = oct_int8_get();
    if (st->kind != QUANTIZE) OCT_TRY(oct_int8_codes_make(p, &s->integer->in[0], &st->from));
    if (st->kind != DEQUANTIZE) OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &st->to));
    oct_int8_grid_make(p, s->in[0], s->out[0], OCT_MAX(st->from.n, st->to.n), axis_of(s),
                       &st->grid);
    st->in_size = st->kind == QUANTIZE ? sizeof(float) : 1;
    st->out_size = st->kind == DEQUANTIZE ? sizeof(float) : 1;
    cut(st);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 %s:%s", names[st->kind], st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const char *x;
    char *y;
} job;

static oct_int8_codes params_at(const oct_int8_codes *c, int64_t i, bool single)
{
    const int64_t k = c->n > 1 ? i : 0;

    /* floats have neither scale nor zero point */
    return (oct_int8_codes){single ? 1 : c->n, c->scale ? c->scale + k : NULL,
                            c->zero ? c->zero + k : NULL, c->last};
}

/* Rows [row, row + r->rows) with the parameters of channel i. */
static void convert(const job *j, const oct_int8_strides *r, int64_t at_x, int64_t at_y, int64_t i)
{
    const state *st = j->st;
    const bool single = st->grid.n_params > 1;
    const oct_int8_codes from = params_at(&st->from, i, single), to = params_at(&st->to, i, single);
    const char *x = j->x + (size_t)at_x * st->in_size;
    char *y = j->y + (size_t)at_y * st->out_size;

    if (st->kind == QUANTIZE)
        st->set->quantize(&to, r, (const float *)x, (uint8_t *)y);
    else if (st->kind == DEQUANTIZE)
        st->set->dequantize(&from, r, (const uint8_t *)x, (float *)y);
    else
        st->set->requantize(&from, &to, r, (const uint8_t *)x, (uint8_t *)y);
}

static void pieces(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_int8_strides r = {
        .rows = 1, .n = end - begin, .a_pitch = end - begin, .y_pitch = end - begin};

    convert(j, &r, begin, begin, 0);
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_int8_grid *g = &j->st->grid;
    oct_int8_strides r = g->r;

    if (g->n_params == 1) {
        r.rows = end - begin;
        convert(j, &r, begin * r.a_pitch, begin * r.y_pitch, 0);
        return;
    }
    r.rows = 1;
    for (int64_t i = begin; i < end; i++)
        convert(j, &r, i * r.a_pitch, i * r.y_pitch, i % g->n_params);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};
    const oct_int8_strides *r = &st->grid.r;

    if (st->piece)
        oct_parallel_for(b->n_threads, r->n, st->piece, pieces, &j);
    else
        oct_parallel_for(b->n_threads, r->rows, OCT_MAX(1, OCT_GRAIN_ELEMENTS / OCT_MAX(r->n, 1)),
                         rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_convert = {
    .name = "int8-convert",
    .flags =
        OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
