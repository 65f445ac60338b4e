/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of elements of each head are rotated by an angle that grows with
 * position. */
#include "base/parallel.h"
#include "op/grad/rules.h"
#include "op/moments.h"

enum { INTERLEAVED, N_HEADS, ROTARY_DIM };
enum { X, COS, SIN, POSITIONS };

typedef struct geometry {
    bool packed; /* 3-D: heads side by side */
    int64_t batch, heads, len, size, turned;
} geometry;

typedef struct rotary_job {
    geometry g;
    oct_work w;
    const void *x, *cos, *sin;
    const int64_t *positions; /* NULL: the caches are [batch x len x turned / 2] */
    void *y;
    bool interleaved;
} rotary_job;

/* All of x's dims must be known for numbers other than -1. */
static oct_status read_geometry(const oct_node *n, const oct_type *x, geometry *g)
{
    const int64_t heads = oct_int(n, N_HEADS);

    *g = (geometry){x->rank == 3, -1, -1, -1, -1, -1};
    if (x->rank < 0) return OCT_OK;
    if (x->rank != 3 && x->rank != 4)
        return oct_node_fail(n, OCT_ERR_SHAPE, "input has %d dims, 3 or 4 are needed", x->rank);
    g->batch = x->dim[0];
    g->len = x->dim[g->packed ? 1 : 2];
    if (g->packed) {
        if (heads < 1)
            return oct_node_fail(n, OCT_ERR_SHAPE, "num_heads is %lld", (long long)heads);
        if (x->dim[2] >= 0 && x->dim[2] % heads != 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "%lld columns do not divide into %lld heads",
                                 (long long)x->dim[2], (long long)heads);
        g->heads = heads;
        g->size = x->dim[2] < 0 ? -1 : x->dim[2] / heads;
    } else {
        g->heads = x->dim[1];
        g->size = x->dim[3];
    }
    g->turned = oct_int(n, ROTARY_DIM) ? oct_int(n, ROTARY_DIM) : g->size;
    if (g->turned >= 0 && g->size >= 0 && (g->turned > g->size || g->turned % 2 != 0))
        return oct_node_fail(n, OCT_ERR_SHAPE, "rotary dim is %lld of %lld", (long long)g->turned,
                             (long long)g->size);
    if (oct_int(n, ROTARY_DIM) < 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "rotary_embedding_dim is negative");
    return OCT_OK;
}

static bool differs(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a != b;
}

static oct_status check_caches(const oct_infer *q, const geometry *g)
{
    const oct_type *at = oct_infer_in(q, POSITIONS), *t;
    const int rank = at ? 2 : 3;

    if (at && at->rank >= 0 &&
        (at->rank != 2 || differs(at->dim[0], g->batch) || differs(at->dim[1], g->len)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "position_ids is not [batch x length]");
    for (int i = COS; i <= SIN; i++) {
        OCT_TRY(oct_infer_need(q, i, &t));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
        if (t->rank < 0 || g->batch == -1) continue;
        if (t->rank != rank || differs(t->dim[rank - 1], g->turned < 0 ? -1 : g->turned / 2) ||
            (rank == 3 && (differs(t->dim[0], g->batch) || differs(t->dim[1], g->len))))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the cache of operand %d does not fit", i);
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    geometry g;

    OCT_TRY(oct_shape_same(q));
    OCT_TRY(oct_infer_check(q, X, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, POSITIONS, OCT_SET_INT));
    OCT_TRY(read_geometry(q->node, q->in[X], &g));
    return check_caches(q, &g);
}

static void turn(const rotary_job *j, int64_t at, int64_t angle)
{
    const int64_t half = j->g.turned / 2;

    for (int64_t k = 0; k < half; k++) {
        const int64_t re = at + (j->interleaved ? 2 * k : k);
        const int64_t im = j->interleaved ? re + 1 : re + half;
        const double a = oct_work_get(j->w, j->x, re), b = oct_work_get(j->w, j->x, im);
        const double c = oct_work_get(j->w, j->cos, angle * half + k);
        const double s = oct_work_get(j->w, j->sin, angle * half + k);

        oct_work_put(j->w, j->y, re, c * a - s * b);
        oct_work_put(j->w, j->y, im, s * a + c * b);
    }
    for (int64_t k = j->g.turned; k < j->g.size; k++)
        oct_work_put(j->w, j->y, at + k, oct_work_get(j->w, j->x, at + k));
}

/* Work items are (image, position). */
static void position_range(void *arg, int64_t begin, int64_t end)
{
    const rotary_job *j = arg;
    const geometry *g = &j->g;

    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / g->len, p = i % g->len;

        for (int64_t h = 0; h < g->heads; h++) {
            const int64_t at =
                g->packed ? (b * g->len + p) * g->heads + h : (b * g->heads + h) * g->len + p;

            turn(j, at * g->size, j->positions ? j->positions[i] : i);
        }
    }
}

static oct_status ref(const oct_args *a)
{
    rotary_job j = {.w = oct_work_of(a->in[X]->type.dtype),
                    .interleaved = oct_int(a->node, INTERLEAVED) != 0};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_geometry(a->node, &a->in[X]->type, &j.g));
    OCT_TRY(oct_work_in(a, X, j.w, &j.x));
    OCT_TRY(oct_work_in(a, COS, j.w, &j.cos));
    OCT_TRY(oct_work_in(a, SIN, j.w, &j.sin));
    OCT_TRY(oct_work_in_i64(a, POSITIONS, &j.positions));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    for (int64_t i = 0; j.positions && i < j.g.batch * j.g.len; i++)
        if (j.positions[i] < 0 ||
            j.positions[i] >= OCT_MIN(a->in[COS]->type.dim[0], a->in[SIN]->type.dim[0]))
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "position %lld is outside the cache",
                                 (long long)j.positions[i]);
    oct_parallel_for(a->n_threads, j.g.batch * j.g.len, 16, position_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    return OCT_OK;
}

/* Turned back by the same angles. */
static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_node *g;

    if (a->wanted[COS] || a->wanted[SIN])
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its caches have no gradient, only the data");
    g = oct_emit_node(a->b, &oct_op_rotary_embedding,
                      (oct_value *[]){a->dy[0], n->in[COS], OCT_EMIT1(neg, n->in[SIN]),
                                      oct_node_in(n, POSITIONS)},
                      n->n_in, 1);
    oct_emit_attrs_of(a->b, g, n);
    a->dx[X] = oct_emitted(a->b, g);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [INTERLEAVED] = {.name = "interleaved", .kind = OCT_ATTR_INT},
    [N_HEADS] = {.name = "num_heads", .kind = OCT_ATTR_INT},
    [ROTARY_DIM] = {.name = "rotary_embedding_dim", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_rotary_embedding = {
    .name = "RotaryEmbedding",
    .since = 23,
    .min_in = 3,
    .max_in = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};
