/* SPDX-License-Identifier: Apache-2.0 */
/* SSD and similar networks: corners [n, anchors, 4] and scores [n, anchors, classes] of any
 * anchors. */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

enum { FEWEST_ANCHORS = 500 }; /* fewer: a set of queries, which needs no suppression */

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *a = oct_net_out(net, 0), *b = oct_net_out(net, 1);
    const oct_type *scores;
    bool softmax, sigmoid;

    if (net->g->n_outputs != 2 || a->rank != 3 || b->rank != 3 || a->dim[1] != b->dim[1])
        return OCT_OK;
    if (a->dim[1] < 1 || (a->dim[2] != 4 && b->dim[2] != 4)) return OCT_OK;
    r->boxes = a->dim[2] == 4 ? 0 : 1;
    r->scores = 1 - r->boxes;
    scores = oct_net_out(net, r->scores);
    if (scores->dim[2] < 1 || scores->dim[2] > INT16_MAX) return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_softmax, &softmax));
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_sigmoid, &sigmoid));
    /* A softmax distributes over the classes, so one of them must be the background. */
    r->has_background = softmax && scores->dim[2] > 1;
    r->is_logits = !softmax && !sigmoid;
    r->n_classes = (int32_t)scores->dim[2] - r->has_background;
    *sure = a->dim[1] < FEWEST_ANCHORS ? OCT_SURE_ASKED : OCT_SURE_MAYBE;
    if (softmax && *sure == OCT_SURE_MAYBE) *sure = OCT_SURE_LIKELY;
    (void)snprintf(r->why, sizeof(r->why),
                   "outputs '%s' [n, anchors, 4] and '%s' [n, anchors, %lld]%s",
                   net->g->outputs[r->boxes]->name, net->g->outputs[r->scores]->name,
                   (long long)scores->dim[2],
                   r->has_background ? " with a softmax: class 0 is the background" : "");
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    (void)r;
    p->fit = OCT_FIT_STRETCH;
    p->scale = 1;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = 127;
        p->std[c] = 128;
    }
}

/* Are corners fractions of the picture? Pixels would be far above 2 somewhere. */
static bool is_unit(const oct_view *v)
{
    float most = 0;

    for (int64_t i = 0; i < v->dim[0] * 4; i++)
        most = fmaxf(most, v->x[i]);
    return most <= 2;
}

static oct_status decode(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    const int32_t skip = r->has_background;
    const float t = r->is_logits ? oct_logit(d->threshold) : d->threshold;
    oct_view scores, boxes;
    int64_t wide, n;
    float sx, sy;

    OCT_TRY(oct_decoding_view(d, r->scores, 2, &scores));
    OCT_TRY(oct_decoding_view(d, r->boxes, 2, &boxes));
    wide = scores.dim[1];
    if (wide != r->n_classes + skip) return oct_decoding_misfit(d, r->scores);
    if (boxes.dim[0] != scores.dim[0] || boxes.dim[1] != 4) return oct_decoding_misfit(d, r->boxes);
    sx = is_unit(&boxes) ? (float)r->width : 1;
    sy = sx != 1 ? (float)r->height : 1;
    n = scores.dim[0] * wide;
    for (int64_t i = oct_find_above(scores.x, n, 0, t); i < n;
         i = oct_find_above(scores.x, n, i + 1, t)) {
        const float *b = boxes.x + i / wide * 4;
        const int32_t category = (int32_t)(i % wide) - skip;

        if (category < 0) continue;
        oct_candidates_push(
            d->found,
            &(oct_candidate){.x1 = b[0] * sx,
                             .y1 = b[1] * sy,
                             .x2 = b[2] * sx,
                             .y2 = b[3] * sy,
                             .score = r->is_logits ? oct_sigmoid(scores.x[i]) : scores.x[i],
                             .category = category,
                             .index = i});
    }
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *scores = b->g->outputs[r->scores];
    const int32_t skip = r->has_background;

    if (skip) scores = oct_grad_part(b, scores, 2, skip, skip + r->n_classes);
    out->boxes = oct_attach_pixels(b, b->g->outputs[r->boxes], r);
    out->scores = oct_attach_scores(b, scores, r);
    return b->status;
}

const oct_family oct_family_ssd = {
    .name = "ssd",
    .help = "[n, anchors, 4] corners (pixels or 0..1) and [n, anchors, classes] scores; after a "
            "softmax class 0 is the background",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
