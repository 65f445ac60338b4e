/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scales of a quantized file, for people. What the file holds comes from its Q and DQ nodes;
 * how the scales came about is in the qmap file that `octet quantize --save-qmap` writes beside it.
 */
#include <octet/quant.h>
#include <string.h>

#include "base/file.h"
#include "base/json_stream.h"
#include "base/map.h"
#include "op/channels.h"
#include "quant/io/qmap_words.h"
#include "quant/lower/lower.h"

enum { MOST_MOVES = 64 }; /* from a value up to the one that has a point in the qmap */

/* What the qmap file says of one point. */
typedef struct note {
    const char *observer, *scale_by; /* NULL: nothing */
    bool has_seen;
    double seen_low, seen_high;
    int64_t dominator; /* index of the point whose scales it has; -1: it has its own */
} note;

struct oct_scale_list {
    oct_ctx *ctx;
    oct_graph *g; /* the float network */
    oct_qmap *m;  /* of g */
    oct_arena *arena;
    /* "value", "value\nnode" for one consumer, "\nnode" for its weight: index of a note, plus 1 */
    oct_map by_name;
    note *notes;
    size_t n_notes, cap_notes;
};

/* --- the qmap file --- */

static const char *text_of(oct_scale_list *s, json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? oct_arena_strdup(s->arena, text) : NULL;
}

static oct_status put_name(oct_scale_list *s, const char *name)
{
    if (!name) return OCT_ERR_MEMORY;
    if (oct_map_get(&s->by_name, name)) return OCT_OK;
    return oct_map_put(&s->by_name, name, (void *)(uintptr_t)s->n_notes);
}

/* Read without checks: a field that is not as octet writes it is a field that says nothing. */
static oct_status read_note(oct_scale_list *s, json_t *o)
{
    json_t *seen = json_object_get(o, "seen"), *dominator = json_object_get(o, "dominator");
    const char *value = text_of(s, o, "value"), *node = text_of(s, o, "node");
    const char *role = json_string_value(json_object_get(o, "role"));
    note n = {.observer = text_of(s, o, "observer"),
              .scale_by = text_of(s, o, "scale_by"),
              .has_seen = json_array_size(seen) == 2,
              .seen_low = json_number_value(json_array_get(seen, 0)),
              .seen_high = json_number_value(json_array_get(seen, 1)),
              .dominator = json_is_integer(dominator) ? json_integer_value(dominator) : -1};

    OCT_TRY(oct_grow(s->ctx, &s->notes, &s->cap_notes, s->n_notes + 1, sizeof(n)));
    s->notes[s->n_notes++] = n;
    if (!value) return OCT_OK;
    OCT_TRY(put_name(s, value));
    if (!node) return OCT_OK;
    if (role && strcmp(role, oct_qmap_roles()[OCT_QROLE_WEIGHT]) == 0)
        OCT_TRY(put_name(s, oct_arena_printf(s->arena, "\n%s", node)));
    return put_name(s, oct_arena_printf(s->arena, "%s\n%s", value, node));
}

static oct_status read_points(oct_scale_list *s, oct_json_stream *in)
{
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(in, '['));
    for (;;) {
        json_t *o = NULL;
        oct_status st;

        OCT_TRY(oct_json_stream_more(in, ']', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_value(in, &o, NULL));
        st = read_note(s, o);
        json_decref(o);
        if (st) return st;
    }
}

static oct_status read_qmap(oct_scale_list *s, oct_json_stream *in)
{
    bool has_version = false, has_points = false, more;
    int64_t n = 0;

    OCT_TRY(oct_json_stream_enter(in, '{'));
    for (;;) {
        char key[OCT_JSON_KEY_SIZE];

        OCT_TRY(oct_json_stream_more(in, '}', &n, &more));
        if (!more) break;
        OCT_TRY(oct_json_stream_key(in, key));
        has_version |= strcmp(key, "octet_qmap") == 0;
        if (strcmp(key, "points") == 0) {
            has_points = true;
            OCT_TRY(read_points(s, in));
        } else {
            OCT_TRY(oct_json_stream_skip(in));
        }
    }
    if (!has_version || !has_points)
        return oct_fail(s->ctx, OCT_ERR_FORMAT,
                        "not a qmap; 'octet quantize --save-qmap FILE' writes one");
    return OCT_OK;
}

static oct_status load_qmap(oct_scale_list *s, const char *path)
{
    oct_json_stream in;
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(s->ctx, path, &f));
    oct_json_stream_init(&in, s->ctx, oct_file_data(f), oct_file_size(f));
    st = read_qmap(s, &in);
    if (st && st != OCT_ERR_MEMORY) st = oct_fail_at(s->ctx, st, path);
    oct_file_unref(f);
    return st;
}

/* --- asking --- */

static const note *note_of(const oct_scale_list *s, const char *name)
{
    const uintptr_t at = (uintptr_t)oct_map_get(&s->by_name, name);
    const note *n = at ? &s->notes[at - 1] : NULL;

    /* Chains end; the bound is for a broken file. */
    for (size_t i = 0; n && n->dominator >= 0 && i < s->n_notes; i++)
        n = (uint64_t)n->dominator < s->n_notes ? &s->notes[n->dominator] : NULL;
    return n;
}

/* By the node that reads it. One that was rewritten for a runtime has the name of the original with
 * "~" and a number. */
static const note *weight_note(const oct_scale_list *s, const oct_value *v)
{
    char key[1024];
    const note *n;

    if (v->n_users < 1 || snprintf(key, sizeof(key), "\n%s", v->users[0]->name) >= (int)sizeof(key))
        return NULL;
    for (;;) {
        char *suffix = strrchr(key, '~');

        if ((n = note_of(s, key)) || !suffix) return n;
        *suffix = '\0';
    }
}

/* Of the value, or of what it is moved from: codes that are transposed keep their scale. */
static const note *value_note(const oct_scale_list *s, const oct_value *v)
{
    const note *n = note_of(s, v->name);

    for (int i = 0; i < MOST_MOVES && !n && v->producer && oct_node_moves_data(v->producer); i++) {
        v = v->producer->in[0];
        n = note_of(s, v->name);
    }
    return n;
}

static const note *find_note(const oct_scale_list *s, const oct_qpoint *p)
{
    const note *n = NULL;
    char key[1024];

    if (p->node &&
        snprintf(key, sizeof(key), "%s\n%s", p->value->name, p->node->name) < (int)sizeof(key))
        n = note_of(s, key);
    if (!n) n = value_note(s, p->value);
    /* An output that is dequantized has the name, and what is quantized another. */
    if (!n && p->node && p->node->n_out == 1 && p->node->out[0]->is_output)
        n = note_of(s, p->node->out[0]->name);
    return n || p->role != OCT_QROLE_WEIGHT ? n : weight_note(s, p->value);
}

static void add_scale(oct_scale_info *out, const oct_qpoint *p, int64_t i)
{
    const double scale = (double)p->scale[i];
    float low, high;

    oct_qspec_range(&p->spec, p->scale[i], p->zero[i], &low, &high);
    out->scale_min = i ? OCT_MIN(out->scale_min, scale) : scale;
    out->scale_max = i ? OCT_MAX(out->scale_max, scale) : scale;
    out->zero_min = i ? OCT_MIN(out->zero_min, p->zero[i]) : p->zero[i];
    out->zero_max = i ? OCT_MAX(out->zero_max, p->zero[i]) : p->zero[i];
    out->low = i ? OCT_MIN(out->low, (double)low) : (double)low;
    out->high = i ? OCT_MAX(out->high, (double)high) : (double)high;
}

int32_t oct_scale_list_at(const oct_scale_list *s, int32_t i, oct_scale_info *out)
{
    oct_scale_info all = {.struct_size = out->struct_size};
    const oct_qpoint *p;
    const note *n;

    if (i < 0 || i >= s->m->n_points) return 0;
    p = &s->m->points[i];
    n = find_note(s, p);
    all.value = p->value->name;
    all.node = p->node ? p->node->name : NULL;
    all.kind = oct_qmap_roles()[p->role];
    all.type = oct_qspec_dtype(&p->spec);
    all.n_scales = p->n;
    for (int64_t k = 0; k < p->n; k++)
        add_scale(&all, p, k);
    if (n) {
        all.has_seen = n->has_seen;
        all.seen_low = n->seen_low;
        all.seen_high = n->seen_high;
        all.observer = n->observer;
        all.scale_by = n->scale_by;
    }
    memcpy(out, &all, OCT_MIN(out->struct_size, sizeof(all)));
    return 1;
}

/* --- all --- */

oct_status oct_graph_scales(const oct_graph *g, const char *qmap_path, oct_scale_list **out)
{
    OCT_ENTER(g->ctx);
    oct_scale_list *s;
    oct_status st = OCT_ERR_MEMORY;

    if (!(s = oct_calloc(g->ctx, 1, sizeof(*s)))) return st;
    s->ctx = g->ctx;
    oct_map_init(&s->by_name, g->ctx);
    if ((s->arena = oct_arena_new(g->ctx))) st = oct_raise(g, &s->g, &s->m);
    if (!st && qmap_path) st = load_qmap(s, qmap_path);
    if (st) {
        oct_scale_list_free(s);
        return st;
    }
    *out = s;
    return OCT_OK;
}

void oct_scale_list_free(oct_scale_list *s)
{
    if (!s) return;
    oct_qmap_free(s->m);
    oct_graph_free(s->g);
    oct_map_fini(&s->by_name);
    oct_free(s->ctx, s->notes);
    oct_arena_free(s->arena);
    oct_free(s->ctx, s);
}
