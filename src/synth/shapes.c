/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of objects: outlines with random proportions, and the distance to them. */
#include "synth/synth.h"

#include <math.h>

/* A class: fills in the outline, or gives its distance if it is round. */
typedef struct shape_class {
    const char *name;
    void (*init)(oct_shape *s, oct_rng *r);
    float (*distance)(const oct_shape *s, float x, float y); /* NULL: by its corners */
} shape_class;

/* --- distances --- */

static float length(float x, float y)
{
    return sqrtf(x * x + y * y);
}

/* To the nearest edge; inside if a ray to the right crosses an odd number of edges. */
static float polygon_distance(const oct_shape *s, float x, float y)
{
    float best = 1e9f;
    bool inside = false;

    for (int32_t i = 0, j = s->n - 1; i < s->n; j = i++) {
        const float ex = s->x[j] - s->x[i], ey = s->y[j] - s->y[i];
        const float wx = x - s->x[i], wy = y - s->y[i];
        const float t = oct_clamp01((wx * ex + wy * ey) / (ex * ex + ey * ey));
        const float dx = wx - ex * t, dy = wy - ey * t;
        const float d = dx * dx + dy * dy;

        if (d < best) best = d;
        if ((s->y[i] > y) != (s->y[j] > y) && wx < ex * wy / ey) inside = !inside;
    }
    best = sqrtf(best);
    return inside ? -best : best;
}

static float disc_distance(const oct_shape *s, float x, float y)
{
    (void)s;
    return length(x, y) - 1;
}

/* p: half the width of the band. */
static float ring_distance(const oct_shape *s, float x, float y)
{
    const float d = length(x, y) - (1 - s->p);

    return (d < 0 ? -d : d) - s->p;
}

/* A disc without the disc of radius q at (p, 0). */
static float crescent_distance(const oct_shape *s, float x, float y)
{
    const float outer = length(x, y) - 1, bite = s->q - length(x - s->p, y);

    return outer > bite ? outer : bite;
}

/* --- outlines --- */

static void disc(oct_shape *s, oct_rng *r)
{
    (void)s;
    (void)r;
}

static void ring(oct_shape *s, oct_rng *r)
{
    s->p = oct_rng_range(r, 0.13f, 0.27f);
}

static void crescent(oct_shape *s, oct_rng *r)
{
    s->p = oct_rng_range(r, 0.40f, 0.65f);
    s->q = oct_rng_range(r, 0.75f, 0.95f);
}

static void corner(oct_shape *s, float x, float y)
{
    s->x[s->n] = x;
    s->y[s->n++] = y;
}

static void square(oct_shape *s, oct_rng *r)
{
    const float a = 0.78f;

    (void)r;
    corner(s, -a, -a);
    corner(s, a, -a);
    corner(s, a, a);
    corner(s, -a, a);
}

static void triangle(oct_shape *s, oct_rng *r)
{
    const float tip = oct_rng_range(r, -0.25f, 0.25f), low = oct_rng_range(r, 0.45f, 0.8f);

    corner(s, tip, -1);
    corner(s, 0.88f, low);
    corner(s, -0.88f, low);
}

static void star(oct_shape *s, oct_rng *r)
{
    const int32_t points = 5 + (int32_t)oct_rng_below(r, 2);
    const float inner = oct_rng_range(r, 0.38f, 0.52f);

    for (int32_t i = 0; i < 2 * points; i++) {
        const float radius = i % 2 ? inner : 1;
        float si, co;

        oct_sin_cos((float)i / (float)(2 * points), &si, &co);
        corner(s, radius * si, -radius * co);
    }
}

static void cross(oct_shape *s, oct_rng *r)
{
    const float a = oct_rng_range(r, 0.20f, 0.34f), b = 0.95f;
    const float x[] = {-a, a, a, b, b, a, a, -a, -a, -b, -b, -a};

    for (int32_t i = 0; i < 12; i++)
        corner(s, x[i], x[(i + 9) % 12]);
}

static void arrow(oct_shape *s, oct_rng *r)
{
    const float shaft = oct_rng_range(r, 0.14f, 0.24f), head = oct_rng_range(r, 0.50f, 0.72f);
    const float neck = oct_rng_range(r, -0.15f, 0.15f);

    corner(s, 1, 0);
    corner(s, neck, head);
    corner(s, neck, shaft);
    corner(s, -0.98f, shaft);
    corner(s, -0.98f, -shaft);
    corner(s, neck, -shaft);
    corner(s, neck, -head);
}

static const shape_class classes[] = {
    {"disc", disc, disc_distance}, {"ring", ring, ring_distance},
    {"square", square, NULL},      {"triangle", triangle, NULL},
    {"star", star, NULL},          {"cross", cross, NULL},
    {"arrow", arrow, NULL},        {"crescent", crescent, crescent_distance},
};

const char *oct_synth_class_name(int32_t i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(classes) ? classes[i].name : NULL;
}

void oct_shape_init(oct_shape *s, int32_t category, oct_rng *r)
{
    *s = (oct_shape){.category = category};
    classes[category].init(s, r);
}

float oct_shape_distance(const oct_shape *s, float x, float y)
{
    const shape_class *c = &classes[s->category];

    return c->distance ? c->distance(s, x, y) : polygon_distance(s, x, y);
}
