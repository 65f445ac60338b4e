/* SPDX-License-Identifier: Apache-2.0 */
/* Python configs as data: what is read, what is refused and where, and limits. */
#include "tests/test.h"

#include "base/str.h"
#include "data/python.h"

typedef struct state {
    oct_ctx *ctx;
    oct_arena *arena;
} state;

static int python_setup(void **out)
{
    state *s = calloc(1, sizeof(*s));

    if (!s || !(s->ctx = oct_ctx_new(NULL)) || !(s->arena = oct_arena_new(s->ctx))) return -1;
    *out = s;
    return 0;
}

static int python_teardown(void **out)
{
    state *s = *out;

    oct_arena_free(s->arena);
    oct_ctx_free(s->ctx);
    free(s);
    return 0;
}

/* A folder of two files, for _base_. */
static oct_status open_base(void *user, const char *from, const char *path, const char **name,
                            const void **data, size_t *size)
{
    static const char one[] = "a = dict(x=1, y=dict(p=1, q=2))\nb = 3\n";
    static const char loop[] = "_base_ = 'loop.py'\n";

    (void)from;
    *name = path;
    *data = strcmp(path, "loop.py") ? one : loop;
    *size = strlen(*data);
    if (!strcmp(path, "gone.py")) return oct_fail(user, OCT_ERR_IO, "gone.py: no such file");
    return OCT_OK;
}

static oct_status read(state *s, const char *text, oct_tree **out)
{
    static const char *const unset[] = {"work_dir", NULL};
    const oct_python_options o = {unset, open_base, s->ctx};

    *out = NULL;
    return oct_python_read(s->arena, "c.py", text, strlen(text), &o, out);
}

static const char *at(const oct_tree *t, const char *a, const char *b)
{
    t = oct_tree_get(t, a);
    return oct_tree_text(b ? oct_tree_get(t, b) : t);
}

static void reads_values(void **out)
{
    state *s = *out;
    oct_tree *t;

    assert_ok(s->ctx,
              read(s,
                   "'''What it is about.'''\n"
                   "# comment\n"
                   "size = 300; root = \"data/\"\n"
                   "a = dict(\n    \"k\": [1, 3, size, size],  # as people write it\n"
                   "    n=-1e-3, w=0.02 / 8, i=3 * 4 - 2, h=7 // 2,\n"
                   "    f=root + 'x' 'y.json', t=True, none=None, **dict(u=1),\n)\n"
                   "b = {'x': (1, 2), 'y': (3), 3: [], 'z': r'a\\d+', 'e': 'a\\tb\\u00e9'}\n"
                   "c = a\n"
                   "d = [1] + [2,\n  3]\n"
                   "log = work_dir\n"
                   "long = 'a' \\\n   'b'\n",
                   &t));
    assert_string_equal(at(t, "a", "n"), "-0.001");
    assert_string_equal(at(t, "a", "w"), "0.0025");
    assert_string_equal(at(t, "a", "i"), "10");
    assert_string_equal(at(t, "a", "h"), "3");
    assert_string_equal(at(t, "a", "f"), "data/xy.json");
    assert_false(oct_tree_get(oct_tree_get(t, "a"), "f")->is_plain);
    assert_string_equal(at(t, "a", "t"), "true");
    assert_string_equal(at(t, "a", "u"), "1");
    assert_true(oct_tree_is_null(oct_tree_get(oct_tree_get(t, "a"), "none")));
    assert_int_equal(oct_tree_get(oct_tree_get(t, "a"), "k")->n, 4);
    assert_string_equal(oct_tree_get(oct_tree_get(t, "c"), "k")->last->text, "300");
    assert_int_equal(oct_tree_get(oct_tree_get(t, "b"), "x")->n, 2);
    assert_string_equal(at(t, "b", "y"), "3");
    assert_string_equal(at(t, "b", "z"), "a\\d+");
    assert_string_equal(at(t, "b", "e"), "a\tb\xc3\xa9");
    assert_int_equal(oct_tree_get(t, "d")->n, 3);
    assert_true(oct_tree_is_null(oct_tree_get(t, "log")));
    assert_string_equal(at(t, "long", NULL), "ab");
    assert_int_equal(oct_tree_get(t, "c")->line, 10);
}

static void merges_bases(void **out)
{
    state *s = *out;
    oct_tree *t;

    assert_ok(s->ctx, read(s, "_base_ = ['one.py']\na = dict(y=dict(p=5), z=9)\n", &t));
    assert_string_equal(at(oct_tree_get(t, "a"), "y", "p"), "5");
    assert_string_equal(at(oct_tree_get(t, "a"), "y", "q"), "2");
    assert_string_equal(at(t, "a", "x"), "1");
    assert_string_equal(at(t, "a", "z"), "9");
    assert_string_equal(at(t, "b", NULL), "3");
    assert_ok(s->ctx, read(s, "_base_ = 'one.py'\na = dict(_delete_=True, z=9)\n", &t));
    assert_int_equal(oct_tree_get(t, "a")->n, 1);
    assert_fails(s->ctx, read(s, "_base_ = 'loop.py'\n", &t), OCT_ERR_FORMAT, "too deep");
    assert_fails(s->ctx, read(s, "_base_ = 'gone.py'\n", &t), OCT_ERR_IO, "gone.py");
}

static void code_is_refused(void **out)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"import os\n", "c.py:1:1: 'import' begins Python code, which is not run"},
        {"a = 1\nos.system('x')\n", "c.py:2:1: 'os' begins Python code"},
        {"a = open('x')\n", "c.py:1:5: 'open(' is Python code, which is not run"},
        {"a = os.environ\n", "'os.' is Python code"},
        {"a = dict(b=__import__('os'))\n", "c.py:1:12: '__import__('"},
        {"a = [x for x in y]\n", "c.py:1:6: the name 'x' is not set above"},
        {"a = [1 for x in y]\n", "a comma or the closing bracket expected, not 'for'"},
        {"a = lambda: 1\n", "the name 'lambda' is not set above"},
        {"a = b\n", "c.py:1:5: the name 'b' is not set above"},
        {"if True:\n    a = 1\n", "'if' begins Python code"},
        {"a = 1\n    b = 2\n", "c.py:2:5: a line that is indented"},
        {"a = {1, 2}\n", "':' behind a key expected, not ','"},
        {"a = dict(1)\n", "':' behind a key"},
        {"a = dict(b=1, b=2)\n", "c.py:1:15: key 'b' is given twice"},
        {"a = f'{x}'\n", "'f' in front"},
        {"a = 'x\n", "without its closing quote"},
        {"a = [1, 2\n", "closing bracket expected, not the end of it"},
        {"a = 1 / 0\n", "division by 0"},
        {"a = 0x10\n", "this number is not read"},
        {"a = 'x' * 3\n", "a number is expected here"},
        {"a += 1\n", "'a' begins Python code"},
        {"a = 1 2\n", "the end of the line expected, not '2'"},
        {"a = 1, 2\n", "a tuple without parentheses"},
        {"a =\n", "a value expected"},
        {"a = \"\\u0000\"\n", "control characters"},
        {"a = \xff\n", "this is no text"},
    };
    state *s = *out;
    oct_tree *t;

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_fails(s->ctx, read(s, cases[i].text, &t), OCT_ERR_FORMAT, cases[i].error);
}

/* A few lines must not become gigabytes. */
static void limits_hold(void **out)
{
    state *s = *out;
    oct_tree *t;
    oct_str b;

    oct_str_init(&b, s->ctx);
    oct_str_puts(&b, "a = [1, 1, 1, 1, 1, 1, 1, 1]\n");
    for (int i = 0; i < 10; i++)
        oct_str_puts(&b, "a = [a, a, a, a, a, a, a, a]\n");
    assert_fails(s->ctx, read(s, b.s, &t), OCT_ERR_FORMAT, "more than 65536 values");
    oct_str_fini(&b);
    oct_str_init(&b, s->ctx);
    oct_str_puts(&b, "a = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'\n");
    for (int i = 0; i < 30; i++)
        oct_str_puts(&b, "a = a + a\n");
    assert_fails(s->ctx, read(s, b.s, &t), OCT_ERR_FORMAT, "the text is too long");
    oct_str_fini(&b);
    oct_str_init(&b, s->ctx);
    oct_str_puts(&b, "a = ");
    for (int i = 0; i < 5000; i++)
        oct_str_puts(&b, "[(-");
    assert_fails(s->ctx, read(s, b.s, &t), OCT_ERR_FORMAT, "nested too deep");
    oct_str_fini(&b);
}

static void is_told_from_yaml(void **out)
{
    static const char *const yes[] = {"a = 1", "# x\n\n_base_ = ['a']", "nncf_config=dict()"};
    static const char *const no[] = {"a: 1", "{\"a\": 1}", "", "a == b", "- x", "# only"};

    (void)out;
    for (size_t i = 0; i < OCT_COUNT(yes); i++)
        assert_true(oct_python_is(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < OCT_COUNT(no); i++)
        assert_false(oct_python_is(no[i], strlen(no[i])));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, python_setup, python_teardown)
    const struct CMUnitTest tests[] = {
        TEST(reads_values), TEST(merges_bases),      TEST(code_is_refused),
        TEST(limits_hold),  TEST(is_told_from_yaml),
    };

    return run_test_group(tests);
}
