/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a run: everything is compared before anything is changed. */
#include <string.h>

#include "train/checkpoint_read.h"

/* One flat buffer and where its parts are in the file. */
typedef struct part {
    const char *prefix, *state;
    const oct_params *params;
    float *flat;
} part;

enum { MAX_PARTS = 4 + OCT_OPTIMIZER_MAX_STATES };

/* What a run has; the number of parts. */
static int list_parts(const oct_run_state *run, part out[MAX_PARTS])
{
    int n = 0;

    out[n++] = (part){"param", NULL, run->params, run->weights};
    if (run->states) out[n++] = (part){"state", NULL, run->states, run->stats};
    if (run->ema) {
        out[n++] = (part){"ema", NULL, run->params, run->ema_weights};
        if (run->states) out[n++] = (part){"ema", NULL, run->states, run->ema_stats};
    }
    for (int i = 0; run->optimizer && i < run->optimizer->n_states; i++)
        out[n++] = (part){"optimizer", run->optimizer->row->states[i], run->params,
                          run->optimizer->state[i]};
    return n;
}

static oct_status check_part(const oct_checkpoint *c, const part *p, oct_arena *a)
{
    for (int32_t i = 0; i < p->params->n; i++) {
        const oct_param *v = &p->params->v[i];
        const char *name = oct_checkpoint_name(a, p->prefix, p->state, v->name);
        const int32_t at = name ? oct_safetensors_find(c->s, name) : -1;
        char text[OCT_TYPE_TEXT_SIZE];

        if (!name) return OCT_ERR_MEMORY;
        if (at < 0)
            return oct_fail(c->ctx, OCT_ERR_ARG,
                            "%s: is a checkpoint of another network: it has no '%.200s'", c->path,
                            name);
        if (oct_safetensors_type(c->s, at)->dtype != OCT_DTYPE_F32 ||
            oct_type_len(oct_safetensors_type(c->s, at)) != v->len)
            return oct_fail(c->ctx, OCT_ERR_ARG,
                            "%s: is a checkpoint of another network: its '%.200s' is %s, but the "
                            "network has %lld numbers there",
                            c->path, name, oct_type_text(oct_safetensors_type(c->s, at), text),
                            (long long)v->len);
    }
    return OCT_OK;
}

/* A tensor that the run has no place for. */
static oct_status check_more(const oct_checkpoint *c, const char *prefix, const oct_params *p)
{
    const size_t len = strlen(prefix);

    for (int32_t i = 0; i < oct_safetensors_count(c->s); i++) {
        const char *name = oct_safetensors_name(c->s, i);

        if (strncmp(name, prefix, len) != 0 || (p && oct_params_find(p, name + len) >= 0)) continue;
        return oct_fail(c->ctx, OCT_ERR_ARG,
                        "%s: is a checkpoint of another network, or other layers were frozen: "
                        "'%.200s' is not trained here",
                        c->path, name);
    }
    return OCT_OK;
}

static oct_status check_settings(const oct_checkpoint *c, const oct_run_state *run)
{
    const char *optimizer = run->optimizer ? run->optimizer->row->name : "none";
    const char *ema = run->ema ? run->ema : "none";

    if (strcmp(c->optimizer ? c->optimizer : "none", optimizer) != 0)
        return oct_fail(c->ctx, OCT_ERR_ARG, "%s: the run's optimizer was %s, not %s", c->path,
                        c->optimizer ? c->optimizer : "none", optimizer);
    if (strcmp(c->ema ? c->ema->name : "none", ema) != 0)
        return oct_fail(c->ctx, OCT_ERR_ARG, "%s: the run's average was %s, not %s", c->path,
                        c->ema ? c->ema->name : "none", ema);
    return OCT_OK;
}

/* The same layers, constants and attributes? */
static oct_status check_network(const oct_checkpoint *c, const oct_run_state *run)
{
    oct_graph *mine = NULL, *theirs = NULL;
    oct_str model;
    oct_status st = oct_checkpoint_open_network(run, &mine);
    size_t size;
    const void *bytes = oct_safetensors_data(c->s, c->network, &size);
    char why[256] = "";

    if (st) return st;
    oct_str_init(&model, c->ctx);
    st = oct_checkpoint_encode(mine, &model);
    if (!st && (model.len != size || memcmp(model.s, bytes, size) != 0)) {
        st = oct_checkpoint_load_network(c, &theirs);
        if (!st && !oct_graph_equal(mine, theirs, why, sizeof(why)))
            st = oct_fail(c->ctx, OCT_ERR_ARG, "%s: is a checkpoint of another network: %s",
                          c->path, why);
    }
    oct_str_fini(&model);
    oct_graph_free(mine);
    oct_graph_free(theirs);
    return st;
}

static oct_status copy_part(const oct_checkpoint *c, const part *p, oct_arena *a)
{
    for (int32_t i = 0; i < p->params->n; i++) {
        const oct_param *v = &p->params->v[i];
        const char *name = oct_checkpoint_name(a, p->prefix, p->state, v->name);
        size_t size;

        if (!name) return OCT_ERR_MEMORY;
        const void *from = oct_safetensors_data(c->s, oct_safetensors_find(c->s, name), &size);

        if (size) memcpy(p->flat + v->offset, from, size);
    }
    return OCT_OK;
}

oct_status oct_checkpoint_take(const oct_checkpoint *c, oct_run_state *run)
{
    oct_arena *a = oct_arena_new(c->ctx);
    const part parts[] = {{"param", NULL, run->params, run->weights},
                          {"state", NULL, run->states, run->stats}};
    oct_status st = a ? check_network(c, run) : OCT_ERR_MEMORY;

    for (size_t i = 0; i < OCT_COUNT(parts) && !st; i++)
        if (parts[i].params) st = check_part(c, &parts[i], a);
    for (size_t i = 0; i < OCT_COUNT(parts) && !st; i++)
        if (parts[i].params) st = copy_part(c, &parts[i], a);
    oct_arena_free(a);
    return st;
}

static oct_status restore(const oct_checkpoint *c, oct_run_state *run, oct_arena *a)
{
    part parts[MAX_PARTS];
    const int n = list_parts(run, parts);

    OCT_TRY(check_settings(c, run));
    for (int i = 0; i < n; i++)
        OCT_TRY(check_part(c, &parts[i], a));
    OCT_TRY(check_more(c, "param/", run->params));
    OCT_TRY(check_more(c, "state/", run->states));
    OCT_TRY(check_network(c, run));
    for (int i = 0; i < n; i++)
        OCT_TRY(copy_part(c, &parts[i], a));
    if (run->optimizer) run->optimizer->t = c->optimizer_steps;
    run->ema_updates = c->ema_updates;
    run->step = c->step;
    run->epoch = c->epoch;
    run->seed = c->seed;
    return OCT_OK;
}

oct_status oct_checkpoint_restore(const oct_checkpoint *c, oct_run_state *run)
{
    oct_arena *a = oct_arena_new(c->ctx);
    oct_status st;

    if (!a) return OCT_ERR_MEMORY;
    st = restore(c, run, a);
    oct_arena_free(a);
    return st;
}
