/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: its width, the progress bar, Ctrl-C. */
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

int cli_term_width(FILE *f)
{
    struct winsize w;
    const int fd = fileno(f);

    if (!isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &w) || w.ws_col == 0) return 80;
    return w.ws_col;
}

int64_t cli_time_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- progress --- */

static void draw(const cli *c, const char *what, int64_t done, int64_t total, int64_t now)
{
    enum { WIDTH = 28 };
    const double part = total > 0 ? (double)done / (double)total : 0;
    const int full = (int)(part * WIDTH);
    const double left = part > 0 ? (double)(now - c->start_ns) * 1e-9 * (1 - part) / part : 0;
    char bar[WIDTH + 1];

    memset(bar, '-', WIDTH);
    memset(bar, '#', (size_t)(full < 0 ? 0 : full > WIDTH ? WIDTH : full));
    bar[WIDTH] = '\0';
    (void)fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  %lld/%lld", what, bar, part * 100,
                  (long long)done, (long long)total);
    if (part > 0 && part < 1)
        (void)fprintf(stderr, "  %lld:%02d left", (long long)left / 60, (int)left % 60);
    (void)fflush(stderr);
}

int cli_progress(void *user, const char *what, int64_t done, int64_t total)
{
    cli *c = user;
    const int64_t now = cli_time_ns();

    if (c->opt.quiet || !isatty(STDERR_FILENO)) return 0;
    if (c->start_ns == 0 || c->bar_what != what) {
        c->start_ns = now;
        c->drawn_ns = now; /* work done within the blink of an eye shows no bar */
        c->bar_what = what;
    }
    if (now - c->drawn_ns < 100000000) return 0;
    c->drawn_ns = now;
    draw(c, what, done, total, now);
    return 0;
}

void cli_progress_end(cli *c)
{
    if (c->start_ns && c->drawn_ns != c->start_ns) (void)fputs("\r\033[K", stderr);
    c->start_ns = 0;
}

/* --- interrupts --- */

static const int held_signals[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t pending; /* a signal handler has nowhere else to write */

static void remember(int sig)
{
    pending = sig;
}

void cli_hold_interrupts(void)
{
    struct sigaction a = {.sa_handler = remember, .sa_flags = SA_RESTART}, old;

    pending = 0;
    for (size_t i = 0; i < CLI_COUNT(held_signals); i++)
        if (sigaction(held_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(held_signals[i], &a, NULL);
}

void cli_release_interrupts(void)
{
    struct sigaction a = {.sa_handler = SIG_DFL}, old;

    for (size_t i = 0; i < CLI_COUNT(held_signals); i++)
        if (sigaction(held_signals[i], NULL, &old) == 0 && old.sa_handler == remember)
            (void)sigaction(held_signals[i], &a, NULL);
    if (pending) (void)raise(pending);
}
