/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers read channels, and the second moments of what they read: see readers.h. */
#include "prune/readers.h"

#include <string.h>

#include "base/ctx.h"
#include "feed/feed.h"
#include "op/op.h"
#include "pass/pass.h"
#include "stat/least_squares.h"

enum {
    MOST_INPUTS = 2400,   /* of a layer, kernel included: its equations are the square of that */
    MOST_PLACES = 64,     /* of a picture that are sampled */
    MOST_SAMPLES = 65536, /* of a layer, about */
    LEAST_PICTURES = 16,  /* fewer tell nothing about others */
};

static const size_t most_bytes = (size_t)512 << 20; /* of samples at a time */
static const double ridge = 1e-4;                   /* of the mean square of an input */

/* --- before channels are found --- */

static int64_t outputs_of(const oct_node *n)
{
    const bool is_first = oct_node_is(n, &oct_op_conv) || oct_node_attr(n, "transB")->i;

    return n->in[1]->type.dim[is_first ? 0 : 1];
}

/* x w + bias, with nothing else to it. */
static bool is_plain_gemm(const oct_node *n)
{
    return oct_node_is(n, &oct_op_gemm) && !oct_node_attr(n, "transA")->i &&
           oct_node_attr(n, "alpha")->f == 1.0f && oct_node_attr(n, "beta")->f == 1.0f;
}

static bool is_candidate(const oct_node *n)
{
    const int rank = oct_node_is(n, &oct_op_conv) ? 4 : is_plain_gemm(n) ? 2 : 0;

    return rank && oct_node_const(n, 1) && n->in[1]->n_users == 1 &&
           n->in[1]->type.dtype == OCT_DTYPE_F32 && n->in[1]->type.rank == rank &&
           (!oct_node_in(n, 2) ||
            (oct_node_const(n, 2) && oct_tensor_len(n->in[2]->data) == outputs_of(n)));
}

static oct_status give_bias(oct_graph *g, oct_node *n)
{
    const int64_t m = outputs_of(n);
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &m);
    oct_tensor *t = NULL;
    oct_value *v;

    if (oct_node_in(n, 2) && n->in[2]->n_users == 1) return OCT_OK;
    OCT_TRY(oct_node_in(n, 2) ? oct_tensor_copy(g->ctx, n->in[2]->data, &t)
                              : oct_tensor_make(g->ctx, &type, &t));
    if (!oct_node_in(n, 2)) memset(t->data, 0, (size_t)m * sizeof(float));
    if (!(v = oct_value_const(g, NULL, t))) return OCT_ERR_MEMORY;
    return oct_node_set_input(n, 2, v);
}

oct_status oct_readers_prepare(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (is_candidate(n)) OCT_TRY(give_bias(g, n));
    return oct_graph_infer(g);
}

/* --- which layers --- */

static bool reads_units(const oct_cut *k, const bool *may_go)
{
    if (k->role != OCT_CUT_IN || k->axis < 0 || k->is_again || k->operand != 1) return false;
    for (int64_t i = 0; i < k->n; i++)
        if (k->unit[i] >= 0 && may_go[k->unit[i]]) return true;
    return false;
}

/* A Gemm of one row is a convolution of one pixel. */
static oct_status find_geometry(const oct_node *n, oct_reader *l)
{
    const oct_type *x = &n->in[0]->type;

    if (oct_node_is(n, &oct_op_conv)) {
        OCT_TRY(oct_conv_geometry_conv(n, x, &n->in[1]->type, &l->at));
        l->w_out = l->at.n == 2 ? l->at.c_in * oct_conv_geometry_kernel_size(&l->at) : 0;
        l->w_in = 1;
        return OCT_OK;
    }
    l->at = (oct_conv_geometry){.n = 2,
                                .batch = x->dim[0],
                                .c_in = x->dim[1],
                                .c_out = outputs_of(n),
                                .group = 1,
                                .in = {1, 1},
                                .out = {1, 1},
                                .kernel = {1, 1},
                                .stride = {1, 1},
                                .dilation = {1, 1}};
    l->w_in = l->cut->axis == 1 ? 1 : l->at.c_out;
    l->w_out = l->cut->axis == 1 ? l->at.c_in : 1;
    return OCT_OK;
}

/* Adds the layer if its numbers can be sampled; they are those of the bound network. */
static oct_status add_reader(oct_readers *r, const oct_cut *k, const oct_graph *bound)
{
    const oct_value *y = oct_graph_find_value(bound, k->node->out[0]->name);
    const oct_node *n = y ? y->producer : NULL;
    oct_reader *l = &r->v[r->n];

    if (!n || !oct_graph_find_value(bound, k->node->in[0]->name)) return OCT_OK;
    *l = (oct_reader){.node = k->node, .cut = k};
    OCT_TRY(find_geometry(n, l));
    if (l->at.n != 2 || l->at.group != 1 || l->at.batch != 1) return OCT_OK;
    l->width = oct_conv_geometry_kernel_size(&l->at);
    l->k = l->at.c_in * l->width + 1;
    l->places = OCT_MIN(oct_conv_geometry_out_size(&l->at), (int64_t)MOST_PLACES);
    if (l->k <= MOST_INPUTS && l->places > 0) r->n++;
    return OCT_OK;
}

static oct_status find_readers(oct_readers *r, const oct_graph *bound)
{
    const oct_channels *c = r->g->c;
    bool *may_go = oct_arena_array(c->arena, (size_t)c->n_units + 1, sizeof(*may_go));

    r->v = oct_arena_array(c->arena, (size_t)c->n_cuts + 1, sizeof(*r->v));
    if (!r->v || !may_go) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < r->g->n; i++)
        for (int32_t u = 0; u < r->g->groups[i].n; u++)
            may_go[r->g->groups[i].units[u]] = !r->g->groups[i].why;
    for (int32_t i = 0; i < c->n_cuts; i++)
        if (reads_units(&c->cuts[i], may_go) && is_candidate(c->cuts[i].node))
            OCT_TRY(add_reader(r, &c->cuts[i], bound));
    return OCT_OK;
}

/* --- samples --- */

typedef struct sampling {
    oct_ctx *ctx;
    oct_feed *feed;
    const oct_graph *bound;
    oct_reader *v; /* those of this pass */
    int32_t n;
    int64_t pictures;
} sampling;

static oct_status take(void *user, int32_t worker, oct_ctx *ctx, oct_run *run, int64_t picture)
{
    const sampling *s = user;

    (void)worker;
    (void)ctx;
    for (int32_t i = 0; i < s->n; i++) {
        const oct_reader *l = &s->v[i];
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(run, i, &t));
        for (int64_t k = 0; k < l->places; k++)
            *oct_conv_sample(&l->at, 0, t->data, oct_conv_place(&l->at, l->places, picture, k),
                             l->xs + (picture * l->places + k) * l->k) = 1;
    }
    return OCT_OK;
}

/* A copy that ends at what the layers read. */
static oct_status cut(const sampling *s, oct_graph **out)
{
    oct_builder b = {0};

    OCT_TRY(oct_graph_clone(s->bound, out));
    b.g = *out;
    for (int32_t i = 0; i < (*out)->n_outputs; i++)
        (*out)->outputs[i]->is_output = false;
    (*out)->n_outputs = 0;
    for (int32_t i = 0; i < s->n; i++) {
        oct_value *v = oct_graph_find_value(*out, s->v[i].node->in[0]->name);

        v = oct_emit(&b, &oct_op_identity, v, NULL, NULL);
        OCT_TRY(b.status);
        OCT_TRY(oct_graph_add_output(*out, v));
    }
    return oct_drop_dead(*out);
}

static oct_status run_pictures(sampling *s)
{
    oct_feed_job job = {.what = "measuring what layers read", .one = take, .user = s};
    oct_graph *g = NULL;
    oct_plan *plan = NULL;
    oct_plan_options o;
    oct_status st;

    oct_plan_options_init(&o);
    OCT_TRY(oct_feed_rewind(s->feed, s->pictures));
    oct_feed_workers(s->feed, s->ctx, &job.n_workers, &o.n_threads);
    st = cut(s, &g);
    if (!st) st = oct_plan_new(g, &o, &plan);
    if (!st) st = oct_feed_each(s->feed, plan, &job);
    oct_plan_free(plan);
    oct_graph_free(g);
    return st;
}

/* --- moments --- */

static size_t sample_bytes(const sampling *s, const oct_reader *l)
{
    return (size_t)(s->pictures * l->places * l->k) * sizeof(float);
}

static oct_status sum_up(const sampling *s, oct_reader *l)
{
    double mean = 0;

    l->a = oct_calloc(s->ctx, (size_t)(l->k * l->k), sizeof(*l->a));
    if (!l->a) return OCT_ERR_MEMORY;
    oct_gram(s->ctx, l->xs, s->pictures * l->places, l->k, l->a);
    for (int64_t i = 0; i < l->k - 1; i++)
        mean += l->a[i * l->k + i] / (double)(l->k - 1);
    /* All inputs zero: anything positive keeps the factors finite. */
    for (int64_t i = 0; i < l->k - 1; i++)
        l->a[i * l->k + i] += mean > 0 ? ridge * mean : 1;
    return OCT_OK;
}

/* As many layers from `first` on as samples have room for; the number of them in s->n. */
static oct_status measure_some(sampling *s, oct_reader *first, int32_t n)
{
    size_t bytes = 0;
    oct_status st = OCT_OK;

    s->v = first;
    for (s->n = 0; s->n < n && !st; s->n++) {
        bytes += sample_bytes(s, &first[s->n]);
        if (s->n && bytes > most_bytes) break;
        first[s->n].xs = oct_calloc(s->ctx, 1, sample_bytes(s, &first[s->n]));
        if (!first[s->n].xs) st = OCT_ERR_MEMORY;
    }
    if (!st) st = run_pictures(s);
    for (int32_t i = 0; i < s->n && !st; i++)
        st = sum_up(s, &first[i]);
    for (int32_t i = 0; i < s->n; i++) {
        oct_free(s->ctx, first[i].xs);
        first[i].xs = NULL;
    }
    return st;
}

static oct_status measure(oct_readers *r, sampling *s)
{
    s->pictures = oct_feed_size(s->feed);
    if (s->pictures < LEAST_PICTURES)
        return oct_fail(s->ctx, OCT_ERR_ARG,
                        "%d pictures are too few to fit layers to: at least %d", (int)s->pictures,
                        LEAST_PICTURES);
    OCT_TRY(find_readers(r, s->bound));
    for (int32_t i = 0; i < r->n; i++)
        r->v[i].places = OCT_MIN(r->v[i].places, OCT_MAX(MOST_SAMPLES / s->pictures, (int64_t)1));
    for (int32_t i = 0; i < r->n; i += s->n)
        OCT_TRY(measure_some(s, &r->v[i], r->n - i));
    return OCT_OK;
}

oct_status oct_readers_measure(oct_prune_groups *g, const oct_prune_options *o, oct_readers *out)
{
    const oct_feed_options feed = {
        .preprocess = o->preprocess, .family = o->family, .limit = o->n_pictures};
    sampling s = {.ctx = g->c->ctx};
    oct_graph *bound = NULL;
    oct_status st;

    *out = (oct_readers){.g = g};
    st = oct_feed_new(g->c->g, o->pictures, &feed, &bound, &s.feed);
    s.bound = bound;
    if (!st) st = measure(out, &s);
    oct_feed_free(s.feed);
    oct_graph_free(bound);
    return st;
}

void oct_readers_free(oct_readers *r)
{
    for (int32_t i = 0; i < r->n; i++)
        oct_free(r->g->c->ctx, r->v[i].a);
}
