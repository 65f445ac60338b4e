/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded bytes to the network's input in one pass: each resized row is written to its
 * destination. */
#include "data/image/preprocess.h"

#include <math.h>
#include <string.h>

#include "data/image/resample.h"
#include "tensor/small_float.h"

#define MAX_SIDE 32768

void oct_preprocess_init_sized(oct_preprocess *p, size_t struct_size)
{
    const oct_preprocess all = {
        .struct_size = struct_size,
        .width = 640,
        .height = 640,
        .fit = OCT_FIT_LETTERBOX,
        .interpolation = OCT_INTERPOLATION_ANTIALIAS,
        .color = OCT_COLOR_RGB,
        .layout = OCT_IMAGE_NCHW,
        .pad = 114,
        .scale = 255,
        .std = {1, 1, 1},
    };

    memset(p, 0, struct_size);
    memcpy(p, &all, OCT_MIN(struct_size, sizeof(all)));
}

void oct_preprocess_read(oct_preprocess *to, const oct_preprocess *from)
{
    oct_preprocess_init(to);
    memcpy(to, from, OCT_MIN(from->struct_size, sizeof(*to)));
    to->struct_size = sizeof(*to);
}

oct_status oct_preprocess_check(oct_ctx *ctx, const oct_preprocess *p)
{
    if (p->width < 1 || p->height < 1 || p->width > MAX_SIDE || p->height > MAX_SIDE)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: size %dx%d, each side must be 1 to %d",
                        p->width, p->height, MAX_SIDE);
    if (p->fit < OCT_FIT_LETTERBOX || p->fit > OCT_FIT_CROP)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: there is no fit %d", p->fit);
    if (p->interpolation != OCT_INTERPOLATION_LINEAR &&
        p->interpolation != OCT_INTERPOLATION_ANTIALIAS)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: there is no interpolation %d",
                        p->interpolation);
    if (p->color < OCT_COLOR_RGB || p->color > OCT_COLOR_GRAY)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: there is no color %d", p->color);
    if (p->layout != OCT_IMAGE_NCHW && p->layout != OCT_IMAGE_NHWC)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: there is no layout %d", p->layout);
    if (p->crop_resize < 0 || p->crop_resize > MAX_SIDE)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: crop_resize %d, must be 0 to %d",
                        p->crop_resize, MAX_SIDE);
    if (p->inner_width < 0 || p->inner_height < 0 || p->inner_width > p->width ||
        p->inner_height > p->height || !p->inner_width != !p->inner_height)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: inner %dx%d does not lie in size %dx%d",
                        p->inner_width, p->inner_height, p->width, p->height);
    if (p->inner_width && p->fit != OCT_FIT_LETTERBOX && p->fit != OCT_FIT_LETTERBOX_TOP_LEFT)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: inner is of fit=letterbox only");
    if (!isfinite(p->scale) || p->scale == 0 || !isfinite(p->pad))
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: scale %g, pad %g", (double)p->scale,
                        (double)p->pad);
    for (int c = 0; c < 3; c++) {
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || p->std[c] == 0)
            return oct_fail(ctx, OCT_ERR_ARG, "preprocess: mean %g, std %g", (double)p->mean[c],
                            (double)p->std[c]);
    }
    return OCT_OK;
}

/* --- geometry --- */

/* Position of the picture in the network's input: rounded half to even, as Python does. */
typedef struct geometry {
    oct_span x, y;  /* the part of the resized picture that is used */
    int32_t ox, oy; /* its destination */
} geometry;

static int32_t scaled(int32_t side, double ratio, int32_t lo, int32_t hi)
{
    const double v = rint(side * ratio);

    return v < lo ? lo : v > hi ? hi : (int32_t)v;
}

static geometry letterbox(const oct_preprocess *p, int32_t w, int32_t h)
{
    const int32_t in_w = p->inner_width ? p->inner_width : p->width;
    const int32_t in_h = p->inner_height ? p->inner_height : p->height;
    const double ratio = OCT_MIN((double)in_w / w, (double)in_h / h);
    const int32_t to_w = scaled(w, ratio, 1, in_w), to_h = scaled(h, ratio, 1, in_h);
    const bool centred = p->fit == OCT_FIT_LETTERBOX;

    return (geometry){
        .x = {w, to_w, 0, to_w},
        .y = {h, to_h, 0, to_h},
        .ox = centred ? (p->width - to_w) / 2 : 0,
        .oy = centred ? (p->height - to_h) / 2 : 0,
    };
}

static geometry crop(const oct_preprocess *p, int32_t w, int32_t h)
{
    const double side =
        p->crop_resize ? (double)p->crop_resize : OCT_MAX(p->width, p->height) / 0.875;
    const double ratio = side / OCT_MIN(w, h);
    const int32_t to_w = scaled(w, ratio, p->width, INT32_MAX);
    const int32_t to_h = scaled(h, ratio, p->height, INT32_MAX);

    return (geometry){
        .x = {w, to_w, (to_w - p->width) / 2, p->width},
        .y = {h, to_h, (to_h - p->height) / 2, p->height},
    };
}

static geometry fit(const oct_preprocess *p, int32_t w, int32_t h)
{
    if (p->fit == OCT_FIT_CROP) return crop(p, w, h);
    if (p->fit == OCT_FIT_STRETCH)
        return (geometry){.x = {w, p->width, 0, p->width}, .y = {h, p->height, 0, p->height}};
    return letterbox(p, w, h);
}

oct_placement oct_preprocess_place(const oct_preprocess *p, int32_t width, int32_t height)
{
    const geometry g = fit(p, width, height);

    return (oct_placement){
        .to_width = g.x.to,
        .to_height = g.y.to,
        .x = g.ox - g.x.first,
        .y = g.oy - g.y.first,
    };
}

static oct_mapping mapping_of(const geometry *g)
{
    return (oct_mapping){
        .scale_x = (float)((double)g->x.to / g->x.from),
        .scale_y = (float)((double)g->y.to / g->y.from),
        .offset_x = (float)(g->ox - g->x.first),
        .offset_y = (float)(g->oy - g->y.first),
        .image_width = g->x.from,
        .image_height = g->y.from,
    };
}

/* --- writing --- */

/* Destination of elements: `channel` and `pixel` are steps in elements. */
typedef struct sink {
    const oct_preprocess *p;
    oct_dtype dtype;
    void *dst;
    int n_channels;
    int64_t channel, pixel;
    float value[3][256]; /* of each channel at each grey level */
    float pad[3];
    uint8_t pad_u8;
} sink;

static float value_of(const oct_preprocess *p, int c, double pixel)
{
    return (float)((pixel / (double)p->scale - (double)p->mean[c]) / (double)p->std[c]);
}

static void init_sink(sink *s, const oct_preprocess *p, oct_dtype dtype, void *dst)
{
    const int64_t plane = (int64_t)p->width * p->height;

    s->p = p;
    s->dtype = dtype;
    s->dst = dst;
    s->n_channels = p->color == OCT_COLOR_GRAY ? 1 : 3;
    s->channel = p->layout == OCT_IMAGE_NCHW ? plane : 1;
    s->pixel = p->layout == OCT_IMAGE_NCHW ? 1 : s->n_channels;
    s->pad_u8 = (uint8_t)lrintf(OCT_MIN(OCT_MAX(p->pad, 0.0f), 255.0f));
    for (int c = 0; c < s->n_channels; c++) {
        s->pad[c] = value_of(p, c, (double)p->pad);
        for (int v = 0; v < 256; v++)
            s->value[c][v] = value_of(p, c, v);
    }
}

static void write_values(const sink *s, int c, int64_t at, const uint8_t *src, int32_t n)
{
    const float *value = s->value[c];
    float *dst = (float *)s->dst + c * s->channel + at * s->pixel;

    if (s->pixel == 1) {
        for (int32_t i = 0; i < n; i++)
            dst[i] = value[src[i]];
    } else {
        for (int32_t i = 0; i < n; i++)
            dst[i * s->pixel] = value[src[i]];
    }
}

static void write_bytes(const sink *s, int c, int64_t at, const uint8_t *src, int32_t n)
{
    uint8_t *dst = (uint8_t *)s->dst + c * s->channel + at * s->pixel;

    if (s->pixel == 1) {
        memcpy(dst, src, (size_t)n);
    } else {
        for (int32_t i = 0; i < n; i++)
            dst[i * s->pixel] = src[i];
    }
}

/* n pixels from pixel index `at` on, from three channels of n bytes each. */
static void write_row(const sink *s, int64_t at, const uint8_t *planes, int32_t n)
{
    for (int c = 0; c < s->n_channels; c++) {
        const uint8_t *src =
            planes + (size_t)n * (size_t)(s->p->color == OCT_COLOR_BGR ? 2 - c : c);

        if (s->dtype == OCT_DTYPE_F32)
            write_values(s, c, at, src, n);
        else
            write_bytes(s, c, at, src, n);
    }
}

static void write_pad(const sink *s, int64_t at, int64_t n)
{
    for (int c = 0; c < s->n_channels; c++) {
        const int64_t first = c * s->channel + at * s->pixel;

        if (s->dtype == OCT_DTYPE_F32) {
            for (int64_t i = 0; i < n; i++)
                ((float *)s->dst)[first + i * s->pixel] = s->pad[c];
        } else {
            for (int64_t i = 0; i < n; i++)
                ((uint8_t *)s->dst)[first + i * s->pixel] = s->pad_u8;
        }
    }
}

/* Luma in 16-bit fixed point, into the first channel. */
static void to_gray(const uint8_t *planes, uint8_t *gray, int32_t n)
{
    const uint8_t *r = planes, *g = planes + n, *b = planes + 2 * (size_t)n;

    for (int32_t i = 0; i < n; i++)
        gray[i] = (uint8_t)((r[i] * 19595u + g[i] * 38470u + b[i] * 7471u + 0x8000u) >> 16);
}

static oct_status write_all(oct_ctx *ctx, const sink *s, const geometry *g, oct_resampler *r)
{
    const int64_t width = s->p->width;
    const int32_t n = g->x.count, right = g->ox + n;
    uint8_t *gray = NULL;

    if (s->n_channels == 1 && !(gray = oct_alloc(ctx, (size_t)n))) return OCT_ERR_MEMORY;
    write_pad(s, 0, g->oy * width);
    for (int32_t y = 0; y < g->y.count; y++) {
        const int64_t at = (g->oy + y) * width;
        const uint8_t *row = oct_resampler_next(r);

        if (gray) to_gray(row, gray, n);
        write_pad(s, at, g->ox);
        write_row(s, at + g->ox, gray ? gray : row, n);
        write_pad(s, at + right, width - right);
    }
    write_pad(s, (g->oy + g->y.count) * width, (s->p->height - g->oy - g->y.count) * width);
    oct_free(ctx, gray);
    return OCT_OK;
}

/* The float32 numbers, rounded. */
static oct_status run_half(oct_ctx *ctx, const oct_preprocess *p, const oct_image *im, void *dst,
                           oct_mapping *map)
{
    const size_t size = oct_preprocess_size(p, OCT_DTYPE_F32);
    float *wide = oct_alloc(ctx, size);
    oct_status st;

    if (!wide) return OCT_ERR_MEMORY;
    st = oct_preprocess_run(ctx, p, im, OCT_DTYPE_F32, wide, map);
    if (!st) oct_f32_to_f16_n(wide, (int64_t)(size / sizeof(float)), dst);
    oct_free(ctx, wide);
    return st;
}

oct_status oct_preprocess_run(oct_ctx *ctx, const oct_preprocess *options, const oct_image *im,
                              oct_dtype dtype, void *dst, oct_mapping *map)
{
    OCT_ENTER(ctx);
    oct_preprocess p;
    oct_resampler *r = NULL;
    geometry g;
    sink s;
    oct_status st;

    oct_preprocess_read(&p, options);
    OCT_TRY(oct_preprocess_check(ctx, &p));
    if (dtype == OCT_DTYPE_F16) return run_half(ctx, &p, im, dst, map);
    if (dtype != OCT_DTYPE_F32 && dtype != OCT_DTYPE_U8)
        return oct_fail(ctx, OCT_ERR_TYPE,
                        "preprocess: pictures become float32, float16 or uint8, not %s",
                        oct_dtype_name(dtype));
    g = fit(&p, im->width, im->height);
    OCT_TRY(oct_resampler_new(ctx, (oct_interpolation)p.interpolation, im, g.x, g.y, &r));
    init_sink(&s, &p, dtype, dst);
    st = write_all(ctx, &s, &g, r);
    oct_resampler_free(r);
    if (!st && map) *map = mapping_of(&g);
    return st;
}
