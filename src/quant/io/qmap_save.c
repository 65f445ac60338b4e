/* SPDX-License-Identifier: Apache-2.0 */
/* A qmap as JSON: one line for each point, keys in a fixed order, floats with all their digits. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/io/qmap_words.h"

typedef struct out {
    oct_ctx *ctx;
    oct_writer *w;
    json_t *o;   /* the object being made */
    bool failed; /* sticky: something could not be made */
} out;

/* Takes v over; NULL is a failure. */
static void put(out *q, const char *key, json_t *v)
{
    if (json_object_set_new(q->o, key, v)) q->failed = true;
}

static void put_text(out *q, const char *key, const char *s)
{
    if (s) put(q, key, json_string(s));
}

static json_t *floats(const float *v, int64_t n)
{
    json_t *a = json_array();

    for (int64_t i = 0; a && i < n; i++)
        if (json_array_append_new(a, json_real((double)v[i]))) { /* not a number: fails */
            json_decref(a);
            a = NULL;
        }
    return a;
}

static json_t *ints(const int32_t *v, int64_t n)
{
    json_t *a = json_array();

    for (int64_t i = 0; a && i < n; i++)
        if (json_array_append_new(a, json_integer(v[i]))) {
            json_decref(a);
            a = NULL;
        }
    return a;
}

static json_t *wide_ints(const int64_t *v, int64_t n)
{
    json_t *a = json_array();

    for (int64_t i = 0; a && i < n; i++)
        if (json_array_append_new(a, json_integer(v[i]))) {
            json_decref(a);
            a = NULL;
        }
    return a;
}

/* Writes the object on a line of its own; `what` is for the error. Nine digits name one float. */
static oct_status flush(out *q, bool is_first, const char *what)
{
    char *text = q->failed ? NULL : json_dumps(q->o, JSON_COMPACT | JSON_REAL_PRECISION(9));
    oct_status st;

    json_decref(q->o);
    q->o = NULL;
    if (!text)
        return oct_fail(q->ctx, OCT_ERR_ARG,
                        "'%s': cannot be written: not a number, not UTF-8, or out of memory", what);
    st = oct_writer_put(q->w, is_first ? "\n" : ",\n", is_first ? 1 : 2);
    if (!st) st = oct_writer_put(q->w, text, strlen(text));
    free(text);
    return st;
}

static void start(out *q)
{
    q->failed = false;
    if (!(q->o = json_object())) q->failed = true;
}

static void put_spec(out *q, const oct_qspec *s)
{
    put(q, "bits", json_integer(s->bits));
    put(q, "signed", json_boolean(s->is_signed));
    put(q, "symmetric", json_boolean(s->is_symmetric));
    put(q, "narrow", json_boolean(s->is_narrow));
    put(q, "pow2", json_boolean(s->is_pow2));
    put_text(q, "rounding", oct_qmap_roundings()[s->rounding]);
    put(q, "axis", s->axis < 0 ? json_null() : json_integer(s->axis));
}

static void put_fold(out *q, const oct_qpoint *p)
{
    json_t *outer = q->o;

    if (!(q->o = json_object())) q->failed = true;
    put(q, "rows", json_integer(p->fold_rows));
    put(q, "columns", json_integer(p->fold_columns));
    put(q, "scale", json_real((double)p->fold_scale));
    put(q, "values", floats(p->fold, p->fold_rows * p->fold_columns));
    if (json_object_set_new(outer, "fold", q->o)) q->failed = true;
    q->o = outer;
}

static oct_status save_point(out *q, const oct_qpoint *p, bool is_first)
{
    start(q);
    put_text(q, "value", p->value->name);
    if (p->node) {
        put_text(q, "node", p->node->name);
        put(q, "operand", json_integer(p->operand));
    }
    put_text(q, "role", oct_qmap_roles()[p->role]);
    put_spec(q, &p->spec);
    put_text(q, "state", oct_qstate_name(p->state));
    if (p->state == OCT_QSTATE_DOMINATED) put(q, "dominator", json_integer(p->dominator));
    put_text(q, "reason", p->reason);
    put_text(q, "observer", p->observer);
    if (p->n) {
        put(q, "scale", floats(p->scale, p->n));
        put(q, "zero", ints(p->zero, p->n));
        put_text(q, "scale_by", p->scale_by);
    }
    if (p->has_seen) put(q, "seen", floats((const float[]){p->seen_low, p->seen_high}, 2));
    if (p->fold) put_fold(q, p);
    if (p->n_moved) put(q, "moved", wide_ints(p->moved, p->n_moved));
    return flush(q, is_first, p->value->name);
}

static oct_status save_shift(out *q, const oct_qshift *s, bool is_first)
{
    start(q);
    put_text(q, "node", s->node->name);
    put(q, "shift", floats(s->shift, s->n));
    return flush(q, is_first, s->node->name);
}

/* Reasons of the nodes of a graph and of its nodes' bodies. */
static oct_status save_reasons(out *q, const oct_qmap *m, const oct_graph *g, int64_t *n)
{
    for (const oct_node *node = g->first; node; node = node->next) {
        const char *reason = m->float_reason[node->id];

        for (int i = 0, k = oct_op_n_attrs(node->op); i < k; i++)
            if (node->attr[i].kind == OCT_ATTR_GRAPH)
                OCT_TRY(save_reasons(q, m, node->attr[i].g, n));
        if (!reason) continue;
        start(q);
        put_text(q, "node", node->name);
        put_text(q, "why", oct_qmap_float_reasons()[m->float_why[node->id]]);
        put_text(q, "reason", reason);
        OCT_TRY(flush(q, ++*n == 1, node->name));
    }
    return OCT_OK;
}

static oct_status save_head(out *q, const oct_qmap *m)
{
    char *text;
    oct_status st;

    start(q);
    put(q, "octet_qmap", json_integer(OCT_QMAP_VERSION));
    put_text(q, "target", m->target->name);
    put_text(q, "tail", m->tail_text);
    text = q->failed ? NULL : json_dumps(q->o, JSON_COMPACT);
    json_decref(q->o);
    if (!text) return oct_fail(q->ctx, OCT_ERR_ARG, "cannot be written: not UTF-8 or no memory");
    /* The object stays open: lists follow. */
    st = oct_writer_put(q->w, text, strlen(text) - 1);
    free(text);
    return st;
}

static oct_status save_all(out *q, const oct_qmap *m)
{
    int64_t n = 0;

    OCT_TRY(save_head(q, m));
    OCT_TRY(oct_writer_printf(q->w, ",\n\"points\":["));
    for (int32_t i = 0; i < m->n_points; i++)
        OCT_TRY(save_point(q, &m->points[i], i == 0));
    OCT_TRY(oct_writer_printf(q->w, "],\n\"shifts\":["));
    for (int32_t i = 0; i < m->n_shifts; i++)
        OCT_TRY(save_shift(q, &m->shifts[i], i == 0));
    OCT_TRY(oct_writer_printf(q->w, "],\n\"float\":["));
    OCT_TRY(save_reasons(q, m, m->g, &n));
    return oct_writer_printf(q->w, "]}\n");
}

oct_status oct_qmap_save(const oct_qmap *m, const char *path)
{
    out q = {.ctx = m->ctx};
    oct_status st;

    OCT_TRY(oct_writer_open(m->ctx, path, &q.w));
    st = save_all(&q, m);
    if (st) {
        oct_writer_abort(q.w);
        return st;
    }
    return oct_writer_commit(q.w);
}
