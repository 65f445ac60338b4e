/* SPDX-License-Identifier: Apache-2.0 */
/* What a search gave. */
#include "tune/tuned.h"

#include <string.h>

#include "base/sized.h"
#include "tune/space.h"

void oct_tuned_show(const oct_trial *t, oct_tuned_trial *out)
{
    *out = (oct_tuned_trial){.struct_size = sizeof(*out),
                             .id = t->id,
                             .round = t->round,
                             .is_float = t->kind == OCT_TRIAL_FLOAT,
                             .is_done = t->state == OCT_TRIAL_DONE,
                             .images = t->images,
                             .settings = t->settings,
                             .score = t->score,
                             .ms = t->ms,
                             .bytes = t->bytes,
                             .seconds = t->seconds,
                             .error = t->error};
}

/* The plan is no trial; it comes first. */
static int32_t n_plans(const oct_tuned *t)
{
    return t->n && t->list[0].kind == OCT_TRIAL_PLAN;
}

int32_t oct_tuned_trial_at(const oct_tuned *t, int32_t i, oct_tuned_trial *out)
{
    const int32_t at = i + n_plans(t);
    oct_tuned_trial all;

    if (i < 0 || at >= t->n) return 0;
    oct_tuned_show(&t->list[at], &all);
    all.is_front = t->front[at];
    all.is_best = at == t->best;
    oct_sized_give(out, &all, sizeof(all));
    return 1;
}

int32_t oct_tuned_best(const oct_tuned *t)
{
    return t->best < 0 ? -1 : t->best - n_plans(t);
}

const char *oct_tuned_score_name(const oct_tuned *t)
{
    return t->score_name;
}

oct_status oct_tuned_recipe(const oct_tuned *t, int32_t i, oct_recipe **out)
{
    OCT_ENTER(t->ctx);
    const int32_t at = i + n_plans(t);
    oct_recipe *r = NULL;
    oct_status st;

    if (i < 0 || at >= t->n) return oct_fail(t->ctx, OCT_ERR_ARG, "there is no trial %d", (int)i);
    OCT_TRY(oct_recipe_new(t->ctx, &r));
    st = oct_recipe_load_memory(r, "the recipe", t->base, strlen(t->base));
    if (!st) st = oct_space_apply(t->ctx, t->list[at].settings, r);
    if (st) {
        oct_recipe_free(r);
        return st;
    }
    *out = r;
    return OCT_OK;
}

void oct_tuned_free(oct_tuned *t)
{
    if (!t) return;
    oct_arena_free(t->arena);
    oct_free(t->ctx, t);
}
