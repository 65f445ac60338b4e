/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, memory and clock, as the kernel and the control groups tell. */
#include "base/machine.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
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

/* DIR/NAME's first line. */
static bool read_file(const char *dir, const char *name, char line[64])
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    return n > 0 && (size_t)n < sizeof(path) && read_line(path, line, 64);
}

#define NO_LIMIT 1e300

/* A limit that the control group at `dir` sets itself, by the files of one version. */
typedef double (*group_limit)(const char *dir);

static double memory_v2(const char *dir)
{
    char line[64];
    double v;

    if (!read_file(dir, "memory.max", line)) return NO_LIMIT;
    return sscanf(line, "%lf", &v) == 1 && v > 0 ? v : NO_LIMIT; /* it may be "max" */
}

static double memory_v1(const char *dir)
{
    char line[64];
    double v;

    if (!read_file(dir, "memory.limit_in_bytes", line)) return NO_LIMIT;
    return sscanf(line, "%lf", &v) == 1 && v > 0 ? v : NO_LIMIT;
}

static double cpu_v2(const char *dir)
{
    char line[64];
    double quota, period;

    if (!read_file(dir, "cpu.max", line)) return NO_LIMIT;
    if (sscanf(line, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0) return NO_LIMIT;
    return quota / period;
}

static double cpu_v1(const char *dir)
{
    char line[64];
    double quota, period;

    if (!read_file(dir, "cpu.cfs_quota_us", line)) return NO_LIMIT;
    if (sscanf(line, "%lf", &quota) != 1 || quota <= 0) return NO_LIMIT; /* -1: none */
    if (!read_file(dir, "cpu.cfs_period_us", line)) return NO_LIMIT;
    return sscanf(line, "%lf", &period) == 1 && period > 0 ? quota / period : NO_LIMIT;
}

/* Where a hierarchy of groups is mounted; version 2's has no controller's name. */
typedef struct hierarchy {
    const char *controller, *mount;
    group_limit limit;
} hierarchy;

static const hierarchy memory_groups[] = {
    {"", "/sys/fs/cgroup", memory_v2},
    {"", "/sys/fs/cgroup/unified", memory_v2},
    {"memory", "/sys/fs/cgroup/memory", memory_v1},
    {0},
};

static const hierarchy cpu_groups[] = {
    {"", "/sys/fs/cgroup", cpu_v2},
    {"", "/sys/fs/cgroup/unified", cpu_v2},
    {"cpu", "/sys/fs/cgroup/cpu", cpu_v1},
    {0},
};

/* The least limit of `group` and the groups around it. Inside a container only "/" may exist. */
static double limit_of_group(const char *root, const hierarchy *h, const char *group)
{
    char dir[PATH_MAX];
    double limit = NO_LIMIT;
    const int mount_len = snprintf(dir, sizeof(dir), "%s%s", root, h->mount);
    const int len = snprintf(dir, sizeof(dir), "%s%s%s", root, h->mount, group);

    if (len < 0 || (size_t)len >= sizeof(dir)) return limit;
    for (;;) {
        const double v = h->limit(dir);
        char *slash = strrchr(dir + mount_len, '/');

        limit = OCT_MIN(limit, v);
        if (!slash) return limit;
        *slash = '\0';
    }
}

static bool has_controller(const char *list, const char *name)
{
    const size_t len = strlen(name);

    if (!len) return !*list;
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, len) && (!p[len] || p[len] == ',')) return true;
    }
    return false;
}

/* The least limit that the control groups of this process set. */
static double cgroup_limit(const char *root, const hierarchy *hierarchies)
{
    char line[PATH_MAX];
    double limit = NO_LIMIT;
    FILE *f;

    snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    f = fopen(line, "re");
    if (!f) return limit;
    while (fgets(line, sizeof(line), f)) { /* ID:CONTROLLERS:/GROUP */
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group) continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        for (const hierarchy *h = hierarchies; h->mount; h++) {
            if (!has_controller(controllers + 1, h->controller)) continue;
            limit = fmin(limit, limit_of_group(root, h, group));
        }
    }
    fclose(f);
    return limit;
}

/* The lowest number in a CPU's list of siblings: the name of its physical core. */
static int first_sibling(const char *root, int cpu)
{
    char path[PATH_MAX], line[64];
    int first = cpu;

    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             root, cpu);
    if (read_line(path, line, sizeof(line)) && sscanf(line, "%d", &first) != 1) first = cpu;
    return first >= 0 && first < MAX_CPUS ? first : cpu;
}

/* Physical cores among the CPUs the process may run on; 0 if the kernel does not tell. */
static int allowed_cores(const char *root)
{
    bool seen[MAX_CPUS] = {false};
    const size_t size = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
    int n = 0;

    if (set && !sched_getaffinity(0, size, set)) {
        for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
            int core;

            if (!CPU_ISSET_S((size_t)cpu, size, set)) continue;
            core = first_sibling(root, cpu);
            n += !seen[core];
            seen[core] = true;
        }
    }
    CPU_FREE(set);
    return n;
}

int32_t oct_machine_cores_in(const char *root)
{
    const double quota = cgroup_limit(root, cpu_groups);
    int n = allowed_cores(root);

    if (n < 1) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (quota < n) n = (int)ceil(quota);
    return OCT_MAX(n, 1);
}

size_t oct_machine_memory_in(const char *root)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    const double limit = cgroup_limit(root, memory_groups);
    const size_t physical =
        pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : SIZE_MAX / 2;

    return limit < (double)physical ? (size_t)limit : physical;
}

int32_t oct_machine_cores(void)
{
    return oct_machine_cores_in("");
}

size_t oct_machine_memory(void)
{
    return oct_machine_memory_in("");
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
