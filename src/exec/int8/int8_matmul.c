/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm of u8 codes with constant s8 weights: a 1x1 convolution of one row of pixels. */
#include "exec/int8/int8_weights.h"
#include "op/op.h"

enum { X = OCT_WEIGHTED_X, W = OCT_WEIGHTED_W, B = OCT_WEIGHTED_B };

typedef struct state {
    oct_int8_conv conv;
    oct_int8_epilogue epilogue;
} state;

static bool attr_is(const oct_node *n, const char *name, double want)
{
    const oct_attr *a = oct_node_attr(n, name);

    if (!a) return true;
    return (a->kind == OCT_ATTR_F32 ? (double)a->f : (double)a->i) == want;
}

/* Rows of x, length of the reduction, and the layout of the weights; false: not such a product. */
static bool find_shape(const oct_plan *p, const oct_step *s, int64_t *m, oct_int8_shape *w)
{
    const oct_type *x = &p->slots[s->in[X]].type, *t = &p->slots[s->in[W]].type;
    const bool transposed = s->node->op == &oct_op_gemm && !attr_is(s->node, "transB", 0);
    int64_t k;

    if (s->node->op == &oct_op_gemm &&
        (!attr_is(s->node, "alpha", 1) || !attr_is(s->node, "beta", 1) ||
         !attr_is(s->node, "transA", 0)))
        return false;
    if (t->rank != 2 || x->rank < 2) return false;
    k = x->dim[x->rank - 1];
    *m = oct_type_span(x, 0, x->rank - 1);
    *w = (oct_int8_shape){.filters = t->dim[transposed ? 0 : 1], .channels = k, .taps = 1};
    w->group_filters = w->filters;
    w->o = transposed ? k : 1;
    w->c = transposed ? 1 : w->filters;
    w->axis = transposed ? 0 : 1;
    return *m > 0 && k > 0 && w->filters > 0 && t->dim[transposed ? 1 : 0] == k;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_int8_conv c;
    oct_int8_shape w;
    int64_t m;
    bool wide;

    if (!s->integer || !s->node || s->integer->n_chain) return false;
    if (s->node->op != &oct_op_mat_mul && s->node->op != &oct_op_gemm) return false;
    if (s->fuse.residual >= 0 || !oct_step_in_u8(p, s, X) || !oct_step_const(p, s, W)) return false;
    if (s->integer->in[X].n != 1 || !oct_step_out_u8_or_f32(p, s)) return false;
    if (oct_step_out_is_codes(s) && s->integer->out.n != 1) return false;
    if (!find_shape(p, s, &m, &w)) return false;
    *layout = OCT_LAYOUT_PLAIN;
    c = oct_int8_product(m, w.channels, &w);
    if (oct_int8_conv_size(oct_int8_get(), &c) == 0) return false;
    return oct_int8_weights_fit(p, s, &w, &wide) && !wide;
}

static oct_status pack(oct_plan *p, oct_step *s, const oct_int8_shape *w, const int8_t *data,
                       state *st)
{
    oct_int8_codes x;
    oct_int8_accumulators acc;
    oct_int8_epilogue_spec spec = {
        .c = w->filters, .act = {s->fuse.act[0], s->fuse.act[1]}, .out = OCT_INT8_F32};
    oct_int8_weights weights = {.w = data, .o = w->o, .c = w->c, .t = w->t, .n_zero = 1};

    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[X], &x));
    OCT_TRY(oct_int8_weights_accumulators(p, s, w, &acc));
    weights.x_zero = x.zero;
    weights.bias = acc.bias;
    OCT_TRY(oct_int8_weights_pack(p, s, &weights, &st->conv));
    spec.scale = acc.scale;
    spec.bias = acc.bias_f32;
    if (oct_step_out_is_codes(s)) {
        spec.out = OCT_INT8_U8;
        OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &spec.y));
    }
    OCT_TRY(oct_int8_epilogue_make(p, &spec, &st->epilogue));
    s->scratch_size = st->conv.scratch_size * (size_t)p->n_threads;
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_int8_bytes plain;
    oct_int8_shape w;
    oct_status status;
    int64_t m;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_shape(p, s, &m, &w)) return oct_node_fail(s->node, OCT_ERR_STATE, "is no product");
    st->conv = oct_int8_product(m, w.channels, &w);
    OCT_TRY(oct_int8_weights_read(p, s, &w, &plain));
    status = pack(p, s, &w, plain.w, st);
    oct_free(p->ctx, plain.own);
    if (status) return status;
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 matmul:%s", oct_int8_get()->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const oct_int8_io io = {.x = b->in[X], .y = b->out[0], .scratch = b->scratch};

    oct_int8_conv_run(&st->conv, &st->epilogue, &io, b->n_threads);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_matmul = {
    .name = "int8-matmul",
    .flags = OCT_KERNEL_INTEGER,
    .accepts = accepts,
    .make = make,
    .run = run,
};
