/* SPDX-License-Identifier: Apache-2.0 */
/* Channel factors as text in the metadata, and back. */
#include "quant/correct/channel_factors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/map.h"

/* --- writing --- */

static size_t length(const oct_channel_factors *all, int32_t n)
{
    size_t sum = 0;

    for (int32_t i = 0; i < n && sum <= OCT_MOVED_MOST_BYTES; i++)
        sum += strlen(all[i].value) +
               (size_t)all[i].channels * (all[i].x[1] ? 2 : 1) * sizeof(float) / 3 * 4;
    return sum;
}

static oct_status put_numbers(oct_ctx *ctx, const oct_channel_factors *m, oct_str *text)
{
    const size_t n = (size_t)m->channels, n_all = n * (m->x[1] ? 2 : 1);
    float *v = oct_calloc(ctx, n_all + 1, sizeof(*v));

    if (!v) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n_all; i++)
        v[i] = (float)m->x[i / n][i % n];
    oct_base64_put(text, v, n_all * sizeof(*v));
    oct_free(ctx, v);
    return text->failed ? OCT_ERR_MEMORY : OCT_OK;
}

/* *ok: it can be said in JSON. */
static oct_status put_all(oct_ctx *ctx, const oct_channel_factors *all, int32_t n, json_t *o,
                          bool *ok)
{
    for (int32_t i = 0; i < n && *ok; i++) {
        oct_str text;
        oct_status st;

        oct_str_init(&text, ctx);
        st = put_numbers(ctx, &all[i], &text);
        if (!st)
            *ok = !json_object_set_new(o, all[i].value,
                                       json_stringn(text.len ? text.s : "", text.len));
        oct_str_fini(&text);
        OCT_TRY(st);
    }
    return OCT_OK;
}

oct_status oct_channel_factors_write(oct_graph *g, const char *key, const oct_channel_factors *all,
                                     int32_t n)
{
    bool ok = length(all, n) <= OCT_MOVED_MOST_BYTES;
    json_t *o = json_object();
    oct_status st = o ? OCT_OK : OCT_ERR_MEMORY;

    if (!st) st = put_all(g->ctx, all, n, o, &ok);
    if (!st && ok) {
        char *text = json_dumps(o, JSON_COMPACT);

        st = text ? OCT_OK : OCT_ERR_MEMORY;
        if (!st && strlen(text) <= OCT_MOVED_MOST_BYTES) st = oct_graph_set_metadata(g, key, text);
        free(text);
    }
    json_decref(o);
    return st;
}

/* --- reading --- */

typedef struct reading {
    oct_graph *g;
    oct_arena *arena;
    oct_map values;
    oct_channel_factors_fn again;
} reading;

static oct_status index_values(reading *r)
{
    for (int32_t i = 0; i < r->g->root->n_value_ids; i++) {
        oct_value *v = r->g->root->values[i];

        if (v && v->graph == r->g) OCT_TRY(oct_map_put(&r->values, v->name, v));
    }
    return OCT_OK;
}

static oct_status read_one(reading *r, const char *name, const json_t *text, bool *fits)
{
    const size_t len = json_string_length(text);
    unsigned char *bytes = oct_arena_array(r->arena, len / 4 * 3 + 1, 1);
    double *x = oct_arena_array(r->arena, len / 4 + 1, sizeof(*x));
    oct_value *v = oct_map_get(&r->values, name);
    size_t size = 0;

    *fits = false;
    if (!bytes || !x) return OCT_ERR_MEMORY;
    if (!v || !json_is_string(text) || !oct_base64_get(json_string_value(text), len, bytes, &size))
        return OCT_OK;
    if (size == 0 || size % sizeof(float)) return OCT_OK;
    for (size_t i = 0; i < size / sizeof(float); i++) {
        float number;

        memcpy(&number, bytes + i * sizeof(float), sizeof(float));
        x[i] = (double)number;
    }
    return r->again(v, x, (int64_t)(size / sizeof(float)), r->arena, fits);
}

static oct_status read_all(reading *r, json_t *o, bool *all)
{
    const char *name;
    json_t *text;

    OCT_TRY(index_values(r));
    json_object_foreach(o, name, text)
    {
        bool fits;

        OCT_TRY(read_one(r, name, text, &fits));
        *all = *all && fits;
    }
    return OCT_OK;
}

oct_status oct_channel_factors_replay(oct_graph *g, const char *text, oct_channel_factors_fn again,
                                      bool *all)
{
    reading r = {.g = g, .again = again};
    oct_status st = OCT_OK;
    json_t *o;

    *all = false;
    if (strlen(text) > OCT_MOVED_MOST_BYTES) return OCT_OK;
    o = json_loads(text, JSON_REJECT_DUPLICATES, NULL); /* no value is changed twice */
    if (json_is_object(o)) {
        *all = true;
        oct_map_init(&r.values, g->ctx);
        st = (r.arena = oct_arena_new(g->ctx)) ? read_all(&r, o, all) : OCT_ERR_MEMORY;
        oct_arena_free(r.arena);
        oct_map_fini(&r.values);
    }
    json_decref(o);
    return st;
}
