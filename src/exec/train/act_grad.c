/* SPDX-License-Identifier: Apache-2.0 */
/* ActivationGrad in any layout. */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/grad/rules.h"

enum { X, DY };

typedef struct state {
    const oct_simd *simd;
    oct_act act;
    int64_t rows, row; /* rows of `row` elements */
    int64_t x_pitch, dy_pitch, dx_pitch;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    int64_t act;

    if (!s->node || s->node->op != &oct_op_act_grad || !oct_step_is_f32(p, s) ||
        !oct_step_is_bare(s) || p->slots[s->in[X]].data || p->slots[s->in[DY]].data)
        return false;
    *layout = OCT_LAYOUT_ANY;
    act = oct_node_attr(s->node, "act")->i;
    return act > OCT_ACT_NONE && act < OCT_ACT_RATIONAL_SIGMOID;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    st->act = (oct_act){(oct_act_kind)oct_node_attr(s->node, "act")->i,
                        oct_node_attr(s->node, "act_a")->f, oct_node_attr(s->node, "act_b")->f};
    if (oct_slot_is_dense(p, s->in[X]) && oct_slot_is_dense(p, s->in[DY]) &&
        oct_slot_is_dense(p, s->out[0])) {
        st->rows = 1;
        st->row = oct_type_len(t);
    } else {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->row = t->dim[1];
        st->x_pitch = oct_slot_pitch(p, s->in[X]);
        st->dy_pitch = oct_slot_pitch(p, s->in[DY]);
        st->dx_pitch = oct_slot_pitch(p, s->out[0]);
    }
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x, *dy;
    float *dx;
} job;

static void one_row(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->train->act_grad(&j->st->act, j->x + begin, j->dy + begin, j->dx + begin,
                                 end - begin);
}

static void many_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        st->simd->train->act_grad(&st->act, j->x + i * st->x_pitch, j->dy + i * st->dy_pitch,
                                  j->dx + i * st->dx_pitch, st->row);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[X], b->in[DY], b->out[0]};

    if (st->rows == 1)
        oct_parallel_for(b->n_threads, st->row, OCT_GRAIN_ELEMENTS, one_row, &j);
    else
        oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, OCT_GRAIN_ELEMENTS / st->row),
                         many_rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_act_grad = {
    .name = "act-grad",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
