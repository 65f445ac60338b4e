/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests share: cmocka with the headers it wants, a context and graph, comparisons. */
#ifndef OCT_TESTS_TEST_H
#define OCT_TESTS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <octet/octet.h>

#include "base/ctx.h"
#include "graph/graph.h"

/* A context, an empty graph and a builder on it, fresh for each test. */
typedef struct fixture {
    oct_ctx *ctx;
    oct_graph *g;
    oct_builder b;
} fixture;

/* Fails the test with the context's reason. */
#define assert_ok(ctx, call)                                                                       \
    do {                                                                                           \
        const oct_status test_status_ = (call);                                                    \
        if (test_status_) fail_msg("%s: status %d: %s", #call, test_status_, oct_ctx_error(ctx));  \
    } while (0)

/* The call must fail with this status, and the reason must contain `text`. */
#define assert_fails(ctx, call, status, text)                                                      \
    do {                                                                                           \
        const oct_status test_status_ = (call);                                                    \
        if (test_status_ != (status) || !strstr(oct_ctx_error(ctx), text))                         \
            fail_msg("%s: status %d (want %d), \"%s\" (want \"%s\")", #call, test_status_,         \
                     (int)(status), oct_ctx_error(ctx), text);                                     \
    } while (0)

static inline int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));

    if (!f || !(f->ctx = oct_ctx_new(NULL))) return -1;
    if (oct_graph_new(f->ctx, "test", &f->g)) return -1;
    f->b.g = f->g;
    *state = f;
    return 0;
}

/* Everything a test made must be gone: the context counts. */
static inline int teardown(void **state)
{
    fixture *f = *state;
    size_t left;

    oct_graph_free(f->g);
    left = atomic_load(&f->ctx->mem_used);
    if (left) print_error("%zu bytes of the context were not freed\n", left);
    oct_ctx_free(f->ctx);
    free(f);
    return left ? -1 : 0;
}

/* A tensor of this type whose elements are v[0..], converted. The caller owns it. */
static inline oct_tensor *tensor_of(oct_ctx *ctx, oct_dtype dtype, int32_t rank,
                                    const int64_t *dims, const double *v)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(ctx, oct_tensor_make(ctx, &type, &t));
    oct_store_f64(dtype, t->data, 0, oct_type_len(&type), v);
    return t;
}

/* A constant float32 vector of n elements in the fixture's graph. */
static inline oct_value *input(fixture *f, int64_t n, const float *v)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &n);
    oct_tensor *t = NULL;
    oct_value *x;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    memcpy(t->data, v, (size_t)n * sizeof(*v));
    x = oct_value_const(f->g, NULL, t);
    assert_non_null(x);
    return x;
}

/* A graph input of this type. */
static inline oct_value *graph_input(fixture *f, const char *name, oct_dtype dtype, int32_t rank,
                                     const int64_t *dims)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_value *v = oct_value_new(f->g, name, &type);

    assert_non_null(v);
    assert_ok(f->ctx, oct_graph_add_input(f->g, v));
    return v;
}

/* Elements of `t` (any numeric type) against want[], within tol; NaN equals NaN. */
static inline void assert_all_close(const oct_tensor *t, const float *want, int64_t n, float tol)
{
    assert_int_equal(oct_tensor_len(t), n);
    for (int64_t i = 0; i < n; i++) {
        const double got = oct_tensor_get_f64(t, i);

        if (isnan(want[i]) ? isnan(got) : got == (double)want[i]) continue;
        if (!(fabs(got - (double)want[i]) <= (double)tol))
            fail_msg("element %lld is %.9g, want %.9g", (long long)i, got, (double)want[i]);
    }
}

static inline void assert_dims(const oct_type *t, int32_t rank, const int64_t *dims)
{
    const oct_type want = oct_type_make(t->dtype, rank, dims);
    char got_text[OCT_TYPE_TEXT_SIZE], want_text[OCT_TYPE_TEXT_SIZE];

    if (!oct_type_equal(t, &want))
        fail_msg("%s, want %s", oct_type_text(t, got_text), oct_type_text(&want, want_text));
}

/* Tests of this program that were skipped: cmocka counts them as passed. */
static int n_skipped_tests;

/* Skips the rest of a test, with the reason. */
#define skip_test(why)                                                                             \
    do {                                                                                           \
        print_message("skipped: %s\n", why);                                                       \
        n_skipped_tests++;                                                                         \
        skip();                                                                                    \
    } while (0)

/* What main() returns: 77, which Meson shows as skipped, if a test of the group was skipped. */
#define run_test_group(tests) tests_status(cmocka_run_group_tests(tests, NULL, NULL))

static inline int tests_status(int n_failed)
{
    return n_failed ? n_failed : n_skipped_tests ? 77 : 0;
}

/* The folder ../shared, or NULL with a line that says so: then return 77 from main(). */
static inline const char *shared_dir(const char *test)
{
    const char *dir = getenv("OCTET_SHARED");

    if (!dir || !*dir) {
        printf("%s: skipped: OCTET_SHARED is not set and ../shared is not there\n", test);
        return NULL;
    }
    return dir;
}

/* A loader with these options. */
static inline oct_status open_loader(oct_ctx *ctx, const oct_dataset *d, const oct_preprocess *p,
                                     oct_dtype dtype, int32_t n_threads, int32_t depth,
                                     oct_loader **out)
{
    oct_loader_options o;

    oct_loader_options_init(&o);
    o.preprocess = p;
    o.dtype = (int32_t)dtype;
    o.n_threads = n_threads;
    o.depth = depth;
    return oct_loader_new(ctx, d, &o, out);
}

#endif
