/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and labels on pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/detect.h>

#include "base/mem.h"
#include "detect/font.h"

enum { LABEL_SIZE = 48 };

typedef struct rect {
    int32_t x, y, w, h;
} rect;

typedef struct color {
    uint8_t r, g, b;
} color;

/* One detection on its way to the picture. */
typedef struct mark {
    rect box, label;
    color c;
    float score;
    int32_t index;
    char text[LABEL_SIZE];
} mark;

typedef struct canvas {
    uint8_t *rgb;
    int32_t width, height;
    int32_t line;  /* of boxes */
    int32_t zoom;  /* of letters */
    int32_t space; /* around a label's text */
} canvas;

/* --- colours --- */

/* One channel of a hue (0..1, offset by a third for each) at full saturation. */
static float hue_channel(float hue)
{
    const float h = hue - floorf(hue);

    return fminf(fmaxf(fabsf(h * 6 - 3) - 1, 0), 1);
}

/*
 * Hues a golden section apart: any few classes are far from each other. Every third is paler, every
 * other one darker, so that neighbours in hue differ in something else.
 */
static color class_color(int32_t category)
{
    const float hue = (float)fmod((double)category * 0.61803398875 + 0.02, 1);
    const float pale = category % 3 == 2 ? 0.35f : 0.08f;
    const float bright = category % 2 ? 0.85f : 1;
    float v[3];

    for (int c = 0; c < 3; c++)
        v[c] = (pale + (1 - pale) * hue_channel(hue - (float)c / 3)) * bright * 255;
    return (color){(uint8_t)v[0], (uint8_t)v[1], (uint8_t)v[2]};
}

/* Black or white, whichever is easier to read on `c`. */
static color text_color(color c)
{
    const int luma = 299 * c.r + 587 * c.g + 114 * c.b;

    return luma > 130000 ? (color){0, 0, 0} : (color){255, 255, 255};
}

/* --- pixels --- */

static void blend(uint8_t *p, color c, int32_t alpha)
{
    p[0] = (uint8_t)((p[0] * (256 - alpha) + c.r * alpha) >> 8);
    p[1] = (uint8_t)((p[1] * (256 - alpha) + c.g * alpha) >> 8);
    p[2] = (uint8_t)((p[2] * (256 - alpha) + c.b * alpha) >> 8);
}

/* alpha 256: opaque. Clipped to the picture. */
static void fill(const canvas *cv, rect r, color c, int32_t alpha)
{
    const int32_t x1 = OCT_MAX(r.x, 0), x2 = OCT_MIN(r.x + r.w, cv->width);
    const int32_t y1 = OCT_MAX(r.y, 0), y2 = OCT_MIN(r.y + r.h, cv->height);

    for (int32_t y = y1; y < y2; y++)
        for (int32_t x = x1; x < x2; x++)
            blend(cv->rgb + ((int64_t)y * cv->width + x) * 3, c, alpha);
}

/* A frame of `line` pixels inside r. */
static void frame(const canvas *cv, rect r, int32_t line, color c, int32_t alpha)
{
    const int32_t t = OCT_MIN(line, (OCT_MIN(r.w, r.h) + 1) / 2);

    fill(cv, (rect){r.x, r.y, r.w, t}, c, alpha);
    fill(cv, (rect){r.x, r.y + r.h - t, r.w, t}, c, alpha);
    fill(cv, (rect){r.x, r.y + t, t, r.h - 2 * t}, c, alpha);
    fill(cv, (rect){r.x + r.w - t, r.y + t, t, r.h - 2 * t}, c, alpha);
}

/* Is the dot at column x, row y of the glyph set? */
static bool dot(const uint8_t *glyph, int x, int y)
{
    if (x < 0 || x >= OCT_FONT_WIDTH || y < 0 || y >= OCT_FONT_HEIGHT) return false;
    return glyph[y] >> (OCT_FONT_WIDTH - 1 - x) & 1;
}

/*
 * Enlarged by whole factors. Where two dots touch by their corners only, the inner corners of the
 * two empty cells beside them are half filled, so that slanted strokes look smooth.
 */
static void letter(const canvas *cv, int32_t x0, int32_t y0, char ch, color c)
{
    const uint8_t *g = oct_font_glyph(ch);
    const int32_t z = cv->zoom, half = z / 2;

    for (int y = 0; y < OCT_FONT_HEIGHT; y++)
        for (int x = 0; x < OCT_FONT_WIDTH; x++) {
            const int32_t px = x0 + x * z, py = y0 + y * z;

            if (dot(g, x, y)) {
                fill(cv, (rect){px, py, z, z}, c, 256);
                continue;
            }
            for (int k = 0; k < 4 && half; k++) {
                const int dx = k & 1 ? 1 : -1, dy = k & 2 ? 1 : -1;

                if (!dot(g, x + dx, y) || !dot(g, x, y + dy) || dot(g, x + dx, y + dy)) continue;
                fill(cv,
                     (rect){px + (dx > 0 ? z - half : 0), py + (dy > 0 ? z - half : 0), half, half},
                     c, 140);
            }
        }
}

static void put_text(const canvas *cv, int32_t x, int32_t y, const char *s, color c)
{
    for (; *s; s++, x += OCT_FONT_ADVANCE * cv->zoom)
        letter(cv, x, y, *s, c);
}

/* --- where labels go --- */

static int64_t shared_area(rect a, rect b)
{
    const int64_t w = OCT_MIN(a.x + a.w, b.x + b.w) - (int64_t)OCT_MAX(a.x, b.x);
    const int64_t h = OCT_MIN(a.y + a.h, b.y + b.h) - (int64_t)OCT_MAX(a.y, b.y);

    return w > 0 && h > 0 ? w * h : 0;
}

static rect keep_inside(const canvas *cv, rect r)
{
    r.x = OCT_MAX(OCT_MIN(r.x, cv->width - r.w), 0);
    r.y = OCT_MAX(OCT_MIN(r.y, cv->height - r.h), 0);
    return r;
}

/* Cost of a position: overlap with labels placed before and with small boxes, and distance from
 * the usual position. */
static int64_t cost(const mark *marks, int32_t n, int32_t self, rect r, int place)
{
    int64_t sum = (int64_t)place * r.w * r.h / 40;

    for (int32_t i = 0; i < n; i++) {
        const rect b = marks[i].box;

        if (i < self) sum += 8 * shared_area(r, marks[i].label);
        /* A label on a box of its own size hides what was found. */
        if ((int64_t)b.w * b.h < (int64_t)r.w * r.h * 6) sum += shared_area(r, b);
    }
    return sum;
}

static void place_label(const canvas *cv, mark *marks, int32_t n, int32_t self)
{
    mark *m = &marks[self];
    const rect b = m->box;
    const int32_t w =
        (int32_t)strlen(m->text) * OCT_FONT_ADVANCE * cv->zoom - cv->zoom + 2 * cv->space;
    const int32_t h = OCT_FONT_HEIGHT * cv->zoom + cv->space;
    const int32_t right = b.x + b.w - w, below = b.y + b.h;
    const int32_t corners[][2] = {
        {b.x, b.y - h},         {b.x, b.y},           {right, b.y - h}, {right, b.y},
        {b.x, below},           {b.x, below - h},     {right, below},   {right, below - h},
        {b.x + b.w, b.y},       {b.x - w, b.y},       {b.x, b.y + h},   {b.x, b.y - 2 * h},
        {b.x + b.w, below - h}, {b.x - w, below - h},
    };
    int64_t best = INT64_MAX;

    for (size_t i = 0; i < OCT_COUNT(corners); i++) {
        const rect wish = {corners[i][0], corners[i][1], w, h};
        const rect r = keep_inside(cv, wish);
        const int64_t moved = llabs((int64_t)r.x - wish.x) + llabs((int64_t)r.y - wish.y);
        const int64_t c = cost(marks, n, self, r, (int)i) + moved * h / 2;

        if (c >= best) continue;
        best = c;
        m->label = r;
    }
}

/* --- the whole --- */

static int best_first(const void *pa, const void *pb)
{
    const mark *a = pa, *b = pb;

    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Clips to the picture; false: nothing is visible. */
static bool set_box(const canvas *cv, const oct_detection *d, rect *out)
{
    const float x1 = fmaxf(d->x, 0), x2 = fminf(d->x + d->width, (float)cv->width);
    const float y1 = fmaxf(d->y, 0), y2 = fminf(d->y + d->height, (float)cv->height);

    if (!(x2 > x1) || !(y2 > y1)) return false;
    out->x = (int32_t)x1;
    out->y = (int32_t)y1;
    out->w = OCT_MAX((int32_t)ceilf(x2) - out->x, 1);
    out->h = OCT_MAX((int32_t)ceilf(y2) - out->y, 1);
    return true;
}

static void set_text(mark *m, const oct_detection *d, const char *const *names, int32_t n_names)
{
    const char *name = names ? (d->category >= 0 && d->category < n_names ? names[d->category] : "")
                             : oct_coco_name(d->category);

    char score[16] = "";

    if (!(d->score < 0)) (void)snprintf(score, sizeof(score), " %.2f", (double)d->score);
    if (name && *name)
        (void)snprintf(m->text, sizeof(m->text), "%.36s%s", name, score);
    else
        (void)snprintf(m->text, sizeof(m->text), "class %d%s", (int)d->category, score);
}

static void draw_marks(const canvas *cv, const mark *marks, int32_t n)
{
    const int32_t gap = OCT_MAX(cv->line / 2, 1);
    const color dark = {0, 0, 0};

    for (int32_t i = n - 1; i >= 0; i--) { /* the best one on top */
        const rect b = marks[i].box;
        const rect around = {b.x - gap, b.y - gap, b.w + 2 * gap, b.h + 2 * gap};

        frame(cv, around, gap, dark, 90); /* separates the line from a bright background */
        frame(cv, b, cv->line, marks[i].c, 256);
    }
    for (int32_t i = n - 1; i >= 0; i--) {
        const rect l = marks[i].label;

        fill(cv, l, marks[i].c, 236);
        put_text(cv, l.x + cv->space, l.y + cv->space, marks[i].text, text_color(marks[i].c));
    }
}

oct_status oct_detections_draw(oct_ctx *ctx, oct_image *im, const oct_detection *found, int32_t n,
                               const char *const *names, int32_t n_names)
{
    OCT_ENTER(ctx);
    const int32_t w = oct_image_width(im), h = oct_image_height(im), side = OCT_MAX(w, h);
    const canvas cv = {.rgb = oct_image_rgb(im),
                       .width = w,
                       .height = h,
                       .line = OCT_MAX((side + 150) / 300, 1),
                       .zoom = OCT_MAX((side + 200) / 500, 1),
                       .space = OCT_MAX((side + 150) / 300, 2)};
    mark *marks;
    int32_t n_marks = 0;

    if (n <= 0) return OCT_OK;
    if (!(marks = oct_calloc(ctx, (size_t)n, sizeof(*marks)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        mark *m = &marks[n_marks];

        if (!set_box(&cv, &found[i], &m->box)) continue;
        m->c = class_color(OCT_MAX(found[i].category, 0));
        m->score = found[i].score;
        m->index = i;
        set_text(m, &found[i], names, n_names);
        n_marks++;
    }
    qsort(marks, (size_t)n_marks, sizeof(*marks), best_first);
    for (int32_t i = 0; i < n_marks; i++)
        place_label(&cv, marks, n_marks, i);
    draw_marks(&cv, marks, n_marks);
    oct_free(ctx, marks);
    return OCT_OK;
}
