/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: told apart by number and start, since numbers are used again. */
#include "tune/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MACHINE_TEXT = 96 };

/* One boot of a kernel and one namespace: a process number means the same process there. */
static void machine_of(char text[MACHINE_TEXT])
{
    char boot[48] = "unknown", space[48] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);

    if (f) {
        if (fscanf(f, "%40s", boot) != 1) (void)snprintf(boot, sizeof(boot), "unknown");
        (void)fclose(f);
    }
    space[n < 0 ? 0 : n] = '\0';
    (void)snprintf(text, MACHINE_TEXT, "%s/%s", boot, space);
}

/* When a process began, in ticks since boot; 0: there is none. */
static unsigned long long start_of(long pid)
{
    char path[64], line[1024];
    unsigned long long start = 0;
    const char *at;
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (!(f = fopen(path, "r"))) return 0;
    n = fread(line, 1, sizeof(line) - 1, f);
    (void)fclose(f);
    line[n] = '\0';
    /* "PID (NAME) STATE ..": the name may hold anything; the start is the 20th word after it. */
    if (!(at = strrchr(line, ')')) || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X') return 0;
    for (int word = 0; at && word < 20; word++)
        at = strchr(at + 1, ' ');
    if (at) start = strtoull(at + 1, NULL, 10);
    return start;
}

void oct_owner_self(char text[OCT_OWNER_TEXT])
{
    char machine[MACHINE_TEXT];

    machine_of(machine);
    (void)snprintf(text, OCT_OWNER_TEXT, "%s %ld %llu", machine, (long)getpid(),
                   start_of((long)getpid()));
}

oct_owner_state oct_owner_look(const char *text)
{
    char machine[MACHINE_TEXT];
    unsigned long long start = 0;
    size_t len;
    long pid = 0;

    machine_of(machine);
    len = strlen(machine);
    if (strncmp(text, machine, len) != 0 || text[len] != ' ') return OCT_OWNER_ELSEWHERE;
    if (sscanf(text + len, " %ld %llu", &pid, &start) != 2 || pid <= 0) return OCT_OWNER_DEAD;
    return start_of(pid) == start ? OCT_OWNER_ALIVE : OCT_OWNER_DEAD;
}
