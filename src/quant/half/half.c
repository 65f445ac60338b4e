/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in half precision: measures what may overflow, decides, rewrites. */
#include "quant/half/half.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "feed/feed.h"
#include "pass/pass.h"

void oct_half_options_init_sized(oct_half_options *o, size_t struct_size)
{
    memset(o, 0, struct_size);
    memcpy(o, &struct_size, OCT_MIN(struct_size, sizeof(struct_size)));
}

/* --- measuring --- */

typedef struct survey {
    oct_map ids;    /* by name: value id + 1 */
    float *largest; /* by value id */
} survey;

static oct_status see(void *user, const char *name, const oct_tensor *t)
{
    const survey *s = user;
    const uintptr_t id = (uintptr_t)oct_map_get(&s->ids, name);

    if (!id || t->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++) {
        const float x = fabsf(((const float *)t->data)[i]);

        if (!(x <= s->largest[id - 1])) s->largest[id - 1] = isnan(x) ? INFINITY : x;
    }
    return OCT_OK;
}

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    (void)worker;
    oct_run_set_value_hook(r, see, user);
    return OCT_OK;
}

static oct_status run_pictures(const oct_graph *bound, oct_feed *f, survey *s)
{
    const oct_feed_job job = {.what = "measuring", .n_workers = 1, .begin = begin, .user = s};
    oct_plan_options po;
    oct_plan *plan = NULL;
    oct_status st;

    oct_plan_options_init(&po);
    po.keep_all = 1;
    OCT_TRY(oct_plan_new(bound, &po, &plan));
    st = oct_feed_each(f, plan, &job);
    oct_plan_free(plan);
    return st;
}

/* The largest magnitude of each value over the pictures. */
static oct_status measure(const oct_graph *g, const oct_dataset *images, const oct_half_options *o,
                          const float **out)
{
    const oct_feed_options feeding = {o->preprocess, o->family, o->limit};
    oct_graph *bound = NULL;
    oct_feed *f = NULL;
    survey s = {0};
    oct_status st = OCT_OK;

    s.largest = oct_arena_array(g->arena, (size_t)g->n_value_ids + 1, sizeof(float));
    if (!s.largest) return OCT_ERR_MEMORY;
    oct_map_init(&s.ids, g->ctx);
    for (int32_t i = 0; !st && i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->graph == g)
            st = oct_map_put(&s.ids, g->values[i]->name, (void *)(uintptr_t)(i + 1));
    if (!st) st = oct_feed_new(g, images, &feeding, &bound, &f);
    if (!st) st = run_pictures(bound, f, &s);
    oct_feed_free(f);
    oct_graph_free(bound);
    oct_map_fini(&s.ids);
    *out = s.largest;
    return st;
}

/* --- the whole --- */

static oct_status convert(oct_graph *g, const oct_dataset *images, const oct_half_options *o)
{
    oct_half_plan p = {0};

    OCT_TRY(oct_graph_infer(g));
    if (o->bf16) {
        OCT_TRY(oct_half_store_bf16(g));
    } else {
        if (images) OCT_TRY(measure(g, images, o, &p.largest));
        OCT_TRY(oct_half_decide(g, o, &p));
        OCT_TRY(oct_half_rewrite(g, &p));
    }
    if (o->half_io) OCT_TRY(oct_half_io(g, o->bf16 ? OCT_DTYPE_BF16 : OCT_DTYPE_F16));
    OCT_TRY(oct_drop_dead(g));
    OCT_TRY(oct_graph_infer(g));
    return oct_graph_verify(g);
}

oct_status oct_graph_half(const oct_graph *g, const oct_dataset *images,
                          const oct_half_options *options, oct_graph **out)
{
    OCT_ENTER(g->ctx);
    oct_half_options o;
    oct_graph *made = NULL;
    oct_status st;

    oct_half_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(oct_graph_clone(g, &made));
    st = convert(made, images, &o);
    if (st)
        oct_graph_free(made);
    else
        *out = made;
    return st;
}
