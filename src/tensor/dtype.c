/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types, and conversion between any two of them. */
#include "tensor/dtype.h"

#include <string.h>

#include "tensor/small_float.h"

static const oct_dtype_info table[] = {
    [OCT_DTYPE_NONE] = {"?", 0, OCT_DKIND_OTHER, NULL},
    [OCT_DTYPE_F32] = {"float32", 32, OCT_DKIND_FLOAT, "<f4"},
    [OCT_DTYPE_U8] = {"uint8", 8, OCT_DKIND_UINT, "|u1"},
    [OCT_DTYPE_I8] = {"int8", 8, OCT_DKIND_INT, "|i1"},
    [OCT_DTYPE_U16] = {"uint16", 16, OCT_DKIND_UINT, "<u2"},
    [OCT_DTYPE_I16] = {"int16", 16, OCT_DKIND_INT, "<i2"},
    [OCT_DTYPE_I32] = {"int32", 32, OCT_DKIND_INT, "<i4"},
    [OCT_DTYPE_I64] = {"int64", 64, OCT_DKIND_INT, "<i8"},
    [OCT_DTYPE_STRING] = {"string", 0, OCT_DKIND_OTHER, NULL},
    [OCT_DTYPE_BOOL] = {"bool", 8, OCT_DKIND_BOOL, "|b1"},
    [OCT_DTYPE_F16] = {"float16", 16, OCT_DKIND_FLOAT, "<f2"},
    [OCT_DTYPE_F64] = {"float64", 64, OCT_DKIND_FLOAT, "<f8"},
    [OCT_DTYPE_U32] = {"uint32", 32, OCT_DKIND_UINT, "<u4"},
    [OCT_DTYPE_U64] = {"uint64", 64, OCT_DKIND_UINT, "<u8"},
    [OCT_DTYPE_C64] = {"complex64", 64, OCT_DKIND_OTHER, "<c8"},
    [OCT_DTYPE_C128] = {"complex128", 128, OCT_DKIND_OTHER, "<c16"},
    [OCT_DTYPE_BF16] = {"bfloat16", 16, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_F8E4M3FN] = {"float8e4m3fn", 8, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_F8E4M3FNUZ] = {"float8e4m3fnuz", 8, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_F8E5M2] = {"float8e5m2", 8, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_F8E5M2FNUZ] = {"float8e5m2fnuz", 8, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_U4] = {"uint4", 4, OCT_DKIND_UINT, NULL},
    [OCT_DTYPE_I4] = {"int4", 4, OCT_DKIND_INT, NULL},
    [OCT_DTYPE_F4E2M1] = {"float4e2m1", 4, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_F8E8M0] = {"float8e8m0", 8, OCT_DKIND_FLOAT, NULL},
    [OCT_DTYPE_U2] = {"uint2", 2, OCT_DKIND_UINT, NULL},
    [OCT_DTYPE_I2] = {"int2", 2, OCT_DKIND_INT, NULL},
};

const oct_dtype_info *oct_dtype_get(oct_dtype t)
{
    return &table[(size_t)t < OCT_COUNT(table) ? t : OCT_DTYPE_NONE];
}

const char *oct_dtype_name(oct_dtype t)
{
    return oct_dtype_get(t)->name;
}

oct_dtype oct_dtype_by_name(const char *name)
{
    for (size_t i = 1; i < OCT_COUNT(table); i++) {
        if (!strcmp(table[i].name, name)) return (oct_dtype)i;
    }
    return OCT_DTYPE_NONE;
}

bool oct_dtype_bytes(oct_dtype t, int64_t n, size_t *out)
{
    const size_t bits = oct_dtype_get(t)->bits;
    const size_t per_byte = bits && bits < 8 ? 8 / bits : 1;

    if (!bits || n < 0) return false;
    if (per_byte > 1) {
        *out = (size_t)n / per_byte + ((size_t)n % per_byte != 0);
        return true;
    }
    return oct_mul_size((size_t)n, bits / 8, out);
}

size_t oct_dtype_size(oct_dtype t)
{
    return oct_dtype_get(t)->bits / 8u;
}

/* Element i of an array with `bits` (2 or 4) to the element, the first in the lowest bits. */
static unsigned get_packed(const uint8_t *p, unsigned bits, int64_t i)
{
    const int64_t per_byte = 8 / bits;

    return (unsigned)p[i / per_byte] >> (bits * (unsigned)(i % per_byte)) & ((1u << bits) - 1);
}

static void put_packed(uint8_t *p, unsigned bits, int64_t i, uint64_t v)
{
    const int64_t per_byte = 8 / bits;
    const unsigned shift = bits * (unsigned)(i % per_byte), mask = (1u << bits) - 1;

    p += i / per_byte;
    *p = (uint8_t)((*p & ~(mask << shift)) | ((unsigned)v & mask) << shift);
}

/* A 2- or 4-bit integer. */
static int get_packed_int(oct_dtype t, const void *src, int64_t i)
{
    const oct_dtype_info *info = oct_dtype_get(t);
    const int v = (int)get_packed(src, info->bits, i), sign = 1 << (info->bits - 1);

    return info->kind == OCT_DKIND_INT ? (v ^ sign) - sign : v;
}

static uint32_t get_code(oct_dtype t, const void *src, int64_t i)
{
    switch (oct_dtype_get(t)->bits) {
    case 16:
        return ((const uint16_t *)src)[i];
    case 8:
        return ((const uint8_t *)src)[i];
    default:
        return get_packed(src, oct_dtype_get(t)->bits, i);
    }
}

static void put_code(oct_dtype t, void *dst, int64_t i, uint32_t code)
{
    switch (oct_dtype_get(t)->bits) {
    case 16:
        ((uint16_t *)dst)[i] = (uint16_t)code;
        break;
    case 8:
        ((uint8_t *)dst)[i] = (uint8_t)code;
        break;
    default:
        put_packed(dst, oct_dtype_get(t)->bits, i, code);
    }
}

/* Towards zero; what does not fit becomes the nearest that does, NaN becomes 0. */
static int64_t f64_to_i64(double x)
{
    if (x >= 0x1p63) return INT64_MAX;
    if (x >= -0x1p63) return (int64_t)x;
    return x < 0 ? INT64_MIN : 0;
}

/* Also the upper half of uint64; negative numbers wrap like any integer. */
static uint64_t f64_to_u64(double x)
{
    if (x >= 0x1p64) return UINT64_MAX;
    return x >= 0x1p63 ? (uint64_t)x : (uint64_t)f64_to_i64(x);
}

/* The types that C has itself: type, C type, and how a double becomes one. */
// clang-format off
#define C_TYPES(X)                           \
    X(OCT_DTYPE_F32, float,    f64_to_f32)   \
    X(OCT_DTYPE_F64, double,   f64_to_f64)   \
    X(OCT_DTYPE_U8,  uint8_t,  f64_to_i64)   \
    X(OCT_DTYPE_I8,  int8_t,   f64_to_i64)   \
    X(OCT_DTYPE_U16, uint16_t, f64_to_i64)   \
    X(OCT_DTYPE_I16, int16_t,  f64_to_i64)   \
    X(OCT_DTYPE_U32, uint32_t, f64_to_i64)   \
    X(OCT_DTYPE_I32, int32_t,  f64_to_i64)   \
    X(OCT_DTYPE_U64, uint64_t, f64_to_u64)   \
    X(OCT_DTYPE_I64, int64_t,  f64_to_i64)
// clang-format on

static float f64_to_f32(double x)
{
    return (float)x;
}

static double f64_to_f64(double x)
{
    return x;
}

/* The rest: bool, packed integers, small floats. One element at a time. */
static double load_other(oct_dtype t, const void *src, int64_t i)
{
    const oct_small_float *f = oct_small_float_get(t);

    if (f) return (double)oct_small_float_unpack(f, get_code(t, src, i));
    if (t == OCT_DTYPE_F8E8M0) return (double)oct_f8_to_f32(t, ((const uint8_t *)src)[i]);
    if (t == OCT_DTYPE_BOOL) return ((const uint8_t *)src)[i] != 0;
    return get_packed_int(t, src, i);
}

static void store_other(oct_dtype t, void *dst, int64_t i, double x, bool saturate)
{
    const oct_small_float *f = oct_small_float_get(t);

    if (f)
        put_code(t, dst, i, oct_small_float_pack(f, x, saturate));
    else if (t == OCT_DTYPE_F8E8M0)
        ((uint8_t *)dst)[i] = oct_f32_to_f8(t, (float)x, saturate);
    else if (t == OCT_DTYPE_BOOL)
        ((uint8_t *)dst)[i] = x != 0; /* NaN is true */
    else
        put_packed(dst, oct_dtype_get(t)->bits, i, (uint64_t)f64_to_i64(x));
}

static bool is_number(oct_dtype t)
{
    return oct_dtype_get(t)->kind != OCT_DKIND_OTHER;
}

void oct_load_f32(oct_dtype t, const void *src, int64_t from, int64_t n, float *dst)
{
    switch (t) {
#define LOAD(type, ctype, unused)                                                                  \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            dst[i] = (float)((const ctype *)src)[from + i];                                        \
        break;
        C_TYPES(LOAD)
#undef LOAD
    case OCT_DTYPE_F16:
        oct_f16_to_f32_n((const uint16_t *)src + from, n, dst);
        break;
    case OCT_DTYPE_BF16:
        oct_bf16_to_f32_n((const uint16_t *)src + from, n, dst);
        break;
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++)
            dst[i] = (float)load_other(t, src, from + i);
    }
}

void oct_load_f64(oct_dtype t, const void *src, int64_t from, int64_t n, double *dst)
{
    switch (t) {
#define LOAD(type, ctype, unused)                                                                  \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            dst[i] = (double)((const ctype *)src)[from + i];                                       \
        break;
        C_TYPES(LOAD)
#undef LOAD
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++)
            dst[i] = load_other(t, src, from + i);
    }
}

void oct_load_i64(oct_dtype t, const void *src, int64_t from, int64_t n, int64_t *dst)
{
    switch (t) {
#define LOAD(type, ctype)                                                                          \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            dst[i] = (int64_t)((const ctype *)src)[from + i];                                      \
        break;
        LOAD(OCT_DTYPE_U8, uint8_t)
        LOAD(OCT_DTYPE_I8, int8_t)
        LOAD(OCT_DTYPE_U16, uint16_t)
        LOAD(OCT_DTYPE_I16, int16_t)
        LOAD(OCT_DTYPE_U32, uint32_t)
        LOAD(OCT_DTYPE_I32, int32_t)
        LOAD(OCT_DTYPE_U64, uint64_t)
        LOAD(OCT_DTYPE_I64, int64_t)
#undef LOAD
    case OCT_DTYPE_F32:
        for (int64_t i = 0; i < n; i++)
            dst[i] = f64_to_i64((double)((const float *)src)[from + i]);
        break;
    case OCT_DTYPE_F64:
        for (int64_t i = 0; i < n; i++)
            dst[i] = f64_to_i64(((const double *)src)[from + i]);
        break;
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++)
            dst[i] = f64_to_i64(load_other(t, src, from + i));
    }
}

static void store_f32(oct_dtype t, void *dst, int64_t from, int64_t n, const float *src,
                      bool saturate)
{
    switch (t) {
#define STORE(type, ctype, convert)                                                                \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((ctype *)dst)[from + i] = (ctype)convert((double)src[i]);                             \
        break;
        C_TYPES(STORE)
#undef STORE
    case OCT_DTYPE_F16:
        oct_f32_to_f16_n(src, n, (uint16_t *)dst + from);
        break;
    case OCT_DTYPE_BF16:
        oct_f32_to_bf16_n(src, n, (uint16_t *)dst + from);
        break;
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++)
            store_other(t, dst, from + i, (double)src[i], saturate);
    }
}

static void store_f64(oct_dtype t, void *dst, int64_t from, int64_t n, const double *src,
                      bool saturate)
{
    switch (t) {
#define STORE(type, ctype, convert)                                                                \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((ctype *)dst)[from + i] = (ctype)convert(src[i]);                                     \
        break;
        C_TYPES(STORE)
#undef STORE
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++)
            store_other(t, dst, from + i, src[i], saturate);
    }
}

void oct_store_f32(oct_dtype t, void *dst, int64_t from, int64_t n, const float *src)
{
    store_f32(t, dst, from, n, src, true);
}

void oct_store_f64(oct_dtype t, void *dst, int64_t from, int64_t n, const double *src)
{
    store_f64(t, dst, from, n, src, true);
}

void oct_store_i64(oct_dtype t, void *dst, int64_t from, int64_t n, const int64_t *src)
{
    switch (t) {
#define STORE(type, ctype, unused)                                                                 \
    case type:                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((ctype *)dst)[from + i] = (ctype)src[i];                                              \
        break;
        C_TYPES(STORE)
#undef STORE
    case OCT_DTYPE_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[from + i] = src[i] != 0;
        break;
    default:
        for (int64_t i = 0; is_number(t) && i < n; i++) {
            if (oct_dtype_is_int(t)) /* packed: the low bits */
                put_packed(dst, oct_dtype_get(t)->bits, from + i, (uint64_t)src[i]);
            else
                store_other(t, dst, from + i, (double)src[i], true);
        }
    }
}

#define CHUNK 256

void oct_convert(oct_dtype from_type, const void *src, oct_dtype to_type, void *dst, int64_t n,
                 bool saturate)
{
    const bool to_float = oct_dtype_is_float(to_type), from_float = oct_dtype_is_float(from_type);
    /* f32 holds all of the small floats and of the integers up to 16 bits. */
    const bool through_f64 = oct_dtype_get(from_type)->bits > 16 && from_type != OCT_DTYPE_F32;
    union {
        float f32[CHUNK];
        double f64[CHUNK];
        int64_t i64[CHUNK];
    } chunk;
    size_t size = 0;

    if (from_type == to_type) {
        if (oct_dtype_bytes(to_type, n, &size) && size) memcpy(dst, src, size);
        return;
    }
    if (!is_number(from_type) || !is_number(to_type)) return;
    if (to_type == OCT_DTYPE_F32) {
        oct_load_f32(from_type, src, 0, n, dst);
        return;
    }
    for (int64_t i = 0, len; i < n; i += len) {
        len = OCT_MIN(n - i, CHUNK);
        if (!to_float && !from_float) {
            oct_load_i64(from_type, src, i, len, chunk.i64);
            oct_store_i64(to_type, dst, i, len, chunk.i64);
        } else if (through_f64) {
            oct_load_f64(from_type, src, i, len, chunk.f64);
            store_f64(to_type, dst, i, len, chunk.f64, saturate);
        } else {
            oct_load_f32(from_type, src, i, len, chunk.f32);
            store_f32(to_type, dst, i, len, chunk.f32, saturate);
        }
    }
}
