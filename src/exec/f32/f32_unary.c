/* SPDX-License-Identifier: Apache-2.0 */
/* Activations as steps of their own, in any layout. */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"

typedef struct state {
    const oct_simd *simd;
    oct_act act;
    int64_t rows, row; /* rows of `row` elements */
    int64_t in_pitch, out_pitch;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_act act;

    if (!s->node || !oct_step_is_bare(s) || p->slots[s->in[0]].data) return false;
    *layout = OCT_LAYOUT_ANY;
    return oct_act_of(s->node, &act);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    oct_act_of(s->node, &st->act);
    if (oct_slot_is_dense(p, s->in[0]) && oct_slot_is_dense(p, s->out[0])) {
        st->rows = 1;
        st->row = oct_type_len(t);
    } else {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->row = t->dim[1];
        st->in_pitch = oct_slot_pitch(p, s->in[0]);
        st->out_pitch = oct_slot_pitch(p, s->out[0]);
    }
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y;
} job;

static void one_row(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->act(&j->st->act, j->x + begin, j->y + begin, end - begin);
}

static void many_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        st->simd->act(&st->act, j->x + i * st->in_pitch, j->y + i * st->out_pitch, st->row);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    if (st->rows == 1)
        oct_parallel_for(b->n_threads, st->row, OCT_GRAIN_ELEMENTS, one_row, &j);
    else
        oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, OCT_GRAIN_ELEMENTS / st->row),
                         many_rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_unary = {
    .name = "unary",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
