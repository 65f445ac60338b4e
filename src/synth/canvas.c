/* SPDX-License-Identifier: Apache-2.0 */
/* The canvas: ground, light, blur and grain of a whole picture. */
#include <string.h>

#include "base/mem.h"
#include "synth/synth.h"

oct_status oct_canvas_new(oct_ctx *ctx, int32_t size, oct_canvas *out)
{
    const size_t n = (size_t)size * (size_t)size;
    float *planes = oct_calloc(ctx, n * 5, sizeof(float));

    if (!planes) return OCT_ERR_MEMORY;
    out->size = size;
    for (int i = 0; i < 3; i++)
        out->plane[i] = planes + n * (size_t)i;
    out->work = planes + n * 3;
    out->mask = planes + n * 4;
    out->owner = oct_calloc(ctx, n, 1);
    if (out->owner) return OCT_OK;
    oct_free(ctx, planes);
    *out = (oct_canvas){0};
    return OCT_ERR_MEMORY;
}

void oct_canvas_free(oct_ctx *ctx, oct_canvas *c)
{
    oct_free(ctx, c->plane[0]);
    oct_free(ctx, c->owner);
    *c = (oct_canvas){0};
}

/* --- ground --- */

static void ground_colors(oct_texture *t, oct_rng *r)
{
    const float contrast = oct_rng_range(r, 0.1f, 0.7f);

    for (int k = 0; k < 3; k++) {
        const float a = oct_rng_range(r, 0.08f, 0.92f), b = oct_rng_range(r, 0.08f, 0.92f);

        t->color[0][k] = a;
        t->color[1][k] = a + (b - a) * contrast;
    }
}

void oct_canvas_background(oct_canvas *c, oct_rng *r)
{
    const oct_texture_kind kind =
        OCT_TEXTURE_GRADIENT + (oct_texture_kind)oct_rng_below(r, OCT_TEXTURE_KINDS - 1);
    const float unit = 256 / (float)c->size; /* pixels of the size all measures are given for */
    const float rough = oct_rng_range(r, 0, 0.25f), grain = oct_rng_range(r, 3, 24);
    oct_texture t;

    oct_texture_init(&t, kind, 256, r);
    ground_colors(&t, r);
    for (int32_t y = 0; y < c->size; y++) {
        for (int32_t x = 0; x < c->size; x++) {
            const size_t i = (size_t)y * (size_t)c->size + (size_t)x;
            const float px = (float)x * unit, py = (float)y * unit;
            const float mix = oct_texture_mix(&t, px, py);
            const float stain =
                (oct_value_noise(t.seed + 7, px / grain, py / grain) - 0.5f) * rough;

            for (int k = 0; k < 3; k++)
                c->plane[k][i] = t.color[0][k] + (t.color[1][k] - t.color[0][k]) * mix + stain;
        }
    }
    memset(c->owner, 0, (size_t)c->size * (size_t)c->size);
}

/* --- weather --- */

static void shine(oct_canvas *c, float strength, float turns)
{
    const float half = (float)c->size * 0.5f;
    float s, co;

    oct_sin_cos(turns, &s, &co);
    for (int32_t y = 0; y < c->size; y++) {
        for (int32_t x = 0; x < c->size; x++) {
            const size_t i = (size_t)y * (size_t)c->size + (size_t)x;
            const float side = (((float)x - half) * co + ((float)y - half) * s) / half;
            const float light = 1 + strength * side;

            for (int k = 0; k < 3; k++)
                c->plane[k][i] *= light;
        }
    }
}

/* Weights 1, 2, 1 along one direction; the ends keep their own value twice. */
static void smear(const float *from, float *to, int32_t size, int32_t step, int32_t pitch)
{
    for (int32_t line = 0; line < size; line++) {
        const float *f = from + (ptrdiff_t)line * pitch;
        float *t = to + (ptrdiff_t)line * pitch;

        for (int32_t i = 0; i < size; i++) {
            const float before = f[(ptrdiff_t)(i ? i - 1 : 0) * step];
            const float after = f[(ptrdiff_t)(i + 1 < size ? i + 1 : i) * step];

            t[(ptrdiff_t)i * step] = (before + after + 2 * f[(ptrdiff_t)i * step]) * 0.25f;
        }
    }
}

static void blur(oct_canvas *c, int32_t times)
{
    for (int k = 0; k < 3; k++) {
        for (int32_t i = 0; i < times; i++) {
            smear(c->plane[k], c->work, c->size, 1, c->size);
            smear(c->work, c->plane[k], c->size, c->size, 1);
        }
    }
}

/* Four bytes added up are nearly normal: mean 510, deviation 147.8. */
static float bell(uint32_t bits)
{
    const uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);

    return ((float)sum - 510) * (1 / 147.8f);
}

static void add_grain(oct_canvas *c, float strength, oct_rng *r)
{
    const size_t n = (size_t)c->size * (size_t)c->size;

    for (size_t i = 0; i < n; i++) {
        const uint64_t a = oct_rng_u64(r), b = oct_rng_u64(r);

        c->plane[0][i] += bell((uint32_t)a) * strength;
        c->plane[1][i] += bell((uint32_t)(a >> 32)) * strength;
        c->plane[2][i] += bell((uint32_t)b) * strength;
    }
}

void oct_canvas_weather(oct_canvas *c, oct_rng *r)
{
    const float light = oct_rng_range(r, 0, 0.45f), turns = oct_rng_range(r, 0, 1);
    const int32_t times = (int32_t)oct_rng_below(r, 4) - 1;
    const float grain = oct_rng_range(r, 0.005f, 0.055f);

    shine(c, light, turns);
    blur(c, times);
    add_grain(c, grain, r);
}

void oct_canvas_export(const oct_canvas *c, uint8_t *rgb)
{
    const size_t n = (size_t)c->size * (size_t)c->size;

    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            rgb[i * 3 + (size_t)k] = (uint8_t)(oct_clamp01(c->plane[k][i]) * 255 + 0.5f);
}
