/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in half precision: what computes in float16, what stays, and that results stay close. */
#include "tests/unit/pass_net.h"

#include <octet/quant.h>

/* x -> Conv -> Relu -> (times a factor) -> Conv -> Sigmoid = y. */
static void make(fixture *f, float factor)
{
    oct_value *x = image(f, 3, 8), *y;

    oct_rng_init(&rng, 5);
    y = UN(relu, conv(f, x, (conv_spec){4, 3, 1, 1, true}));
    y->producer->name = "act";
    if (factor != 1) {
        y = BIN(mul, y, num(f, factor));
        y->producer->name = "gain";
        y = BIN(mul, y, num(f, 1 / factor));
        y->producer->name = "loss";
    }
    y = conv(f, y, (conv_spec){2, 1, 1, 1, true});
    y->producer->name = "last";
    y = UN(sigmoid, y);
    y->name = "y";
    output(f, y);
}

static oct_tensor *picture(fixture *f, oct_dtype dtype)
{
    const oct_type type = oct_type_make(dtype, 4, (int64_t[]){1, 3, 8, 8});
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < 192; i++)
        oct_store_f64(dtype, t->data, i, 1, &(double){(double)(i % 16) / 16});
    return t;
}

static oct_tensor *result(fixture *f, const oct_graph *g, oct_dtype in)
{
    oct_tensor *x = picture(f, in), *y = NULL;

    assert_ok(f->ctx, oct_graph_eval(g, &x, &y, NULL));
    oct_tensor_unref(x);
    return y;
}

static oct_dtype type_of(const oct_graph *g, const char *node)
{
    const oct_node *n = oct_graph_find_node(g, node);

    assert_non_null(n);
    return n->out[0]->type.dtype;
}

static int count_consts(const oct_graph *g, oct_dtype dtype)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_value_ids; i++)
        n += g->values[i] && g->values[i]->data && g->values[i]->type.dtype == dtype;
    return n;
}

typedef struct told {
    int n;
    char node[64], why[256];
} told;

static void on_kept(void *user, const char *node, const char *why)
{
    told *t = user;

    t->n++;
    (void)snprintf(t->node, sizeof(t->node), "%s", node);
    (void)snprintf(t->why, sizeof(t->why), "%s", why);
}

static void computes_in_float16(void **state)
{
    fixture *f = *state;
    oct_tensor *want, *got;

    make(f, 1);
    want = result(f, f->g, OCT_DTYPE_F32);
    for (int io = 0; io < 2; io++) {
        oct_half_options o;
        oct_graph *g = NULL;

        oct_half_options_init(&o);
        o.half_io = io;
        assert_ok(f->ctx, oct_graph_half(f->g, NULL, &o, &g));
        assert_int_equal(type_of(g, "act"), OCT_DTYPE_F16);
        assert_int_equal(type_of(g, "last"), OCT_DTYPE_F16);
        assert_int_equal(g->inputs[0]->type.dtype, io ? OCT_DTYPE_F16 : OCT_DTYPE_F32);
        assert_int_equal(g->outputs[0]->type.dtype, io ? OCT_DTYPE_F16 : OCT_DTYPE_F32);
        assert_string_equal(g->outputs[0]->name, "y");
        assert_int_equal(count_consts(g, OCT_DTYPE_F32), 0);
        assert_int_equal(count_consts(g, OCT_DTYPE_F16), 4);
        got = result(f, g, io ? OCT_DTYPE_F16 : OCT_DTYPE_F32);
        assert_all_close(got, want->data, oct_tensor_len(want), 2e-3f);
        oct_tensor_unref(got);
        oct_graph_free(g);
    }
    oct_tensor_unref(want);
}

static void keeps_bfloat16_weights(void **state)
{
    fixture *f = *state;
    oct_tensor *want, *got;
    oct_half_options o;
    oct_graph *g = NULL;

    make(f, 1);
    want = result(f, f->g, OCT_DTYPE_F32);
    oct_half_options_init(&o);
    o.bf16 = 1;
    assert_ok(f->ctx, oct_graph_half(f->g, NULL, &o, &g));
    assert_int_equal(count_consts(g, OCT_DTYPE_BF16), 2);
    assert_int_equal(type_of(g, "act"), OCT_DTYPE_F32);
    got = result(f, g, OCT_DTYPE_F32);
    assert_all_close(got, want->data, oct_tensor_len(want), 2e-2f);
    oct_tensor_unref(got);
    oct_tensor_unref(want);
    oct_graph_free(g);
}

/* A constant that float16 does not hold: its node stays float32 and is named. */
static void names_weights_that_overflow(void **state)
{
    fixture *f = *state;
    told t = {0};
    oct_half_options o;
    oct_graph *g = NULL;

    make(f, 100000);
    oct_half_options_init(&o);
    o.kept = on_kept;
    o.user = &t;
    assert_ok(f->ctx, oct_graph_half(f->g, NULL, &o, &g));
    assert_int_equal(t.n, 1);
    assert_string_equal(t.node, "gain");
    assert_non_null(strstr(t.why, "reaches 100000"));
    assert_int_equal(type_of(g, "act"), OCT_DTYPE_F16);
    assert_int_equal(type_of(g, "gain"), OCT_DTYPE_F32);
    oct_graph_free(g);
}

static oct_status next(void *user, int64_t index, oct_tensor **tensors)
{
    fixture *f = user;

    if (index > 1) return OCT_ERR_STATE;
    tensors[0] = picture(f, OCT_DTYPE_F32);
    return OCT_OK;
}

/* Activations of 60000 times about 1 do not fit either: only running shows it. */
static void measures_activations(void **state)
{
    static const char *const inputs[] = {"x"};
    fixture *f = *state;
    oct_source_options so;
    oct_dataset *d = NULL;
    oct_tensor *want, *got;
    told t = {0};
    oct_half_options o;
    oct_graph *g = NULL;

    make(f, 60000);
    want = result(f, f->g, OCT_DTYPE_F32);
    oct_source_options_init(&so);
    so.next = next;
    so.user = f;
    so.inputs = inputs;
    so.n_inputs = 1;
    assert_ok(f->ctx, oct_dataset_from_source(f->ctx, &so, &d));
    oct_half_options_init(&o);
    o.kept = on_kept;
    o.user = &t;
    assert_ok(f->ctx, oct_graph_half(f->g, d, &o, &g));
    assert_int_equal(t.n, 2); /* its producer and its consumer */
    assert_string_equal(t.node, "loss");
    assert_non_null(strstr(t.why, "float16 ends at 65504"));
    got = result(f, g, OCT_DTYPE_F32);
    assert_all_close(got, want->data, oct_tensor_len(want), 2e-3f);
    oct_tensor_unref(got);
    oct_tensor_unref(want);
    oct_graph_free(g);
    oct_dataset_close(d);
}

/* For plans float16 becomes float32 inside; the borders keep their type, and nothing is rounded on
 * the way. */
static void is_widened_for_plans(void **state)
{
    fixture *f = *state;
    oct_half_options o;
    oct_graph *g = NULL;
    oct_tensor *want, *got;
    int n_changed = 0;

    make(f, 1);
    oct_half_options_init(&o);
    o.half_io = 1;
    assert_ok(f->ctx, oct_graph_half(f->g, NULL, &o, &g));
    want = result(f, g, OCT_DTYPE_F16);
    assert_ok(f->ctx, oct_pass_run(&oct_pass_widen_half, g, &n_changed));
    assert_int_equal(n_changed, 1);
    assert_int_equal(type_of(g, "act"), OCT_DTYPE_F32);
    assert_int_equal(type_of(g, "last"), OCT_DTYPE_F32);
    assert_int_equal(count_consts(g, OCT_DTYPE_F16), 0);
    assert_int_equal(g->inputs[0]->type.dtype, OCT_DTYPE_F16);
    assert_int_equal(g->outputs[0]->type.dtype, OCT_DTYPE_F16);
    assert_string_equal(g->outputs[0]->name, "y");
    got = result(f, g, OCT_DTYPE_F16);
    for (int64_t i = 0, n = oct_tensor_len(want); i < n; i++)
        if (fabs(oct_tensor_get_f64(got, i) - oct_tensor_get_f64(want, i)) > 2e-3)
            fail_msg("element %d differs", (int)i);
    assert_ok(f->ctx, oct_pass_run(&oct_pass_widen_half, g, &n_changed));
    assert_int_equal(n_changed, 1);
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_graph_free(g);
}

/* A type that an operator names itself cannot be changed by its operands. */
static void is_not_widened_where_types_are_named(void **state)
{
    fixture *f = *state;
    oct_half_options o;
    oct_graph *g = NULL;
    oct_node *n;
    int n_changed = 0;

    make(f, 1);
    oct_half_options_init(&o);
    assert_ok(f->ctx, oct_graph_half(f->g, NULL, &o, &g));
    oct_builder b = {.g = g};
    n = oct_emit_node(&b, &oct_op_random_normal, NULL, 0, 1);
    oct_emit_int(&b, n, "dtype", OCT_DTYPE_F16);
    oct_emit_ints(&b, n, "shape", (int64_t[]){2, 2}, 2);
    assert_non_null(oct_emitted(&b, n));
    assert_ok(f->ctx, oct_pass_run(&oct_pass_widen_half, g, &n_changed));
    assert_int_equal(n_changed, 0);
    assert_int_equal(type_of(g, "act"), OCT_DTYPE_F16);
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(computes_in_float16, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_bfloat16_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(names_weights_that_overflow, setup, teardown),
        cmocka_unit_test_setup_teardown(measures_activations, setup, teardown),
        cmocka_unit_test_setup_teardown(is_widened_for_plans, setup, teardown),
        cmocka_unit_test_setup_teardown(is_not_widened_where_types_are_named, setup, teardown),
    };

    return run_test_group(tests);
}
