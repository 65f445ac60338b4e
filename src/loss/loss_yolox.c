/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOX: finding its raw predictions. */
#include <stdio.h>

#include "loss/loss_op.h"
#include "loss/raw.h"
#include "loss/yolox.h"
#include "op/op.h"

/* [pictures, anchors, 5 + classes] or [pictures, 5 + classes, anchors] upstream of an output. */
typedef struct joint_search {
    oct_builder *b;
    int64_t height, width;
    oct_raw_levels levels;
    const oct_value *found; /* NULL: none */
    oct_value *logits;      /* of it */
    int64_t n_channels;
    bool turned;
} joint_search;

/* Box arithmetic reads parts of the predictions, so the value with the most channels is taken. */
static bool look(void *arg, oct_value *v)
{
    joint_search *s = arg;
    const oct_type *t = &v->type;

    if (s->b->status || t->rank != OCT_PRED_RANK || !oct_type_is_static(t)) return false;
    for (int turned = 0; turned < 2; turned++) {
        const int64_t n = t->dim[turned ? 1 : 2];
        oct_raw_levels levels;
        oct_value *logits;

        if (n <= OCT_YOLOX_AT_CLASSES || n <= s->n_channels ||
            !oct_raw_levels_of(t->dim[turned ? 2 : 1], s->height, s->width, &levels))
            continue;
        if (oct_raw_logits(s->b, v, &logits) || !logits) return false;
        s->levels = levels;
        s->found = v;
        s->logits = logits;
        s->n_channels = n;
        s->turned = turned;
        return false;
    }
    return false;
}

/* Boxes as an output of their own: the other one has scores only. */
static bool has_boxes_apart(const oct_graph *g)
{
    bool found = false;

    for (int32_t i = 0; i < g->n_outputs; i++) {
        const oct_type *t = &g->outputs[i]->type;

        found |= g->n_outputs > 1 && t->rank == OCT_PRED_RANK && (t->dim[1] == 4 || t->dim[2] == 4);
    }
    return found;
}

static oct_status find_joint(joint_search *s, oct_value **pred, const char **where)
{
    oct_graph *g = s->b->g;

    for (int32_t i = 0; i < g->n_outputs && !has_boxes_apart(g); i++) {
        oct_value *end;

        if (!oct_raw_is_float(g->outputs[i])) continue;
        OCT_TRY(oct_raw_search(g->outputs[i], look, s, &end));
        OCT_TRY(s->b->status);
        if (!s->found) continue;
        *pred = s->turned ? oct_raw_rows(s->b, s->logits) : s->logits;
        *where = s->found->name;
        return s->b->status;
    }
    return OCT_OK;
}

/*
 * Feature maps [pictures, 5 + classes, height, width] upstream of the outputs, or outputs. Also of
 * files whose Reshape before the joint predictions was written down for one picture.
 */
typedef struct map_search {
    joint_search *s;
    int64_t height, width; /* of the level, in cells */
    oct_value *logits;     /* of the one with the most channels */
    const oct_value *found;
    int64_t n_channels;
} map_search;

static bool look_for_map(void *arg, oct_value *v)
{
    map_search *m = arg;
    const oct_type *t = &v->type;
    oct_value *logits;

    if (m->s->b->status || t->rank != 4 || !oct_type_is_static(t) || t->dim[2] != m->height ||
        t->dim[3] != m->width || t->dim[1] <= OCT_YOLOX_AT_CLASSES || t->dim[1] <= m->n_channels)
        return false;
    if (oct_raw_logits(m->s->b, v, &logits) || !logits) return false;
    m->found = v;
    m->logits = logits;
    m->n_channels = t->dim[1];
    return false;
}

static oct_status find_maps(joint_search *s, oct_value **pred, const char **where)
{
    oct_graph *g = s->b->g;
    oct_value *rows[OCT_RAW_MAX_LEVELS], *end;
    int32_t n = 0;

    s->levels.n = 0;
    for (int32_t l = 0; l < OCT_RAW_MAX_LEVELS; l++) {
        oct_raw_levels level = {0};
        map_search m = {.s = s};

        (void)oct_raw_levels_add(&level, 8 << l, s->height, s->width);
        m.height = level.size[0];
        m.width = level.size[1];
        for (int32_t i = 0; i < g->n_outputs; i++)
            if (oct_raw_is_float(g->outputs[i]))
                OCT_TRY(oct_raw_search(g->outputs[i], look_for_map, &m, &end));
        OCT_TRY(s->b->status);
        if (!m.found || (l && m.n_channels != rows[0]->type.dim[2])) break;
        rows[n++] = oct_raw_rows(s->b, m.logits);
        OCT_TRY(s->b->status);
        (void)oct_raw_levels_add(&s->levels, 8 << l, s->height, s->width);
        if (!l) *where = m.found->name;
    }
    if (n > 1) *pred = oct_raw_join(s->b, rows, n, 1);
    return s->b->status;
}

static const char *const candidate_words[] = {"centre", "box_or_centre", NULL};
static const char *const overlap_words[] = {"iou", "giou", NULL};

static const oct_loss_setting settings[] = {
    {.name = "weight_iou", .help = "of the overlap of boxes", .number = 5},
    {.name = "weight_obj", .help = "of objectness", .number = 1},
    {.name = "weight_cls", .help = "of classes", .number = 1},
    {.name = "weight_l1",
     .help = "of the distance of raw box numbers; 0: without. YOLOX has 1 in the last 15 epochs, "
             "when mosaic and mixup are off"},
    {.name = "radius",
     .help = "in strides: how far from a box's centre anchors may be",
     .number = 1.5},
    {.name = "topk", .help = "overlaps that decide how many anchors a box gets", .number = 10},
    {.name = "candidates",
     .help =
         "anchors that a box may get: near its centre, or also inside it, as older releases and "
         "SuperGradients have it (with radius 2.5)",
     .words = candidate_words,
     .word = "centre"},
    {.name = "overlap", .help = "1 - IoU^2 or 1 - GIoU", .words = overlap_words, .word = "iou"},
    {0},
};

static oct_status attach(const oct_loss_job *job, oct_loss_found *out)
{
    oct_builder b = {.g = job->g, .prefix = "loss"};
    joint_search s = {.b = &b};
    oct_value *pred = NULL;
    const char *where = "";
    oct_node *n;

    OCT_TRY(oct_raw_picture(job->g, job->labels, &s.height, &s.width));
    OCT_TRY(find_joint(&s, &pred, &where));
    if (!pred && !has_boxes_apart(job->g)) OCT_TRY(find_maps(&s, &pred, &where));
    if (!pred)
        return oct_fail(
            job->g->ctx, OCT_ERR_UNSUPPORTED,
            "the loss of YOLOX needs raw predictions [pictures, cells, 5 + classes] of "
            "feature maps with strides 8, 16, 32, .., as outputs or upstream of Sigmoid "
            "and box arithmetic; this network (pictures of %lldx%lld) has none",
            (long long)s.width, (long long)s.height);
    (void)snprintf(out->why, sizeof(out->why),
                   "'%.80s' without Sigmoid and box arithmetic: %lld cells of strides 8 to %lld, "
                   "%lld classes",
                   where, (long long)pred->type.dim[1], (long long)s.levels.stride[s.levels.n - 1],
                   (long long)pred->type.dim[2] - OCT_YOLOX_AT_CLASSES);
    n = oct_loss_emit(&b, &oct_op_yolox_loss, settings, job, (oct_value *[]){pred, job->labels}, 2,
                      1);
    oct_raw_emit_levels(&b, n, &s.levels);
    return oct_loss_emitted(&b, n, out);
}

const oct_loss_row oct_loss_yolox = {
    .name = "yolox",
    .help = "YOLOX: SimOTA, IoU, objectness, classes, L1",
    .family = "yolox",
    .parts = {"iou", "obj", "cls", "l1"},
    .settings = settings,
    .has_boxes = true,
    .attach = attach,
};
