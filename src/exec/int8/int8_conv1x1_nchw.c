/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output head: a 1x1 convolution, int8 NHWC to f32 NCHW. Strips of 64 pixels are computed in NHWC
 * and transposed while they are in the first-level cache.
 */
#include "base/parallel.h"
#include "exec/int8/int8_weights.h"
#include "exec/simd/simd.h"
#include "op/op.h"

#define STRIP 64 /* pixels */

enum { X = OCT_WEIGHTED_X, W = OCT_WEIGHTED_W, B = OCT_WEIGHTED_B };

typedef struct state {
    const oct_simd *simd;
    oct_int8_conv strip, rest; /* rest: the last pixels of an image */
    oct_int8_epilogue epilogue;
    int64_t images, pixels, strips, c_out, in_pitch;
    int64_t plane;    /* elements from one channel of the result to the next */
    size_t work_size; /* bytes of the convolutions' scratch memory; the strips follow */
} state;

static bool find_shape(const oct_plan *p, const oct_step *s, oct_int8_shape *w)
{
    const oct_type *x = &p->slots[s->in[X]].type;
    oct_conv_geometry g;

    if (oct_conv_geometry_conv(s->node, x, &p->slots[s->in[W]].type, &g)) return false;
    if (g.n != 2 || g.group != 1 || !oct_conv_is_pointwise(&g) || oct_type_len(x) < 1) return false;
    *w = oct_int8_conv_shape(&g);
    return g.c_out > 0;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_int8_conv c;
    oct_int8_shape w;
    bool wide;

    if (!s->integer || !s->fuse.nchw_out || s->integer->n_chain || s->fuse.residual >= 0)
        return false;
    if (!oct_step_in_u8(p, s, X) || !oct_step_const(p, s, W)) return false;
    if (oct_step_out_is_codes(s) || !oct_step_out_u8_or_f32(p, s)) return false;
    if (!find_shape(p, s, &w)) return false;
    *layout = OCT_LAYOUT_CLAST;
    c = oct_int8_product(STRIP, w.channels, &w);
    return oct_int8_conv_size(oct_int8_get(), &c) > 0 && oct_int8_weights_fit(p, s, &w, &wide) &&
           !wide;
}

static oct_status pack(oct_plan *p, const oct_step *s, const oct_int8_shape *w, const int8_t *data,
                       state *st)
{
    oct_int8_epilogue_spec spec = {
        .c = w->filters, .act = {s->fuse.act[0], s->fuse.act[1]}, .out = OCT_INT8_F32};
    oct_int8_weights weights = {.w = data, .o = w->o, .c = w->c, .t = w->t};
    oct_int8_codes x;
    oct_int8_accumulators acc;

    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[X], &x));
    OCT_TRY(oct_int8_weights_accumulators(p, s, w, &acc));
    weights.x_zero = x.zero;
    weights.n_zero = x.n > 1 ? w->channels : 1;
    weights.bias = acc.bias;
    OCT_TRY(oct_int8_weights_pack(p, s, &weights, &st->strip));
    OCT_TRY(oct_int8_weights_pack(p, s, &weights, &st->rest));
    spec.scale = acc.scale;
    spec.bias = acc.bias_f32;
    return oct_int8_epilogue_make(p, &spec, &st->epilogue);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[X]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_int8_bytes plain;
    oct_int8_shape w;
    oct_status status;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_shape(p, s, &w)) return oct_node_fail(s->node, OCT_ERR_STATE, "is not pointwise");
    st->simd = oct_simd_get();
    st->images = x->dim[0];
    st->pixels = oct_type_pixels(x);
    st->strips = oct_ceil_div(st->pixels, STRIP);
    st->c_out = w.filters;
    st->in_pitch = oct_slot_pitch(p, s->in[X]);
    st->plane = oct_slot_plane_pitch(p, s->out[0]);
    st->strip = oct_int8_product(STRIP, st->in_pitch, &w);
    st->rest = oct_int8_product(st->pixels - (st->strips - 1) * STRIP, st->in_pitch, &w);
    OCT_TRY(oct_int8_weights_read(p, s, &w, &plain));
    status = pack(p, s, &w, plain.w, st);
    oct_free(p->ctx, plain.own);
    if (status) return status;
    st->work_size = OCT_MAX(st->strip.scratch_size, st->rest.scratch_size);
    st->strip.scratch_size = st->rest.scratch_size = st->work_size; /* they run at the same time */
    st->work_size = (st->work_size * (size_t)p->n_threads + 63) / 64 * 64;
    s->scratch_size =
        st->work_size + (size_t)(STRIP * st->c_out) * (size_t)p->n_threads * sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 conv to NCHW:%s", oct_int8_get()->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const uint8_t *x;
    float *y;
    char *scratch;
} job;

static void strips(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    float *side =
        (float *)(void *)(j->scratch + st->work_size) + oct_parallel_thread() * STRIP * st->c_out;

    for (int64_t u = begin; u < end; u++) {
        const int64_t image = u / st->strips, first = u % st->strips * STRIP;
        const int64_t n = OCT_MIN(STRIP, st->pixels - first);
        const oct_int8_conv *c = u % st->strips + 1 < st->strips ? &st->strip : &st->rest;
        const oct_int8_io io = {.x = j->x + (image * st->pixels + first) * st->in_pitch,
                                .y = side,
                                .scratch = j->scratch};

        oct_int8_conv_run(c, &st->epilogue, &io, 1);
        st->simd->transpose(side, st->c_out, j->y + image * st->c_out * st->plane + first,
                            st->plane, n, st->c_out);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[X], b->out[0], b->scratch};

    oct_parallel_for(b->n_threads, st->images * st->strips, 4, strips, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_conv1x1_nchw = {
    .name = "int8-conv1x1-nchw",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_NCHW_OUT,
    .out_layout = OCT_LAYOUT_PLAIN,
    .accepts = accepts,
    .make = make,
    .run = run,
};
