/* SPDX-License-Identifier: Apache-2.0 */
/* --version: this program, the libraries it uses and the instruction sets of this machine. */
#include "cli/cli.h"
#include "cli/cpu.h"

void cli_version(FILE *out)
{
    oct_machine_info m = {.struct_size = sizeof(m)};
    char version[32];
    cli_library lib;
    cli_cpu cpu;

    oct_machine(&m);
    cli_cpu_read(&cpu);
    (void)fprintf(out, "octet %s\nlibraries:", oct_version());
    for (int i = 0; cli_library_at(i, &lib, version); i++)
        (void)fprintf(out, "%s %s %s", i ? "," : "", lib.name, lib.version);
    (void)fprintf(out, "\nCPU: %s\ninstruction sets:", cpu.model[0] ? cpu.model : "unknown");
    for (int i = 0; i < cpu.n_sets; i++)
        (void)fprintf(out, " %s", cpu.sets[i]);
    (void)fprintf(out, "\nkernels: float %s, integer %s\n", m.float_set, m.int8_set);
}
