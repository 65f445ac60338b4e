/* SPDX-License-Identifier: Apache-2.0 */
/* The map from strings, edit distance, hash. */
#include "tests/alloc.h"

#include "base/map.h"

#define N_KEYS 5000

static void make_keys(char keys[N_KEYS][24])
{
    for (int i = 0; i < N_KEYS; i++)
        snprintf(keys[i], sizeof(keys[i]), "/conv.%d", i);
}

static void finds_what_was_put(void **state)
{
    static char keys[N_KEYS][24];
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_map m;

    (void)state;
    make_keys(keys);
    oct_map_init(&m, ctx);
    assert_null(oct_map_get(&m, "x"));
    assert_null(oct_map_nearest(&m, "x"));
    for (int i = 0; i < N_KEYS; i++)
        assert_ok(ctx, oct_map_put(&m, keys[i], keys[i]));
    for (int i = 0; i < N_KEYS; i++)
        assert_ptr_equal(oct_map_get(&m, keys[i]), keys[i]);
    assert_null(oct_map_get(&m, "/conv.5000"));
    assert_null(oct_map_get(&m, ""));
    assert_ok(ctx, oct_map_put(&m, "/conv.7", keys[8])); /* replaces */
    assert_ptr_equal(oct_map_get(&m, keys[7]), keys[8]);
    assert_int_equal(m.n, N_KEYS);
    oct_map_fini(&m);
    assert_null(oct_map_get(&m, keys[7]));
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void nearest_is_a_likely_slip(void **state)
{
    const char *const names[] = {"images", "output0", "output1", "/model.22/cv2.0/conv"};
    oct_ctx *ctx = oct_ctx_new(NULL);
    char long_name[600];
    oct_map m;

    (void)state;
    oct_map_init(&m, ctx);
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        assert_ok(ctx, oct_map_put(&m, names[i], &m));
    assert_string_equal(oct_map_nearest(&m, "image"), "images");
    assert_string_equal(oct_map_nearest(&m, "output"), "output0"); /* equals: by name */
    assert_string_equal(oct_map_nearest(&m, "model.22/cv2.0/conv"), "/model.22/cv2.0/conv");
    assert_null(oct_map_nearest(&m, "labels"));
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_null(oct_map_nearest(&m, long_name));
    oct_map_fini(&m);
    oct_ctx_free(ctx);
}

/* The plain table, whole. */
static int plain_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    int d[16][16];

    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = (int)(i + j);
            } else {
                const int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

                d[i][j] = OCT_MIN(change, 1 + OCT_MIN(d[i - 1][j], d[i][j - 1]));
            }
        }
    }
    return d[n][m];
}

static void distance_agrees_with_the_whole_table(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 5000; round++) {
        char a[16] = "", b[16] = "";
        int want;

        for (size_t i = 0, n = (seed = seed * 1103515245 + 12345) >> 16 & 7; i < n; i++)
            a[i] = (char)('a' + ((seed = seed * 1103515245 + 12345) >> 16 & 1));
        for (size_t i = 0, n = (seed = seed * 1103515245 + 12345) >> 16 & 7; i < n; i++)
            b[i] = (char)('a' + ((seed = seed * 1103515245 + 12345) >> 16 & 1));
        want = plain_distance(a, b);
        for (int bound = 0; bound < 9; bound++)
            assert_int_equal(oct_edit_distance(a, b, bound), OCT_MIN(want, bound + 1));
    }
    assert_int_equal(oct_edit_distance("kitten", "sitting", 100), 3);
    assert_int_equal(oct_edit_distance("", "", 0), 0);
    assert_int_equal(oct_edit_distance("a", "b", 0), 1);
}

/* The first of equals wins, what is as far as the limit does not count, an exact name ends it. */
static void nearest_of_names_tried_one_by_one(void **state)
{
    oct_nearest n = {"minmx", 4, NULL};

    (void)state;
    assert_false(oct_nearest_try(&n, "percentile"));
    assert_null(n.name);
    assert_true(oct_nearest_try(&n, "minmax"));
    assert_false(oct_nearest_try(&n, "minix"));
    assert_string_equal(n.name, "minmax");
    assert_int_equal(n.distance, 1);
    assert_true(oct_nearest_try(&n, "minmx"));
    assert_int_equal(n.distance, 0);
    assert_false(oct_nearest_try(&n, "minmx"));

    n = (oct_nearest){"abcd", 4, "default"};
    assert_false(oct_nearest_try(&n, "wxyz"));
    assert_string_equal(n.name, "default");
    assert_true(oct_nearest_try(&n, "abcd_output_0")); /* the beginning was typed */
    assert_string_equal(n.name, "abcd_output_0");
}

static void hash_depends_on_every_byte_and_the_seed(void **state)
{
    unsigned char data[40];

    (void)state;
    memset(data, 0, sizeof(data));
    for (size_t len = 0; len <= sizeof(data); len++) {
        const uint64_t h = oct_hash_bytes(data, len, 1);

        assert_true(h == oct_hash_bytes(data, len, 1));
        assert_true(h != oct_hash_bytes(data, len, 2));
        if (len < sizeof(data)) assert_true(h != oct_hash_bytes(data, len + 1, 1));
        for (size_t i = 0; i < len; i++) {
            data[i] = 1;
            assert_true(h != oct_hash_bytes(data, len, 1));
            data[i] = 0;
        }
    }
}

static oct_status use_map(oct_ctx *ctx)
{
    static char keys[N_KEYS][24];
    oct_status st = OCT_OK;
    oct_map m;
    int n = 0;

    make_keys(keys);
    oct_map_init(&m, ctx);
    for (; n < 200 && !st; n += !st)
        st = oct_map_put(&m, keys[n], keys[n]);
    for (int i = 0; i < n; i++) /* a failure loses nothing */
        assert_ptr_equal(oct_map_get(&m, keys[i]), keys[i]);
    oct_map_fini(&m);
    return st;
}

static void map_survives_every_failure(void **state)
{
    (void)state;
    fail_each_allocation(use_map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put),
        cmocka_unit_test(nearest_is_a_likely_slip),
        cmocka_unit_test(distance_agrees_with_the_whole_table),
        cmocka_unit_test(nearest_of_names_tried_one_by_one),
        cmocka_unit_test(hash_depends_on_every_byte_and_the_seed),
        cmocka_unit_test(map_survives_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
