/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of real networks: what comes out is the network that went in. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"
#include "train/checkpoint.h"
#include "train/prepare.h"

static char path[64];

static int setup_path(void **state)
{
    snprintf(path, sizeof(path), "/tmp/octet-test-train-models-%d", (int)getpid());
    return setup(state);
}

static int teardown_path(void **state)
{
    unlink(path);
    return teardown(state);
}

/* The constants of g that training changes, by preparing a copy of it: ids stay the same. */
static void find_params(fixture *f, oct_graph *g, oct_params *params, oct_params *states)
{
    oct_train_prepare_options o = {0};
    oct_train_prepared found;
    oct_graph *copy = NULL;

    assert_ok(f->ctx, oct_graph_clone(g, &copy));
    assert_ok(f->ctx, oct_train_prepare(copy, &o, &found));
    for (int32_t i = 0; i < found.n_params; i++) {
        oct_value *v = oct_graph_find_value(g, found.params[i].value->name);

        if (!v) continue; /* made by preparing */
        oct_value_to_param(v, false);
        assert_ok(f->ctx, oct_params_add_value(params, v, found.params[i].kind));
    }
    for (int32_t i = 0; i < found.n_stats; i++) {
        oct_value *v = oct_graph_find_value(g, found.stats[i].value->name);

        if (!v) continue;
        oct_value_to_param(v, true);
        assert_ok(f->ctx, oct_params_add_value(states, v, OCT_PARAM_OTHER));
    }
    oct_graph_free(copy);
    assert_ok(f->ctx, oct_params_finish(params));
    assert_ok(f->ctx, oct_params_finish(states));
}

static int64_t file_size(const char *name)
{
    struct stat sb;

    assert_int_equal(stat(name, &sb), 0);
    return (int64_t)sb.st_size;
}

static void check(fixture *f, const char *file)
{
    oct_graph *g = NULL, *read = NULL;
    oct_checkpoint *c = NULL;
    oct_params params, states;
    char why[256] = "";
    oct_run_state run = {.params = &params, .states = &states, .recipe = ""};

    assert_ok(f->ctx, oct_onnx_load(f->ctx, file, &g));
    oct_params_init(&params, f->ctx);
    oct_params_init(&states, f->ctx);
    find_params(f, g, &params, &states);
    run.g = g;
    run.weights = oct_params_buffer(&params);
    run.stats = oct_params_buffer(&states);
    oct_params_load(&params, run.weights);
    oct_params_load(&states, run.stats);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &run));
    /* Weights are there once. */
    assert_true(file_size(path) < file_size(file) + 400 * (int64_t)(params.n + states.n) + 4096);
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_restore(c, &run));
    assert_ok(f->ctx, oct_checkpoint_graph(c, false, &read));
    oct_checkpoint_close(c);
    oct_graph_params_to_consts(g);
    if (!oct_graph_equal(g, read, why, sizeof(why))) fail_msg("%s: %s", file, why);
    print_message("%s: %d parameters, %d statistics\n", file, params.n, states.n);
    oct_free(f->ctx, run.weights);
    oct_free(f->ctx, run.stats);
    oct_params_fini(&params);
    oct_params_fini(&states);
    oct_graph_free(g);
    oct_graph_free(read);
}

static void the_demo_comes_back(void **state)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    char file[512];

    snprintf(file, sizeof(file), "%s/examples/demo/detector.onnx", root ? root : ".");
    check(*state, file);
}

static void real_networks_come_back(void **state)
{
    static const char *const names[] = {"yolo-nas/yolo_nas_bccd_train.onnx", "models/yolov8n.onnx",
                                        "models/yolox_nano_416.onnx", "models/picodet_s_416.onnx"};
    const char *shared = shared_dir("test_train_models");
    char file[512];

    if (!shared) skip_test("no real networks");
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        snprintf(file, sizeof(file), "%s/data/%s", shared, names[i]);
        check(*state, file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_demo_comes_back, setup_path, teardown_path),
        cmocka_unit_test_setup_teardown(real_networks_come_back, setup_path, teardown_path),
    };

    return run_test_group(tests);
}
