/* SPDX-License-Identifier: Apache-2.0 */
/* --help, from the tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help/values.h"
#include "cli/term/table.h"

enum {
    OPT_COLUMN = 26, /* where the text of an option begins */
    NARROW = 72,     /* in a narrower terminal it begins below the option */
    NARROW_COLUMN = 8,
    NAME_COLUMN = 16, /* of commands and files, whose names are short */
};

/* One line, broken at words if need be, going on two columns deeper. */
static void put_line(FILE *out, int indent, const char *text)
{
    (void)fprintf(out, "%*s", indent, "");
    cli_wrap_hanging(out, text, indent, indent + 2, cli_text_columns(out));
}

static void put_title(FILE *out, const char *text)
{
    (void)fprintf(out, "\n%s%s%s\n", cli_color(out, CLI_BOLD), text, cli_color(out, CLI_PLAIN));
}

void cli_usage_line(const cli_command *cmd, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "octet %s", cmd->name);

    for (const cli_file *f = cmd->files; f->name && at < size; f++)
        at +=
            (size_t)snprintf(text + at, size - at, f->flags & CLI_FILE_MAYBE ? " [%s%s]" : " %s%s",
                             f->name, f->flags & CLI_FILE_MANY ? "..." : "");
    if (at < size) (void)snprintf(text + at, size - at, " [options]");
}

/* "  --name METAVAR     help", wrapped, with the help in this column. */
static void put_entry_at(FILE *out, int column, const char *left, const char *help, const char *def)
{
    char *text = def ? cli_format("%s [%s]", help, def) : cli_format("%s", help);
    const int width = cli_text_columns(out);
    int col = fprintf(out, "  %s", left);

    if (col >= column) {
        (void)fputc('\n', out);
        col = 0;
    }
    (void)fprintf(out, "%*s", column - col, "");
    cli_wrap_hanging(out, text, column, column, width);
    free(text);
}

static void put_entry(FILE *out, const char *left, const char *help, const char *def)
{
    const int column = cli_text_columns(out) < NARROW ? NARROW_COLUMN : OPT_COLUMN;

    put_entry_at(out, column, left, help, def);
}

static void put_opts(FILE *out, const cli_opt *opts)
{
    char left[128], *help;

    for (const cli_opt *o = opts; o->kind; o++) {
        const char letter[] = {'-', o->letter, ',', ' ', '\0'};

        (void)snprintf(left, sizeof(left), "%s--%s%s%s", o->letter ? letter : "", o->name,
                       o->metavar ? " " : "", o->metavar ? o->metavar : "");
        help = cli_opt_help(o);
        put_entry(out, left, help, o->def ? o->def : o->usual);
        free(help);
    }
}

/* Bytes of the next word; a quoted text is one. */
static size_t word_length(const char *line)
{
    size_t len = 0;
    char quote = '\0';

    for (; line[len] && (quote || line[len] != ' '); len++) {
        if (quote)
            quote = line[len] == quote ? '\0' : quote;
        else if (line[len] == '\'')
            quote = line[len];
    }
    return len;
}

/* Bytes up to where the line may be broken: an option stays with its value. */
static size_t part_length(const char *line)
{
    const size_t len = word_length(line);
    const char *next = line[len] ? line + len + 1 : "";

    return *line == '-' && *next && *next != '-' && *next != '>' ? len + 1 + word_length(next)
                                                                 : len;
}

/* An example as it is typed: a line that is too long ends with a backslash and goes on. */
static void put_command(FILE *out, int indent, const char *line)
{
    const int width = cli_text_columns(out);
    int col = fprintf(out, "%*soctet", indent, "");

    while (*line) {
        const size_t len = part_length(line);

        if (col + 1 + (int)len > width - 2 && col > indent + 8)
            (void)fprintf(out, " \\\n%*s", indent + 4, ""), col = indent + 4;
        else
            col += fprintf(out, " ");
        col += fprintf(out, "%.*s", (int)len, line);
        line += len + (line[len] == ' ');
    }
    (void)fputc('\n', out);
}

void cli_help(FILE *out)
{
    put_line(out, 0, "octet takes a trained network and returns a smaller, faster one.");
    (void)fputs("\nusage: octet COMMAND FILE... [options]\n", out);
    put_title(out, "commands:");
    for (int i = 0; cli_command_at(i); i++)
        put_entry_at(out, NAME_COLUMN, cli_command_at(i)->name, cli_command_at(i)->help, NULL);
    put_entry_at(out, NAME_COLUMN, "help COMMAND", "show the options of a command, with examples",
                 NULL);
    put_title(out, "options of every command:");
    put_opts(out, cli_common_opts());
    put_entry(out, "-V, --version", "show the version and what this machine has", NULL);
    put_title(out, "first steps:");
    for (int i = 0; cli_command_at(i); i++)
        if (cli_command_at(i)->examples->line)
            put_command(out, 2, cli_command_at(i)->examples->line);
    (void)fputc('\n', out);
    put_line(out, 0, "exit status: 0 done, 1 the work failed, 2 what was typed is wrong");
    put_line(
        out, 0,
        "environment: NO_COLOR=1 no colours; OCTET_PROGRESS_SECONDS=S a line of progress every "
        "S seconds where there is no terminal [5]");
}

void cli_help_command(FILE *out, const cli_command *cmd)
{
    char text[512];
    size_t at;

    (void)snprintf(text, sizeof(text), "octet %s: %s", cmd->name, cmd->help);
    put_line(out, 0, text);
    (void)fputc('\n', out);
    at = (size_t)snprintf(text, sizeof(text), "usage: ");
    cli_usage_line(cmd, text + at, sizeof(text) - at);
    put_line(out, 0, text);
    if (cmd->about) {
        (void)fputc('\n', out);
        cli_wrap(out, cmd->about, 0, cli_text_columns(out));
    }
    if (cmd->files->name) put_title(out, "files:");
    for (const cli_file *f = cmd->files; f->name; f++)
        put_entry_at(out, NAME_COLUMN, f->name, f->help, NULL);
    if (cmd->opts->kind) put_title(out, "options:");
    put_opts(out, cmd->opts);
    put_title(out, "options of every command:");
    put_opts(out, cli_common_opts());
    put_title(out, "examples:");
    for (const cli_example *e = cmd->examples; e->line; e++) {
        cli_wrap(out, e->what, 2, cli_text_columns(out));
        put_command(out, 4, e->line);
    }
}
