/* SPDX-License-Identifier: Apache-2.0 */
/* Cores and memory, also from made-up control groups. */
#include "tests/alloc.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"

/* Writes ROOT/PATH, making its folders. */
static void put_file(const char *root, const char *path, const char *text)
{
    char full[256];
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(full, 0777);
        *p = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void this_machine_makes_sense(void **state)
{
    const int64_t t0 = oct_time_ns();

    (void)state;
    assert_true(oct_machine_cores() >= 1 && oct_machine_cores() < 4096);
    assert_true(oct_machine_memory() > (size_t)64 << 20);
    assert_true(oct_machine_peak_rss() > 100000);
    assert_true(oct_time_ns() >= t0);
}

static void no_files_at_all_is_fine(void **state)
{
    char root[64];

    (void)state;
    make_folder(root);
    assert_true(oct_machine_cores_in(root) >= 1);
    assert_true(oct_machine_memory_in(root) >= oct_machine_memory());
    remove_folder(root);
}

static void version_2_limits_count(void **state)
{
    char root[64];

    (void)state;
    make_folder(root);
    put_file(root, "/proc/self/cgroup", "0::/a/b\n");
    put_file(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    put_file(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_true(oct_machine_memory_in(root) >= oct_machine_memory());
    put_file(root, "/sys/fs/cgroup/a/memory.max", "50000000\n"); /* of the group around it */
    assert_int_equal(oct_machine_memory_in(root), 50000000);
    put_file(root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(oct_machine_cores_in(root), 1); /* half a CPU is one thread */
    remove_folder(root);
}

static void version_1_limits_count(void **state)
{
    char root[64];

    (void)state;
    make_folder(root);
    put_file(root, "/proc/self/cgroup", "4:memory:/outside/only\n3:cpuacct,cpu:/x\n");
    /* Inside a container the group's own folder is the mount. */
    put_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "30000000\n");
    put_file(root, "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(oct_machine_memory_in(root), 30000000);
    put_file(root, "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
    put_file(root, "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "50000\n");
    assert_int_equal(oct_machine_cores_in(root), 1);
    remove_folder(root);
}

static void siblings_share_a_core(void **state)
{
    const long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
    char root[64], path[128];

    (void)state;
    make_folder(root);
    for (int cpu = 0; cpu < n_cpus; cpu++) { /* all are threads of CPU 0 */
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        put_file(root, path, "0-4095\n");
    }
    assert_int_equal(oct_machine_cores_in(root), 1);
    remove_folder(root);
}

static void nonsense_is_ignored(void **state)
{
    char root[64];

    (void)state;
    make_folder(root);
    put_file(root, "/proc/self/cgroup", "no colon\n0:\n:::::\n0::/a\n");
    put_file(root, "/sys/fs/cgroup/a/memory.max", "-5\n");
    put_file(root, "/sys/fs/cgroup/a/cpu.max", "1 0\n");
    put_file(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "-9\n");
    assert_true(oct_machine_memory_in(root) >= oct_machine_memory());
    assert_true(oct_machine_cores_in(root) >= 1);
    remove_folder(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_makes_sense), cmocka_unit_test(no_files_at_all_is_fine),
        cmocka_unit_test(version_2_limits_count),   cmocka_unit_test(version_1_limits_count),
        cmocka_unit_test(siblings_share_a_core),    cmocka_unit_test(nonsense_is_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
