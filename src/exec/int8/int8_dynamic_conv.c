/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and matrix product of u8 codes whose scale and zero point are known at run time. */
#include <math.h>
#include <string.h>

#include "exec/compile/fuse_dynamic_quant.h"
#include "exec/int8/int8_weights.h"
#include "op/op.h"

enum {
    X = OCT_DYNAMIC_X,
    W = OCT_DYNAMIC_W,
    X_ZERO = OCT_DYNAMIC_X_ZERO,
    W_ZERO = OCT_DYNAMIC_W_ZERO,
    SCALE = OCT_DYNAMIC_SCALE,
    BIAS = OCT_DYNAMIC_BIAS
};

typedef struct state {
    oct_int8_conv conv;
    oct_int8_epilogue epilogue;
    size_t work_size; /* bytes the convolution itself needs */
    int64_t n_scales; /* 0: none */
    float slope;      /* of the activation, for each unit of scale */
} state;

static bool is_conv(const oct_step *s)
{
    return s->node->op == &oct_op_conv_integer;
}

static int64_t zero_of(const oct_tensor *z, int64_t o)
{
    return z ? oct_tensor_get_i64(z, oct_tensor_len(z) > 1 ? o : 0) : 0;
}

/* The geometry, as far as it does not depend on memory layout. */
static bool find_conv(const oct_plan *p, const oct_step *s, oct_int8_conv *c, oct_int8_shape *w)
{
    oct_conv_geometry g;

    if (oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type, &g) ||
        !oct_conv_geometry_to_2d(&g))
        return false;
    *c = oct_int8_windows(&g);
    *w = oct_int8_conv_shape(&g);
    return g.group == 1 || c->depthwise;
}

static bool find_product(const oct_plan *p, const oct_step *s, oct_int8_conv *c, oct_int8_shape *w)
{
    const oct_type *x = &p->slots[s->in[X]].type, *t = &p->slots[s->in[W]].type;

    if (x->rank < 2 || t->rank != 2 || oct_type_len(x) < 1 || oct_type_len(t) < 1) return false;
    *w = (oct_int8_shape){
        .filters = t->dim[1], .channels = t->dim[0], .taps = 1, .o = 1, .c = t->dim[1]};
    *c = oct_int8_product(oct_type_span(x, 0, x->rank - 1), w->channels, w);
    return true;
}

/* Less their zero points, weights must fit signed bytes. */
static bool weights_fit(const oct_tensor *t, const oct_tensor *zero, const oct_int8_shape *w)
{
    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++) {
        const int64_t v = oct_tensor_get_i64(t, i) - zero_of(zero, i / w->o % w->filters);

        if (v < -128 || v > 127) return false;
    }
    return true;
}

static bool zeros_fit(const oct_plan *p, const oct_step *s, const oct_int8_shape *w)
{
    const oct_slot *x = oct_step_in(p, s, X_ZERO), *z = oct_step_in(p, s, W_ZERO);

    if (x && oct_type_len(&x->type) != 1) return false;
    if (!z) return true;
    return z->data && (oct_tensor_len(z->data) == 1 ||
                       (z->type.rank == 1 && oct_tensor_len(z->data) == w->filters));
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_int8_conv c;
    oct_int8_shape w;

    if (!s->integer || !s->integer->is_dynamic) return false;
    if (p->slots[s->in[X]].type.dtype != OCT_DTYPE_U8 || p->slots[s->in[X]].data) return false;
    if (!oct_step_const(p, s, W)) return false;
    if (!(is_conv(s) ? find_conv(p, s, &c, &w) : find_product(p, s, &c, &w))) return false;
    *layout = is_conv(s) ? OCT_LAYOUT_CLAST : OCT_LAYOUT_PLAIN;
    if (c.c_in > 65536 / (c.kernel[0] * c.kernel[1])) return false; /* accumulators of 32 bits */
    if (oct_int8_conv_size(oct_int8_get(), &c) == 0) return false;
    return zeros_fit(p, s, &w) &&
           weights_fit(oct_step_const(p, s, W), oct_step_const(p, s, W_ZERO), &w);
}

static oct_status pack_weights(oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                               oct_int8_conv *c)
{
    const oct_tensor *t = oct_step_const(p, s, W), *zero = oct_step_const(p, s, W_ZERO);
    const int64_t n = oct_tensor_len(t);
    int8_t *bytes = oct_alloc(p->ctx, (size_t)n);
    const oct_int8_weights weights = {
        .w = bytes, .o = w->o, .c = w->c, .t = w->t, .x_zero = &(int32_t){0}, .n_zero = 1};
    oct_status status;

    if (!bytes) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (int8_t)(oct_tensor_get_i64(t, i) - zero_of(zero, i / w->o % w->filters));
    status = oct_int8_weights_pack(p, s, &weights, c);
    oct_free(p->ctx, bytes);
    return status;
}

/*
 * The next layer is quantized by the largest of all results, so one last bit here moves all of its
 * codes: results must equal ONNX Runtime's, whose logistic function is used (ADR 10).
 */
static oct_act rational(oct_act act)
{
    if (act.kind == OCT_ACT_SIGMOID) act.kind = OCT_ACT_RATIONAL_SIGMOID;
    if (act.kind == OCT_ACT_SWISH) act.kind = OCT_ACT_RATIONAL_SWISH;
    return act;
}

/* The scale is filled in by each run; here it is 1. */
static oct_status pack_epilogue(oct_plan *p, const oct_step *s, state *st)
{
    const oct_tensor *bias = oct_step_const(p, s, BIAS);
    const int64_t n = st->conv.c_out;
    float *list = oct_plan_alloc(p, 2 * (size_t)n, sizeof(float));
    oct_int8_epilogue_spec spec = {.c = n, .scale = list, .act = {rational(s->fuse.act[0])}};

    if (!list) return OCT_ERR_MEMORY;
    spec.out = st->n_scales ? OCT_INT8_F32 : OCT_INT8_S32;
    for (int64_t o = 0; o < n; o++) {
        list[o] = 1;
        if (bias) list[n + o] = ((const float *)bias->data)[oct_tensor_len(bias) > 1 ? o : 0];
    }
    if (bias) spec.bias = list + n;
    OCT_TRY(oct_int8_epilogue_make(p, &spec, &st->epilogue));
    st->slope = st->epilogue.slope ? st->epilogue.slope[0] : 0;
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    const oct_slot *scale = oct_step_in(p, s, SCALE);
    oct_int8_conv *c;
    oct_int8_shape w = {0};

    if (!st) return OCT_ERR_MEMORY;
    c = &st->conv;
    if (!(is_conv(s) ? find_conv(p, s, c, &w) : find_product(p, s, c, &w)))
        return oct_node_fail(s->node, OCT_ERR_STATE, "is no product");
    if (is_conv(s)) {
        c->in_pitch = oct_slot_pitch(p, s->in[X]);
        c->out_pitch = oct_slot_pitch(p, s->out[0]);
    }
    c->in_step = c->in_h * c->in_w * c->in_pitch;
    c->out_step = c->out_h * c->out_w * c->out_pitch;
    st->n_scales = scale ? oct_type_len(&scale->type) : 0;
    OCT_TRY(pack_weights(p, s, &w, c));
    OCT_TRY(pack_epilogue(p, s, st));
    st->work_size = (c->scratch_size * (size_t)p->n_threads + 63) / 64 * 64;
    /* zero-point correction, scales, slopes; the padding pixel */
    s->scratch_size = st->work_size + 3 * 4 * (size_t)oct_int8_padded(c->c_out) +
                      (size_t)oct_int8_padded(c->c_in);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 dynamic %s:%s", is_conv(s) ? "conv" : "matmul",
                               oct_int8_get()->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t n = oct_int8_padded(st->conv.c_out), c_in = oct_int8_padded(st->conv.c_in);
    const uint8_t zero = b->in[X_ZERO] ? *(const uint8_t *)b->in[X_ZERO] : 0;
    const float *from = b->in[SCALE];
    char *at = b->scratch;
    int32_t *base = (int32_t *)(void *)(at + st->work_size);
    float *scale = (float *)(void *)(base + n), *slope = scale + n;
    uint8_t *pad = (uint8_t *)(slope + n);
    const oct_int8_io io = {
        .x = b->in[X], .y = b->out[0], .scratch = at, .base = base, .pad_pixel = pad};
    oct_int8_epilogue epilogue = st->epilogue;

    memset(pad, zero, (size_t)c_in);
    for (int64_t o = 0; o < n; o++) {
        base[o] =
            (int32_t)((uint32_t)st->conv.base[o] - (uint32_t)zero * (uint32_t)st->conv.sum[o]);
        scale[o] = !from || o >= st->conv.c_out ? 1 : from[st->n_scales > 1 ? o : 0];
        slope[o] = st->slope * scale[o];
    }
    if (from) {
        epilogue.scale = scale;
        epilogue.slope = slope;
    }
    oct_int8_conv_run(&st->conv, &epilogue, &io, b->n_threads);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_dynamic_conv = {
    .name = "int8-dynamic-conv",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
