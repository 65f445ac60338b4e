/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's name and instruction sets; the libraries that octet uses. */
#include "cli/cpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/table.h"
#include "cli/versions.h" /* made by Meson */

/* The instruction sets that decide which kernels run, as the kernel of Linux names them. */
static const char *const features[] = {
    "sse4_1",   "avx",      "avx2",        "fma",         "avx_vnni",
    "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_int8", "amx_bf16", "asimd",       "asimddp",     "sve",
};

/* Is `word` one of the words of `line`? */
static bool has_word(const char *line, const char *word)
{
    const size_t len = strlen(word);

    for (const char *p = line; (p = strstr(p, word)); p += len) {
        const char after = p[len];

        if ((p == line || isspace((unsigned char)p[-1])) &&
            (after == '\0' || isspace((unsigned char)after)))
            return true;
    }
    return false;
}

/* The value of "key : value" in a line of /proc/cpuinfo, or NULL. */
static char *value_of(char *line, const char *key)
{
    const size_t len = strlen(key);
    char *colon = strchr(line, ':');

    if (!colon || strncmp(line, key, len) || !isspace((unsigned char)line[len])) return NULL;
    colon[strcspn(colon, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " ");
}

void cli_cpu_read(cli_cpu *cpu)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char *line = NULL, *v;
    size_t cap = 0;

    *cpu = (cli_cpu){0};
    while (f && !(cpu->model[0] && cpu->n_sets) && getline(&line, &cap, f) > 0) {
        if (!cpu->model[0] && (v = value_of(line, "model name"))) {
            cli_text_clean(v);
            (void)snprintf(cpu->model, sizeof(cpu->model), "%s", v);
        } else if (!cpu->n_sets &&
                   ((v = value_of(line, "flags")) || (v = value_of(line, "Features")))) {
            for (size_t i = 0; i < CLI_COUNT(features); i++)
                if (has_word(v, features[i])) cpu->sets[cpu->n_sets++] = features[i];
        }
    }
    free(line);
    if (f) (void)fclose(f);
}

bool cli_library_at(int i, cli_library *lib, char version[32])
{
    static const cli_library built_with[] = {CLI_LIBRARIES};
    oct_machine_info m = {.struct_size = sizeof(m)};

    if (i < 0 || (size_t)i > CLI_COUNT(built_with)) return false;
    if (i > 0) {
        *lib = built_with[i - 1];
        return true;
    }
    oct_machine(&m);
    (void)snprintf(version, 32, "%d.%d.%d", (int)m.onednn_major, (int)m.onednn_minor,
                   (int)m.onednn_patch);
    *lib = (cli_library){"oneDNN", version};
    return true;
}

/* --- other processes --- */

double cli_load(void)
{
    double load;

    return getloadavg(&load, 1) == 1 ? load : -1;
}

void cli_busy_text(double load, char *text, size_t size)
{
    oct_machine_info m = {.struct_size = sizeof(m)};

    oct_machine(&m);
    *text = '\0';
    if (load >= 0.5 * m.cores)
        (void)snprintf(text, size, "Other programs keep this machine busy (load %.1f on %d core%s)",
                       load, (int)m.cores, m.cores == 1 ? "" : "s");
}

void cli_note_busy(const cli *c)
{
    char text[128];

    cli_busy_text(c->load, text, sizeof(text));
    text[0] = (char)tolower((unsigned char)text[0]);
    if (*text) cli_note(c, "note: %s: times are longer than they need be", text);
}
