/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as the Linux kernel describes it, and the versions of the build. */
#ifndef CLI_CPU_H
#define CLI_CPU_H

#include "cli/cli.h"

#define CLI_MAX_SETS 16

typedef struct cli_cpu {
    char model[128];                /* "" if the kernel does not tell */
    const char *sets[CLI_MAX_SETS]; /* instruction sets that decide which kernels run */
    int n_sets;
} cli_cpu;

void cli_cpu_read(cli_cpu *cpu);

/* Do other processes use the cores? One sentence, or "". `load` is that at the start of the
 * command: later it includes the command's own. */
void cli_busy_text(double load, char *text, size_t size);
double cli_load(void); /* of the last minute; -1: the kernel does not tell */

/* For commands that print times: warns if the machine is busy. */
void cli_note_busy(const cli *c);

typedef struct cli_library {
    const char *name, *version;
} cli_library;

/* Library i; false beyond the end. oneDNN's version is that at run time, the others are those of
 * the build. */
bool cli_library_at(int i, cli_library *lib, char version[32]);

#endif
