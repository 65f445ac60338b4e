/* SPDX-License-Identifier: Apache-2.0 */
/* Mirror images. */
#include <string.h>

#include "augment/sample.h"

void oct_flip_lr(oct_sample *s)
{
    const oct_rgb *im = &s->pixels;

    for (int32_t y = 0; y < im->height; y++) {
        uint8_t *l = im->at + (size_t)y * (size_t)im->width * 3;
        uint8_t *r = l + (size_t)(im->width - 1) * 3;

        for (; l < r; l += 3, r -= 3) {
            const uint8_t t[3] = {l[0], l[1], l[2]};

            memcpy(l, r, 3);
            memcpy(r, t, 3);
        }
    }
    for (size_t i = s->first_box; i < s->n_boxes; i++) {
        oct_train_box *b = &s->scratch->boxes[i];
        const double x1 = im->width - b->x2;

        b->x2 = im->width - b->x1;
        b->x1 = x1;
    }
}

static void flip_ud(oct_sample *s)
{
    const oct_rgb *im = &s->pixels;
    const size_t pitch = (size_t)im->width * 3;

    for (int32_t y = 0; y < im->height / 2; y++) {
        uint8_t *a = im->at + (size_t)y * pitch;
        uint8_t *b = im->at + (size_t)(im->height - 1 - y) * pitch;

        for (size_t i = 0; i < pitch; i++) {
            const uint8_t t = a[i];

            a[i] = b[i];
            b[i] = t;
        }
    }
    for (size_t i = s->first_box; i < s->n_boxes; i++) {
        oct_train_box *b = &s->scratch->boxes[i];
        const double y1 = im->height - b->y2;

        b->y2 = im->height - b->y1;
        b->y1 = y1;
    }
}

static oct_status change_lr(oct_sample *s, oct_rng *r)
{
    if (oct_chance(r, s->a->flip_lr)) oct_flip_lr(s);
    return OCT_OK;
}

static oct_status change_ud(oct_sample *s, oct_rng *r)
{
    if (oct_chance(r, s->a->flip_ud)) flip_ud(s);
    return OCT_OK;
}

const oct_augment_row oct_augment_flip_lr = {
    .name = "flip_lr",
    .help = "mirrors left to right",
    .change = change_lr,
};

const oct_augment_row oct_augment_flip_ud = {
    .name = "flip_ud",
    .help = "turns upside down",
    .change = change_ud,
};
