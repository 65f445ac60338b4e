/* SPDX-License-Identifier: Apache-2.0 */
/* octet doctor: what this machine has, what will be slow and why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cpu.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

typedef struct args {
    int none; /* only the options of every command */
} args;

static const cli_opt opts[] = {
    {0},
};

static const cli_file file_args[] = {
    {0},
};

static const cli_example examples[] = {
    {"doctor", "Before asking why a network is slower here than there"},
    {"doctor --json > machine.json", "To keep beside figures of octet bench"},
    {0},
};

/* What is known of the machine. */
typedef struct machine {
    oct_machine_info info;
    cli_cpu cpu;
    int threads;        /* that octet will use */
    int cpus;           /* logical, of the whole machine */
    double load;        /* of the last minute; < 0: not known */
    double free_bytes;  /* of memory; < 0: not known */
    char governor[32];  /* of the clock; "" if not known */
    const char *capped; /* the value of ONEDNN_MAX_CPU_ISA, or NULL */
} machine;

static double free_memory(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    double kb = -1;

    while (f && kb < 0 && fgets(line, sizeof(line), f))
        if (!strncmp(line, "MemAvailable:", 13)) kb = strtod(line + 13, NULL);
    if (f) (void)fclose(f);
    return kb < 0 ? -1 : kb * 1024;
}

static void read_governor(char text[32])
{
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "r");

    text[0] = '\0';
    if (f && !fgets(text, 32, f)) text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    cli_text_clean(text);
    if (f) (void)fclose(f);
}

static void look(const cli *c, machine *m)
{
    *m = (machine){.info = {.struct_size = sizeof(m->info)}};
    oct_machine(&m->info);
    cli_cpu_read(&m->cpu);
    m->threads = (int)oct_ctx_threads(c->ctx);
    m->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->load = c->load;
    m->free_bytes = free_memory();
    if (m->free_bytes > (double)m->info.memory_bytes) m->free_bytes = (double)m->info.memory_bytes;
    read_governor(m->governor);
    m->capped = getenv("ONEDNN_MAX_CPU_ISA");
    if (!m->capped) m->capped = getenv("DNNL_MAX_CPU_ISA");
}

/* --- what will be slow: each writes one sentence, or nothing --- */

#define TEXT_SIZE 400
#define LOW_BYTES 1e9 /* enough for today's detectors, with room for pictures */

typedef void (*check_fn)(const machine *m, char text[TEXT_SIZE]);

static void check_float(const machine *m, char text[TEXT_SIZE])
{
    if (!strcmp(m->info.float_set, "avx512")) return;
    (void)snprintf(text, TEXT_SIZE,
                   "Float kernels use '%s', not AVX-512: expect about %s of its speed.",
                   m->info.float_set, strcmp(m->info.float_set, "avx2") ? "an eighth" : "half");
}

static void check_int8(const machine *m, char text[TEXT_SIZE])
{
    if (!m->info.int8_by_16_bits) return;
    (void)snprintf(text, TEXT_SIZE,
                   "Integer kernels use '%s' without VNNI (dot products of bytes): products are "
                   "made in 16 bits. The answers are the same; INT8 gains less over float.",
                   m->info.int8_set);
}

static void check_capped(const machine *m, char text[TEXT_SIZE])
{
    if (!m->capped) return;
    (void)snprintf(text, TEXT_SIZE,
                   "ONEDNN_MAX_CPU_ISA=%.64s limits the instruction sets: unset it for full speed.",
                   m->capped);
}

/* CPU features for which octet has no kernels. */
static void check_unused(const machine *m, char text[TEXT_SIZE])
{
    for (int i = 0; i < m->cpu.n_sets; i++)
        if (!strcmp(m->cpu.sets[i], "amx_int8"))
            (void)snprintf(text, TEXT_SIZE,
                           "The CPU has AMX (products of whole tiles), which octet's integer "
                           "kernels do not use: they run at the speed of '%s'.",
                           m->info.int8_set);
}

/* The library has the program's flags: they are built together. */
static void check_build(const machine *m, char text[TEXT_SIZE])
{
    const char *what = NULL;

    (void)m;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    what = "with a sanitizer";
#elif !defined(__OPTIMIZE__)
    what = "without optimisation";
#endif
    if (!what) return;
    (void)snprintf(text, TEXT_SIZE,
                   "Built %s: everything is many times slower. 'make' builds a fast one.", what);
}

static void check_cores(const machine *m, char text[TEXT_SIZE])
{
    if (m->threads > m->info.cores) {
        (void)snprintf(text, TEXT_SIZE,
                       "%d threads on %d cores wait for each other: use --threads %d.", m->threads,
                       (int)m->info.cores, (int)m->info.cores);
    } else if (m->info.cores * 2 < m->cpus) {
        (void)snprintf(text, TEXT_SIZE,
                       "This process may use %d of the machine's %d CPUs (affinity or a control "
                       "group's quota).",
                       (int)m->info.cores, m->cpus);
    }
}

static void check_openmp(const machine *m, char text[TEXT_SIZE])
{
    if (!m->info.one_thread_loops || m->info.cores < 2) return;
    (void)snprintf(text, TEXT_SIZE,
                   "Built without OpenMP (clang): octet's own loops use one thread. Build with gcc "
                   "for speed.");
}

static void check_load(const machine *m, char text[TEXT_SIZE])
{
    char busy[128];

    cli_busy_text(m->load, busy, sizeof(busy));
    if (!*busy) return;
    (void)snprintf(text, TEXT_SIZE,
                   "%s: threads that wait for each other lose far more than their share. Measure "
                   "when it is idle, or use fewer threads.",
                   busy);
}

static void check_memory(const machine *m, char text[TEXT_SIZE])
{
    char size[CLI_UNIT_SIZE];

    if (m->free_bytes < 0 || m->free_bytes >= LOW_BYTES) return;
    (void)snprintf(text, TEXT_SIZE, "Only %s of memory are free: large networks may not fit.",
                   cli_bytes(m->free_bytes, size));
}

static void check_clock(const machine *m, char text[TEXT_SIZE])
{
    if (strcmp(m->governor, "powersave")) return;
    (void)snprintf(text, TEXT_SIZE,
                   "The clock's governor is 'powersave': the first runs may be slow. 'performance' "
                   "gives steadier times.");
}

static const check_fn checks[] = {check_build, check_float,  check_int8, check_unused, check_capped,
                                  check_cores, check_openmp, check_load, check_memory, check_clock};

/* --- output --- */

enum { FACT_COLUMN = 18 };

static void print_fact(const char *name, const char *value)
{
    cli_fact(stdout, FACT_COLUMN, name, "%s", value);
}

static void print_libraries(void)
{
    char text[512] = "", version[32];
    cli_library lib;
    size_t at = 0;

    for (int i = 0; at < sizeof(text) && cli_library_at(i, &lib, version); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s", i ? ", " : "", lib.name,
                               lib.version);
    print_fact("libraries", text);
}

static void print_text(const machine *m)
{
    char text[TEXT_SIZE] = "", size[CLI_UNIT_SIZE], left[CLI_UNIT_SIZE];
    size_t at = 0;
    int found = 0;

    print_fact("octet", oct_version());
    print_fact("CPU", m->cpu.model[0] ? m->cpu.model : "unknown");
    for (int i = 0; i < m->cpu.n_sets; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "", m->cpu.sets[i]);
    print_fact("instruction sets", text);
    print_fact("float kernels", m->info.float_set);
    print_fact("integer kernels", m->info.int8_set);
    (void)snprintf(text, sizeof(text), "%d (%d core%s for this process, %d CPUs in the machine)",
                   m->threads, (int)m->info.cores, m->info.cores == 1 ? "" : "s", m->cpus);
    print_fact("threads", text);
    (void)snprintf(text, sizeof(text), "%s, %s free", cli_bytes((double)m->info.memory_bytes, size),
                   cli_bytes(m->free_bytes, left));
    print_fact("memory", m->free_bytes < 0 ? size : text);
    print_libraries();

    for (size_t i = 0; i < CLI_COUNT(checks); i++) {
        text[0] = '\0';
        checks[i](m, text);
        if (!text[0]) continue;
        if (!found++) (void)puts("\nWhat will be slow, and why:");
        cli_text_clean(text);
        cli_wrap(stdout, text, 2, cli_text_columns(stdout));
    }
    if (!found) (void)puts("\nNothing here slows octet down.");
}

static oct_status print_json(cli *c, const machine *m)
{
    cli_json *j = cli_json_object(), *sets = cli_json_array(), *libs = cli_json_array();
    cli_json *slow = cli_json_array();
    char text[TEXT_SIZE], version[32];
    cli_library lib;
    oct_status st;

    cli_json_str(j, "version", oct_version());
    cli_json_str(j, "cpu", m->cpu.model);
    for (int i = 0; i < m->cpu.n_sets; i++)
        cli_json_str(sets, NULL, m->cpu.sets[i]);
    cli_json_add(j, "instruction_sets", sets);
    cli_json_str(j, "float_kernels", m->info.float_set);
    cli_json_str(j, "integer_kernels", m->info.int8_set);
    cli_json_int(j, "threads", m->threads);
    cli_json_int(j, "cores", m->info.cores);
    cli_json_int(j, "cpus", m->cpus);
    cli_json_num(j, "load", m->load < 0 ? NAN : m->load); /* null where the kernel is silent */
    cli_json_int(j, "memory_bytes", (int64_t)m->info.memory_bytes);
    if (m->free_bytes < 0)
        cli_json_null(j, "memory_free_bytes");
    else
        cli_json_int(j, "memory_free_bytes", (int64_t)m->free_bytes);
    for (int i = 0; cli_library_at(i, &lib, version); i++) {
        cli_json *one = cli_json_object();

        cli_json_str(one, "name", lib.name);
        cli_json_str(one, "version", lib.version);
        cli_json_add(libs, NULL, one);
    }
    cli_json_add(j, "libraries", libs);
    for (size_t i = 0; i < CLI_COUNT(checks); i++) {
        text[0] = '\0';
        checks[i](m, text);
        if (text[0]) cli_json_str(slow, NULL, text);
    }
    cli_json_add(j, "slow", slow);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    machine m;

    (void)argp;
    (void)files;
    look(c, &m);
    if (c->opt.json) return print_json(c, &m);
    print_text(&m);
    return OCT_OK;
}

const cli_command cmd_doctor = {
    .name = "doctor",
    .help = "tell what this machine has, what will be slow and why",
    .about = "Looks only; runs no network. The kernels named are those that plans will use.\n\n"
             "With --json: version, cpu, instruction_sets, float_kernels, integer_kernels, "
             "threads, cores, cpus, load, memory_bytes, memory_free_bytes, libraries (name, "
             "version), slow (sentences).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
