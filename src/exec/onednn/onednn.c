/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN engine, and primitives as steps. */
#include <math.h>
#include <string.h>

#include "exec/onednn/onednn_prim.h"
#include "exec/run.h"

oct_status oct_dnnl_new(oct_ctx *ctx, oct_dnnl **out)
{
    oct_dnnl *d = oct_calloc(ctx, 1, sizeof(*d));

    if (!d) return OCT_ERR_MEMORY;
    d->ctx = ctx;
    if (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success) {
        oct_free(ctx, d);
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "oneDNN has no engine for this CPU");
    }
    *out = d;
    return OCT_OK;
}

void oct_dnnl_free(oct_dnnl *d)
{
    if (!d) return;
    dnnl_engine_destroy(d->engine);
    oct_free(d->ctx, d);
}

void oct_dnnl_version(int32_t *major, int32_t *minor, int32_t *patch)
{
    const dnnl_version_t *v = dnnl_version();

    *major = v->major;
    *minor = v->minor;
    *patch = v->patch;
}

oct_status oct_dnnl_fail(const oct_step *s, dnnl_status_t status, const char *what)
{
    const oct_status st = status == dnnl_out_of_memory ? OCT_ERR_MEMORY : OCT_ERR_UNSUPPORTED;

    return oct_node_fail(s->last, st, "oneDNN could not make its %s (status %d)", what,
                         (int)status);
}

/* Elements in 31 bits, as if no dimension was zero. */
static bool size_fits(const oct_type *t)
{
    int64_t n = 1;

    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] > INT32_MAX) return false;
        n *= OCT_MAX(t->dim[i], 1);
        if (n > INT32_MAX) return false;
    }
    return true;
}

bool oct_prim_sizes_fit(const oct_plan *p, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && !size_fits(&p->slots[s->in[i]].type)) return false;
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0 && !size_fits(&p->slots[s->out[i]].type)) return false;
    return true;
}

bool oct_prim_window_fits(const oct_conv_geometry *g)
{
    const int64_t most = 1 << 18; /* it walks through padding, and computes some offsets in 32
                                   * bits */

    for (int i = 0; i < g->n; i++)
        if (g->stride[i] > most || g->pad_begin[i] > most || g->pad_end[i] > most ||
            g->kernel[i] * g->dilation[i] > most)
            return false;
    return true;
}

oct_status oct_prim_new(oct_plan *p, oct_step *s, oct_prim **out)
{
    oct_prim *prim = oct_plan_alloc(p, 1, sizeof(*prim));

    if (!prim) return OCT_ERR_MEMORY;
    s->state = prim;
    *out = prim;
    return OCT_OK;
}

void oct_prim_add(oct_prim *prim, int arg, oct_prim_from from, int32_t index,
                  const dnnl_memory_desc_t *md)
{
    oct_prim_arg *a = &prim->args[prim->n_args++];

    *a = (oct_prim_arg){.arg = arg, .from = from, .index = index, .md = *md};
}

oct_status oct_prim_finish(oct_plan *p, oct_step *s, oct_prim *prim, dnnl_primitive_desc_t desc)
{
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const char *name = NULL;
    dnnl_status_t st;

    if (scratch && dnnl_memory_desc_get_size(scratch) > 0) {
        s->scratch_size = dnnl_memory_desc_get_size(scratch);
        oct_prim_add(prim, DNNL_ARG_SCRATCHPAD, OCT_PRIM_SCRATCH, 0, scratch);
    }
    if (dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name) ==
            dnnl_success &&
        name)
        s->impl = oct_arena_strdup(p->arena, name);
    st = dnnl_primitive_create(&prim->prim, desc);
    dnnl_primitive_desc_destroy(desc);
    return st == dnnl_success ? OCT_OK : oct_dnnl_fail(s, st, "primitive");
}

/* Runs a reorder once, at plan time. */
static dnnl_status_t reorder_once(dnnl_engine_t engine, const dnnl_memory_desc_t *from,
                                  const void *src, const dnnl_memory_desc_t *to, void *dst)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t prim = NULL;
    dnnl_memory_t a = NULL, b = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t st;

    if ((st = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags))) goto done;
    if ((st = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL))) goto done;
    if ((st = dnnl_primitive_create(&prim, pd))) goto done;
    if ((st = dnnl_memory_create(&a, from, engine, (void *)(uintptr_t)src))) goto done;
    if ((st = dnnl_memory_create(&b, to, engine, dst))) goto done;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, a}, {DNNL_ARG_TO, b}};
    if ((st = dnnl_primitive_execute(prim, stream, 2, args))) goto done;
    st = dnnl_stream_wait(stream);
done:
    if (b) dnnl_memory_destroy(b);
    if (a) dnnl_memory_destroy(a);
    if (prim) dnnl_primitive_destroy(prim);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (stream) dnnl_stream_destroy(stream);
    return st;
}

oct_status oct_prim_pack(oct_plan *p, const oct_step *s, oct_prim *prim, int arg,
                         const dnnl_memory_desc_t *from, const void *data,
                         const dnnl_memory_desc_t *to)
{
    void *packed = oct_alloc(p->ctx, OCT_MAX(dnnl_memory_desc_get_size(to), 1));
    dnnl_status_t st;

    if (!packed) return OCT_ERR_MEMORY;
    prim->packed[prim->n_packed] = packed;
    oct_prim_add(prim, arg, OCT_PRIM_PACKED, prim->n_packed++, to);
    st = reorder_once(p->dnnl->engine, from, data, to, packed);
    return st == dnnl_success ? OCT_OK : oct_dnnl_fail(s, st, "packed weights");
}

void oct_prim_md(const oct_plan *p, int32_t slot, dnnl_memory_desc_t *md)
{
    const oct_slot *s = &p->slots[slot];
    const int rank = OCT_MAX(s->type.rank, 1);
    dnnl_dims_t dims = {1}, strides = {1};
    int64_t step = 1;

    for (int i = 0; i < s->type.rank; i++)
        dims[i] = s->type.dim[i];
    if (s->layout == OCT_LAYOUT_CLAST) {
        strides[1] = 1;
        step = oct_slot_pitch(p, slot);
        for (int i = rank - 1; i >= 0; i--) {
            if (i == 1) continue;
            strides[i] = step;
            step *= dims[i];
        }
    } else {
        for (int i = rank - 1; i >= 0; i--) {
            strides[i] = step;
            step *= dims[i];
        }
    }
    dnnl_memory_desc_init_by_strides(md, rank, dims, oct_prim_dtype(s->type.dtype), strides);
}

dnnl_data_type_t oct_prim_dtype(oct_dtype t)
{
    switch (t) {
    case OCT_DTYPE_F32:
        return dnnl_f32;
    case OCT_DTYPE_I32:
        return dnnl_s32;
    case OCT_DTYPE_I8:
        return dnnl_s8;
    case OCT_DTYPE_U8:
    case OCT_DTYPE_BOOL:
        return dnnl_u8;
    case OCT_DTYPE_BF16:
        return dnnl_bf16;
    default:
        return dnnl_data_type_undef;
    }
}

static const struct act_row {
    dnnl_alg_kind_t alg;
    bool known;
} act_rows[OCT_ACT_COUNT] = {
    [OCT_ACT_RELU] = {dnnl_eltwise_relu, true},
    [OCT_ACT_CLIP] = {dnnl_eltwise_clip, true},
    [OCT_ACT_LEAKY] = {dnnl_eltwise_relu, true},
    [OCT_ACT_SWISH] = {dnnl_eltwise_swish, true},
    [OCT_ACT_HARD_SWISH] = {dnnl_eltwise_hardswish, true},
    [OCT_ACT_SIGMOID] = {dnnl_eltwise_logistic, true},
    [OCT_ACT_TANH] = {dnnl_eltwise_tanh, true},
    [OCT_ACT_GELU] = {dnnl_eltwise_gelu_erf, true},
    [OCT_ACT_GELU_TANH] = {dnnl_eltwise_gelu_tanh, true},
    [OCT_ACT_ELU] = {dnnl_eltwise_elu, true},
    [OCT_ACT_MISH] = {dnnl_eltwise_mish, true},
};

bool oct_prim_append_act(dnnl_post_ops_t ops, const oct_act *act)
{
    if (!act->kind) return true;
    if (act->kind == OCT_ACT_HARD_SIGMOID) /* linear, then clamped: oneDNN 2.6 has no single
                                            * post-op for it */
        return !dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_linear, act->a, act->b) &&
               !dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_clip, 0.0f, 1.0f);
    if (!act_rows[act->kind].known) return false;
    return !dnnl_post_ops_append_eltwise(ops, 1.0f, act_rows[act->kind].alg, act->a, act->b);
}

/* --- running --- */

typedef struct own {
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[OCT_PRIM_MAX_ARGS];
    int32_t n_args;
} own;

void oct_prim_drop(oct_plan *p, oct_step *s)
{
    oct_prim *prim = s->state;

    if (!prim) return;
    if (prim->prim) dnnl_primitive_destroy(prim->prim);
    for (int32_t i = 0; i < prim->n_packed; i++)
        oct_free(p->ctx, prim->packed[i]);
}

oct_status oct_prim_bind(const oct_plan *p, oct_bound *b)
{
    const oct_prim *prim = b->step->state;
    own *o = oct_calloc(b->run->ctx, 1, sizeof(*o));
    dnnl_status_t st;

    if (!o) return OCT_ERR_MEMORY;
    b->own = o;
    st = dnnl_stream_create(&o->stream, p->dnnl->engine, dnnl_stream_default_flags);
    for (int32_t i = 0; i < prim->n_args && !st; i++) {
        const oct_prim_arg *a = &prim->args[i];
        void *data = a->from == OCT_PRIM_IN       ? b->in[a->index]
                     : a->from == OCT_PRIM_OUT    ? b->out[a->index]
                     : a->from == OCT_PRIM_PACKED ? prim->packed[a->index]
                                                  : b->scratch;

        o->args[i].arg = a->arg;
        st = dnnl_memory_create(&o->args[i].memory, &a->md, p->dnnl->engine, data);
        if (!st) o->n_args++;
    }
    return st ? oct_fail(b->run->ctx, OCT_ERR_MEMORY, "oneDNN could not make a memory object")
              : OCT_OK;
}

void oct_prim_unbind(oct_bound *b)
{
    own *o = b->own;

    if (!o) return;
    for (int32_t i = 0; i < o->n_args; i++)
        dnnl_memory_destroy(o->args[i].memory);
    if (o->stream) dnnl_stream_destroy(o->stream);
    oct_free(b->run->ctx, o);
    b->own = NULL;
}

oct_status oct_prim_run(const oct_bound *b)
{
    const oct_prim *prim = b->step->state;
    const own *o = b->own;

    if (dnnl_primitive_execute(prim->prim, o->stream, o->n_args, o->args) != dnnl_success)
        return oct_fail(b->run->ctx, OCT_ERR_STATE, "a oneDNN primitive failed");
    return OCT_OK;
}
