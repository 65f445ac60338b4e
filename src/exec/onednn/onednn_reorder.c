/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between NCHW and NHWC: elements of four bytes in square blocks, other types by oneDNN where it
 * supports them, the rest by a loop.
 */
#include "base/parallel.h"
#include "exec/layout.h"
#include "exec/onednn/onednn_prim.h"
#include "exec/run.h"
#include "exec/simd/simd.h"

#define BLOCK 64 /* pixels that are transposed together */

typedef struct loop {
    oct_seen_layout from, to;
    oct_type type;
} loop;

typedef struct squares {
    const oct_simd *simd;
    bool to_plain;
    int64_t images, pixels, channels, pitch, cuts;
} squares;

typedef struct job {
    const squares *q;
    const float *x;
    float *y;
} job;

/* Too few channels for square blocks. */
static bool in_squares(const oct_plan *p, const oct_step *s)
{
    const oct_type *t = &p->slots[s->in[0]].type;

    return oct_dtype_size(t->dtype) == 4 && t->dim[1] >= 8 && oct_type_pixels(t) >= 8 &&
           t->dim[0] > 0;
}

static oct_status make_squares(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->in[0]].type;
    const bool to_plain = p->slots[s->out[0]].layout == OCT_LAYOUT_PLAIN;
    squares *q = oct_plan_alloc(p, 1, sizeof(*q));

    if (!q) return OCT_ERR_MEMORY;
    *q = (squares){.simd = oct_simd_get(),
                   .to_plain = to_plain,
                   .images = t->dim[0],
                   .pixels = oct_type_pixels(t),
                   .channels = t->dim[1],
                   .pitch = oct_slot_pitch(p, to_plain ? s->in[0] : s->out[0])};
    q->cuts = oct_ceil_div(q->pixels, BLOCK);
    s->state = q;
    s->impl = q->simd->name;
    return OCT_OK;
}

static void transpose_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const squares *q = j->q;

    for (int64_t u = begin; u < end; u++) {
        const int64_t image = u / q->cuts, first = u % q->cuts * BLOCK;
        const int64_t n = OCT_MIN(BLOCK, q->pixels - first);
        const int64_t plain = image * q->channels * q->pixels + first;
        const int64_t last = (image * q->pixels + first) * q->pitch;

        if (q->to_plain)
            q->simd->transpose(j->x + last, q->pitch, j->y + plain, q->pixels, n, q->channels);
        else
            q->simd->transpose(j->x + plain, q->pixels, j->y + last, q->pitch, q->channels, n);
    }
}

static oct_status run_squares(const oct_bound *b)
{
    const squares *q = b->step->state;
    job j = {q, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, q->images * q->cuts, OCT_MAX(1, 16384 / (q->channels * BLOCK)),
                     transpose_blocks, &j);
    return OCT_OK;
}

static oct_status make_prim(oct_plan *p, oct_step *s)
{
    dnnl_memory_desc_t x, y;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = NULL;
    oct_prim *prim = NULL;
    dnnl_status_t st;

    OCT_TRY(oct_prim_new(p, s, &prim));
    oct_prim_md(p, s->in[0], &x);
    oct_prim_md(p, s->out[0], &y);
    oct_prim_add(prim, DNNL_ARG_FROM, OCT_PRIM_IN, 0, &x);
    oct_prim_add(prim, DNNL_ARG_TO, OCT_PRIM_OUT, 0, &y);
    st = dnnl_primitive_attr_create(&attr);
    if (!st) st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!st)
        st =
            dnnl_reorder_primitive_desc_create(&pd, &x, p->dnnl->engine, &y, p->dnnl->engine, attr);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (st)
        return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "oneDNN cannot reorder value '%s'",
                        p->slots[s->in[0]].value->name);
    return oct_prim_finish(p, s, prim, pd);
}

static bool by_onednn(const oct_plan *p, const oct_step *s)
{
    const oct_type *t = &p->slots[s->in[0]].type;

    return !in_squares(p, s) && oct_prim_dtype(t->dtype) != dnnl_data_type_undef &&
           oct_type_len(t) > 0 && oct_prim_sizes_fit(p, s);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    loop *l;

    if (in_squares(p, s)) return make_squares(p, s);
    if (by_onednn(p, s)) return make_prim(p, s);
    if (!(l = oct_plan_alloc(p, 1, sizeof(*l)))) return OCT_ERR_MEMORY;
    l->type = p->slots[s->in[0]].type;
    l->from = (oct_seen_layout){p->slots[s->in[0]].layout, oct_slot_pitch(p, s->in[0])};
    l->to = (oct_seen_layout){p->slots[s->out[0]].layout, oct_slot_pitch(p, s->out[0])};
    s->state = l;
    s->impl = "loop";
    return OCT_OK;
}

static oct_status run_loop(const oct_bound *b)
{
    const loop *l = b->step->state;

    oct_relayout(&l->type, l->from, b->in[0], l->to, b->out[0]);
    return OCT_OK;
}

static void drop(oct_plan *p, oct_step *s)
{
    if (s->state && by_onednn(p, s)) oct_prim_drop(p, s);
}

static oct_status bind(const oct_plan *p, oct_bound *b)
{
    return by_onednn(p, b->step) ? oct_prim_bind(p, b) : OCT_OK;
}

static oct_status run(const oct_bound *b)
{
    if (b->own) return oct_prim_run(b);
    return in_squares(b->run->plan, b->step) ? run_squares(b) : run_loop(b);
}

const oct_kernel oct_kernel_reorder = {
    .name = "reorder",
    .flags =
        OCT_KERNEL_REORDER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_OPENMP,
    .make = make,
    .drop = drop,
    .bind = bind,
    .unbind = oct_prim_unbind,
    .run = run,
};
