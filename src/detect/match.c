/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of two networks on one picture: which are the same thing. */
#include <octet/detect.h>

#include "base/mem.h"

float oct_detections_iou(const oct_detection *a, const oct_detection *b)
{
    const float w = OCT_MIN(a->x + a->width, b->x + b->width) - OCT_MAX(a->x, b->x);
    const float h = OCT_MIN(a->y + a->height, b->y + b->height) - OCT_MAX(a->y, b->y);
    const float both = w > 0 && h > 0 ? w * h : 0;
    const float any = a->width * a->height + b->width * b->height - both;

    return any > 0 ? both / any : 0;
}

static int32_t best_of(const oct_detection *box, const oct_detection *b, int32_t n_b, float iou,
                       const int32_t *partner, int32_t n_chosen)
{
    float best = iou;
    int32_t at = -1;

    for (int32_t k = 0; k < n_b; k++) {
        const float overlap = b[k].category == box->category ? oct_detections_iou(box, &b[k]) : -1;
        bool is_free = true;

        if (!(overlap >= best) || (at >= 0 && overlap == best)) continue;
        for (int32_t i = 0; i < n_chosen && is_free; i++)
            is_free = partner[i] != k;
        if (!is_free) continue;
        best = overlap;
        at = k;
    }
    return at;
}

void oct_detections_match(const oct_detection *a, int32_t n_a, const oct_detection *b, int32_t n_b,
                          float iou, int32_t *partner)
{
    for (int32_t i = 0; i < n_a; i++)
        partner[i] = best_of(&a[i], b, n_b, iou, partner, i);
}
