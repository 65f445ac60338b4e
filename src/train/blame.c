/* SPDX-License-Identifier: Apache-2.0 */
/* A loss or gradient that is not finite: which value was the first? */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "exec/run.h"
#include "train/train.h"

typedef struct search {
    char name[256];
    float value;
    bool found;
} search;

static bool first_bad(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) {
            *out = x[i];
            return true;
        }
    return false;
}

static oct_status look(void *user, const char *name, const oct_tensor *v)
{
    search *s = user;

    if (s->found || v->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    if (!first_bad((const float *)v->data, oct_tensor_len(v), &s->value)) return OCT_OK;
    s->found = true;
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    return OCT_OK;
}

/* What a step reads: pictures and weights. */
static void look_at_inputs(const oct_train *t, search *s)
{
    const oct_params *p = oct_train_net_params(t->net);
    const float *w = oct_train_net_weights(t->net);
    int64_t n = 0;
    const float *images = oct_train_net_images(t->net, &n);

    s->found = first_bad(images, n, &s->value);
    if (s->found) (void)snprintf(s->name, sizeof(s->name), "the pictures");
    for (int32_t i = 0; i < p->n && !s->found; i++) {
        s->found = first_bad(w + p->v[i].offset, p->v[i].len, &s->value);
        if (s->found) (void)snprintf(s->name, sizeof(s->name), "%s", p->v[i].name);
    }
}

/* The same step with a plan that shows every value. */
static oct_status repeat(oct_train *t, search *s)
{
    const oct_plan *old = oct_train_net_plan(t->net);
    oct_plan_options o;
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    oct_status st;

    oct_plan_options_init(&o);
    o.n_threads = t->n_threads;
    o.keep_all = 1;
    st = oct_plan_new(old->g, &o, &plan);
    if (!st) st = oct_run_new(t->ctx, plan, &run);
    for (int32_t i = 0; !st && i < old->g->n_inputs; i++) {
        const char *name = old->g->inputs[i]->name;
        void *from = NULL, *to = NULL;
        size_t size = 0;

        st = oct_run_input(run, name, &to, &size);
        from = oct_train_net_input(t->net, name);
        if (!st && from) memcpy(to, from, size);
    }
    if (!st) {
        oct_run_set_value_hook(run, look, s);
        st = oct_run_execute(run);
    }
    oct_run_free(run);
    oct_plan_free(plan);
    return st;
}

/* ", made by 'NODE' (OP)", or "". */
static const char *maker(const oct_train *t, const char *value, char *text, size_t size)
{
    const oct_value *v = oct_graph_find_value(oct_train_net_plan(t->net)->g, value);

    *text = 0;
    if (v && v->producer)
        (void)snprintf(text, size, ", made by '%.200s' (%s)", v->producer->name,
                       v->producer->op->name);
    return text;
}

oct_status oct_train_blame(oct_train *t, const char *what)
{
    char by[300];
    search s = {0};

    look_at_inputs(t, &s);
    if (!s.found) OCT_TRY(repeat(t, &s));
    if (!s.found)
        return oct_fail(t->ctx, OCT_ERR_STATE,
                        "step %" PRId64 ": %s is not finite; lower the learning rate",
                        t->optimizer.t + 1, what);
    return oct_fail(t->ctx, OCT_ERR_STATE,
                    "step %" PRId64 ": %s is not finite; the first value that has %f is '%s'%s. "
                    "Lower the learning rate, or clip gradients (--clip-norm)",
                    t->optimizer.t + 1, what, (double)s.value, s.name,
                    maker(t, s.name, by, sizeof(by)));
}
