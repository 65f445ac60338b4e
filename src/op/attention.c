/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: grouped heads, masks, causal and window bounds, past keys and values, soft cap. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "op/grad/rules.h"
#include "op/mm.h"

enum { CAUSAL, KV_HEADS, LEFT, Q_HEADS, QK_MODE, RIGHT, SCALE, SOFTCAP, SOFTMAX_PRECISION };
enum { Q, K, V, MASK, PAST_K, PAST_V, N_VALID };
enum { Y, PRESENT_K, PRESENT_V, QK };

/* What the operands' shapes say; -1: not known. */
typedef struct shape_info {
    bool packed; /* 3-D operands: heads side by side in the last axis */
    int64_t batch, q_heads, kv_heads, q_len, kv_len, past, total;
    int64_t size, v_size; /* of one head */
} shape_info;

typedef struct attention_job {
    shape_info s;
    const void *q, *keys, *values; /* keys: [.. x size x total], values: [.. x total x v_size] */
    const void *mask;              /* as numbers to add; NULL: none */
    int64_t mask_step[4], mask_len;
    const int64_t *n_valid; /* for each image; NULL: all */
    void *y, *shown, *rows; /* shown: the scores as an output */
    bool is_causal;
    int64_t left, right, mode;
    double scale, softcap;
} attention_job;

/* Offset of one head's token, in tokens of one head. */
static int64_t token(bool packed, int64_t heads, int64_t len, int64_t b, int64_t h, int64_t i)
{
    return packed ? (b * len + i) * heads + h : (b * heads + h) * len + i;
}

#define T       float
#define EXP(x)  expf(x)
#define TANH(x) tanhf(x)
#define FN(f)   f##_f32
#include "op/attention_kernel.inc"
#undef T
#undef EXP
#undef TANH
#undef FN
#define T       double
#define EXP(x)  exp(x)
#define TANH(x) tanh(x)
#define FN(f)   f##_f64
#include "op/attention_kernel.inc"
#undef T
#undef EXP
#undef TANH
#undef FN

/* --- shapes --- */

/* Sets *to, or compares where both are known. */
static oct_status agree(const oct_node *n, int64_t *to, int64_t dim, const char *what)
{
    if (*to < 0) *to = dim;
    if (dim >= 0 && *to != dim)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%s is %lld and %lld", what, (long long)*to,
                             (long long)dim);
    return OCT_OK;
}

/* One of Q, K, V: [batch x heads x len x size] or [batch x len x heads * size]. */
static oct_status read_operand(const oct_node *n, const oct_type *t, shape_info *s, int heads_attr,
                               int64_t *heads, int64_t *len, int64_t *size)
{
    if (t->rank < 0) return OCT_OK;
    if (t->rank != (s->packed ? 3 : 4))
        return oct_node_fail(n, OCT_ERR_SHAPE, "Q, K and V have different numbers of dims");
    OCT_TRY(agree(n, &s->batch, t->dim[0], "batch"));
    if (!s->packed) {
        OCT_TRY(agree(n, heads, t->dim[1], "number of heads"));
        OCT_TRY(agree(n, len, t->dim[2], "sequence length"));
        return agree(n, size, t->dim[3], "head size");
    }
    if (!oct_has(n, heads_attr) || oct_int(n, heads_attr) < 1)
        return oct_node_fail(n, OCT_ERR_SHAPE, "3-D operands need q_num_heads and kv_num_heads");
    *heads = oct_int(n, heads_attr);
    OCT_TRY(agree(n, len, t->dim[1], "sequence length"));
    if (t->dim[2] >= 0 && t->dim[2] % *heads != 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld columns do not divide into %lld heads",
                             (long long)t->dim[2], (long long)*heads);
    return t->dim[2] < 0 ? OCT_OK : agree(n, size, t->dim[2] / *heads, "head size");
}

static oct_status read_past(const oct_node *n, const oct_type *t, shape_info *s, int64_t *size)
{
    if (!t || t->rank < 0) return OCT_OK;
    if (t->rank != 4) return oct_node_fail(n, OCT_ERR_SHAPE, "past keys and values must be 4-D");
    OCT_TRY(agree(n, &s->batch, t->dim[0], "batch"));
    OCT_TRY(agree(n, &s->kv_heads, t->dim[1], "number of heads"));
    OCT_TRY(agree(n, &s->past, t->dim[2], "past sequence length"));
    return agree(n, size, t->dim[3], "head size");
}

static oct_status read_shapes(const oct_infer *q, shape_info *s)
{
    const oct_node *n = q->node;
    const oct_type *t[3], *past = oct_infer_in(q, PAST_K);

    for (int i = 0; i < 3; i++)
        OCT_TRY(oct_infer_need(q, i, &t[i]));
    *s = (shape_info){false, -1, -1, -1, -1, -1, past ? -1 : 0, -1, -1, -1};
    for (int i = 0; i < 3; i++)
        s->packed = s->packed || t[i]->rank == 3;
    OCT_TRY(read_operand(n, t[Q], s, Q_HEADS, &s->q_heads, &s->q_len, &s->size));
    OCT_TRY(read_operand(n, t[K], s, KV_HEADS, &s->kv_heads, &s->kv_len, &s->size));
    OCT_TRY(read_operand(n, t[V], s, KV_HEADS, &s->kv_heads, &s->kv_len, &s->v_size));
    if (!past != !oct_infer_in(q, PAST_V))
        return oct_node_fail(n, OCT_ERR_FORMAT, "past_key and past_value go together");
    OCT_TRY(read_past(n, past, s, &s->size));
    OCT_TRY(read_past(n, oct_infer_in(q, PAST_V), s, &s->v_size));
    if (s->q_heads >= 0 && s->kv_heads >= 0 &&
        (s->kv_heads == 0 ? s->q_heads != 0 : s->q_heads % s->kv_heads != 0))
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld query heads for %lld key heads",
                             (long long)s->q_heads, (long long)s->kv_heads);
    if (s->past >= 0 && s->kv_len >= 0 && !oct_add_i64(s->past, s->kv_len, &s->total))
        return oct_node_fail(n, OCT_ERR_SHAPE, "the sequence is too long");
    return OCT_OK;
}

/* The mask broadcasts to [batch x q_heads x q_len x total]; its last axis may be shorter. */
static oct_status check_mask(const oct_infer *q, const shape_info *s)
{
    const oct_type *t = oct_infer_in(q, MASK), *valid = oct_infer_in(q, N_VALID);
    const int64_t want[] = {s->batch, s->q_heads, s->q_len, s->total};

    OCT_TRY(oct_infer_check(q, MASK, OCT_SET_FLOAT | OCT_SET_BOOL | OCT_SET_INT));
    OCT_TRY(oct_infer_check(q, N_VALID, OCT_SET_INT));
    if (t && (t->rank > 4 || t->rank == 0))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "mask has %d dims", t->rank);
    for (int d = 0; t && d < t->rank; d++) {
        const int64_t have = t->dim[d], room = want[4 - t->rank + d];

        if (have < 0 || room < 0 || have == 1 || have == room) continue;
        if (d < t->rank - 1 || have > room)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "mask does not broadcast to the scores");
    }
    if (valid && valid->rank >= 0 &&
        (valid->rank != 1 || (s->batch >= 0 && valid->dim[0] >= 0 && valid->dim[0] != s->batch)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "nonpad_kv_seqlen is not one number an image");
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const int n_out = q->node->n_out;
    oct_dtype t, tv;
    shape_info s;

    OCT_TRY(read_shapes(q, &s));
    OCT_TRY(check_mask(q, &s));
    for (int i = 0; i < N_VALID; i++)
        if (i != MASK) OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    t = q->in[Q]->dtype;
    tv = q->in[V]->dtype;
    if (oct_int(q->node, QK_MODE) < 0 || oct_int(q->node, QK_MODE) > 3)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "qk_matmul_output_mode is %lld",
                              (long long)oct_int(q->node, QK_MODE));
    q->out[Y] = oct_type_unknown(t);
    if (s.packed) {
        int64_t cols = -1;

        if (s.q_heads >= 0 && s.v_size >= 0 && !oct_mul_i64(s.q_heads, s.v_size, &cols))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the output is too large");
        q->out[Y] = oct_type_make(t, 3, (int64_t[]){s.batch, s.q_len, cols});
    } else if (q->in[Q]->rank == 4) {
        q->out[Y] = oct_type_make(t, 4, (int64_t[]){s.batch, s.q_heads, s.q_len, s.v_size});
    }
    if (n_out > PRESENT_K)
        q->out[PRESENT_K] =
            oct_type_make(q->in[K]->dtype, 4, (int64_t[]){s.batch, s.kv_heads, s.total, s.size});
    if (n_out > PRESENT_V)
        q->out[PRESENT_V] =
            oct_type_make(tv, 4, (int64_t[]){s.batch, s.kv_heads, s.total, s.v_size});
    if (n_out > QK)
        q->out[QK] = oct_type_make(t, 4, (int64_t[]){s.batch, s.q_heads, s.q_len, s.total});
    return OCT_OK;
}

/* --- kernel --- */

/* The mask as addends: true is 0, false minus infinity. */
static oct_status read_mask(const oct_args *a, oct_work w, attention_job *j)
{
    const oct_tensor *t = oct_args_in(a, MASK);
    int64_t step = 1;

    if (!t) return OCT_OK;
    OCT_TRY(oct_work_in(a, MASK, w, &j->mask));
    if (t->type.dtype == OCT_DTYPE_BOOL) {
        /* Converted, so this is scratch. */
        for (int64_t i = 0; i < oct_tensor_len(t); i++) {
            if (w == OCT_WORK_F64)
                ((double *)j->mask)[i] = ((const double *)j->mask)[i] != 0 ? 0 : -INFINITY;
            else
                ((float *)j->mask)[i] = ((const float *)j->mask)[i] != 0 ? 0 : -INFINITY;
        }
    }
    for (int d = t->type.rank - 1; d >= 0; d--) {
        j->mask_step[4 - t->type.rank + d] = t->type.dim[d] == 1 ? 0 : step;
        step *= t->type.dim[d];
    }
    j->mask_len = t->type.dim[t->type.rank - 1] == 1 ? j->s.total : t->type.dim[t->type.rank - 1];
    return OCT_OK;
}

/* All keys and values, old and new; also outputs. Then the keys transposed for the kernel. */
static oct_status join_past(const oct_args *a, oct_work w, attention_job *j)
{
    const shape_info *s = &j->s;
    const size_t unit = oct_dtype_size(oct_work_dtype(w));
    const int64_t heads = s->batch * s->kv_heads, sizes[] = {s->size, s->v_size};
    void *all[2];

    for (int i = 0; i < 2; i++) {
        const void *now, *past;

        OCT_TRY(oct_work_in(a, K + i, w, &now));
        OCT_TRY(oct_work_in(a, PAST_K + i, w, &past));
        all[i] = oct_args_scratch(a, (size_t)(heads * s->total * sizes[i]) + 1, unit);
        if (!all[i]) return OCT_ERR_MEMORY;
        if (w == OCT_WORK_F64)
            join_f64(j, past, now, sizes[i], all[i]);
        else
            join_f32(j, past, now, sizes[i], all[i]);
        oct_work_done(a, PRESENT_K + i, w, all[i]);
    }
    j->values = all[1];
    j->keys = oct_args_scratch(a, (size_t)(heads * s->total * s->size) + 1, unit);
    if (!j->keys) return OCT_ERR_MEMORY;
    for (int64_t h = 0; h < heads; h++) {
        const size_t at = (size_t)(h * s->total * s->size) * unit;

        oct_mm_transpose((char *)all[0] + at, s->total, s->size, unit, (char *)j->keys + at);
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_node *n = a->node;
    const oct_work w = oct_work_of(a->in[Q]->type.dtype);
    attention_job j = {.is_causal = oct_int(n, CAUSAL) != 0,
                       .left = oct_int(n, LEFT),
                       .right = oct_int(n, RIGHT),
                       .mode = oct_int(n, QK_MODE),
                       .softcap = (double)oct_f32(n, SOFTCAP)};
    oct_infer q;
    size_t room;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_shapes(&q, &j.s));
    j.scale = oct_has(n, SCALE) ? (double)oct_f32(n, SCALE) : 1 / sqrt((double)j.s.size);
    OCT_TRY(oct_work_in(a, Q, w, &j.q));
    OCT_TRY(read_mask(a, w, &j));
    OCT_TRY(join_past(a, w, &j));
    OCT_TRY(oct_work_in_i64(a, N_VALID, &j.n_valid));
    OCT_TRY(oct_work_out(a, Y, w, &j.y));
    OCT_TRY(oct_work_out(a, QK, w, &j.shown));
    if (!j.y) return OCT_OK;
    if (!oct_mul_size((size_t)(j.s.batch * j.s.q_heads), (size_t)j.s.total + 1, &room) ||
        !(j.rows = oct_args_scratch(a, room + 1, sizeof(double))))
        return OCT_ERR_MEMORY;
    for (int64_t b = 0; j.n_valid && b < j.s.batch; b++)
        if (j.n_valid[b] < 0 || j.n_valid[b] > j.s.total)
            return oct_node_fail(n, OCT_ERR_SHAPE, "nonpad_kv_seqlen says %lld of %lld tokens",
                                 (long long)j.n_valid[b], (long long)j.s.total);
    oct_parallel_for(a->n_threads, j.s.batch * j.s.q_heads, 1,
                     w == OCT_WORK_F64 ? attention_range_f64 : attention_range_f32, &j);
    oct_work_done(a, Y, w, j.y);
    oct_work_done(a, QK, w, j.shown);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    const oct_value *y = n->out[Y], *k = n->in[K];
    const int64_t out = y ? oct_type_len(&y->type) : -1;
    int64_t len, result;

    if (out < 0 || !k || k->type.rank < 3) return 0;
    len = k->type.dim[k->type.rank - 2];
    return len > 0 && oct_mul_i64(out, 2 * (len & INT32_MAX), &result) ? result : 0;
}

static const oct_attr_def attrs[] = {
    [CAUSAL] = {.name = "is_causal", .kind = OCT_ATTR_INT},
    [KV_HEADS] = {.name = "kv_num_heads", .kind = OCT_ATTR_INT, .no_default = true},
    [LEFT] = {.name = "left_window_size", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [Q_HEADS] = {.name = "q_num_heads", .kind = OCT_ATTR_INT, .no_default = true},
    [QK_MODE] = {.name = "qk_matmul_output_mode", .kind = OCT_ATTR_INT},
    [RIGHT] = {.name = "right_window_size", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [SCALE] = {.name = "scale", .kind = OCT_ATTR_F32, .no_default = true},
    [SOFTCAP] = {.name = "softcap", .kind = OCT_ATTR_F32},
    [SOFTMAX_PRECISION] = {.name = "softmax_precision", .kind = OCT_ATTR_INT, .no_default = true},
    {0},
};

const oct_op oct_op_attention = {
    .name = "Attention",
    .since = 23,
    .min_in = 3,
    .max_in = 7,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_attention,
    .macs = macs,
    .flow = OCT_FLOW_STOP,
};
