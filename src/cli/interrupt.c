/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C: work ends at its next step, unfinished files are removed, and a line says so. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { GRACE_SECONDS = 2 }; /* for work that reports no progress */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Global, because a signal handler has no argument for state. */
static volatile sig_atomic_t stopped; /* the signal; 0: none */
static volatile sig_atomic_t held;
static volatile sig_atomic_t has_bar; /* the cursor may be after a progress bar */
static pid_t owner;

bool cli_stopped(void)
{
    return stopped != 0;
}

void cli_interrupt_bar(bool drawn)
{
    has_bar = drawn;
}

/* Only async-signal-safe calls. */
static void say(void)
{
    static const char text[] = "octet: interrupted; no unfinished file is left\n";
    ssize_t n = 0;

    if (has_bar) n = write(STDERR_FILENO, "\n", 1);
    n += write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n;
}

/* Exits as the signal would have ended it, so that shells and make see it. */
static void die(int sig)
{
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
}

void cli_die_if_stopped(void)
{
    if (!stopped) return;
    (void)alarm(0);
    say();
    die(stopped);
}

static void on_signal(int sig)
{
    if (getpid() != owner) { /* a child that draws or measures */
        die(sig);
        return;
    }
    if (stopped && !held) { /* the second time: at once */
        say();
        die(sig);
    }
    stopped = sig;
    (void)alarm(GRACE_SECONDS);
}

static void on_alarm(int sig)
{
    (void)sig;
    if (getpid() != owner || held) return; /* cli_release_interrupts() checks it */
    say();
    die(stopped ? stopped : SIGTERM);
}

void cli_catch_interrupts(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

    owner = getpid();
    for (size_t i = 0; i < CLI_COUNT(signals); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* not nohup */
            (void)sigaction(signals[i], &a, NULL);
    a.sa_handler = on_alarm;
    (void)sigaction(SIGALRM, &a, NULL);
}

void cli_hold_interrupts(void)
{
    held = 1;
}

void cli_release_interrupts(void)
{
    held = 0;
    cli_die_if_stopped();
}
