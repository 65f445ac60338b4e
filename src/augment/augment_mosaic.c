/* SPDX-License-Identifier: Apache-2.0 */
/* Four pictures round a point of a canvas of twice the network's size. */
#include "augment/sample.h"
#include "data/image/preprocess.h"

/* Picture i of the four touches the point (x, y) with its corner: 0 is upper left, 3 lower right.
 */
static void place(const oct_sample *s, int i, double x, double y, const oct_image *im,
                  oct_tile *out)
{
    const double width = 2.0 * s->p->width, height = 2.0 * s->p->height;
    const bool right = i & 1, below = i & 2;
    oct_preprocess p = *s->p;
    oct_placement to;

    p.fit = OCT_FIT_LETTERBOX;
    to = oct_preprocess_place(&p, im->width, im->height);
    out->im = im;
    out->at.x1 = right ? x : x - to.to_width;
    out->at.y1 = below ? y : y - to.to_height;
    out->at.x2 = out->at.x1 + to.to_width;
    out->at.y2 = out->at.y1 + to.to_height;
    out->clip = (oct_area){right ? x : 0, below ? y : 0, right ? width : x, below ? height : y};
}

static oct_status arrange(oct_sample *s, oct_rng *r)
{
    const double far = s->a->mosaic_center;
    oct_scene *sc = &s->scene;
    double x, y;

    if (!oct_chance(r, s->a->mosaic)) return OCT_OK;
    x = oct_round_to_pixel(oct_between(r, 1 - far, 1 + far) * s->p->width);
    y = oct_round_to_pixel(oct_between(r, 1 - far, 1 + far) * s->p->height);
    sc->width = 2.0 * s->p->width;
    sc->height = 2.0 * s->p->height;
    sc->n_tiles = OCT_MAX_TILES;
    sc->by_centre = false;
    for (int i = 0; i < OCT_MAX_TILES; i++) {
        const oct_image *im = s->im;
        int64_t index = s->index;

        if (i > 0) OCT_TRY(oct_sample_draw(s, r, false, &index, &im));
        place(s, i, x, y, im, &sc->tile[i]);
        sc->tile[i].index = index;
    }
    /* Its middle is seen; affine may change that. */
    sc->view = (oct_matrix){.xx = 1, .yy = 1, .x0 = -s->p->width / 2, .y0 = -s->p->height / 2};
    return OCT_OK;
}

const oct_augment_row oct_augment_mosaic = {
    .name = "mosaic",
    .help = "puts four pictures together",
    .arrange = arrange,
};
