/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes to steps: an anchor (convolution, matrix product, Add) is fused with the activation and the
 * residual Add that consume it, so the values between them are never stored.
 */
#include "exec/compile/fuse.h"
#include "op/conv_geometry.h"
#include "op/op.h"
#include "op/qparams.h"
#include "pass/find/dfl.h"
#include "pass/rewrite.h"

/* What may follow an anchor inside one step of a plan. */
static unsigned takes(const oct_node *n)
{
    return n->op->fuses & OCT_FUSES_ELSEWHERE ? 0 : n->op->fuses;
}

const oct_node *oct_fuser_only_user(const oct_fuser *f, const oct_value *v)
{
    const oct_node *u;

    if (!v || v->n_users != 1 || v->is_output || f->p->is_kept[v->id]) return NULL;
    u = v->users[0];
    if (u->graph != v->graph || f->p->is_dynamic[u->id] || f->taken[u->id]) return NULL;
    return f->group_of[u->id] ? NULL : u;
}

bool oct_group_add(oct_group *g, const oct_node *u)
{
    if (g->n_inner == OCT_GROUP_NODES) return false;
    g->inner[g->n_inner++] = g->last;
    g->last = u;
    return true;
}

static bool take_act(oct_group *g, const oct_node *u, const oct_value *v)
{
    oct_act *slot = g->residual ? &g->fuse.act[1] : &g->fuse.act[0];

    if (u->in[0] != v || slot->kind) return false;
    return oct_act_of(u, slot);
}

/* Mul(x, scalar) whose only consumer is the residual Add: the residual's factor. */
static const oct_value *scaled(const oct_fuser *f, const oct_value *v, float *scale,
                               const oct_node **mul)
{
    const oct_node *n = v->producer;
    const oct_group *own = n ? f->group_of[n->id] : NULL;

    if (!n || n->op != &oct_op_mul || !oct_fuser_only_user(f, v) || f->p->is_dynamic[n->id])
        return v;
    if (f->taken[n->id] || (own && own->anchor != n))
        return v; /* its operand is stored by no
                   * step */
    for (int i = 0; i < 2; i++) {
        const oct_tensor *t = oct_node_const(n, i);
        const oct_value *x = n->in[1 - i];

        if (!t || oct_fuser_is_constant(f, x) || oct_tensor_len(t) != 1 ||
            !oct_type_equal(&x->type, &v->type))
            continue;
        *scale = (float)oct_tensor_get_f64(t, 0);
        *mul = n;
        return x;
    }
    return v;
}

/*
 * oneDNN computes grouped convolutions that are not depthwise. On CPUs without AVX-512, oneDNN 2.6
 * computes them as matrix products and adds a wrong residual to all groups but the first.
 */
static bool is_grouped(const oct_node *conv)
{
    oct_conv_geometry g;

    return !oct_conv_geometry_conv(conv, &conv->in[0]->type, &conv->in[1]->type, &g) &&
           g.group > 1 && !oct_conv_is_depthwise(&g);
}

static bool take_residual(const oct_fuser *f, oct_group *g, const oct_node *u, const oct_value *v)
{
    const oct_value *other;
    const oct_node *mul = NULL;

    if (is_grouped(g->anchor)) return false;
    if (u->op != &oct_op_add || g->residual || u->in[0] == u->in[1]) return false;
    other = u->in[0] == v ? u->in[1] : u->in[0];
    if (oct_fuser_is_constant(f, other) || !oct_type_equal(&other->type, &v->type)) return false;
    if (g->n_inner + 2 > OCT_GROUP_NODES) return false;
    g->fuse.residual_scale = 1.0f;
    g->residual = scaled(f, other, &g->fuse.residual_scale, &mul);
    if (mul) g->inner[g->n_inner++] = mul;
    return true;
}

void oct_group_grow(const oct_fuser *f, oct_group *g)
{
    const unsigned may = takes(g->anchor);
    const oct_value *v = g->last->out[0];
    const oct_node *u;

    while (may && (u = oct_fuser_only_user(f, v)) && v->type.dtype == OCT_DTYPE_F32) {
        if (!((may & OCT_FUSES_ACT) && take_act(g, u, v)) &&
            !((may & OCT_FUSES_RESIDUAL) && take_residual(f, g, u, v)))
            break;
        if (!oct_group_add(g, u)) break;
        v = u->out[0];
    }
}

static bool is_view(const oct_node *n)
{
    return n && n->op == &oct_op_reshape;
}

static bool is_shuffled_type(oct_dtype t)
{
    return t == OCT_DTYPE_F32 || t == OCT_DTYPE_U8 || t == OCT_DTYPE_I8;
}

/* Reshape [N,g,C/g,H,W], Transpose 0,2,1,3,4, Reshape [N,C,H,W]: a channel shuffle. */
static bool find_shuffle_of(const oct_fuser *f, const oct_node *n, oct_group *g)
{
    const oct_type *x, *split;
    const oct_node *t, *back;
    static const int64_t swap[] = {0, 2, 1, 3, 4};

    if (!is_view(n) || oct_fuser_is_constant(f, n->in[0])) return false;
    x = &n->in[0]->type;
    split = &n->out[0]->type;
    t = oct_fuser_only_user(f, n->out[0]);
    if (x->rank != 4 || !is_shuffled_type(x->dtype) || split->rank != 5) return false;
    if (!oct_node_transposes(t, swap, 5)) return false;
    back = oct_fuser_only_user(f, t->out[0]);
    if (!is_view(back) || !oct_type_equal(&back->out[0]->type, x)) return false;
    if (split->dim[0] != x->dim[0] || split->dim[3] != x->dim[2] || split->dim[4] != x->dim[3])
        return false;
    g->inner[g->n_inner++] = n;
    g->inner[g->n_inner++] = t;
    g->last = back;
    g->fuse.shuffle = (int32_t)split->dim[1];
    return true;
}

/* Concat of two halves whose only consumer is a channel shuffle: their channels are interleaved. */
static bool is_pair(const oct_fuser *f, const oct_node *n)
{
    const oct_attr *axis = oct_node_attr(n, "axis");

    return n->op == &oct_op_concat && n->n_in == 2 && axis && (axis->i == 1 || axis->i == -3) &&
           n->in[0]->type.rank == 4 && oct_type_equal(&n->in[0]->type, &n->in[1]->type) &&
           !oct_fuser_is_constant(f, n->in[0]) && !oct_fuser_is_constant(f, n->in[1]);
}

static bool find_shuffle(const oct_fuser *f, const oct_node *n, oct_group *g)
{
    const oct_node *first = is_pair(f, n) ? oct_fuser_only_user(f, n->out[0]) : NULL;
    oct_group inner = *g;

    if (!first) return find_shuffle_of(f, n, g);
    if (!find_shuffle_of(f, first, &inner) || inner.fuse.shuffle != 2) return false;
    inner.inner[inner.n_inner++] = n;
    *g = inner;
    return true;
}

static bool find_dfl(const oct_fuser *f, const oct_node *n, oct_group *g)
{
    oct_dfl m;

    if (!oct_dfl_find(n, &m) || !oct_type_has_channels(&n->in[0]->type)) return false;
    if (oct_fuser_is_constant(f, n->in[0])) return false; /* is in NCHW */
    if (!oct_fuser_only_user(f, n->out[0]) || !oct_fuser_only_user(f, m.transpose->out[0]) ||
        !oct_fuser_only_user(f, m.softmax->out[0]))
        return false;
    g->inner[g->n_inner++] = n;
    g->inner[g->n_inner++] = m.transpose;
    g->inner[g->n_inner++] = m.softmax;
    g->last = m.sum;
    g->fuse.bins = (int32_t)m.bins;
    g->fuse.by_pixel = m.by_pixel;
    return true;
}

/*
 * QuantizeLinear of floats whose codes only a DequantizeLinear with the same parameters reads: a
 * fake quantizer in float. DequantizeLinear followed by QuantizeLinear stays two steps, because the
 * values between them are floats.
 */
static bool find_fake(const oct_fuser *f, const oct_node *n, oct_group *g)
{
    const oct_node *back;
    oct_codes to, from;

    if (!oct_node_is_quantize(n) || !oct_codes_of(n, &to) || to.dtype == OCT_DTYPE_I32 ||
        oct_fuser_is_constant(f, n->in[0]))
        return false;
    back = oct_fuser_only_user(f, n->out[0]);
    if (!back || !oct_node_is_dequantize(back) || back->in[0] != n->out[0] ||
        !oct_codes_of(back, &from))
        return false;
    if (!oct_codes_equal(&to, &from)) return false;
    g->inner[g->n_inner++] = n;
    g->last = back;
    g->fuse.fake = true;
    return true;
}

static oct_status commit(oct_fuser *f, oct_group *g)
{
    for (int i = 0; i < g->n_inner; i++) {
        f->taken[g->inner[i]->id] = 1;
        f->group_of[g->inner[i]->id] = NULL; /* a factor that came first has a step of its own */
    }
    f->group_of[g->last->id] = g;
    return OCT_OK;
}

/* A node without named outputs needs no step. */
static bool makes_something(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) return true;
    return false;
}

static oct_status find_groups(oct_fuser *f)
{
    oct_plan *p = f->p;

    for (const oct_node *n = p->g->first; n; n = n->next) /* all of them first: a group may read
                                                           * the result of a later one */
        f->lazy[n->id] = !p->is_dynamic[n->id] && oct_node_is_lazy(f, n);
    for (const oct_node *n = p->g->first; n; n = n->next) {
        oct_group *g = NULL;

        if (f->taken[n->id] || p->is_dynamic[n->id] || f->group_of[n->id] || f->lazy[n->id] ||
            !makes_something(n))
            continue;
        if (!p->options.simulate) OCT_TRY(oct_fuser_integer(f, n, &g));
        if (!g) OCT_TRY(oct_fuser_dynamic(f, n, &g));
        if (!g) {
            if (!(g = oct_plan_alloc(p, 1, sizeof(*g)))) return OCT_ERR_MEMORY;
            *g = (oct_group){.anchor = n, .last = n, .fuse = {.residual = -1}};
            if (!find_shuffle(f, n, g) && !find_dfl(f, n, g) && !find_fake(f, n, g))
                oct_group_grow(f, g);
        }
        OCT_TRY(commit(f, g));
    }
    return OCT_OK;
}

oct_status oct_fuser_slot(oct_plan *p, const oct_value *v, int32_t *out)
{
    int32_t *home = &p->slot_of[OCT_LAYOUT_PLAIN][v->id];

    if (*home < 0) {
        const oct_slot s = {.value = v,
                            .type = v->type,
                            .layout = OCT_LAYOUT_PLAIN,
                            .data = v->data ? v->data : p->computed[v->id],
                            .parent = -1,
                            .pinned = v->is_input,
                            .is_input = v->is_input};

        OCT_TRY(oct_plan_add_slot(p, &s, home));
    }
    *out = *home;
    return OCT_OK;
}

const char *oct_group_label(oct_plan *p, const oct_group *g)
{
    const char *label = g->fuse.shuffle ? "ChannelShuffle"
                        : g->fuse.fake  ? "FakeQuantize"
                        : g->fuse.bins  ? "Softmax+Conv"
                                        : g->anchor->op->name;

    for (int i = 0; i < 2; i++) {
        if (i && g->residual) label = oct_arena_printf(p->arena, "%s+Add", label);
        if (label && g->fuse.act[i].kind)
            label = oct_arena_printf(p->arena, "%s+%s", label, oct_act_name(g->fuse.act[i].kind));
        if (!label) break;
    }
    return label;
}

static oct_status add_step(oct_plan *p, const oct_group *g)
{
    const oct_node *n = g->anchor;
    oct_step s = {.node = n, .last = g->last, .fuse = g->fuse, .layout = OCT_LAYOUT_PLAIN};

    if (g->step) return oct_plan_add_step(p, g->step, NULL);
    s.n_in = g->fuse.fake ? 1 : n->n_in + (g->residual ? 1 : 0);
    s.n_out = g->last->n_out;
    s.in = oct_plan_alloc(p, (size_t)s.n_in + 1, sizeof(int32_t));
    s.out = oct_plan_alloc(p, (size_t)s.n_out + 1, sizeof(int32_t));
    s.label = oct_group_label(p, g);
    if (!s.in || !s.out || !s.label) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < OCT_MIN(n->n_in, s.n_in); i++) {
        s.in[i] = -1;
        if (n->in[i]) OCT_TRY(oct_fuser_slot(p, n->in[i], &s.in[i]));
    }
    if (g->residual) {
        s.fuse.residual = n->n_in;
        OCT_TRY(oct_fuser_slot(p, g->residual, &s.in[n->n_in]));
    }
    for (int32_t i = 0; i < s.n_out; i++) {
        s.out[i] = -1;
        if (g->last->out[i]) OCT_TRY(oct_fuser_slot(p, g->last->out[i], &s.out[i]));
    }
    s.macs = n->op->macs ? OCT_MAX(n->op->macs(n), 0) : 0;
    return oct_plan_add_step(p, &s, NULL);
}

/* --- which values are read in float --- */

static void mark_operands(oct_fuser *f, const oct_group *g)
{
    const oct_plan *p = f->p;

    for (int32_t i = 0; g->step && i < g->step->n_in; i++)
        if (g->step->in[i] >= 0) f->is_read[p->slots[g->step->in[i]].value->id] = 1;
    if (g->step) return;
    for (int32_t i = 0; i < g->anchor->n_in; i++)
        if (g->anchor->in[i]) f->is_read[g->anchor->in[i]->id] = 1;
    if (g->residual) f->is_read[g->residual->id] = 1;
}

/* Is the value read outside the steps? */
static bool is_read_at_run_time(const oct_plan *p, const oct_value *v)
{
    if (v->is_output || p->is_kept[v->id]) return true;
    for (int32_t i = 0; i < v->n_users; i++)
        if (v->users[i]->graph != v->graph || p->is_dynamic[v->users[i]->id]) return true;
    return false;
}

/* Groups from last to first: a group whose result has no consumer marks none of its operands. */
static oct_status find_wanted(oct_fuser *f)
{
    oct_plan *p = f->p;

    for (const oct_node *n = p->g->last; n; n = n->prev) {
        bool is_read = false;

        for (int32_t i = 0; i < n->n_out && !is_read; i++)
            is_read = n->out[i] && (f->is_read[n->out[i]->id] || is_read_at_run_time(p, n->out[i]));
        if (f->lazy[n->id]) {
            if (n->out[0] && is_read) f->is_read[n->out[0]->id] = 1;
            continue;
        }
        if (!f->group_of[n->id]) continue;
        if (!is_read && oct_node_is_dequantize(n))
            f->group_of[n->id] = NULL;
        else
            mark_operands(f, f->group_of[n->id]);
    }
    return oct_plan_compute_constants(f);
}

static oct_status fuser_init(oct_fuser *f, oct_plan *p)
{
    const size_t n_nodes = (size_t)p->g->n_node_ids + 1;

    f->p = p;
    f->taken = oct_plan_alloc(p, n_nodes, 1);
    f->lazy = oct_plan_alloc(p, n_nodes, 1);
    f->group_of = oct_plan_alloc(p, n_nodes, sizeof(*f->group_of));
    f->is_read = oct_plan_alloc(p, (size_t)p->n_ids + 1, 1);
    p->computed = oct_plan_alloc(p, (size_t)p->n_ids + 1, sizeof(*p->computed));
    return f->taken && f->lazy && f->group_of && f->is_read && p->computed ? OCT_OK
                                                                           : OCT_ERR_MEMORY;
}

oct_status oct_plan_fuse(oct_plan *p)
{
    oct_fuser f = {0};
    int32_t slot;

    OCT_TRY(fuser_init(&f, p));
    for (int32_t i = 0; i < p->g->n_inputs; i++)
        OCT_TRY(oct_fuser_slot(p, p->g->inputs[i], &slot));
    if (!p->options.plain) {
        OCT_TRY(find_groups(&f));
        OCT_TRY(find_wanted(&f));
    }
    for (const oct_node *n = p->g->first; n; n = n->next) {
        const oct_group alone = {.anchor = n, .last = n, .fuse = {.residual = -1}};

        if (p->is_dynamic[n->id] || !makes_something(n)) continue;
        if (f.group_of[n->id])
            OCT_TRY(add_step(p, f.group_of[n->id]));
        else if (p->options.plain)
            OCT_TRY(add_step(p, &alone));
    }
    return OCT_OK;
}
