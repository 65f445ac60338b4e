/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of floats of 16 bits and fewer. */
#include "tensor/small_float.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What a format does with the codes that IEEE 754 gives to infinity and NaN. */
typedef enum special {
    SPECIAL_IEEE, /* infinity and NaNs in the highest exponent */
    SPECIAL_FN,   /* no infinity; NaN is all ones */
    SPECIAL_FNUZ, /* no infinity, no -0; NaN is the code that -0 would have */
    SPECIAL_NONE, /* only finite numbers */
} special;

struct oct_small_float {
    int man_bits, bias;
    uint32_t sign; /* the sign's bit */
    uint32_t max;  /* code of the largest finite number */
    special special;
    bool can_saturate;
};

static const oct_small_float f16 = {10, 15, 0x8000, 0x7bff, SPECIAL_IEEE, false};
static const oct_small_float bf16 = {7, 127, 0x8000, 0x7f7f, SPECIAL_IEEE, false};
static const oct_small_float e4m3fn = {3, 7, 0x80, 0x7e, SPECIAL_FN, true};
static const oct_small_float e4m3fnuz = {3, 8, 0x80, 0x7f, SPECIAL_FNUZ, true};
static const oct_small_float e5m2 = {2, 15, 0x80, 0x7b, SPECIAL_IEEE, true};
static const oct_small_float e5m2fnuz = {2, 16, 0x80, 0x7f, SPECIAL_FNUZ, true};
static const oct_small_float e2m1 = {1, 1, 0x8, 0x7, SPECIAL_NONE, true};

const oct_small_float *oct_small_float_get(oct_dtype t)
{
    switch (t) {
    case OCT_DTYPE_F16:
        return &f16;
    case OCT_DTYPE_BF16:
        return &bf16;
    case OCT_DTYPE_F8E4M3FN:
        return &e4m3fn;
    case OCT_DTYPE_F8E4M3FNUZ:
        return &e4m3fnuz;
    case OCT_DTYPE_F8E5M2:
        return &e5m2;
    case OCT_DTYPE_F8E5M2FNUZ:
        return &e5m2fnuz;
    case OCT_DTYPE_F4E2M1:
        return &e2m1;
    default:
        return NULL;
    }
}

static uint32_t bits_of_f32(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof(u));
    return u;
}

static float f32_of_bits(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof(x));
    return x;
}

float oct_small_float_unpack(const oct_small_float *f, uint32_t code)
{
    const uint32_t sign = code & f->sign ? 0x80000000u : 0;
    const uint32_t mag = code & (f->sign - 1);
    const uint32_t man = mag & ((1u << f->man_bits) - 1);
    const int exponent = (int)(mag >> f->man_bits);

    if (f->special == SPECIAL_FNUZ && code == f->sign) return f32_of_bits(0xffc00000u);
    if (f->special == SPECIAL_IEEE && mag == f->max + 1) return f32_of_bits(sign | 0x7f800000u);
    if (mag > f->max) /* NaN; halves keep their payload */
        return f32_of_bits(sign | 0x7fc00000u | (f->can_saturate ? 0 : man << (23 - f->man_bits)));
    if (exponent) {
        return f32_of_bits(sign | (uint32_t)(exponent - f->bias + 127) << 23 |
                           man << (23 - f->man_bits));
    }
    return f32_of_bits(sign | bits_of_f32(ldexpf((float)man, 1 - f->bias - f->man_bits)));
}

/* The code of a NaN, a quiet one; 16 bits keep as much of the payload as fits. */
static uint32_t pack_nan(const oct_small_float *f, uint32_t sign, uint64_t payload)
{
    switch (f->special) {
    case SPECIAL_IEEE:
        return sign | (f->max + 1) | 1u << (f->man_bits - 1) |
               (f->can_saturate ? 0 : (uint32_t)(payload >> (52 - f->man_bits)));
    case SPECIAL_FN:
        return sign | (f->max + 1);
    case SPECIAL_FNUZ:
        return f->sign;
    default:
        return sign ^ f->sign; /* no NaN: the zero of the other sign, as ONNX's reference */
    }
}

static uint32_t pack_overflow(const oct_small_float *f, uint32_t sign, bool saturate)
{
    if (f->special == SPECIAL_NONE || (f->can_saturate && saturate)) return sign | f->max;
    /* IEEE: infinity. FN: NaN, the code behind the largest number just as well. */
    return f->special == SPECIAL_FNUZ ? f->sign : sign | (f->max + 1);
}

uint32_t oct_small_float_pack(const oct_small_float *f, double x, bool saturate)
{
    uint64_t u, man, rest, half, code;
    uint32_t sign;
    int exponent, shift;

    memcpy(&u, &x, sizeof(u));
    sign = u >> 63 ? f->sign : 0;
    man = u & 0xfffffffffffffu;
    exponent = (int)(u >> 52 & 0x7ff);
    if (exponent == 0x7ff) return man ? pack_nan(f, sign, man) : pack_overflow(f, sign, saturate);

    exponent += f->bias - 1023; /* of the target */
    shift = 52 - f->man_bits + (exponent < 1 ? 1 - exponent : 0);
    man |= (uint64_t)1 << 52; /* doubles without it are far below half of any format's least */
    if (shift > 54) {
        code = 0;
    } else {
        half = (uint64_t)1 << (shift - 1);
        rest = man & (2 * half - 1);
        code = man >> shift;
        code += rest > half || (rest == half && (code & 1));
        /* A mantissa rounded up to the next power of two carries into the exponent by itself. */
        if (exponent >= 1) code += (uint64_t)(exponent - 1) << f->man_bits;
    }
    if (code > f->max) return pack_overflow(f, sign, saturate);
    if (!code && f->special == SPECIAL_FNUZ) return 0;
    return sign | (uint32_t)code;
}

float oct_f16_to_f32(uint16_t h)
{
    const uint32_t mag = h & 0x7fffu;
    /* Scaling by a power of two makes subnormals normal and is exact. */
    const uint32_t scaled = bits_of_f32(f32_of_bits(mag << 13) * 0x1p112f);
    const uint32_t huge = 0x7f800000u | mag << 13;
    const uint32_t quiet = mag > 0x7c00u ? 0x400000u : 0;

    return f32_of_bits((uint32_t)(h & 0x8000u) << 16 | (mag < 0x7c00u ? scaled : huge | quiet));
}

uint16_t oct_f32_to_f16(float x)
{
    const uint32_t u = bits_of_f32(x), mag = u & 0x7fffffffu;
    /* Adding 0.5 puts the last bit of a subnormal half at the last bit of the float. */
    const uint32_t small = bits_of_f32(f32_of_bits(mag) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (mag - (112u << 23) + 0xfffu + (mag >> 13 & 1)) >> 13;
    const uint32_t nan = 0x7e00u | mag >> 13;
    uint32_t code = mag < 0x38800000u ? small : normal;

    code = mag >= 0x47800000u ? 0x7c00u : code; /* 65536 and more */
    code = mag > 0x7f800000u ? nan & 0x7fffu : code;
    return (uint16_t)(u >> 16 & 0x8000u) | (uint16_t)code;
}

float oct_bf16_to_f32(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

uint16_t oct_f32_to_bf16(float x)
{
    const uint32_t u = bits_of_f32(x), rounded = u + 0x7fffu + (u >> 16 & 1);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;

    return (uint16_t)((is_nan ? u | 0x400000u : rounded) >> 16);
}

uint8_t oct_f32_to_e8m0(float x, oct_round round, bool saturate)
{
    const uint32_t mag = bits_of_f32(x) & 0x7fffffffu; /* the format has no sign */
    const uint32_t least = 0x400000u;                  /* 2^-127, code 0 */
    uint32_t code, man;

    if (mag > 0x7f800000u) return 0xff;
    if (mag == 0x7f800000u) return saturate ? 0xfe : 0xff;
    if (mag < least) return saturate ? 0 : 0xff;
    if (mag < 0x800000u) { /* between 2^-127 and 2^-126, without an implied bit */
        code = 0;
        man = (mag - least) << 1;
    } else {
        code = mag >> 23;
        man = mag & 0x7fffffu;
    }
    code += (round == OCT_ROUND_UP && man) || (round == OCT_ROUND_NEAREST && man >= 0x400000u);
    return code < 0xff ? (uint8_t)code : saturate ? 0xfe : 0xff;
}

float oct_f8_to_f32(oct_dtype t, uint8_t b)
{
    const oct_small_float *f = oct_small_float_get(t);

    if (f) return oct_small_float_unpack(f, b);
    return f32_of_bits(b == 0xff ? 0x7fc00000u : b ? (uint32_t)b << 23 : 0x400000u);
}

uint8_t oct_f32_to_f8(oct_dtype t, float x, bool saturate)
{
    const oct_small_float *f = oct_small_float_get(t);

    if (f) return (uint8_t)oct_small_float_pack(f, (double)x, saturate);
    return oct_f32_to_e8m0(x, OCT_ROUND_UP, saturate);
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static int64_t f16_to_f32_x8(const uint16_t *src, int64_t n,
                                                                 float *dst)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(src + i));

        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(h));
    }
    return i;
}

__attribute__((target("avx,f16c"))) static int64_t f32_to_f16_x8(const float *src, int64_t n,
                                                                 uint16_t *dst)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT);

        _mm_storeu_si128((__m128i *)(void *)(dst + i), h);
    }
    return i;
}

/* Every CPU with AVX2 has the conversions; compilers do not all know their own name. */
static bool has_f16c(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

void oct_f16_to_f32_n(const uint16_t *src, int64_t n, float *dst)
{
    int64_t i = 0;

#if defined(__x86_64__)
    if (has_f16c()) i = f16_to_f32_x8(src, n, dst);
#endif
    for (; i < n; i++)
        dst[i] = oct_f16_to_f32(src[i]);
}

void oct_f32_to_f16_n(const float *src, int64_t n, uint16_t *dst)
{
    int64_t i = 0;

#if defined(__x86_64__)
    if (has_f16c()) i = f32_to_f16_x8(src, n, dst);
#endif
    for (; i < n; i++)
        dst[i] = oct_f32_to_f16(src[i]);
}

void oct_bf16_to_f32_n(const uint16_t *src, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = oct_bf16_to_f32(src[i]);
}

void oct_f32_to_bf16_n(const float *src, int64_t n, uint16_t *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = oct_f32_to_bf16(src[i]);
}
