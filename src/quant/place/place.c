/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed in integers, what in float, and why. */
#include "quant/place/place.h"

#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "pass/find/dfl.h"
#include "pass/rewrite.h"
#include "quant/place/place_parts.h"

/* --- operands --- */

oct_qrole oct_operand_role(const oct_node *n, int32_t i)
{
    const bool is_listed = i < OCT_MAX_IN && n->op->max_in >= 0;
    const oct_qrole role = n->op->quant.in[is_listed ? i : 0];

    if (role == OCT_QROLE_AS_INPUT) return OCT_QROLE_ACT; /* linear Resize: it does compute */
    if (role == OCT_QROLE_WEIGHT && oct_node_is(n, &oct_op_mat_mul) && !oct_node_const(n, i))
        return OCT_QROLE_ACT;
    return role;
}

/* If absent: the default for 1x1, strides of 1 and no padding. */
static bool are_all(const oct_node *n, const char *attr, int64_t x)
{
    const oct_attr *a = oct_node_attr(n, attr);

    for (int64_t i = 0; a && i < a->n; i++)
        if (a->is[i] != x) return false;
    return true;
}

bool oct_node_is_pointwise(const oct_node *n)
{
    const oct_type *x, *w, *y;

    if (!oct_node_is(n, &oct_op_conv) || !oct_node_in(n, 0) || !oct_node_in(n, 1)) return false;
    x = &n->in[0]->type;
    w = &n->in[1]->type;
    y = &n->out[0]->type;
    if (x->rank != 4 || y->rank != 4 || w->rank != 4 || !oct_type_is_static(w)) return false;
    for (int i = 1; i < 4; i++)
        if (x->dim[i] < 1 || y->dim[i] < 1) return false;
    return w->dim[2] == 1 && w->dim[3] == 1 && w->dim[1] == x->dim[1] && are_all(n, "strides", 1) &&
           are_all(n, "pads", 0);
}

/* A Concat of slices of one value: they have one scale already, nothing to requantize. */
static bool has_one_origin(const oct_placer *p, const oct_node *concat)
{
    const oct_value *first = NULL;

    for (int32_t i = 0; i < concat->n_in; i++) {
        const oct_value *v = concat->in[i] ? oct_placer_origin(p, concat->in[i]) : NULL;

        if (!v || (first && v != first)) return false;
        first = v;
    }
    return true;
}

bool oct_placer_moves(const oct_placer *p, const oct_node *n)
{
    if (p->is_requantized && p->is_requantized[n->id]) return false;
    return oct_node_moves_data(n);
}

const oct_value *oct_placer_origin(const oct_placer *p, const oct_value *v)
{
    while (v->producer && oct_placer_moves(p, v->producer) && oct_node_n_data(v->producer) == 1)
        v = v->producer->in[0];
    return v;
}

/* In graph order, so that the Concats upstream of one are known when it is decided. */
static oct_status find_requantized(oct_placer *p)
{
    if (p->t->concat != OCT_CONCAT_REQUANTIZE) return OCT_OK;
    p->is_requantized = oct_arena_alloc(p->a, (size_t)p->g->root->n_node_ids + 1);
    if (!p->is_requantized) return OCT_ERR_MEMORY;
    for (const oct_node *n = p->g->first; n; n = n->next)
        p->is_requantized[n->id] =
            oct_node_is(n, &oct_op_concat) && oct_node_moves_data(n) && !has_one_origin(p, n);
    return OCT_OK;
}

bool oct_placer_reads(const oct_placer *p, const oct_node *n, int32_t i)
{
    const int32_t k = p->groups.of_node[n->id];
    const oct_value *v = n->in[i];

    if (!v || v->data || !p->is_integer[k] || oct_operand_role(n, i) != OCT_QROLE_ACT) return false;
    if (p->groups.item[k].add == n && p->ignored[n->id].text) return false;
    return !v->producer || p->groups.of_node[v->producer->id] != k;
}

/* --- which groups --- */

static int32_t weight_of(const oct_node *n)
{
    for (int32_t i = 0; i < OCT_MIN(n->n_in, OCT_MAX_IN); i++)
        if (oct_operand_role(n, i) == OCT_QROLE_WEIGHT) return i;
    return -1;
}

static bool is_float32(const oct_value *v)
{
    return v && v->type.dtype == OCT_DTYPE_F32;
}

static bool has_activation(const oct_node *n)
{
    for (int32_t i = 0; i < n->op->min_in; i++)
        if (!oct_node_in(n, i)) return false; /* a broken file */
    for (int32_t i = 0; i < n->n_in; i++)
        if (oct_operand_role(n, i) == OCT_QROLE_ACT && is_float32(n->in[i]) && !n->in[i]->data)
            return true;
    return false;
}

static bool is_listed(const oct_placer *p, const oct_node *n)
{
    if (oct_node_is(n, &oct_op_concat)) return p->is_requantized && p->is_requantized[n->id];
    return oct_target_computes(p->t, n->op);
}

/* Why the anchor cannot be computed in integers. */
static oct_float_cause why_not(const oct_placer *p, const oct_node *n, const uint8_t *is_tail)
{
    const int32_t w = weight_of(n);

    if (p->ignored[n->id].text) return p->ignored[n->id];
    if (is_tail[n->id]) return (oct_float_cause){OCT_FLOAT_TAIL, "tail"};
    if (!is_listed(p, n)) return (oct_float_cause){OCT_FLOAT_TARGET, p->not_listed};
    if (w >= 0 && !oct_node_const(n, w))
        return (oct_float_cause){OCT_FLOAT_WEIGHTS, "weights are not constant"};
    if (w >= 0 && !is_float32(n->in[w]))
        return (oct_float_cause){OCT_FLOAT_WEIGHTS, "weights are not float32"};
    if (oct_node_is(n, &oct_op_mat_mul) && oct_node_const(n, 0))
        return (oct_float_cause){OCT_FLOAT_WEIGHTS, "the left operand of the product is constant"};
    return (oct_float_cause){OCT_FLOAT_NONE, NULL};
}

static oct_status choose_groups(oct_placer *p, const uint8_t *is_tail)
{
    p->not_listed = oct_arena_printf(p->m->arena, "no integer form in target %s", p->t->name);
    if (!p->not_listed) return OCT_ERR_MEMORY;
    for (int32_t k = 0; k < p->groups.n; k++) {
        const oct_node *n = p->groups.item[k].anchor;
        const bool is_expected = weight_of(n) >= 0 || is_listed(p, n);
        oct_float_cause cause;

        if (!is_expected || oct_placer_moves(p, n)) continue;
        if (!is_float32(oct_node_out(n, 0)) || !has_activation(n)) continue;
        cause = why_not(p, n, is_tail);
        if (cause.text) OCT_TRY(oct_qmap_set_float(p->m, n, cause.why, cause.text));
        p->is_integer[k] = !cause.text;
    }
    return OCT_OK;
}

/* --- which values are read as integers --- */

/* From the outputs to the inputs: values that integer groups read. An elementwise group is
 * quantized only if an integer consumer follows; otherwise it would add error and gain no speed. */
static oct_status find_integer_values(oct_placer *p)
{
    for (const oct_node *n = p->g->last; n; n = n->prev) {
        const int32_t k = p->groups.of_node[n->id];
        const oct_fusion_group *group = &p->groups.item[k];
        const oct_value *y = oct_node_out(n, 0);
        const bool moves = oct_placer_moves(p, n);
        bool passes = false, is_mixed = false;

        for (int32_t o = 0; o < n->n_out && moves; o++) {
            if (!n->out[o]) continue;
            passes |= p->is_wanted[n->out[o]->id];
            is_mixed |= p->is_read_float[n->out[o]->id] || n->out[o]->is_output;
        }
        if (n == group->last && p->is_integer[k] && group->anchor->op->flow == OCT_FLOW_SOURCE &&
            (p->t->flags & OCT_TARGET_LAYER_RESULTS))
            p->is_wanted[y->id] = 1;
        if (n == group->last && p->is_integer[k] && group->anchor->op->flow != OCT_FLOW_SOURCE &&
            !p->is_wanted[y->id]) {
            p->is_integer[k] = 0;
            OCT_TRY(oct_qmap_set_float(p->m, group->anchor, OCT_FLOAT_CONSUMER,
                                       "nothing reads its result as integers"));
        }
        for (int32_t i = 0; i < n->n_in; i++) {
            const oct_value *v = n->in[i];
            const bool is_moved = moves && i < oct_node_n_data(n);

            if (!v) continue;
            p->is_wanted[v->id] |= oct_placer_reads(p, n, i) || (is_moved && passes);
            p->is_read_float[v->id] |=
                is_moved ? is_mixed
                         : !oct_placer_reads(p, n, i) &&
                               (!v->producer || p->groups.of_node[v->producer->id] != k);
        }
    }
    return OCT_OK;
}

/* --- settings --- */

static bool is_word(const char *word, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0) return true;
    return false;
}

/* Words of a setting: fails naming the nearest. */
static oct_status check_word(oct_ctx *ctx, const char *setting, const char *word,
                             const char *const *list, int n)
{
    oct_nearest near = {word, 64, list[0]};

    if (!word || is_word(word, list, n)) return OCT_OK;
    for (int i = 0; i < n; i++)
        oct_nearest_try(&near, list[i]);
    return oct_fail(ctx, OCT_ERR_ARG, "%s: there is no '%.60s'; did you mean '%s'?", setting, word,
                    near.name);
}

static oct_status set_bias_bits(oct_ctx *ctx, int32_t bits, oct_target *t)
{
    if (bits == 0 || bits == t->bias_spec.bits) return OCT_OK;
    if (bits != 8 && bits != 16 && bits != 32)
        return oct_fail(ctx, OCT_ERR_ARG, "bias_bits: %d is neither 8, 16 nor 32", (int)bits);
    if (t->bias != OCT_BIAS_POW2)
        return oct_fail(ctx, OCT_ERR_ARG, "bias_bits: biases of target %s are %s", t->name,
                        t->bias == OCT_BIAS_FLOAT ? "float" : "32 bits");
    t->bias_spec.bits = bits;
    return OCT_OK;
}

static oct_status read_settings(oct_ctx *ctx, const oct_quantize_options *o, oct_target *t)
{
    static const char *const devices[] = {"ANY", "CPU", "GPU", "NPU", "CPU_SPR"};
    static const char *const types[] = {"transformer"};
    static const char *const presets[] = {"performance", "mixed"};
    static const char *const fixes[] = {"enable", "first_layer_only", "disable"};
    static const char *const switches[] = {"on", "off"};

    OCT_TRY(check_word(ctx, "target_device", o->target_device, devices, OCT_COUNT(devices)));
    OCT_TRY(check_word(ctx, "model_type", o->model_type, types, OCT_COUNT(types)));
    OCT_TRY(check_word(ctx, "preset", o->preset, presets, OCT_COUNT(presets)));
    OCT_TRY(check_word(ctx, "overflow_fix", o->overflow_fix, fixes, OCT_COUNT(fixes)));
    OCT_TRY(check_word(ctx, "heal", o->heal, switches, OCT_COUNT(switches)));
    if (o->preset && strcmp(o->preset, "performance") == 0) t->act.is_symmetric = true;
    return set_bias_bits(ctx, o->bias_bits, t);
}

/* Sums of large and small values, and what normalisation is written with, stay float in
 * transformers, as NNCF has it. */
static void ignore_for_transformer(oct_placer *p)
{
    static const char *const types[] = {"Add",        "Sub",      "Mul",       "Div",
                                        "Pow",        "Sqrt",     "Max",       "Reciprocal",
                                        "ReduceMean", "ReduceL2", "ReduceSum", "Sum"};

    for (const oct_node *n = p->g->first; n; n = n->next)
        if (!p->ignored[n->id].text && is_word(n->op->name, types, OCT_COUNT(types)))
            p->ignored[n->id] =
                (oct_float_cause){OCT_FLOAT_MODEL_TYPE, "kept in float in transformers"};
}

/* Products of two activations: no zero points there. */
static void balance_products(oct_placer *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next) {
        if (!oct_node_is(n, &oct_op_mat_mul) || weight_of(n) >= 0) continue;
        for (int32_t i = 0; i < 2; i++) {
            const int32_t k = oct_qmap_at(p->m, n, i);

            if (k >= 0 && p->m->points[k].role == OCT_QROLE_ACT)
                p->m->points[oct_qmap_root_index(p->m, k)].spec.is_symmetric = true;
        }
    }
}

/* --- divisors and inverses --- */

enum { DIVISOR_DEPTH = 8 };

static void keep_float(oct_placer *p, const oct_node *n, const char *why)
{
    if (!p->ignored[n->id].text) p->ignored[n->id] = (oct_float_cause){OCT_FLOAT_DIVISOR, why};
}

/* What Max and Min hold within constant bounds; NULL: they compare values. */
static const oct_value *bounded(const oct_node *n)
{
    const oct_value *x = NULL;

    if (!oct_node_is(n, &oct_op_max) && !oct_node_is(n, &oct_op_min)) return NULL;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || n->in[i]->data) continue;
        if (x) return NULL;
        x = n->in[i];
    }
    return x;
}

/* A divisor that is rounded to 0 is fatal, and the sums and means that make one are cheap in float.
 * sums: how many sums one after the other are followed to their operands. */
static void keep_divisor(oct_placer *p, const oct_value *v, int depth, int sums)
{
    static const char *const through[] = {"Sqrt", "Abs", "Cast", "Clip"};
    static const char *const cheap[] = {"Add",        "Sub",       "Mul",     "Sum",
                                        "ReduceMean", "ReduceSum", "ReduceL2"};
    const oct_node *by = v ? v->producer : NULL;

    if (!v || v->data) return;
    p->is_divisor[v->id] = 1;
    if (!by || depth == 0) return;
    if (is_word(by->op->name, cheap, OCT_COUNT(cheap)))
        keep_float(p, by, "kept in float: something is divided by its result");
    if (is_word(by->op->name, through, OCT_COUNT(through)) || oct_node_moves_data(by))
        keep_divisor(p, by->in[0], depth - 1, sums);
    else if (bounded(by))
        keep_divisor(p, bounded(by), depth - 1, sums);
    else if (oct_node_is(by, &oct_op_add)) /* the epsilon that keeps it from zero */
        for (int32_t i = 0; i < by->n_in; i++)
            keep_divisor(p, by->in[i], sums > 0 ? depth - 1 : 0, sums - 1);
}

/* 1 / x spreads over decades where x comes near zero, and one scale is too coarse for most of it:
 * products stay float until it has met what it divides. */
static void keep_inverse(oct_placer *p, const oct_value *v, int depth)
{
    for (int32_t k = 0; v && k < v->n_users && depth > 0; k++) {
        const oct_node *u = v->users[k];
        bool goes_on;

        if (u->graph != p->g) continue;
        goes_on = oct_node_moves_data(u) && oct_node_n_data(u) == 1 && u->in[0] == v;
        if (oct_node_is(u, &oct_op_mul)) {
            keep_float(p, u, "kept in float: it multiplies by an inverse");
            goes_on = oct_node_const(u, 0) || oct_node_const(u, 1);
        }
        for (int32_t i = 0; i < u->n_out && goes_on; i++)
            keep_inverse(p, u->out[i], depth - 1);
    }
}

static bool has_negative_power(const oct_node *n)
{
    double power;

    return oct_node_is(n, &oct_op_pow) && oct_node_in(n, 1) && oct_const_scalar(n->in[1], &power) &&
           power < 0;
}

static void keep_divisors(oct_placer *p)
{
    for (const oct_node *n = p->g->first; n; n = n->next) {
        const bool is_div = oct_node_is(n, &oct_op_div);
        const bool is_inverse = oct_node_is(n, &oct_op_reciprocal) || has_negative_power(n);

        if (is_div) keep_divisor(p, oct_node_in(n, 1), DIVISOR_DEPTH, 1);
        if (is_inverse || oct_node_is(n, &oct_op_log))
            keep_divisor(p, oct_node_in(n, 0), DIVISOR_DEPTH, 1);
        if (is_inverse || (is_div && oct_node_const(n, 0)))
            keep_inverse(p, oct_node_out(n, 0), DIVISOR_DEPTH);
    }
}

/* --- all --- */

/* What the settings keep in float. */
static oct_status read_scopes(oct_placer *p, const oct_quantize_options *o)
{
    const size_t n = (size_t)p->g->root->n_node_ids + 1;
    const char **text = oct_arena_array(p->a, n, sizeof(*text));

    p->ignored = oct_arena_array(p->a, n, sizeof(*p->ignored));
    if (!text || !p->ignored) return OCT_ERR_MEMORY;
    OCT_TRY(oct_scope_reasons(p->g, o, p->m->arena, text));
    for (size_t i = 0; i < n; i++)
        if (text[i]) p->ignored[i] = (oct_float_cause){OCT_FLOAT_IGNORED, text[i]};
    return OCT_OK;
}

/* Sums over the bins of DFL lie in the tail, but some targets compute them in integers. */
static oct_status take_sums(oct_placer *p, const oct_quantize_options *o, uint8_t *is_tail)
{
    const bool is_auto = !o->tail || strcmp(o->tail, "auto") == 0;
    int32_t n_sums = 0;

    if (!(p->t->flags & OCT_TARGET_DFL_SUMS) || !is_auto) return OCT_OK;
    for (const oct_node *n = p->g->first; n; n = n->next) {
        if (!is_tail[n->id] || !oct_dfl_is_sum(n)) continue;
        is_tail[n->id] = 0;
        n_sums++;
    }
    if (!n_sums) return OCT_OK;
    p->m->tail_text = oct_arena_printf(p->m->arena, "%s, but for %d sum%s over bins",
                                       p->m->tail_text, (int)n_sums, n_sums == 1 ? "" : "s");
    return p->m->tail_text ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status place(oct_placer *p, const oct_quantize_options *o)
{
    const size_t n_nodes = (size_t)p->g->root->n_node_ids + 1;
    const size_t n_values = (size_t)p->g->root->n_value_ids + 1;
    const bool is_transformer = o->model_type != NULL;
    uint8_t *is_tail = oct_arena_alloc(p->a, n_nodes);

    p->gives_codes = o->int8_io != 0;
    p->is_wanted = oct_arena_alloc(p->a, n_values);
    p->is_read_float = oct_arena_alloc(p->a, n_values);
    p->is_divisor = oct_arena_alloc(p->a, n_values);
    if (!is_tail || !p->is_wanted || !p->is_read_float || !p->is_divisor) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tail_find(p->g, o->tail, p->m->arena, is_tail, &p->m->tail_text));
    OCT_TRY(take_sums(p, o, is_tail));
    OCT_TRY(read_scopes(p, o));
    if (is_transformer) ignore_for_transformer(p);
    keep_divisors(p);
    OCT_TRY(oct_fusion_groups_find(p->g, p->t, p->a, &p->groups));
    OCT_TRY(find_requantized(p));
    if (!(p->is_integer = oct_arena_alloc(p->a, (size_t)p->groups.n + 1))) return OCT_ERR_MEMORY;
    OCT_TRY(choose_groups(p, is_tail));
    OCT_TRY(find_integer_values(p));
    OCT_TRY(oct_placer_activations(p));
    OCT_TRY(oct_placer_weights(p));
    if (is_transformer) balance_products(p);
    OCT_TRY(oct_placer_bits(p, o));
    return oct_scope_override(p->m, o);
}

oct_status oct_place(const oct_graph *g, const oct_target *t, const oct_quantize_options *o,
                     oct_qmap **out)
{
    oct_target row = *t;
    oct_placer p = {.g = g};
    oct_status st;

    *out = NULL;
    OCT_TRY(read_settings(g->ctx, o, &row));
    OCT_TRY(oct_qmap_new(g, &row, &p.m));
    p.t = p.m->target;
    p.a = oct_arena_new(g->ctx);
    st = p.a ? place(&p, o) : OCT_ERR_MEMORY;
    oct_arena_free(p.a);
    if (st)
        oct_qmap_free(p.m);
    else
        *out = p.m;
    return st;
}
