/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation, scale, stretch, shear and shift of the canvas, as one matrix. */
#include <math.h>

#include "augment/sample.h"

static double radians(double degrees)
{
    return degrees * 0.017453292519943295769;
}

/* a after b, without the shifts. */
static oct_matrix product(oct_matrix a, oct_matrix b)
{
    return (oct_matrix){.xx = a.xx * b.xx + a.xy * b.yx,
                        .xy = a.xx * b.xy + a.xy * b.yy,
                        .yx = a.yx * b.xx + a.yy * b.yx,
                        .yy = a.yx * b.xy + a.yy * b.yy};
}

static oct_status arrange(oct_sample *s, oct_rng *r)
{
    const oct_augment *a = s->a;
    oct_scene *sc = &s->scene;
    const double angle = radians(oct_between(r, -a->degrees, a->degrees));
    const double scale = oct_between(r, a->scale_min, a->scale_max);
    const double stretch_x = oct_between(r, a->stretch_min, a->stretch_max);
    const double stretch_y = oct_between(r, a->stretch_min, a->stretch_max);
    const double shear_x = tan(radians(oct_between(r, -a->shear, a->shear)));
    const double shear_y = tan(radians(oct_between(r, -a->shear, a->shear)));
    const double dx = oct_between(r, -a->translate, a->translate) * s->p->width;
    const double dy = oct_between(r, -a->translate, a->translate) * s->p->height;
    const oct_matrix turn = {.xx = scale * cos(angle),
                             .xy = scale * sin(angle),
                             .yx = -scale * sin(angle),
                             .yy = scale * cos(angle)};
    const oct_matrix stretch = {.xx = stretch_x, .yy = stretch_y};
    const oct_matrix shear = {.xx = 1, .xy = shear_x, .yx = shear_y, .yy = 1};
    oct_matrix m;

    if (!oct_chance(r, a->affine)) return OCT_OK;
    m = product(shear, product(stretch, turn));
    m.x0 = dx;
    m.y0 = dy;
    if (a->affine_corner < 0.5) { /* the middle of the canvas to the middle of the input */
        m.x0 += s->p->width / 2.0 - (m.xx * sc->width + m.xy * sc->height) / 2;
        m.y0 += s->p->height / 2.0 - (m.yx * sc->width + m.yy * sc->height) / 2;
    }
    sc->view = m;
    return OCT_OK;
}

const oct_augment_row oct_augment_affine = {
    .name = "affine",
    .help = "turns, scales, stretches, shears and shifts",
    .arrange = arrange,
};
