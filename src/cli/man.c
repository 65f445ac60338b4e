/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, from the tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Text as roff: backslashes, dashes that people will copy, and dots or quotes that open a line. */
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
        put_words(out, o->help);
        if (o->def || o->usual) {
            (void)fputs(" (default: ", out);
            put(out, o->def ? o->def : o->usual);
            (void)fputs(")", out);
        }
        (void)fputs(".\n", out);
    }
}

static void put_command(FILE *out, const cli_command *cmd)
{
    (void)fprintf(out, ".SS \"octet %s", cmd->name);
    for (const cli_file *f = cmd->files; f->name; f++)
        (void)fprintf(out, f->flags & CLI_FILE_MAYBE ? " [%s]" : " %s%s", f->name,
                      f->flags & CLI_FILE_MANY ? "..." : "");
    (void)fputs(" [options]\"\n", out);
    (void)fputs("To ", out);
    put(out, cmd->help);
    (void)fputs(".\n", out);
    if (cmd->about) {
        (void)fputs(".PP\n", out);
        put_about(out, cmd->about);
    }
    for (const cli_file *f = cmd->files; f->name; f++) {
        (void)fprintf(out, ".TP\n\\fI%s\\fR\n", f->name);
        put_words(out, f->help);
        (void)fputs(".\n", out);
    }
    put_opts(out, cmd->opts);
    for (const cli_example *e = cmd->examples; e->line; e++) {
        (void)fputs(".PP\n", out);
        put(out, e->what);
        (void)fputs(":\n.PP\n.RS 4\n.nf\noctet ", out);
        put(out, e->line);
        (void)fputs("\n.fi\n.RE\n", out);
    }
}

void cli_man(FILE *out)
{
    (void)fprintf(out,
                  ".\\\" Written by the program itself: octet --man\n"
                  ".TH OCTET 1 \"\" \"octet %s\" \"User Commands\"\n"
                  ".SH NAME\noctet \\- make trained networks smaller and faster\n"
                  ".SH SYNOPSIS\n.B octet\n\\fICOMMAND\\fR \\fIFILE\\fR... [\\fIoptions\\fR]\n"
                  ".SH DESCRIPTION\n"
                  "octet reads trained networks (ONNX), shows what is in them,\n"
                  "simplifies, runs and measures them.\n.SH COMMANDS\n",
                  oct_version());
    for (int i = 0; cli_command_at(i); i++)
        put_command(out, cli_command_at(i));
    (void)fputs(".SH \"OPTIONS OF EVERY COMMAND\"\n", out);
    put_opts(out, cli_common_opts());
    (void)fputs(".SH \"EXIT STATUS\"\n"
                ".TP\n0\nThe work is done.\n"
                ".TP\n1\nThe work failed; the reason is on standard error.\n"
                ".TP\n2\nWhat was typed is wrong: an unknown command, option or name,\n"
                "or a file that does not exist.\n",
                out);
}
