/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that plans once computed wrongly, or crashed on: each against plain kernels. */
#include "tests/unit/exec_net.h"

static const char *folder;

static const char *const names[] = {
    "heap_overflow_default_dq_q_int8",
    "heap_overflow_default_dq_q_uint16",
    "heap_overflow_simulate_q701",
    "heap_overflow_simulate_qdqq",
    "min_heap_dq_q",
    "min_int8_rank",
    "min_int8_softmax",
    "min_mixed_16_8",
    "min_no_output",
    "min_segv_dq_q_dq",
    "segv_const_dq_q_out",
    "segv_weights_dq_q_dq",
    "wrong_codes_output_10248",
    "wrong_codes_output_14543",
    "wrong_codes_output_14656",
    "wrong_codes_output_2851",
    "wrong_codes_output_6540",
    "wrong_codes_output_9349",
    "wrong_int8_binary_rank3_12545",
    "wrong_int8_binary_rank3_13092",
    "wrong_int8_binary_rank3_15661",
    "wrong_mixed_16_to_8_bits",
    "wrong_requantize_dropped_int8_output",
};

/* Codes of any type, floats around zero; the same for every plan. */
static void fill_any(fixture *f, oct_run *r, const oct_graph *g)
{
    oct_rng rng;

    oct_rng_init(&rng, 9);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_type *t = &g->inputs[i]->type;
        void *data = NULL;

        assert_ok(f->ctx, oct_run_input(r, g->inputs[i]->name, &data, NULL));
        for (int64_t k = 0; k < oct_type_len(t); k++) {
            const double x = oct_rng_f64(&rng) * (t->dtype == OCT_DTYPE_F32 ? 4 : 120) - 2;

            oct_store_f64(t->dtype, data, k, 1, &x);
        }
    }
}

static void run_as(fixture *f, const oct_graph *g, const oct_plan_options *o, oct_tensor **outs)
{
    oct_plan *p = NULL;
    oct_run *r = NULL;

    assert_ok(f->ctx, oct_plan_new(g, o, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    fill_any(f, r, g);
    assert_ok(f->ctx, oct_run_execute(r));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const oct_tensor *t = NULL;

        assert_ok(f->ctx, oct_run_output(r, i, &t));
        assert_ok(f->ctx, oct_tensor_copy(f->ctx, t, &outs[i]));
    }
    oct_run_free(r);
    oct_plan_free(p);
}

/* A step at a tie may go either way; what is wrong is wrong by more, or in many places. */
static void compare(const char *name, const char *how, const oct_tensor *a, const oct_tensor *b)
{
    const int64_t n = oct_tensor_len(b);
    double top = 0;
    int64_t far = 0;

    for (int64_t i = 0; i < n; i++)
        top = fmax(top, fabs(oct_tensor_get_f64(b, i)));
    for (int64_t i = 0; i < n; i++)
        far += !(fabs(oct_tensor_get_f64(a, i) - oct_tensor_get_f64(b, i)) <= 0.02 * top);
    if (far * 20 > n)
        fail_msg("%s %s: %lld of %lld elements differ", name, how, (long long)far, (long long)n);
}

static void check_file(fixture *f, const char *name)
{
    enum { MAX_OUT = 16 };
    oct_tensor *want[MAX_OUT] = {NULL}, *got[MAX_OUT] = {NULL};
    oct_graph *g = NULL;
    oct_plan_options o;
    char path[1024];

    snprintf(path, sizeof(path), "%s/data/faults/%s.onnx", folder, name);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    assert_true(g->n_outputs <= MAX_OUT);
    oct_plan_options_init(&o);
    o.plain = 1;
    run_as(f, g, &o, want);
    o.plain = 0;
    for (int i = 0; i < 3; i++) {
        o.simulate = i == 1;
        o.keep_all = i == 2;
        run_as(f, g, &o, got);
        for (int32_t k = 0; k < g->n_outputs; k++) {
            compare(name, i == 1 ? "simulated" : "in integers", got[k], want[k]);
            oct_tensor_unref(got[k]);
        }
    }
    for (int32_t k = 0; k < g->n_outputs; k++)
        oct_tensor_unref(want[k]);
    oct_graph_free(g);
}

static void networks_that_went_wrong(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        check_file(*state, names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(networks_that_went_wrong, setup, teardown),
    };

    if (!(folder = shared_dir("test_exec_found"))) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
