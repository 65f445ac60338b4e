/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: Python's keywords come as a recipe in JSON, which octet reads and checks itself. */
#include <string.h>

#include "ext.h"

oct_status pyo_settings_read(pyo_settings *s, const oct_graph *g, oct_ctx *ctx, const char *json,
                             Py_ssize_t size)
{
    oct_quantize_options o;
    oct_status st;

    memset(s, 0, sizeof(*s));
    s->job.struct_size = sizeof(s->job);
    if ((st = oct_recipe_new(ctx, &s->recipe))) return st;
    if ((st = oct_recipe_load_memory(s->recipe, "settings", json, (size_t)size))) return st;
    oct_recipe_get_job(s->recipe, &s->job);
    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(s->recipe, &o);
    s->family = o.family;
    if (s->job.threads) oct_ctx_set_threads(ctx, s->job.threads);
    if (s->job.labels && (st = oct_class_names_load(ctx, s->job.labels, &s->names))) return st;
    if (!s->job.preprocess) return OCT_OK;
    s->preprocess = &s->changed;
    return oct_graph_preprocess(g, s->family, s->job.preprocess, &s->changed);
}

/* Frees them and leaves the context. */
int pyo_settings_leave(pyo_settings *s, pyo_context *c, PyThreadState *state, oct_status st)
{
    oct_class_names_free(s->names);
    oct_recipe_free(s->recipe);
    return pyo_leave(c, state, st);
}

oct_status pyo_settings_quantize(pyo_settings *s, const char *source, oct_quantize_options *o)
{
    oct_quantize_options_init(o);
    oct_recipe_get_quantize(s->recipe, o);
    o->source = source;
    o->preprocess = s->preprocess;
    return oct_recipe_line(s->recipe, &o->settings);
}
