/* SPDX-License-Identifier: Apache-2.0 */
/* Random operands for tests of the integer loops, and how near results must be. */
#ifndef OCT_TESTS_INT8_DATA_H
#define OCT_TESTS_INT8_DATA_H

#include "tests/test.h"

#include "base/rng.h"
#include "exec/simd/int8/simd_int8.h"

/* The set that others are compared with. */
static inline const oct_int8 *plain_set(void)
{
    int i = 0;

    while (oct_int8_at(i + 1))
        i++;
    return oct_int8_at(i);
}

/* Memory is as large as it must be and no larger: tools that watch memory see one byte too many. */
static inline void *get(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);

    assert_non_null(p);
    memset(p, 0, (size + 63) / 64 * 64);
    return p;
}

static inline uint8_t *random_codes(oct_rng *rng, int64_t n)
{
    uint8_t *p = malloc((size_t)OCT_MAX(n, 1));

    assert_non_null(p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)oct_rng_below(rng, 256);
    return p;
}

static inline float *random_floats(oct_rng *rng, int64_t n, float low, float high)
{
    float *p = malloc((size_t)OCT_MAX(n, 1) * sizeof(*p));

    assert_non_null(p);
    for (int64_t i = 0; i < n; i++)
        p[i] = low + (high - low) * (float)oct_rng_f64(rng);
    return p;
}

static inline int32_t *random_zeros(oct_rng *rng, int64_t n)
{
    int32_t *p = malloc((size_t)n * sizeof(*p));

    assert_non_null(p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (int32_t)oct_rng_below(rng, 256);
    return p;
}

static const oct_act acts[] = {
    {OCT_ACT_NONE, 0, 0},       {OCT_ACT_RELU, 0, 0},    {OCT_ACT_CLIP, -0.3f, 2.5f},
    {OCT_ACT_LEAKY, 0.1f, 0},   {OCT_ACT_SWISH, 1, 0},   {OCT_ACT_SWISH, 1.702f, 0},
    {OCT_ACT_HARD_SWISH, 0, 0}, {OCT_ACT_SIGMOID, 0, 0}, {OCT_ACT_HARD_SIGMOID, 0.2f, 0.5f},
    {OCT_ACT_TANH, 0, 0},       {OCT_ACT_GELU, 0, 0},    {OCT_ACT_GELU_TANH, 0, 0},
    {OCT_ACT_ELU, 1, 0},        {OCT_ACT_MISH, 0, 0},
};

/* How many codes may differ by one step: none, or 1 in 1,000 where a curve was approximated. */
static inline void compare_codes(const char *set, const char *what, const uint8_t *got,
                                 const uint8_t *want, int64_t n, bool exact)
{
    int64_t differ = 0;

    for (int64_t i = 0; i < n; i++) {
        if (abs(got[i] - want[i]) > (exact ? 0 : 1))
            fail_msg("%s, %s: element %d is %d, not %d", set, what, (int)i, got[i], want[i]);
        differ += got[i] != want[i];
    }
    if (differ * 1000 > n + 999)
        fail_msg("%s, %s: %d of %d differ", set, what, (int)differ, (int)n);
}

static inline void compare_floats(const char *set, const char *what, const float *got,
                                  const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &want[i], sizeof(bits));
        if (bits == 0xeeeeeeee) {
            assert_memory_equal(&got[i], &bits, sizeof(bits));
        } else if (!(fabsf(got[i] - want[i]) <= 1e-5f * fmaxf(1, fabsf(want[i])))) {
            fail_msg("%s, %s: element %d is %g, not %g", set, what, (int)i, (double)got[i],
                     (double)want[i]);
        }
    }
}

#endif
