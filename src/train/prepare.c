/* SPDX-License-Identifier: Apache-2.0 */
/* From a network as it is in a file to the forward part of training: see prepare.h. */
#include "train/prepare.h"

#include <string.h>

#include "op/act.h"
#include "op/grad/fake_quant.h"
#include "op/grad/rules.h"
#include "pass/pass.h"

/* Operators spelt out in smaller ones become one node: it has one gradient, and a fast one. */
#define PASSES                                                                                     \
    "find-silu,find-hard-swish,find-hard-sigmoid,find-gelu,find-layer-norm,find-rms-norm,drop-"    \
    "copies"

/* --- parameters --- */

/* Rows whose operand 1 is a factor for each channel and operand 2 is added. */
static bool is_norm(const oct_op *op)
{
    static const oct_op *const norms[] = {
        &oct_op_batch_normalization, &oct_op_layer_normalization, &oct_op_group_normalization,
        &oct_op_instance_normalization, &oct_op_rms_normalization};

    for (size_t i = 0; i < OCT_COUNT(norms); i++)
        if (op == norms[i]) return true;
    return false;
}

/*
 * Other float constants are trained if they are named as the parameter of a module, "neck.alpha":
 * constants of formulas are named after nodes ("/neck/Constant_output_0"), or not at all.
 */
static bool has_module_name(const oct_value *v)
{
    return v->name[0] != '/' && strchr(v->name, '.') && !strstr(v->name, "Constant");
}

/* The expectation over the bins of a box's side (DFL) is spelt as a layer with one filter, whose
 * weights are the bins: 0, 1, 2 .. It is a formula. */
static bool is_expectation(const oct_node *n, const oct_tensor *w)
{
    const int64_t len = oct_tensor_len(w);
    oct_weight_axes axes;

    if (!n->op->weights.axes(n, &w->type, &axes) || w->type.dim[axes.out] != 1 || len < 2)
        return false;
    for (int64_t i = 0; i < len; i++)
        if (oct_tensor_get_f64(w, i) != (double)i) return false;
    return true;
}

/* float64 is for judging gradients with reference kernels. */
static bool is_float(const oct_tensor *t)
{
    return t->type.dtype == OCT_DTYPE_F32 || t->type.dtype == OCT_DTYPE_F64;
}

/* Of fake quantization: the constant that is rounded, and what it is rounded with. */
static bool find_fake_kind(const oct_node *n, int32_t i, oct_param_kind *kind)
{
    static const oct_param_kind kinds[] = {[OCT_FAKE_ACT] = OCT_PARAM_OTHER,
                                           [OCT_FAKE_WEIGHT] = OCT_PARAM_WEIGHT,
                                           [OCT_FAKE_BIAS] = OCT_PARAM_BIAS};
    oct_fake_attrs a;

    oct_fake_read(n, &a);
    *kind = i == 0 ? kinds[a.role] : i == 1 ? OCT_PARAM_STEP_SIZE : OCT_PARAM_ZERO_POINT;
    if (i == 0) return a.role != OCT_FAKE_ACT;
    return (a.learns & (i == 1 ? OCT_FAKE_LEARNS_STEP : OCT_FAKE_LEARNS_ZERO)) != 0;
}

/* A weight times what is folded into it, on its way to be rounded. */
static bool is_folded(const oct_node *n)
{
    const oct_value *y = n->out[0];
    oct_fake_attrs a;

    if (!oct_node_is(n, &oct_op_mul) || y->n_users != 1) return false;
    if (!oct_node_is(y->users[0], &oct_op_fake_quant)) return false;
    oct_fake_read(y->users[0], &a);
    return a.role == OCT_FAKE_WEIGHT;
}

/* What operand i of a node is, if training changes it. */
static bool find_kind(const oct_node *n, int32_t i, oct_param_kind *kind)
{
    const oct_value *v = n->in[i];
    const bool is_layer = n->op->weights.axes != NULL;

    if (!v || !v->data || !is_float(v->data)) return false;
    if (oct_node_is(n, &oct_op_fake_quant)) return find_fake_kind(n, i, kind);
    if (is_folded(n)) {
        *kind = OCT_PARAM_WEIGHT;
        return i == 0;
    }
    if (is_norm(n->op) && i >= 1) {
        *kind = i == 1 ? OCT_PARAM_NORM_SCALE : OCT_PARAM_NORM_BIAS;
        return i <= 2;
    }
    if (is_layer && (i == 1 || i == 2)) {
        *kind = i == 1 ? OCT_PARAM_WEIGHT : OCT_PARAM_BIAS;
        return i == 2 || (v->type.rank >= 2 && !is_expectation(n, v->data));
    }
    *kind = OCT_PARAM_OTHER;
    if (oct_node_is(n, &oct_op_p_relu)) return i == 1;
    if (!has_module_name(v)) return false;
    if (v->type.rank == 1 && oct_node_is(n, &oct_op_add)) *kind = OCT_PARAM_BIAS; /* of a MatMul */
    return true;
}

static oct_status find_params(oct_graph *g, oct_train_prepared *out)
{
    size_t n_most = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        n_most += (size_t)n->n_in;
    out->params = oct_arena_array(g->arena, n_most + 1, sizeof(*out->params));
    if (!out->params) return OCT_ERR_MEMORY;
    for (const oct_node *n = g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_in; i++) {
            oct_param_kind kind;

            if (!find_kind(n, i, &kind)) continue;
            out->params[out->n_params++] = (oct_train_param){n->in[i], kind, n};
            oct_value_to_param(n->in[i], false); /* a second consumer does not find it again */
        }
    return OCT_OK;
}

/* --- normalization with the statistics of the batch --- */

/* Its operands were constant, and nothing reads the statistics that it may give (a network that was
 * written in training mode). */
static bool is_trainable_norm(const oct_node *n)
{
    if (!oct_node_is(n, &oct_op_batch_normalization) || n->in[0]->type.rank < 2) return false;
    for (int32_t i = 1; i < n->n_in; i++)
        if (!n->in[i] || !oct_value_known(n->in[i])) return false;
    for (int32_t i = 1; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_users || n->out[i]->is_output)) return false;
    return true;
}

/* The activation that is the only consumer of v; NULL: there is none. */
static oct_node *activation_after(const oct_value *v, oct_act *act)
{
    if (v->is_output || v->n_users != 1 || !oct_act_of(v->users[0], act)) return NULL;
    return v->users[0]->in[0] == v ? v->users[0] : NULL;
}

static void set_attributes(oct_builder *b, oct_node *to, const oct_node *norm, const oct_act *act,
                           double momentum)
{
    oct_emit_attrs_of(b, to, norm);
    if (momentum > 0) oct_emit_f32(b, to, "momentum", (float)momentum);
    oct_emit_int(b, to, "act", (int64_t)act->kind);
    oct_emit_f32(b, to, "act_a", act->a);
    oct_emit_f32(b, to, "act_b", act->b);
}

/* Statistics of two norms that share them are moved by the first. */
static void add_stat(oct_train_prepared *out, oct_value *v, oct_value *next)
{
    if (v->initial) return;
    oct_value_to_param(v, true);
    out->stats[out->n_stats++] = (oct_train_stat){v, next};
}

static oct_status replace_norm(oct_graph *g, oct_node *n, double momentum, oct_train_prepared *out)
{
    oct_act act = {.kind = OCT_ACT_NONE};
    oct_node *after = activation_after(n->out[0], &act), *t;
    oct_builder b = {.g = g, .before = n, .prefix = n->name};

    t = oct_emit_node(&b, &oct_op_batch_norm_train, n->in, 5, 5);
    OCT_TRY(b.status);
    set_attributes(&b, t, n, &act, momentum);
    (void)oct_emitted(&b, t);
    OCT_TRY(b.status);
    OCT_TRY(oct_value_replace_uses(after ? after->out[0] : n->out[0], t->out[0]));
    if (after) oct_node_remove(after);
    add_stat(out, n->in[3], t->out[1]);
    add_stat(out, n->in[4], t->out[2]);
    oct_node_remove(n);
    return OCT_OK;
}

static bool is_frozen(const oct_train_prepare_options *o, const oct_node *n)
{
    return o->freeze_statistics || (o->frozen && n->id < o->n_frozen && o->frozen[n->id]);
}

static oct_status replace_norms(oct_graph *g, const oct_train_prepare_options *o,
                                oct_train_prepared *out)
{
    out->stats = oct_arena_array(g->arena, 2 * (size_t)g->n_nodes + 1, sizeof(*out->stats));
    if (!out->stats) return OCT_ERR_MEMORY;
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_act act;

        next = n->next;
        if (!is_trainable_norm(n) || is_frozen(o, n)) continue;
        if (next && next == activation_after(n->out[0], &act)) next = next->next; /* it goes, too */
        OCT_TRY(replace_norm(g, n, o->norm_momentum, out));
    }
    return OCT_OK;
}

/* Consumers may be other nodes now. */
static void find_consumers(oct_train_prepared *out)
{
    for (int32_t i = 0; i < out->n_params; i++)
        out->params[i].node = out->params[i].value->n_users ? out->params[i].value->users[0] : NULL;
}

oct_status oct_train_prepare(oct_graph *g, const oct_train_prepare_options *o,
                             oct_train_prepared *out)
{
    *out = (oct_train_prepared){0};
    OCT_TRY(find_params(g, out));
    OCT_TRY(oct_pipeline_run(g, "execute", PASSES, NULL));
    OCT_TRY(replace_norms(g, o, out));
    find_consumers(out);
    return OCT_OK;
}
