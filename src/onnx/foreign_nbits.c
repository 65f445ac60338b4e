/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits: a product with weights of 2, 4 or 8 bits, in blocks that have scales of their own.
 */
#include "onnx/foreign.h"

enum { A, CODES, SCALES, ZEROS, ORDER, BIAS, N_MOST };

typedef struct nbits {
    int64_t k, n, bits, block; /* the weight is [n, k]; codes of a row come in blocks */
    int64_t blocks;            /* of a row; the last one is padded */
    const oct_tensor *codes, *scales, *zeros;
} nbits;

static oct_value *operand(const oct_draft *d, int i)
{
    return i < d->n_in ? d->in[i] : NULL;
}

static bool is_bytes(const oct_tensor *t, int64_t n)
{
    return t->type.dtype == OCT_DTYPE_U8 && oct_tensor_len(t) == n;
}

/* Bytes of a row of zero points, whose last byte may be filled in part. */
static int64_t zero_bytes(const nbits *w)
{
    return (w->blocks * w->bits + 7) / 8;
}

static bool read_form(const oct_draft *d, nbits *w)
{
    const oct_value *zeros = operand(d, ZEROS);

    *w = (nbits){oct_draft_int(d, "K", 0), oct_draft_int(d, "N", 0), oct_draft_int(d, "bits", 4),
                 oct_draft_int(d, "block_size", 0)};
    if (d->n_in < 3 || d->n_in > N_MOST || !d->in[A] || !d->in[CODES] || !d->in[SCALES])
        return false;
    if (operand(d, ORDER) || oct_draft_int(d, "weight_prepacked", 0) != 0) return false;
    if (w->k < 1 || w->n < 1 || w->k > INT32_MAX || w->n > INT32_MAX) return false;
    if ((w->bits != 2 && w->bits != 4 && w->bits != 8) || w->block < 16 || w->block > 65536 ||
        w->block % 8)
        return false;
    w->blocks = (w->k + w->block - 1) / w->block;
    w->codes = d->in[CODES]->data;
    w->scales = d->in[SCALES]->data;
    w->zeros = zeros ? zeros->data : NULL;
    if (!w->codes || !w->scales || (zeros && !w->zeros)) return false;
    /* first: there are so many then, and products of them do not overflow */
    if (w->scales->type.dtype != OCT_DTYPE_F32 || oct_tensor_len(w->scales) != w->n * w->blocks)
        return false;
    if (!is_bytes(w->codes, w->n * w->blocks * (w->block / 8 * w->bits))) return false;
    if (!w->zeros || is_bytes(w->zeros, w->n * zero_bytes(w))) return true;
    return w->zeros->type.dtype == OCT_DTYPE_F32 && oct_tensor_len(w->zeros) == w->n * w->blocks;
}

/* Code i of packed ones: the low bits of a byte come first. */
static int32_t code_at(const uint8_t *bytes, int64_t i, int64_t bits)
{
    const int64_t at = i * bits;

    return bytes[at / 8] >> (at % 8) & ((1 << bits) - 1);
}

static float zero_at(const nbits *w, int64_t row, int64_t block)
{
    if (!w->zeros) return (float)(1 << (w->bits - 1));
    if (w->zeros->type.dtype == OCT_DTYPE_F32)
        return ((const float *)w->zeros->data)[row * w->blocks + block];
    return (float)code_at((const uint8_t *)w->zeros->data + row * zero_bytes(w), block, w->bits);
}

/* Float weights [k, n], as MatMul has them. */
static void unpack(const nbits *w, float *to)
{
    const int64_t bytes = w->blocks * (w->block / 8 * w->bits);

    for (int64_t row = 0; row < w->n; row++) {
        const uint8_t *codes = (const uint8_t *)w->codes->data + row * bytes;

        for (int64_t i = 0; i < w->k; i++) {
            const int64_t block = i / w->block;
            const float scale = ((const float *)w->scales->data)[row * w->blocks + block];

            to[i * w->n + row] =
                ((float)code_at(codes, i, w->bits) - zero_at(w, row, block)) * scale;
        }
    }
}

oct_status oct_foreign_nbits(oct_draft *d)
{
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[2] = {operand(d, A)}, *y;
    oct_tensor *t = NULL;
    nbits w;

    if (!read_form(d, &w)) return OCT_OK;
    OCT_TRY(oct_tensor_new(d->s->r->ctx, OCT_DTYPE_F32, 2, (int64_t[]){w.k, w.n}, &t));
    unpack(&w, t->data);
    OCT_TRY(oct_draft_const(d, "weight", t, &in[1]));
    if (!operand(d, BIAS)) return oct_foreign_become(d, "MatMul", in, 2);
    y = oct_emit(&b, &oct_op_mat_mul, in[0], in[1], NULL);
    OCT_TRY(b.status);
    return oct_foreign_become(d, "Add", (oct_value *[]){y, d->in[BIAS]}, 2);
}
