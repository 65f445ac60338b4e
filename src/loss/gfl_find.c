/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the predictions of NanoDet and PicoDet: for each feature map scores and distributions
 * over distances, as two outputs or one; or one output for all of them.
 */
#include <stdio.h>
#include <string.h>

#include "loss/gfl.h"
#include "op/op.h"

typedef struct gfl_search {
    oct_builder b;
    const oct_gfl_form *form;
    int64_t height, width;
    oct_raw_levels levels;
    oct_value *scores, *distances; /* [pictures, anchors, *] of all levels; NULL: not found */
    const char *first_scores;      /* names, to tell the user */
    const char *blocked; /* an output of scores whose logits cannot be found; NULL: none */
} gfl_search;

/*
 * The feature map that an output shows in another form, or the output itself. Some files have the
 * Reshape between them written down for one picture.
 */
static oct_value *map_of(oct_value *output)
{
    enum { MOST_MOVES = 8 };
    oct_value *v = output;

    for (int i = 0; i < MOST_MOVES; i++) {
        const oct_node *n = v->producer;

        if (v->type.rank == 4) return v;
        if (!n || !oct_raw_is_move(n) || !n->n_in || (n->n_in > 1 && oct_raw_is_float(n->in[1])))
            break;
        v = n->in[0];
    }
    return output;
}

/* v as [pictures, cells, channels]; NULL: it has no such form. */
static oct_value *as_rows(gfl_search *s, oct_value *v, int64_t cells)
{
    const oct_type *t = &v->type;

    if (!oct_raw_is_float(v) || !oct_type_is_static(t)) return NULL;
    if (t->rank == 3 && t->dim[1] == cells) return v;
    if ((t->rank == 3 && t->dim[2] == cells) || (t->rank == 4 && t->dim[2] * t->dim[3] == cells))
        return oct_raw_rows(&s->b, v);
    return NULL;
}

static bool has_cells(const oct_value *v, int64_t cells)
{
    const oct_type *t = &v->type;

    if (!oct_raw_is_float(v) || !oct_type_is_static(t)) return false;
    return (t->rank == 3 && (t->dim[1] == cells || t->dim[2] == cells)) ||
           (t->rank == 4 && t->dim[2] * t->dim[3] == cells);
}

/* The outputs of one feature map: up to 2; their number. */
static int find_outputs(const oct_graph *g, int64_t cells, oct_value *out[2])
{
    int n = 0;

    for (int32_t i = 0; i < g->n_outputs; i++) {
        oct_value *v = map_of(g->outputs[i]);

        if (!has_cells(v, cells)) v = g->outputs[i];
        if (!has_cells(v, cells)) continue;
        if (n < 2) out[n] = v;
        n++;
    }
    return n;
}

static bool may_be_distances(const oct_value *rows)
{
    const int64_t k = rows->type.dim[2];

    return k % 4 == 0 && k >= 4 * OCT_GFL_USUAL_BINS && k <= 4 * OCT_GFL_MAX_BINS;
}

/* Scores and distances of one output that has both: channels of classes come first. */
static bool cut(gfl_search *s, oct_value *rows, oct_value *out[2])
{
    const int64_t n = rows->type.dim[2], n_classes = n - 4 * OCT_GFL_USUAL_BINS;

    if (n_classes < 1) return false;
    out[0] = oct_raw_channels(&s->b, rows, 0, n_classes);
    out[1] = oct_raw_channels(&s->b, rows, n_classes, n);
    return !s->b.status;
}

/*
 * Of two outputs the scores are the one with a Sigmoid (or other arithmetic); if that is not
 * decisive, the one that cannot be distances; else the first.
 */
static oct_status take_pair(gfl_search *s, oct_value *v[2], int64_t cells, oct_value *out[2])
{
    oct_value *raw[2], *rows[2];
    bool computes[2], swap;

    for (int i = 0; i < 2; i++) {
        OCT_TRY(oct_raw_logits(&s->b, v[i], &raw[i]));
        computes[i] = raw[i] != v[i];
        if (!raw[i] || s->form->is_probability) rows[i] = as_rows(s, v[i], cells);
        if (raw[i] && !s->form->is_probability) rows[i] = as_rows(s, raw[i], cells);
        if (!rows[i]) return s->b.status;
    }
    swap = computes[0] != computes[1] ? computes[1]
                                      : may_be_distances(rows[0]) && !may_be_distances(rows[1]);
    if (!raw[swap] && !s->form->is_probability) {
        s->blocked = v[swap]->name;
        return OCT_OK;
    }
    if (!raw[!swap] || !may_be_distances(rows[!swap])) return OCT_OK;
    out[0] = rows[swap];
    out[1] = rows[!swap];
    if (!s->first_scores) s->first_scores = v[swap]->name;
    return OCT_OK;
}

/* One output with both. Probabilities are not mixed with distributions. */
static oct_status take_one(gfl_search *s, oct_value *v, int64_t cells, oct_value *out[2])
{
    oct_value *raw, *rows;

    if (s->form->is_probability) return OCT_OK;
    OCT_TRY(oct_raw_logits(&s->b, v, &raw));
    if (!raw || !(rows = as_rows(s, raw, cells)) || !cut(s, rows, out)) return s->b.status;
    if (!s->first_scores) s->first_scores = v->name;
    return OCT_OK;
}

static oct_status find_levels(gfl_search *s)
{
    const oct_graph *g = s->b.g;
    oct_value *part[2][OCT_RAW_MAX_LEVELS];
    int32_t used = 0;

    for (int32_t l = 0; l < OCT_RAW_MAX_LEVELS && used < g->n_outputs; l++) {
        const int64_t cells = oct_raw_levels_add(&s->levels, 8 << l, s->height, s->width);
        oct_value *v[2], *out[2] = {0};
        const int n = find_outputs(g, cells, v);

        if (n == 2) OCT_TRY(take_pair(s, v, cells, out));
        if (n == 1) OCT_TRY(take_one(s, v[0], cells, out));
        if (!out[0]) return OCT_OK;
        for (int k = 0; k < 2; k++) {
            part[k][l] = out[k];
            if (out[k]->type.dim[2] != part[k][0]->type.dim[2]) return OCT_OK;
        }
        used += n;
    }
    if (used != g->n_outputs || s->levels.n < 2) return OCT_OK;
    s->scores = oct_raw_join(&s->b, part[0], s->levels.n, 1);
    s->distances = oct_raw_join(&s->b, part[1], s->levels.n, 1);
    return s->b.status;
}

/* One or two outputs for all feature maps together. */
static oct_status find_joint(gfl_search *s)
{
    const oct_graph *g = s->b.g;

    for (int32_t i = 0; i < g->n_outputs && !s->scores; i++) {
        const oct_type *t = &g->outputs[i]->type;

        for (int axis = 1; axis < 3 && t->rank == 3 && !s->scores; axis++) {
            oct_value *v[2], *out[2] = {0};
            int n;

            if (!oct_raw_levels_of(t->dim[axis], s->height, s->width, &s->levels)) continue;
            n = find_outputs(g, t->dim[axis], v);
            if (n == 2) OCT_TRY(take_pair(s, v, t->dim[axis], out));
            if (n == 1) OCT_TRY(take_one(s, v[0], t->dim[axis], out));
            s->scores = out[0];
            s->distances = out[1];
        }
    }
    return s->b.status;
}

static oct_status not_found(const gfl_search *s)
{
    if (s->blocked)
        return oct_fail(
            s->b.g->ctx, OCT_ERR_UNSUPPORTED,
            "the loss %s needs logits of scores, but '%.100s' is not a plain Sigmoid of "
            "what a layer gives; if the network is a PicoDet with aligned scores, its "
            "loss is picodet_v2",
            s->form->name, s->blocked);
    return oct_fail(s->b.g->ctx, OCT_ERR_UNSUPPORTED,
                    "the loss %s needs outputs with scores [pictures, cells, classes] and "
                    "distances [pictures, cells, 4 * bins] of feature maps with strides 8, 16, "
                    "32, ..; this network (pictures of %lldx%lld) does not have them",
                    s->form->name, (long long)s->width, (long long)s->height);
}

oct_status oct_gfl_attach(const oct_gfl_form *form, const oct_loss_setting *settings,
                          const oct_loss_job *job, oct_loss_found *out)
{
    gfl_search s = {.b = {.g = job->g, .prefix = "loss"}, .form = form};
    oct_node *n;

    OCT_TRY(oct_raw_picture(job->g, job->labels, &s.height, &s.width));
    OCT_TRY(find_levels(&s));
    if (!s.scores) OCT_TRY(find_joint(&s));
    if (!s.scores || !s.distances) return not_found(&s);
    (void)snprintf(out->why, sizeof(out->why),
                   "scores '%.80s'%s: %lld classes, %lld bins, %lld cells of strides 8 to %lld",
                   s.first_scores, form->is_probability ? "" : " without Sigmoid",
                   (long long)s.scores->type.dim[2], (long long)s.distances->type.dim[2] / 4,
                   (long long)s.scores->type.dim[1], (long long)s.levels.stride[s.levels.n - 1]);
    n = oct_loss_emit(&s.b, &oct_op_gfl_loss, settings, job,
                      (oct_value *[]){s.scores, s.distances, job->labels}, 3, 2);
    oct_emit_str(&s.b, n, "form", form->name);
    oct_raw_emit_levels(&s.b, n, &s.levels);
    return oct_loss_emitted(&s.b, n, out);
}
