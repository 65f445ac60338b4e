/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: a bar that fits the terminal, or plain lines every few seconds. */
#include "cli/term/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/table.h"

enum { BAR_MOST = 28, BAR_LEAST = 6 };

#define BLINK_NS 100000000 /* shorter work shows no bar */
#define LINE_S   5.0       /* between two plain lines */

/* "0:08"; what is left of a second counts as one, so that nothing is left only at the end */
static void time_text(double s, char text[CLI_UNIT_SIZE])
{
    const long long whole = s < 0 ? 0 : s > 1e9 ? 999999 : (long long)ceil(s);

    (void)snprintf(text, CLI_UNIT_SIZE, "%lld:%02d", whole / 60, (int)(whole % 60));
}

/* Progress as text; "" for what is not known. */
typedef struct state_words {
    char percent[CLI_UNIT_SIZE], count[2 * CLI_UNIT_SIZE], rate[CLI_UNIT_SIZE];
    char left[2 * CLI_UNIT_SIZE];
} state_words;

/* Fixed-width numbers in a bar, so that it does not move: `wide`. */
static state_words words_of(const cli_progress_state *p, bool wide)
{
    const double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    const int digits = wide ? snprintf(NULL, 0, "%lld", (long long)p->total) : 0;
    char time[CLI_UNIT_SIZE];
    state_words w = {{0}, {0}, {0}, {0}};

    (void)snprintf(w.percent, sizeof(w.percent), "%*.0f%%", wide ? 3 : 0, floor(part * 100));
    if (part > 0 && part < 1) {
        time_text(p->seconds * (1 - part) / part, time);
        (void)snprintf(w.left, sizeof(w.left), "%*s left", wide ? 4 : 0, time);
    }
    if (strstr(p->what, CLI_PROGRESS_MS)) return w;
    (void)snprintf(w.count, sizeof(w.count), wide ? "%*lld/%lld" : "%*lld of %lld", digits,
                   (long long)p->done, (long long)p->total);
    if (p->seconds > 0)
        (void)snprintf(w.rate, sizeof(w.rate), "%*.1f/s", wide ? 5 : 0,
                       (double)p->done / p->seconds);
    return w;
}

/* How much of the words a bar has: from 0 to 3. */
static void state_text(const state_words *w, int detail, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%s", w->percent);

    if (detail >= 2 && *w->count) at += (size_t)snprintf(text + at, size - at, "  %s", w->count);
    if (detail >= 3 && *w->rate) at += (size_t)snprintf(text + at, size - at, "  %s", w->rate);
    if (detail >= 1) (void)snprintf(text + at, size - at, "  %-9s", w->left);
}

/* The name without the mark that the work is counted in milliseconds. */
static int name_length(const char *what)
{
    const char *mark = strstr(what, CLI_PROGRESS_MS);

    return mark ? (int)(mark - what) : (int)strlen(what);
}

void cli_progress_bar(const cli_progress_state *p, int width, char *text, size_t size)
{
    const double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    const state_words w = words_of(p, true);
    const int len = name_length(p->what);
    char *name = cli_format("%.*s", len, p->what), state[256], bar[BAR_MOST + 1];
    int detail = 3, room, full;

    /* The last column stays free: terminals differ in what they do there. */
    for (;; detail--) {
        state_text(&w, detail, state, sizeof(state));
        room = width - 1 - (int)strlen(state) - cli_text_width(name) - 4; /* "what [] state" */
        if (room >= BAR_LEAST || detail == 0) break;
    }
    if (room < 2) { /* not even a bar */
        (void)snprintf(text, size, "%.*s", width > 1 ? width - 1 : 1, state + strspn(state, " "));
        free(name);
        return;
    }
    if (room > BAR_MOST) room = BAR_MOST;
    full = (int)(part * room);
    memset(bar, '-', (size_t)room);
    memset(bar, '#', (size_t)(full < 0 ? 0 : full > room ? room : full));
    bar[room] = '\0';
    (void)snprintf(text, size, "%s [%s] %s", name, bar, state);
    free(name);
}

void cli_progress_line(const cli_progress_state *p, char *text, size_t size)
{
    const state_words w = words_of(p, false);

    (void)snprintf(text, size, "octet: %.*s: %s%s%s%s%s", name_length(p->what), p->what, w.percent,
                   *w.count ? ", " : "", w.count, *w.left ? ", " : "", w.left);
}

/* Seconds between plain lines: OCTET_PROGRESS_SECONDS, for logs. */
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
    char name[256];

    if (c->opt.quiet) return cli_stopped();
    if (c->start_ns == 0 || c->bar_total != total || done < c->bar_done) /* another task */
        c->start_ns = c->drawn_ns = now;
    c->bar_total = total;
    c->bar_done = done;
    if (c->progress_of) (void)snprintf(name, sizeof(name), "%s: %s", c->progress_of, what);
    show(c,
         &(cli_progress_state){c->progress_of ? name : what, done, total,
                               (double)(now - c->start_ns) * 1e-9},
         now);
    return cli_stopped();
}

void cli_progress_end(cli *c)
{
    if (c->has_bar) (void)fputs("\r\033[K", stderr);
    c->has_bar = false;
    cli_interrupt_bar(false);
    c->start_ns = 0;
}
