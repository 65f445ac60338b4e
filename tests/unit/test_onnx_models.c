/* SPDX-License-Identifier: Apache-2.0 */
/* Every model at hand is read, written, and read again as it was; large ones stay on the disk. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/str.h"
#include "onnx/write.h"
#include "tests/unit/onnx_make.h"

static oct_status to_str(void *user, const void *p, size_t size)
{
    oct_str *s = user;

    oct_str_put(s, p, size);
    return s->failed ? OCT_ERR_MEMORY : OCT_OK;
}

/* A model may be refused, with a reason; once it is read, the way back must hold. */
static void round_trip(fixture *f, const char *path, int *n_read, int *n_refused)
{
    oct_graph *g = NULL, *back = NULL;
    char why[256] = "";
    oct_str bytes;

    if (oct_onnx_load(f->ctx, path, &g)) {
        assert_true(f->ctx->error[0]);
        print_message("refused: %s\n", oct_ctx_error(f->ctx));
        ++*n_refused;
        return;
    }
    oct_str_init(&bytes, f->ctx);
    assert_ok(f->ctx, oct_onnx_encode(g, NULL, to_str, &bytes));
    assert_ok(f->ctx, oct_onnx_load_memory(f->ctx, bytes.s, bytes.len, &back));
    if (!oct_graph_equal(g, back, why, sizeof(why))) fail_msg("%s: %s", path, why);
    oct_graph_free(back);
    oct_graph_free(g);
    oct_str_fini(&bytes);
    ++*n_read;
}

static void walk(fixture *f, const char *folder, int *n_read, int *n_refused)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        char path[4096];
        struct stat info;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (name[0] != '.' && stat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode))
                walk(f, path, n_read, n_refused);
            else if (dot && strcmp(dot, ".onnx") == 0)
                round_trip(f, path, n_read, n_refused);
        }
        free(entries[i]);
    }
    free(entries);
}

static void all_models_come_back(void **state)
{
    static const struct {
        const char *folder;
        int least;
    } rows[] = {{"models", 11}, {"yolo-nas", 2}, {"pt2", 3}, {"conformance/onnx", 1600}};
    const char *shared = getenv("OCTET_SHARED");

    if (!shared) skip_test("../shared is not there");
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        int n_read = 0, n_refused = 0;
        char path[4096];

        snprintf(path, sizeof(path), "%s/data/%s", shared, rows[i].folder);
        walk(*state, path, &n_read, &n_refused);
        print_message("%s: %d read, %d refused\n", rows[i].folder, n_read, n_refused);
        if (n_read < rows[i].least) fail_msg("%s: only %d could be read", path, n_read);
    }
}

/* 2 GB of weights in a file with holes: nothing of them is touched by loading. */
static void large_weights_stay_on_the_disk(void **state)
{
    fixture *f = *state;
    const int64_t dims[] = {512, 1024, 1024};
    char folder[] = "/tmp/octet-test-XXXXXX", model[64], data[64];
    pb t = tensor_head("w", OCT_DTYPE_F32, 3, dims), e = {0}, g = {0}, m;
    oct_graph *got = NULL;
    size_t before;
    int64_t start;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof(model), "%s/m.onnx", folder);
    snprintf(data, sizeof(data), "%s/w.bin", folder);
    pb_str(&e, 1, "location");
    pb_str(&e, 2, "w.bin");
    pb_msg(&t, 13, &e);
    pb_int(&t, 14, 1);
    add_init(&g, t);
    add_node(&g, node("Relu", "w", "y"));
    add_output(&g, f32("y", 3, dims));
    m = model_of(&g, 17);
    assert_non_null(file = fopen(data, "wb"));
    assert_int_equal(ftruncate(fileno(file), (off_t)512 * 1024 * 1024 * 4), 0);
    fclose(file);
    assert_non_null(file = fopen(model, "wb"));
    assert_int_equal(fwrite(m.b, 1, m.n, file), m.n);
    fclose(file);
    before = oct_machine_peak_rss();
    start = oct_time_ns();
    assert_ok(f->ctx, oct_onnx_load(f->ctx, model, &got));
    assert_true(oct_time_ns() - start < 1000000000);
    assert_true(oct_machine_peak_rss() - before < (size_t)20 << 20);
    oct_graph_free(got);
    unlink(model);
    unlink(data);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_weights_stay_on_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(all_models_come_back, setup, teardown),
    };

    return run_test_group(tests);
}
