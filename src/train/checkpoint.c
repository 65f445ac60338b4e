/* SPDX-License-Identifier: Apache-2.0 */
/* Reading checkpoints: what they say of a run, and the network in them. */
#include "train/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx.h"
#include "optim/ema.h"
#include "tensor/safetensors.h"
#include "train/checkpoint_read.h"

#define MOST (1LL << 53) /* steps and epochs; sums of a few do not overflow */

/* --- opening --- */

static oct_status fail(const oct_checkpoint *c, const char *what)
{
    return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: %s", c->path, what);
}

static oct_status read_number(const oct_checkpoint *c, const char *key, int64_t *out)
{
    const char *text = oct_safetensors_note(c->s, key);
    char *end = NULL;
    long long v;

    errno = 0;
    v = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || v > MOST || *text < '0' || *text > '9')
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: the number '%s' is missing or broken", c->path,
                        key);
    *out = v;
    return OCT_OK;
}

static oct_status read_seed(oct_checkpoint *c)
{
    const char *text = oct_safetensors_note(c->s, "seed");
    char *end = NULL;

    errno = 0;
    c->seed = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || *text < '0' || *text > '9')
        return fail(c, "the number 'seed' is missing or broken");
    return OCT_OK;
}

static oct_status read_ema(oct_checkpoint *c)
{
    const char *name = oct_safetensors_note(c->s, "ema");
    const char *decay = oct_safetensors_note(c->s, "ema.decay");
    char *end = NULL;

    if (!name) return OCT_OK;
    c->ema = oct_ema_find(name);
    if (!c->ema)
        return oct_fail(c->ctx, OCT_ERR_UNSUPPORTED, "%s: there is no average named '%.40s'",
                        c->path, name);
    c->ema_decay = decay ? strtod(decay, &end) : 0.0;
    if (!decay || end == decay || *end || !(c->ema_decay >= 0 && c->ema_decay < 1))
        return fail(c, "the number 'ema.decay' is missing or broken");
    OCT_TRY(read_number(c, "ema.updates", &c->ema_updates));
    return read_number(c, "ema.total", &c->ema_total);
}

static oct_status read_notes(oct_checkpoint *c)
{
    const char *version = oct_safetensors_note(c->s, OCT_CHECKPOINT_KEY);
    const oct_type *type;

    if (!version)
        return fail(c, "has tensors, but is no checkpoint of octet's (no key " OCT_CHECKPOINT_KEY
                       " in its metadata)");
    if (strcmp(version, OCT_CHECKPOINT_VERSION) != 0)
        return oct_fail(
            c->ctx, OCT_ERR_UNSUPPORTED,
            "%s: a checkpoint of version %.20s; this octet reads version " OCT_CHECKPOINT_VERSION,
            c->path, version);
    c->network = oct_safetensors_find(c->s, OCT_CHECKPOINT_NETWORK);
    type = c->network >= 0 ? oct_safetensors_type(c->s, c->network) : NULL;
    if (!type || type->dtype != OCT_DTYPE_U8 || type->rank != 1)
        return fail(c, "the network (tensor " OCT_CHECKPOINT_NETWORK ") is missing");
    if (!(c->recipe = oct_safetensors_note(c->s, "recipe")))
        return fail(c, "the recipe is missing");
    OCT_TRY(read_number(c, "step", &c->step));
    OCT_TRY(read_number(c, "epoch", &c->epoch));
    OCT_TRY(read_seed(c));
    c->optimizer = oct_safetensors_note(c->s, "optimizer");
    if (c->optimizer) OCT_TRY(read_number(c, "optimizer.steps", &c->optimizer_steps));
    return read_ema(c);
}

oct_status oct_checkpoint_open(oct_ctx *ctx, const char *path, oct_checkpoint **out)
{
    oct_checkpoint *c = oct_calloc(ctx, 1, sizeof(*c));
    oct_status st = OCT_ERR_MEMORY;

    if (!c) return st;
    c->ctx = ctx;
    c->path = oct_strdup(ctx, path);
    if (c->path) st = oct_safetensors_open(ctx, path, &c->s);
    if (!st) st = read_notes(c);
    if (st)
        oct_checkpoint_close(c);
    else
        *out = c;
    return st;
}

void oct_checkpoint_close(oct_checkpoint *c)
{
    if (!c) return;
    oct_safetensors_close(c->s);
    oct_free(c->ctx, c->path);
    oct_free(c->ctx, c);
}

bool oct_checkpoint_sniff(oct_ctx *ctx, const char *path)
{
    static const char begin[] = "{\"__metadata__\":{\"" OCT_CHECKPOINT_KEY "\"";
    oct_file *f = NULL;
    bool is_one;

    if (oct_file_map(ctx, path, &f)) return false;
    is_one = oct_file_size(f) >= 8 + sizeof(begin) &&
             memcmp(oct_file_data(f) + 8, begin, sizeof(begin) - 1) == 0;
    oct_file_unref(f);
    return is_one;
}

/* --- what it says --- */

const char *oct_checkpoint_recipe(const oct_checkpoint *c)
{
    return c->recipe;
}

const char *oct_checkpoint_note(const oct_checkpoint *c, const char *key)
{
    for (int32_t i = 0; i < oct_safetensors_n_notes(c->s); i++) {
        const char *have = oct_safetensors_note_key(c->s, i);

        if (strncmp(have, "note/", 5) == 0 && strcmp(have + 5, key) == 0)
            return oct_safetensors_note(c->s, have);
    }
    return NULL;
}

bool oct_checkpoint_has_ema(const oct_checkpoint *c)
{
    return c->ema != NULL;
}

int64_t oct_checkpoint_step(const oct_checkpoint *c)
{
    return c->step;
}

int64_t oct_checkpoint_epoch(const oct_checkpoint *c)
{
    return c->epoch;
}

oct_status oct_checkpoint_check_recipe(const oct_checkpoint *c, const char *recipe)
{
    oct_arena *a = oct_arena_new(c->ctx);
    oct_recipe_difference d;
    oct_status st;

    if (!a) return OCT_ERR_MEMORY;
    st = oct_recipe_compare(a, c->recipe, recipe, &d);
    if (!st && d.key)
        st =
            oct_fail(c->ctx, OCT_ERR_ARG,
                     "%s: the recipe has changed: '%.100s' was '%.100s' and is now '%.100s'; go on "
                     "with the recipe of the run, or begin a new one",
                     c->path, d.key, d.old_value, d.new_value);
    oct_arena_free(a);
    return st;
}

/* --- the network --- */

/* An ONNX model that is a tensor of the file. */
static oct_status load_model(const oct_checkpoint *c, int32_t tensor, oct_graph **out)
{
    oct_file *f = oct_safetensors_file(c->s);
    size_t size;
    const uint8_t *p = oct_safetensors_data(c->s, tensor, &size);
    const oct_status st = oct_onnx_load_part(c->ctx, f, (size_t)(p - oct_file_data(f)), size, out);

    return st ? oct_fail_at(c->ctx, st, c->path) : OCT_OK;
}

oct_status oct_checkpoint_load_network(const oct_checkpoint *c, oct_graph **out)
{
    return load_model(c, c->network, out);
}

oct_status oct_checkpoint_quantized(const oct_checkpoint *c, oct_graph **out)
{
    const int32_t at = oct_safetensors_find(c->s, OCT_CHECKPOINT_QUANTIZED);
    const oct_type *type = at >= 0 ? oct_safetensors_type(c->s, at) : NULL;

    if (!type) return OCT_OK;
    if (type->dtype != OCT_DTYPE_U8 || type->rank != 1)
        return fail(c, "the tensor " OCT_CHECKPOINT_QUANTIZED " is no network");
    return load_model(c, at, out);
}

bool oct_checkpoint_is_quantized(const oct_checkpoint *c)
{
    return oct_safetensors_find(c->s, OCT_CHECKPOINT_QUANTIZED) >= 0;
}

/* The average of a value: its own tensor, since averages may have to be divided. */
static oct_status average(const oct_checkpoint *c, int32_t live, const char *name, oct_arena *a,
                          oct_tensor **out)
{
    const char *key = oct_checkpoint_name(a, "ema", NULL, name);
    const int32_t at = key ? oct_safetensors_find(c->s, key) : -1;
    oct_tensor *from = NULL, *live_tensor = NULL;
    oct_status st;

    if (!key) return OCT_ERR_MEMORY;
    if (at < 0 || !oct_type_equal(oct_safetensors_type(c->s, at), oct_safetensors_type(c->s, live)))
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: the average of '%.200s' is missing", c->path,
                        name);
    st = oct_safetensors_tensor(c->s, at, &from);
    if (!st) st = oct_safetensors_tensor(c->s, live, &live_tensor);
    if (!st) st = oct_tensor_make(c->ctx, &from->type, out);
    if (!st)
        oct_ema_read(c->ema, c->ema_decay, c->ema_updates, c->ema_total, from->data,
                     live_tensor->data, (*out)->data, oct_type_len(&from->type), 1);
    oct_tensor_unref(live_tensor);
    oct_tensor_unref(from);
    return st;
}

/* Gives an input of the network its numbers, if it is a parameter or a statistic. */
static oct_status fill_input(const oct_checkpoint *c, oct_value *v, bool ema, oct_arena *a)
{
    const char *param = oct_checkpoint_name(a, "param", NULL, v->name);
    const char *state = oct_checkpoint_name(a, "state", NULL, v->name);
    char have[OCT_TYPE_TEXT_SIZE], want[OCT_TYPE_TEXT_SIZE];
    oct_tensor *t = NULL;
    int32_t at;

    if (!param || !state) return OCT_ERR_MEMORY;
    at = oct_safetensors_find(c->s, param);
    if (at < 0) at = oct_safetensors_find(c->s, state);
    if (at < 0) return OCT_OK;
    if (v->type.dtype != OCT_DTYPE_F32 || !oct_type_equal(&v->type, oct_safetensors_type(c->s, at)))
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: '%.200s' is %s, but %s in the network",
                        c->path, v->name, oct_type_text(oct_safetensors_type(c->s, at), have),
                        oct_type_text(&v->type, want));
    OCT_TRY(ema ? average(c, at, v->name, a, &t) : oct_safetensors_tensor(c->s, at, &t));
    v->data = t;
    v->is_input = false;
    return OCT_OK;
}

static oct_status fill_inputs(const oct_checkpoint *c, oct_graph *g, bool ema, oct_arena *a)
{
    int32_t kept = 0, n_wanted = 0;
    const int32_t n = g->n_inputs;

    for (int32_t i = 0; i < n; i++) {
        OCT_TRY(fill_input(c, g->inputs[i], ema, a));
        if (!g->inputs[i]->data) g->inputs[kept++] = g->inputs[i];
    }
    g->n_inputs = kept;
    for (int32_t i = 0; i < oct_safetensors_count(c->s); i++) {
        const char *name = oct_safetensors_name(c->s, i);

        n_wanted += strncmp(name, "param/", 6) == 0 || strncmp(name, "state/", 6) == 0;
    }
    if (n_wanted != n - kept) return fail(c, "has weights that its network does not have");
    return OCT_OK;
}

oct_status oct_checkpoint_graph(const oct_checkpoint *c, bool ema, oct_graph **out)
{
    oct_arena *a;
    oct_graph *g = NULL;
    oct_status st;

    if (ema && !c->ema)
        return oct_fail(c->ctx, OCT_ERR_ARG, "%s: has no average of weights; take the weights",
                        c->path);
    if (!(a = oct_arena_new(c->ctx))) return OCT_ERR_MEMORY;
    st = oct_checkpoint_load_network(c, &g);
    if (!st) st = fill_inputs(c, g, ema, a);
    if (!st) st = oct_graph_verify(g);
    oct_arena_free(a);
    if (st)
        oct_graph_free(g);
    else
        *out = g;
    return st;
}
