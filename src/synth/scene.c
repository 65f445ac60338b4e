/* SPDX-License-Identifier: Apache-2.0 */
/* A scene: objects and clutter put one above the other, so that every object stays recognisable. */
#include <math.h>
#include <string.h>

#include "synth/synth.h"

#define MIN_SIZE     12.0f /* of an object, for a picture of 256 pixels */
#define MAX_SIZE     160.0f
#define MIN_SEEN     0.5f /* share of an object that nothing may cover */
#define MAX_ATTEMPTS 10   /* to find a place */

/* Something to paint: an object, or clutter that only looks like one. */
typedef struct thing {
    oct_shape shape;
    float cx, cy, radius; /* in pixels */
    float xx, xy, yx, yy; /* from pixels to the shape's own plane */
    float tilt_x, tilt_y; /* perspective */
    oct_texture texture;
    float light_x, light_y; /* shading over its own plane */
    float rim;              /* width of its outline, in radii; 0: none */
    float opacity;
    float shadow, shadow_x, shadow_y, softness; /* 0: none; offset in radii */
} thing;

/* Pixels that a thing may touch. */
typedef struct window {
    int32_t x1, y1, x2, y2;
} window;

/* A picture in the making. */
typedef struct scene {
    oct_canvas *c;
    oct_rng *r;
    float unit; /* pixels of a picture of 256 */
    int32_t n;
    int32_t category[OCT_SYNTH_MAX_OBJECTS];
    int32_t whole[OCT_SYNTH_MAX_OBJECTS], seen[OCT_SYNTH_MAX_OBJECTS]; /* pixels */
} scene;

/* --- geometry --- */

/* Turned, stretched, sheared and tilted a little. */
static void set_pose(thing *t, oct_rng *r)
{
    const float stretch = oct_rng_range(r, 0.72f, 1), shear = oct_rng_range(r, -0.25f, 0.25f);
    float s, c;

    oct_sin_cos(oct_rng_range(r, 0, 1), &s, &c);
    t->xx = c / t->radius;
    t->xy = s / t->radius;
    t->yx = (-s + shear * c) / (t->radius * stretch);
    t->yy = (c + shear * s) / (t->radius * stretch);
    t->tilt_x = oct_rng_range(r, -0.18f, 0.18f) / t->radius;
    t->tilt_y = oct_rng_range(r, -0.18f, 0.18f) / t->radius;
}

/* A pixel's place in the shape's own plane. */
static void to_plane(const thing *t, float x, float y, float *u, float *v)
{
    const float px = x - t->cx, py = y - t->cy;
    const float w = 1 / (1 + px * t->tilt_x + py * t->tilt_y);

    *u = (px * t->xx + py * t->xy) * w;
    *v = (px * t->yx + py * t->yy) * w;
}

/* `reach` radii around the centre, inside the picture. */
static window window_of(const thing *t, int32_t size, float reach)
{
    const float d = t->radius * reach + 2;
    const window w = {OCT_MAX((int32_t)floorf(t->cx - d), 0),
                      OCT_MAX((int32_t)floorf(t->cy - d), 0),
                      OCT_MIN((int32_t)floorf(t->cx + d) + 1, size),
                      OCT_MIN((int32_t)floorf(t->cy + d) + 1, size)};

    return w;
}

/* --- looks --- */

/* Colours that differ from what is under the centre by at least a random amount. */
static void set_colors(const scene *s, thing *t)
{
    const int32_t x = OCT_MIN((int32_t)t->cx, s->c->size - 1);
    const int32_t y = OCT_MIN((int32_t)t->cy, s->c->size - 1);
    const size_t i = (size_t)y * (size_t)s->c->size + (size_t)x;
    const float wanted = oct_rng_range(s->r, 0.35f, 1.2f);
    const float contrast = oct_rng_range(s->r, 0.1f, 0.55f);

    for (int attempt = 0; attempt < 8; attempt++) {
        float far = 0;

        for (int k = 0; k < 3; k++) {
            const float a = oct_rng_range(s->r, 0.02f, 0.98f), d = a - s->c->plane[k][i];

            t->texture.color[0][k] = a;
            far += d < 0 ? -d : d;
        }
        if (far >= wanted) break;
    }
    for (int k = 0; k < 3; k++) {
        const float a = t->texture.color[0][k], b = oct_rng_range(s->r, 0, 1);

        t->texture.color[1][k] = a + (b - a) * contrast;
    }
}

static void set_looks(const scene *s, thing *t)
{
    oct_rng *r = s->r;
    const oct_texture_kind kind = (oct_texture_kind)oct_rng_below(r, OCT_TEXTURE_KINDS);

    oct_texture_init(&t->texture, kind, 2 * t->radius, r);
    set_colors(s, t);
    t->light_x = oct_rng_range(r, -0.3f, 0.3f);
    t->light_y = oct_rng_range(r, -0.3f, 0.3f);
    t->rim = oct_rng_below(r, 3) ? 0 : oct_rng_range(r, 0.05f, 0.14f);
    t->opacity = oct_rng_range(r, 0.75f, 1.25f);
    if (t->opacity > 1) t->opacity = 1;
    t->shadow = oct_rng_below(r, 2) ? 0 : oct_rng_range(r, 0.15f, 0.55f);
    t->shadow_x = oct_rng_range(r, -0.35f, 0.35f);
    t->shadow_y = oct_rng_range(r, 0.05f, 0.35f);
    t->softness = oct_rng_range(r, 0.05f, 0.4f);
}

/* --- painting --- */

/* How much of each pixel it covers, into the canvas's mask. */
static void cover(const scene *s, const thing *t, window w)
{
    for (int32_t y = w.y1; y < w.y2; y++) {
        float *mask = s->c->mask + (size_t)y * (size_t)s->c->size;

        for (int32_t x = w.x1; x < w.x2; x++) {
            float u, v;

            to_plane(t, (float)x + 0.5f, (float)y + 0.5f, &u, &v);
            mask[x] = oct_clamp01(0.5f - oct_shape_distance(&t->shape, u, v) * t->radius);
        }
    }
}

static void paint_shadow(const scene *s, const thing *t)
{
    const window w = window_of(t, s->c->size, 2);
    const float scale = 1 / t->softness;

    for (int32_t y = w.y1; y < w.y2; y++) {
        for (int32_t x = w.x1; x < w.x2; x++) {
            const size_t i = (size_t)y * (size_t)s->c->size + (size_t)x;
            float u, v, dark;

            to_plane(t, (float)x + 0.5f - t->shadow_x * t->radius,
                     (float)y + 0.5f - t->shadow_y * t->radius, &u, &v);
            dark = oct_clamp01(0.5f - oct_shape_distance(&t->shape, u, v) * scale) * t->shadow;
            for (int k = 0; k < 3; k++)
                s->c->plane[k][i] *= 1 - dark;
        }
    }
}

static void paint_pixel(const scene *s, const thing *t, int32_t x, int32_t y)
{
    const size_t i = (size_t)y * (size_t)s->c->size + (size_t)x;
    const float alpha = s->c->mask[i] * t->opacity;
    float u, v, mix, light;

    to_plane(t, (float)x + 0.5f, (float)y + 0.5f, &u, &v);
    mix = oct_texture_mix(&t->texture, u * t->radius, v * t->radius);
    light = 1 + u * t->light_x + v * t->light_y;
    if (t->rim > 0 && oct_shape_distance(&t->shape, u, v) > -t->rim) light *= 0.45f;
    for (int k = 0; k < 3; k++) {
        const float a = t->texture.color[0][k], b = t->texture.color[1][k];
        float *p = &s->c->plane[k][i];

        *p += ((a + (b - a) * mix) * light - *p) * alpha;
    }
}

/* `owner` 0: the pixels become nobody's. */
static void paint(const scene *s, const thing *t, window w, uint8_t owner)
{
    if (t->shadow > 0) paint_shadow(s, t);
    for (int32_t y = w.y1; y < w.y2; y++) {
        for (int32_t x = w.x1; x < w.x2; x++) {
            const size_t i = (size_t)y * (size_t)s->c->size + (size_t)x;

            if (s->c->mask[i] <= 0) continue;
            paint_pixel(s, t, x, y);
            if (s->c->mask[i] >= 0.5f) s->c->owner[i] = owner;
        }
    }
}

/* --- composing --- */

/*
 * Puts the mask's pixels on top, if that leaves enough of every object to be seen. Returns the
 * number of pixels, 0: refused.
 */
static int32_t claim(scene *s, window w)
{
    int32_t taken[OCT_SYNTH_MAX_OBJECTS + 1] = {0}, n = 0;

    for (int32_t y = w.y1; y < w.y2; y++) {
        for (int32_t x = w.x1; x < w.x2; x++) {
            const size_t i = (size_t)y * (size_t)s->c->size + (size_t)x;

            if (s->c->mask[i] < 0.5f) continue;
            taken[s->c->owner[i]]++;
            n++;
        }
    }
    for (int32_t i = 0; i < s->n; i++)
        if ((float)(s->seen[i] - taken[i + 1]) < MIN_SEEN * (float)s->whole[i]) return 0;
    for (int32_t i = 0; i < s->n; i++)
        s->seen[i] -= taken[i + 1];
    return n;
}

/* Between lo and hi; half of them below the geometric mean. */
static float pick_size(const scene *s, float lo, float hi)
{
    const float middle = sqrtf(lo * hi), t = oct_rng_range(s->r, 0, 2);

    return s->unit * (t < 1 ? lo + (middle - lo) * t : middle + (hi - middle) * (t - 1));
}

static void add_object(scene *s)
{
    const int32_t category = (int32_t)oct_rng_below(s->r, OCT_SYNTH_CLASSES);
    const float size = (float)s->c->size;
    thing t = {.radius = pick_size(s, MIN_SIZE, MAX_SIZE) * 0.5f};

    oct_shape_init(&t.shape, category, s->r);
    for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const float edge = t.radius * 0.5f;
        window w;
        int32_t n;

        t.cx = oct_rng_range(s->r, edge, size - edge);
        t.cy = oct_rng_range(s->r, edge, size - edge);
        set_pose(&t, s->r);
        w = window_of(&t, s->c->size, 1.6f);
        cover(s, &t, w);
        if (!(n = claim(s, w))) continue;
        set_looks(s, &t);
        paint(s, &t, w, (uint8_t)(s->n + 1));
        s->category[s->n] = category;
        s->whole[s->n] = s->seen[s->n] = n;
        s->n++;
        return;
    }
}

/* A bar, or a splinter with a few corners: nothing that has a name. */
static void add_clutter(scene *s)
{
    const float size = (float)s->c->size;
    thing t = {.radius = pick_size(s, 8, 140) * 0.5f};
    const float thin = oct_rng_range(s->r, 0.05f, 0.18f);
    const float x[] = {-1, 1, 1, -1}, y[] = {-thin, -thin, thin, thin};
    window w;

    t.shape = (oct_shape){.category = 2, .n = 4}; /* of a class that goes by its corners */
    for (int k = 0; k < 4; k++) {
        t.shape.x[k] = x[k] + oct_rng_range(s->r, -0.3f, 0.3f);
        t.shape.y[k] = y[k] + oct_rng_range(s->r, -0.05f, 0.05f);
    }
    t.cx = oct_rng_range(s->r, 0, size);
    t.cy = oct_rng_range(s->r, 0, size);
    set_pose(&t, s->r);
    w = window_of(&t, s->c->size, 1.8f);
    cover(s, &t, w);
    if (!claim(s, w)) return;
    set_looks(s, &t);
    paint(s, &t, w, 0);
}

/* The boxes around the pixels each object still owns. */
static void find_boxes(const scene *s, oct_synth_labels *out)
{
    window box[OCT_SYNTH_MAX_OBJECTS];

    for (int32_t i = 0; i < s->n; i++)
        box[i] = (window){s->c->size, s->c->size, 0, 0};
    for (int32_t y = 0; y < s->c->size; y++) {
        const uint8_t *owner = s->c->owner + (size_t)y * (size_t)s->c->size;

        for (int32_t x = 0; x < s->c->size; x++) {
            window *b;

            if (!owner[x]) continue;
            b = &box[owner[x] - 1];
            b->x1 = OCT_MIN(b->x1, x);
            b->y1 = OCT_MIN(b->y1, y);
            b->x2 = OCT_MAX(b->x2, x + 1);
            b->y2 = OCT_MAX(b->y2, y + 1);
        }
    }
    out->n = s->n;
    for (int32_t i = 0; i < s->n; i++)
        out->items[i] = (oct_synth_label){.x = box[i].x1,
                                          .y = box[i].y1,
                                          .width = box[i].x2 - box[i].x1,
                                          .height = box[i].y2 - box[i].y1,
                                          .area = s->seen[i],
                                          .category = s->category[i]};
}

uint64_t oct_synth_key(uint64_t seed, const char *split)
{
    uint64_t key = 0xcbf29ce484222325u; /* FNV-1a */
    oct_rng r;

    for (; *split; split++)
        key = (key ^ (uint8_t)*split) * 0x100000001b3u;
    oct_rng_init(&r, seed);
    return key ^ oct_rng_u64(&r);
}

void oct_synth_picture(oct_canvas *c, uint64_t key, int64_t index, oct_synth_labels *labels)
{
    scene s = {.c = c, .unit = (float)c->size / 256};
    int32_t n_objects, n_under, n_over;
    oct_rng r;

    oct_rng_init(&r, key);
    oct_rng_init(&r, oct_rng_u64(&r) + (uint64_t)index);
    oct_rng_init(&r, oct_rng_u64(&r)); /* neighbours start far from each other */
    s.r = &r;
    n_objects = 1 + (int32_t)oct_rng_below(&r, OCT_SYNTH_MAX_OBJECTS);
    n_under = (int32_t)oct_rng_below(&r, 7);
    n_over = (int32_t)oct_rng_below(&r, 5);
    oct_canvas_background(c, &r);
    for (int32_t i = 0; i < n_under; i++)
        add_clutter(&s);
    for (int32_t i = 0; i < n_objects; i++)
        add_object(&s);
    for (int32_t i = 0; i < n_over; i++)
        add_clutter(&s);
    oct_canvas_weather(c, &r);
    find_boxes(&s, labels);
}
