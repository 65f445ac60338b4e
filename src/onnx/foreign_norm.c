/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's activations, normalizations and embeddings, spelt out. */
#include "onnx/foreign.h"

static oct_value *sum(oct_builder *b, oct_value *x, oct_value *y)
{
    return y ? oct_emit(b, &oct_op_add, x, y, NULL) : x;
}

oct_status oct_foreign_bias_gelu(oct_draft *d)
{
    oct_builder b = oct_foreign_builder(d);
    oct_value *x;

    if (d->n_in != 2 || !d->in[0] || !d->in[1]) return OCT_OK;
    x = sum(&b, d->in[0], d->in[1]);
    OCT_TRY(b.status);
    return oct_foreign_become(d, "Gelu", &x, 1);
}

oct_status oct_foreign_fast_gelu(oct_draft *d)
{
    oct_builder b = oct_foreign_builder(d);
    oct_value *x;

    if (d->n_in < 1 || d->n_in > 2 || !d->in[0]) return OCT_OK;
    x = sum(&b, d->in[0], oct_draft_in(d, 1));
    OCT_TRY(b.status);
    OCT_TRY(oct_foreign_become(d, "Gelu", &x, 1));
    return oct_draft_set_str(d, "approximate", "tanh");
}

oct_status oct_foreign_rms_norm(oct_draft *d)
{
    const float epsilon = oct_draft_f32(d, "epsilon", 1e-5f);
    const int64_t axis = oct_draft_int(d, "axis", -1);

    if (d->n_in != 2 || !d->in[0] || !d->in[1] || oct_foreign_wants(d, 1)) return OCT_OK;
    OCT_TRY(oct_foreign_become(d, "RMSNormalization", d->in, 2));
    OCT_TRY(oct_draft_set_int(d, "axis", axis));
    return oct_foreign_set_f32(d, "epsilon", epsilon);
}

enum { SKIP_X, SKIP_SKIP, SKIP_GAMMA, SKIP_BIAS };
enum { SKIP_Y, SKIP_MEAN, SKIP_INV_STD, SKIP_SUM };

oct_status oct_foreign_skip_rms_norm(oct_draft *d)
{
    const float epsilon = oct_draft_f32(d, "epsilon", 1e-12f);
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[2];

    if (d->n_in < 3 || !d->in[SKIP_X] || !d->in[SKIP_SKIP] || !d->in[SKIP_GAMMA]) return OCT_OK;
    if (oct_foreign_wants(d, SKIP_MEAN) || oct_foreign_wants(d, SKIP_INV_STD)) return OCT_OK;
    in[0] = sum(&b, sum(&b, d->in[SKIP_X], d->in[SKIP_SKIP]), oct_draft_in(d, SKIP_BIAS));
    in[1] = d->in[SKIP_GAMMA];
    OCT_TRY(b.status);
    OCT_TRY(oct_foreign_give(d, SKIP_SUM, in[0]));
    OCT_TRY(oct_foreign_become(d, "RMSNormalization", in, 2));
    OCT_TRY(oct_draft_set_int(d, "axis", -1));
    return oct_foreign_set_f32(d, "epsilon", epsilon);
}

/* --- EmbedLayerNormalization --- */

enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA, MASK, POSITION_IDS };
enum { EMBEDDED, MASK_INDEX, EMBEDDING_SUM };

/* Rows 0, 1, 2, .. of the table, as many as a sentence has words. */
static oct_value *first_positions(oct_builder *b, oct_value *ids, oct_value *positions)
{
    oct_value *length = oct_emit(b, &oct_op_shape, ids, NULL, NULL);
    oct_value *zero = oct_ints(b, (const int64_t[]){0}, 1), *one = oct_ints(b, (int64_t[]){1}, 1);
    oct_value *in[4] = {positions, zero, NULL, zero};

    length = oct_emit(b, &oct_op_gather, length, one, NULL);
    if (b->status) return NULL;
    in[2] = length;
    return oct_emitted(b, oct_emit_node(b, &oct_op_slice, in, 4, 1));
}

static oct_value *row_sums(oct_builder *b, oct_value *x)
{
    oct_value *in[2] = {x, oct_ints(b, (const int64_t[]){1}, 1)};
    oct_node *n = b->status ? NULL : oct_emit_node(b, &oct_op_reduce_sum, in, 2, 1);

    if (n) oct_emit_int(b, n, "keepdims", 0);
    return oct_emitted(b, n);
}

/* How many words of each sentence count; 0 without a mask. */
static oct_status give_mask_index(oct_draft *d, oct_builder *b)
{
    oct_value *mask = oct_draft_in(d, MASK);

    if (!oct_foreign_wants(d, MASK_INDEX)) return OCT_OK;
    if (!mask) mask = oct_emit(b, &oct_op_sub, d->in[IDS], d->in[IDS], NULL);
    if (!b->status) mask = row_sums(b, mask);
    return b->status ? b->status : oct_foreign_give(d, MASK_INDEX, mask);
}

oct_status oct_foreign_embed(oct_draft *d)
{
    const float epsilon = oct_draft_f32(d, "epsilon", 1e-12f);
    oct_builder b = oct_foreign_builder(d);
    oct_value *x, *at, *in[3];

    if (d->n_in < 7 || !d->in[IDS] || !d->in[WORDS] || !d->in[POSITIONS] || !d->in[GAMMA] ||
        !d->in[BETA] || !d->in[SEGMENTS] != !d->in[SEGMENT_TABLE])
        return OCT_OK;
    x = oct_emit(&b, &oct_op_gather, d->in[WORDS], d->in[IDS], NULL);
    at = oct_draft_in(d, POSITION_IDS);
    at = at ? oct_emit(&b, &oct_op_gather, d->in[POSITIONS], at, NULL)
            : first_positions(&b, d->in[IDS], d->in[POSITIONS]);
    if (!b.status) x = sum(&b, x, at);
    if (!b.status && d->in[SEGMENTS])
        x = sum(&b, x, oct_emit(&b, &oct_op_gather, d->in[SEGMENT_TABLE], d->in[SEGMENTS], NULL));
    OCT_TRY(b.status);
    OCT_TRY(give_mask_index(d, &b));
    OCT_TRY(oct_foreign_give(d, EMBEDDING_SUM, x));
    in[0] = x;
    in[1] = d->in[GAMMA];
    in[2] = d->in[BETA];
    OCT_TRY(oct_foreign_become(d, "LayerNormalization", in, 3));
    OCT_TRY(oct_draft_set_int(d, "axis", -1));
    return oct_foreign_set_f32(d, "epsilon", epsilon);
}
