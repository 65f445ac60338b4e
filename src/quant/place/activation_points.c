/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of activations. A value is quantized where it is produced, once for all consumers. Nodes
 * that only move data pass codes on unchanged.
 */
#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/place/place_parts.h"

/* Before dense convolutions a channel's scale lies half-way between its own and one for all:
 * folding scales into the weights costs the weights what it gives the activations (docs/adr, ADR
 * 9). */
#define CHANNEL_SHARE 0.5f

/* --- sharing: values that must have one scale --- */

typedef struct sharing {
    int32_t *next;  /* by value id: union-find */
    int32_t *point; /* by value id: the point that decides, of a value that leads; -1 */
    int32_t *size;  /* by value id: how many sources share, of a value that leads */
} sharing;

static int32_t leader(sharing *s, int32_t v)
{
    while (s->next[v] != v)
        v = s->next[v] = s->next[s->next[v]];
    return v;
}

static void unite(sharing *s, int32_t a, int32_t b)
{
    a = leader(s, a);
    b = leader(s, b);
    if (a == b) return;
    s->next[OCT_MAX(a, b)] = OCT_MIN(a, b);
    s->size[OCT_MIN(a, b)] += s->size[OCT_MAX(a, b)];
}

static bool is_source(const oct_placer *p, const oct_value *v)
{
    return v && !v->data && v->graph == p->g && v->type.dtype == OCT_DTYPE_F32 &&
           !(v->producer && oct_placer_moves(p, v->producer));
}

/* What is moved, and so all operands of a Concat, shares. */
static oct_status find_sharing(const oct_placer *p, sharing *s)
{
    const int32_t n = p->g->root->n_value_ids;
    const bool shares = p->t->concat == OCT_CONCAT_SHARE;

    s->next = oct_arena_array(p->a, (size_t)n + 1, sizeof(*s->next));
    s->point = oct_arena_array(p->a, (size_t)n + 1, sizeof(*s->point));
    s->size = oct_arena_array(p->a, (size_t)n + 1, sizeof(*s->size));
    if (!s->next || !s->point || !s->size) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        s->next[i] = i;
        s->point[i] = -1;
        s->size[i] = is_source(p, p->g->root->values[i]);
    }
    for (const oct_node *m = p->g->first; m && shares; m = m->next) {
        if (!oct_placer_moves(p, m)) continue;
        for (int32_t k = 0; k < m->n_out; k++)
            for (int32_t i = 0; i < oct_node_n_data(m); i++)
                if (m->out[k] && p->is_wanted[m->out[k]->id]) unite(s, m->out[k]->id, m->in[i]->id);
    }
    return OCT_OK;
}

/* --- sources --- */

/* A point of v, or of v at one reader, in the class of `of`. */
static oct_status add_point(oct_placer *p, sharing *s, const oct_value *v, const oct_value *of,
                            const oct_node *reader, int32_t operand)
{
    int32_t *decides = &s->point[leader(s, of->id)];
    oct_qpoint q = {.value = v,
                    .node = reader,
                    .operand = operand,
                    .role = OCT_QROLE_ACT,
                    .spec = p->t->act,
                    .state = *decides >= 0 ? OCT_QSTATE_DOMINATED : OCT_QSTATE_ACTIVE,
                    .dominator = *decides};
    int32_t at;

    OCT_TRY(oct_qmap_add(p->m, &q, &at));
    if (*decides < 0) *decides = at;
    return OCT_OK;
}

/* Where only layers with weights read integers, other consumers go on reading floats. */
static bool is_per_reader(const oct_placer *p, sharing *s, const oct_value *v)
{
    return ((p->t->flags & OCT_TARGET_INPUTS_ONLY) || p->is_divisor[v->id]) &&
           p->is_read_float[v->id] && s->size[leader(s, v->id)] == 1;
}

static oct_status add_source(oct_placer *p, sharing *s, const oct_value *v)
{
    if (!is_source(p, v) || !p->is_wanted[v->id] || is_per_reader(p, s, v)) return OCT_OK;
    return add_point(p, s, v, v, NULL, 0);
}

static oct_status add_readers(oct_placer *p, sharing *s, const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v;

        if (!oct_placer_reads(p, n, i)) continue;
        v = oct_placer_origin(p, n->in[i]);
        if (is_source(p, v) && is_per_reader(p, s, v)) OCT_TRY(add_point(p, s, n->in[i], v, n, i));
    }
    return OCT_OK;
}

/* Some runtimes compute a convolution in integers only if a QuantizeLinear follows it directly. */
static oct_status add_after_conv(oct_placer *p, sharing *s, const oct_node *n)
{
    const oct_fusion_group *g = &p->groups.item[p->groups.of_node[n->id]];
    const oct_value *y = oct_node_out(n, 0);

    if (!(p->t->flags & OCT_TARGET_MAY_PREACT) || n != g->last) return OCT_OK;
    if (!oct_node_is(g->anchor, &oct_op_conv) || !p->is_integer[p->groups.of_node[n->id]])
        return OCT_OK;
    return p->m->of_value[y->id] < 0 ? add_point(p, s, y, y, NULL, 0) : OCT_OK;
}

static oct_status add_sources(oct_placer *p, sharing *s)
{
    for (int32_t i = 0; i < p->g->n_inputs; i++)
        OCT_TRY(add_source(p, s, p->g->inputs[i]));
    for (const oct_node *n = p->g->first; n; n = n->next) {
        OCT_TRY(add_readers(p, s, n));
        for (int32_t k = 0; k < n->n_out; k++)
            OCT_TRY(add_source(p, s, n->out[k]));
        OCT_TRY(add_after_conv(p, s, n));
    }
    for (int32_t i = 0; i < p->g->n_outputs && p->gives_codes; i++) {
        const oct_value *y = p->g->outputs[i];

        if (y->type.dtype != OCT_DTYPE_F32 || !y->producer || p->m->of_value[y->id] >= 0) continue;
        OCT_TRY(add_point(p, s, y, y, NULL, 0));
        if (p->m->of_value[y->id] >= 0) p->m->points[p->m->of_value[y->id]].only_given = true;
    }
    return OCT_OK;
}

/* --- scales for each channel --- */

bool oct_node_is_depthwise(const oct_node *n)
{
    const oct_type *x, *w;

    if (!oct_node_is(n, &oct_op_conv) || !oct_node_in(n, 0) || !oct_node_in(n, 1)) return false;
    x = &n->in[0]->type;
    w = &n->in[1]->type;
    return x->rank >= 3 && w->rank == x->rank && w->dim[1] == 1 && x->dim[1] > 1 &&
           oct_node_attr(n, "group")->i == x->dim[1];
}

/* Marks all values that v is moved from. */
static void mark_sources(const oct_placer *p, const oct_value *v)
{
    const oct_value **todo = p->todo;
    uint8_t *mark = p->mark;
    int32_t n = 0;

    if (mark[v->id]) return;
    mark[v->id] = 1;
    todo[n++] = v;
    while (n > 0) {
        v = todo[--n];
        if (!v->producer || !oct_placer_moves(p, v->producer)) continue;
        for (int32_t i = 0; i < oct_node_n_data(v->producer); i++) {
            const oct_value *x = v->producer->in[i];

            if (mark[x->id]) continue;
            mark[x->id] = 1;
            todo[n++] = x;
        }
    }
}

/* Some runtimes take a scale for each channel only if no consumer sums over channels. */
static void except_dense(oct_placer *p, uint8_t *dense)
{
    for (const oct_node *n = p->g->first; n; n = n->next)
        if (n->op->flow == OCT_FLOW_SOURCE && !oct_node_is_depthwise(n) &&
            oct_placer_reads(p, n, 0))
            mark_sources(p, n->in[0]);
    memcpy(dense, p->mark, (size_t)p->g->root->n_value_ids);
    memset(p->mark, 0, (size_t)p->g->root->n_value_ids);
}

/* Gives the marked points an axis. Values that share a scale with others keep one for all. */
static void split_marked(oct_placer *p, sharing *s, const uint8_t *except, float share)
{
    for (int32_t i = 0; i < p->m->n_points; i++) {
        oct_qpoint *q = &p->m->points[i];
        const oct_type *t = &q->value->type;

        if (!p->mark[q->value->id] || except[q->value->id] || q->node) continue;
        if (q->state != OCT_QSTATE_ACTIVE || q->spec.axis != OCT_QSPEC_PER_TENSOR) continue;
        if (t->rank < 2 || t->dim[1] <= 1 || s->size[leader(s, q->value->id)] != 1) continue;
        q->spec.axis = 1;
        q->channel_share = share;
    }
}

/* Add and pools of some hardware, and of ONNX Runtime, take one scale for each operand. */
static void except_others(oct_placer *p, uint8_t *except)
{
    const size_t n_ids = (size_t)p->g->root->n_value_ids;

    memset(p->mark, 0, n_ids);
    for (const oct_node *n = p->g->first; n; n = n->next) {
        const oct_node *anchor = p->groups.item[p->groups.of_node[n->id]].anchor;

        for (int32_t i = 0; i < n->n_in && !oct_node_is(n, &oct_op_conv); i++)
            if (oct_placer_reads(p, n, i)) mark_sources(p, n->in[i]);
        for (int32_t k = 0; k < n->n_out && !oct_node_is(anchor, &oct_op_conv); k++)
            if (n->out[k]) except[n->out[k]->id] = 1;
    }
    for (size_t i = 0; i < n_ids; i++)
        except[i] |= p->mark[i];
}

/* Does it compute each channel by itself? Then a scale for each of them costs nothing. */
static bool is_channelwise(const oct_node *n)
{
    return oct_node_is(n, &oct_op_add) || oct_node_is(n, &oct_op_mul) ||
           oct_node_is(n, &oct_op_global_average_pool);
}

/*
 * Inputs of depthwise convolutions have a scale for each channel. Inputs of dense ones have scales
 * between that and one for all (CHANNEL_SHARE), which are folded into the weights. Values that only
 * Add, Mul (squeeze and excitation) and global pools read have a scale for each channel again.
 * Inputs of the network keep one scale, and so do values of one pixel, where nothing is gained.
 */
static oct_status split_channels(oct_placer *p, sharing *s)
{
    const size_t n_ids = (size_t)p->g->root->n_value_ids;
    uint8_t *except = oct_arena_alloc(p->a, n_ids + 1);

    if (!except) return OCT_ERR_MEMORY;
    if (p->t->flags & OCT_TARGET_DEPTHWISE_ALONE) except_dense(p, except);
    for (const oct_node *n = p->g->first; n; n = n->next)
        if (oct_node_is_depthwise(n) && oct_placer_reads(p, n, 0)) mark_sources(p, n->in[0]);
    split_marked(p, s, except, 1.0f);
    if (!(p->t->flags & OCT_TARGET_CHANNELS_AT_DENSE)) return OCT_OK;
    memset(except, 0, n_ids);
    if (p->t->flags & OCT_TARGET_ONLY_CONV_CHANNELS) except_others(p, except);
    memset(p->mark, 0, n_ids);
    for (const oct_node *n = p->g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_conv) && oct_placer_reads(p, n, 0)) mark_sources(p, n->in[0]);
    for (size_t i = 0; i < n_ids; i++) {
        const oct_value *v = p->g->root->values[i];

        except[i] |= v && (!v->producer || v->type.rank < 3 ||
                           oct_type_span(&v->type, 2, v->type.rank) <= 1);
    }
    split_marked(p, s, except, CHANNEL_SHARE);
    memset(p->mark, 0, n_ids);
    for (const oct_node *n = p->g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_in && is_channelwise(n); i++)
            if (oct_placer_reads(p, n, i)) mark_sources(p, n->in[i]);
    split_marked(p, s, except, 1.0f);
    return OCT_OK;
}

/* --- what a consumer cannot take --- */

/* Must all of the operand have one scale? Sums along another axis than 1 cannot be folded. */
static bool needs_one_scale(const oct_node *n, int32_t i)
{
    if (oct_node_is(n, &oct_op_mat_mul)) return i == 1 || n->in[i]->type.rank != 2;
    return oct_node_is(n, &oct_op_gemm) && oct_node_attr(n, "transA")->i != 0;
}

static oct_status fits(const oct_placer *p, const oct_node *n, int32_t i, bool *out)
{
    oct_channel_source *origins;
    int64_t count;

    OCT_TRY(oct_place_origins(p->m, n, i, p->a, &count, &origins));
    *out = count >= 0 && !(count > 1 && needs_one_scale(n, i));
    return OCT_OK;
}

/* Scales for each tensor instead of each channel; if that is so already, one scale for all. */
static void simplify(oct_placer *p, const oct_node *n, int32_t i)
{
    const uint8_t *mark = p->mark;
    bool had_channels = false;
    int32_t first = -1;

    memset(p->mark, 0, (size_t)p->g->root->n_value_ids);
    mark_sources(p, n->in[i]);
    for (int32_t k = 0; k < p->m->n_points; k++) {
        oct_qpoint *q = &p->m->points[oct_qmap_root_index(p->m, k)];

        if (!mark[p->m->points[k].value->id] || p->m->points[k].node) continue;
        had_channels |= q->spec.axis != OCT_QSPEC_PER_TENSOR;
        q->spec.axis = OCT_QSPEC_PER_TENSOR;
    }
    for (int32_t k = 0; k < p->m->n_points && !had_channels; k++) {
        const int32_t root = oct_qmap_root_index(p->m, k);

        if (!mark[p->m->points[k].value->id] || p->m->points[k].node) continue;
        if (first < 0) first = root;
        if (root == first) continue;
        p->m->points[root].state = OCT_QSTATE_DOMINATED;
        p->m->points[root].dominator = first;
    }
}

static oct_status make_readable(oct_placer *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_in; i++)
            for (int round = 0; round < 2; round++) {
                bool does_fit = true;

                if (oct_placer_reads(p, n, i)) OCT_TRY(fits(p, n, i, &does_fit));
                if (does_fit) break;
                simplify(p, n, i);
            }
    return OCT_OK;
}

/* --- moved values --- */

/* The point that decides for all data operands of a node, or -1. */
static int32_t common_root(const oct_placer *p, const oct_node *n)
{
    int32_t root = -1;

    for (int32_t i = 0; i < oct_node_n_data(n); i++) {
        const int32_t k = p->m->of_value[n->in[i]->id];
        const int32_t r = k < 0 ? -1 : oct_qmap_root_index(p->m, k);

        if (r < 0 || (i > 0 && r != root)) return -1;
        root = r;
    }
    return root;
}

static oct_status add_moved(oct_placer *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next) {
        const int32_t root = oct_placer_moves(p, n) ? common_root(p, n) : -1;

        for (int32_t k = 0; k < n->n_out && root >= 0; k++) {
            oct_qpoint q = {.value = n->out[k],
                            .role = OCT_QROLE_ACT,
                            .state = OCT_QSTATE_DOMINATED,
                            .dominator = root};

            if (!q.value || !p->is_wanted[q.value->id]) continue;
            if (p->m->of_value[q.value->id] >= 0) continue; /* an output has its own */
            q.spec = p->m->points[root].spec;
            OCT_TRY(oct_qmap_add(p->m, &q, NULL));
        }
    }
    return OCT_OK;
}

oct_status oct_placer_activations(oct_placer *p)
{
    sharing s = {.next = NULL};

    p->mark = oct_arena_alloc(p->a, (size_t)p->g->root->n_value_ids + 1);
    p->todo = oct_arena_array(p->a, (size_t)p->g->root->n_value_ids + 1, sizeof(*p->todo));
    if (!p->mark || !p->todo) return OCT_ERR_MEMORY;
    OCT_TRY(find_sharing(p, &s));
    OCT_TRY(add_sources(p, &s));
    if (p->t->flags & OCT_TARGET_CHANNELS_AT_DEPTHWISE) OCT_TRY(split_channels(p, &s));
    OCT_TRY(make_readable(p));
    return add_moved(p);
}
