/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages, from the tables: octet(1), and one for each command. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help/values.h"

/* Text as roff: backslashes, dashes that users copy, and dots or quotes at the start of a line. */
static void put(FILE *out, const char *text)
{
    bool line_start = true;

    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) (void)fputs("\\&", out);
        line_start = *text == '\n';
        if (*text == '\\')
            (void)fputs("\\e", out);
        else if (*text == '-')
            (void)fputs("\\-", out);
        else
            (void)fputc(*text, out);
    }
}

/* Words of running text, in lines of reasonable length. */
static void put_words(FILE *out, const char *text)
{
    enum { LINE = 72 };
    size_t col = 0;

    while (*text) {
        const size_t len = strcspn(text, " \n");
        char *word = cli_format("%.*s", (int)len, text);

        if (len) {
            if (col) (void)fputc(col + len > LINE ? '\n' : ' ', out);
            col = col + len > LINE ? len : col + len + 1;
            put(out, word);
        }
        free(word);
        text += len + (text[len] != '\0');
    }
}

/* Paragraphs are split by empty lines in the tables' text. */
static void put_about(FILE *out, const char *text)
{
    for (;;) {
        const char *end = strstr(text, "\n\n");
        const size_t len = end ? (size_t)(end - text) : strlen(text);
        char *part = cli_format("%.*s", (int)len, text);

        put_words(out, part);
        free(part);
        (void)fputc('\n', out);
        if (!end) return;
        (void)fputs(".PP\n", out);
        text = end + 2;
    }
}

static void put_opts(FILE *out, const cli_opt *opts)
{
    for (const cli_opt *o = opts; o->kind; o++) {
        char *help = cli_opt_help(o);

        (void)fputs(".TP\n", out);
        if (o->letter) (void)fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
        (void)fputs("\\fB\\-\\-", out);
        put(out, o->name);
        (void)fputs("\\fR", out);
        if (o->metavar) {
            (void)fputs(" \\fI", out);
            put(out, o->metavar);
            (void)fputs("\\fR", out);
        }
        (void)fputc('\n', out);
        put_words(out, help);
        if (o->def || o->usual) {
            (void)fputs(" (default: ", out);
            put(out, o->def ? o->def : o->usual);
            (void)fputs(")", out);
        }
        (void)fputs(".\n", out);
        free(help);
    }
}

/* An example in lines that are kept as they are. */
static void put_example(FILE *out, const cli_example *e)
{
    (void)fputs(".PP\n", out);
    put(out, e->what);
    (void)fputs(":\n.PP\n.RS 4\n.nf\noctet ", out);
    put(out, e->line);
    (void)fputs("\n.fi\n.RE\n", out);
}

static void put_title(FILE *out, const char *name)
{
    (void)fputs(".\\\" Written by the program itself: octet --man\n.TH ", out);
    for (const char *p = name; *p; p++)
        (void)fputc(toupper((unsigned char)*p), out);
    (void)fprintf(out, " 1 \"\" \"octet %s\" \"User Commands\"\n.SH NAME\n", oct_version());
    put(out, name);
    (void)fputs(" \\- ", out);
}

static void put_exit_status(FILE *out)
{
    (void)fputs(".SH \"EXIT STATUS\"\n"
                ".TP\n0\nThe work is done.\n"
                ".TP\n1\nThe work failed; the reason is on standard error.\n"
                ".TP\n2\nWhat was typed is wrong: an unknown command, option or name,\n"
                "or a file that does not exist.\n",
                out);
}

static void put_synopsis(FILE *out, const cli_command *cmd)
{
    (void)fprintf(out, ".SH SYNOPSIS\n.B octet %s\n", cmd->name);
    for (const cli_file *f = cmd->files; f->name; f++)
        (void)fprintf(out, f->flags & CLI_FILE_MAYBE ? "[\\fI%s\\fR]%s " : "\\fI%s\\fR%s ", f->name,
                      f->flags & CLI_FILE_MANY ? "..." : "");
    (void)fputs("[\\fIoptions\\fR]\n", out);
}

/* octet-COMMAND(1) */
static void man_command(FILE *out, const cli_command *cmd)
{
    char *name = cli_format("octet-%s", cmd->name);

    put_title(out, name);
    put(out, cmd->help);
    (void)fputc('\n', out);
    put_synopsis(out, cmd);
    (void)fputs(".SH DESCRIPTION\n", out);
    put_about(out, cmd->about ? cmd->about : cmd->help);
    if (cmd->files->name) (void)fputs(".SH ARGUMENTS\n", out);
    for (const cli_file *f = cmd->files; f->name; f++) {
        (void)fprintf(out, ".TP\n\\fI%s\\fR\n", f->name);
        put_words(out, f->help);
        (void)fputs(".\n", out);
    }
    if (cmd->opts->kind) (void)fputs(".SH OPTIONS\n", out);
    put_opts(out, cmd->opts);
    (void)fputs(".SH \"OPTIONS OF EVERY COMMAND\"\n", out);
    put_opts(out, cli_common_opts());
    (void)fputs(".SH EXAMPLES\n", out);
    for (const cli_example *e = cmd->examples; e->line; e++)
        put_example(out, e);
    put_exit_status(out);
    (void)fputs(".SH \"SEE ALSO\"\n.BR octet (1)\n", out);
    free(name);
}

/* octet(1): the commands, and further reading. */
static void man_program(FILE *out)
{
    put_title(out, "octet");
    (void)fputs("make trained networks smaller and faster\n"
                ".SH SYNOPSIS\n.B octet\n\\fICOMMAND\\fR \\fIFILE\\fR... [\\fIoptions\\fR]\n"
                ".SH DESCRIPTION\n"
                "octet takes a trained network (an ONNX file) and returns a smaller, faster one,\n"
                "with proof of what it cost. It quantizes to INT8, for its own runtime and for\n"
                "others, simplifies, shows what is in a network, runs it on the CPU in float and\n"
                "in integers, measures it, and scores it on labelled pictures.\n"
                ".SH COMMANDS\n",
                out);
    for (int i = 0; cli_command_at(i); i++) {
        (void)fprintf(out, ".TP\n.BR octet\\-%s (1)\n", cli_command_at(i)->name);
        put_words(out, cli_command_at(i)->help);
        (void)fputc('\n', out);
    }
    (void)fputs(".PP\n\\fBoctet help\\fR \\fICOMMAND\\fR shows the same in short.\n"
                ".SH \"OPTIONS OF EVERY COMMAND\"\n",
                out);
    put_opts(out, cli_common_opts());
    (void)fputs(".SH \"OPTIONS WITHOUT A COMMAND\"\n"
                ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\n"
                "Show the version, the libraries and what this machine has.\n"
                ".TP\n\\fB\\-\\-man\\fR [\\fICOMMAND\\fR]\nPrint this page, or that of a command.\n"
                ".TP\n\\fB\\-\\-completion\\fR \\fIbash|zsh|fish\\fR\n"
                "Print the completion for a shell.\n.SH EXAMPLES\n",
                out);
    for (int i = 0; cli_command_at(i); i++)
        if (cli_command_at(i)->examples->line) put_example(out, cli_command_at(i)->examples);
    put_exit_status(out);
    (void)fputs(".SH \"SEE ALSO\"\n", out);
    for (int i = 0; cli_command_at(i); i++)
        (void)fprintf(out, ".BR octet\\-%s (1)%s\n", cli_command_at(i)->name,
                      cli_command_at(i + 1) ? "," : "");
}

void cli_man(FILE *out, const cli_command *cmd)
{
    if (cmd)
        man_command(out, cmd);
    else
        man_program(out);
}
