/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of u8 codes: MaxPool keeps the scale, averages are requantized. */
#include <string.h>

#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"
#include "op/conv_geometry.h"
#include "op/op.h"

typedef struct state {
    const oct_int8 *set;
    oct_int8_pool pool;
    int64_t line;   /* max: bytes of a row of the operand with its padding */
    int64_t inside; /* bytes of padding before the image */
} state;

enum {
    MAX_REACH = 1 << 20, /* of a window: lines with padding that are worth copying */
    MAX_TAPS = 1 << 23,  /* of codes: their sum fits 32 bits */
};

static bool is_max(const oct_node *n)
{
    return n->op == &oct_op_max_pool || n->op == &oct_op_global_max_pool;
}

static bool find_window(const oct_step *s, const oct_type *x, oct_conv_geometry *g)
{
    const oct_op *op = s->node ? s->node->op : NULL;

    if (op == &oct_op_max_pool || op == &oct_op_average_pool) {
        if (oct_conv_geometry_pool(s->node, x, g)) return false;
    } else if (op == &oct_op_global_average_pool || op == &oct_op_global_max_pool) {
        if (x->rank < 3 || x->rank > 4) return false;
        *g = (oct_conv_geometry){.n = x->rank - 2, .batch = x->dim[0], .c_in = x->dim[1]};
        for (int i = 0; i < g->n; i++) {
            g->in[i] = g->kernel[i] = x->dim[2 + i];
            g->out[i] = g->stride[i] = g->dilation[i] = 1;
        }
    } else {
        return false;
    }
    for (int i = 0; i < g->n; i++)
        if ((g->kernel[i] - 1) * g->dilation[i] > MAX_REACH || g->pad_begin[i] > MAX_REACH)
            return false;
    g->c_out = g->c_in;
    return oct_conv_geometry_to_2d(g);
}

/* From the first byte of a line that some window reads to the last: a window that begins at the
 * last column must end inside. */
static int64_t line_length(const oct_conv_geometry *g)
{
    const int64_t reach = (g->out[1] - 1) * g->stride[1] + (g->kernel[1] - 1) * g->dilation[1] + 1;

    return OCT_MAX(reach, g->pad_begin[1] + g->in[1]) * g->c_in;
}

/* Lines are walked through with their pads, once for each row and column of the window. */
static bool is_worth_lines(const oct_plan *p, const oct_conv_geometry *g)
{
    int64_t work = g->batch * g->out[0];

    return oct_mul_i64(work, g->kernel[0] + g->kernel[1], &work) &&
           oct_mul_i64(work, line_length(g), &work) && work <= oct_ctx_work_limit(p->ctx);
}

static bool accepts_max(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x = s->n_in > 0 ? oct_step_in(p, s, 0) : NULL;
    oct_conv_geometry g;

    if (!s->node || !is_max(s->node) || s->n_out != 1 || !x || x->data) return false;
    if (x->type.dtype != OCT_DTYPE_U8 || !find_window(s, &x->type, &g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return is_worth_lines(p, &g);
}

static bool accepts_average(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!s->integer || s->integer->n_chain || !oct_step_in_u8(p, s, 0)) return false;
    if (is_max(s->node) || !find_window(s, &p->slots[s->in[0]].type, &g)) return false;
    if (!oct_step_is_bare(s) || !oct_step_out_is_codes(s)) return false;
    if (OCT_MIN(g.kernel[0], g.in[0]) * OCT_MIN(g.kernel[1], g.in[1]) > MAX_TAPS) return false;
    *layout = OCT_LAYOUT_CLAST;
    return oct_codes_are_u8(&s->integer->out);
}

static void cut_lines(const oct_plan *p, oct_step *s, const oct_conv_geometry *g, state *st)
{
    st->inside = g->pad_begin[1] * g->c_in;
    st->line = line_length(g);
    s->scratch_size = 2 * (size_t)st->line * (size_t)p->n_threads;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type;
    const oct_attr *count_pad = oct_node_attr(s->node, "count_include_pad");
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_int8_pool *to;
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_window(s, x, &g)) return oct_node_fail(s->node, OCT_ERR_STATE, "has no windows");
    st->set = oct_int8_get();
    to = &st->pool;
    *to = (oct_int8_pool){.batch = x->dim[0],
                          .c = x->dim[1],
                          .in_h = g.in[0],
                          .in_w = g.in[1],
                          .in_pitch = oct_slot_pitch(p, s->in[0]),
                          .out_h = g.out[0],
                          .out_w = g.out[1],
                          .out_pitch = oct_slot_pitch(p, s->out[0]),
                          .count_pads = count_pad && count_pad->i};
    for (int i = 0; i < 2; i++) {
        to->kernel[i] = g.kernel[i];
        to->stride[i] = g.stride[i];
        to->dilation[i] = g.dilation[i];
        to->pad[i] = g.pad_begin[i];
        to->pad_end[i] = g.pad_end[i];
    }
    to->in_step = to->in_h * to->in_w * to->in_pitch;
    to->out_step = to->out_h * to->out_w * to->out_pitch;
    if (!is_max(s->node)) {
        OCT_TRY(oct_int8_codes_make(p, &s->integer->in[0], &to->x));
        OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &to->y));
    }
    if (is_max(s->node)) cut_lines(p, s, &g, st);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 pool:%s", st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- maximum: over rows first, then over neighbours, each as one long vector --- */

typedef struct job {
    const state *st;
    const uint8_t *x;
    uint8_t *y, *scratch;
} job;

/* Column by column, the maximum of the rows under window y; padding is zero, the lowest code. */
static void max_of_rows(const state *st, const uint8_t *image, int64_t y, uint8_t *line)
{
    const oct_int8_pool *w = &st->pool;
    const int64_t size = w->in_w * w->c;

    memset(line, 0, (size_t)st->line);
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        const int64_t row = y * w->stride[0] - w->pad[0] + k * w->dilation[0];
        const uint8_t *x = image + row * w->in_w * w->in_pitch;

        if (row < 0 || row >= w->in_h) continue;
        if (w->in_pitch == w->c) {
            st->set->max(x, line + st->inside, size);
            continue;
        }
        for (int64_t i = 0; i < w->in_w; i++)
            st->set->max(x + i * w->in_pitch, line + st->inside + i * w->c, w->c);
    }
}

static void max_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const oct_int8_pool *w = &st->pool;
    uint8_t *line = j->scratch + 2 * st->line * oct_parallel_thread(), *best = line + st->line;
    const int64_t span = (w->kernel[1] - 1) * w->dilation[1] * w->c;

    for (int64_t i = begin; i < end; i++) {
        uint8_t *y = j->y + i * w->out_w * w->out_pitch;

        max_of_rows(st, j->x + i / w->out_h * w->in_step, i % w->out_h, line);
        memcpy(best, line, (size_t)(st->line - span));
        for (int64_t k = 1; k < w->kernel[1]; k++)
            st->set->max(line + k * w->dilation[1] * w->c, best, st->line - span);
        if (w->stride[1] == 1 && w->out_pitch == w->c) {
            memcpy(y, best, (size_t)(w->out_w * w->c));
            continue;
        }
        for (int64_t o = 0; o < w->out_w; o++)
            memcpy(y + o * w->out_pitch, best + o * w->stride[1] * w->c, (size_t)w->c);
    }
}

static void run_max(const oct_bound *b)
{
    const state *st = b->step->state;
    const oct_int8_pool *w = &st->pool;
    job j = {st, b->in[0], b->out[0], b->scratch};
    const int64_t work = st->line * (w->kernel[0] + w->kernel[1]);

    oct_parallel_for(b->n_threads, w->batch * w->out_h, OCT_MAX(1, 65536 / OCT_MAX(work, 1)),
                     max_rows, &j);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;

    if (is_max(b->step->node))
        run_max(b);
    else
        oct_int8_average_pool(st->set, &st->pool, b->in[0], b->out[0], b->n_threads);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_max_pool = {
    .name = "int8-max-pool",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_max,
    .make = make,
    .run = run,
};

const oct_kernel oct_kernel_int8_average_pool = {
    .name = "int8-average-pool",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_average,
    .make = make,
    .run = run,
};
