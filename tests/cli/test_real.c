/* SPDX-License-Identifier: Apache-2.0 */
/* Every command on the real networks, where they are there. */
#include "cli/program.h"

#include <glob.h>

/* Runs a command whose result must be JSON. */
static void run_json(place *p, const char *words)
{
    if (octet(p, words)) fail_msg("octet %s: %s", words, p->last.err);
    json_decref(printed_json(p));
}

static void try_model(place *p, const char *path)
{
    /* The only one with open dimensions that must not be 1. */
    const char *shape = strstr(path, "nms-yolov8") ? "--input-shape detection:1x84x100" : "";
    char words[8192];

    snprintf(words, sizeof(words), "inspect '%s' --json", path);
    run_json(p, words);
    snprintf(words, sizeof(words), "inspect '%s' --quiet --graph net.dot", path);
    assert_int_equal(octet(p, words), 0);
    snprintf(words, sizeof(words), "simplify '%s' small.onnx --json", path);
    run_json(p, words);
    run_json(p, "inspect small.onnx --json");
    snprintf(words, sizeof(words), "bench '%s' %s --runs 1 --warmup 0 --json", path, shape);
    run_json(p, words);
    snprintf(words, sizeof(words), "profile '%s' %s --runs 1 --warmup 0 --json --trace t.json",
             path, shape);
    run_json(p, words);
    json_decref(file_json(p, "t.json"));
}

static void commands_work_on_real_networks(void **state)
{
    static const char *const folders[] = {"models", "yolo-nas", "pt2"};
    const char *shared = getenv("OCTET_SHARED");
    char pattern[4096];
    size_t n = 0;

    for (size_t i = 0; i < OCT_COUNT(folders); i++) {
        glob_t found;

        snprintf(pattern, sizeof(pattern), "%s/data/%s/*.onnx", shared, folders[i]);
        if (glob(pattern, 0, NULL, &found)) continue;
        for (size_t k = 0; k < found.gl_pathc; k++, n++)
            try_model(*state, found.gl_pathv[k]);
        globfree(&found);
    }
    assert_true(n > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_work_on_real_networks, place_setup,
                                        place_teardown),
    };

    if (argc != 2) return 2;
    if (!shared_dir("cli_real")) return 77;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
