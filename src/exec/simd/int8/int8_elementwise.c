/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise loops on codes, and the function table. Compiled once for each instruction set. */
#include "exec/simd/int8/int8_part.h"
#include "exec/simd/simd_epilogue.h"

/* One parameter for each element of the row, or one for all of them. */
INLINE vf load_list(const float *p, int64_t n, int64_t i, int64_t lanes)
{
    if (n == 1) return splat(*p);
    return lanes == VW ? load(p + i) : load_part(p + i, lanes);
}

INLINE vi load_zero(const oct_int8_codes *q, int64_t i, int64_t lanes)
{
    vi v = {0};

    if (!q->zero) return v;
    if (q->n == 1) return splat_vi(*q->zero);
    memcpy(&v, q->zero + i, (size_t)lanes * sizeof(int32_t));
    return v;
}

INLINE vf codes_at(const uint8_t *p, int64_t lanes)
{
    return lanes == VW ? load_codes(p) : load_codes_part(p, lanes);
}

INLINE void put_codes(uint8_t *p, vi v, int64_t lanes)
{
    if (lanes == VW)
        store_codes(p, v);
    else
        store_codes_part(p, v, lanes);
}

/* Rows with one common parameter are one long row if they are contiguous. */
static oct_int8_strides flatten(const oct_int8_strides *r, bool same)
{
    oct_int8_strides f = *r;

    if (same && r->a_pitch == r->n && r->y_pitch == r->n) {
        f.n *= f.rows;
        f.rows = 1;
    }
    return f;
}

/* A vector of channels in the outer loop, all rows in the inner one. */
#define FOR_COLUMNS(r)                                                                             \
    for (int64_t i = 0, lanes; lanes = OCT_MIN((r)->n - i, VW), i < (r)->n; i += VW)

static void quantize(const oct_int8_codes *q, const oct_int8_strides *rows, const float *x,
                     uint8_t *y)
{
    const oct_int8_strides r = flatten(rows, q->n == 1);
    const float last = (float)oct_int8_last(q);

    for (int64_t k = 0; k < r.rows; k++)
        FOR_COLUMNS(&r)
        {
            const vf scale = load_list(q->scale, q->n, i, lanes);
            const vi zero = load_zero(q, i, lanes);
            const vf low = -to_float(zero), high = last + low;
            const float *at = x + k * r.a_pitch + i;
            const vf v = lanes == VW ? load(at) : load_part(at, lanes);

            put_codes(y + k * r.y_pitch + i, code_of(v / scale, low, high, zero), lanes);
        }
}

static void dequantize(const oct_int8_codes *q, const oct_int8_strides *rows, const uint8_t *x,
                       float *y)
{
    const oct_int8_strides r = flatten(rows, q->n == 1);

    for (int64_t k = 0; k < r.rows; k++)
        FOR_COLUMNS(&r)
        {
            const vf zero = to_float(load_zero(q, i, lanes));

            store_part_or_all(y + k * r.y_pitch + i,
                              (codes_at(x + k * r.a_pitch + i, lanes) - zero) *
                                  load_list(q->scale, q->n, i, lanes),
                              lanes);
        }
}

static void requantize(const oct_int8_codes *from, const oct_int8_codes *to,
                       const oct_int8_strides *rows, const uint8_t *x, uint8_t *y)
{
    const oct_int8_strides r = flatten(rows, from->n == 1 && to->n == 1);
    const float last = (float)oct_int8_last(to);

    for (int64_t k = 0; k < r.rows; k++)
        FOR_COLUMNS(&r)
        {
            const vf v =
                (codes_at(x + k * r.a_pitch + i, lanes) - to_float(load_zero(from, i, lanes))) *
                load_list(from->scale, from->n, i, lanes);
            const vi zero = load_zero(to, i, lanes);
            const vf low = -to_float(zero), high = last + low;

            put_codes(y + k * r.y_pitch + i,
                      code_of(v / load_list(to->scale, to->n, i, lanes), low, high, zero), lanes);
        }
}

/* --- tables --- */

#if VW == 16 && defined(__AVX512VNNI__)
__attribute__((target("avx512vbmi"))) static int64_t
lookup_64(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t n)
{
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
    int64_t i = 0;

    for (; i + 64 <= n; i += 64) {
        const __m512i v = _mm512_loadu_si512(x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, v, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, v, t3);

        _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
    }
    return i;
}
#endif

static void lookup(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    int64_t i = 0;

#if VW == 16 && defined(__AVX512VNNI__)
    if (n >= 64 && __builtin_cpu_supports("avx512vbmi")) i = lookup_64(table, x, y, n);
#endif
    for (; i < n; i++)
        y[i] = table[x[i]];
}

static void lookup_f32(const float table[256], const uint8_t *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

/* --- two operands --- */

INLINE vf combine(const oct_int8_binary *s, int64_t at, vf a, vf b, oct_int8_op op, bool direct)
{
    if (op == OCT_INT8_MUL) {
        const vf x =
            (a - load(s->a_zero + at)) * (b - load(s->b_zero + at)) * load(s->a_scale + at);

        return direct ? x + load(s->shift + at) : x;
    }
    if (direct) {
        const vf y = fused(b - s->offset, load(s->b_scale + at), load(s->shift + at));

        return fused(a - s->offset, load(s->a_scale + at), y);
    }
    return (a - load(s->a_zero + at)) * load(s->a_scale + at) +
           (b - load(s->b_zero + at)) * load(s->b_scale + at);
}

/* One row to codes without an activation. */
INLINE void direct_row(const oct_int8_binary *s, int64_t n, const uint8_t *a, const uint8_t *b,
                       int b_step, uint8_t *y, oct_int8_op op)
{
    const vf b0 = splat((float)*b);

    for (int64_t i = 0, lanes; lanes = OCT_MIN(n - i, VW), i < n; i += VW) {
        const int64_t at = s->each ? i : 0;
        const vf v =
            combine(s, at, codes_at(a + i, lanes), b_step ? codes_at(b + i, lanes) : b0, op, true);

        put_codes(y + i, code_of(v, load(s->low + at), load(s->high + at), load_vi(s->zero + at)),
                  lanes);
    }
}

/* One vector of the general form. */
INLINE void whole_vector(const oct_int8_binary *s, int64_t i, int64_t lanes, vf a, vf b, void *y)
{
    const int64_t at = s->each ? i : 0;
    float x[VW];
    vf v;

    store(x, s->op == OCT_INT8_MUL ? combine(s, at, a, b, OCT_INT8_MUL, false)
                                   : combine(s, at, a, b, OCT_INT8_ADD, false));
    if (s->act.kind) act_rows(&s->act, x, VW, 1, VW);
    v = load(x);
    if (s->out == OCT_INT8_F32)
        store_part_or_all((float *)y + i, v, lanes);
    else
        put_codes((uint8_t *)y + i,
                  code_of(v * load(s->inv + at), load(s->low + at), load(s->high + at),
                          load_vi(s->zero + at)),
                  lanes);
}

static void binary(const oct_int8_binary *s, const oct_int8_strides *r, const uint8_t *a,
                   const uint8_t *b, int b_step, void *y)
{
    for (int64_t k = 0; k < r->rows && r->n > 0; k++, a += r->a_pitch, b += r->b_pitch) {
        uint8_t *to = (uint8_t *)y + k * r->y_pitch * (s->out == OCT_INT8_U8 ? 1 : 4);

        if (s->direct && s->op == OCT_INT8_MUL) {
            direct_row(s, r->n, a, b, b_step, to, OCT_INT8_MUL);
        } else if (s->direct) {
            direct_row(s, r->n, a, b, b_step, to, OCT_INT8_ADD);
        } else {
            const vf b0 = splat((float)*b);

            FOR_COLUMNS(r)
            whole_vector(s, i, lanes, codes_at(a + i, lanes), b_step ? codes_at(b + i, lanes) : b0,
                         to);
        }
    }
}

/* --- pooling --- */

static void max(const uint8_t *x, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] > x[i] ? y[i] : x[i];
}

static void add(const uint8_t *x, int32_t *y, int64_t n, bool first)
{
    if (first)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] += x[i];
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

extern const oct_int8 INT8_JOIN(oct_int8_, OCT_INT8_SET);

const oct_int8 INT8_JOIN(oct_int8_, OCT_INT8_SET) = {
    .name = TEXT(OCT_INT8_SET),
    .width = VW,
    .quad_bytes = QUAD_BYTES,
    .max_vec = VW == 16 || QUAD_BYTES == 4 ? 3 : 2,
    .dense = INT8_SYM(dense),
    .depthwise = INT8_SYM(depthwise),
    .winograd = INT8_SYM(winograd),
    .epilogue = INT8_SYM(epilogue),
    .quantize = quantize,
    .dequantize = dequantize,
    .requantize = requantize,
    .quantize_nchw = INT8_SYM(quantize_nchw),
    .dequantize_nchw = INT8_SYM(dequantize_nchw),
    .lookup = lookup,
    .lookup_f32 = lookup_f32,
    .binary = binary,
    .max = max,
    .add = add,
};
