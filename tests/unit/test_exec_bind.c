/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the caller's for inputs and outputs, and runs that another thread cancels. */
#include "tests/unit/quant_net.h"

#include <pthread.h>

#include "exec/run.h"

enum { SIDE = 9, CHANNELS = 3, LEN = CHANNELS * SIDE * SIDE, SIZE = LEN * (int)sizeof(float) };

/* Input "x" to output 0 through a convolution; output 1 is a view of the input. */
static oct_plan *make_plan(fixture *f)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, CHANNELS, SIDE, SIDE}), *y;
    oct_plan *p = NULL;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    y = conv(f, &rng, x, &(conv_case){CHANNELS, 5, 3, 1, 1, 1, 1});
    output(f, emit(f, &oct_op_relu, y, NULL));
    output(f, emit(f, &oct_op_reshape, x, oct_ints(&f->b, (int64_t[]){1, LEN}, 2)));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    return p;
}

static void fill(float *x, int64_t n, int seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 7 + seed * 13) % 31) / 16.0f - 1;
}

/* What both outputs are for this input, by copying it in. */
static void expect(fixture *f, const oct_plan *p, const float *x, oct_tensor *out[2])
{
    oct_run *r = NULL;
    void *to = NULL;

    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_run_input(r, "x", &to, NULL));
    memcpy(to, x, SIZE);
    assert_ok(f->ctx, oct_run_execute(r));
    for (int i = 0; i < 2; i++) {
        const oct_tensor *t = NULL;

        assert_ok(f->ctx, oct_run_output(r, i, &t));
        assert_ok(f->ctx, oct_tensor_make(f->ctx, &t->type, &out[i]));
        memcpy(out[i]->data, t->data, t->size);
    }
    oct_run_free(r);
}

static void assert_gives(fixture *f, const oct_plan *p, oct_run *r, const float *x)
{
    oct_tensor *want[2] = {NULL, NULL};

    expect(f, p, x, want);
    assert_ok(f->ctx, oct_run_execute(r));
    for (int i = 0; i < 2; i++) {
        const oct_tensor *got = NULL;

        assert_ok(f->ctx, oct_run_output(r, i, &got));
        assert_memory_equal(got->data, want[i]->data, want[i]->size);
        oct_tensor_unref(want[i]);
    }
}

/* Aligned memory is read in place, other memory is copied: the caller sees no difference. */
static void reads_bound_inputs(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    float *a = aligned_alloc(64, (SIZE + 127) / 64 * 64),
          *b = aligned_alloc(64, (SIZE + 127) / 64 * 64);
    oct_run *r = NULL;

    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    fill(a, LEN, 1);
    fill(b + 1, LEN, 2);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", a, SIZE));
    assert_ptr_equal(oct_run_address(r, oct_run_plain_slot(p, p->g->inputs[0])), a);
    assert_gives(f, p, r, a);
    fill(a, LEN, 3); /* between runs it may change */
    assert_gives(f, p, r, a);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", b + 1, SIZE));
    assert_gives(f, p, r, b + 1);
    fill(b + 1, LEN, 4);
    assert_gives(f, p, r, b + 1);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", a, SIZE));
    assert_gives(f, p, r, a);
    oct_run_free(r);
    oct_plan_free(p);
    free(a);
    free(b);
}

/* The run's own memory comes back with what it had; nobody writes into the caller's. */
static void unbinds_inputs(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    float *a = aligned_alloc(64, (SIZE + 63) / 64 * 64), x[LEN], was[LEN];
    oct_run *r = NULL;
    void *to = NULL;
    size_t size = 0;

    fill(a, LEN, 1);
    fill(was, LEN, 1);
    fill(x, LEN, 2);
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_run_input(r, "x", &to, &size));
    assert_int_equal(size, SIZE);
    memcpy(to, x, SIZE);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", a, SIZE));
    assert_gives(f, p, r, was);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", NULL, 0));
    assert_gives(f, p, r, x);
    assert_ok(f->ctx, oct_run_bind_input(r, "x", a, SIZE));
    assert_ok(f->ctx, oct_run_input(r, "x", &to, NULL));
    assert_ptr_not_equal(to, a);
    fill(to, LEN, 5);
    fill(x, LEN, 5);
    assert_gives(f, p, r, x);
    assert_memory_equal(a, was, SIZE);
    oct_run_free(r);
    oct_plan_free(p);
    free(a);
}

static void writes_bound_outputs(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    oct_io_info info = {.struct_size = sizeof(info)};
    oct_tensor *want[2] = {NULL, NULL};
    float x[LEN], *y;
    oct_run *r = NULL;

    fill(x, LEN, 1);
    expect(f, p, x, want);
    assert_true(oct_plan_output_info(p, 0, &info));
    assert_int_equal(info.size, want[0]->size);
    assert_int_equal(info.rank, 4);
    assert_int_equal(info.dims[1], 5);
    assert_false(oct_plan_output_info(p, 2, &info));
    y = calloc(1, info.size);
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_run_bind_input(r, "x", x, SIZE));
    assert_ok(f->ctx, oct_run_bind_output(r, 0, y, info.size));
    assert_ok(f->ctx, oct_run_execute(r));
    assert_memory_equal(y, want[0]->data, want[0]->size);
    memset(y, 0, info.size);
    assert_ok(f->ctx, oct_run_bind_output(r, 0, NULL, 0));
    assert_ok(f->ctx, oct_run_execute(r));
    assert_true(y[0] == 0 && y[info.size / sizeof(*y) - 1] == 0);
    oct_run_free(r);
    for (int i = 0; i < 2; i++)
        oct_tensor_unref(want[i]);
    oct_plan_free(p);
    free(y);
}

/* How many there are is known after the run: the memory is room. */
static void checks_room_of_outputs(void **state)
{
    fixture *f = *state;
    const float some[4] = {0, 1, 2, 0};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){4});
    oct_io_info info = {.struct_size = sizeof(info)};
    oct_plan *p = NULL;
    oct_run *r = NULL;
    int64_t at[4] = {9, 9, 9, 9};

    output(f, emit(f, &oct_op_non_zero, x, NULL));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_true(oct_plan_output_info(p, 0, &info));
    assert_int_equal(info.rank, -1);
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_run_bind_input(r, "x", some, sizeof(some)));
    assert_ok(f->ctx, oct_run_bind_output(r, 0, at, sizeof(at)));
    assert_ok(f->ctx, oct_run_execute(r));
    assert_memory_equal(at, ((int64_t[]){1, 2, 9, 9}), sizeof(at));
    assert_ok(f->ctx, oct_run_bind_output(r, 0, at, sizeof(*at)));
    assert_fails(f->ctx, oct_run_execute(r), OCT_ERR_SHAPE, "has 16 bytes, more than the 8");
    oct_run_free(r);
    oct_plan_free(p);
}

static void refuses_what_does_not_fit(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    oct_run *r = NULL;
    float x[LEN] = {0};

    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_fails(f->ctx, oct_run_bind_input(r, "x", x, SIZE - 4), OCT_ERR_SHAPE, "takes 972 bytes");
    assert_fails(f->ctx, oct_run_bind_input(r, "z", x, SIZE), OCT_ERR_ARG, "no input 'z'");
    assert_fails(f->ctx, oct_run_bind_output(r, 0, x, 8), OCT_ERR_SHAPE, "has 8");
    assert_fails(f->ctx, oct_run_bind_output(r, 2, x, 8), OCT_ERR_ARG, "no output 2");
    assert_ok(f->ctx, oct_run_execute(r));
    oct_run_free(r);
    oct_plan_free(p);
}

/* --- cancelling --- */

static void cancel_after_first(void *user, int32_t step, int64_t start_ns, int64_t end_ns)
{
    (void)start_ns;
    (void)end_ns;
    assert_int_equal(step, 0); /* no other is run */
    oct_run_cancel(user, 1);
}

static void cancels_between_steps(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    oct_run *r = NULL;

    assert_true(oct_plan_n_steps(p) > 1);
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    oct_run_set_step_hook(r, cancel_after_first, r);
    assert_fails(f->ctx, oct_run_execute(r), OCT_ERR_CANCELLED, "cancelled");
    oct_run_set_step_hook(r, NULL, NULL);
    assert_fails(f->ctx, oct_run_execute(r), OCT_ERR_CANCELLED, "cancelled"); /* it stays so */
    oct_run_cancel(r, 0);
    assert_ok(f->ctx, oct_run_execute(r));
    oct_run_free(r);
    oct_plan_free(p);
}

static void *run_until_cancelled(void *arg)
{
    while (!oct_run_execute(arg))
        continue;
    return NULL;
}

/* The thread runs the network over and over: only the other thread's word ends it. */
static void cancels_from_another_thread(void **state)
{
    fixture *f = *state;
    oct_plan *p = make_plan(f);
    oct_run *r = NULL;
    pthread_t thread;

    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_int_equal(pthread_create(&thread, NULL, run_until_cancelled, r), 0);
    oct_run_cancel(r, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    oct_run_cancel(r, 0);
    assert_ok(f->ctx, oct_run_execute(r));
    oct_run_free(r);
    oct_plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_bound_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(unbinds_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_bound_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(checks_room_of_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_does_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(cancels_between_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(cancels_from_another_thread, setup, teardown),
    };

    return tests_status(cmocka_run_group_tests(tests, NULL, NULL));
}
