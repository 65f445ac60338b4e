/* SPDX-License-Identifier: Apache-2.0 */
/* Which scales an operand has, channel by channel, traced through data-moving nodes upstream. */
#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/place/place.h"

enum { MAX_VALUES = 1 << 16, MAX_TRACED = 1 << 10 };

/* A value on the way, and the labels of its channels once they are known. */
typedef struct step {
    const oct_value *v;
    int32_t point;      /* a source: the point that decides; else -1 */
    int32_t first;      /* a source: its first label */
    int32_t next;       /* while searching: the next operand to visit */
    oct_tensor *labels; /* NULL: cannot be told */
} step;

typedef struct trace {
    const oct_qmap *m;
    oct_ctx *ctx;
    step *steps;
    size_t n, cap;
    int32_t *stack; /* indices of steps being visited */
    size_t n_stack, cap_stack;
    int32_t *order; /* operands before what is made of them */
    size_t n_order, cap_order;
    int32_t *slot; /* hash of value ids to steps */
    size_t n_slots;
    bool is_float;
} trace;

/* --- the hash --- */

static size_t slot_of(const trace *t, const oct_value *v)
{
    size_t at = ((uint32_t)v->id * 2654435761u) & (t->n_slots - 1);

    while (t->slot[at] >= 0 && t->steps[t->slot[at]].v != v)
        at = (at + 1) & (t->n_slots - 1);
    return at;
}

static oct_status rehash(trace *t)
{
    const size_t n = t->n_slots ? 2 * t->n_slots : 16;

    oct_free(t->ctx, t->slot);
    t->n_slots = n;
    if (!(t->slot = oct_alloc(t->ctx, n * sizeof(*t->slot)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        t->slot[i] = -1;
    for (size_t i = 0; i < t->n; i++)
        t->slot[slot_of(t, t->steps[i].v)] = (int32_t)i;
    return OCT_OK;
}

/* --- searching --- */

static bool is_moved(const oct_value *v)
{
    return v->producer && oct_node_moves_data(v->producer);
}

/* The point that decides for a value that has codes of its own, -1 if it is moved, -2: float. */
static int32_t source_of(const oct_qmap *m, const oct_value *v)
{
    const int32_t k = m->of_value[v->id];
    const bool has_own = k >= 0 && m->points[k].state != OCT_QSTATE_OFF;

    if (has_own && !(m->points[k].state == OCT_QSTATE_DOMINATED && is_moved(v)))
        return oct_qmap_root_index(m, k);
    if (k >= 0 && !has_own) return -2;
    return is_moved(v) ? -1 : -2;
}

static oct_status visit(trace *t, const oct_value *v)
{
    const int32_t source = source_of(t->m, v);
    const int32_t at = (int32_t)t->n;

    if (2 * (t->n + 1) > t->n_slots) OCT_TRY(rehash(t));
    if (t->slot[slot_of(t, v)] >= 0) return OCT_OK;
    if (t->n >= MAX_VALUES)
        return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED, "value '%s': moved too often", v->name);
    OCT_TRY(oct_grow(t->ctx, &t->steps, &t->cap, t->n + 1, sizeof(*t->steps)));
    OCT_TRY(oct_grow(t->ctx, &t->stack, &t->cap_stack, t->n_stack + 1, sizeof(*t->stack)));
    t->steps[t->n++] = (step){.v = v, .point = OCT_MAX(source, -1)};
    t->slot[slot_of(t, v)] = at;
    t->stack[t->n_stack++] = at;
    t->is_float |= source == -2;
    return OCT_OK;
}

static oct_status search(trace *t, const oct_value *v)
{
    OCT_TRY(visit(t, v));
    while (t->n_stack > 0 && !t->is_float) {
        step *s = &t->steps[t->stack[t->n_stack - 1]];
        const oct_node *by = s->point < 0 ? s->v->producer : NULL;

        if (by && s->next < oct_node_n_data(by)) {
            OCT_TRY(visit(t, by->in[s->next++])); /* s may move */
            continue;
        }
        OCT_TRY(oct_grow(t->ctx, &t->order, &t->cap_order, t->n_order + 1, sizeof(*t->order)));
        t->order[t->n_order++] = t->stack[--t->n_stack];
    }
    return OCT_OK;
}

/* --- labels --- */

static bool all_same(const float *s, const int32_t *z, int64_t n)
{
    for (int64_t c = 1; c < n; c++)
        if (s[c] != s[0] || z[c] != z[0]) return false;
    return true;
}

/* One scale repeated for each channel (solve/ort_signs.c) is one scale, wherever it is moved to. */
static bool has_channels(const oct_qpoint *p)
{
    return p->spec.axis == 1 && !(p->n > 0 && all_same(p->scale, p->zero, p->n));
}

/* One point decides for everything: no need to know the way. */
static bool is_uniform(const trace *t, int32_t *point)
{
    *point = -1;
    for (size_t i = 0; i < t->n; i++) {
        if (t->steps[i].point < 0) continue;
        if (*point >= 0 && *point != t->steps[i].point) return false;
        *point = t->steps[i].point;
    }
    return *point >= 0 && !has_channels(&t->m->points[*point]);
}

static oct_status label_moved(trace *t, step *s)
{
    const oct_node *by = s->v->producer;
    const int32_t n = oct_node_n_data(by);
    const oct_tensor **in = oct_calloc(t->ctx, (size_t)n + 1, sizeof(oct_tensor *));
    oct_status st;

    if (!in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++)
        in[i] = t->steps[t->slot[slot_of(t, by->in[i])]].labels;
    st = oct_labels_through(by, in, s->v->out_index, &s->labels);
    oct_free(t->ctx, in);
    return st;
}

static oct_status label_all(trace *t)
{
    int32_t next = 0;

    for (size_t i = 0; i < t->n_order; i++) {
        step *s = &t->steps[t->order[i]];
        const bool per_channel = s->point >= 0 && has_channels(&t->m->points[s->point]);
        const int64_t n = per_channel && s->v->type.rank > 1 ? s->v->type.dim[1] : 1;

        if (s->point < 0) {
            OCT_TRY(label_moved(t, s));
            continue;
        }
        s->first = next;
        if (n < 1 || n > INT32_MAX / 2 - next) return OCT_OK;
        next += (int32_t)n;
        OCT_TRY(oct_labels_new(t->ctx, &s->v->type, s->first, per_channel, &s->labels));
    }
    return OCT_OK;
}

/* Which source a label belongs to: the one with the largest first label not above it. */
static oct_channel_source origin_of(const trace *t, int32_t label)
{
    const step *best = NULL;

    for (size_t i = 0; i < t->n && label >= 0; i++) {
        const step *s = &t->steps[i];

        if (s->point >= 0 && s->first <= label && (!best || s->first > best->first)) best = s;
    }
    return best ? (oct_channel_source){best->point, label - best->first}
                : (oct_channel_source){-1, 0};
}

static bool is_same(const oct_channel_source *o, int64_t n)
{
    for (int64_t c = 1; c < n; c++)
        if (o[c].point != o[0].point || o[c].channel != o[0].channel) return false;
    return true;
}

static oct_status read_labels(trace *t, const oct_value *v, oct_arena *a, int64_t *n,
                              oct_channel_source **out)
{
    const oct_tensor *labels = t->steps[0].labels;
    const int64_t channels = v->type.rank > 1 ? v->type.dim[1] : 1;
    int32_t *label;

    *n = -1;
    if (!labels || channels < 1 || channels > INT32_MAX / 2) return OCT_OK;
    label = oct_arena_array(a, (size_t)channels, sizeof(*label));
    *out = oct_arena_array(a, (size_t)channels, sizeof(**out));
    if (!label || !*out) return OCT_ERR_MEMORY;
    if (!oct_labels_channels(labels, channels, label)) return OCT_OK;
    for (int64_t c = 0; c < channels; c++)
        (*out)[c] = c && label[c] == label[c - 1] ? (*out)[c - 1] : origin_of(t, label[c]);
    *n = is_same(*out, channels) ? 1 : channels;
    return OCT_OK;
}

static oct_status one_origin(int32_t point, oct_arena *a, int64_t *n, oct_channel_source **out)
{
    if (!(*out = oct_arena_array(a, 1, sizeof(**out)))) return OCT_ERR_MEMORY;
    (*out)[0] = (oct_channel_source){point, 0};
    *n = 1;
    return OCT_OK;
}

static oct_status find(trace *t, const oct_value *v, oct_arena *a, int64_t *n,
                       oct_channel_source **out)
{
    int32_t point;

    OCT_TRY(search(t, v));
    if (t->is_float) return OCT_OK;
    if (is_uniform(t, &point)) return one_origin(point, a, n, out);
    *n = -1;
    if (t->n > MAX_TRACED) return OCT_OK;
    OCT_TRY(label_all(t));
    return read_labels(t, v, a, n, out);
}

static void forget(trace *t)
{
    for (size_t s = 0; s < t->n; s++)
        oct_tensor_unref(t->steps[s].labels);
    oct_free(t->ctx, t->steps);
    oct_free(t->ctx, t->stack);
    oct_free(t->ctx, t->order);
    oct_free(t->ctx, t->slot);
}

static oct_status mark_all(trace *t, const oct_value *v, uint8_t *mark)
{
    const oct_tensor *labels;
    int32_t point, last = -1;

    OCT_TRY(search(t, v));
    if (t->is_float || t->n > MAX_TRACED) return OCT_OK;
    if (is_uniform(t, &point)) {
        mark[point] = 1;
        return OCT_OK;
    }
    OCT_TRY(label_all(t));
    labels = t->steps[t->slot[slot_of(t, v)]].labels;
    for (int64_t i = 0; labels && i < oct_tensor_len(labels); i++) {
        const int32_t label = ((const int32_t *)labels->data)[i];

        if (label == last) continue;
        last = label;
        point = origin_of(t, label).point;
        if (point >= 0) mark[point] = 1;
    }
    return OCT_OK;
}

oct_status oct_place_sources(const oct_qmap *m, const oct_value *v, uint8_t *mark)
{
    trace t = {.m = m, .ctx = m->ctx};
    const oct_status st = mark_all(&t, v, mark);

    forget(&t);
    return st;
}

oct_status oct_place_origins(const oct_qmap *m, const oct_node *node, int32_t i, oct_arena *a,
                             int64_t *n, oct_channel_source **out)
{
    const oct_value *v = oct_node_in(node, i);
    const int32_t k = v ? oct_qmap_at(m, node, i) : -1;
    trace t = {.m = m, .ctx = m->ctx};
    oct_status st;

    *n = 0;
    *out = NULL;
    if (!v || (v->data && k < 0)) return OCT_OK;
    if (k >= 0 && m->points[k].node) /* for this reader alone */
        return m->points[k].state == OCT_QSTATE_OFF
                   ? OCT_OK
                   : one_origin(oct_qmap_root_index(m, k), a, n, out);
    st = find(&t, v, a, n, out);
    forget(&t);
    return st;
}

/* --- scales --- */

static oct_status read_scale(const oct_qmap *m, const oct_channel_source *o, float *scale,
                             int32_t *zero)
{
    const oct_qpoint *p = &m->points[o->point];

    if (p->n < 1)
        return oct_fail(m->ctx, OCT_ERR_STATE, "value '%s': its scale is not known yet",
                        p->value->name);
    *scale = p->scale[p->n > 1 && o->channel < p->n ? o->channel : 0];
    *zero = p->zero[p->n > 1 && o->channel < p->n ? o->channel : 0];
    return OCT_OK;
}

oct_status oct_place_input_scales(const oct_qmap *m, const oct_node *node, int32_t i, oct_arena *a,
                                  int64_t *n, const float **scale, const int32_t **zero,
                                  bool *is_integer)
{
    oct_channel_source *origin = NULL;
    const oct_channel_source *known = NULL;
    float *s;
    int32_t *z;

    OCT_TRY(oct_place_origins(m, node, i, a, n, &origin));
    *is_integer = *n != 0;
    if (*n == 0) return OCT_OK;
    if (*n < 0)
        return oct_node_fail(node, OCT_ERR_UNSUPPORTED,
                             "the scales of operand %d do not follow its channels", (int)i);
    s = oct_arena_array(a, (size_t)*n, sizeof(*s));
    z = oct_arena_array(a, (size_t)*n, sizeof(*z));
    if (!s || !z) return OCT_ERR_MEMORY;
    for (int64_t c = 0; c < *n && !known; c++)
        if (origin[c].point >= 0) known = &origin[c];
    for (int64_t c = 0; c < *n && known;
         c++) /* zeros from nowhere: any scale has a code for them */
        OCT_TRY(read_scale(m, origin[c].point >= 0 ? &origin[c] : known, &s[c], &z[c]));
    if (!known) *is_integer = false;
    if (all_same(s, z, *n)) *n = 1;
    *scale = s;
    *zero = z;
    return OCT_OK;
}
