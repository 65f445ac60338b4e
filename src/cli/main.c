/* SPDX-License-Identifier: Apache-2.0 */
/* The program octet: finds the command, reads its options, runs it, reports what went wrong. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cpu.h"
#include "cli/guard.h"
#include "cli/near.h"
#include "cli/term/table.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static void log_line(void *user, oct_log_level level, const char *msg)
{
    const cli *c = user;

    if (level <= OCT_LOG_WARN) cli_note(c, "%s%s", level == OCT_LOG_WARN ? "warning: " : "", msg);
}

static void say_error(const char *text)
{
    (void)fputs(cli_color(stderr, CLI_RED), stderr);
    cli_say(stderr, "octet: %s", text);
    (void)fputs(cli_color(stderr, CLI_PLAIN), stderr);
}

static int unknown_command(const char *word)
{
    char *text;
    cli_near near;

    cli_near_init(&near, word, false);
    for (int i = 0; cli_command_at(i); i++)
        cli_near_try(&near, cli_command_at(i)->name);
    cli_near_try(&near, "--help");
    cli_near_try(&near, "--version");
    text =
        cli_format("no %s '%s'%s", *word == '-' ? "option" : "command", word, cli_near_text(&near));
    say_error(text);
    free(text);
    (void)fputs("Try 'octet --help'.\n", stderr);
    return EXIT_USAGE;
}

static int show_help(const char *word)
{
    const cli_command *cmd = word ? cli_command_find(word) : NULL;

    if (cmd)
        cli_help_command(stdout, cmd);
    else if (!word || *word == '-' || strcmp(word, "help") == 0)
        cli_help(stdout);
    else
        return unknown_command(word);
    return EXIT_DONE;
}

static int show_version(const char *word)
{
    (void)word;
    cli_version(stdout);
    return EXIT_DONE;
}

static int show_man(const char *word)
{
    const cli_command *cmd = word ? cli_command_find(word) : NULL;

    if (word && !cmd) return unknown_command(word);
    cli_man(stdout, cmd);
    return EXIT_DONE;
}

static int show_completion(const char *word)
{
    static const struct {
        const char *shell;
        void (*put)(FILE *out);
    } shells[] = {
        {"bash", cli_completion_bash}, {"zsh", cli_completion_zsh}, {"fish", cli_completion_fish}};

    for (size_t i = 0; word && i < CLI_COUNT(shells); i++)
        if (strcmp(word, shells[i].shell) == 0) {
            shells[i].put(stdout);
            return EXIT_DONE;
        }
    (void)fprintf(stderr, "octet: --completion wants a shell: bash, zsh or fish%s%s%s\n",
                  word ? ", not '" : "", word ? word : "", word ? "'" : "");
    return EXIT_USAGE;
}

/* The words that are not commands: true if the first was one, with the exit status set. */
static bool run_builtin(char **argv, int *exit_status)
{
    static const struct {
        const char *word;
        int (*show)(const char *next); /* the argument that follows it; NULL: none */
    } words[] = {{"--version", show_version},
                 {"-V", show_version},
                 {"--help", show_help},
                 {"-h", show_help},
                 {"help", show_help},
                 {"--man", show_man},
                 {"--completion", show_completion}};

    for (size_t i = 0; i < CLI_COUNT(words); i++)
        if (strcmp(argv[1], words[i].word) == 0) {
            *exit_status = words[i].show(argv[2]);
            return true;
        }
    return false;
}

/* The library's reason, prefixed with the model's name unless it is there already. */
static void library_reason(const cli *c, char *text, size_t size)
{
    const char *why = oct_ctx_error(c->ctx);
    const bool named = !c->model || strncmp(why, c->model, strlen(c->model)) == 0;

    (void)snprintf(text, size, "%s%s%s", named ? "" : c->model, named ? "" : ": ",
                   *why ? why : "failed for an unknown reason");
}

static int report(cli *c, oct_status st)
{
    char text[4096];

    cli_progress_end(c);
    if ((fflush(stdout) || ferror(stdout)) && !st)
        st = cli_fail(c, OCT_ERR_IO, "cannot write to standard output");
    if (!st) return EXIT_DONE;
    if (c->error[0])
        (void)snprintf(text, sizeof(text), "%s", c->error);
    else
        library_reason(c, text, sizeof(text));
    say_error(text);
    if (st != OCT_ERR_ARG) return EXIT_FAILED;
    if (c->hint_help) (void)fprintf(stderr, "Try 'octet %s --help'.\n", c->cmd->name);
    return EXIT_USAGE;
}

static void set_threads(const cli *c)
{
    const int32_t cores = oct_ctx_threads(c->ctx);

    if (c->opt.threads > cores)
        cli_note(c, "note: %lld threads share %d core%s and will wait for each other",
                 (long long)c->opt.threads, (int)cores, cores == 1 ? "" : "s");
    oct_ctx_set_threads(c->ctx, (int32_t)(c->opt.threads > INT32_MAX ? INT32_MAX : c->opt.threads));
}

/* Operators the networks of this call may have. */
static oct_status add_operators(cli *c)
{
    oct_status st = OCT_OK;

    for (int i = 0; i < c->opt.plugins.n && !st; i++)
        st = oct_plugin_load(c->ctx, c->opt.plugins.items[i]);
    for (int i = 0; i < c->opt.stubs.n && !st; i++)
        st = oct_register_stub(c->ctx, c->opt.stubs.items[i]);
    return st;
}

static int run_command(const cli_command *cmd, int argc, char **argv)
{
    cli c = {.ctx = oct_ctx_new(NULL), .words = argv - 1};
    void *args = cli_alloc(1, cmd->args_size);
    char **files = NULL;
    oct_status st = OCT_ERR_MEMORY;
    int exit_status;

    if (!c.ctx) {
        (void)fputs("octet: out of memory\n", stderr);
        cli_parse_free(cmd, args, files);
        return EXIT_FAILED;
    }
    c.load = cli_load();
    cli_catch_interrupts();
    cli_guard_start(&c);
    st = cli_parse(&c, cmd, argc, argv, args, &files);
    if (c.opt.help) {
        cli_help_command(stdout, cmd);
        st = OCT_OK;
    } else if (!st) {
        c.hint_help = false;
        oct_ctx_set_log(c.ctx, log_line, &c);
        oct_ctx_set_progress(c.ctx, cli_progress, &c);
        set_threads(&c);
        st = add_operators(&c);
        if (!st) st = cmd->run(&c, args, files);
    }
    if (cli_stopped()) {
        cli_progress_end(&c);
        cli_die_if_stopped();
    }
    exit_status = report(&c, st);
    cli_guard_end(&c);
    cli_parse_free(cmd, args, files);
    free(c.opt.plugins.items);
    free(c.opt.stubs.items);
    oct_ctx_free(c.ctx);
    return exit_status;
}

int main(int argc, char **argv)
{
    const cli_command *cmd;
    int exit_status;

    if (argc < 2) {
        cli_help(stderr);
        return EXIT_USAGE;
    }
    if (run_builtin(argv, &exit_status)) return exit_status;
    if (!(cmd = cli_command_find(argv[1]))) return unknown_command(argv[1]);
    return run_command(cmd, argc - 2, argv + 2);
}
