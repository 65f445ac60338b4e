/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for bash, from the tables. */
#include "cli/cli.h"

static void put_opts(FILE *out, const cli_opt *opts)
{
    for (const cli_opt *o = opts; o->kind; o++)
        (void)fprintf(out, " --%s", o->name);
}

/* Options that take a value: what follows them is no option. */
static void put_valued(FILE *out, const cli_opt *opts, bool *first)
{
    for (const cli_opt *o = opts; o->kind; o++)
        if (o->metavar) {
            (void)fprintf(out, "%s--%s", *first ? "" : "|", o->name);
            *first = false;
        }
}

void cli_completion_bash(FILE *out)
{
    bool first = true;

    (void)fputs("# bash completion for octet; written by the program itself: "
                "octet --completion bash\n"
                "_octet()\n{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                "    COMPREPLY=()\n"
                "    if [[ $COMP_CWORD -eq 1 || ( $COMP_CWORD -eq 2 && $prev == help ) ]]; then\n"
                "        words=\"",
                out);
    for (int i = 0; cli_command_at(i); i++)
        (void)fprintf(out, "%s ", cli_command_at(i)->name);
    (void)fputs("help --help --version\"\n"
                "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "        return\n    fi\n"
                "    case $prev in\n    ",
                out);
    put_valued(out, cli_common_opts(), &first);
    for (int i = 0; cli_command_at(i); i++)
        put_valued(out, cli_command_at(i)->opts, &first);
    (void)fputs(") return ;; # its value: files by default\n    esac\n"
                "    [[ $cur == -* ]] || return\n"
                "    case ${COMP_WORDS[1]} in\n",
                out);
    for (int i = 0; cli_command_at(i); i++) {
        (void)fprintf(out, "    %s) words=\"", cli_command_at(i)->name);
        put_opts(out, cli_command_at(i)->opts);
        put_opts(out, cli_common_opts());
        (void)fputs("\" ;;\n", out);
    }
    (void)fputs("    esac\n"
                "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "}\n"
                "complete -o default -F _octet octet\n",
                out);
}
