/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DETR and its successors (RT-DETR, D-FINE without its post-processing, DINO): a set of queries,
 * each with a box and scores, without NMS. Boxes are centre and size as fractions of the picture.
 */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

enum { PAIR, JOINED }; /* boxes [n, queries, 4] and scores; or both in [n, queries, 4 + classes] */

enum { MANY_QUERIES = 500, DINO_QUERIES = 900, DETR_SCORES = 92 };

static bool has_queries(const oct_type *t)
{
    return t && t->rank == 3 && t->dim[1] > 0 &&
           (t->dim[1] < MANY_QUERIES || t->dim[1] == DINO_QUERIES) && t->dim[2] > 0 &&
           t->dim[2] <= INT16_MAX;
}

static bool match_pair(const oct_net *net, oct_reading *r)
{
    for (int32_t i = 0; i < net->g->n_outputs; i++) {
        const oct_type *t = oct_net_out(net, i);

        if (!has_queries(t)) continue;
        if (t->dim[2] == 4 && r->boxes < 0)
            r->boxes = i;
        else if (t->dim[2] != 4 && r->scores < 0)
            r->scores = i;
    }
    if (r->boxes < 0 || r->scores < 0) return false;
    return oct_net_out(net, r->boxes)->dim[1] == oct_net_out(net, r->scores)->dim[1];
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *first = oct_net_out(net, 0);
    const int32_t names = oct_class_names_size(net->says.names);
    bool softmax, sigmoid;
    int64_t n;

    r->form = match_pair(net, r) ? PAIR : JOINED;
    if (r->form == JOINED) {
        if (net->g->n_outputs != 1 || !has_queries(first) || first->dim[2] < 5) return OCT_OK;
        r->boxes = r->scores = 0;
    }
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_softmax, &softmax));
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_sigmoid, &sigmoid));
    n = oct_net_out(net, r->scores)->dim[2] - (r->form == JOINED ? 4 : 0);
    /* DETR itself has a softmax over the classes and, as the last one, "no object". */
    r->has_background = !sigmoid && (softmax || n == DETR_SCORES || (names && names == n - 1));
    r->is_logits = !sigmoid && !softmax;
    r->n_classes = (int32_t)n - r->has_background;
    if (r->n_classes < 1) return OCT_OK;
    if (r->form == PAIR)
        *sure = net->g->n_outputs == 2 && !oct_net_levels(net, first->dim[1], 1).n ? OCT_SURE_LIKELY
                                                                                   : OCT_SURE_ASKED;
    else
        *sure = n != 2 && (names ? names == n : n == 80) ? OCT_SURE_LIKELY : OCT_SURE_ASKED;
    (void)snprintf(r->why, sizeof(r->why), "outputs are %lld queries, each with a box and %d %s%s",
                   (long long)first->dim[1], (int)r->n_classes,
                   r->is_logits ? "scores (logits)" : "scores",
                   r->has_background ? ", and one for nothing" : "");
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

    p->fit = OCT_FIT_STRETCH;
    for (int c = 0; c < 3 && r->has_background; c++) { /* DETR; the later ones expect 0..1 */
        p->mean[c] = mean[c];
        p->std[c] = std[c];
    }
}

/* Are boxes fractions of the picture? Pixels would be far above 2 somewhere. */
static bool is_unit(const oct_view *v)
{
    float most = 0;

    for (int64_t i = 0; i < v->dim[0]; i++)
        for (int k = 0; k < 4; k++)
            most = fmaxf(most, v->x[i * v->dim[1] + k]);
    return most <= 2;
}

/* 1 / sum of exp(x - top), and top: the softmax of a query's logits. */
static float share(const float *x, int64_t n, float *top)
{
    float sum = 0;

    *top = x[0];
    for (int64_t i = 1; i < n; i++)
        *top = fmaxf(*top, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += expf(x[i] - *top);
    return 1 / sum;
}

static void push_query(const oct_decoding *d, const float *b, const float *s, int64_t query,
                       const float size[2])
{
    const oct_reading *r = d->reading;
    const bool shares = r->is_logits && r->has_background;
    float top = 0, part = 1;
    oct_candidate box = {.x1 = (b[0] - b[2] * 0.5f) * size[0],
                         .y1 = (b[1] - b[3] * 0.5f) * size[1],
                         .x2 = (b[0] + b[2] * 0.5f) * size[0],
                         .y2 = (b[1] + b[3] * 0.5f) * size[1]};

    if (shares) part = share(s, r->n_classes + 1, &top);
    for (int32_t k = 0; k < r->n_classes; k++) {
        box.score = shares ? expf(s[k] - top) * part : r->is_logits ? oct_sigmoid(s[k]) : s[k];
        if (!(box.score > d->threshold)) continue;
        box.category = k;
        box.index = query * r->n_classes + k;
        oct_candidates_push(d->found, &box);
    }
}

static oct_status decode(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    const int64_t skip = r->form == JOINED ? 4 : 0;
    oct_view scores, boxes;
    float size[2] = {1, 1};

    OCT_TRY(oct_decoding_view(d, r->scores, 2, &scores));
    OCT_TRY(oct_decoding_view(d, r->boxes, 2, &boxes));
    if (scores.dim[1] != skip + r->n_classes + r->has_background)
        return oct_decoding_misfit(d, r->scores);
    if (boxes.dim[0] != scores.dim[0] || boxes.dim[1] < 4) return oct_decoding_misfit(d, r->boxes);
    if (is_unit(&boxes)) {
        size[0] = (float)r->width;
        size[1] = (float)r->height;
    }
    for (int64_t i = 0; i < boxes.dim[0]; i++)
        push_query(d, boxes.x + i * boxes.dim[1], scores.x + i * scores.dim[1] + skip, i, size);
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    const int64_t skip = r->form == JOINED ? 4 : 0;
    oct_value *boxes = b->g->outputs[r->boxes], *scores = b->g->outputs[r->scores];

    boxes = oct_grad_part(b, boxes, 2, 0, 4);
    out->boxes = oct_attach_corners(b, oct_attach_pixels(b, boxes, r));
    scores = oct_grad_part(b, scores, 2, skip, skip + r->n_classes + r->has_background);
    if (r->has_background && r->is_logits) {
        scores = oct_emit(b, &oct_op_softmax, scores, NULL, NULL); /* over the last axis */
    } else {
        scores = oct_attach_scores(b, scores, r);
    }
    out->scores = r->has_background ? oct_grad_part(b, scores, 2, 0, r->n_classes) : scores;
    return b->status;
}

const oct_family oct_family_detr = {
    .name = "detr",
    .help = "queries without suppression: [n, queries, 4] centre and size (0..1) with [n, queries, "
            "classes] logits or scores, or both concatenated (DETR, RT-DETR)",
    .is_suppressed = true,
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
