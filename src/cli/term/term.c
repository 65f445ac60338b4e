/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: its width, colours, text wrapped to it, the clock. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/term/table.h"

int cli_term_width(FILE *f)
{
    enum { LEAST = 20 }; /* narrower ones are mistakes of the terminal */
    struct winsize w;
    const int fd = fileno(f);

    if (!isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &w) || w.ws_col == 0) return 80;
    return w.ws_col < LEAST ? LEAST : w.ws_col;
}

int cli_text_columns(FILE *f)
{
    enum { PIPED = 80, MOST = 100 }; /* longer lines are hard to read */
    const int width = cli_term_width(f);

    return width == 0 ? PIPED : width > MOST ? MOST : width;
}

bool cli_term_is_plain(FILE *f)
{
    const char *term = getenv("TERM");

    return !isatty(fileno(f)) || !term || !*term || strcmp(term, "dumb") == 0;
}

/* https://no-color.org: any value but an empty one */
static bool has_color(FILE *f)
{
    const char *no = getenv("NO_COLOR");

    return (!no || !*no) && !cli_term_is_plain(f);
}

const char *cli_color(FILE *f, cli_hue hue)
{
    static const char *const codes[] = {[CLI_PLAIN] = "\033[0m",
                                        [CLI_BOLD] = "\033[1m",
                                        [CLI_RED] = "\033[31m",
                                        [CLI_GREEN] = "\033[32m",
                                        [CLI_YELLOW] = "\033[33m"};

    return has_color(f) ? codes[hue] : "";
}

int64_t cli_time_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- sentences --- */

void cli_fact(FILE *out, int column, const char *name, const char *fmt, ...)
{
    const int width = cli_term_width(out);
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) text = cli_format("?");
    va_end(args);
    cli_text_clean(text);
    (void)fprintf(out, "%-*s", column, name);
    if (width && column + cli_text_width(text) > width)
        cli_wrap_hanging(out, text, column, column, width);
    else
        (void)fprintf(out, "%s\n", text);
    free(text);
}

void cli_say(FILE *out, const char *fmt, ...)
{
    const int width = cli_term_width(out);
    char *text = NULL;
    int indent;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) text = cli_format("?");
    va_end(args);
    cli_text_clean(text);
    indent = (int)strspn(text, " ");
    if (width && cli_text_width(text) > width) {
        (void)fprintf(out, "%*s", indent, "");
        cli_wrap_hanging(out, text + indent, indent, indent + 2, width);
    } else {
        (void)fprintf(out, "%s\n", text);
    }
    free(text);
}
