/* SPDX-License-Identifier: Apache-2.0 */
/* (graph, qmap) to one graph with QuantizeLinear and DequantizeLinear nodes. */
#include "quant/lower/lower.h"

#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "op/quant.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "quant/lower/lower_parts.h"

#define OPSET_LEAST 13 /* scales for each index of an axis */
#define MOVES_DEPTH 64 /* data-movement nodes in a row that are looked through */

/* --- points --- */

/* One end of the range of codes, for each scale, to compare values with. */
static oct_status limit(oct_lowering *l, const oct_value *v, const oct_lowering_params *p,
                        int32_t code, const char *suffix, oct_value **out)
{
    int64_t dims[OCT_MAX_RANK];
    const int32_t rank = p->n > 1 ? v->type.rank : 0;
    oct_tensor *t = NULL;
    oct_type type;

    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == p->axis ? p->n : 1;
    type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    OCT_TRY(oct_tensor_make(l->ctx, &type, &t));
    for (int64_t i = 0; i < p->n; i++)
        ((float *)t->data)[i] = oct_qspec_value(p->scale[i], p->zero ? p->zero[i] : 0, code);
    return oct_lowering_const(l, v->graph, v->name, suffix, t, out);
}

/* Codes that a spec excludes but their type has: the value is clipped before it is quantized. */
static oct_status clamp(oct_lowering *l, oct_value *v, oct_node *before, const oct_qspec *spec,
                        const oct_lowering_params *p, oct_value **out)
{
    oct_builder b = {.g = v->graph, .before = before};
    int32_t low, high, type_low, type_high;
    oct_value *ends[2];

    *out = v;
    oct_qspec_limits(spec, &low, &high);
    oct_quant_limits(p->dtype, &type_low, &type_high);
    if (low <= type_low && high >= type_high) return OCT_OK;
    OCT_TRY(limit(l, v, p, low, "low", &ends[0]));
    OCT_TRY(limit(l, v, p, high, "high", &ends[1]));
    if (!(b.prefix = oct_arena_printf(l->g->arena, "%s_Clip", v->name))) return OCT_ERR_MEMORY;
    if (p->n == 1)
        *out = oct_emit(&b, &oct_op_clip, v, ends[0], ends[1]);
    else
        *out =
            oct_emit(&b, &oct_op_min, oct_emit(&b, &oct_op_max, v, ends[0], NULL), ends[1], NULL);
    return b.status;
}

/* The earliest position in the node list for a consumer of v. */
static oct_node *earliest_reader(const oct_value *v)
{
    return v->producer ? v->producer->next : v->graph->first;
}

/* v -> QuantizeLinear -> DequantizeLinear. */
static oct_status pair(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root, oct_value *v,
                       oct_value **q, oct_value **dq)
{
    oct_value **constants = l->shared[root - l->m->points], *x;
    oct_node *before = earliest_reader(v);
    oct_lowering_params params;

    OCT_TRY(oct_lowering_check(l, p, root, v, &params));
    if (root->spec.rounding != OCT_QROUND_HALF_EVEN) l->rounds_otherwise = true;
    /* Bodies can read values outside of them, so constants go to the outermost graph. */
    if (!constants[0]) OCT_TRY(oct_lowering_constants(l, l->g, &params, constants));
    OCT_TRY(clamp(l, v, before, &root->spec, &params, &x));
    OCT_TRY(
        oct_lowering_qdq(l, v->graph, before, &oct_op_quantize_linear, x, &params, constants, q));
    return oct_lowering_qdq(l, v->graph, before, &oct_op_dequantize_linear, *q, &params, constants,
                            dq);
}

static bool is_claimed(const oct_lowering *l, const oct_node *n, int32_t i)
{
    return n->id >= l->n_nodes || l->claimed[l->first[n->id] + i];
}

bool oct_lowering_has_readers(const oct_lowering *l, const oct_value *v)
{
    for (int32_t k = 0; k < v->n_users; k++)
        for (int32_t i = 0; i < v->users[k]->n_in; i++)
            if (v->users[k]->in[i] == v && !is_claimed(l, v->users[k], i)) return true;
    return false;
}

oct_status oct_lowering_rewire(oct_lowering *l, oct_value *v, oct_value *to)
{
    const int32_t n = v->n_users;
    oct_node **users = oct_arena_array(l->arena, (size_t)OCT_MAX(n, 1), sizeof(*users));

    if (!users) return OCT_ERR_MEMORY;
    if (n) memcpy(users, v->users, (size_t)n * sizeof(*users));
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < users[k]->n_in; i++)
            if (users[k]->in[i] == v && !is_claimed(l, users[k], i))
                OCT_TRY(oct_node_set_input(users[k], i, to));
    return OCT_OK;
}

/* Does this operand have the codes of `root`, through nodes that only move data? */
static bool carries(const oct_qmap *m, const oct_node *n, int32_t i, const oct_qpoint *root,
                    int depth)
{
    const int32_t k = oct_qmap_at(m, n, i);
    const oct_node *by = n->in[i] ? n->in[i]->producer : NULL;

    if (k >= 0) return m->points[k].state != OCT_QSTATE_OFF && oct_qmap_root(m, k) == root;
    if (!by || depth == 0 || !oct_node_moves_data(by)) return false;
    for (int32_t j = 0; j < oct_node_n_data(by); j++)
        if (!carries(m, by, j, root, depth - 1)) return false;
    return true;
}

/* Some runtimes need a pair all the same. */
bool oct_point_needs_pair(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = &m->points[point], *root = oct_qmap_root(m, point);
    const oct_node *by = p->value->producer;

    if (p->state != OCT_QSTATE_DOMINATED || !by || !oct_node_moves_data(by)) return true;
    if (m->target->flags & OCT_TARGET_QDQ_AFTER_MOVES) return true;
    for (int32_t i = 0; i < oct_node_n_data(by); i++)
        if (!carries(m, by, i, root, MOVES_DEPTH)) return true;
    return false;
}

/* --- integer inputs and outputs --- */

/* The input becomes integer, and a DequantizeLinear reads it. */
static oct_status feed_codes(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root,
                             oct_value *v)
{
    oct_node *before = v->graph->first;
    oct_value *constants[2], *dq = NULL;
    oct_lowering_params params;

    OCT_TRY(oct_lowering_check(l, p, root, v, &params));
    OCT_TRY(oct_lowering_constants(l, v->graph, &params, constants));
    v->type.dtype = params.dtype;
    OCT_TRY(oct_lowering_qdq(l, v->graph, before, &oct_op_dequantize_linear, v, &params, constants,
                             &dq));
    for (int32_t k = v->n_users - 1; k >= 0; k--) {
        oct_node *u = v->users[k];

        if (u == dq->producer) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, dq));
        k = v->n_users; /* the list has changed */
    }
    return OCT_OK;
}

/* The codes, or the values they stand for, are returned under the output's name. */
static void give_codes(oct_value *v, oct_value *q)
{
    oct_graph *g = v->graph;
    const char *name = v->name;

    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v) g->outputs[i] = q;
    v->name = q->name;
    q->name = name;
    v->is_output = false;
    q->is_output = true;
}

static bool is_border_input(const oct_lowering *l, const oct_value *v)
{
    return l->options.int8_io && v->is_input && !v->data && v->graph == l->g && !v->is_output;
}

/*
 * Are 256 codes too few for an output that is float up to here? They are enough for scores, not for
 * boxes: in pixels, or as fractions of an image, one step is more than all other errors of
 * quantization.
 */
static bool is_too_coarse(const oct_qpoint *p, const oct_qpoint *root, const oct_value *v)
{
    const float quarter = 0.25f; /* of a pixel */
    const oct_type *t = &v->type;

    if (!p->only_given || root->spec.bits > 8) return false;
    return root->scale[0] > quarter || (t->rank == 3 && (t->dim[1] == 4 || t->dim[2] == 4));
}

/* --- all points --- */

static oct_status lower_point(oct_lowering *l, int32_t index)
{
    const oct_qpoint *p = &l->m->points[index], *root = oct_qmap_root(l->m, index);
    oct_node *reader = p->node ? l->nodes[p->node->id] : NULL;
    /* What the consumer reads by now: integer inputs are dequantized first. */
    oct_value *v = reader ? oct_node_in(reader, p->operand) : l->g->values[p->value->id];
    oct_value *q = NULL, *to = NULL;
    bool gives;

    if (!v || root->state == OCT_QSTATE_OFF) return OCT_OK;
    if (!reader && is_border_input(l, v)) return feed_codes(l, p, root, v);
    gives = !reader && l->options.int8_io && v->is_output && v->graph == l->g && v->producer;
    if (gives && root->n && is_too_coarse(p, root, v)) return OCT_OK;
    if (!reader && !gives && !oct_lowering_has_readers(l, v) &&
        !(v->is_output && (l->target->flags & OCT_TARGET_LAYER_RESULTS)))
        return OCT_OK;
    if (v->data) {
        oct_node *before = reader ? reader : NULL;

        OCT_TRY(oct_lowering_weight(l, p, root, v, before, &to));
    } else {
        if (!oct_point_needs_pair(l->m, index)) return OCT_OK;
        OCT_TRY(pair(l, p, root, v, &q, &to));
        if (gives) give_codes(v, q);
        if (!gives && !reader && v->is_output && (l->target->flags & OCT_TARGET_LAYER_RESULTS)) {
            OCT_TRY(oct_lowering_rewire(l, v, to));
            give_codes(v, to); /* values that have codes */
            return OCT_OK;
        }
    }
    return reader ? oct_node_set_input(reader, p->operand, to) : oct_lowering_rewire(l, v, to);
}

/* Points for all consumers first: those for one consumer build on what an input has become. */
static oct_status lower_points(oct_lowering *l)
{
    for (int own = 0; own < 2; own++)
        for (int32_t i = 0; i < l->m->n_points; i++) {
            const oct_qpoint *p = &l->m->points[i];

            if (p->state == OCT_QSTATE_OFF || p->role == OCT_QROLE_BIAS) continue;
            if ((p->node != NULL) == own) OCT_TRY(lower_point(l, i));
        }
    return OCT_OK;
}

/* --- the whole graph --- */

/* The bodies of a node, one after the other; NULL beyond the last. */
static oct_graph *body_at(const oct_node *n, int i)
{
    const int k = oct_op_n_attrs(n->op);

    for (int j = 0; j < k + n->n_extra; j++) {
        const oct_attr *a = j < k ? &n->attr[j] : &n->extra[j - k].value;

        if (a->kind == OCT_ATTR_GRAPH && a->g && i-- == 0) return a->g;
    }
    return NULL;
}

/* The copy has the same nodes in the same order. */
static oct_status index_nodes(oct_lowering *l, const oct_graph *from, oct_graph *to, int32_t *at)
{
    const oct_node *f = from->first;
    oct_graph *body;

    for (oct_node *n = to->first; n; n = n->next, f = f->next) {
        l->nodes[n->id] = n;
        l->from[n->id] = f;
        l->first[n->id] = *at;
        *at += n->n_in;
        for (int i = 0; (body = body_at(n, i)); i++)
            OCT_TRY(index_nodes(l, body_at(f, i), body, at));
        OCT_TRY(oct_map_put(&l->names, n->name, l));
    }
    return OCT_OK;
}

static int64_t count_operands(const oct_graph *g)
{
    const oct_graph *body;
    int64_t n = 0;

    for (const oct_node *k = g->first; k; k = k->next) {
        n += k->n_in;
        for (int i = 0; (body = body_at(k, i)); i++)
            n += count_operands(body);
    }
    return n;
}

static oct_status prepare(oct_lowering *l)
{
    const size_t n = (size_t)OCT_MAX(l->n_nodes, 1);
    int32_t at = 0;

    l->nodes = oct_arena_array(l->arena, n, sizeof(*l->nodes));
    l->from = oct_arena_array(l->arena, n, sizeof(*l->from));
    l->first = oct_arena_array(l->arena, n, sizeof(*l->first));
    l->claimed = oct_arena_array(l->arena, (size_t)count_operands(l->g) + 1, 1);
    l->shared = oct_arena_array(l->arena, (size_t)OCT_MAX(l->m->n_points, 1), sizeof(*l->shared));
    if (!l->nodes || !l->from || !l->first || !l->claimed || !l->shared) return OCT_ERR_MEMORY;
    OCT_TRY(index_nodes(l, l->m->g, l->g, &at));
    for (int32_t i = 0; i < l->g->n_value_ids; i++)
        if (l->g->values[i]) OCT_TRY(oct_map_put(&l->names, l->g->values[i]->name, l));
    for (int32_t i = 0; i < l->m->n_points; i++) {
        const oct_qpoint *p = &l->m->points[i];

        if (p->node && p->operand < p->node->n_in)
            l->claimed[l->first[p->node->id] + p->operand] = 1;
    }
    return OCT_OK;
}

/* The file's opset is at least what all of this needs. */
static oct_status set_opset(oct_lowering *l)
{
    oct_model_info *info = &l->g->info;
    const int64_t least = OCT_MAX(l->opset, OPSET_LEAST);
    oct_opset *more;

    for (int32_t i = 0; i < info->n_opsets; i++)
        if (!info->opsets[i].domain[0]) {
            info->opsets[i].version = OCT_MAX(info->opsets[i].version, least);
            return OCT_OK;
        }
    if (!(more = oct_arena_array(l->g->arena, (size_t)info->n_opsets + 1, sizeof(*more))))
        return OCT_ERR_MEMORY;
    more[0] = (oct_opset){"", least};
    for (int32_t i = 0; i < info->n_opsets; i++)
        more[i + 1] = info->opsets[i];
    info->opsets = more;
    info->n_opsets++;
    return OCT_OK;
}

/* Removes float weights that are no longer used. */
static oct_status drop_unread(oct_lowering *l)
{
    for (int32_t i = 0; i < l->g->n_value_ids; i++) {
        oct_value *v = l->g->values[i];

        if (v && v->data && !v->n_users) OCT_TRY(oct_prune(v));
    }
    return OCT_OK;
}

/* Rewrites that give the same values faster in ONNX Runtime: a simulation does without. */
static oct_status suit_runtime(oct_lowering *l)
{
    int n_changed = 0;

    if (l->target->flags & OCT_TARGET_CHANNELS_LAST) {
        /* Boxes and scores stay separate: it saves two copies of a detector's whole output. */
        OCT_TRY(oct_pass_run(&oct_pass_cut_early, l->g, &n_changed));
        OCT_TRY(oct_lowering_products(l));
        OCT_TRY(oct_lowering_codes(l));
        OCT_TRY(oct_lowering_dfl(l));
    }
    if (l->target->flags & OCT_TARGET_SOFTMAX_LAST) OCT_TRY(oct_lowering_softmax(l));
    return OCT_OK;
}

static oct_status lower(oct_lowering *l)
{
    OCT_TRY(prepare(l));
    OCT_TRY(oct_lowering_shifts(l));
    if (l->target->flags & OCT_TARGET_SHIFTS_ALL) OCT_TRY(oct_lowering_npu(l));
    OCT_TRY(lower_points(l));
    OCT_TRY(oct_lowering_biases(l));
    if (!l->is_trial) OCT_TRY(suit_runtime(l));
    OCT_TRY(drop_unread(l));
    OCT_TRY(oct_lowering_names(l));
    OCT_TRY(set_opset(l));
    /* A simulation is made from the same map as the file: it was checked there. */
    if (l->n_saturated && !l->is_trial)
        oct_log(l->ctx, OCT_LOG_WARN,
                "%lld biases are too large for their bits at their scale and were limited",
                (long long)l->n_saturated);
    if (l->rounds_otherwise && !l->is_trial)
        oct_log(l->ctx, OCT_LOG_WARN,
                "QuantizeLinear rounds ties to even: ties of activations differ by one step");
    return oct_graph_verify(l->g);
}

oct_status oct_lower(const oct_qmap *m, const oct_lower_options *o, oct_graph **out)
{
    oct_lowering l = {.ctx = m->ctx, .m = m, .target = m->target, .n_nodes = m->g->n_node_ids};
    oct_status st;

    if (o) l.options = *o;
    l.is_trial = !o;
    oct_map_init(&l.names, m->ctx);
    oct_map_init(&l.common, m->ctx);
    oct_map_init(&l.originals, m->ctx);
    if ((st = oct_graph_clone(m->g, &l.g))) goto done;
    if (!(l.arena = oct_arena_new(m->ctx))) {
        st = OCT_ERR_MEMORY;
        goto done;
    }
    st = lower(&l);
done:
    oct_map_fini(&l.names);
    oct_map_fini(&l.common);
    oct_map_fini(&l.originals);
    oct_arena_free(l.arena);
    if (st)
        oct_graph_free(l.g);
    else
        *out = l.g;
    return st;
}
