/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of u8 codes with s8 weights: dense, depthwise and grouped, 1-D and 2-D. */
#include "base/parallel.h"
#include "exec/int8/int8_weights.h"
#include "op/op.h"

enum { X = OCT_WEIGHTED_X, W = OCT_WEIGHTED_W, B = OCT_WEIGHTED_B };

/* One for each group of channels; dense and depthwise ones are a single group. */
typedef struct part {
    oct_int8_conv conv, rest;         /* rest: only with wide weights */
    oct_int8_epilogue epilogue, bare; /* bare: writes the accumulators */
} part;

typedef struct state {
    int64_t n_parts, c_in, c_out; /* channels of one group */
    size_t y_size, r_size;        /* bytes of an element */
    bool is_wide;                 /* the accumulators of two convolutions are added before the
                                   * epilogue */
    int64_t n_pixels, acc_pitch, y_pitch, r_pitch;
    size_t work_size; /* bytes the convolutions themselves need */
    part parts[];
} state;

static bool residual_fits(const oct_plan *p, const oct_step *s)
{
    const int32_t r = s->fuse.residual;

    if (r < 0) return true;
    if (!s->integer->in[r].dtype) return p->slots[s->in[r]].type.dtype == OCT_DTYPE_F32;
    return oct_step_in_u8(p, s, r) && s->fuse.residual_scale > 0;
}

static void fill_pitches(const oct_plan *p, const oct_step *s, oct_int8_conv *c)
{
    c->in_pitch = oct_slot_pitch(p, s->in[X]);
    c->out_pitch = oct_slot_pitch(p, s->out[0]);
    c->residual_pitch = s->fuse.residual >= 0 ? oct_slot_pitch(p, s->in[s->fuse.residual]) : 0;
    c->in_step = c->in_h * c->in_w * c->in_pitch;
    c->out_step = c->out_h * c->out_w * c->out_pitch;
    c->residual_step = c->out_h * c->out_w * c->residual_pitch;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;
    oct_int8_conv c;
    oct_int8_shape w;
    bool wide;

    if (!s->integer || !s->node || s->node->op != &oct_op_conv || s->integer->n_chain) return false;
    if (!oct_step_in_u8(p, s, X) || !oct_step_const(p, s, W)) return false;
    if (!oct_step_out_u8_or_f32(p, s) || !residual_fits(p, s)) return false;
    if (oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type, &g) ||
        !oct_conv_geometry_to_2d(&g))
        return false;
    w = oct_int8_conv_shape(&g);
    *layout = OCT_LAYOUT_CLAST;
    c = oct_int8_windows(&g);
    if (oct_int8_conv_size(oct_int8_get(), &c) == 0) return false;
    return oct_int8_weights_fit(p, s, &w, &wide);
}

static oct_int8_codes from(const oct_int8_codes *c, int64_t first)
{
    const int64_t k = c->n > 1 ? first : 0;

    return (oct_int8_codes){c->n, c->scale + k, c->zero + k, c->last};
}

/* The codes of all channels, and scale and bias of all filters' accumulators. */
typedef struct parameters {
    oct_int8_codes x, y, r;
    oct_int8_accumulators acc;
    oct_int8_bytes w;
} parameters;

static oct_status pack_epilogue(oct_plan *p, const oct_step *s, const parameters *a, int64_t first,
                                int64_t n, oct_int8_epilogue *f)
{
    const int32_t r = s->fuse.residual;
    oct_int8_epilogue_spec spec = {.c = n,
                                   .scale = a->acc.scale + first,
                                   .bias = a->acc.bias_f32 ? a->acc.bias_f32 + first : NULL,
                                   .act = {s->fuse.act[0], s->fuse.act[1]},
                                   .out = a->y.n ? OCT_INT8_U8 : OCT_INT8_F32};

    if (r >= 0) {
        spec.residual = a->r.n ? OCT_INT8_U8 : OCT_INT8_F32;
        spec.residual_scale = s->fuse.residual_scale;
        if (a->r.n) spec.r = from(&a->r, first);
    }
    if (a->y.n) spec.y = from(&a->y, first);
    return oct_int8_epilogue_make(p, &spec, f);
}

static oct_status pack_part(oct_plan *p, const oct_step *s, const parameters *a,
                            const oct_int8_shape *w, int64_t i, bool is_wide, part *to)
{
    const int64_t first = i * to->conv.c_out;
    const oct_int8_epilogue_spec bare = {.c = to->conv.c_out, .out = OCT_INT8_S32};
    const oct_int8_codes x = from(&a->x, i * to->conv.c_in);
    oct_int8_weights weights = {.w = a->w.w + first * w->o,
                                .o = w->o,
                                .c = w->c,
                                .t = w->t,
                                .x_zero = x.zero,
                                .n_zero = x.n > 1 ? to->conv.c_in : 1,
                                .bias = a->acc.bias ? a->acc.bias + first : NULL};

    to->rest = to->conv;
    OCT_TRY(oct_int8_weights_pack(p, s, &weights, &to->conv));
    if (is_wide) {
        weights.w = a->w.rest + first * w->o;
        weights.bias = NULL;
        OCT_TRY(oct_int8_weights_pack(p, s, &weights, &to->rest));
        OCT_TRY(oct_int8_epilogue_make(p, &bare, &to->bare));
    }
    return pack_epilogue(p, s, a, first, to->conv.c_out, &to->epilogue);
}

static oct_status read_parameters(oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                                  parameters *a)
{
    const int32_t r = s->fuse.residual;

    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[X], &a->x));
    if (oct_step_out_is_codes(s)) OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &a->y));
    if (r >= 0 && s->integer->in[r].dtype) {
        float *scale;

        OCT_TRY(oct_int8_codes_make(p, &s->integer->in[r], &a->r));
        if (!(scale = oct_plan_alloc(p, (size_t)a->r.n, sizeof(*scale)))) return OCT_ERR_MEMORY;
        for (int64_t i = 0; i < a->r.n; i++)
            scale[i] = a->r.scale[i] * s->fuse.residual_scale;
        a->r.scale = scale;
    }
    OCT_TRY(oct_int8_weights_accumulators(p, s, w, &a->acc));
    return oct_int8_weights_read(p, s, w, &a->w);
}

/* Both convolutions write accumulators, in rows of whole vectors; the epilogue works on those. */
static void set_wide(state *st, oct_int8_conv *c)
{
    const int64_t width = oct_int8_get()->width;

    st->acc_pitch = oct_ceil_div(c->c_out, width) * width;
    st->n_pixels = c->batch * c->out_h * c->out_w;
    st->y_pitch = c->out_pitch;
    st->r_pitch = c->residual_pitch;
    c->out_pitch = st->acc_pitch;
    c->out_step = c->out_h * c->out_w * st->acc_pitch;
}

/* Bytes, whole cache lines. */
static size_t work_of(const oct_int8_conv *c, int n_threads)
{
    return (c->scratch_size * (size_t)n_threads + 63) / 64 * 64;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    parameters a = {0};
    oct_conv_geometry g;
    oct_int8_conv c;
    oct_int8_shape w;
    int64_t n_parts;
    state *st;
    oct_status status;

    OCT_TRY(
        oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type, &g));
    oct_conv_geometry_to_2d(&g);
    w = oct_int8_conv_shape(&g);
    c = oct_int8_windows(&g);
    fill_pitches(p, s, &c);
    n_parts = g.c_in / c.c_in;
    st = oct_plan_alloc(p, 1, sizeof(*st) + (size_t)n_parts * sizeof(part));
    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.n_parts = n_parts, .c_in = c.c_in, .c_out = c.c_out};
    oct_int8_weights_fit(p, s, &w, &st->is_wide);
    st->y_size = oct_dtype_size(p->slots[s->out[0]].type.dtype);
    if (s->fuse.residual >= 0)
        st->r_size = oct_dtype_size(p->slots[s->in[s->fuse.residual]].type.dtype);
    if (st->is_wide) set_wide(st, &c);
    status = read_parameters(p, s, &w, &a);
    for (int64_t i = 0; i < n_parts && !status; i++) {
        st->parts[i].conv = c;
        status = pack_part(p, s, &a, &w, i, st->is_wide, &st->parts[i]);
        st->work_size = OCT_MAX(st->work_size, work_of(&st->parts[i].conv, p->n_threads));
        if (st->is_wide)
            st->work_size = OCT_MAX(st->work_size, work_of(&st->parts[i].rest, p->n_threads));
    }
    s->scratch_size = st->work_size;
    if (st->is_wide)
        s->scratch_size += 2 * (size_t)(st->n_pixels * st->acc_pitch) * sizeof(int32_t);
    oct_free(p->ctx, a.w.own);
    if (status) return status;
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 %s:%s", c.depthwise ? "depthwise" : "conv",
                               oct_int8_get()->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const part *part;
    int32_t *sum;
    const int32_t *rest;
    const char *r;
    char *y;
} job;

static void epilogue_pixels(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t pitch = st->acc_pitch;

    for (int64_t i = begin * pitch; i < end * pitch; i++)
        j->sum[i] = (int32_t)((uint32_t)j->sum[i] + (uint32_t)j->rest[i]);
    j->part->conv.set->epilogue(
        &j->part->epilogue,
        &(oct_int8_rows){.sum = j->sum + begin * pitch,
                         .acc_pitch = pitch,
                         .n = st->c_out,
                         .count = end - begin,
                         .y = j->y + (size_t)(begin * st->y_pitch) * st->y_size,
                         .y_pitch = st->y_pitch,
                         .residual =
                             j->r ? j->r + (size_t)(begin * st->r_pitch) * st->r_size : NULL,
                         .residual_pitch = st->r_pitch});
}

static void run_wide(const state *st, const part *to, const oct_int8_io *io, int n_threads)
{
    int32_t *sum = (int32_t *)(void *)((char *)io->scratch + st->work_size);
    int32_t *rest = sum + st->n_pixels * st->acc_pitch;
    oct_int8_io acc_io = *io;
    job j = {st, to, sum, rest, io->residual, io->y};

    acc_io.residual = NULL;
    acc_io.y = sum;
    oct_int8_conv_run(&to->conv, &to->bare, &acc_io, n_threads);
    acc_io.y = rest;
    oct_int8_conv_run(&to->rest, &to->bare, &acc_io, n_threads);
    oct_parallel_for(n_threads, st->n_pixels, OCT_MAX(1, 16384 / st->c_out), epilogue_pixels, &j);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;

    for (int64_t i = 0; i < st->n_parts; i++) {
        const size_t first = (size_t)(i * st->c_out);
        const oct_int8_io io = {.x = (const uint8_t *)b->in[X] + i * st->c_in,
                                .residual =
                                    r >= 0 ? (const char *)b->in[r] + first * st->r_size : NULL,
                                .y = (char *)b->out[0] + first * st->y_size,
                                .scratch = b->scratch};

        if (st->is_wide)
            run_wide(st, &st->parts[i], &io, b->n_threads);
        else
            oct_int8_conv_run(&st->parts[i].conv, &st->parts[i].epilogue, &io, b->n_threads);
    }
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_conv = {
    .name = "int8-conv",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
