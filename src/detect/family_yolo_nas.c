/* SPDX-License-Identifier: Apache-2.0 */
/* YOLO-NAS: decoded boxes [n, cells, 4] with scores [n, cells, classes], or what they come from. */
#include <stdio.h>

#include "detect/attach.h"

enum { DECODED, RAW }; /* forms */

enum { MIN_BINS = 8, MAX_BINS = 33 };

/* An output [n, cells, k] with the number of cells that strides 8, 16, 32 have; k, or 0. */
static int64_t channels(const oct_net *net, int32_t i)
{
    const oct_type *t = oct_net_out(net, i);
    const int64_t cells = oct_net_cells(net, 8) + oct_net_cells(net, 16) + oct_net_cells(net, 32);

    return t && t->rank == 3 && t->dim[1] == cells && t->dim[2] > 0 ? t->dim[2] : 0;
}

/* Boxes before scores; more outputs (the raw ones) may follow. */
static oct_status match_decoded(const oct_net *net, oct_reading *r, int32_t *sure)
{
    bool softmax;

    for (int32_t i = 0; i < net->g->n_outputs; i++) {
        const int64_t k = channels(net, i);

        if (k == 4 && r->boxes < 0)
            r->boxes = i;
        else if (k && k <= INT16_MAX && r->scores < 0)
            r->scores = i;
    }
    if (r->boxes < 0 || r->scores < 0) return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_softmax, &softmax));
    r->form = DECODED;
    r->n_classes = (int32_t)channels(net, r->scores);
    *sure = softmax ? OCT_SURE_ASKED : OCT_SURE_YES; /* with softmax: SSD */
    (void)snprintf(r->why, sizeof(r->why),
                   "outputs '%s' [n, cells, 4] and '%s' [n, cells, %d] for the cells of strides 8, "
                   "16, 32%s",
                   net->g->outputs[r->boxes]->name, net->g->outputs[r->scores]->name,
                   (int)r->n_classes,
                   net->g->n_outputs > 2 ? "; further outputs are not needed" : "");
    return OCT_OK;
}

static oct_status match_raw(const oct_net *net, oct_reading *r, int32_t *sure)
{
    bool sigmoid;

    r->boxes = r->scores = -1;
    for (int32_t i = 0; i < net->g->n_outputs; i++) {
        const int64_t k = channels(net, i);

        if (!k || k > INT16_MAX) continue;
        if (r->scores < 0)
            r->scores = i; /* class scores come first */
        else if (r->boxes < 0 && k % 4 == 0 && k / 4 >= MIN_BINS && k / 4 <= MAX_BINS)
            r->boxes = i;
    }
    if (r->boxes < 0 || r->scores < 0) return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[r->scores], oct_node_is_sigmoid, &sigmoid));
    r->form = RAW;
    r->is_logits = !sigmoid;
    r->n_classes = (int32_t)channels(net, r->scores);
    r->bins = (int32_t)channels(net, r->boxes) / 4;
    r->levels = (oct_levels){3, {8, 16, 32}};
    *sure = OCT_SURE_LIKELY;
    (void)snprintf(r->why, sizeof(r->why),
                   "outputs '%s' [n, cells, %d] and '%s' [n, cells, 4 * %d bins], not decoded, for "
                   "the cells of strides 8, 16, 32",
                   net->g->outputs[r->scores]->name, (int)r->n_classes,
                   net->g->outputs[r->boxes]->name, (int)r->bins);
    return OCT_OK;
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    OCT_TRY(match_decoded(net, r, sure));
    return *sure == OCT_SURE_NO ? match_raw(net, r, sure) : OCT_OK;
}

static oct_status decode_raw(oct_decoding *d, const oct_view *scores, const oct_view *distances)
{
    const oct_reading *r = d->reading;
    int64_t first = 0;

    for (int32_t l = 0; l < r->levels.n; l++) {
        const int32_t s = r->levels.stride[l];
        const int64_t n = (int64_t)((r->width + s - 1) / s) * ((r->height + s - 1) / s);
        oct_dfl_level level = {*scores, *distances, .stride = s, .first = first};

        if (first + n > scores->dim[0]) return oct_decoding_misfit(d, r->scores);
        level.scores.x += first * r->n_classes;
        level.scores.dim[0] = n;
        level.distances.x += first * 4 * r->bins;
        oct_decode_dfl(d, &level);
        first += n;
    }
    return OCT_OK;
}

static oct_status decode(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    const int64_t classes = r->n_classes, wide = r->form == RAW ? 4 * (int64_t)r->bins : 4;
    oct_view scores, boxes;
    int64_t n;

    OCT_TRY(oct_decoding_view(d, r->scores, 2, &scores));
    OCT_TRY(oct_decoding_view(d, r->boxes, 2, &boxes));
    if (scores.dim[1] != classes) return oct_decoding_misfit(d, r->scores);
    if (boxes.dim[0] != scores.dim[0] || boxes.dim[1] != wide)
        return oct_decoding_misfit(d, r->boxes);
    if (r->form == RAW) return decode_raw(d, &scores, &boxes);
    n = scores.dim[0] * classes;
    for (int64_t i = oct_find_above(scores.x, n, 0, d->threshold); i < n;
         i = oct_find_above(scores.x, n, i + 1, d->threshold)) {
        const float *b = boxes.x + i / classes * 4;

        oct_candidates_push(d->found, &(oct_candidate){.x1 = b[0],
                                                       .y1 = b[1],
                                                       .x2 = b[2],
                                                       .y2 = b[3],
                                                       .score = scores.x[i],
                                                       .category = (int32_t)(i % classes),
                                                       .index = i});
    }
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *boxes = b->g->outputs[r->boxes];

    out->boxes = r->form == RAW ? oct_attach_dfl(b, boxes, r, 0) : boxes;
    out->scores = oct_attach_scores(b, b->g->outputs[r->scores], r);
    return b->status;
}

const oct_family oct_family_yolo_nas = {
    .name = "yolo-nas",
    .help = "[n, cells, 4] corners in pixels and [n, cells, classes] scores; or class logits and "
            "[n, cells, 4 * bins] distances",
    .match = match,
    .decode = decode,
    .attach = attach,
};
