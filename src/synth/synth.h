/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures with known objects, drawn from a seed.
 *
 * The same seed gives the same bytes on every machine: only operations whose result IEEE 754
 * fixes (+ - * /, square root, rounding to whole numbers) on floats, in an order the source fixes;
 * nothing from libm whose last bit is the library's own business.
 */
#ifndef OCT_SYNTH_SYNTH_H
#define OCT_SYNTH_SYNTH_H

#include <octet/synth.h>

#include "base/rng.h"
#include "base/status.h"

enum { OCT_SYNTH_MAX_OBJECTS = 8 };

/* --- numbers.c --- */

/* Uniform in [lo, hi). */
float oct_rng_range(oct_rng *r, float lo, float hi);

/* Both of one angle, given in turns. */
void oct_sin_cos(float turns, float *s, float *c);

static inline float oct_clamp01(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* --- shapes.c: the classes --- */

enum { OCT_SHAPE_MAX_CORNERS = 14 };

/* One shape of a class: its outline within the circle of radius 1. */
typedef struct oct_shape {
    int32_t category;
    int32_t n; /* corners; 0: round */
    float x[OCT_SHAPE_MAX_CORNERS], y[OCT_SHAPE_MAX_CORNERS];
    float p, q; /* proportions of round ones */
} oct_shape;

/* Picks the proportions. */
void oct_shape_init(oct_shape *s, int32_t category, oct_rng *r);

/* How far a point lies outside the outline; negative inside. */
float oct_shape_distance(const oct_shape *s, float x, float y);

/* --- texture.c --- */

typedef enum oct_texture_kind {
    OCT_TEXTURE_FLAT,
    OCT_TEXTURE_GRADIENT,
    OCT_TEXTURE_STRIPES,
    OCT_TEXTURE_CHECKS,
    OCT_TEXTURE_NOISE,
    OCT_TEXTURE_KINDS,
} oct_texture_kind;

/* Two colours and how they alternate over a plane. */
typedef struct oct_texture {
    oct_texture_kind kind;
    float color[2][3]; /* 0 to 1 */
    float cos, sin, period, phase;
    float hardness; /* of edges between the colours */
    uint32_t seed;
} oct_texture;

/* `extent`: of what it covers; colours are set by the caller. */
void oct_texture_init(oct_texture *t, oct_texture_kind kind, float extent, oct_rng *r);

/* The share of the second colour at a point, 0 to 1. */
float oct_texture_mix(const oct_texture *t, float x, float y);

/* Smooth noise, 0 to 1; one grey value for each whole point, joined smoothly. */
float oct_value_noise(uint32_t seed, float x, float y);

/* --- canvas.c: what is painted on, and what is done to all of it --- */

typedef struct oct_canvas {
    int32_t size; /* both sides */
    float *plane[3];
    float *work;    /* one plane for blurring */
    float *mask;    /* how much of each pixel the thing at hand covers */
    uint8_t *owner; /* by pixel: 1 + the object seen there; 0: none */
} oct_canvas;

oct_status oct_canvas_new(oct_ctx *ctx, int32_t size, oct_canvas *out);
void oct_canvas_free(oct_ctx *ctx, oct_canvas *c);

void oct_canvas_background(oct_canvas *c, oct_rng *r);

/* Light that falls from one side, blur, grain. */
void oct_canvas_weather(oct_canvas *c, oct_rng *r);

/* 8-bit RGB, row by row. */
void oct_canvas_export(const oct_canvas *c, uint8_t *rgb);

/* --- scene.c --- */

/* One labelled object: the box around what is seen of it, in whole pixels. */
typedef struct oct_synth_label {
    int32_t x, y, width, height, area, category;
} oct_synth_label;

typedef struct oct_synth_labels {
    int32_t n;
    oct_synth_label items[OCT_SYNTH_MAX_OBJECTS];
} oct_synth_labels;

/* Draws picture `index` of the series that `key` stands for. */
void oct_synth_picture(oct_canvas *c, uint64_t key, int64_t index, oct_synth_labels *labels);

/* The series of a seed and a split's name: other names, other pictures. */
uint64_t oct_synth_key(uint64_t seed, const char *split);

#endif
