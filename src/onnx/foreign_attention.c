/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's Attention, MultiHeadAttention and QAttention as ONNX's Attention. */
#include <string.h>

#include "onnx/foreign.h"

/* Operands of ONNX's Attention. */
enum { Q, K, V, BIAS, PAST_K, PAST_V, N_VALID, N_OPERANDS };

/* x cut into three along its last axis. */
static oct_status split(oct_builder *b, oct_value *x, oct_value *out[3])
{
    oct_node *n = b->status ? NULL : oct_emit_node(b, &oct_op_split, &x, 1, 3);

    if (n) oct_emit_int(b, n, "axis", -1);
    if (n) oct_emit_int(b, n, "num_outputs", 3);
    if (!oct_emitted(b, n)) return b->status ? b->status : OCT_ERR_MEMORY;
    for (int i = 0; i < 3; i++)
        out[i] = n->out[i];
    return OCT_OK;
}

/*
 * A mask of numbers of words (one for each sentence) or of ones and zeros. `filter` is added where
 * it is zero. False: another form.
 */
static bool apply_mask(oct_builder *b, oct_value *mask, int64_t batch, float filter,
                       oct_value *in[N_OPERANDS])
{
    const oct_type *t = &mask->type;
    oct_value *x;

    if (t->rank == 1) {
        if (t->dim[0] < 0 || t->dim[0] != batch) return false;
        in[N_VALID] = oct_foreign_cast(b, mask, OCT_DTYPE_I64);
        return true;
    }
    if (t->rank != 2 && t->rank != 3) return false;
    x = oct_foreign_cast(b, mask, OCT_DTYPE_F32);
    x = b->status ? NULL : oct_emit(b, &oct_op_sub, oct_scalar(b, 1), x, NULL);
    x = b->status ? NULL : oct_emit(b, &oct_op_mul, x, oct_scalar(b, filter), NULL);
    if (!b->status) x = oct_foreign_unsqueeze(b, x, (const int64_t[]){1, 2}, t->rank == 2 ? 2 : 1);
    if (b->status) return true;
    in[BIAS] = in[BIAS] ? oct_emit(b, &oct_op_add, in[BIAS], x, NULL) : x;
    return true;
}

typedef struct settings {
    int64_t heads, causal;
    float scale, filter;
} settings;

static settings read_settings(const oct_draft *d)
{
    return (settings){oct_draft_int(d, "num_heads", 0), oct_draft_int(d, "unidirectional", 0),
                      oct_draft_f32(d, "scale", 0), oct_draft_f32(d, "mask_filter_value", -10000)};
}

static oct_status become_attention(oct_draft *d, const settings *s, oct_value *in[N_OPERANDS])
{
    int32_t n = N_OPERANDS;

    while (n > 3 && !in[n - 1])
        n--;
    OCT_TRY(oct_foreign_become(d, "Attention", in, n));
    OCT_TRY(oct_draft_set_int(d, "q_num_heads", s->heads));
    OCT_TRY(oct_draft_set_int(d, "kv_num_heads", s->heads));
    OCT_TRY(oct_draft_set_int(d, "is_causal", s->causal != 0));
    return s->scale > 0 ? oct_foreign_set_f32(d, "scale", s->scale) : OCT_OK;
}

static int64_t batch_of(const oct_value *x)
{
    return x->type.rank > 0 ? x->type.dim[0] : -1;
}

/* Keys and values of earlier words, rotations and other sizes of values are not spelt out. */
static bool is_plain(const oct_draft *d, const int *absent, int n)
{
    for (int i = 0; i < n; i++)
        if (oct_draft_in(d, absent[i])) return false;
    for (int i = 1; i < d->n_out; i++)
        if (d->out[i]) return false;
    return oct_draft_int(d, "num_heads", 0) > 0 && !oct_draft_int(d, "do_rotary", 0) &&
           !oct_draft_attr_find(d, "qkv_hidden_sizes");
}

oct_status oct_foreign_attention(oct_draft *d)
{
    enum { X, WEIGHT, WEIGHT_BIAS, MASK, PAST, ADDED, PAST_LENGTH };
    static const int absent[] = {PAST, PAST_LENGTH};
    const settings s = read_settings(d);
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[N_OPERANDS] = {NULL}, *mask = oct_draft_in(d, MASK), *x;

    if (d->n_in < 2 || !d->in[X] || !d->in[WEIGHT] || !is_plain(d, absent, OCT_COUNT(absent)))
        return OCT_OK;
    in[BIAS] = oct_draft_in(d, ADDED);
    if (mask && !apply_mask(&b, mask, batch_of(d->in[X]), s.filter, in)) return b.status;
    OCT_TRY(b.status);
    x = oct_emit(&b, &oct_op_mat_mul, d->in[X], d->in[WEIGHT], NULL);
    if (!b.status && oct_draft_in(d, WEIGHT_BIAS))
        x = oct_emit(&b, &oct_op_add, x, d->in[WEIGHT_BIAS], NULL);
    OCT_TRY(split(&b, x, in));
    return become_attention(d, &s, in);
}

oct_status oct_foreign_q_attention(oct_draft *d)
{
    enum { X, WEIGHT, WEIGHT_BIAS, X_SCALE, W_SCALE, MASK, X_ZERO, W_ZERO, PAST };
    static const int absent[] = {PAST};
    const settings s = read_settings(d);
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[N_OPERANDS] = {NULL}, *mask = oct_draft_in(d, MASK), *product[7], *x;

    if (d->n_in < 5 || !is_plain(d, absent, OCT_COUNT(absent))) return OCT_OK;
    for (int i = X; i <= W_SCALE; i++)
        if (!d->in[i]) return OCT_OK;
    if (mask && !apply_mask(&b, mask, batch_of(d->in[X]), s.filter, in)) return b.status;
    OCT_TRY(b.status);
    memcpy(product,
           (oct_value *[]){d->in[X], d->in[WEIGHT], d->in[X_SCALE], d->in[W_SCALE],
                           oct_draft_in(d, X_ZERO), oct_draft_in(d, W_ZERO), d->in[WEIGHT_BIAS]},
           sizeof(product));
    x = oct_emitted(&b, oct_emit_node(&b, &oct_op_mat_mul_integer_to_float, product, 7, 1));
    OCT_TRY(split(&b, x, in));
    return become_attention(d, &s, in);
}

oct_status oct_foreign_heads(oct_draft *d)
{
    enum { QUERY, KEY, VALUE, ALL_BIAS, MASK, ADDED, EARLIER_K, EARLIER_V, PAST_LENGTH, CACHE };
    static const int absent[] = {EARLIER_K, EARLIER_V, PAST_LENGTH, CACHE};
    const settings s = read_settings(d);
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[N_OPERANDS] = {NULL}, *mask = oct_draft_in(d, MASK), *bias[3];

    if (d->n_in < 3 || !is_plain(d, absent, OCT_COUNT(absent))) return OCT_OK;
    for (int i = QUERY; i <= VALUE; i++)
        if (oct_draft_rank(d, i) != 3) return OCT_OK; /* packed, or keys of another network */
    in[BIAS] = oct_draft_in(d, ADDED);
    if (mask && !apply_mask(&b, mask, batch_of(d->in[QUERY]), s.filter, in)) return b.status;
    OCT_TRY(b.status);
    memcpy(in, d->in, 3 * sizeof(*in));
    if (oct_draft_in(d, ALL_BIAS)) {
        OCT_TRY(split(&b, d->in[ALL_BIAS], bias));
        for (int i = 0; i < 3; i++)
            in[i] = oct_emit(&b, &oct_op_add, in[i], bias[i], NULL);
        OCT_TRY(b.status);
    }
    return become_attention(d, &s, in);
}
