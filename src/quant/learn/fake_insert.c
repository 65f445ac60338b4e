/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant nodes in a copy of the graph that a qmap is for. */
#include <math.h>
#include <string.h>

#include "op/grad/rules.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/learn/fake_parts.h"
#include "quant/lower/lower.h"

typedef struct insertion {
    const oct_fake *f;
    oct_graph *g;     /* the copy */
    oct_arena *arena; /* for the time of the insertion */
    oct_node **nodes; /* by id: of the copy */
} insertion;

/* A constant of the original, in the copy. */
static oct_value *same(const insertion *s, const oct_value *v)
{
    return v ? s->g->values[v->id] : NULL;
}

/* Has this operand of an original node a point of its own? */
static bool is_claimed(const insertion *s, const oct_node *n, int32_t i)
{
    const oct_qmap *m = s->f->m;
    int32_t k = n->id < s->f->n_nodes ? m->of_reader[n->id] : -1;

    while (k >= 0 && m->points[k].operand != i)
        k = m->points[k].next;
    return k >= 0;
}

/* Consumers of v that have no point of their own read `to`, which is made from v. */
static oct_status rewire(insertion *s, oct_value *v, oct_value *to)
{
    const int32_t n = v->n_users;
    oct_node **users = oct_arena_array(s->arena, (size_t)n + 1, sizeof(*users));

    if (!users) return OCT_ERR_MEMORY;
    if (n) memcpy(users, v->users, (size_t)n * sizeof(*users));
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < users[k]->n_in; i++)
            if (users[k]->in[i] == v && users[k] != to->producer && !is_claimed(s, users[k], i))
                OCT_TRY(oct_node_set_input(users[k], i, to));
    return OCT_OK;
}

/* --- one node --- */

/* LSQ's factor for the gradient of a scale: 1 / sqrt(elements that share it * largest code).
 * Elements of an activation are those of one image. */
static double grad_scale(const oct_qpoint *p, const oct_qpoint *root, const oct_type *t)
{
    double n = (double)oct_type_len(t) / (double)root->n;
    int32_t low, high;

    if (p->role == OCT_QROLE_ACT && t->rank > 1 && t->dim[0] > 0) n /= (double)t->dim[0];
    oct_qspec_limits(&root->spec, &low, &high);
    return 1 / sqrt(fmax(n, 1) * fmax(high, 1));
}

static oct_value *emit_fake(insertion *s, oct_builder *b, int32_t index, oct_value *x)
{
    static const oct_fake_role roles[] = {[OCT_QROLE_ACT] = OCT_FAKE_ACT,
                                          [OCT_QROLE_WEIGHT] = OCT_FAKE_WEIGHT,
                                          [OCT_QROLE_BIAS] = OCT_FAKE_BIAS};
    const oct_qmap *m = s->f->m;
    const oct_qpoint *p = &m->points[index], *root = oct_qmap_root(m, index);
    const oct_fake_point *own = &s->f->of_point[root - m->points];
    oct_value *const in[] = {x, same(s, own->step), same(s, own->zero)};
    oct_node *n = oct_emit_node(b, &oct_op_fake_quant, in, own->zero ? 3 : 2, 1);
    oct_fake_attrs a = {.axis = root->n > 1 ? p->spec.axis : -1,
                        .kind = own->kind,
                        .role = roles[p->role],
                        .learns = own->learns,
                        .grad_scale = grad_scale(p, root, &x->type)};
    int32_t low, high;

    oct_qspec_limits(&root->spec, &low, &high);
    a.low = low;
    a.high = high;
    if (!b->status) oct_fake_write(b, n, &a);
    return oct_emitted(b, n);
}

static oct_status point_on_activation(insertion *s, int32_t index, oct_value *v, oct_node *reader)
{
    const oct_qpoint *p = &s->f->m->points[index];
    oct_builder b = {.g = v->graph, .before = v->producer ? v->producer->next : v->graph->first};
    oct_value *y = emit_fake(s, &b, index, v);

    OCT_TRY(b.status);
    return reader ? oct_node_set_input(reader, p->operand, y) : rewire(s, v, y);
}

/* w * fold, or its inverse; operands broadcast against the weight. */
static oct_value *emit_fold(insertion *s, oct_builder *b, const oct_qpoint *p, oct_value *w,
                            bool inverse)
{
    int64_t dims[OCT_MAX_RANK];
    oct_tensor *t = NULL;
    oct_value *factor;
    oct_type type;

    if (b->status || !p->fold) return w;
    for (int32_t i = 0; i < w->type.rank; i++)
        dims[i] = i == 0 ? p->fold_rows : i == 1 ? p->fold_columns : 1;
    type = oct_type_make(OCT_DTYPE_F32, w->type.rank, dims);
    if ((b->status = oct_tensor_make(s->f->ctx, &type, &t))) return NULL;
    for (int64_t i = 0; i < p->fold_rows * p->fold_columns; i++)
        ((float *)t->data)[i] = inverse ? 1 / p->fold[i] : p->fold[i];
    factor = oct_value_const(b->g, NULL, t);
    return oct_emit(b, &oct_op_mul, w, factor, NULL);
}

static oct_status point_on_constant(insertion *s, int32_t index, oct_value *v, oct_node *reader)
{
    const oct_qpoint *p = &s->f->m->points[index];
    oct_node *before = reader ? reader : v->n_users == 1 ? v->users[0] : v->graph->first;
    oct_builder b = {.g = v->graph, .before = before};
    oct_value *w = emit_fold(s, &b, p, v, false), *y;

    OCT_TRY(b.status);
    y = emit_fold(s, &b, p, emit_fake(s, &b, index, w), true);
    OCT_TRY(b.status);
    if (reader) return oct_node_set_input(reader, p->operand, y);
    for (int32_t k = v->n_users - 1; k >= 0; k--) { /* the first node made here reads v */
        oct_node *u = v->users[k];
        bool changed = false;

        if (u->id >= s->f->n_nodes) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v && !is_claimed(s, u, i)) {
                OCT_TRY(oct_node_set_input(u, i, y));
                changed = true;
            }
        if (changed) k = v->n_users; /* the list has changed */
    }
    return OCT_OK;
}

static oct_status insert_point(insertion *s, int32_t index)
{
    const oct_qmap *m = s->f->m;
    const oct_qpoint *p = &m->points[index];
    oct_node *reader = p->node ? s->nodes[p->node->id] : NULL;
    oct_value *v = reader ? oct_node_in(reader, p->operand) : s->g->values[p->value->id];

    if (!v || !s->f->of_point[oct_qmap_root_index(m, index)].step) return OCT_OK;
    if (v->data) return point_on_constant(s, index, v, reader);
    if (!v->n_users || !oct_point_needs_pair(m, index)) return OCT_OK;
    return point_on_activation(s, index, v, reader);
}

/* --- shifts of layers without a bias --- */

static oct_status insert_shift(insertion *s, const oct_qshift *shift)
{
    oct_node *n = s->nodes[shift->node->id];
    oct_value *y = n->out[0], *sum;
    oct_builder b = {.g = n->graph, .before = n->next};
    int64_t dims[OCT_MAX_RANK];
    oct_tensor *t = NULL;
    oct_type type;
    bool any = false;

    for (int64_t i = 0; i < shift->n; i++)
        any |= shift->shift[i] != 0;
    if (!any) return OCT_OK;
    for (int32_t i = 0; i < y->type.rank; i++)
        dims[i] = 1;
    dims[oct_node_is(n, &oct_op_mat_mul) ? y->type.rank - 1 : 1] = shift->n;
    type = oct_type_make(OCT_DTYPE_F32, y->type.rank, dims);
    OCT_TRY(oct_tensor_make(s->f->ctx, &type, &t));
    memcpy(t->data, shift->shift, (size_t)shift->n * sizeof(float));
    sum = oct_emit(&b, &oct_op_add, y, oct_value_const(n->graph, NULL, t), NULL);
    OCT_TRY(b.status);
    return rewire(s, y, sum);
}

/* --- the whole graph --- */

static oct_status insert_all(insertion *s)
{
    const oct_qmap *m = s->f->m;

    s->nodes = oct_arena_array(s->arena, (size_t)s->f->n_nodes + 1, sizeof(*s->nodes));
    if (!s->nodes) return OCT_ERR_MEMORY;
    for (oct_node *n = s->g->first; n; n = n->next)
        if (n->id < s->f->n_nodes) s->nodes[n->id] = n;
    for (int own = 0; own < 2; own++) /* points for one consumer come after those for all */
        for (int32_t i = 0; i < m->n_points; i++) {
            const oct_qpoint *p = &m->points[i];

            if (p->state == OCT_QSTATE_OFF || (p->node && !s->nodes[p->node->id])) continue;
            if ((p->node != NULL) == own) OCT_TRY(insert_point(s, i));
        }
    for (int32_t i = 0; i < m->n_shifts; i++)
        if (s->nodes[m->shifts[i].node->id]) OCT_TRY(insert_shift(s, &m->shifts[i]));
    return oct_graph_verify(s->g);
}

oct_status oct_fake_insert(void *fake, oct_graph *copy)
{
    insertion s = {.f = fake, .g = copy};
    oct_status st;

    if (!(s.arena = oct_arena_new(s.f->ctx))) return OCT_ERR_MEMORY;
    st = insert_all(&s);
    oct_arena_free(s.arena);
    return st;
}
