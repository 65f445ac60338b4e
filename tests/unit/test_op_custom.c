/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that a caller registers: what is refused, and what becomes of their failures. */
#include "op_case.h"
#include "tests/alloc.h"

#include <octet/onnx.h>
#include <octet/op.h>
#include <octet/plan.h>

static oct_status same_shape(void *user, oct_op_call *call)
{
    const int how = user ? *(const int *)user : 0;

    call->out_type[0] = call->in_type[0];
    if (how == 1) call->out_type[0].rank = OCT_MAX_RANK + 1;
    if (how == 2) call->out_type[0].dtype = (oct_dtype)1000;
    if (how == 3) return (oct_status)77; /* no status, no reason */
    return OCT_OK;
}

static oct_status doubled(void *user, oct_op_call *call)
{
    const float factor = oct_node_attr_f32(call->node, "factor", 2);
    const float *x = oct_tensor_data(call->in[0]);

    if (user && *(const int *)user == 4) {
        call->error = "is not in the mood";
        return OCT_ERR_STATE;
    }
    for (int64_t i = 0; i < oct_tensor_len(call->in[0]); i++)
        ((float *)oct_tensor_mutable(call->out[0]))[i] = factor * x[i];
    return OCT_OK;
}

static oct_op_def def_of(const char *domain, int *how)
{
    return (oct_op_def){.struct_size = sizeof(oct_op_def),
                        .domain = domain,
                        .name = "Twice",
                        .min_in = 1,
                        .max_in = 1,
                        .min_out = 1,
                        .max_out = 1,
                        .shape = same_shape,
                        .run = doubled,
                        .user = how};
}

/* A file with x -> my.domain.Twice -> y. */
static void write_file(fixture *f, char path[96], char folder[64])
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){2}), *y;
    const oct_op *row = oct_op_opaque(f->g, "my.domain", "Twice");
    oct_node *n = oct_emit_node(&f->b, row, &x, 1, 1);

    assert_non_null(n);
    y = n->out[0];
    y->type = x->type;
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    make_folder(folder);
    snprintf(path, 96, "%s/net.onnx", folder);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
}

/* Loads, compiles and runs the file; the doubled first number. */
static oct_status run_file(oct_ctx *ctx, const char *path, float *out)
{
    oct_graph *g = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    void *in = NULL;
    const oct_tensor *y = NULL;
    oct_status st = oct_onnx_load(ctx, path, &g);

    if (!st) st = oct_plan_new(g, NULL, &p);
    if (!st) st = oct_run_new(ctx, p, &r);
    if (!st) st = oct_run_input(r, "x", &in, NULL);
    if (!st) ((float *)in)[0] = 21;
    if (!st) st = oct_run_execute(r);
    if (!st) st = oct_run_output(r, 0, &y);
    if (!st) *out = ((const float *)oct_tensor_data(y))[0];
    oct_run_free(r);
    oct_plan_free(p);
    oct_graph_free(g);
    return st;
}

static void a_registered_operator_runs(void **state)
{
    fixture *f = *state;
    char path[96], folder[64];
    float y = 0;

    write_file(f, path, folder);
    for (int any = 0; any < 2; any++) {
        oct_ctx *ctx = oct_ctx_new(NULL);
        const oct_op_def d = def_of(any ? NULL : "my.domain", NULL);

        assert_int_equal(run_file(ctx, path, &y), OCT_ERR_UNSUPPORTED);
        assert_non_null(strstr(oct_ctx_error(ctx), "my.domain"));
        assert_ok(ctx, oct_register_op(ctx, &d));
        assert_ok(ctx, run_file(ctx, path, &y));
        assert_float_equal(y, 42, 0);
        assert_int_equal(oct_register_op(ctx, &d), OCT_ERR_ARG);
        oct_ctx_free(ctx);
    }
    remove_folder(folder);
}

static void failures_have_a_reason(void **state)
{
    static const char *const reasons[] = {NULL, "no valid type", "no valid type", "gave no reason",
                                          "not in the mood"};
    fixture *f = *state;
    char path[96], folder[64];
    float y;

    write_file(f, path, folder);
    for (int how = 1; how < 5; how++) {
        oct_ctx *ctx = oct_ctx_new(NULL);
        const oct_op_def d = def_of("my.domain", &how);

        assert_ok(ctx, oct_register_op(ctx, &d));
        assert_int_not_equal(run_file(ctx, path, &y), OCT_OK);
        if (!strstr(oct_ctx_error(ctx), reasons[how])) fail_msg("%d: %s", how, oct_ctx_error(ctx));
        oct_ctx_free(ctx);
    }
    remove_folder(folder);
}

static void nonsense_is_refused(void **state)
{
    static const char *const stubs[] = {"",
                                        "=float32",
                                        "Op",
                                        "Op=",
                                        "Op=float32:",
                                        "Op=float32:1x",
                                        "Op=what:1",
                                        "Op=float32:-1",
                                        "Op=float32:1,",
                                        "Op=string:1",
                                        "Op=float32:1x1x1x1x1x1x1x1x1"};
    oct_ctx *ctx = oct_ctx_new(NULL); /* holds what is registered until it is freed */
    oct_op_def d = def_of("", NULL);

    d.name = "Conv";
    assert_int_equal(oct_register_op(ctx, &d), OCT_ERR_ARG);
    d = def_of("", NULL);
    d.run = NULL;
    assert_int_equal(oct_register_op(ctx, &d), OCT_ERR_ARG);
    d = def_of("", NULL);
    d.struct_size = 8;
    assert_int_equal(oct_register_op(ctx, &d), OCT_ERR_ARG);
    d = def_of("", NULL);
    d.max_out = 0;
    assert_int_equal(oct_register_op(ctx, &d), OCT_ERR_ARG);
    for (size_t i = 0; i < OCT_COUNT(stubs); i++)
        if (i != 4 && oct_register_stub(ctx, stubs[i]) != OCT_ERR_ARG)
            fail_msg("accepted: '%s'", stubs[i]);
    assert_ok(ctx, oct_register_stub(ctx, "Op=float32:1x100x4,int32:1x1,float32"));
    assert_int_equal(oct_plugin_load(ctx, "no-such-file.so"), OCT_ERR_IO);
    oct_ctx_free(ctx);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_registered_operator_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_have_a_reason, setup, teardown),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
