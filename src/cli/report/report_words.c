/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a report: the command line, the machine, versions. */
#include <stdlib.h>
#include <string.h>

#include "cli/cpu.h"
#include "cli/report/report.h"

/* Adds to a text that is freed and made anew. */
static void append(char **text, const char *before, const char *s)
{
    char *longer = cli_format("%s%s%s", *text, before, s);

    free(*text);
    *text = longer;
}

char *cli_report_title(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t len = strlen(base);
    const bool has_end = len > 5 && strcmp(base + len - 5, ".onnx") == 0;

    return cli_format("%.*s", (int)(has_end ? len - 5 : len), base);
}

/* In quotes if a shell would interpret it. */
static void append_quoted(char **text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./=,:+@%";
    char quoted[2] = {0};

    append(text, " ", "");
    if (*word && strspn(word, plain) == strlen(word)) {
        append(text, "", word);
        return;
    }
    append(text, "", "'");
    for (; *word; word++) {
        quoted[0] = *word;
        append(text, "", *word == '\'' ? "'\\''" : quoted);
    }
    append(text, "", "'");
}

char *cli_report_command(const cli *c)
{
    char *text = cli_format("octet");

    for (char **word = c->words; *word; word++)
        append_quoted(&text, *word);
    return text;
}

char *cli_report_machine(const cli *c)
{
    oct_machine_info m = {.struct_size = sizeof(m)};
    cli_cpu cpu;
    char *text, *rest;

    oct_machine(&m);
    cli_cpu_read(&cpu);
    text = cli_format("%s", cpu.model[0] ? cpu.model : "unknown CPU");
    for (int i = 0; i < cpu.n_sets; i++)
        append(&text, i ? " " : "\ninstruction sets: ", cpu.sets[i]);
    rest = cli_format("\nkernels: float %s, integer %s; %d threads", m.float_set, m.int8_set,
                      (int)oct_ctx_threads(c->ctx));
    append(&text, "", rest);
    free(rest);
    return text;
}

char *cli_report_versions(void)
{
    char *text = cli_format("octet %s", oct_version());
    char version[32];
    cli_library lib;

    for (int i = 0; cli_library_at(i, &lib, version); i++) {
        append(&text, ", ", lib.name);
        append(&text, " ", lib.version);
    }
    return text;
}
