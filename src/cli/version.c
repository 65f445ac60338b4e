/* SPDX-License-Identifier: Apache-2.0 */
/* --version: what this program is and what this machine can do. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"

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

void cli_version(FILE *out)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char *line = NULL, *v;
    size_t cap = 0;
    bool model = false, flags = false;

    (void)fprintf(out, "octet %s\n", oct_version());
    while (f && !(model && flags) && getline(&line, &cap, f) > 0) {
        if (!model && (v = value_of(line, "model name"))) {
            cli_text_clean(v);
            (void)fprintf(out, "CPU: %s\n", v);
            model = true;
        } else if (!flags && ((v = value_of(line, "flags")) || (v = value_of(line, "Features")))) {
            (void)fputs("instruction sets:", out);
            for (size_t i = 0; i < CLI_COUNT(features); i++)
                if (has_word(v, features[i])) (void)fprintf(out, " %s", features[i]);
            (void)fputc('\n', out);
            flags = true;
        }
    }
    free(line);
    if (f) (void)fclose(f);
}
