/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, memory and clock, as the kernel and the control groups tell. */
#include "base/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define MAX_CPUS 4096

/* The first line of a small file of the kernel's; false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    bool ok;

    if (!f) return false;
    ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* Bytes, from "max", "-1" (both: no limit) or a number. */
static double parse_bytes(const char *line)
{
    const double v = strtod(line, NULL);

    return v > 0 ? v : (double)SIZE_MAX;
}

/* CPUs, from version 2's "QUOTA PERIOD" or "max PERIOD". */
static double parse_cpu_max(const char *line)
{
    double quota, period;

    if (sscanf(line, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0) return MAX_CPUS;
    return quota / period;
}

/* Version 1 has quota and period in two files; 100 ms is the kernel's default period. */
static double parse_cfs_quota(const char *line)
{
    char period_line[64];
    double quota = strtod(line, NULL), period = 100000;

    if (quota <= 0) return MAX_CPUS;
    if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period_line, sizeof(period_line)))
        period = strtod(period_line, NULL);
    return period > 0 ? quota / period : MAX_CPUS;
}

/* One file that can hold a limit: of version 2 (controller "") or of a version 1 controller. */
typedef struct limit_file {
    const char *controller, *mount, *file;
    double (*parse)(const char *line);
} limit_file;

static const limit_file memory_files[] = {
    {"", "/sys/fs/cgroup", "memory.max", parse_bytes},
    {"", "/sys/fs/cgroup/unified", "memory.max", parse_bytes},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", parse_bytes},
};

static const limit_file cpu_files[] = {
    {"", "/sys/fs/cgroup", "cpu.max", parse_cpu_max},
    {"", "/sys/fs/cgroup/unified", "cpu.max", parse_cpu_max},
    {"cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", parse_cfs_quota},
};

/* The least limit in `group` and the groups around it. Inside a container only "/" may exist. */
static double limit_of_group(const limit_file *lf, const char *group, double limit)
{
    char dir[PATH_MAX], path[PATH_MAX], line[256];

    if (strlen(group) >= sizeof(dir)) return limit;
    strcpy(dir, group);
    for (;;) {
        char *slash = strrchr(dir, '/');
        const int n = snprintf(path, sizeof(path), "%s%s/%s", lf->mount, dir, lf->file);

        if (n > 0 && (size_t)n < sizeof(path) && read_line(path, line, sizeof(line)))
            limit = OCT_MIN(limit, lf->parse(line));
        if (!slash) return limit;
        *slash = '\0';
    }
}

static bool has_controller(const char *list, const char *name)
{
    const size_t len = strlen(name);

    if (!len) return !*list; /* version 2's line names none */
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, len) && (!p[len] || p[len] == ',')) return true;
    }
    return false;
}

/* The least limit that the control groups of this process set; `limit` if none does. */
static double cgroup_limit(const limit_file *files, size_t n_files, double limit)
{
    char line[PATH_MAX];
    FILE *f = fopen("/proc/self/cgroup", "re");

    if (!f) return limit;
    while (fgets(line, sizeof(line), f)) { /* ID:CONTROLLERS:/GROUP */
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group) continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        for (size_t i = 0; i < n_files; i++) {
            if (has_controller(controllers + 1, files[i].controller))
                limit = limit_of_group(&files[i], group, limit);
        }
    }
    fclose(f);
    return limit;
}

/* The lowest number in a CPU's list of siblings: the name of its physical core. */
static int first_sibling(int cpu)
{
    char path[128], line[256];
    int first = cpu;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    if (read_line(path, line, sizeof(line)) && sscanf(line, "%d", &first) != 1) first = cpu;
    return first >= 0 && first < MAX_CPUS ? first : cpu;
}

/* Physical cores among the CPUs the process may run on; 0 if the kernel does not tell. */
static int allowed_cores(void)
{
    bool seen[MAX_CPUS] = {false};
    const size_t size = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
    int n = 0;

    if (set && !sched_getaffinity(0, size, set)) {
        for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
            int core;

            if (!CPU_ISSET_S((size_t)cpu, size, set)) continue;
            core = first_sibling(cpu);
            n += !seen[core];
            seen[core] = true;
        }
    }
    CPU_FREE(set);
    return n;
}

int32_t oct_machine_cores(void)
{
    const double quota = cgroup_limit(cpu_files, OCT_COUNT(cpu_files), MAX_CPUS);
    int n = allowed_cores();

    if (n < 1) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (quota < n) n = (int)quota + (quota > (int)quota); /* rounded up */
    return OCT_MAX(n, 1);
}

size_t oct_machine_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    const size_t physical =
        pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : SIZE_MAX / 2;
    const double limit =
        cgroup_limit(memory_files, OCT_COUNT(memory_files), (double)(SIZE_MAX / 2));

    return limit < (double)physical ? (size_t)limit : physical;
}

size_t oct_machine_peak_rss(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage)) return 0;
    return (size_t)usage.ru_maxrss * 1024;
}

int64_t oct_time_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
