/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a qmap: everything in the file is checked against the graph before it is used. */
#include <string.h>

#include "base/json_stream.h"
#include "quant/io/qmap_fields.h"

/* --- names --- */

static oct_status index_nodes(oct_qmap_in *q, const oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next) {
        OCT_TRY(oct_map_put(&q->nodes, n->name, n));
        for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
            if (n->attr[i].kind == OCT_ATTR_GRAPH) OCT_TRY(index_nodes(q, n->attr[i].g));
    }
    return OCT_OK;
}

static oct_status index_names(oct_qmap_in *q)
{
    const oct_graph *root = q->g->root;

    for (int32_t i = 0; i < root->n_value_ids; i++)
        if (root->values[i])
            OCT_TRY(oct_map_put(&q->values, root->values[i]->name, root->values[i]));
    return index_nodes(q, root);
}

static oct_status find(const oct_qmap_in *q, const oct_map *map, const char *what, const char *name,
                       void **out)
{
    const char *nearest;

    *out = oct_map_get(map, name);
    if (*out) return OCT_OK;
    nearest = oct_map_nearest(map, name);
    if (nearest) return OCT_QMAP_BAD(q, "no %s '%.200s'; did you mean '%s'?", what, name, nearest);
    return OCT_QMAP_BAD(q, "no %s '%.200s' in the graph", what, name);
}

/* --- points --- */

static oct_status read_spec(const oct_qmap_in *q, json_t *o, oct_qspec *s)
{
    int64_t bits, axis = OCT_QSPEC_PER_TENSOR;
    int rounding;

    OCT_TRY(oct_qmap_get_int(q, o, "bits", 2, 32, &bits));
    OCT_TRY(oct_qmap_get_bool(q, o, "signed", &s->is_signed));
    OCT_TRY(oct_qmap_get_bool(q, o, "symmetric", &s->is_symmetric));
    OCT_TRY(oct_qmap_get_bool(q, o, "narrow", &s->is_narrow));
    OCT_TRY(oct_qmap_get_bool(q, o, "pow2", &s->is_pow2));
    OCT_TRY(oct_qmap_get_word(q, o, "rounding", oct_qmap_roundings(), &rounding));
    if (!json_is_null(json_object_get(o, "axis")))
        OCT_TRY(oct_qmap_get_int(q, o, "axis", 0, OCT_MAX_RANK - 1, &axis));
    s->bits = (int)bits;
    s->axis = (int)axis;
    s->rounding = (oct_qround)rounding;
    if (oct_qspec_check(q->ctx, s)) return oct_qmap_bad_at(q, OCT_ERR_FORMAT);
    return OCT_OK;
}

/* The value or node of a point, and the consumer it is for. */
static oct_status read_place(const oct_qmap_in *q, json_t *o, oct_qpoint *p)
{
    const char *name;
    int64_t operand;
    void *found;

    OCT_TRY(oct_qmap_get_text(q, o, "value", true, q->scratch, &name));
    OCT_TRY(find(q, &q->values, "value", name, &found));
    p->value = found;
    OCT_TRY(oct_qmap_get_text(q, o, "node", false, q->scratch, &name));
    if (!name) return OCT_OK;
    OCT_TRY(find(q, &q->nodes, "node", name, &found));
    p->node = found;
    OCT_TRY(oct_qmap_get_int(q, o, "operand", 0, (int64_t)p->node->n_in - 1, &operand));
    p->operand = (int32_t)operand;
    if (p->node->in[operand] != p->value)
        return OCT_QMAP_BAD(q, "node '%s' does not read value '%s' as operand %lld", p->node->name,
                            p->value->name, (long long)operand);
    return OCT_OK;
}

static oct_status read_state(const oct_qmap_in *q, json_t *o, oct_qpoint *p)
{
    const char *words[OCT_QSTATE_COUNT + 1] = {NULL};
    int64_t dominator = -1;
    int state, role;

    for (int i = 0; i < OCT_QSTATE_COUNT; i++)
        words[i] = oct_qstate_name((oct_qstate)i);
    OCT_TRY(oct_qmap_get_word(q, o, "role", oct_qmap_roles(), &role));
    OCT_TRY(oct_qmap_get_word(q, o, "state", words, &state));
    p->role = (oct_qrole)role;
    p->state = (oct_qstate)state;
    if (p->state == OCT_QSTATE_DOMINATED)
        OCT_TRY(oct_qmap_get_int(q, o, "dominator", 0, INT32_MAX - 1, &dominator));
    p->dominator = (int32_t)dominator;
    OCT_TRY(oct_qmap_get_text(q, o, "reason", false, q->scratch, &p->reason));
    return oct_qmap_get_text(q, o, "observer", false, q->scratch, &p->observer);
}

/* How many scales a point may have besides one; -1: not known. */
static int64_t n_scales(const oct_qpoint *p)
{
    const oct_type *t = &p->value->type;

    if (p->spec.axis == OCT_QSPEC_PER_TENSOR) return 1;
    if (t->rank < 0) return -1;
    return p->spec.axis < t->rank ? t->dim[p->spec.axis] : 1;
}

static oct_status read_parameters(const oct_qmap_in *q, json_t *o, int32_t point)
{
    const oct_qpoint *p = &q->m->points[point];
    json_t *zeros = json_object_get(o, "zero");
    const int64_t allowed = n_scales(p);
    int32_t low, high, *zero;
    const char *by;
    float *scale;
    int64_t n;
    oct_status st;

    OCT_TRY(oct_qmap_get_text(q, o, "scale_by", false, q->scratch, &by));
    if (!json_object_get(o, "scale") && !zeros) return OCT_OK;
    OCT_TRY(oct_qmap_get_floats(q, o, "scale", &scale, &n));
    if (n != 1 && allowed >= 0 && n != allowed)
        return OCT_QMAP_BAD(q, "%lld scales for value '%s', which needs %lld", (long long)n,
                            p->value->name, (long long)allowed);
    if ((int64_t)json_array_size(zeros) != n)
        return OCT_QMAP_BAD(q, "%lld zero points for %lld scales",
                            (long long)json_array_size(zeros), (long long)n);
    if (!(zero = oct_arena_array(q->scratch, (size_t)n, sizeof(*zero)))) return OCT_ERR_MEMORY;
    oct_qspec_limits(&p->spec, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        json_t *v = json_array_get(zeros, (size_t)i);
        const json_int_t z = json_integer_value(v);

        if (!json_is_integer(v) || z < low || z > high)
            return OCT_QMAP_BAD(q, "zero point %lld is not a code: an integer from %d to %d",
                                (long long)i, (int)low, (int)high);
        zero[i] = (int32_t)z;
    }
    st = oct_qpoint_set(q->m, point, scale, zero, n, by);
    return st == OCT_ERR_ARG ? oct_qmap_bad_at(q, OCT_ERR_FORMAT) : st;
}

/* Files of octet 0.1 do not have it. */
static oct_status read_seen(const oct_qmap_in *q, json_t *o, int32_t point)
{
    oct_qpoint *p = &q->m->points[point];
    float *range;
    int64_t n;

    if (!json_object_get(o, "seen")) return OCT_OK;
    OCT_TRY(oct_qmap_get_floats(q, o, "seen", &range, &n));
    if (n != 2 || range[0] > range[1])
        return OCT_QMAP_BAD(q, "'seen' is not the smallest and the largest value");
    p->has_seen = true;
    p->seen_low = range[0];
    p->seen_high = range[1];
    return OCT_OK;
}

static oct_status read_fold(const oct_qmap_in *q, json_t *o, int32_t point)
{
    static const char *const keys[] = {"rows", "columns", "scale", "values", NULL};
    oct_qpoint *p = &q->m->points[point];
    json_t *f = json_object_get(o, "fold");
    int64_t rows, columns, n;
    float *v;

    if (!f) return OCT_OK;
    OCT_TRY(oct_qmap_check_keys(q, f, keys));
    OCT_TRY(oct_qmap_get_int(q, f, "rows", 1, INT32_MAX, &rows));
    OCT_TRY(oct_qmap_get_int(q, f, "columns", 1, INT32_MAX, &columns));
    OCT_TRY(oct_qmap_to_float(q, "fold.scale", json_object_get(f, "scale"), &p->fold_scale));
    OCT_TRY(oct_qmap_get_floats(q, f, "values", &v, &n));
    if (rows * columns != n) /* neither has more than 31 bits */
        return OCT_QMAP_BAD(q, "'fold' has %lld values, not %lld x %lld", (long long)n,
                            (long long)rows, (long long)columns);
    if (p->value->type.rank < 2 || columns != p->value->type.dim[1] ||
        (rows != 1 && rows != p->value->type.dim[0]))
        return OCT_QMAP_BAD(q, "'fold' of %lld x %lld does not fit value '%s'", (long long)rows,
                            (long long)columns, p->value->name);
    p->fold = oct_arena_array(q->m->arena, (size_t)n, sizeof(*p->fold));
    if (!p->fold) return OCT_ERR_MEMORY;
    memcpy(p->fold, v, (size_t)n * sizeof(*v));
    p->fold_rows = rows;
    p->fold_columns = columns;
    return OCT_OK;
}

/* Files of octet 0.4 and before do not have it. */
static oct_status read_moved(const oct_qmap_in *q, json_t *o, int32_t point)
{
    json_t *list = json_object_get(o, "moved");
    const int64_t n = (int64_t)json_array_size(list);
    int64_t *moved;
    oct_status st;

    if (!list) return OCT_OK;
    if (!(moved = oct_arena_array(q->scratch, (size_t)n + 1, sizeof(*moved))))
        return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) /* 0, which is no element, where it is no integer */
        moved[i] = json_integer_value(json_array_get(list, (size_t)i));
    st = oct_qpoint_move(q->m, point, moved, n);
    return st == OCT_ERR_ARG ? oct_qmap_bad_at(q, OCT_ERR_FORMAT) : st;
}

static oct_status read_point(oct_qmap_in *q, json_t *o)
{
    static const char *const keys[] = {
        "value", "node",     "operand",  "role",  "bits",   "signed",   "symmetric", "narrow",
        "pow2",  "rounding", "axis",     "state", "reason", "observer", "dominator", "scale",
        "zero",  "fold",     "scale_by", "seen",  "moved",  NULL};
    oct_qpoint p = {.dominator = -1};
    int32_t point;

    OCT_TRY(oct_qmap_check_keys(q, o, keys));
    OCT_TRY(read_place(q, o, &p));
    OCT_TRY(read_spec(q, o, &p.spec));
    OCT_TRY(read_state(q, o, &p));
    if (p.node ? oct_qmap_at(q->m, p.node, p.operand) >= 0 &&
                     q->m->points[oct_qmap_at(q->m, p.node, p.operand)].node
               : q->m->of_value[p.value->id] >= 0)
        return OCT_QMAP_BAD(q, "value '%s' has a point already", p.value->name);
    OCT_TRY(oct_qmap_add(q->m, &p, &point));
    OCT_TRY(read_parameters(q, o, point));
    OCT_TRY(read_seen(q, o, point));
    OCT_TRY(read_fold(q, o, point));
    return read_moved(q, o, point);
}

/* --- the other lists --- */

static oct_status read_shift(oct_qmap_in *q, json_t *o)
{
    static const char *const keys[] = {"node", "shift", NULL};
    const char *name;
    float *shift;
    int64_t n;
    void *node;

    OCT_TRY(oct_qmap_check_keys(q, o, keys));
    OCT_TRY(oct_qmap_get_text(q, o, "node", true, q->scratch, &name));
    OCT_TRY(find(q, &q->nodes, "node", name, &node));
    OCT_TRY(oct_qmap_get_floats(q, o, "shift", &shift, &n));
    if (oct_qmap_shift_of(q->m, node))
        return OCT_QMAP_BAD(q, "node '%s' has a shift already", name);
    return oct_qmap_shift(q->m, node, shift, n);
}

static oct_status read_reason(oct_qmap_in *q, json_t *o)
{
    static const char *const keys[] = {"node", "reason", "why", NULL};
    const char *name, *reason;
    int why = OCT_FLOAT_OTHER;
    void *node;

    OCT_TRY(oct_qmap_check_keys(q, o, keys));
    OCT_TRY(oct_qmap_get_text(q, o, "node", true, q->scratch, &name));
    OCT_TRY(find(q, &q->nodes, "node", name, &node));
    if (json_object_get(o, "why")) /* files of octet 0.1 have sentences alone */
        OCT_TRY(oct_qmap_get_word(q, o, "why", oct_qmap_float_reasons(), &why));
    OCT_TRY(oct_qmap_get_text(q, o, "reason", true, q->scratch, &reason));
    return oct_qmap_set_float(q->m, node, (oct_float_reason)why, reason);
}

static oct_status read_list(oct_qmap_in *q, oct_json_stream *s, const char *name,
                            oct_status (*read)(oct_qmap_in *q, json_t *o))
{
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(s, '['));
    for (;;) {
        json_t *o = NULL;
        oct_status st;

        OCT_TRY(oct_json_stream_more(s, ']', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_value(s, &o, NULL));
        oct_arena_reset(q->scratch);
        q->list = name;
        q->index = n - 1;
        st = read(q, o);
        q->list = NULL;
        json_decref(o);
        if (st) return st;
    }
}

static oct_status read_text(oct_qmap_in *q, oct_json_stream *s, const char *key, const char **out)
{
    json_t *v = NULL;
    oct_status st = OCT_OK;

    OCT_TRY(oct_json_stream_value(s, &v, NULL));
    if (!json_is_string(v))
        st = oct_fail(q->ctx, OCT_ERR_FORMAT, "'%s' is not a string", key);
    else if (!(*out = oct_arena_strdup(q->m->arena, json_string_value(v))))
        st = OCT_ERR_MEMORY;
    json_decref(v);
    return st;
}

static oct_status read_target(oct_qmap_in *q, oct_json_stream *s)
{
    const char *name = NULL;

    OCT_TRY(read_text(q, s, "target", &name));
    return oct_target_find(q->ctx, name, &q->m->target) ? OCT_ERR_FORMAT : OCT_OK;
}

static oct_status read_version(oct_qmap_in *q, oct_json_stream *s)
{
    json_t *v = NULL;
    bool good;

    OCT_TRY(oct_json_stream_value(s, &v, NULL));
    good = json_is_integer(v) && json_integer_value(v) == OCT_QMAP_VERSION;
    json_decref(v);
    if (!good) return oct_fail(q->ctx, OCT_ERR_UNSUPPORTED, "not a qmap of version 1");
    q->has_version = true;
    return OCT_OK;
}

static oct_status read_entry(oct_qmap_in *q, oct_json_stream *s, const char *key)
{
    if (!strcmp(key, "octet_qmap")) return read_version(q, s);
    if (!strcmp(key, "target")) return read_target(q, s);
    if (!strcmp(key, "tail")) return read_text(q, s, key, &q->m->tail_text);
    if (!strcmp(key, "shifts")) return read_list(q, s, "shifts", read_shift);
    if (!strcmp(key, "float")) return read_list(q, s, "float", read_reason);
    if (strcmp(key, "points")) return oct_fail(q->ctx, OCT_ERR_FORMAT, "unknown key '%s'", key);
    if (q->has_points) return oct_fail(q->ctx, OCT_ERR_FORMAT, "'points' is there twice");
    q->has_points = true;
    return read_list(q, s, "points", read_point);
}

static oct_status read_file(oct_qmap_in *q, oct_json_stream *s)
{
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(s, '{'));
    for (;;) {
        char key[OCT_JSON_KEY_SIZE];

        OCT_TRY(oct_json_stream_more(s, '}', &n, &more));
        if (!more) break;
        OCT_TRY(oct_json_stream_key(s, key));
        OCT_TRY(read_entry(q, s, key));
    }
    OCT_TRY(oct_json_stream_finish(s));
    if (!q->has_version || !q->has_points || !q->m->target)
        return oct_fail(q->ctx, OCT_ERR_FORMAT, "not a qmap: no '%s'",
                        !q->has_version  ? "octet_qmap"
                        : !q->has_points ? "points"
                                         : "target");
    return OCT_OK;
}

/* Every chain of dominators must end at a point that is not dominated. Each link is followed
 * once. */
static oct_status check_dominators(const oct_qmap_in *q)
{
    const oct_qmap *m = q->m;
    int32_t *seen = oct_arena_array(q->scratch, (size_t)m->n_points + 1, sizeof(*seen));

    if (!seen) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points; i++)
        for (int32_t at = i; m->points[at].state == OCT_QSTATE_DOMINATED && !seen[at];) {
            const int32_t next = m->points[at].dominator;

            seen[at] = i + 1;
            if (next >= m->n_points || seen[next] == i + 1)
                return oct_fail(q->ctx, OCT_ERR_FORMAT, "points[%d]: dominated by %s %d", (int)at,
                                next >= m->n_points ? "no such point:" : "itself, over", (int)next);
            at = next;
        }
    return OCT_OK;
}

static oct_status load(oct_qmap_in *q, const oct_file *f)
{
    oct_json_stream s;

    OCT_TRY(index_names(q));
    OCT_TRY(oct_qmap_new(q->g, NULL, &q->m));
    oct_json_stream_init(&s, q->ctx, oct_file_data(f), oct_file_size(f));
    OCT_TRY(read_file(q, &s));
    oct_arena_reset(q->scratch);
    return check_dominators(q);
}

oct_status oct_qmap_load(const oct_graph *g, const char *path, oct_qmap **out)
{
    oct_qmap_in q = {.ctx = g->ctx, .g = g};
    oct_file *f = NULL;
    oct_status st;

    oct_map_init(&q.values, g->ctx);
    oct_map_init(&q.nodes, g->ctx);
    st = oct_file_map(g->ctx, path, &f);
    if (!st && !(q.scratch = oct_arena_new(g->ctx))) st = OCT_ERR_MEMORY;
    if (!st) {
        st = load(&q, f);
        if (st && st != OCT_ERR_MEMORY) st = oct_fail_at(g->ctx, st, path);
    }
    if (st)
        oct_qmap_free(q.m);
    else
        *out = q.m;
    oct_arena_free(q.scratch);
    oct_map_fini(&q.values);
    oct_map_fini(&q.nodes);
    oct_file_unref(f);
    return st;
}
