/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for fish, from the tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help/values.h"

/* Text in single quotes. */
static void put_quoted(FILE *out, const char *text)
{
    (void)fputc('\'', out);
    for (; *text; text++) {
        if (strchr("'\\", *text)) (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

static void put_value(FILE *out, const cli_opt *o)
{
    const unsigned kinds = cli_value_kinds(o);
    char *words;

    /* Where files may follow they are offered too; otherwise only the words would be. */
    (void)fputs(kinds & CLI_VALUE_FILE ? " -r -F" : " -x", out);
    if (kinds & CLI_VALUE_WORDS) {
        words = cli_value_words(o, " ");
        (void)fprintf(out, " -a '%s'", words);
        free(words);
    } else if (kinds == CLI_VALUE_DIR) {
        (void)fputs(" -a '(__fish_complete_directories)'", out);
    }
}

static void put_opt(FILE *out, const char *cmd, const cli_opt *o)
{
    (void)fprintf(out, "complete -c octet -n '__fish_seen_subcommand_from %s' -l %s", cmd, o->name);
    if (o->letter) (void)fprintf(out, " -s %c", o->letter);
    if (o->metavar) put_value(out, o);
    (void)fputs(" -d ", out);
    put_quoted(out, o->help);
    (void)fputc('\n', out);
}

static void put_words(FILE *out, const char *when)
{
    for (int i = 0; cli_command_at(i); i++) {
        (void)fprintf(out, "complete -c octet -n %s -a %s -d ", when, cli_command_at(i)->name);
        put_quoted(out, cli_command_at(i)->help);
        (void)fputc('\n', out);
    }
}

void cli_completion_fish(FILE *out)
{
    (void)fputs("# fish completion for octet; written by the program itself: "
                "octet --completion fish\n"
                "complete -c octet -f\n",
                out);
    put_words(out, "__fish_use_subcommand");
    (void)fputs("complete -c octet -n __fish_use_subcommand -a help "
                "-d 'show the options of a command, with examples'\n"
                "complete -c octet -n __fish_use_subcommand -l version -s V -d 'show the version'\n"
                "complete -c octet -n __fish_use_subcommand -l help -s h -d 'show all commands'\n"
                "complete -c octet -n __fish_use_subcommand -l man -d 'print the manual page'\n"
                "complete -c octet -n __fish_use_subcommand -l completion -x -a 'bash zsh fish' "
                "-d 'print the completion for a shell'\n",
                out);
    put_words(out, "'__fish_seen_subcommand_from help'");
    for (int i = 0; cli_command_at(i); i++) {
        const cli_command *cmd = cli_command_at(i);

        if (cmd->files->name)
            (void)fprintf(out, "complete -c octet -n '__fish_seen_subcommand_from %s' -F\n",
                          cmd->name);
        for (const cli_opt *o = cmd->opts; o->kind; o++)
            put_opt(out, cmd->name, o);
        for (const cli_opt *o = cli_common_opts(); o->kind; o++)
            put_opt(out, cmd->name, o);
    }
}
