/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split and simple Slices: the layout of the parts, and the kernels that copy them. */
#include "exec/f32/concat_split.h"

#include <string.h>

#include "base/parallel.h"
#include "op/op.h"

/* A Slice of one axis with constant bounds and step 1. */
static bool slice_cut(const oct_node *n, int32_t *axis, int64_t *begin)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;
    const oct_tensor *starts = oct_node_const(n, 1), *axes = oct_node_const(n, 3);
    const oct_tensor *steps = oct_node_const(n, 4);
    int32_t cut = -1;

    if (!starts || (oct_node_in(n, 3) && !axes) || (oct_node_in(n, 4) && !steps)) return false;
    for (int64_t i = 0; i < oct_tensor_len(starts); i++) {
        int64_t d = axes ? oct_tensor_get_i64(axes, i) : i;
        int64_t at = oct_tensor_get_i64(starts, i);

        if (steps && oct_tensor_get_i64(steps, i) != 1) return false;
        if (d < 0) d += x->rank;
        if (d < 0 || d >= x->rank) return false;
        if (x->dim[d] == y->dim[d]) continue;
        if (cut >= 0) return false;
        cut = (int32_t)d;
        if (at < 0) at += x->dim[d];
        *begin = OCT_MIN(OCT_MAX(at, 0), x->dim[d]);
    }
    *axis = cut;
    return cut >= 0 && *begin + y->dim[cut] <= x->dim[cut];
}

bool oct_node_axis_slice(const oct_node *n, int32_t *axis, int64_t *begin)
{
    const oct_attr *a = oct_node_attr(n, "axis");
    const int32_t rank = n->in[0] ? n->in[0]->type.rank : 0;

    *begin = 0;
    if (n->op == &oct_op_slice) return slice_cut(n, axis, begin);
    if ((n->op != &oct_op_concat && n->op != &oct_op_split) || !a) return false;
    *axis = (int32_t)(a->i < 0 ? a->i + rank : a->i);
    return *axis >= 0 && *axis < rank;
}

oct_status oct_step_axis_slices(oct_plan *p, const oct_step *s, const oct_axis_slices **out)
{
    const bool is_concat = s->kernel == &oct_kernel_concat;
    const int32_t n = is_concat ? s->n_in : s->n_out;
    const int32_t *slots = is_concat ? s->in : s->out;
    const oct_slot *whole = &p->slots[is_concat ? s->out[0] : s->in[0]];
    oct_axis_slices *parts = oct_plan_alloc(p, 1, sizeof(*parts));
    int64_t begin = 0, inner = 1;
    int32_t axis = 0;

    if (!parts) return OCT_ERR_MEMORY;
    parts->offset = oct_plan_alloc(p, (size_t)n + 1, sizeof(int64_t));
    parts->size = oct_plan_alloc(p, (size_t)n + 1, sizeof(int64_t));
    if (!parts->offset || !parts->size) return OCT_ERR_MEMORY;
    if (!oct_node_axis_slice(s->node, &axis, &begin))
        return oct_node_fail(s->node, OCT_ERR_STATE, "is not a simple cut");
    parts->outer = 1;
    if (whole->layout == OCT_LAYOUT_CLAST && axis == 1) {
        parts->is_channel = true;
        parts->outer = whole->type.dim[0] * oct_type_pixels(&whole->type);
    } else {
        for (int32_t d = 0; d < whole->type.rank; d++) {
            const bool channel = whole->layout == OCT_LAYOUT_CLAST && d == 1;

            if (d != axis) *(d < axis && !channel ? &parts->outer : &inner) *= whole->type.dim[d];
        }
    }
    parts->is_pixel = whole->layout == OCT_LAYOUT_PLAIN && whole->type.rank == 3 && axis == 2;
    parts->whole = whole->type.dim[axis] * inner;
    begin *= inner;
    for (int32_t i = 0; i < n; i++) {
        parts->offset[i] = begin;
        parts->size[i] = p->slots[slots[i]].type.dim[axis] * inner;
        begin += parts->size[i];
    }
    *out = parts;
    return OCT_OK;
}

bool oct_axis_slice_is_in_place(const oct_plan *p, int32_t part, int32_t whole, int64_t offset)
{
    int64_t a = 0, b = 0;

    if (oct_slot_root(p, part, &a) != oct_slot_root(p, whole, &b) || a != b + offset) return false;
    return p->slots[part].layout != OCT_LAYOUT_CLAST ||
           oct_slot_pitch(p, part) == oct_slot_pitch(p, whole) || oct_slot_is_dense(p, part);
}

/* --- the kernels --- */

/* One part to copy; strides in bytes. */
typedef struct copy {
    int32_t operand;
    size_t size, part_step, whole_step, whole_offset;
} copy;

typedef struct state {
    int64_t outer;
    int32_t n;
    copy copies[];
} state;

static oct_status make(oct_plan *p, oct_step *s)
{
    const bool is_concat = s->kernel == &oct_kernel_concat;
    const int32_t n = is_concat ? s->n_in : s->n_out;
    const int32_t whole = is_concat ? s->out[0] : s->in[0];
    const int32_t *slots = is_concat ? s->in : s->out;
    const size_t elem = oct_dtype_size(p->slots[whole].type.dtype);
    const oct_axis_slices *parts = s->slices;
    state *st = oct_plan_alloc(p, 1, sizeof(*st) + (size_t)n * sizeof(copy));

    if (!st) return OCT_ERR_MEMORY;
    st->outer = parts->outer;
    for (int32_t i = 0; i < n; i++) {
        copy *c = &st->copies[st->n];

        if (parts->size[i] == 0) continue;
        if (oct_axis_slice_is_in_place(p, slots[i], whole, parts->offset[i])) continue;
        c->operand = i;
        c->size = (size_t)parts->size[i] * elem;
        c->whole_offset = (size_t)parts->offset[i] * elem;
        c->part_step = c->size;
        c->whole_step = (size_t)parts->whole * elem;
        if (parts->is_channel) {
            c->whole_step = (size_t)oct_slot_pitch(p, whole) * elem;
            if (!p->slots[slots[i]].data) c->part_step = (size_t)oct_slot_pitch(p, slots[i]) * elem;
        }
        st->n++;
    }
    s->state = st;
    s->impl = "copy";
    return OCT_OK;
}

typedef struct job {
    const copy *c;
    char *dst;
    const char *src;
    size_t dst_step, src_step;
} job;

static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const size_t size = j->c->size;

    for (int64_t i = begin; i < end; i++)
        memcpy(j->dst + (size_t)i * j->dst_step, j->src + (size_t)i * j->src_step, size);
}

static void copy_part(const oct_bound *b, const copy *c, const job *j)
{
    const state *st = b->step->state;
    const int64_t grain = OCT_MAX(1, (int64_t)(65536 / OCT_MAX(c->size, 1)));

    /* A few long rows would keep all but one thread idle; they are rare and memory-bound anyway. */
    oct_parallel_for(b->n_threads, st->outer, grain, copy_rows, (void *)(uintptr_t)j);
}

static oct_status run_concat(const oct_bound *b)
{
    const state *st = b->step->state;

    for (int32_t i = 0; i < st->n; i++) {
        const copy *c = &st->copies[i];
        const job j = {c, (char *)b->out[0] + c->whole_offset, b->in[c->operand], c->whole_step,
                       c->part_step};

        copy_part(b, c, &j);
    }
    return OCT_OK;
}

static oct_status run_split(const oct_bound *b)
{
    const state *st = b->step->state;

    for (int32_t i = 0; i < st->n; i++) {
        const copy *c = &st->copies[i];
        const job j = {c, b->out[c->operand], (const char *)b->in[0] + c->whole_offset,
                       c->part_step, c->whole_step};

        copy_part(b, c, &j);
    }
    return OCT_OK;
}

/* An output of the network whose operands are contiguous blocks of it: reorders write them in
 * place. */
static bool leaves_in_blocks(const oct_plan *p, const oct_step *s, int32_t axis)
{
    const oct_slot *out = &p->slots[s->out[0]];

    return out->value->is_output && out->value->n_users == 0 && axis <= 1 &&
           oct_type_span(&out->type, 0, axis) == 1;
}

static bool accepts_concat(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    int32_t axis;
    int64_t begin;

    if (!s->node || s->node->op != &oct_op_concat || !oct_node_axis_slice(s->node, &axis, &begin))
        return false;
    if (oct_dtype_size(p->slots[s->out[0]].type.dtype) == 0) return false;
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] < 0) return false;
    *layout = OCT_LAYOUT_ANY;
    for (int32_t i = 0; i < s->n_in; i++) /* constants are NCHW */
        if (p->slots[s->in[i]].data) *layout = OCT_LAYOUT_PLAIN;
    if (!oct_type_has_channels(&p->slots[s->out[0]].type)) *layout = OCT_LAYOUT_PLAIN;
    if (leaves_in_blocks(p, s, axis)) *layout = OCT_LAYOUT_PLAIN;
    return true;
}

static bool accepts_split(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    int32_t axis;
    int64_t begin;

    if (!s->node || (s->node->op != &oct_op_split && s->node->op != &oct_op_slice)) return false;
    if (!oct_node_axis_slice(s->node, &axis, &begin) || p->slots[s->in[0]].data) return false;
    if (oct_dtype_size(p->slots[s->in[0]].type.dtype) == 0) return false;
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] < 0) return false;
    *layout = OCT_LAYOUT_ANY;
    if (!oct_type_has_channels(&p->slots[s->in[0]].type)) *layout = OCT_LAYOUT_PLAIN;
    return true;
}

const oct_kernel oct_kernel_concat = {
    .name = "concat",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_concat,
    .make = make,
    .run = run_concat,
};

const oct_kernel oct_kernel_split = {
    .name = "split",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_split,
    .make = make,
    .run = run_split,
};
