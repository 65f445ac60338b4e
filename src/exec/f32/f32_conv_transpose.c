/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose whose windows do not overlap (kernel 2x2, stride 2: upsampling in detector necks):
 * each tap is a 1x1 convolution to every second pixel. Codes are converted to floats and back row
 * by row, so that only codes are stored.
 */
#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "exec/int8/int8_kernel.h"
#include "op/conv_geometry.h"
#include "op/op.h"

#define CHUNK_MACS 400000 /* work that is worth a thread */
#define MAX_TAPS   16

enum { X, W, B };

typedef struct state {
    const oct_simd *simd;
    const oct_int8 *set;
    oct_conv tap[MAX_TAPS]; /* of one row; [ky][kx] */
    int64_t batch, in_h, in_w, in_pitch, c_in;
    int64_t kernel[2], out_w, out_pitch, c_out;
    bool from_codes, to_codes;
    oct_int8_codes from, to;
    int64_t line, room; /* floats: of one row; of a thread's scratch memory */
} state;

static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_slot *x = oct_step_in(p, s, X), *w = oct_step_in(p, s, W);

    if (!x || !w || x->data || !w->data) return false;
    if (oct_conv_geometry_transpose(s->node, &x->type, &w->type, g) || g->n != 2) return false;
    for (int i = 0; i < 2; i++)
        if (g->kernel[i] != g->stride[i] || g->pad_begin[i] || g->pad_end[i] || g->in[i] < 1 ||
            g->out[i] != g->in[i] * g->stride[i])
            return false;
    return g->group == 1 && g->kernel[0] * g->kernel[1] <= MAX_TAPS && g->batch > 0 &&
           g->c_in > 0 && g->c_out > 0;
}

static bool is_alone(const oct_step *s)
{
    return s->node && s->node->op == &oct_op_conv_transpose && s->fuse.residual < 0;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!is_alone(s) || s->integer || !oct_step_is_f32(p, s)) return false;
    if (oct_step_in(p, s, B) && !oct_step_const(p, s, B)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return find_geometry(p, s, &g);
}

/* Constants of one element, or one for each index of the axis, of any integer type. */
static bool is_readable(const oct_codes *c, const oct_slot *s, int32_t axis)
{
    if (!s) return true;
    if (!s->data) return false;
    return c->dtype ? c->n == 1 || c->axis == axis : s->type.dtype == OCT_DTYPE_F32;
}

static bool accepts_codes(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!is_alone(s) || !s->integer || s->integer->n_chain || !oct_step_in_u8(p, s, X))
        return false;
    if (!oct_step_out_u8_or_f32(p, s) || !find_geometry(p, s, &g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return is_readable(&s->integer->in[W], oct_step_in(p, s, W), 1) &&
           (s->n_in <= B || is_readable(&s->integer->in[B], oct_step_in(p, s, B), 0));
}

/* The dequantized elements of a constant, which the caller frees. */
static oct_status read_numbers(oct_plan *p, const oct_step *s, int32_t i, int64_t inner,
                               float **out)
{
    const oct_tensor *t = oct_step_const(p, s, i);
    const oct_codes *c = s->integer ? &s->integer->in[i] : NULL;
    const int64_t n = oct_tensor_len(t);
    float *x = oct_calloc(p->ctx, (size_t)n + 1, sizeof(*x));
    int64_t code;

    *out = x;
    if (!x) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = c && c->n > 1 ? k / inner % c->n : 0;

        if (!c || !c->dtype) {
            x[k] = ((const float *)t->data)[k];
            continue;
        }
        oct_load_i64(t->type.dtype, t->data, k, 1, &code);
        x[k] = (float)(code - oct_codes_zero(c, at)) * oct_codes_scale(c, at);
    }
    return OCT_OK;
}

static oct_status pack(oct_plan *p, const oct_step *s, state *st)
{
    const int64_t taps = st->kernel[0] * st->kernel[1];
    float *w = NULL, *bias = NULL;
    oct_status status = read_numbers(p, s, W, taps, &w);

    if (!status && oct_step_const(p, s, B)) status = read_numbers(p, s, B, 1, &bias);
    for (int64_t i = 0; i < taps && !status; i++) { /* the weights are [c_in][c_out][taps] */
        const oct_conv_weights weights = {
            .w = w + i, .o = taps, .c = st->c_out * taps, .bias = bias};

        st->tap[i] =
            (oct_conv){.in_h = 1,
                       .in_w = st->in_w,
                       .in_pitch = st->from_codes ? st->c_in : st->in_pitch,
                       .c_in = st->c_in,
                       .out_h = 1,
                       .out_w = st->in_w,
                       .out_pitch = st->kernel[1] * (st->to_codes ? st->c_out : st->out_pitch),
                       .c_out = st->c_out,
                       .kernel = {1, 1},
                       .stride = {1, 1},
                       .dilation = {1, 1},
                       .patch_size = OCT_CONV_PIXELS * st->c_in,
                       .act = {s->fuse.act[0], s->fuse.act[1]}};
        status = oct_conv_pack(p, st->simd, &weights, st->c_in, oct_conv_put_taps, &st->tap[i]);
    }
    oct_free(p->ctx, w);
    oct_free(p->ctx, bias);
    return status;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_geometry(p, s, &g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has windows that overlap");
    *st = (state){.simd = oct_simd_get(),
                  .set = oct_int8_get(),
                  .batch = g.batch,
                  .in_h = g.in[0],
                  .in_w = g.in[1],
                  .in_pitch = oct_slot_pitch(p, s->in[X]),
                  .c_in = g.c_in,
                  .kernel = {g.kernel[0], g.kernel[1]},
                  .out_w = g.out[1],
                  .out_pitch = oct_slot_pitch(p, s->out[0]),
                  .c_out = g.c_out,
                  .from_codes = s->integer != NULL,
                  .to_codes = s->integer && oct_step_out_is_codes(s)};
    if (st->from_codes) OCT_TRY(oct_int8_codes_make(p, &s->integer->in[X], &st->from));
    if (st->to_codes) OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &st->to));
    OCT_TRY(pack(p, s, st));
    st->line = st->from_codes ? st->in_w * st->c_in : 0;
    st->room = st->line + OCT_CONV_PIXELS * st->c_in + (st->to_codes ? st->out_w * st->c_out : 0);
    s->scratch_size = (size_t)st->room * (size_t)p->n_threads * sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "%sconv of taps:%s", st->from_codes ? "int8 rows, " : "",
                               st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const void *x;
    void *y;
    float *scratch;
} job;

/* Row ky of the output rows that row `row` of the operand produces. */
static void make_row(const job *j, oct_conv_io *io, int64_t row, int64_t ky, float *line)
{
    const state *st = j->st;
    const int64_t at = (row * st->kernel[0] + ky) * st->out_w * st->out_pitch;
    const oct_int8_strides r = {
        .rows = st->out_w, .n = st->c_out, .a_pitch = st->c_out, .y_pitch = st->out_pitch};

    for (int64_t kx = 0; kx < st->kernel[1]; kx++) {
        const oct_conv *c = &st->tap[ky * st->kernel[1] + kx];

        io->y = st->to_codes ? line + kx * st->c_out : (float *)j->y + at + kx * st->out_pitch;
        st->simd->conv->dense(c, io, 0, 0, st->in_w, 0, c->n_blocks);
    }
    if (st->to_codes) st->set->quantize(&st->to, &r, line, (uint8_t *)j->y + at);
}

/* Rows of all images; the rows of the result follow in the same order. */
static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    float *own = j->scratch + oct_parallel_thread() * st->room;
    const oct_int8_strides r = {
        .rows = st->in_w, .n = st->c_in, .a_pitch = st->in_pitch, .y_pitch = st->c_in};
    oct_conv_io io = {.x = own, .patch = own + st->line};

    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i * st->in_w * st->in_pitch;

        if (st->from_codes)
            st->set->dequantize(&st->from, &r, (const uint8_t *)j->x + at, own);
        else
            io.x = (const float *)j->x + at;
        for (int64_t ky = 0; ky < st->kernel[0]; ky++)
            make_row(j, &io, i, ky, own + st->line + OCT_CONV_PIXELS * st->c_in);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t work = st->in_w * st->c_in * st->c_out * st->kernel[0] * st->kernel[1];
    job j = {st, b->in[X], b->out[0], b->scratch};

    oct_parallel_for(b->n_threads, st->batch * st->in_h, OCT_MAX(1, CHUNK_MACS / work), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv_transpose = {
    .name = "conv-transpose",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};

const oct_kernel oct_kernel_int8_conv_transpose = {
    .name = "int8-conv-transpose",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_codes,
    .make = make,
    .run = run,
};
