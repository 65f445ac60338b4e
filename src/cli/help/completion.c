/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for bash, from the tables. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/help/values.h"

/* "--name", or "--name|-o" in a pattern. */
static void put_option(FILE *out, const cli_opt *o, const char *between)
{
    (void)fprintf(out, "--%s", o->name);
    if (o->letter) (void)fprintf(out, "%s-%c", between, o->letter);
}

/* What follows one option: "    'quantize --target') _octet_words 'octet ort' ;;" */
static void put_value(FILE *out, const char *cmd, const cli_opt *o)
{
    const unsigned kinds = cli_value_kinds(o);
    char *words;

    if (!o->metavar) return;
    (void)fprintf(out, "    '%s --%s'", cmd, o->name);
    if (o->letter) (void)fprintf(out, "|'%s -%c'", cmd, o->letter);
    (void)fputc(')', out);
    if (kinds & CLI_VALUE_WORDS) {
        words = cli_value_words(o, " ");
        (void)fprintf(out, " _octet_words%s '%s';", kinds & CLI_VALUE_MANY ? " -m" : "", words);
        free(words);
    }
    if (kinds & CLI_VALUE_FILE)
        (void)fputs(" _octet_files -f;", out);
    else if (kinds & CLI_VALUE_DIR)
        (void)fputs(" _octet_files -d;", out);
    (void)fputs(" return ;;\n", out);
}

static void put_values(FILE *out)
{
    (void)fputs("    case \"$cmd $prev\" in\n", out);
    for (int i = 0; cli_command_at(i); i++)
        for (const cli_opt *o = cli_command_at(i)->opts; o->kind; o++)
            put_value(out, cli_command_at(i)->name, o);
    (void)fputs("    esac\n    case $prev in\n", out);
    for (const cli_opt *o = cli_common_opts(); o->kind; o++)
        if (o->metavar) (void)fprintf(out, "    --%s) return ;;\n", o->name);
    (void)fputs("    esac\n", out);
}

static void put_options(FILE *out)
{
    (void)fputs("    case $cmd in\n", out);
    for (int i = 0; cli_command_at(i); i++) {
        (void)fprintf(out, "    %s) words='", cli_command_at(i)->name);
        for (const cli_opt *o = cli_command_at(i)->opts; o->kind; o++) {
            put_option(out, o, " ");
            (void)fputc(' ', out);
        }
        for (const cli_opt *o = cli_common_opts(); o->kind; o++)
            (void)fprintf(out, "%s--%s", o == cli_common_opts() ? "" : " ", o->name);
        (void)fprintf(out, "' files=%s ;;\n", cli_command_at(i)->files->name ? "yes" : "");
    }
    (void)fputs("    *) return ;;\n    esac\n", out);
}

void cli_completion_bash(FILE *out)
{
    (void)fputs("# bash completion for octet; written by the program itself: "
                "octet --completion bash\n\n"
                "# Words; with -m several, split by commas.\n"
                "_octet_words()\n{\n"
                "    local before=\n"
                "    if [[ $1 == -m ]]; then\n"
                "        shift\n"
                "        [[ $cur == *,* ]] && before=${cur%,*},\n"
                "    fi\n"
                "    mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$1\" -- "
                "\"${cur#\"$before\"}\")\n}\n\n"
                "# Files (-f) or folders (-d), beside the words there are already.\n"
                "_octet_files()\n{\n"
                "    local found\n"
                "    mapfile -t found < <(compgen \"$1\" -- \"$cur\")\n"
                "    COMPREPLY+=(\"${found[@]}\")\n"
                "    compopt -o filenames 2>/dev/null\n}\n\n"
                "_octet()\n{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    local cmd=${COMP_WORDS[1]} words= files=\n"
                "    COMPREPLY=()\n"
                "    # --option=value comes in three words\n"
                "    if [[ $cur == = ]]; then\n"
                "        cur=\n"
                "    elif [[ $prev == = ]]; then\n"
                "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                "    fi\n"
                "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
                "        _octet_words '",
                out);
    for (int i = 0; cli_command_at(i); i++)
        (void)fprintf(out, "%s ", cli_command_at(i)->name);
    (void)fputs("help --help --version --man --completion'\n        return\n    fi\n"
                "    case $cmd in\n"
                "    --completion) _octet_words 'bash zsh fish'; return ;;\n"
                "    help|--help|--man) _octet_words '",
                out);
    for (int i = 0; cli_command_at(i); i++)
        (void)fprintf(out, "%s%s", i ? " " : "", cli_command_at(i)->name);
    (void)fputs("'; return ;;\n    esac\n", out);
    put_values(out);
    put_options(out);
    (void)fputs("    if [[ $cur == -* ]]; then\n"
                "        _octet_words \"$words\"\n"
                "    elif [[ -n $files ]]; then\n"
                "        _octet_files -f\n"
                "    fi\n}\n"
                "complete -F _octet octet\n",
                out);
}
