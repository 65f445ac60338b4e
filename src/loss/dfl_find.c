/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the class logits and the distributions over distances in a network. */
#include "loss/dfl_find.h"

#include <stdio.h>
#include <string.h>

#include "loss/dfl_head.h"
#include "loss/loss_op.h"
#include "loss/raw.h"
#include "op/op.h"

enum { MIN_BINS = 8, MAX_DEPTH = 64 };
enum { UNKNOWN, RAW, DECODED, VISITED }; /* what is known of a value */

/* Raw predictions: of all feature maps (one value), or of each, in the order of strides. */
typedef struct raw_list {
    oct_value *v[OCT_RAW_MAX_LEVELS];
    int64_t cells[OCT_RAW_MAX_LEVELS];
    int32_t n;
    bool too_many;
} raw_list;

typedef struct finder {
    oct_graph *g;
    int64_t height, width;
    uint8_t *state; /* by value id */
    raw_list cls, reg;
    int64_t n_classes, bins;
} finder;

/* Of [B, C, cells], [B, C, H, W] or [B, cells, C] with C channels: the cells; 0: not of this form.
 */
static int64_t cells_of(const oct_type *t, int64_t channels)
{
    if (t->rank == 4 && t->dim[1] == channels) return t->dim[2] * t->dim[3];
    if (t->rank != 3) return 0;
    return t->dim[1] == channels && t->dim[2] != channels ? t->dim[2]
           : t->dim[2] == channels                        ? t->dim[1]
                                                          : 0;
}

/* Feature maps in the order of their strides: the one with the most cells first. */
static void add_raw(raw_list *l, oct_value *v, int64_t cells)
{
    int32_t at = l->n;

    for (int32_t i = 0; i < l->n; i++)
        if (l->v[i] == v) return;
    if (l->n == OCT_RAW_MAX_LEVELS) {
        l->too_many = true;
        return;
    }
    for (; at > 0 && l->cells[at - 1] < cells; at--) {
        l->v[at] = l->v[at - 1];
        l->cells[at] = l->cells[at - 1];
    }
    l->v[at] = v;
    l->cells[at] = cells;
    l->n++;
}

static bool fits_levels(const finder *f, const raw_list *l)
{
    oct_raw_levels levels;
    int64_t cells = 0;

    for (int32_t i = 0; i < l->n; i++)
        cells += l->cells[i];
    return l->n && !l->too_many && oct_raw_levels_of(cells, f->height, f->width, &levels) &&
           (l->n == 1 || l->n == levels.n);
}

/* --- outputs that are raw already --- */

static bool may_be_distances(int64_t k)
{
    return k % 4 == 0 && k / 4 >= MIN_BINS && k / 4 <= OCT_DFL_MAX_BINS;
}

/* Only moves between the value and layers with weights: it was not decoded. Each value is looked at
 * once, whatever the number of ways to it. */
static bool is_raw(finder *f, const oct_value *v, int depth)
{
    const oct_node *n = v->producer;
    bool raw = n && n->op->flow == OCT_FLOW_SOURCE;

    if (!n || depth > MAX_DEPTH || raw || !oct_raw_is_move(n)) return raw;
    if (f->state[v->id] != UNKNOWN) return f->state[v->id] == RAW;
    raw = n->n_in > 0;
    for (int32_t i = 0; i < n->n_in && raw; i++)
        raw = !oct_raw_is_float(n->in[i]) || is_raw(f, n->in[i], depth + 1);
    f->state[v->id] = raw ? RAW : DECODED;
    return raw;
}

/* Two outputs [B, cells, *]: the class logits are the first that cannot be the distances. */
static void find_outputs(finder *f)
{
    oct_value *raw[2];
    int n = 0, reg;

    for (int32_t i = 0; i < f->g->n_outputs; i++) {
        oct_value *v = f->g->outputs[i];
        oct_raw_levels levels;

        if (v->type.rank != 3 || !oct_raw_is_float(v) || !is_raw(f, v, 0)) continue;
        if (!oct_raw_levels_of(v->type.dim[1], f->height, f->width, &levels)) continue;
        if (n == 2) return;
        raw[n++] = v;
    }
    if (n != 2 || raw[0]->type.dim[1] != raw[1]->type.dim[1]) return;
    reg = may_be_distances(raw[1]->type.dim[2]) ? 1 : 0;
    if (!may_be_distances(raw[reg]->type.dim[2])) return;
    f->n_classes = raw[!reg]->type.dim[2];
    f->bins = raw[reg]->type.dim[2] / 4;
    add_raw(&f->cls, raw[!reg], raw[!reg]->type.dim[1]);
    add_raw(&f->reg, raw[reg], raw[reg]->type.dim[1]);
}

/* --- upstream of decoding --- */

/*
 * Softmax over bins, upstream of it Reshape from 4 * bins channels to 4 x bins, and maybe a
 * Transpose between.
 */
static void find_distances(finder *f, const oct_node *softmax)
{
    const oct_value *x = softmax->in[0];
    const oct_node *n = x->producer;
    int32_t axis;

    if (x->type.rank < 3 ||
        oct_axis(softmax, oct_node_attr(softmax, "axis")->i, x->type.rank, &axis))
        return;
    const int64_t bins = x->type.dim[axis];
    if (n && oct_node_is(n, &oct_op_transpose)) n = n->in[0]->producer;
    if (!n || !oct_node_is(n, &oct_op_reshape) || !may_be_distances(4 * bins)) return;
    const oct_type *split = &n->out[0]->type;
    bool adjacent = false;
    for (int32_t d = 1; d + 1 < split->rank; d++)
        adjacent |= split->dim[d] == 4 && split->dim[d + 1] == bins;
    const int64_t cells = cells_of(&n->in[0]->type, 4 * bins);
    if (!adjacent || !cells || (f->bins && f->bins != bins)) return;
    f->bins = bins;
    add_raw(&f->reg, n->in[0], cells);
}

/* Sigmoids between v and the network's outputs, with nothing but moves after them. */
static void find_scores(finder *f, oct_value *v, int depth)
{
    oct_node *n = v->producer;

    if (!n || f->state[v->id] == VISITED || depth > MAX_DEPTH) return;
    f->state[v->id] = VISITED;
    if (oct_node_is(n, &oct_op_sigmoid)) {
        oct_value *x = n->in[0];
        const oct_type *t = &x->type;
        oct_raw_levels levels;
        int64_t channels = t->rank == 4 ? t->dim[1] : 0;

        /* [B, C, cells] or [B, cells, C]: the cells are those of the feature maps. */
        if (t->rank == 3)
            channels =
                oct_raw_levels_of(t->dim[2], f->height, f->width, &levels) ? t->dim[1] : t->dim[2];
        if (!channels || (f->n_classes && f->n_classes != channels)) return;
        f->n_classes = channels;
        add_raw(&f->cls, x, cells_of(t, channels));
        return;
    }
    if (!oct_raw_is_move(n)) return;
    for (int32_t i = 0; i < n->n_in; i++)
        if (oct_raw_is_float(n->in[i])) find_scores(f, n->in[i], depth + 1);
}

static void find_upstream(finder *f)
{
    f->cls = f->reg = (raw_list){0};
    f->n_classes = f->bins = 0;
    for (int32_t i = 0; i < f->g->n_outputs; i++)
        if (oct_raw_is_float(f->g->outputs[i])) find_scores(f, f->g->outputs[i], 0);
    for (const oct_node *n = f->g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_softmax)) find_distances(f, n);
}

/* --- into the operator's form --- */

static oct_value *rows_of(oct_builder *b, oct_value *v, int64_t cells, int64_t channels)
{
    if (b->status) return NULL;
    if (v->type.rank == 3 && v->type.dim[1] == cells && v->type.dim[2] == channels) return v;
    return oct_raw_rows(b, v);
}

static oct_value *join(oct_builder *b, const raw_list *l, int64_t channels)
{
    oct_value *v[OCT_RAW_MAX_LEVELS];

    for (int32_t i = 0; i < l->n; i++)
        v[i] = rows_of(b, l->v[i], l->cells[i], channels);
    return oct_raw_join(b, v, l->n, 1);
}

static oct_status fail(const finder *f)
{
    return oct_fail(f->g->ctx, OCT_ERR_UNSUPPORTED,
                    "the loss needs the network's raw predictions: outputs [pictures, cells, "
                    "classes] and [pictures, cells, 4 * bins] before any Sigmoid and Softmax, or "
                    "the Sigmoid of scores and the Softmax of distances (DFL) that decode them. "
                    "Found %d Sigmoids of scores and %d Softmaxes of distances, for pictures of "
                    "%lldx%lld",
                    (int)f->cls.n, (int)f->reg.n, (long long)f->width, (long long)f->height);
}

oct_status oct_dfl_attach(const oct_op *op, const oct_loss_setting *settings,
                          const oct_loss_job *job, oct_loss_found *out)
{
    oct_builder b = {.g = job->g, .prefix = "loss"};
    finder f = {.g = job->g};
    oct_raw_levels levels;
    oct_value *cls, *reg;
    oct_node *n;

    OCT_TRY(oct_raw_picture(job->g, job->labels, &f.height, &f.width));
    f.state = oct_arena_array(job->g->arena, (size_t)job->g->root->n_value_ids, sizeof(*f.state));
    if (!f.state) return OCT_ERR_MEMORY;
    find_outputs(&f);
    const bool are_outputs = fits_levels(&f, &f.cls) && fits_levels(&f, &f.reg);
    if (!are_outputs) find_upstream(&f);
    if (!fits_levels(&f, &f.cls) || !fits_levels(&f, &f.reg)) return fail(&f);
    (void)snprintf(out->why, sizeof(out->why),
                   "class logits '%.70s' and distances '%.70s' (%d bins), %s", f.cls.v[0]->name,
                   f.reg.v[0]->name, (int)f.bins,
                   are_outputs ? "outputs of the network" : "upstream of Sigmoid and Softmax");
    cls = join(&b, &f.cls, f.n_classes);
    reg = join(&b, &f.reg, 4 * f.bins);
    OCT_TRY(b.status);
    if (cls->type.dim[1] != reg->type.dim[1] ||
        !oct_raw_levels_of(cls->type.dim[1], f.height, f.width, &levels))
        return fail(&f);
    n = oct_loss_emit(&b, op, settings, job, (oct_value *[]){cls, reg, job->labels, job->epoch},
                      job->epoch ? 4 : 3, 2);
    oct_raw_emit_levels(&b, n, &levels);
    out->scores = cls;
    out->boxes = reg;
    return oct_loss_emitted(&b, n, out);
}
