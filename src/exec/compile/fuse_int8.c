/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer steps. Where an operand is produced by a DequantizeLinear, the step reads its codes;
 * where the only consumer is a QuantizeLinear, the step writes codes. A group becomes an integer
 * step only if an integer kernel accepts it; all else stays float, with DequantizeLinear and
 * QuantizeLinear as steps of their own.
 */
#include "exec/compile/fuse.h"
#include "op/op.h"

/* Can a step read these codes? They are stored by a step, or are constant at this point. */
static bool can_read(const oct_fuser *f, const oct_value *codes)
{
    if (codes->data) return true;
    if (codes->producer && f->taken[codes->producer->id]) return false;
    return !oct_fuser_is_constant(f, codes);
}

/* The codes that a DequantizeLinear converts to v; NULL: v is produced by another operator. */
static const oct_value *dequantized_codes(const oct_fuser *f, const oct_value *v, oct_codes *c)
{
    const oct_node *n = v->producer;

    return n && n->graph == v->graph && oct_node_is_dequantize(n) && oct_codes_of(n, c) &&
                   can_read(f, n->in[0])
               ? n->in[0]
               : NULL;
}

/* The codes of a weight; it may carry a factor for each input channel: Mul(DequantizeLinear(w),
 * factor). */
static const oct_value *dequantized_weights(const oct_fuser *f, const oct_value *v, oct_codes *c,
                                            const oct_tensor **factor)
{
    const oct_node *mul = v->producer;

    if (!oct_node_is(mul, &oct_op_mul) || mul->graph != v->graph) return dequantized_codes(f, v, c);
    for (int i = 0; i < 2; i++) {
        const oct_value *w = mul->in[i] ? dequantized_codes(f, mul->in[i], c) : NULL;

        *factor = oct_node_const(mul, 1 - i);
        if (w && w->data && *factor && (*factor)->type.dtype == OCT_DTYPE_F32) return w;
    }
    *factor = NULL;
    return NULL;
}

/* --- a step for a group --- */

typedef struct draft {
    oct_step step;
    oct_integer integer;
    bool is_early; /* an operand becomes a constant later, so kernels cannot be asked yet */
} draft;

static oct_status operand(const oct_fuser *f, draft *d, int32_t i, const oct_value *v,
                          bool is_weight)
{
    const oct_tensor *factor = NULL;
    const oct_value *codes = is_weight ? dequantized_weights(f, v, &d->integer.in[i], &factor)
                                       : dequantized_codes(f, v, &d->integer.in[i]);

    if (!codes) d->integer.in[i] = (oct_codes){0};
    if (codes && factor) d->integer.factor = factor;
    if (!codes && !v->data && oct_fuser_is_constant(f, v)) d->is_early = true;
    return oct_fuser_slot(f->p, codes ? codes : v, &d->step.in[i]);
}

static oct_status draft_new(oct_plan *p, const oct_group *g, int32_t n_in, draft **out)
{
    draft *d = oct_plan_alloc(p, 1, sizeof(*d));

    if (!d) return OCT_ERR_MEMORY;
    d->step = (oct_step){.node = g->anchor,
                         .last = g->last,
                         .fuse = g->fuse,
                         .integer = &d->integer,
                         .layout = OCT_LAYOUT_PLAIN,
                         .n_in = n_in,
                         .n_out = 1};
    d->step.in = oct_plan_alloc(p, (size_t)n_in + 1, sizeof(int32_t));
    d->step.out = oct_plan_alloc(p, 1, sizeof(int32_t));
    d->step.label = oct_group_label(p, g);
    d->integer.in = oct_plan_alloc(p, (size_t)n_in + 1, sizeof(oct_codes));
    if (!d->step.in || !d->step.out || !d->step.label || !d->integer.in) return OCT_ERR_MEMORY;
    d->step.macs = g->anchor->op->macs ? OCT_MAX(g->anchor->op->macs(g->anchor), 0) : 0;
    if (oct_node_is_quantize(g->last)) oct_codes_of(g->last, &d->integer.out);
    *out = d;
    return oct_fuser_slot(p, g->last->out[0], &d->step.out[0]);
}

static oct_status draft_step(const oct_fuser *f, const oct_group *g, draft **out)
{
    const oct_node *n = g->anchor;
    const bool alone = oct_node_is_quantize(n) || oct_node_is_dequantize(n);
    const int32_t n_operands = alone ? 1 : n->n_in;
    draft *d;

    OCT_TRY(draft_new(f->p, g, n_operands + (g->residual ? 1 : 0), &d));
    for (int32_t i = 0; i < n_operands; i++) {
        d->step.in[i] = -1;
        if (n->in[i]) OCT_TRY(operand(f, d, i, n->in[i], i == 1 && n->op->weights.takes_factor));
    }
    if (oct_node_is_dequantize(n)) oct_codes_of(n, &d->integer.in[0]);
    if (g->residual) {
        d->step.fuse.residual = n_operands;
        OCT_TRY(operand(f, d, n_operands, g->residual, false));
    }
    *out = d;
    return OCT_OK;
}

static bool is_accepted(const oct_plan *p, const draft *d)
{
    const oct_kernel *k;
    oct_layout layout = OCT_LAYOUT_PLAIN;

    for (int i = 0; !d->is_early && (k = oct_kernel_at(i)); i++)
        if ((k->flags & OCT_KERNEL_INTEGER) && k->accepts(p, &d->step, &layout)) return true;
    return false;
}

/* Fuses the QuantizeLinear that is the group's only consumer; false: there is none. */
static bool end_in_codes(const oct_fuser *f, oct_group *g)
{
    const oct_node *q = oct_fuser_only_user(f, g->last->out[0]);
    oct_codes c;

    return q && oct_node_is_quantize(q) && q->in[0] == g->last->out[0] && oct_codes_of(q, &c) &&
           oct_group_add(g, q);
}

static oct_status try_group(oct_fuser *f, const oct_group *g, oct_group **out)
{
    draft *d;
    oct_group *copy;

    OCT_TRY(draft_step(f, g, &d));
    if (!is_accepted(f->p, d)) return OCT_OK;
    if (!(copy = oct_plan_alloc(f->p, 1, sizeof(*copy)))) return OCT_ERR_MEMORY;
    *copy = *g;
    copy->step = &d->step;
    *out = copy;
    return OCT_OK;
}

/* [N, C, ..] to [N, C, pixels] */
static bool flattens(const oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    return n->op == &oct_op_reshape && x->rank == 4 && y->rank == 3 && x->dim[0] == y->dim[0] &&
           x->dim[1] == y->dim[1];
}

/* Are there only Concats between v and an output of the network? Then NCHW is needed there. */
static bool feeds_output(const oct_fuser *f, const oct_value *v)
{
    for (;;) {
        const oct_node *u = oct_fuser_only_user(f, v);

        if (!u) return v->is_output && v->n_users == 0;
        if (u->op != &oct_op_concat) return false;
        v = u->out[0];
    }
}

/* The same group with an NCHW result. */
static oct_status try_nchw_out(oct_fuser *f, const oct_group *g, oct_group **out)
{
    const oct_node *view = oct_fuser_only_user(f, g->last->out[0]);
    oct_layout layout;
    oct_group nchw = *g;
    oct_group *made = NULL;
    draft *d;

    if (g->anchor->op != &oct_op_conv || oct_node_is_quantize(g->last)) return OCT_OK;
    nchw.fuse.nchw_out = true;
    if (view && flattens(view)) oct_group_add(&nchw, view);
    if (!feeds_output(f, nchw.last->out[0])) return OCT_OK;
    OCT_TRY(draft_step(f, &nchw, &d));
    if (d->is_early || !oct_kernel_int8_conv1x1_nchw.accepts(f->p, &d->step, &layout))
        return OCT_OK;
    if (!(made = oct_plan_alloc(f->p, 1, sizeof(*made)))) return OCT_ERR_MEMORY;
    *made = nchw;
    made->step = &d->step;
    *out = made;
    return OCT_OK;
}

/* Tries the largest group first: all that follows, with codes as result; the same with floats;
 * the anchor alone. */
static oct_status try_anchor(oct_fuser *f, const oct_node *n, oct_group **out)
{
    const oct_group alone = {.anchor = n, .last = n, .fuse = {.residual = -1}};
    oct_group grown = alone, ended;

    oct_group_grow(f, &grown);
    ended = grown;
    if (end_in_codes(f, &ended)) OCT_TRY(try_group(f, &ended, out));
    if (!*out) OCT_TRY(try_nchw_out(f, &grown, out));
    if (!*out) OCT_TRY(try_group(f, &grown, out));
    if (!*out && grown.last != n) {
        ended = alone;
        if (end_in_codes(f, &ended)) OCT_TRY(try_group(f, &ended, out));
        if (!*out) OCT_TRY(try_group(f, &alone, out));
    }
    return OCT_OK;
}

/* --- functions of one operand --- */

/* Is it an elementwise function of one operand, all others being scalar constants? *x: that
 * operand. */
static bool is_function(const oct_node *n, const oct_value *v, int32_t *x)
{
    int32_t found = -1;

    if (!(n->op->flags & OCT_OP_ELEMENTWISE) || n->n_out != 1 || !n->out[0]) return false;
    if (n->op->flags & OCT_OP_RANDOM) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *in = n->in[i];

        if (!in) continue;
        if (in->data ? oct_tensor_len(in->data) != 1 : found >= 0 || (v && in != v)) return false;
        if (!in->data) found = i;
    }
    *x = found;
    return found >= 0 && n->out[0]->type.dtype == OCT_DTYPE_F32 &&
           oct_type_equal(&n->out[0]->type, &n->in[found]->type);
}

static oct_status try_function(oct_fuser *f, const oct_node *n, oct_group **out)
{
    oct_group g = {.anchor = n, .last = n, .fuse = {.residual = -1}};
    const oct_node *u, *end;
    oct_codes c;
    int32_t x, k;
    draft *d;

    if (!is_function(n, NULL, &x) || !dequantized_codes(f, n->in[x], &c)) return OCT_OK;
    while ((u = oct_fuser_only_user(f, g.last->out[0])) && is_function(u, g.last->out[0], &k))
        if (g.n_inner + 2 >= OCT_GROUP_NODES || !oct_group_add(&g, u)) break;
    end = g.last;
    end_in_codes(f, &g);
    OCT_TRY(draft_new(f->p, &g, 1, &d));
    OCT_TRY(operand(f, d, 0, n->in[x], false));
    d->integer.chain = oct_plan_alloc(f->p, OCT_GROUP_NODES, sizeof(*d->integer.chain));
    if (!d->integer.chain) return OCT_ERR_MEMORY;
    for (int i = 0; i < g.n_inner && g.inner[i] != end; i++)
        d->integer.chain[d->integer.n_chain++] = g.inner[i];
    d->integer.chain[d->integer.n_chain++] = end;
    if (!is_accepted(f->p, d)) return OCT_OK;
    if (!(*out = oct_plan_alloc(f->p, 1, sizeof(**out)))) return OCT_ERR_MEMORY;
    **out = g;
    (*out)->step = &d->step;
    return OCT_OK;
}

oct_status oct_fuser_integer(oct_fuser *f, const oct_node *n, oct_group **g)
{
    bool on_codes = oct_node_is_quantize(n) || oct_node_is_dequantize(n);
    oct_codes c;

    *g = NULL;
    for (int32_t i = 0; i < n->n_in && !on_codes; i++)
        on_codes = n->in[i] && dequantized_codes(f, n->in[i], &c);
    if (!on_codes || n->n_out != 1 || !n->out[0]) return OCT_OK;
    OCT_TRY(try_function(f, n, g));
    if (*g) return OCT_OK;
    if (!oct_node_is_quantize(n) && !oct_node_is_dequantize(n)) return try_anchor(f, n, g);
    if (!oct_codes_of(n, &c)) return OCT_OK;
    return try_group(f, &(oct_group){.anchor = n, .last = n, .fuse = {.residual = -1}}, g);
}
