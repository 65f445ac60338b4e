/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of other tools, as people have them (tests/recipes): each is read without a change, and
 * says what its .expected file says: every note, then the recipe. OCTET_UPDATE=1 writes those files
 * anew.
 */
#include "tests/test.h"

#include <dirent.h>
#include <unistd.h>

#include <octet/recipe.h>

#include "base/str.h"

static int not_expected(const struct dirent *e)
{
    return e->d_name[0] != '.' && !strstr(e->d_name, ".expected");
}

static char *content(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text;
    long n;

    if (!f) return NULL;
    assert_false(fseek(f, 0, SEEK_END));
    n = ftell(f);
    rewind(f);
    assert_non_null(text = calloc(1, (size_t)n + 1));
    assert_int_equal(fread(text, 1, (size_t)n, f), (size_t)n);
    assert_false(fclose(f));
    return text;
}

static void check_file(oct_ctx *ctx, const char *folder, const char *name)
{
    char path[1200], expected[1300], *want;
    const char *recipe = NULL;
    oct_recipe *r = NULL;
    oct_str said;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)snprintf(expected, sizeof(expected), "%s.expected", path);
    assert_ok(ctx, oct_recipe_new(ctx, &r));
    assert_ok(ctx, oct_recipe_load(r, name));
    oct_str_init(&said, ctx);
    for (int32_t i = 0; oct_recipe_note(r, i); i++)
        oct_str_printf(&said, "%s\n", oct_recipe_note(r, i));
    assert_ok(ctx, oct_recipe_text(r, &recipe));
    oct_str_printf(&said, "%s", recipe);
    assert_false(said.failed);
    if (getenv("OCTET_UPDATE")) {
        FILE *f = fopen(expected, "wb");

        assert_non_null(f);
        assert_int_equal(fwrite(said.s, 1, said.len, f), said.len);
        assert_false(fclose(f));
    }
    assert_non_null(want = content(expected));
    if (strcmp(want, said.s) != 0) fail_msg("%s says\n%s", name, said.s);
    free(want);
    oct_str_fini(&said);
    oct_recipe_free(r);
}

static void files_of_others_read_unchanged(void **state)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    struct dirent **names = NULL;
    char folder[900];
    oct_ctx *ctx;
    int n;

    (void)state;
    if (!root) skip_test("OCTET_SOURCE_ROOT is not set");
    assert_non_null(ctx = oct_ctx_new(NULL));
    (void)snprintf(folder, sizeof(folder), "%s/tests/recipes", root);
    assert_false(chdir(folder)); /* names, also those of bases, are relative to it */
    n = scandir(folder, &names, not_expected, alphasort);
    assert_true(n > 10);
    for (int i = 0; i < n; i++) {
        check_file(ctx, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    oct_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_of_others_read_unchanged)};

    return run_test_group(tests);
}
