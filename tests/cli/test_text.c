/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: widths, tables, units, nearest names. */
#include "test.h"

#include "cli/near.h"
#include "cli/term/progress.h"
#include "cli/term/table.h"
#include "cli/term/table_layout.h"
#include "cli/term/utf8.h"

static void width_counts_columns_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(cli_text_width("abc"), 3);
    assert_int_equal(cli_text_width("\xc3\xa9t\xc3\xa9"), 3);        /* e acute */
    assert_int_equal(cli_text_width("\xe6\xbc\xa2\xe5\xad\x97"), 4); /* two wide ones */
    assert_int_equal(cli_text_width("e\xcc\x81"), 1);                /* combining acute */
    assert_int_equal(cli_text_width(""), 0);
}

static void hostile_text_becomes_harmless(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"plain", "plain"},
        {"\x1b[31mred\n", "?[31mred?"},
        {"\xff\xfe", "??"},
        {"\xc0\x80", "??"},      /* overlong */
        {"\xed\xa0\x80", "???"}, /* surrogate */
        {"a\xe2\x80\xae"
         "b",
         "a???b"},          /* turns the reading direction */
        {"\xf0\x9f", "??"}, /* cut off */
        {"\xc3\xa9", "\xc3\xa9"},
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        strcpy(text, cases[i].from);
        cli_text_clean(text);
        assert_string_equal(text, cases[i].to);
    }
}

/* Prints into memory. */
static char *printed(const cli_table *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    cli_table_print(t, f);
    fclose(f);
    return text;
}

static void tables_align_and_end_without_blanks(void **state)
{
    static const cli_column columns[] = {
        {"name", CLI_SHRINK}, {"n", CLI_RIGHT}, {"note", CLI_LEFT}};
    cli_table *t = cli_table_new(columns, 3);
    char *text;

    (void)state;
    cli_table_cell(t, "%s", "a");
    cli_table_cell(t, "%d", 5);
    cli_table_cell(t, "%s", "");
    cli_table_cell(t, "%s", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    cli_table_cell(t, "%d", 123);
    cli_table_cell(t, "%s", "x");
    cli_table_rule(t);
    text = printed(t);
    assert_string_equal(text, "name     n  note\n"
                              "-----  ---  ----\n"
                              "a        5\n"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9  123  x\n"
                              "-----  ---  ----\n");
    free(text);
    cli_table_free(t);
}

static void shortened_text_has_exactly_the_width(void **state)
{
    static const char *const texts[] = {"abcdefghijklmnopqrstuvwxyz",
                                        "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc"
                                        "\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"};

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(texts); i++)
        for (int width = 6; width < 16; width++) {
            for (int head = 0; head <= width - 2; head++) {
                char *text = cli_utf8_shorten(texts[i], width, head);

                assert_int_equal(cli_text_width(text), width);
                assert_non_null(strstr(text, ".."));
                free(text);
            }
        }
}

/* Three names that a cut in the middle would make one (A11). */
static void names_stay_different_in_narrow_tables(void **state)
{
    static const cli_column columns[] = {
        {"#", CLI_RIGHT, 2}, {"node", CLI_SHRINK, 0}, {"operator", CLI_LEFT, 0}};
    static const char *const names[] = {"/model.22/cv2.0/cv2.0.0/act/Sigmoid",
                                        "/model.22/cv2.0/cv2.0.1/act/Sigmoid",
                                        "/model.22/cv2.1/cv2.1.0/act/Sigmoid"};
    cli_table *t = cli_table_new(columns, 3);

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        cli_table_cell(t, "%d", (int)i);
        cli_table_cell(t, "%s", names[i]);
        cli_table_cell(t, "Sigmoid");
    }
    for (int term = 20; term < 60; term++) {
        cli_layout l;
        char *cut[OCT_COUNT(names)];
        int width = 0;

        cli_layout_init(&l, t, term);
        for (int i = 0; i < 3; i++)
            if (l.shown[i] && i != l.stacked) width += l.widths[i] + 2;
        assert_true(width - 2 <= term);
        for (size_t i = 0; i < OCT_COUNT(names); i++)
            cut[i] = cli_utf8_shorten(names[i], l.stacked < 0 ? l.widths[1] : 100, l.head);
        assert_string_not_equal(cut[0], cut[1]);
        assert_string_not_equal(cut[0], cut[2]);
        assert_string_not_equal(cut[1], cut[2]);
        for (size_t i = 0; i < OCT_COUNT(names); i++)
            free(cut[i]);
        cli_layout_fini(&l);
    }
    cli_table_free(t);
}

static void progress_fits_its_line(void **state)
{
    static const cli_progress_state states[] = {{"calibrating", 7, 300, 2},
                                                {"evaluating, AP 0.412 so far", 320, 320, 61},
                                                {"one layer at a time", 1, 1000000, 0.1},
                                                {"x", 0, 0, 0}};
    char text[1024];

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(states); i++)
        for (int width = 20; width < 150; width++) {
            cli_progress_bar(&states[i], width, text, sizeof(text));
            assert_true(cli_text_width(text) < width);
            assert_non_null(strchr(text, '%'));
        }
    cli_progress_line(&states[0], text, sizeof(text));
    assert_string_equal(text, "octet: calibrating: 2%, 7 of 300, 1:24 left");
}

/* Neither more digits nor a vanishing time may move the bar's end. */
static void a_bar_does_not_move(void **state)
{
    char text[256];

    (void)state;
    for (int width = 50; width <= 100; width += 10) {
        ptrdiff_t end = 0;

        for (int64_t done = 1; done <= 300; done++) {
            const cli_progress_state p = {"calibrating", done, 300, 0.04 * (double)done};
            const char *bracket;

            cli_progress_bar(&p, width, text, sizeof(text));
            bracket = strchr(text, ']');
            assert_non_null(bracket);
            if (done > 1) assert_int_equal(bracket - text, end);
            end = bracket - text;
        }
    }
}

static void time_left_is_rounded_up(void **state)
{
    const cli_progress_state p = {"calibrating", 299, 300, 30};
    const cli_progress_state ms = {"measuring" CLI_PROGRESS_MS, 1500, 3000, 1.5};
    char text[256];

    (void)state;
    cli_progress_line(&p, text, sizeof(text));
    assert_string_equal(text, "octet: calibrating: 99%, 299 of 300, 0:01 left");
    cli_progress_line(&ms, text, sizeof(text));
    assert_string_equal(text, "octet: measuring: 50%, 0:02 left");
    cli_progress_bar(&ms, 60, text, sizeof(text));
    assert_non_null(strstr(text, "measuring ["));
    assert_null(strstr(text, "3000"));
}

static void units_keep_three_digits(void **state)
{
    char text[CLI_UNIT_SIZE];

    (void)state;
    assert_string_equal(cli_count(0, text), "0  ");
    assert_string_equal(cli_count(999, text), "999  ");
    assert_string_equal(cli_count(1000, text), "1.00 k");
    assert_string_equal(cli_count(999999, text), "1.00 M");
    assert_string_equal(cli_count(44230000, text), "44.2 M");
    assert_string_equal(cli_bytes(12800000, text), "12.8 MB");
    assert_string_equal(cli_bytes(17, text), "17 B");
    assert_string_equal(cli_time(1234567, text), "1.23 ms");
}

static void nearest_names_are_near(void **state)
{
    cli_near near;

    (void)state;
    cli_near_init(&near, "thraeds", false);
    cli_near_try(&near, "threads");
    cli_near_try(&near, "seed");
    assert_string_equal(cli_near_text(&near), "; did you mean 'threads'?");
    cli_near_init(&near, "xyz", false);
    cli_near_try(&near, "threads");
    assert_string_equal(cli_near_text(&near), "");
    cli_near_init(&near, "aac", false); /* best first, at most three */
    cli_near_try(&near, "abb");
    cli_near_try(&near, "aab");
    cli_near_try(&near, "aac");
    cli_near_try(&near, "aad");
    assert_string_equal(cli_near_text(&near), "; did you mean 'aac', 'aab' or 'aad'?");
    cli_near_init(&near, "cv2.0/cnov", true);
    cli_near_try(&near, "/model.22/cv2/cv2.0/conv/Conv");
    assert_int_equal(near.n, 1);
    cli_near_init(&near, "", true);
    cli_near_try(&near, "a");
    assert_int_equal(near.n, 0);
}

static void words_are_wrapped(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    (void)state;
    assert_non_null(f);
    cli_wrap(f, "one two three\n\nfour", 2, 10);
    fclose(f);
    assert_string_equal(text, "  one two\n  three\n\n  four\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_counts_columns_not_bytes),
        cmocka_unit_test(hostile_text_becomes_harmless),
        cmocka_unit_test(tables_align_and_end_without_blanks),
        cmocka_unit_test(shortened_text_has_exactly_the_width),
        cmocka_unit_test(names_stay_different_in_narrow_tables),
        cmocka_unit_test(progress_fits_its_line),
        cmocka_unit_test(a_bar_does_not_move),
        cmocka_unit_test(time_left_is_rounded_up),
        cmocka_unit_test(units_keep_three_digits),
        cmocka_unit_test(nearest_names_are_near),
        cmocka_unit_test(words_are_wrapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
