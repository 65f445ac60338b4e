/* SPDX-License-Identifier: Apache-2.0 */
/* Runs recurrent cells over sequences, in either direction, and checks their operands. */
#include "op/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/parallel.h"

enum { X, W, R, B, LENS, H0, C0, P };
enum { Y, Y_H, Y_C };

/* --- activations --- */

static double act_affine(double x, double alpha, double beta)
{
    return alpha * x + beta;
}

static double act_elu(double x, double alpha, double beta)
{
    (void)beta;
    return x >= 0 ? x : alpha * (exp(x) - 1);
}

static double act_hard_sigmoid(double x, double alpha, double beta)
{
    return fmax(0, fmin(1, alpha * x + beta));
}

static double act_leaky_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x >= 0 ? x : alpha * x;
}

static double act_relu(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return fmax(x, 0);
}

static double act_scaled_tanh(double x, double alpha, double beta)
{
    return alpha * tanh(beta * x);
}

static double act_sigmoid(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return 1 / (1 + exp(-x));
}

static double act_softplus(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double act_softsign(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x / (1 + fabs(x));
}

static double act_tanh(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return tanh(x);
}

static double act_thresholded_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x > alpha ? x : 0;
}

static const struct {
    const char *name;
    double (*fn)(double x, double alpha, double beta);
    bool has_alpha, has_beta;
    double alpha, beta; /* defaults */
} acts[] = {
    {"Affine", act_affine, true, true, 1, 0},
    {"Elu", act_elu, true, false, 1, 0},
    {"HardSigmoid", act_hard_sigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", act_leaky_relu, true, false, 0.01, 0},
    {"Relu", act_relu, false, false, 0, 0},
    {"ScaledTanh", act_scaled_tanh, true, true, 1, 1},
    {"Sigmoid", act_sigmoid, false, false, 0, 0},
    {"Softplus", act_softplus, false, false, 0, 0},
    {"Softsign", act_softsign, false, false, 0, 0},
    {"Tanh", act_tanh, false, false, 0, 0},
    {"ThresholdedRelu", act_thresholded_relu, true, false, 1, 0},
};

static size_t find_act(const char *name)
{
    size_t k = 0;

    while (k < OCT_COUNT(acts) && strcasecmp(acts[k].name, name) != 0)
        k++;
    return k;
}

bool oct_rnn_act_find(const char *name, oct_rnn_act *out)
{
    const size_t k = find_act(name);

    if (k == OCT_COUNT(acts)) return false;
    *out = (oct_rnn_act){.fn = acts[k].fn, .alpha = acts[k].alpha, .beta = acts[k].beta};
    return true;
}

/* The next number of a list that activations consume in order, or the default. */
static double next_number(const oct_attr *list, int64_t *at, bool takes, double fallback)
{
    if (!takes || !list || list->kind != OCT_ATTR_F32S || *at >= list->n) return fallback;
    return (double)list->fs[(*at)++];
}

static oct_status read_acts(oct_rnn *r)
{
    const oct_attr *names = oct_node_attr(r->node, "activations");
    const oct_attr *alpha = oct_node_attr(r->node, "activation_alpha");
    const oct_attr *beta = oct_node_attr(r->node, "activation_beta");
    const int per_dir = r->kind->n_acts;
    int64_t at_alpha = 0, at_beta = 0;

    if (names && names->n != 0 && names->n < (int64_t)per_dir * r->dirs)
        return oct_node_fail(r->node, OCT_ERR_FORMAT, "%lld activations, %d are needed",
                             (long long)names->n, per_dir * r->dirs);
    for (int i = 0; i < per_dir * r->dirs; i++) {
        const char *name = names && names->n ? names->ss[i] : r->kind->default_act[i % per_dir];
        const size_t k = find_act(name);

        if (k == OCT_COUNT(acts))
            return oct_node_fail(r->node, OCT_ERR_UNSUPPORTED, "activation '%.40s'", name);
        r->act[i / per_dir][i % per_dir] = (oct_rnn_act){
            .fn = acts[k].fn,
            .alpha = next_number(alpha, &at_alpha, acts[k].has_alpha, acts[k].alpha),
            .beta = next_number(beta, &at_beta, acts[k].has_beta, acts[k].beta),
        };
    }
    return OCT_OK;
}

/* --- shapes --- */

static int64_t attr_int(const oct_node *n, const char *name, int64_t fallback)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INT ? a->i : fallback;
}

/* Operand i must have these dims; -1 in want[] is learned from it, or stays open. */
static oct_status match(const oct_infer *q, int i, int rank, int64_t *const *want)
{
    const oct_type *t = oct_infer_in(q, i);

    if (!t || t->rank < 0) return OCT_OK;
    if (t->rank != rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d has %d dims, %d are needed", i, t->rank,
                              rank);
    for (int d = 0; d < rank; d++) {
        if (*want[d] < 0) *want[d] = t->dim[d];
        if (t->dim[d] >= 0 && *want[d] != t->dim[d])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d: dim %d is %lld, expected %lld", i,
                                  d, (long long)t->dim[d], (long long)*want[d]);
    }
    return OCT_OK;
}

static oct_status read_direction(oct_rnn *r)
{
    const oct_attr *a = oct_node_attr(r->node, "direction");
    const char *s = a && a->kind == OCT_ATTR_STRING ? a->s : "forward";

    r->dirs = strcmp(s, "bidirectional") == 0 ? 2 : 1;
    r->reverse = strcmp(s, "reverse") == 0;
    if (r->dirs == 1 && !r->reverse && strcmp(s, "forward") != 0)
        return oct_node_fail(r->node, OCT_ERR_UNSUPPORTED, "direction '%.40s'", s);
    return OCT_OK;
}

/* Sizes and settings of the node, checked against all operands. */
static oct_status read_node(const oct_infer *q, const oct_rnn_kind *kind, oct_rnn *r)
{
    const oct_attr *clip = oct_node_attr(q->node, "clip");
    int64_t dirs, gates, biases, holes, *state[3];

    *r = (oct_rnn){.kind = kind, .node = q->node, .seq = -1, .batch = -1, .input = -1};
    r->hidden = attr_int(q->node, "hidden_size", -1);
    r->batch_first = attr_int(q->node, "layout", 0) != 0;
    if (clip && clip->kind == OCT_ATTR_F32) r->clip = (double)clip->f;
    OCT_TRY(read_direction(r));
    OCT_TRY(read_acts(r));
    dirs = r->dirs;
    OCT_TRY(match(q, X, 3,
                  (int64_t *[]){r->batch_first ? &r->batch : &r->seq,
                                r->batch_first ? &r->seq : &r->batch, &r->input}));
    if (oct_infer_in(q, R) && q->in[R]->rank == 3 && r->hidden < 0) r->hidden = q->in[R]->dim[2];
    if (r->hidden == 0 || r->hidden > INT32_MAX)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "hidden_size is %lld", (long long)r->hidden);
    gates = r->hidden < 0 ? -1 : r->hidden * kind->n_gates;
    biases = r->hidden < 0 ? -1 : 2 * r->hidden * kind->n_gates;
    holes = r->hidden < 0 ? -1 : 3 * r->hidden;
    OCT_TRY(match(q, W, 3, (int64_t *[]){&dirs, &gates, &r->input}));
    OCT_TRY(match(q, R, 3, (int64_t *[]){&dirs, &gates, &r->hidden}));
    OCT_TRY(match(q, B, 2, (int64_t *[]){&dirs, &biases}));
    OCT_TRY(match(q, LENS, 1, (int64_t *[]){&r->batch}));
    state[0] = r->batch_first ? &r->batch : &dirs;
    state[1] = r->batch_first ? &dirs : &r->batch;
    state[2] = &r->hidden;
    OCT_TRY(match(q, H0, 3, state));
    if (!kind->has_c) return OCT_OK;
    OCT_TRY(match(q, C0, 3, state));
    return match(q, P, 2, (int64_t *[]){&dirs, &holes});
}

oct_status oct_rnn_shape(const oct_infer *q, const oct_rnn_kind *kind)
{
    const oct_type *t;
    oct_rnn r;

    for (int i = 0; i <= R; i++)
        OCT_TRY(oct_infer_need(q, i, &t));
    for (int i = 0; i <= P; i++)
        OCT_TRY(oct_infer_check(q, i, i == LENS ? OCT_SET_INT : OCT_SET_FLOAT));
    OCT_TRY(read_node(q, kind, &r));
    for (int i = 0; i < q->node->n_out; i++) {
        const int64_t all[] = {r.seq, r.dirs, r.batch, r.hidden};
        const int64_t all_first[] = {r.batch, r.seq, r.dirs, r.hidden};
        const int64_t last[] = {r.dirs, r.batch, r.hidden};
        const int64_t last_first[] = {r.batch, r.dirs, r.hidden};

        q->out[i] = i == Y ? oct_type_make(q->in[X]->dtype, 4, r.batch_first ? all_first : all)
                           : oct_type_make(q->in[X]->dtype, 3, r.batch_first ? last_first : last);
    }
    return OCT_OK;
}

/* --- running --- */

void oct_rnn_product(int64_t n, int64_t k, const double *m, const double *v, double *to, bool add)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = add ? to[i] : 0;

        for (int64_t j = 0; j < k; j++)
            sum += m[i * k + j] * v[j];
        to[i] = sum;
    }
}

/* One sequence in one direction. */
static void run_sequence(const oct_rnn *r, int dir, int64_t b)
{
    const int64_t n = r->hidden, len = r->len ? r->len[b] : r->seq;
    const int64_t state = (r->batch_first ? b * r->dirs + dir : dir * r->batch + b) * n;
    const bool backwards = dir == 1 || r->reverse;
    double *h = r->scratch + (dir * r->batch + b) * n * (r->kind->n_gates + 3), *c = h + n;

    for (int64_t i = 0; i < n; i++) {
        h[i] = r->h0 ? r->h0[state + i] : 0;
        c[i] = r->c0 ? r->c0[state + i] : 0;
    }
    for (int64_t s = 0; s < len; s++) {
        const int64_t t = backwards ? len - 1 - s : s;
        const int64_t x = r->batch_first ? b * r->seq + t : t * r->batch + b;
        const int64_t y =
            r->batch_first ? (b * r->seq + t) * r->dirs + dir : (t * r->dirs + dir) * r->batch + b;

        r->kind->cell(r, dir, r->x + x * r->input, h, c, c + n);
        if (r->y) memcpy(r->y + y * n, h, (size_t)n * sizeof(*h));
    }
    if (r->y_h) memcpy(r->y_h + state, h, (size_t)n * sizeof(*h));
    if (r->y_c) memcpy(r->y_c + state, c, (size_t)n * sizeof(*c));
}

static void sequence_range(void *arg, int64_t begin, int64_t end)
{
    const oct_rnn *r = arg;

    for (int64_t i = begin; i < end; i++)
        run_sequence(r, (int)(i / r->batch), i % r->batch);
}

/* Output i as zeroed doubles, which are rounded at the end. */
static oct_status want(const oct_args *a, int i, double **out)
{
    const oct_tensor *t = oct_args_out(a, i);

    *out = NULL;
    if (!t) return OCT_OK;
    *out = oct_args_scratch(a, (size_t)OCT_MAX(oct_tensor_len(t), 1), sizeof(double));
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_rnn_run(const oct_args *a, const oct_rnn_kind *kind)
{
    size_t room;
    oct_infer q;
    oct_rnn r;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_node(&q, kind, &r));
    OCT_TRY(oct_work_in_f64(a, X, &r.x));
    OCT_TRY(oct_work_in_f64(a, W, &r.w));
    OCT_TRY(oct_work_in_f64(a, R, &r.r));
    OCT_TRY(oct_work_in_f64(a, B, &r.b));
    OCT_TRY(oct_work_in_i64(a, LENS, &r.len));
    OCT_TRY(oct_work_in_f64(a, H0, &r.h0));
    if (kind->has_c) {
        OCT_TRY(oct_work_in_f64(a, C0, &r.c0));
        OCT_TRY(oct_work_in_f64(a, P, &r.p));
    }
    OCT_TRY(want(a, Y, &r.y));
    OCT_TRY(want(a, Y_H, &r.y_h));
    OCT_TRY(want(a, Y_C, &r.y_c));
    for (int64_t b = 0; r.len && b < r.batch; b++)
        if (r.len[b] < 0 || r.len[b] > r.seq)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "sequence_lens[%lld] is %lld of %lld",
                                 (long long)b, (long long)r.len[b], (long long)r.seq);
    if (!oct_mul_size((size_t)(r.dirs * (kind->n_gates + 3)), (size_t)r.batch, &room) ||
        !(r.scratch = oct_args_scratch(a, room * (size_t)r.hidden + 1, sizeof(double))))
        return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, r.dirs * r.batch, 1, sequence_range, &r);
    oct_work_done(a, Y, OCT_WORK_F64, r.y);
    oct_work_done(a, Y_H, OCT_WORK_F64, r.y_h);
    oct_work_done(a, Y_C, OCT_WORK_F64, r.y_c);
    return OCT_OK;
}
