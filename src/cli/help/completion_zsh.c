/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for zsh, from the tables: specifications for its _arguments. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help/values.h"

/* Text in single quotes; characters that _arguments interprets are escaped. */
static void put(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else if (strchr(special, *text))
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

/* ":message:action" */
static void put_value(FILE *out, const cli_opt *o)
{
    const unsigned kinds = cli_value_kinds(o);
    char *words = cli_value_words(o, " ");

    (void)fputc(':', out);
    put(out, o->metavar, ":\\");
    (void)fputc(':', out);
    if (kinds & CLI_VALUE_MANY)
        (void)fprintf(out, "_sequence compadd - %s", words);
    else if ((kinds & CLI_VALUE_WORDS) && (kinds & CLI_VALUE_FILE))
        (void)fprintf(out, "{compadd - %s; _files}", words);
    else if (kinds & CLI_VALUE_WORDS)
        (void)fprintf(out, "(%s)", words);
    else if (kinds & CLI_VALUE_FILE)
        (void)fputs("_files", out);
    else if (kinds & CLI_VALUE_DIR)
        (void)fputs("_files -/", out);
    else
        (void)fputc(' ', out);
    free(words);
}

/* One or two specifications, '--name=[help]:METAVAR:action' \ */
static void put_opt(FILE *out, const cli_opt *o, bool short_form)
{
    (void)fprintf(out, "            '%s", o->kind == CLI_LIST ? "*" : "");
    if (short_form)
        (void)fprintf(out, "-%c", o->letter);
    else
        (void)fprintf(out, "--%s%s", o->name, o->metavar ? "=" : "");
    (void)fputc('[', out);
    put(out, o->help, "[]\\");
    (void)fputc(']', out);
    if (o->metavar) put_value(out, o);
    (void)fputs("' \\\n", out);
    if (o->letter && !short_form) put_opt(out, o, true);
}

static void put_commands(FILE *out)
{
    (void)fputs("    commands=(\n", out);
    for (int i = 0; cli_command_at(i); i++) {
        (void)fprintf(out, "        '%s:", cli_command_at(i)->name);
        put(out, cli_command_at(i)->help, ":\\");
        (void)fputs("'\n", out);
    }
    (void)fputs("        'help:show the options of a command, with examples'\n    )\n", out);
}

void cli_completion_zsh(FILE *out)
{
    (void)fputs("#compdef octet\n"
                "# zsh completion for octet; written by the program itself: "
                "octet --completion zsh\n\n"
                "_octet() {\n    local -a commands\n",
                out);
    put_commands(out);
    (void)fputs("    if (( CURRENT == 2 )); then\n"
                "        _describe -t commands command commands\n"
                "        [[ $PREFIX == -* ]] && compadd - --help --version --man --completion\n"
                "        return\n    fi\n"
                "    local cmd=$words[2]\n"
                "    shift words\n    (( CURRENT-- ))\n"
                "    case $cmd in\n"
                "    help|--help|--man) _describe -t commands command commands ;;\n"
                "    --completion) compadd - bash zsh fish ;;\n",
                out);
    for (int i = 0; cli_command_at(i); i++) {
        const cli_command *cmd = cli_command_at(i);

        (void)fprintf(out, "    %s)\n        _arguments -s -S : \\\n", cmd->name);
        for (const cli_opt *o = cmd->opts; o->kind; o++)
            put_opt(out, o, false);
        for (const cli_opt *o = cli_common_opts(); o->kind; o++)
            put_opt(out, o, false);
        (void)fprintf(out, "            %s ;;\n",
                      cmd->files->name ? "'*:file:_files'" : "&& return");
    }
    (void)fputs("    esac\n}\n\n"
                "# Read by hand it is called later, as an autoloaded function at once.\n"
                "if [[ $funcstack[1] == _octet ]]; then\n"
                "    _octet \"$@\"\nelse\n    compdef _octet octet\nfi\n",
                out);
}
