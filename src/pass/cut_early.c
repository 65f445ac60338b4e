/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut-early: channels that are concatenated only to be split again are not concatenated.
 *
 * Detectors concatenate boxes and scores of each level, then the levels, and split the result into
 * boxes and scores. A Concat along another axis, or a Reshape that keeps the channels, is done for
 * each part separately.
 */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_DEPTH 8

/* Channels [begin, begin + n) of a value. */
typedef struct part {
    int64_t begin, n;
} part;

static bool joins_axis(const oct_node *n, int32_t *axis)
{
    const oct_attr *a = n->op == &oct_op_concat ? oct_node_attr(n, "axis") : NULL;

    if (!a) return false;
    *axis = (int32_t)(a->i < 0 ? a->i + n->out[0]->type.rank : a->i);
    return *axis >= 0 && *axis < n->out[0]->type.rank;
}

/* [N, C, ..] to [N, C, ..] */
static bool keeps_channels(const oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    return n->op == &oct_op_reshape && oct_type_is_static(x) && oct_type_is_static(y) &&
           x->rank >= 2 && y->rank >= 2 && x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1];
}

/* Operands [*first, *last] of a Concat along the channels that are exactly this slice. */
static bool find_operands(const oct_node *cat, part p, int32_t *first, int32_t *last)
{
    int64_t at = 0;

    *first = -1;
    for (int32_t i = 0; i < cat->n_in; i++) {
        if (at == p.begin && *first < 0 && cat->in[i]->type.dim[1] > 0) *first = i;
        at += cat->in[i]->type.dim[1];
        if (*first < 0 || at != p.begin + p.n) continue;
        *last = i;
        return true;
    }
    return false;
}

/* `reader` is the only consumer, and the slice exists before the Concat. */
static bool can_cut(const oct_value *v, const oct_node *reader, part p, int depth)
{
    const oct_node *n = v->producer;
    int32_t axis, first, last;

    if (!n || n->graph != v->graph || oct_sole_user(v) != reader || depth == MAX_DEPTH)
        return false;
    if (!oct_type_is_static(&v->type) || v->type.rank < 2) return false;
    if (keeps_channels(n)) return can_cut(n->in[0], n, p, depth + 1);
    if (!joins_axis(n, &axis)) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!oct_type_is_static(&n->in[i]->type)) return false;
        if (axis != 1 && !can_cut(n->in[i], n, p, depth + 1)) return false;
    }
    return axis != 1 || find_operands(n, p, &first, &last);
}

static oct_status join(oct_builder *b, oct_value *const *in, int32_t n, int32_t axis,
                       oct_value **out)
{
    oct_node *cat = oct_emit_node(b, &oct_op_concat, in, n, 1);

    if (!cat) return b->status;
    OCT_TRY(oct_node_set_int(cat, "axis", axis));
    OCT_TRY(oct_node_infer(cat));
    *out = cat->out[0];
    return OCT_OK;
}

static oct_status cut(oct_builder *b, const oct_value *v, part p, oct_value **out);

/* Concat along another axis: the same slice of every operand. */
static oct_status cut_all(oct_builder *b, const oct_node *n, part p, int32_t axis, oct_value **out)
{
    oct_value **in = oct_calloc(b->g->ctx, (size_t)n->n_in, sizeof(*in));
    oct_status st = in ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < n->n_in && !st; i++)
        st = cut(b, n->in[i], p, &in[i]);
    if (!st) st = join(b, in, n->n_in, axis, out);
    oct_free(b->g->ctx, in);
    return st;
}

/* Rebuilds the slice; can_cut() has said that it is possible. */
static oct_status cut(oct_builder *b, const oct_value *v, part p, oct_value **out)
{
    const oct_node *n = v->producer;
    int32_t axis = 0, first = 0, last = 0;

    if (keeps_channels(n)) {
        oct_type t = v->type;
        oct_value *x = NULL;

        OCT_TRY(cut(b, n->in[0], p, &x));
        t.dim[1] = p.n;
        *out = oct_emit(b, &oct_op_reshape, x, oct_ints(b, t.dim, t.rank), NULL);
        return b->status;
    }
    joins_axis(n, &axis);
    if (axis != 1) return cut_all(b, n, p, axis, out);
    find_operands(n, p, &first, &last);
    *out = n->in[first];
    return first == last ? OCT_OK : join(b, n->in + first, last - first + 1, 1, out);
}

static bool is_wanted(const oct_node *n)
{
    const oct_attr *a = oct_node_attr(n, "axis");
    part p = {0};

    if (!oct_node_is(n, &oct_op_split) || !a || !n->in[0] || n->in[0]->type.rank < 2) return false;
    if (a->i != 1 && a->i != 1 - n->in[0]->type.rank) return false;
    for (int32_t i = 0; i < n->n_out; i++, p.begin += p.n) {
        if (!n->out[i] || n->out[i]->is_output || !oct_type_is_static(&n->out[i]->type))
            return false;
        p.n = n->out[i]->type.dim[1];
        if (p.n < 1 || !can_cut(n->in[0], n, p, 0)) return false;
    }
    return true;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_builder b = {.g = g, .before = n, .prefix = n->name};
        part p = {0};
        oct_value *whole;

        next = n->next;
        if (!is_wanted(n)) continue;
        whole = n->in[0];
        for (int32_t i = 0; i < n->n_out; i++, p.begin += p.n) {
            oct_value *v = NULL;

            p.n = n->out[i]->type.dim[1];
            OCT_TRY(cut(&b, whole, p, &v));
            OCT_TRY(oct_value_replace_uses(n->out[i], v));
        }
        oct_node_remove(n);
        OCT_TRY(oct_prune(whole));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_cut_early = {
    .name = "cut-early",
    .help = "do not concatenate channels that are split again downstream",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_PLANS, /* a file should keep the tail people know */
};
