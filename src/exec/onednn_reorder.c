/* SPDX-License-Identifier: Apache-2.0 */
/* Between plain and channels-last: by oneDNN for its types, by a loop for the others. */
#include "base/parallel.h"
#include "exec/layout.h"
#include "exec/onednn_prim.h"

typedef struct loop {
    oct_seen_layout from, to;
    oct_type type;
} loop;

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

    return oct_prim_dtype(t->dtype) != dnnl_data_type_undef && oct_type_len(t) > 0;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    loop *l;

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
    return b->own ? oct_prim_run(b) : run_loop(b);
}

const oct_kernel oct_kernel_reorder = {
    .name = "reorder",
    .flags = OCT_KERNEL_REORDER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .make = make,
    .drop = drop,
    .bind = bind,
    .unbind = oct_prim_unbind,
    .run = run,
};
