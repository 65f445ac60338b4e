/* SPDX-License-Identifier: Apache-2.0 */
/* The integer loops without vectors, one element at a time: the reference that tests compare the
 * others with. */
#include <math.h>
#include <string.h>

#include "exec/simd/int8/simd_int8.h"
#include "op/quant.h"

/* --- epilogue --- */

static uint8_t code(float x, float low, float high, int32_t zero)
{
    return (uint8_t)oct_quant_code(x, zero, (int32_t)low + zero, (int32_t)high + zero);
}

static float epilogue_one(const oct_int8_epilogue *f, int32_t sum, int64_t c, const void *r,
                          int64_t at)
{
    float x = (float)sum * f->scale[c] + f->bias[c];

    x = oct_act_apply(&f->act[0], x);
    if (f->residual == OCT_INT8_U8)
        x += ((float)((const uint8_t *)r)[at] - f->r_zero[c]) * f->r_scale[c];
    if (f->residual == OCT_INT8_F32) x += ((const float *)r)[at] * f->r_scale[c];
    return oct_act_apply(&f->act[1], x);
}

/* The code above the zero point, in a short form: the scale is divided by that of the result. */
static float short_one(const oct_int8_epilogue *f, int32_t sum, int64_t c)
{
    const float s = (float)sum, x = s * f->scale[c];

    switch (f->way) {
    case OCT_INT8_LEAKY:
        return x < 0 ? x * f->act[0].a : x;
    case OCT_INT8_SWISH:
        return x / (1 + exp2f(s * f->slope[c]));
    case OCT_INT8_HARD_SWISH:
        return x * fminf(fmaxf(s * f->slope[c] + 0.5f, 0), 1);
    default:
        return x;
    }
}

static void epilogue(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    for (int64_t i = 0; i < r->count; i++)
        for (int64_t k = 0; k < r->n; k++) {
            const int32_t s = r->sum[i * r->acc_pitch + k];
            const int64_t c = r->first + k, at = i * r->y_pitch + k;
            float x;

            if (f->out == OCT_INT8_S32) {
                ((int32_t *)r->y)[at] = s;
                continue;
            }
            if (f->way != OCT_INT8_GENERAL)
                x = short_one(f, s, c);
            else
                x = epilogue_one(f, s, c, r->residual, i * r->residual_pitch + k);
            if (f->out == OCT_INT8_F32)
                ((float *)r->y)[at] = x;
            else
                ((uint8_t *)r->y)[at] = code(f->way == OCT_INT8_GENERAL ? x * f->inv[c] : x,
                                             f->low[c], f->high[c], f->zero[c]);
        }
}

/* --- convolution --- */

/* Channel i of tap (ky, kx) of output pixel (y, x). */
static uint8_t tap(const oct_int8_conv *c, const oct_int8_io *io, int64_t y, int64_t x, int64_t ky,
                   int64_t kx, int64_t i)
{
    const int64_t iy = y * c->stride[0] - c->pad[0] + ky * c->dilation[0];
    const int64_t ix = x * c->stride[1] - c->pad[1] + kx * c->dilation[1];

    if (iy < 0 || iy >= c->in_h || ix < 0 || ix >= c->in_w)
        return (io->pad_pixel ? io->pad_pixel : c->pad_pixel)[i];
    return io->x[(iy * c->in_w + ix) * c->in_pitch + i];
}

static void epilogue_pixel(const oct_int8_conv *c, const oct_int8_epilogue *f,
                           const oct_int8_io *io, int32_t sum, int64_t at, int64_t channel)
{
    const int64_t y = at * c->out_pitch + channel, r = at * c->residual_pitch + channel;
    const size_t y_size = f->out == OCT_INT8_U8 ? 1 : 4,
                 r_size = f->residual == OCT_INT8_U8 ? 1 : 4;

    epilogue(f, &(oct_int8_rows){.sum = &sum,
                                 .first = channel,
                                 .n = 1,
                                 .count = 1,
                                 .y = (uint8_t *)io->y + (size_t)y * y_size,
                                 .residual = io->residual ? (const uint8_t *)io->residual +
                                                                (size_t)r * r_size
                                                          : NULL});
}

static void dense(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                  int64_t y, int64_t x0, int64_t x1, int32_t b0, int32_t b1)
{
    const int32_t *base = io->base ? io->base : c->base;

    for (int64_t x = x0; x < x1; x++)
        for (int32_t b = b0; b < b1; b++) {
            const int64_t run = c->kernel[1] * c->c_in;
            const int64_t row = c->gather ? run : c->k_pad / c->kernel[0]; /* of weights */
            const int8_t *w = c->blocks[b].w;
            int32_t sum = base[c->blocks[b].first];

            for (int64_t ky = 0; ky < c->kernel[0]; ky++, w += row - run)
                for (int64_t kx = 0; kx < c->kernel[1]; kx++)
                    for (int64_t i = 0; i < c->c_in; i++)
                        sum += *w++ * tap(c, io, y, x, ky, kx, i);
            epilogue_pixel(c, f, io, sum, y * c->out_w + x, c->blocks[b].first);
        }
}

static void depthwise(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                      int64_t y)
{
    const int64_t quads = (c->kernel[0] + 3) / 4;
    const int32_t *base = io->base ? io->base : c->base;

    for (int64_t x = 0; x < c->out_w; x++)
        for (int64_t i = 0; i < c->c_out; i++) {
            const int8_t *w = c->dw_w + i * c->kernel[1] * quads * 4;
            int32_t sum = base[i];

            for (int64_t kx = 0; kx < c->kernel[1]; kx++)
                for (int64_t ky = 0; ky < c->kernel[0]; ky++)
                    sum += w[kx * quads * 4 + ky] * tap(c, io, y, x, ky, kx, i);
            epilogue_pixel(c, f, io, sum, y * c->out_w + x, i);
        }
}

/* --- elementwise --- */

static float scale_of(const oct_int8_codes *q, int64_t i)
{
    return q->scale[q->n > 1 ? i : 0];
}

static int32_t zero_of(const oct_int8_codes *q, int64_t i)
{
    return q->zero ? q->zero[q->n > 1 ? i : 0] : 0;
}

#define FOR_ROWS(r)                                                                                \
    for (int64_t k = 0; k < (r)->rows; k++)                                                        \
        for (int64_t i = 0; i < (r)->n; i++)

static void quantize(const oct_int8_codes *q, const oct_int8_strides *r, const float *x, uint8_t *y)
{
    FOR_ROWS(r)
    y[k * r->y_pitch + i] = (uint8_t)oct_quant_code(x[k * r->a_pitch + i] / scale_of(q, i),
                                                    zero_of(q, i), 0, oct_int8_last(q));
}

static float value(const oct_int8_codes *q, int64_t i, uint8_t x)
{
    return (float)(x - zero_of(q, i)) * scale_of(q, i);
}

static void dequantize(const oct_int8_codes *q, const oct_int8_strides *r, const uint8_t *x,
                       float *y)
{
    FOR_ROWS(r)
    y[k * r->y_pitch + i] = value(q, i, x[k * r->a_pitch + i]);
}

static void requantize(const oct_int8_codes *from, const oct_int8_codes *to,
                       const oct_int8_strides *r, const uint8_t *x, uint8_t *y)
{
    FOR_ROWS(r)
    y[k * r->y_pitch + i] =
        (uint8_t)oct_quant_code(value(from, i, x[k * r->a_pitch + i]) / scale_of(to, i),
                                zero_of(to, i), 0, oct_int8_last(to));
}

static void quantize_nchw(const oct_int8_codes *q, const float *x, int64_t plane, int64_t c,
                          int64_t pixels, uint8_t *y, int64_t pitch)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++)
            y[i * pitch + k] = (uint8_t)oct_quant_code(x[k * plane + i] / scale_of(q, k),
                                                       zero_of(q, k), 0, oct_int8_last(q));
}

static void dequantize_nchw(const oct_int8_codes *q, const uint8_t *x, int64_t pitch, int64_t c,
                            int64_t pixels, float *y, int64_t plane)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++)
            y[k * plane + i] = value(q, k, x[i * pitch + k]);
}

static void lookup(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

static void lookup_f32(const float table[256], const uint8_t *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

static float combine(const oct_int8_binary *s, int64_t i, float a, float b)
{
    if (s->op == OCT_INT8_MUL) {
        const float x = (a - s->a_zero[i]) * (b - s->b_zero[i]) * s->a_scale[i];

        return s->direct ? x + s->shift[i] : x;
    }
    if (s->direct)
        return fmaf(a - s->offset, s->a_scale[i], fmaf(b - s->offset, s->b_scale[i], s->shift[i]));
    return (a - s->a_zero[i]) * s->a_scale[i] + (b - s->b_zero[i]) * s->b_scale[i];
}

static void binary(const oct_int8_binary *s, const oct_int8_strides *r, const uint8_t *a,
                   const uint8_t *b, int b_step, void *y)
{
    FOR_ROWS(r)
    {
        const int64_t c = s->each ? i : 0, at = k * r->y_pitch + i;
        float x = combine(s, c, a[k * r->a_pitch + i], b[k * r->b_pitch + i * b_step]);

        if (!s->direct) x = oct_act_apply(&s->act, x);
        if (s->out == OCT_INT8_F32)
            ((float *)y)[at] = x;
        else
            ((uint8_t *)y)[at] =
                code(s->direct ? x : x * s->inv[c], s->low[c], s->high[c], s->zero[c]);
    }
}

static void max(const uint8_t *x, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = OCT_MAX(y[i], x[i]);
}

static void add(const uint8_t *x, int32_t *y, int64_t n, bool first)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = first ? x[i] : y[i] + x[i];
}

const oct_int8 oct_int8_reference = {
    .name = "plain",
    .width = 1,
    .quad_bytes = 4,
    .max_vec = 1,
    .dense = dense,
    .depthwise = depthwise,
    .epilogue = epilogue,
    .quantize = quantize,
    .dequantize = dequantize,
    .requantize = requantize,
    .quantize_nchw = quantize_nchw,
    .dequantize_nchw = dequantize_nchw,
    .lookup = lookup,
    .lookup_f32 = lookup_f32,
    .binary = binary,
    .max = max,
    .add = add,
};
