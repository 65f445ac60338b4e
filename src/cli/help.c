/* SPDX-License-Identifier: Apache-2.0 */
/* --help, from the tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "cli/values.h"

#define OPT_COLUMN 26 /* where the text of an option begins */
#define WIDTH      88

void cli_usage_line(const cli_command *cmd, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "octet %s", cmd->name);

    for (const cli_file *f = cmd->files; f->name && at < size; f++)
        at +=
            (size_t)snprintf(text + at, size - at, f->flags & CLI_FILE_MAYBE ? " [%s%s]" : " %s%s",
                             f->name, f->flags & CLI_FILE_MANY ? "..." : "");
    if (at < size) (void)snprintf(text + at, size - at, " [options]");
}

/* "  --name METAVAR     help", wrapped. */
static void put_entry(FILE *out, const char *left, const char *help, const char *def)
{
    char *text = def ? cli_format("%s [%s]", help, def) : cli_format("%s", help);
    char *rest = text;
    const int room = WIDTH - OPT_COLUMN;
    int col = fprintf(out, "  %s", left);

    if (col >= OPT_COLUMN) {
        (void)fputc('\n', out);
        col = 0;
    }
    (void)fprintf(out, "%*s", OPT_COLUMN - col, "");
    /* The first line stands beside the name, the others under it. */
    if ((int)strlen(rest) > room) {
        int cut = room;

        while (cut > 0 && rest[cut] != ' ')
            cut--;
        if (cut > 0) {
            (void)fprintf(out, "%.*s\n", cut, rest);
            cli_wrap(out, rest + cut + 1, OPT_COLUMN, WIDTH);
            free(text);
            return;
        }
    }
    (void)fprintf(out, "%s\n", rest);
    free(text);
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

void cli_help(FILE *out)
{
    (void)fputs("octet takes a trained network and returns a smaller, faster one.\n\n"
                "usage: octet COMMAND FILE... [options]\n\ncommands:\n",
                out);
    for (int i = 0; cli_command_at(i); i++)
        put_entry(out, cli_command_at(i)->name, cli_command_at(i)->help, NULL);
    put_entry(out, "help COMMAND", "show the options of a command, with examples", NULL);
    (void)fputs("\noptions of every command:\n", out);
    put_opts(out, cli_common_opts());
    put_entry(out, "--version", "show the version and what this machine has", NULL);
    (void)fputs("\nfirst steps:\n", out);
    for (int i = 0; cli_command_at(i); i++)
        if (cli_command_at(i)->examples->line)
            (void)fprintf(out, "  octet %s\n", cli_command_at(i)->examples->line);
    (void)fputs("\nexit status: 0 done, 1 the work failed, 2 what was typed is wrong\n", out);
}

void cli_help_command(FILE *out, const cli_command *cmd)
{
    char usage[256];

    cli_usage_line(cmd, usage, sizeof(usage));
    (void)fprintf(out, "octet %s: %s\n\nusage: %s\n", cmd->name, cmd->help, usage);
    if (cmd->about) {
        (void)fputc('\n', out);
        cli_wrap(out, cmd->about, 0, WIDTH);
    }
    if (cmd->files->name) (void)fputs("\nfiles:\n", out);
    for (const cli_file *f = cmd->files; f->name; f++)
        put_entry(out, f->name, f->help, NULL);
    if (cmd->opts->kind) (void)fputs("\noptions:\n", out);
    put_opts(out, cmd->opts);
    (void)fputs("\noptions of every command:\n", out);
    put_opts(out, cli_common_opts());
    (void)fputs("\nexamples:\n", out);
    for (const cli_example *e = cmd->examples; e->line; e++) {
        cli_wrap(out, e->what, 2, WIDTH);
        (void)fprintf(out, "    octet %s\n", e->line);
    }
}
