/* SPDX-License-Identifier: Apache-2.0 */
/* A block that learns: see block_net.h. */
#include "quant/learn/block_net.h"

#include <string.h>

#include "exec/run.h"
#include "grad/grad.h"
#include "op/grad/fake_quant.h"
#include "op/grad/rules.h"
#include "op/op.h"
#include "op/quant.h"
#include "quant/learn/objects.h"
#include "quant/lower/lower.h"
#include "quant/solve/solve.h"

enum { OUT_LOSS, OUT_GRADS };

typedef struct maker {
    oct_block_net *net;
    const oct_qmap *m;
    oct_graph *g;
    oct_builder b;
    oct_value **learned; /* one for each parameter */
    oct_value *loss;
    bool scales;       /* of activations are learned */
    uint8_t *is_score; /* by point: its range is that of the least error of scores, not of logits */
} maker;

/* --- inputs that are learned --- */

static oct_status add_param(maker *k, const char *name, const oct_type *type, oct_param_kind kind,
                            oct_value **v, int32_t *param)
{
    oct_params *p = &k->net->params;

    if (!name || !(*v = oct_value_new(k->g, name, type))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_graph_add_input(k->g, *v));
    k->learned[ *param = p->n] = *v;
    return oct_params_add(p, name, oct_type_len(type), kind);
}

/* --- activations --- */

static bool is_computed_here(const maker *k, const oct_value *v)
{
    const oct_block *b = k->net->block;

    for (int32_t i = 0; i < b->n_nodes; i++)
        if (v->producer && v->producer->id == b->nodes[i]->id) return true;
    return false;
}

/* The point whose scale this pair has and this block may change, or -1. */
static int32_t own_scale(const maker *k, const oct_node *q)
{
    const oct_qmap *m = k->m;
    const oct_value *v = q->in[0];
    const int32_t at = k->scales && v->id < m->g->root->n_value_ids ? m->of_value[v->id] : -1;
    const int32_t root = at >= 0 ? oct_qmap_root_index(m, at) : -1;
    const float *scale = oct_node_const(q, 1)->data;
    int32_t low, high, type_low, type_high;

    if (root < 0 || m->points[root].state != OCT_QSTATE_ACTIVE || m->points[root].n != 1) return -1;
    if (m->points[root].role != OCT_QROLE_ACT || m->points[root].scale[0] != scale[0]) return -1;
    oct_qspec_limits(&m->points[root].spec, &low, &high);
    oct_quant_limits(q->out[0]->type.dtype, &type_low, &type_high);
    if (low != type_low || high != type_high) return -1; /* a Clip has the scale, too */
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->state == OCT_QSTATE_OFF || p->role != OCT_QROLE_ACT ||
            oct_qmap_root_index(m, i) != root)
            continue;
        if (p->node || k->is_score[i] || !is_computed_here(k, p->value)) return -1;
    }
    return root;
}

/* The operand "step" of a point: an input of the net. */
static oct_status learn_scale(maker *k, int32_t point, oct_value **step, oct_step_kind *kind)
{
    oct_block_net *net = k->net;
    const int64_t one = 1;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &one);
    oct_block_scale *s;

    for (int32_t i = 0; i < net->n_scales; i++)
        if (net->scales[i].point == point) {
            *step = k->learned[net->scales[i].param];
            *kind = net->scales[i].kind;
            return OCT_OK;
        }
    s = &net->scales[net->n_scales++];
    s->point = point;
    *kind = s->kind = k->m->points[point].spec.is_pow2 ? OCT_STEP_LOG2_WHOLE : OCT_STEP_LOG2;
    return add_param(k, oct_arena_printf(k->g->arena, "scale%d.learned", (int)point), &type,
                     OCT_PARAM_STEP_SIZE, step, &s->param);
}

/* A constant of numbers of any type, as floats. */
static oct_value *as_floats(maker *k, const oct_tensor *t)
{
    oct_tensor *f = NULL;

    if ((k->b.status = oct_tensor_cast(k->net->ctx, t, OCT_DTYPE_F32, &f))) return NULL;
    return oct_value_const(k->g, NULL, f);
}

static oct_status replace_pair(maker *k, oct_node *q, oct_node *dq)
{
    const oct_tensor *scale = oct_node_const(q, 1), *zero = oct_node_const(q, 2);
    oct_fake_attrs a = {.axis = -1, .kind = OCT_STEP_SCALE, .role = OCT_FAKE_ACT, .grad_scale = 1};
    oct_value *in[3] = {q->in[0], NULL, NULL};
    int32_t low, high, point;
    oct_node *f;

    if (!scale) return oct_node_fail(q, OCT_ERR_STATE, "its scale is not constant");
    oct_quant_limits(q->out[0]->type.dtype, &low, &high);
    a.low = low;
    a.high = high;
    if (oct_tensor_len(scale) > 1) a.axis = (int)oct_node_attr(q, "axis")->i;
    if (a.axis < -1) a.axis += q->in[0]->type.rank;
    k->b.before = dq;
    if ((point = own_scale(k, q)) >= 0) {
        OCT_TRY(learn_scale(k, point, &in[1], &a.kind));
        a.learns = OCT_FAKE_LEARNS_STEP;
    } else {
        in[1] = as_floats(k, scale);
    }
    if (zero) in[2] = as_floats(k, zero);
    f = oct_emit_node(&k->b, &oct_op_fake_quant, in, zero ? 3 : 2, 1);
    oct_fake_write(&k->b, f, &a);
    (void)oct_emitted(&k->b, f);
    k->b.before = NULL;
    OCT_TRY(k->b.status);
    return oct_value_replace_uses(dq->out[0], f->out[0]);
}

static oct_status replace_pairs(maker *k)
{
    for (oct_node *n = k->g->first, *next; n; n = next) {
        oct_node *q = n->n_in > 0 && n->in[0] ? n->in[0]->producer : NULL;

        next = n->next;
        if (oct_node_is(n, &oct_op_dequantize_linear) && q &&
            oct_node_is(q, &oct_op_quantize_linear))
            OCT_TRY(replace_pair(k, q, n));
    }
    return OCT_OK;
}

/* --- weights and biases --- */

bool oct_block_learns_weight(const oct_qpoint *p, const oct_value *v)
{
    if (!v->data || v->n_users != 1 || v->is_output || v->type.dtype != OCT_DTYPE_F32) return false;
    for (int64_t i = 0; i < p->n; i++)
        if (p->zero[i] != 0) return false;
    return p->n > 0;
}

/* Operand i of the node becomes an input that is learned. */
static oct_status take(maker *k, oct_node *n, int32_t i, const oct_type *type, oct_param_kind kind,
                       int32_t *param)
{
    const char *name =
        oct_arena_printf(k->g->arena, "%s.learned%d", n->name, (int)i); /* unique: nodes are */
    oct_value *v = NULL;

    OCT_TRY(add_param(k, name, type, kind, &v, param));
    return oct_node_set_input(n, i, v);
}

static oct_status take_layer(maker *k, const oct_node *from, oct_node *n)
{
    oct_block_layer *l = &k->net->layers[k->net->n_layers];
    const oct_qpoint *p = &k->m->points[oct_qmap_at(k->m, from, 1)];
    const oct_qshift *s = oct_qmap_shift_of(k->m, from);
    const oct_tensor *bias = oct_node_const(from, 2);

    *l = (oct_block_layer){.node = from, .weight = -1, .bias = -1, .point = p};
    if (!oct_block_learns_weight(p, from->in[1])) return OCT_OK;
    k->net->n_layers++;
    OCT_TRY(take(k, n, 1, &from->in[1]->type, OCT_PARAM_WEIGHT, &l->weight));
    if (n->n_in < 3 || !n->in[2] || n->in[2]->type.rank != 1) return OCT_OK;
    if (oct_node_in(from, 2) && !bias) return OCT_OK;
    if (bias && (bias->type.dtype != OCT_DTYPE_F32 || from->in[2]->n_users != 1)) return OCT_OK;
    if (s && s->n != n->in[2]->type.dim[0]) return OCT_OK;
    return take(k, n, 2, &n->in[2]->type, OCT_PARAM_BIAS, &l->bias);
}

static oct_status take_layers(maker *k)
{
    const oct_block *b = k->net->block;

    for (oct_node *n = k->g->first; n; n = n->next)
        for (int32_t i = 0; i < b->n_layers; i++)
            if (b->layers[i]->id == n->id && b->layers[i]->op == n->op)
                OCT_TRY(take_layer(k, b->layers[i], n));
    return oct_params_finish(&k->net->params);
}

static void start_values(maker *k)
{
    oct_block_net *net = k->net;

    for (int32_t i = 0; i < net->n_scales; i++) {
        const oct_block_scale *s = &net->scales[i];

        net->values[net->params.v[s->param].offset] =
            (float)oct_step_of_scale(s->kind, (double)k->m->points[s->point].scale[0]);
    }
    for (int32_t i = 0; i < net->n_layers; i++) {
        const oct_block_layer *l = &net->layers[i];
        const oct_tensor *w = l->node->in[1]->data, *b = oct_node_const(l->node, 2);
        const oct_qshift *s = oct_qmap_shift_of(k->m, l->node);
        float *to = net->values + net->params.v[l->weight].offset;

        memcpy(to, w->data, (size_t)oct_tensor_len(w) * sizeof(float));
        if (l->bias < 0) continue;
        to = net->values + net->params.v[l->bias].offset;
        for (int64_t c = 0; c < net->params.v[l->bias].len; c++)
            to[c] = (b ? ((const float *)b->data)[c] : 0) + (s ? s->shift[c] : 0);
    }
}

/* --- the loss --- */

/* `counts`: what elements count, NULL: all the same. */
static oct_value *mean_square(oct_builder *b, oct_value *x, oct_value *counts)
{
    oct_node *n;
    oct_value *square = oct_emit(b, &oct_op_mul, x, x, NULL);
    oct_value *in[] = {counts ? oct_emit(b, &oct_op_mul, square, counts, NULL) : square};

    n = b->status ? NULL : oct_emit_node(b, &oct_op_reduce_mean, in, 1, 1);
    oct_emit_int(b, n, "keepdims", 0);
    return oct_emitted(b, n);
}

/* An input with what the places of output i count; NULL: it has none. */
static oct_status add_counts(maker *k, int32_t i, oct_value **out)
{
    const oct_type *t = &k->net->block->out[i]->type;
    const char *name = oct_arena_printf(k->g->arena, "counts%d.learned", (int)i);
    oct_type plane = *t;

    if (!oct_objects_places(t)) return OCT_OK;
    plane.dim[1] = 1;
    if (!name || !(*out = oct_value_new(k->g, name, &plane))) return OCT_ERR_MEMORY;
    return oct_graph_add_input(k->g, *out);
}

static oct_status add_loss(maker *k, const double *weight)
{
    const oct_block *b = k->net->block;

    for (int32_t i = 0; i < b->n_out; i++) {
        const char *name = oct_arena_printf(k->g->arena, "target%d.learned", (int)i);
        oct_value *y = k->g->outputs[i], *counts = NULL, *e, *t;

        if (!name || !(t = oct_value_new(k->g, name, &b->out[i]->type))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_graph_add_input(k->g, t));
        OCT_TRY(add_counts(k, i, &counts));
        e = mean_square(&k->b, oct_emit(&k->b, &oct_op_sub, y, t, NULL), counts);
        e = oct_emit(&k->b, &oct_op_mul, e, oct_scalar(&k->b, (float)weight[i]), NULL);
        k->loss = k->loss ? oct_emit(&k->b, &oct_op_add, k->loss, e, NULL) : e;
        OCT_TRY(k->b.status);
    }
    for (int32_t i = 0; i < k->g->n_outputs; i++)
        k->g->outputs[i]->is_output = false;
    k->g->n_outputs = 0;
    return oct_graph_add_output(k->g, k->loss);
}

static oct_status differentiate(maker *k)
{
    const int32_t n = k->net->params.n;
    oct_value **grad = oct_arena_array(k->g->arena, (size_t)n + 1, sizeof(*grad));

    if (!grad) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grad(k->g, k->loss, k->learned, n, grad));
    for (int32_t i = 0; i < n; i++) {
        oct_value *v = oct_emit(&k->b, &oct_op_identity, grad[i], NULL, NULL);

        OCT_TRY(k->b.status);
        OCT_TRY(oct_graph_add_output(k->g, v));
    }
    return OCT_OK;
}

/* --- memory --- */

static oct_status bind(oct_block_net *net, const oct_value *v, float **out)
{
    const size_t size = (size_t)oct_type_len(&v->type) * sizeof(float);

    if (!(*out = oct_calloc(net->ctx, 1, size + sizeof(float)))) return OCT_ERR_MEMORY;
    return oct_run_bind_input(net->run, v->name, *out, size);
}

/* Inputs of the graph: those of the block, the parameters, each target with its counts. */
static oct_status bind_all(maker *k)
{
    oct_block_net *net = k->net;
    const oct_block *b = net->block;
    const oct_params *p = &net->params;

    for (int32_t i = 0; i < b->n_in; i++)
        OCT_TRY(bind(net, k->g->inputs[i], &net->in[i]));
    for (int32_t i = 0; i < p->n; i++)
        OCT_TRY(oct_run_bind_input(net->run, p->v[i].name, net->values + p->v[i].offset,
                                   (size_t)p->v[i].len * sizeof(float)));
    for (int32_t i = 0, at = b->n_in + p->n; i < b->n_out; i++) {
        const int64_t n = oct_objects_places(&b->out[i]->type);

        OCT_TRY(bind(net, k->g->inputs[at++], &net->target[i]));
        if (n) OCT_TRY(bind(net, k->g->inputs[at++], &net->counts[i]));
        for (int64_t c = 0; c < n; c++)
            net->counts[i][c] = 1;
    }
    return OCT_OK;
}

static oct_status make(maker *k, const double *weight)
{
    oct_block_net *net = k->net;
    const oct_block *b = net->block;
    oct_plan_options o;

    net->memory = oct_calloc(net->ctx, (size_t)(b->n_in + 2 * b->n_out) + 1, sizeof(*net->memory));
    net->layers = oct_calloc(net->ctx, (size_t)b->n_layers + 1, sizeof(*net->layers));
    net->scales = oct_calloc(net->ctx, (size_t)k->m->n_points + 1, sizeof(*net->scales));
    k->learned = oct_arena_array(k->g->arena, (size_t)(b->n_layers * 2 + k->m->n_points) + 1,
                                 sizeof(*k->learned));
    if (!net->memory || !net->layers || !net->scales || !k->learned) return OCT_ERR_MEMORY;
    net->in = net->memory;
    net->target = net->memory + b->n_in;
    net->counts = net->target + b->n_out;
    OCT_TRY(replace_pairs(k));
    OCT_TRY(take_layers(k));
    if (!net->n_layers) return OCT_OK;
    if (!(net->values = oct_params_buffer(&net->params))) return OCT_ERR_MEMORY;
    start_values(k);
    OCT_TRY(add_loss(k, weight));
    OCT_TRY(differentiate(k));
    oct_plan_options_init(&o);
    o.simulate = 1; /* weights that are not learned stay codes */
    OCT_TRY(oct_plan_new(k->g, &o, &net->plan));
    OCT_TRY(oct_run_new(net->ctx, net->plan, &net->run));
    return bind_all(k);
}

oct_status oct_block_net_new(const oct_qmap *m, const oct_block *b, const double *weight,
                             bool scales, oct_block_net **out)
{
    oct_graph *lowered = NULL;
    maker k = {.m = m, .scales = scales};
    oct_status st;

    if (!(k.net = oct_calloc(m->ctx, 1, sizeof(*k.net)))) return OCT_ERR_MEMORY;
    k.net->ctx = m->ctx;
    k.net->block = b;
    oct_params_init(&k.net->params, m->ctx);
    st = oct_lower(m, NULL, &lowered);
    if (!st) st = oct_block_extract(lowered, b, &k.g);
    oct_graph_free(lowered);
    k.b.g = k.g;
    if (!st) st = oct_score_points(m, k.g->arena, &k.is_score);
    if (!st) st = make(&k, weight);
    for (int32_t i = 0; i < k.net->params.n; i++)
        k.net->params.v[i].name = NULL; /* of the graph */
    oct_graph_free(k.g);
    if (st)
        oct_block_net_free(k.net);
    else
        *out = k.net;
    return st;
}

void oct_block_net_free(oct_block_net *n)
{
    if (!n) return;
    oct_run_free(n->run);
    oct_plan_free(n->plan);
    for (int32_t i = 0; n->memory && i < n->block->n_in + 2 * n->block->n_out; i++)
        oct_free(n->ctx, n->memory[i]);
    oct_free(n->ctx, n->memory);
    oct_free(n->ctx, n->layers);
    oct_free(n->ctx, n->scales);
    oct_free(n->ctx, n->values);
    oct_params_fini(&n->params);
    oct_free(n->ctx, n);
}

oct_status oct_block_net_step(oct_block_net *n)
{
    return oct_run_execute(n->run);
}

double oct_block_net_loss(const oct_block_net *n)
{
    return (double)((const float *)n->run->outputs[OUT_LOSS]->data)[0];
}

const float *oct_block_net_grad(const oct_block_net *n, int32_t param)
{
    return n->run->outputs[OUT_GRADS + param]->data;
}
