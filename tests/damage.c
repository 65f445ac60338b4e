/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that compute the same in float and are hard to quantize: see damage.h. */
#include "tests/damage.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"

enum { FEWEST_CHANNELS = 4 };

/* A layer, the value that others read of it, and their number. */
typedef struct link {
    oct_node *first;   /* a dense convolution */
    oct_value *middle; /* its result, or that of a Relu after it */
    int64_t channels;
} link;

/*
 * New channels of the middle: channel r is by[r] times the old channel of[r], plus shift[r]. Layers
 * that read it multiply their weights by back, [old, new].
 */
typedef struct change {
    int64_t n_old, n;
    int64_t *of;
    double *by, *shift, *back;
    bool has_shift;
} change;

/* --- the kinds --- */

static double *at_back(const change *c, int64_t old, int64_t now)
{
    return &c->back[old * c->n + now];
}

static void scale_channel(const change *c, int64_t r, double by)
{
    c->by[r] *= by;
    *at_back(c, r, r) /= by;
}

static void big_channel(change *c, oct_rng *r)
{
    scale_channel(c, (int64_t)oct_rng_below(r, (uint64_t)c->n_old), 1000);
}

static void small_channel(change *c, oct_rng *r)
{
    scale_channel(c, (int64_t)oct_rng_below(r, (uint64_t)c->n_old), 1e-3);
}

static void some_big(change *c, oct_rng *r)
{
    for (int64_t i = 0; i < c->n_old; i += 8)
        scale_channel(c, i, 100 + 400 * oct_rng_f64(r));
}

static void two_clusters(change *c, oct_rng *r)
{
    (void)r;
    for (int64_t i = 0; i < c->n_old; i += 2)
        scale_channel(c, i, 100);
}

static void spread(change *c, oct_rng *r)
{
    for (int64_t i = 0; i < c->n_old; i++)
        scale_channel(c, i, pow(10, 4 * oct_rng_f64(r) - 2));
}

static void all_big(change *c, oct_rng *r)
{
    (void)r;
    for (int64_t i = 0; i < c->n_old; i++)
        scale_channel(c, i, 1e5);
}

static void huge_bias(change *c, oct_rng *r)
{
    c->shift[oct_rng_below(r, (uint64_t)c->n_old)] = 3000;
    c->has_shift = true;
}

/* The last channel is new. */
static void unread_outlier(change *c, oct_rng *r)
{
    c->of[c->n_old] = (int64_t)oct_rng_below(r, (uint64_t)c->n_old);
    c->by[c->n_old] = 1000;
}

static void dead_channel(change *c, oct_rng *r)
{
    c->by[c->n_old] = 0;
    for (int64_t i = 0; i < c->n_old; i++)
        *at_back(c, i, c->n_old) = 1000 * (oct_rng_f64(r) - 0.5);
}

static void constant_channel(change *c, oct_rng *r)
{
    dead_channel(c, r);
    for (int64_t i = 0; i < c->n_old; i++)
        *at_back(c, i, c->n_old) /= 50;
    c->shift[c->n_old] = 100;
    c->has_shift = true;
}

static void cancelling(change *c, oct_rng *r)
{
    const int64_t k = (int64_t)oct_rng_below(r, (uint64_t)c->n_old);

    c->of[c->n_old] = k;
    for (int64_t i = 0; i < c->n_old; i++) {
        const double x = 60 * (oct_rng_f64(r) - 0.5);

        *at_back(c, i, k) += x;
        *at_back(c, i, c->n_old) -= x;
    }
}

static const struct row {
    damage d;
    void (*fill)(change *c, oct_rng *r);
    bool adds;          /* a channel */
    bool needs_no_pads; /* of the layers that read it, and no Relu */
    bool is_residual;
} rows[] = {
    {{"big-channel", "one channel 1000 times larger"}, big_channel, false, false, false},
    {{"small-channel", "one channel 1000 times smaller"}, small_channel, false, false, false},
    {{"some-big", "every eighth channel 100 to 500 times larger"}, some_big, false, false, false},
    {{"two-clusters", "every second channel 100 times larger"}, two_clusters, false, false, false},
    {{"spread", "channels from a hundredth to 100 times as large"}, spread, false, false, false},
    {{"all-big", "a layer's result 100000 times larger"}, all_big, false, false, false},
    {{"huge-bias", "3000 added to a channel"}, huge_bias, false, true, false},
    {{"unread-outlier", "a channel 1000 times larger that nothing reads"},
     unread_outlier,
     true,
     false,
     false},
    {{"dead-channel", "a channel of zeros that is read with huge weights"},
     dead_channel,
     true,
     false,
     false},
    {{"constant-channel", "a channel that is always 100, read with large weights"},
     constant_channel,
     true,
     true,
     false},
    {{"cancelling", "two equal channels, read with large weights that cancel"},
     cancelling,
     true,
     false,
     false},
    {{"small-residual", "a residual branch 100 times smaller"}, NULL, false, false, true},
};

const damage *damage_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(rows) ? &rows[i].d : NULL;
}

int damage_find(const char *name)
{
    for (int i = 0; damage_at(i); i++)
        if (strcmp(damage_at(i)->name, name) == 0) return i;
    return -1;
}

/* --- places --- */

static bool is_dense_conv(const oct_node *n)
{
    return oct_node_is(n, &oct_op_conv) && oct_is_linear_layer(n) &&
           oct_node_attr(n, "group")->i == 1;
}

/* Only dense convolutions read it, as their input. */
static bool is_read_by_convs(const oct_value *v, bool needs_no_pads)
{
    if (v->is_output || v->data || v->type.rank != 4 || v->type.dtype != OCT_DTYPE_F32)
        return false;
    if (v->type.dim[1] < FEWEST_CHANNELS || v->n_users == 0 || !v->producer) return false;
    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *u = v->users[i];

        if (!is_dense_conv(u) || u->in[0] != v || u->in[1] == v || u->in[1]->n_users != 1)
            return false;
        if (needs_no_pads && !oct_linear_layer_takes_shifts(u)) return false;
    }
    return true;
}

/* The convolution whose channels may be scaled where v is read, or NULL. */
static oct_node *producer_of(const oct_value *v, bool no_act)
{
    oct_node *n = v->producer;

    if (!no_act && oct_node_is(n, &oct_op_relu)) n = oct_inner_producer(n->in[0]);
    return n && is_dense_conv(n) && n->in[1]->n_users == 1 ? n : NULL;
}

static oct_status make_pointwise(oct_value *v, oct_node **out)
{
    const int64_t c = v->type.dim[1], dims[] = {c, c, 1, 1};
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, dims);
    oct_graph *g = v->graph;
    oct_node *users[64], *n;
    const int32_t n_users = OCT_MIN(v->n_users, 64);
    oct_tensor *w = NULL;
    oct_value *in[2] = {v, NULL};

    for (int32_t i = 0; i < n_users; i++)
        users[i] = v->users[i];
    OCT_TRY(oct_tensor_make(g->ctx, &type, &w));
    memset(w->data, 0, w->size);
    for (int64_t i = 0; i < c; i++)
        ((float *)w->data)[i * c + i] = 1;
    if (!(in[1] = oct_value_const(g, NULL, w))) return OCT_ERR_MEMORY;
    n = oct_node_new(g, v->producer->next, NULL, &oct_op_conv, in, 2, NULL, 1);
    if (!n) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_infer(n));
    for (int32_t i = 0; i < n_users; i++)
        OCT_TRY(oct_node_set_input(users[i], 0, n->out[0]));
    *out = n;
    return OCT_OK;
}

static oct_value *candidate(const oct_graph *g, double where, bool no_pads, bool natural)
{
    const oct_value *found[4096];
    int64_t n = 0;

    for (const oct_node *k = g->first; k; k = k->next) {
        oct_value *v = k->n_out == 1 ? k->out[0] : NULL;

        if (!v || n == 4096 || !is_read_by_convs(v, no_pads)) continue;
        if (natural && !producer_of(v, no_pads)) continue;
        found[n++] = v;
    }
    return n ? g->values[found[OCT_MIN((int64_t)(where * (double)n), n - 1)]->id] : NULL;
}

static oct_status find_link(oct_graph *g, double where, const struct row *r, link *out)
{
    const bool pads = r->needs_no_pads;
    oct_value *v = r->is_residual ? NULL : candidate(g, where, pads, true);

    if (v) {
        *out = (link){producer_of(v, pads), v, v->type.dim[1]};
        return OCT_OK;
    }
    if ((v = candidate(g, where, pads, false))) {
        OCT_TRY(make_pointwise(v, &out->first));
    } else if (pads && (v = candidate(g, where, false, false))) {
        oct_node *reader;

        OCT_TRY(make_pointwise(v, &out->first));
        OCT_TRY(make_pointwise(out->first->out[0], &reader));
    } else {
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED, "no place for damage '%s'", r->d.name);
    }
    out->middle = out->first->out[0];
    out->channels = out->middle->type.dim[1];
    return OCT_OK;
}

/* --- new weights --- */

static oct_status set_const(oct_node *n, int32_t i, const oct_type *type, const double *x)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(n->graph->ctx, type, &t));
    for (int64_t k = 0; k < oct_type_len(type); k++)
        ((float *)t->data)[k] = (float)x[k];
    return oct_node_set_const(n, i, i == 1 ? "weight" : "bias", t);
}

static double bias_at(const oct_node *n, int64_t i)
{
    const oct_tensor *b = oct_node_const(n, 2);

    return b ? (double)((const float *)b->data)[i] : 0;
}

static oct_status change_first(oct_node *n, const change *c, oct_arena *a)
{
    oct_type type = n->in[1]->type, bias = oct_type_make(OCT_DTYPE_F32, 1, &c->n);
    const float *w = n->in[1]->data->data;
    const int64_t span = oct_type_span(&type, 1, type.rank);
    double *x = oct_arena_array(a, (size_t)(c->n * span), sizeof(*x));
    double *b = oct_arena_array(a, (size_t)c->n, sizeof(*b));

    if (!x || !b) return OCT_ERR_MEMORY;
    type.dim[0] = c->n;
    for (int64_t r = 0; r < c->n; r++) {
        for (int64_t i = 0; i < span; i++)
            x[r * span + i] = (double)w[c->of[r] * span + i] * c->by[r];
        b[r] = bias_at(n, c->of[r]) * c->by[r] + c->shift[r];
    }
    OCT_TRY(set_const(n, 2, &bias, b));
    return set_const(n, 1, &type, x);
}

static oct_status change_reader(oct_node *n, const change *c, oct_arena *a)
{
    oct_type type = n->in[1]->type, bias = oct_type_make(OCT_DTYPE_F32, 1, &type.dim[0]);
    const float *w = n->in[1]->data->data;
    const int64_t n_out = type.dim[0], taps = oct_type_span(&type, 2, type.rank);
    double *x = oct_arena_array(a, (size_t)(n_out * c->n * taps), sizeof(*x));
    double *b = oct_arena_array(a, (size_t)n_out, sizeof(*b));

    if (!x || !b) return OCT_ERR_MEMORY;
    type.dim[1] = c->n;
    for (int64_t o = 0; o < n_out; o++) {
        for (int64_t i = 0; i < c->n_old; i++)
            for (int64_t k = 0; k < c->n; k++) {
                const double by = *at_back(c, i, k);

                for (int64_t t = 0; t < taps && by != 0; t++)
                    x[(o * c->n + k) * taps + t] += (double)w[(o * c->n_old + i) * taps + t] * by;
            }
        b[o] = bias_at(n, o);
        for (int64_t k = 0; k < c->n; k++)
            for (int64_t t = 0; t < taps; t++)
                b[o] -= x[(o * c->n + k) * taps + t] * c->shift[k];
    }
    if (c->has_shift) OCT_TRY(set_const(n, 2, &bias, b));
    return set_const(n, 1, &type, x);
}

static oct_status new_change(int64_t channels, bool adds, oct_arena *a, change *c)
{
    *c = (change){.n_old = channels, .n = channels + (adds ? 1 : 0)};
    c->of = oct_arena_array(a, (size_t)c->n, sizeof(*c->of));
    c->by = oct_arena_array(a, (size_t)c->n, sizeof(*c->by));
    c->shift = oct_arena_array(a, (size_t)c->n, sizeof(*c->shift));
    c->back = oct_arena_array(a, (size_t)(c->n * c->n_old), sizeof(*c->back));
    if (!c->of || !c->by || !c->shift || !c->back) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < c->n; i++) {
        c->of[i] = OCT_MIN(i, c->n_old - 1);
        c->by[i] = 1;
        if (i < c->n_old) *at_back(c, i, i) = 1;
    }
    return OCT_OK;
}

/* Readers first: they still see how many channels there were. */
static oct_status change_link(const link *l, const change *c, oct_arena *a)
{
    for (int32_t i = 0; i < l->middle->n_users; i++)
        OCT_TRY(change_reader(l->middle->users[i], c, a));
    OCT_TRY(change_first(l->first, c, a));
    l->middle->type.dim[1] = l->first->out[0]->type.dim[1] = c->n;
    return OCT_OK;
}

/* y = x + H x / 100, where H maps the first half of the channels to the second, so that its inverse
 * is x - H x / 100. `l->first` becomes H. */
static oct_status add_residual(const link *l, oct_rng *r, oct_arena *a)
{
    const int64_t n = l->channels;
    oct_value *x = l->first->in[0], *y = l->middle, *sum;
    oct_node *readers[64];
    const int32_t n_readers = OCT_MIN(y->n_users, 64);
    oct_builder b = {.g = y->graph, .before = l->first->next};
    oct_type type = l->first->in[1]->type;
    double *h = oct_arena_array(a, (size_t)(n * n), sizeof(*h));
    change c;

    OCT_TRY(new_change(n, false, a, &c));
    if (!h) return OCT_ERR_MEMORY;
    for (int64_t o = n / 2; o < n; o++)
        for (int64_t i = 0; i < n / 2; i++) {
            h[o * n + i] = 0.01 * (oct_rng_f64(r) - 0.5);
            *at_back(&c, o, i) -= h[o * n + i];
        }
    for (int32_t i = 0; i < n_readers; i++)
        readers[i] = y->users[i];
    for (int32_t i = 0; i < n_readers; i++)
        OCT_TRY(change_reader(readers[i], &c, a));
    OCT_TRY(set_const(l->first, 1, &type, h));
    sum = oct_emit(&b, &oct_op_add, x, y, NULL);
    if (b.status) return b.status;
    for (int32_t i = 0; i < n_readers; i++)
        OCT_TRY(oct_node_set_input(readers[i], 0, sum));
    return OCT_OK;
}

static oct_status apply(oct_graph *g, const struct row *r, double where, oct_arena *a)
{
    oct_rng rng;
    change c;
    link l;

    oct_rng_init(&rng, 5);
    OCT_TRY(find_link(g, where, r, &l));
    if (r->is_residual) {
        OCT_TRY(add_residual(&l, &rng, a));
    } else {
        OCT_TRY(new_change(l.channels, r->adds, a, &c));
        r->fill(&c, &rng);
        OCT_TRY(change_link(&l, &c, a));
    }
    OCT_TRY(oct_graph_infer(g));
    return oct_graph_verify(g);
}

oct_status damage_apply(oct_graph *g, int i, double where)
{
    oct_arena *a = oct_arena_new(g->ctx);
    const oct_status st = a ? apply(g, &rows[i], where, a) : OCT_ERR_MEMORY;

    oct_arena_free(a);
    return st;
}
