/* SPDX-License-Identifier: Apache-2.0 */
/* Blends with another picture; the boxes of both count. */
#include <math.h>

#include "augment/sample.h"
#include "data/image/preprocess.h"

/* Gamma(shape, 1) for shape > 0, after Marsaglia and Tsang. */
static double draw_gamma(oct_rng *r, double shape)
{
    const double boost = shape < 1 ? pow(1 - oct_rng_f64(r), 1 / shape) : 1;
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (int i = 0; i < 1000; i++) { /* nearly always the first */
        const double x = oct_rng_normal(r), t = 1 + c * x, v = t * t * t;

        if (t > 0 && log(1 - oct_rng_f64(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * boost;
    }
    return d * boost;
}

/* Share of the first picture. */
static double draw_share(oct_rng *r, double beta)
{
    double a, b;

    if (beta <= 0) return 0.5;
    a = draw_gamma(r, beta);
    b = draw_gamma(r, beta);
    return a + b > 0 ? a / (a + b) : 0.5;
}

static void blend(const oct_rgb *to, const uint8_t *with, double share)
{
    const size_t n = (size_t)to->width * (size_t)to->height * 3;
    const int w = (int)lrint(share * 256);

    for (size_t i = 0; i < n; i++)
        to->at[i] = (uint8_t)((to->at[i] * w + with[i] * (256 - w) + 128) >> 8);
}

/* The other picture from the upper left corner, larger or smaller; a larger one from anywhere. */
static void arrange_plain(oct_sample *s, oct_rng *r)
{
    const double scale = oct_between(r, s->a->mixup_scale_min, s->a->mixup_scale_max);
    const double u = oct_rng_f64(r), v = oct_rng_f64(r);
    oct_preprocess p = *s->p;

    p.fit = OCT_FIT_LETTERBOX_TOP_LEFT;
    s->scene = (oct_scene){.part = {0, 0, s->im->width, s->im->height}};
    oct_scene_fit(&s->scene, &p, s->im, s->index);
    s->scene.view = (oct_matrix){.xx = scale,
                                 .yy = scale,
                                 .x0 = -u * OCT_MAX(scale - 1, 0.0) * p.width,
                                 .y0 = -v * OCT_MAX(scale - 1, 0.0) * p.height};
}

static oct_status make_room(const oct_sample *s)
{
    const size_t size = (size_t)s->pixels.width * (size_t)s->pixels.height * 3;
    oct_scratch *t = s->scratch;

    if (t->other_size >= size) return OCT_OK;
    if (!(t->other = oct_alloc(s->ctx, size))) return OCT_ERR_MEMORY;
    t->other_size = size;
    return OCT_OK;
}

static oct_status change(oct_sample *s, oct_rng *r)
{
    oct_sample other = *s;
    double share;

    if (!oct_chance(r, s->a->mixup)) return OCT_OK;
    share = draw_share(r, s->a->mixup_beta);
    OCT_TRY(make_room(s));
    other.key = oct_rng_u64(r);
    other.pixels.at = s->scratch->other;
    other.first_box = s->n_boxes;
    OCT_TRY(oct_sample_draw(&other, r, true, &other.index, &other.im));
    if (s->a->mixup_whole >= 0.5) {
        OCT_TRY(oct_sample_arrange(&other));
    } else {
        arrange_plain(&other, r);
        OCT_TRY(oct_scene_draw(&other));
        if (oct_chance(r, s->a->mixup_flip)) oct_flip_lr(&other);
    }
    blend(&s->pixels, other.pixels.at, share);
    s->n_boxes = other.n_boxes;
    return OCT_OK;
}

const oct_augment_row oct_augment_mixup = {
    .name = "mixup",
    .help = "blends pictures",
    .change = change,
};
