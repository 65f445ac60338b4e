/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a part of the picture. With boxes as SSD and PaddleDetection do: a least overlap (IoU) of
 * the part with some box is drawn first, then parts are tried until one has it and the centre of a
 * box; boxes whose centres are outside are dropped. With classes any part will do.
 */
#include <math.h>

#include "augment/sample.h"

/* The last one stands for the whole picture. */
static const double overlaps[] = {0, 0.1, 0.3, 0.5, 0.7, 0.9, -1};

static oct_area draw_part(const oct_sample *s, oct_rng *r)
{
    const oct_augment *a = s->a;
    const double width = s->scene.part.x2 - s->scene.part.x1;
    const double height = s->scene.part.y2 - s->scene.part.y1;
    const double scale = oct_between(r, a->crop_scale_min, a->crop_scale_max);
    /* Neither side may become longer than the picture's. */
    const double lo = OCT_MAX(1 / a->crop_aspect, scale * scale);
    const double hi = OCT_MIN(a->crop_aspect, 1 / (scale * scale));
    const double aspect = sqrt(oct_between(r, lo, hi));
    const double w = OCT_MAX(floor(OCT_MIN(width * scale * aspect, width)), 1);
    const double h = OCT_MAX(floor(OCT_MIN(height * scale / aspect, height)), 1);
    const double x = s->scene.part.x1 + floor(oct_rng_f64(r) * (width - w + 1));
    const double y = s->scene.part.y1 + floor(oct_rng_f64(r) * (height - h + 1));

    return (oct_area){x, y, x + w, y + h};
}

static double overlap(oct_area a, const oct_train_box *b)
{
    const double w = OCT_MIN(a.x2, b->x2) - OCT_MAX(a.x1, b->x1);
    const double h = OCT_MIN(a.y2, b->y2) - OCT_MAX(a.y1, b->y1);
    const double both = w > 0 && h > 0 ? w * h : 0;

    return both / ((a.x2 - a.x1) * (a.y2 - a.y1) + b->area - both);
}

static bool has_centre(oct_area a, const oct_train_box *b)
{
    const double x = (b->x1 + b->x2) / 2, y = (b->y1 + b->y2) / 2;

    return x >= a.x1 && x < a.x2 && y >= a.y1 && y < a.y2;
}

/* Is a box overlapped as much as wanted, and the centre of one inside? */
static bool will_do(const oct_sample *s, oct_area part, double least)
{
    const oct_train_labels *l = s->sampler->labels;
    bool enough = false, centred = false;
    int32_t n = 0;
    const oct_label *labels = oct_dataset_labels(l->d, s->index, &n);

    for (int32_t i = 0; i < n; i++) {
        oct_train_box b;

        if (!oct_train_box_of(l, &labels[i], &b)) continue;
        enough = enough || overlap(part, &b) >= least;
        centred = centred || has_centre(part, &b);
    }
    return enough && centred;
}

static oct_status arrange(oct_sample *s, oct_rng *r)
{
    const bool classes = s->sampler->labels->classes;
    double least;

    if (!oct_chance(r, s->a->crop)) return OCT_OK;
    least = classes ? 0 : overlaps[oct_rng_below(r, OCT_COUNT(overlaps))];
    for (int i = 0; i < (int)s->a->crop_tries && least >= 0; i++) {
        const oct_area part = draw_part(s, r);

        if (!classes && !will_do(s, part, least)) continue;
        s->scene.part = part;
        s->scene.by_centre = true;
        break;
    }
    return OCT_OK;
}

const oct_augment_row oct_augment_crop = {
    .name = "crop",
    .help = "takes parts of pictures",
    .arrange = arrange,
};
