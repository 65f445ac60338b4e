/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, the options all of them take, and errors. */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

#include "cli/term/table.h"

#define CLI_COMMAND(sym) extern const cli_command cmd_##sym;
#include "cli/commands.def"
#undef CLI_COMMAND

static const cli_command *const commands[] = {
#define CLI_COMMAND(sym) &cmd_##sym,
#include "cli/commands.def"
#undef CLI_COMMAND
};

static const cli_opt common_opts[] = {
    {CLI_INT, "threads", offsetof(cli_common, threads), "N",
     .help = "threads to use; by default the physical cores this process may use", .min = 1},
    {CLI_INT, "seed", offsetof(cli_common, seed), "S", .help = "start of every random choice",
     .def = "0", .given = offsetof(cli_common, seed_given)},
    {CLI_FLAG, "json", offsetof(cli_common, json), .help = "print the result as JSON"},
    {CLI_FLAG, "quiet", offsetof(cli_common, quiet),
     .help = "print only what was asked for, and errors: no progress, no notes; nothing where the "
             "result is a file"},
    {CLI_FLAG, "force", offsetof(cli_common, force),
     .help = "replace existing files that octet did not make; never one that the command reads, "
             "nor a read-only one"},
    {CLI_LIST, "plugin", offsetof(cli_common, plugins), "FILE",
     .help =
         "a shared library with operators of your own (docs/operators.md); may be given several "
         "times"},
    {CLI_LIST, "stub", offsetof(cli_common, stubs), "OP=TYPES",
     .help = "let an operator octet does not know give zeros: MyOp=float32:1x100x4,int32:1x1 names "
             "the type of each result; may be given several times"},
    {CLI_FLAG, "help", offsetof(cli_common, help), .help = "show this help"},
    {0},
};

const cli_command *cli_command_at(int i)
{
    return i >= 0 && (size_t)i < CLI_COUNT(commands) ? commands[i] : NULL;
}

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

const cli_opt *cli_common_opts(void)
{
    return common_opts;
}

oct_status cli_fail(cli *c, oct_status status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(c->error, sizeof(c->error), fmt, args);
    va_end(args);
    cli_text_clean(c->error); /* names from files may contain anything */
    return status;
}

oct_status cli_missing(cli *c, const char *what)
{
    char usage[256];

    cli_usage_line(c->cmd, usage, sizeof(usage));
    c->hint_help = true;
    return cli_fail(c, OCT_ERR_ARG, "%s is missing; usage: %s", what, usage);
}

void cli_note(const cli *c, const char *fmt, ...)
{
    char text[2048];
    bool stands_out;
    va_list args;

    if (c->opt.quiet) return;
    if (c->has_bar) (void)fputs("\r\033[K", stderr); /* it is drawn again below */
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    stands_out = strncmp(text, "warning", 7) == 0 || strncmp(text, "note", 4) == 0;
    if (stands_out) (void)fputs(cli_color(stderr, CLI_YELLOW), stderr);
    cli_say(stderr, "octet: %s", text);
    if (stands_out) (void)fputs(cli_color(stderr, CLI_PLAIN), stderr);
}
