/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: a bar that fits the terminal, or plain lines every few seconds. */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

enum { BAR_MOST = 28, BAR_LEAST = 6 };

#define BLINK_NS 100000000 /* work done within the blink of an eye shows no bar */
#define LINE_S   5.0       /* between two plain lines */

/* "0:08" */
static void time_text(double s, char text[CLI_UNIT_SIZE])
{
    const long long whole = s < 0 ? 0 : s > 1e9 ? 999999 : (long long)s;

    (void)snprintf(text, CLI_UNIT_SIZE, "%lld:%02d", whole / 60, (int)(whole % 60));
}

/* How far, in words: how much of them is asked for by `detail`, from 0 to 3. */
static void state_text(const cli_progress_state *p, int detail, char *text, size_t size)
{
    const double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    const double left = part > 0 ? p->seconds * (1 - part) / part : 0;
    char time[CLI_UNIT_SIZE];
    size_t at = (size_t)snprintf(text, size, "%3.0f%%", part * 100);

    if (detail >= 2)
        at += (size_t)snprintf(text + at, size - at, "  %lld/%lld", (long long)p->done,
                               (long long)p->total);
    if (detail >= 3 && p->seconds > 0 && !strstr(p->what, "(ms)"))
        at += (size_t)snprintf(text + at, size - at, "  %.1f/s", (double)p->done / p->seconds);
    if (detail >= 1 && part > 0 && part < 1) {
        time_text(left, time);
        (void)snprintf(text + at, size - at, "  %s left", time);
    }
}

void cli_progress_bar(const cli_progress_state *p, int width, char *text, size_t size)
{
    const double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    const int name = cli_text_width(p->what);
    char state[128], bar[BAR_MOST + 1];
    int detail = 3, room, full;

    /* The last column stays free: terminals differ in what they do behind it. */
    for (;; detail--) {
        state_text(p, detail, state, sizeof(state));
        room = width - 1 - (int)strlen(state) - name - 4; /* "what [] state" */
        if (room >= BAR_LEAST || detail == 0) break;
    }
    if (room < 2) { /* not even a bar */
        (void)snprintf(text, size, "%.*s", width > 1 ? width - 1 : 1, state + strspn(state, " "));
        return;
    }
    if (room > BAR_MOST) room = BAR_MOST;
    full = (int)(part * room);
    memset(bar, '-', (size_t)room);
    memset(bar, '#', (size_t)(full < 0 ? 0 : full > room ? room : full));
    bar[room] = '\0';
    (void)snprintf(text, size, "%s [%s] %s", p->what, bar, state);
}

void cli_progress_line(const cli_progress_state *p, char *text, size_t size)
{
    char state[128];

    state_text(p, 2, state, sizeof(state));
    (void)snprintf(text, size, "octet: %s %s", p->what, state + strspn(state, " "));
}

/* Seconds between plain lines: OCTET_PROGRESS_SECONDS, for those who keep logs. */
static double line_seconds(void)
{
    const char *text = getenv("OCTET_PROGRESS_SECONDS");
    char *end = NULL;
    const double v = text ? strtod(text, &end) : LINE_S;

    return text && (end == text || *end || !(v >= 0)) ? LINE_S : v;
}

static void show(cli *c, const cli_progress_state *p, int64_t now)
{
    char text[1024];

    if (cli_term_is_plain(stderr)) {
        if ((double)(now - c->drawn_ns) * 1e-9 < line_seconds()) return;
        cli_progress_line(p, text, sizeof(text));
        cli_text_clean(text);
        (void)fprintf(stderr, "%s\n", text);
    } else {
        if (now - c->drawn_ns < BLINK_NS) return;
        cli_progress_bar(p, cli_term_width(stderr), text, sizeof(text));
        cli_text_clean(text);
        (void)fprintf(stderr, "\r\033[K%s", text);
        c->has_bar = true;
        cli_interrupt_bar(true);
    }
    (void)fflush(stderr);
    c->drawn_ns = now;
}

int cli_progress(void *user, const char *what, int64_t done, int64_t total)
{
    cli *c = user;
    const int64_t now = cli_time_ns();

    if (c->opt.quiet) return cli_stopped();
    if (c->start_ns == 0 || c->bar_total != total || done < c->bar_done) /* another work */
        c->start_ns = c->drawn_ns = now;
    c->bar_total = total;
    c->bar_done = done;
    show(c, &(cli_progress_state){what, done, total, (double)(now - c->start_ns) * 1e-9}, now);
    return cli_stopped();
}

void cli_progress_end(cli *c)
{
    if (c->has_bar) (void)fputs("\r\033[K", stderr);
    c->has_bar = false;
    cli_interrupt_bar(false);
    c->start_ns = 0;
}
