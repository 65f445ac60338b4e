/* SPDX-License-Identifier: Apache-2.0 */
/* Networks with NMS inside: rows of final boxes, in the forms that exporters write. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "detect/family.h"
#include "graph/op.h"

enum {
    COUNTED, /* count [n,1], boxes [n,k,4], scores [n,k], classes [n,k]: EfficientNMS_TRT */
    ROWS6,   /* [n,k,6] or [k,6]: corners, score, class */
    ROWS7,   /* [k,7]: picture, corners, then class and score in either order */
    SPLIT,   /* boxes [k,4], scores [k], classes [k]; or for each picture [n,k,4], [n,k], [n,k] */
    DETS,    /* corners and score [n,k,5] or [k,5], classes [n,k] or [k]: mmdetection */
    INDICES, /* [k,3]: picture, class, anchor; with boxes [n,anchors,4] and scores
                [n,classes,anchors], or [n,anchors,classes] */
};

enum { COUNT, CLASSES }; /* roles in `extra` */

static bool is_integer(const oct_type *t)
{
    return t->dtype == OCT_DTYPE_I64 || t->dtype == OCT_DTYPE_I32;
}

/* Four outputs: shapes identify boxes and count; of the other two, the integers, or the name
 * with "class" or "label", are the classes, else the last. */
static bool match_counted(const oct_net *net, oct_reading *r)
{
    r->boxes = r->scores = r->extra[COUNT] = r->extra[CLASSES] = -1;
    if (net->g->n_outputs != 4) return false;
    for (int32_t i = 0; i < 4; i++) {
        const oct_type *t = oct_net_out(net, i);
        const char *name = net->g->outputs[i]->name;

        if (t->rank == 3 && t->dim[2] == 4)
            r->boxes = i;
        else if (t->rank == 1 || (t->rank == 2 && t->dim[1] == 1))
            r->extra[COUNT] = i;
        else if (t->rank == 2 && (is_integer(t) || strstr(name, "class") || strstr(name, "label")))
            r->extra[CLASSES] = i;
        else if (t->rank == 2 && r->scores < 0)
            r->scores = i;
        else if (t->rank == 2)
            r->extra[CLASSES] = i;
    }
    return r->boxes >= 0 && r->scores >= 0 && r->extra[COUNT] >= 0 && r->extra[CLASSES] >= 0;
}

static bool match_indices(const oct_net *net, oct_reading *r)
{
    r->boxes = r->scores = r->extra[0] = -1;
    if (net->g->n_outputs != 3) return false;
    for (int32_t i = 0; i < 3; i++) {
        const oct_type *t = oct_net_out(net, i);

        if (t->rank == 2 && t->dim[1] == 3 && is_integer(t))
            r->extra[0] = i;
        else if (t->rank == 3 && t->dim[2] == 4 && r->boxes < 0)
            r->boxes = i;
        else if (t->rank == 3)
            r->scores = i;
    }
    return r->boxes >= 0 && r->scores >= 0 && r->extra[0] >= 0;
}

/* The node of this operator; NULL: none, or several. */
static const oct_node *find_op(const oct_net *net, const char *op)
{
    const oct_node *found = NULL;

    for (const oct_node *n = net->g->first; n; n = n->next) {
        if (strcmp(n->op->name, op) != 0) continue;
        if (found) return NULL;
        found = n;
    }
    return found;
}

/*
 * How many classes there are, where super-gradients or octet attached the suppression: its operand
 * has all of them. Others suppress classes one by one, or all as one. 0: not known.
 */
static int32_t attached_classes(const oct_net *net)
{
    static const char *const names[] = {"flat_predictions", "num_predictions", "num_dets"};
    const oct_node *n = find_op(net, "NonMaxSuppression"), *trt = find_op(net, "EfficientNMS_TRT");
    const oct_value *scores = n ? oct_node_in(n, 1) : trt ? oct_node_in(trt, 1) : NULL;
    const int64_t k = scores && scores->type.rank == 3 ? scores->type.dim[n ? 1 : 2] : 0;

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (!strcmp(net->g->outputs[0]->name, names[i]) && k > 0 && k <= INT16_MAX)
            return (int32_t)k;
    return 0;
}

/*
 * Layouts of the outputs beside the indices. The operator takes scores [n, classes, anchors] and
 * either corners or centres; an output that is its operand has its layout, others are told by their
 * shapes.
 */
static void read_layouts(const oct_net *net, oct_reading *r)
{
    const oct_node *nms = find_op(net, "NonMaxSuppression");
    const oct_value *scores = net->g->outputs[r->scores], *boxes = net->g->outputs[r->boxes];
    const int64_t anchors = boxes->type.dim[1];
    const bool fits = scores->type.dim[2] == anchors, turned = scores->type.dim[1] == anchors;
    const oct_attr *centre = nms ? oct_node_attr(nms, "center_point_box") : NULL;

    r->scores_turned = turned && (!fits || (nms && oct_node_in(nms, 1) != scores));
    r->boxes_centred = centre && centre->i == 1 && oct_node_in(nms, 0) == boxes;
    r->n_classes = 0;
    if (scores->type.dim[r->scores_turned ? 2 : 1] > 0)
        r->n_classes = (int32_t)OCT_MIN(scores->type.dim[r->scores_turned ? 2 : 1], INT16_MAX);
}

/* In which order the two outputs of places are told apart: integers, or a name, are the classes. */
static bool is_classes(const oct_net *net, int32_t i)
{
    const char *name = net->g->outputs[i]->name;

    return is_integer(oct_net_out(net, i)) || strstr(name, "class") || strstr(name, "label");
}

/* The extra dimension is that of pictures, in all outputs or none. */
static bool match_split(const oct_net *net, oct_reading *r)
{
    const int32_t more =
        net->g->n_outputs == 3 &&
        oct_net_out(net, 0)->rank + oct_net_out(net, 1)->rank + oct_net_out(net, 2)->rank == 7;

    r->boxes = r->scores = r->extra[0] = -1;
    if (net->g->n_outputs != 3) return false;
    for (int32_t i = 0; i < 3; i++) {
        const oct_type *t = oct_net_out(net, i);

        if (t->rank == 2 + more && t->dim[1 + more] == 4)
            r->boxes = i;
        else if (t->rank == 1 + more && is_classes(net, i))
            r->extra[0] = i;
        else if (t->rank == 1 + more)
            r->scores = i;
    }
    return r->boxes >= 0 && r->scores >= 0 && r->extra[0] >= 0;
}

static bool match_dets(const oct_net *net, oct_reading *r)
{
    r->boxes = r->extra[0] = -1;
    if (net->g->n_outputs != 2) return false;
    for (int32_t i = 0; i < 2; i++) {
        const oct_type *t = oct_net_out(net, i), *other = oct_net_out(net, 1 - i);

        if ((t->rank == 2 || t->rank == 3) && t->dim[t->rank - 1] == 5 &&
            other->rank == t->rank - 1 && is_classes(net, 1 - i)) {
            r->boxes = i;
            r->extra[0] = 1 - i;
        }
    }
    return r->boxes >= 0;
}

static bool match_rows(const oct_net *net, oct_reading *r)
{
    const oct_type *t = oct_net_out(net, 0);

    if (!t || net->g->n_outputs != 1 || (t->rank != 2 && t->rank != 3)) return false;
    r->boxes = 0;
    r->form = t->dim[t->rank - 1] == 7 ? ROWS7 : ROWS6;
    return t->dim[t->rank - 1] == 6 || (t->dim[1] == 7 && t->rank == 2);
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    static const char *const texts[] = {
        [COUNTED] = "outputs are a count, boxes, scores and classes of finished detections",
        [ROWS6] = "output rows are finished detections: corners, score, class",
        [ROWS7] = "output rows are finished detections: picture, corners, class and score",
        [SPLIT] = "outputs are boxes, scores and classes of finished detections",
        [DETS] = "outputs are corners with a score, and classes, of finished detections",
        [INDICES] = "outputs are the indices that NonMaxSuppression chose, with boxes and scores",
    };
    const bool suppresses =
        oct_net_has_op(net, "NonMaxSuppression") || oct_net_has_op(net, "EfficientNMS_TRT");

    if (match_counted(net, r))
        r->form = COUNTED;
    else if (match_indices(net, r))
        r->form = INDICES;
    else if (match_split(net, r))
        r->form = SPLIT;
    else if (match_dets(net, r))
        r->form = DETS;
    else if (!match_rows(net, r))
        return OCT_OK;
    r->n_classes = attached_classes(net);
    r->score_first = strcmp(net->g->outputs[0]->name, "flat_predictions") == 0;
    r->is_stretched = net->sizes != NULL;
    if (r->form == INDICES) read_layouts(net, r);
    *sure = suppresses && r->form == INDICES       ? OCT_SURE_MORE
            : suppresses || r->form == COUNTED     ? OCT_SURE_YES
            : r->form == ROWS6 || r->form == ROWS7 ? OCT_SURE_MAYBE
                                                   : OCT_SURE_LIKELY;
    if (r->form == ROWS6 && !suppresses &&
        oct_net_levels(net, oct_net_out(net, 0)->dim[oct_net_out(net, 0)->rank - 2], 1).n)
        *sure = OCT_SURE_NO; /* one row for each cell: a network with one class */
    (void)snprintf(r->why, sizeof(r->why), "%s%s", texts[r->form],
                   suppresses ? "; the network contains suppression" : "");
    return OCT_OK;
}

/* --- reading --- */

static void push(const oct_decoding *d, const float *corners, float score, float category,
                 int64_t index)
{
    if (!(score > d->threshold) || !(category >= 0) || !(category < (float)INT32_MAX)) return;
    oct_candidates_push(d->found, &(oct_candidate){.x1 = corners[0],
                                                   .y1 = corners[1],
                                                   .x2 = corners[2],
                                                   .y2 = corners[3],
                                                   .score = score,
                                                   .category = (int32_t)category,
                                                   .index = index});
}

static oct_status decode_counted(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    oct_view boxes, scores, classes, count;
    int64_t n;

    OCT_TRY(oct_decoding_view(d, r->boxes, 2, &boxes));
    OCT_TRY(oct_decoding_view(d, r->scores, 1, &scores));
    OCT_TRY(oct_decoding_view(d, r->extra[CLASSES], 1, &classes));
    OCT_TRY(oct_decoding_whole(d, r->extra[COUNT], &count));
    if (boxes.dim[1] != 4 || count.dim[0] <= d->index) return oct_decoding_misfit(d, r->boxes);
    n = OCT_MIN(boxes.dim[0], OCT_MIN(scores.dim[0], classes.dim[0]));
    if (!(count.x[d->index] >= 0)) return oct_decoding_misfit(d, r->extra[COUNT]);
    if (count.x[d->index] < (float)n) n = (int64_t)count.x[d->index];
    for (int64_t i = 0; i < n; i++)
        push(d, boxes.x + i * 4, scores.x[i], classes.x[i], i);
    return OCT_OK;
}

static oct_status decode_rows6(oct_decoding *d)
{
    oct_view v;

    OCT_TRY(oct_decoding_whole(d, 0, &v));
    if (v.rank == 3) OCT_TRY(oct_decoding_view(d, 0, 2, &v));
    if (v.dim[1] != 6) return oct_decoding_misfit(d, 0);
    for (int64_t i = 0; i < v.dim[0]; i++)
        push(d, v.x + i * 6, v.x[i * 6 + 4], v.x[i * 6 + 5], i);
    return OCT_OK;
}

/* Class before score, unless the name says so or a number in the class's place is not whole. */
static oct_status decode_rows7(oct_decoding *d)
{
    bool class_first = !d->reading->score_first;
    oct_view v;

    OCT_TRY(oct_decoding_whole(d, 0, &v));
    if (v.rank != 2 || v.dim[1] != 7) return oct_decoding_misfit(d, 0);
    for (int64_t i = 0; i < v.dim[0]; i++)
        if (v.x[i * 7 + 5] != floorf(v.x[i * 7 + 5])) class_first = false;
    for (int64_t i = 0; i < v.dim[0]; i++) {
        const float *x = v.x + i * 7;

        if (x[0] != (float)d->index) continue;
        push(d, x + 1, class_first ? x[6] : x[5], class_first ? x[5] : x[6], i);
    }
    return OCT_OK;
}

/* The picture's part of an output that has one for each picture, or the whole of one of no batch.
 */
static oct_status part_of(oct_decoding *d, int32_t i, int32_t rank, oct_view *v)
{
    OCT_TRY(oct_decoding_whole(d, i, v));
    if (v->rank != rank) return oct_decoding_view(d, i, rank, v);
    if (d->index > 0) v->dim[0] = 0;
    return OCT_OK;
}

static oct_status decode_split(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    oct_view boxes, scores, classes;
    float most = 0;

    OCT_TRY(part_of(d, r->boxes, 2, &boxes));
    OCT_TRY(part_of(d, r->scores, 1, &scores));
    OCT_TRY(part_of(d, r->extra[0], 1, &classes));
    if (boxes.dim[1] != 4 || scores.dim[0] != boxes.dim[0] || classes.dim[0] != boxes.dim[0])
        return oct_decoding_misfit(d, r->boxes);
    for (int64_t i = 0; i < boxes.dim[0] * 4; i++)
        most = fmaxf(most, boxes.x[i]);
    for (int64_t i = 0; i < boxes.dim[0]; i++) {
        float box[4];

        for (int k = 0; k < 4; k++) /* fractions of the picture, or pixels */
            box[k] = boxes.x[i * 4 + k] * (most <= 2 ? (float)(k % 2 ? r->height : r->width) : 1);
        push(d, box, scores.x[i], classes.x[i], i);
    }
    return OCT_OK;
}

static oct_status decode_dets(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    oct_view dets, classes;

    OCT_TRY(part_of(d, r->boxes, 2, &dets));
    OCT_TRY(part_of(d, r->extra[0], 1, &classes));
    if (dets.dim[1] != 5 || classes.dim[0] != dets.dim[0]) return oct_decoding_misfit(d, r->boxes);
    for (int64_t i = 0; i < dets.dim[0]; i++)
        push(d, dets.x + i * 5, dets.x[i * 5 + 4], classes.x[i], i);
    return OCT_OK;
}

static void corners_of(const oct_reading *r, const float *x, float box[4])
{
    memcpy(box, x, 4 * sizeof(*box));
    if (!r->boxes_centred) return;
    box[0] = x[0] - x[2] * 0.5f;
    box[1] = x[1] - x[3] * 0.5f;
    box[2] = x[0] + x[2] * 0.5f;
    box[3] = x[1] + x[3] * 0.5f;
}

static oct_status decode_indices(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    oct_view boxes, scores, chosen;
    int64_t classes, anchors;

    OCT_TRY(oct_decoding_view(d, r->boxes, 2, &boxes));
    OCT_TRY(oct_decoding_view(d, r->scores, 2, &scores));
    OCT_TRY(oct_decoding_whole(d, r->extra[0], &chosen));
    classes = scores.dim[r->scores_turned ? 1 : 0];
    anchors = scores.dim[r->scores_turned ? 0 : 1];
    if (boxes.dim[1] != 4 || anchors != boxes.dim[0] || chosen.rank != 2 || chosen.dim[1] != 3)
        return oct_decoding_misfit(d, r->extra[0]);
    for (int64_t i = 0; i < chosen.dim[0]; i++) {
        const float *x = chosen.x + i * 3;
        const int64_t class = (int64_t)x[1], anchor = (int64_t)x[2];
        float box[4];

        if (x[0] != (float)d->index) continue;
        if (!(x[1] >= 0 && x[1] < (float)classes && x[2] >= 0 && x[2] < (float)anchors))
            return oct_decoding_misfit(d, r->extra[0]);
        corners_of(r, boxes.x + anchor * 4, box);
        push(d, box,
             scores.x[r->scores_turned ? anchor * classes + class : class * anchors + anchor], x[1],
             i);
    }
    return OCT_OK;
}

/* A network that scales boxes itself knows nothing of borders. */
static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    if (r->is_stretched) p->fit = OCT_FIT_STRETCH;
}

static oct_status decode(oct_decoding *d)
{
    static oct_status (*const decoders[])(oct_decoding *) = {
        [COUNTED] = decode_counted, [ROWS6] = decode_rows6,     [ROWS7] = decode_rows7,
        [SPLIT] = decode_split,     [INDICES] = decode_indices, [DETS] = decode_dets,
    };

    return decoders[d->reading->form](d);
}

const oct_family oct_family_nms = {
    .name = "nms",
    .help = "finished detections: count, boxes, scores, classes (EfficientNMS_TRT); rows of 6 or "
            "7; boxes, scores, classes; corners with score [n, k, 5] and labels; or "
            "NonMaxSuppression's indices [k, 3] with boxes and scores",
    .is_suppressed = true,
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
};
