/* SPDX-License-Identifier: Apache-2.0 */
/* Writing checkpoints. */
#include <inttypes.h>
#include <string.h>

#include "onnx/write.h"
#include "tensor/safetensors.h"
#include "train/checkpoint_parts.h"

/* --- the network --- */

static oct_status open_value(oct_graph *g, oct_value *v, const char *name)
{
    if (!v || !oct_value_known(v))
        return oct_fail(g->ctx, OCT_ERR_ARG, "parameter '%s' is no constant of the network", name);
    oct_tensor_unref(v->data);
    oct_tensor_unref(v->initial);
    v->data = v->initial = NULL;
    v->is_state = false;
    v->graph = g; /* bodies see the values of the graph around them */
    return v->is_input ? OCT_OK : oct_graph_add_input(g, v);
}

static oct_status open_values(oct_graph *g, const oct_map *values, const oct_params *p)
{
    for (int32_t i = 0; p && i < p->n; i++)
        OCT_TRY(open_value(g, oct_map_get(values, p->v[i].name), p->v[i].name));
    return OCT_OK;
}

oct_status oct_checkpoint_open_network(const oct_run_state *run, oct_graph **out)
{
    oct_graph *g = NULL;
    oct_map values;
    oct_status st = OCT_OK;

    OCT_TRY(oct_graph_clone(run->g, &g));
    oct_map_init(&values, g->ctx);
    for (int32_t i = 0; i < g->n_value_ids && !st; i++)
        if (g->values[i]) st = oct_map_put(&values, g->values[i]->name, g->values[i]);
    if (!st) st = open_values(g, &values, run->params);
    if (!st) st = open_values(g, &values, run->states);
    oct_map_fini(&values);
    if (st)
        oct_graph_free(g);
    else
        *out = g;
    return st;
}

static oct_status put_str(void *user, const void *p, size_t size)
{
    oct_str_put(user, p, size);
    return ((oct_str *)user)->failed ? OCT_ERR_MEMORY : OCT_OK;
}

oct_status oct_checkpoint_encode(const oct_graph *open, oct_str *out)
{
    return oct_onnx_encode(open, NULL, put_str, out);
}

/* --- tensors and notes --- */

const char *oct_checkpoint_name(oct_arena *a, const char *prefix, const char *state,
                                const char *name)
{
    return state ? oct_arena_printf(a, "%s/%s/%s", prefix, state, name)
                 : oct_arena_printf(a, "%s/%s", prefix, name);
}

/* A file being put together. */
typedef struct draft {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_map inputs; /* of the network: name -> value */
    oct_safetensors_entry *entry;
    int32_t n;
    size_t cap;
    oct_safetensors_text *note;
    int32_t n_notes;
    size_t cap_notes;
} draft;

static oct_status add_entry(draft *d, const char *name, const oct_type *type, const void *data)
{
    if (!name) return OCT_ERR_MEMORY;
    if (d->n == INT32_MAX) return oct_fail(d->ctx, OCT_ERR_UNSUPPORTED, "too many tensors");
    OCT_TRY(oct_grow(d->ctx, &d->entry, &d->cap, (size_t)d->n + 1, sizeof(*d->entry)));
    d->entry[d->n++] = (oct_safetensors_entry){name, *type, data};
    return OCT_OK;
}

/* All ranges of a flat buffer, with the shapes that the network has them in. */
static oct_status add_flat(draft *d, const char *prefix, const char *state, const oct_params *p,
                           const float *flat)
{
    for (int32_t i = 0; p && flat && i < p->n; i++) {
        const oct_value *v = oct_map_get(&d->inputs, p->v[i].name);

        if (!v || v->type.dtype != OCT_DTYPE_F32 || oct_type_len(&v->type) != p->v[i].len)
            return oct_fail(d->ctx, OCT_ERR_ARG, "parameter '%s' has another size in the network",
                            p->v[i].name);
        OCT_TRY(add_entry(d, oct_checkpoint_name(d->arena, prefix, state, p->v[i].name), &v->type,
                          flat + p->v[i].offset));
    }
    return OCT_OK;
}

static oct_status add_note(draft *d, const char *key, const char *text)
{
    if (!key || !text) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(d->ctx, &d->note, &d->cap_notes, (size_t)d->n_notes + 1, sizeof(*d->note)));
    d->note[d->n_notes++] = (oct_safetensors_text){key, text};
    return OCT_OK;
}

static oct_status add_number(draft *d, const char *key, int64_t v)
{
    return add_note(d, key, oct_arena_printf(d->arena, "%" PRId64, v));
}

static oct_status add_notes(draft *d, const oct_run_state *run)
{
    OCT_TRY(add_note(d, OCT_CHECKPOINT_KEY, OCT_CHECKPOINT_VERSION)); /* first: see sniffing */
    OCT_TRY(add_number(d, "step", run->step));
    OCT_TRY(add_number(d, "epoch", run->epoch));
    OCT_TRY(add_note(d, "seed", oct_arena_printf(d->arena, "%" PRIu64, run->seed)));
    if (run->optimizer) {
        OCT_TRY(add_note(d, "optimizer", run->optimizer->row->name));
        OCT_TRY(add_number(d, "optimizer.steps", run->optimizer->t));
    }
    if (run->ema) {
        OCT_TRY(add_note(d, "ema", run->ema));
        OCT_TRY(add_note(d, "ema.decay", oct_arena_printf(d->arena, "%.17g", run->ema_decay)));
        OCT_TRY(add_number(d, "ema.updates", run->ema_updates));
        OCT_TRY(add_number(d, "ema.total", run->ema_total));
    }
    OCT_TRY(add_note(d, "recipe", run->recipe ? run->recipe : ""));
    for (int32_t i = 0; i < run->n_notes; i++)
        OCT_TRY(add_note(d, oct_checkpoint_name(d->arena, "note", NULL, run->notes[i].key),
                         run->notes[i].value));
    return OCT_OK;
}

static oct_status add_model(draft *d, const char *name, const oct_str *model)
{
    const int64_t size = (int64_t)model->len;
    const oct_type bytes = oct_type_make(OCT_DTYPE_U8, 1, &size);

    return add_entry(d, name, &bytes, model->s);
}

static oct_status add_tensors(draft *d, const oct_run_state *run, const oct_graph *open)
{
    for (int32_t i = 0; i < open->n_inputs; i++)
        OCT_TRY(oct_map_put(&d->inputs, open->inputs[i]->name, open->inputs[i]));
    OCT_TRY(add_flat(d, "param", NULL, run->params, run->weights));
    OCT_TRY(add_flat(d, "state", NULL, run->states, run->stats));
    if (run->ema) {
        OCT_TRY(add_flat(d, "ema", NULL, run->params, run->ema_weights));
        OCT_TRY(add_flat(d, "ema", NULL, run->states, run->ema_stats));
    }
    for (int i = 0; run->optimizer && i < run->optimizer->n_states; i++)
        OCT_TRY(add_flat(d, "optimizer", run->optimizer->row->states[i], run->params,
                         run->optimizer->state[i]));
    return OCT_OK;
}

oct_status oct_checkpoint_save(oct_ctx *ctx, const char *path, const oct_run_state *run)
{
    draft d = {.ctx = ctx, .arena = oct_arena_new(ctx)};
    oct_graph *open = NULL;
    oct_str model, integers;
    oct_status st = d.arena ? OCT_OK : OCT_ERR_MEMORY;

    oct_map_init(&d.inputs, ctx);
    oct_str_init(&model, ctx);
    oct_str_init(&integers, ctx);
    if (!st) st = oct_checkpoint_open_network(run, &open);
    if (!st) st = oct_checkpoint_encode(open, &model);
    if (!st && run->quantized) st = oct_checkpoint_encode(run->quantized, &integers);
    if (!st) st = add_tensors(&d, run, open);
    if (!st) st = add_model(&d, OCT_CHECKPOINT_NETWORK, &model);
    if (!st && run->quantized) st = add_model(&d, OCT_CHECKPOINT_QUANTIZED, &integers);
    if (!st) st = add_notes(&d, run);
    if (st)
        oct_fail_at(ctx, st, path);
    else
        st = oct_safetensors_save(ctx, path, d.entry, d.n, d.note, d.n_notes);
    oct_graph_free(open);
    oct_str_fini(&model);
    oct_str_fini(&integers);
    oct_map_fini(&d.inputs);
    oct_free(ctx, d.entry);
    oct_free(ctx, d.note);
    oct_arena_free(d.arena);
    return st;
}
