/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-distillation: the network as it came is the teacher, and no labels are needed. Compared are
 * the raw predictions (what the last layers with weights give: inputs of the last Sigmoid and
 * Softmax, or outputs without them) and inner values that the user names. For each value the graph
 * gets an input "teacher/NAME".
 */
#include <stdio.h>
#include <string.h>

#include "loss/distill.h"
#include "loss/loss_op.h"
#include "loss/raw.h"
#include "op/op.h"

enum { KIND, TEMPERATURE, WEIGHT_OUTPUTS, WEIGHT_INNER, VALUES };
enum { MAX_PAIRS = 256, MOST_MOVES = 16 };

typedef struct distill_attach {
    const oct_loss_job *job;
    oct_builder b;
    oct_distilled found[MAX_PAIRS];
    int32_t n;
    oct_value **stack; /* values to look at; each comes at most once */
    bool *seen;        /* by value id */
    int32_t n_stack;
} distill_attach;

/* --- what to compare --- */

static oct_status add(distill_attach *d, oct_value *v, oct_distill_kind kind, int64_t axis,
                      bool is_inner)
{
    for (int32_t i = 0; i < d->n; i++)
        if (d->found[i].value == v) return OCT_OK;
    if (!oct_type_is_static(&v->type))
        return oct_fail(d->b.g->ctx, OCT_ERR_SHAPE, "the shape of '%s' is not known", v->name);
    if (d->n == MAX_PAIRS)
        return oct_fail(d->b.g->ctx, OCT_ERR_UNSUPPORTED,
                        "more than %d values to compare with the teacher", MAX_PAIRS);
    d->found[d->n++] = (oct_distilled){.value = v,
                                       .kind = kind,
                                       .axis = axis < 0 ? axis + v->type.rank : axis,
                                       .is_inner = is_inner};
    return OCT_OK;
}

/* The node that computes the first operand of n, with nothing but moves of data between; NULL. */
static const oct_node *computed_by(const oct_node *n)
{
    for (int i = 0; i < MOST_MOVES && n->n_in && n->in[0] && n->in[0]->producer; i++) {
        n = n->in[0]->producer;
        if (!oct_raw_is_move(n)) return n;
    }
    return NULL;
}

/* A layer with weights. A convolution after the Softmax of a distribution has the distances as
 * weights (DFL): part of decoding, no layer. */
static bool is_layer(const oct_node *n)
{
    return n && n->op->flow == OCT_FLOW_SOURCE && !oct_node_is(computed_by(n), &oct_op_softmax);
}

/* A layer gives scores and boxes together: they are compared in different ways. */
static bool is_part_of_layer(const oct_node *n)
{
    return (oct_node_is(n, &oct_op_split) || oct_node_is(n, &oct_op_slice)) &&
           is_layer(computed_by(n));
}

/* [pictures, classes, anchors] or [pictures, anchors, classes]: there are more anchors. */
static int64_t class_axis(const oct_type *t)
{
    return t->rank == 3 && t->dim[2] < t->dim[1] ? 2 : t->rank > 1;
}

/* Between v and the last layers with weights: its own prediction, or more values to look at. */
static oct_status look(distill_attach *d, oct_value *v)
{
    const oct_node *n = v->producer;
    const oct_attr *axis;

    if (!n) return OCT_OK;
    if (oct_node_is(n, &oct_op_sigmoid))
        return add(d, n->in[0], OCT_DISTILL_BCE, class_axis(&v->type), false);
    if (oct_node_is(n, &oct_op_softmax) || oct_node_is(n, &oct_op_log_softmax)) {
        axis = oct_node_attr(n, "axis");
        return add(d, n->in[0], OCT_DISTILL_KL, axis ? axis->i : -1, false);
    }
    if (is_layer(n) || is_part_of_layer(n)) {
        /* a classifier's logits: [pictures, classes], perhaps with dims of 1 after them */
        const bool is_logits = v->type.rank >= 2 && v->type.dim[1] > 1 &&
                               oct_type_span(&v->type, 2, v->type.rank) == 1;

        return add(d, v, is_logits ? OCT_DISTILL_KL : OCT_DISTILL_MSE, 1, false);
    }
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!oct_raw_is_float(n->in[i]) || d->seen[n->in[i]->id]) continue;
        d->seen[n->in[i]->id] = true;
        d->stack[d->n_stack++] = n->in[i];
    }
    return OCT_OK;
}

static oct_status find_outputs(distill_attach *d)
{
    oct_graph *g = d->b.g;
    const size_t n_ids = (size_t)g->root->n_value_ids + 1;

    d->stack = oct_arena_array(g->arena, n_ids, sizeof(oct_value *));
    d->seen = oct_arena_array(g->arena, n_ids, sizeof(bool));
    if (!d->stack || !d->seen) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (!oct_raw_is_float(g->outputs[i])) continue;
        d->stack[d->n_stack++] = g->outputs[i];
        while (d->n_stack)
            OCT_TRY(look(d, d->stack[--d->n_stack]));
    }
    for (int32_t i = 0; !d->n && i < g->n_outputs; i++)
        if (oct_raw_is_float(g->outputs[i]) && g->outputs[i]->producer)
            OCT_TRY(add(d, g->outputs[i], OCT_DISTILL_MSE, 1, false));
    if (!d->n)
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                        "distillation needs a network with float outputs; this one has none");
    return OCT_OK;
}

/* One entry of the list of inner values: NAME, or NAME:KIND. A node stands for its first result. */
static oct_status add_inner(distill_attach *d, const char *word, size_t n)
{
    oct_graph *g = d->b.g;
    oct_distill_kind kind = OCT_DISTILL_MSE;
    const char *name, *colon = NULL;
    oct_value *v;
    oct_node *node;

    for (size_t i = 0; i < n; i++)
        if (word[i] == ':') colon = word + i;
    if (colon && oct_distill_kind_of(colon + 1, (size_t)(word + n - colon - 1), &kind))
        n = (size_t)(colon - word);
    if (!(name = oct_arena_printf(g->arena, "%.*s", (int)n, word))) return OCT_ERR_MEMORY;
    v = oct_graph_find_value(g, name);
    if (!v && (node = oct_graph_find_node(g, name))) v = oct_node_out(node, 0);
    if (!v || !v->producer || v->graph != g || !oct_raw_is_float(v))
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "setting 'values' of the distillation: the network computes no float value "
                        "'%.200s' (octet inspect lists nodes and their results)",
                        name);
    if (kind != OCT_DISTILL_MSE && v->type.rank < 1)
        return oct_fail(g->ctx, OCT_ERR_SHAPE, "'%.200s' is one number: no distribution", name);
    return add(d, v, kind, v->type.rank > 1 ? 1 : 0, true);
}

static oct_status find_inner(distill_attach *d)
{
    const char *list = d->job->word[VALUES];

    while (list && *list) {
        const char *end = list + strcspn(list, ",");

        while (*list == ' ')
            list++;
        if (end > list) OCT_TRY(add_inner(d, list, (size_t)(end - list)));
        list = *end ? end + 1 : end;
    }
    return OCT_OK;
}

/* --- emitting --- */

/* The inputs that take the teacher's values. */
static oct_status add_teachers(distill_attach *d)
{
    oct_builder *b = &d->b;

    for (int32_t i = 0; i < d->n; i++) {
        oct_distilled *v = &d->found[i];
        const char *name = oct_arena_printf(b->g->arena, "teacher/%s", v->value->name);

        v->teacher = name ? oct_value_new(b->g, name, &v->value->type) : NULL;
        if (!v->teacher) return OCT_ERR_MEMORY;
        OCT_TRY(oct_graph_add_input(b->g, v->teacher));
    }
    return OCT_OK;
}

static oct_value *emit_one(distill_attach *d, const oct_distilled *v)
{
    oct_builder *b = &d->b;
    const double *number = d->job->number;
    oct_node *n =
        oct_emit_node(b, &oct_op_distill_loss, (oct_value *[]){v->value, v->teacher, v->weight},
                      v->weight ? 3 : 2, 3);

    oct_emit_str(b, n, "kind", oct_distill_kinds[v->kind]);
    oct_emit_f32(b, n, "temperature", (float)number[TEMPERATURE]);
    oct_emit_f32(b, n, "weight", (float)number[v->is_inner ? WEIGHT_INNER : WEIGHT_OUTPUTS]);
    oct_emit_int(b, n, "axis", v->axis);
    return oct_emitted(b, n);
}

/* The loss, and its parts as a vector. */
static oct_status emit_sums(distill_attach *d, oct_value *sum[2], oct_loss_found *out)
{
    oct_builder *b = &d->b;
    oct_value *part[2];
    const oct_dtype dtype = sum[0]->type.dtype;

    if (!sum[1]) sum[1] = oct_scalar_of(b, dtype, 0);
    for (int i = 0; i < 2; i++)
        part[i] = oct_emit(b, &oct_op_reshape, sum[i], oct_ints(b, (int64_t[]){1}, 1), NULL);
    out->loss = oct_emit(b, &oct_op_add, sum[0], sum[1], NULL);
    out->parts = oct_raw_join(b, part, 2, 0);
    return b->status;
}

static oct_status emit(distill_attach *d, oct_loss_found *out)
{
    oct_builder *b = &d->b;
    oct_loss_pair *pairs = oct_arena_array(b->g->arena, (size_t)d->n, sizeof(*pairs));
    oct_value *sum[2] = {0};
    int32_t n_inner = 0;

    if (!pairs) return OCT_ERR_MEMORY;
    OCT_TRY(add_teachers(d));
    oct_distill_weigh(b, d->found, d->n);
    for (int32_t i = 0; i < d->n; i++) {
        oct_value **s = &sum[d->found[i].is_inner], *loss = emit_one(d, &d->found[i]);

        if (!loss) return b->status;
        pairs[i] = (oct_loss_pair){d->found[i].value, d->found[i].teacher};
        *s = *s ? oct_emit(b, &oct_op_add, *s, loss, NULL) : loss;
        n_inner += d->found[i].is_inner;
    }
    OCT_TRY(b->status);
    OCT_TRY(emit_sums(d, sum, out));
    out->pairs = pairs;
    out->n_pairs = d->n;
    (void)snprintf(
        out->why, sizeof(out->why),
        "%d predictions and %d inner values are compared with those of the network as it "
        "came, the first is '%.80s' (%s)",
        (int)(d->n - n_inner), (int)n_inner, d->found[0].value->name,
        oct_distill_kinds[d->found[0].kind]);
    return OCT_OK;
}

static oct_status attach(const oct_loss_job *job, oct_loss_found *out)
{
    distill_attach *d = oct_arena_alloc(job->g->arena, sizeof(*d));
    const char *kind = job->word[KIND];
    oct_distill_kind all = OCT_DISTILL_AUTO;

    if (!d) return OCT_ERR_MEMORY;
    *d = (distill_attach){.job = job, .b = {.g = job->g, .prefix = "distill"}};
    OCT_TRY(find_outputs(d));
    if (kind) (void)oct_distill_kind_of(kind, strlen(kind), &all);
    for (int32_t i = 0; all != OCT_DISTILL_AUTO && i < d->n; i++)
        if (d->found[i].value->type.rank > 1 || all == OCT_DISTILL_MSE) d->found[i].kind = all;
    OCT_TRY(find_inner(d));
    return emit(d, out);
}

static const char *const kind_words[] = {"auto", "mse", "kl", "bce", NULL};

static const oct_loss_setting settings[] = {
    [KIND] = {.name = "kind",
              .help = "how predictions are compared: auto (kl before a Softmax and of logits of "
                      "classifiers, bce before a Sigmoid, else mse), mse, kl or bce",
              .words = kind_words,
              .word = "auto"},
    [TEMPERATURE] = {.name = "temperature",
                     .help = "divides logits in kl and bce: higher ones count small scores more",
                     .number = 1},
    [WEIGHT_OUTPUTS] = {.name = "weight_outputs", .help = "of the predictions", .number = 1},
    [WEIGHT_INNER] = {.name = "weight_inner", .help = "of inner values", .number = 1},
    [VALUES] = {.name = "values",
                .help = "inner values (or nodes) to compare as well, separated by commas; by mean "
                        "square, or as NAME:kl, NAME:bce says",
                .is_text = true},
    {0},
};

const oct_loss_row oct_loss_distill = {
    .name = "distill",
    .help = "self-distillation: stay near the network as it came, without labels",
    .parts = {"outputs", "inner"},
    .settings = settings,
    .has_no_labels = true,
    .attach = attach,
};
