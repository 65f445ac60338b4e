/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds broken copies of real files to the reader, the passes and the plan: no crash, no hang, no
 * memory beyond 4 times the file plus 256 MB, no refusal without a reason.
 *
 *   hostile [N_CASES]          all cases 0..N-1; exit status 1 if one failed
 *   hostile --case I [FILE]    one case, in this process; its bytes into FILE
 *
 * Case I is the same bytes every time. Cases run in a child process, which is started again behind
 * a case that killed it, so one run lists all that is wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <octet/octet.h>

#include "base/ctx.h"
#include "base/machine.h"
#include "base/rng.h"
#include "tests/mutate.h"

#define N_CASES      5000
#define MAX_FILE     (128 << 10) /* larger files make slow cases and few interesting bytes */
#define MAX_SEEDS    4000
#define CPU_SECONDS  5
#define WALL_SECONDS 60 /* asleep for ever; not 5, for the machine may be busy */
#define EXTRA_MEMORY ((size_t)256 << 20)
#define MAX_MACS     50000000 /* a network that is merely large need not be run */
#define MAX_WORK     (1 << 28)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* its own memory would be counted */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

typedef struct seed {
    char *path;
    unsigned char *data;
    size_t size;
} seed;

typedef struct corpus {
    seed *seeds;
    size_t n;
} corpus;

/* What the child tells its parent, in shared memory. */
typedef struct report {
    int current; /* the case being worked on */
    int n_loaded, n_planned, n_ran, n_hungry, n_silent;
    size_t worst_growth;
    double worst_s;
    int worst_case;
} report;

/* --- the files --- */

static int read_seed(corpus *c, const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    seed *s = &c->seeds[c->n];

    if (!f) return -1;
    s->path = strdup(path);
    s->data = malloc(size ? size : 1);
    s->size = s->data ? fread(s->data, 1, size, f) : 0;
    fclose(f);
    if (!s->path || s->size != size || size == 0) {
        free(s->path);
        free(s->data);
        return -1;
    }
    c->n++;
    return 0;
}

static void collect(corpus *c, const char *folder)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, NULL, alphasort); /* sorted: cases stay the same */

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        const char *dot = strrchr(name, '.');
        char path[4096];
        struct stat info;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (name[0] == '.' || stat(path, &info)) {
            /* nothing */
        } else if (S_ISDIR(info.st_mode)) {
            collect(c, path);
        } else if (dot && strcmp(dot, ".onnx") == 0 && info.st_size <= MAX_FILE &&
                   c->n < MAX_SEEDS) {
            (void)read_seed(c, path, (size_t)info.st_size);
        }
        free(entries[i]);
    }
    free(entries);
}

static corpus find_seeds(void)
{
    const char *root = getenv("OCTET_SOURCE_ROOT"), *shared = getenv("OCTET_SHARED");
    corpus c = {.seeds = calloc(MAX_SEEDS, sizeof(seed))};
    char path[4096];

    if (!c.seeds) return c;
    snprintf(path, sizeof(path), "%s/tests/golden", root ? root : ".");
    collect(&c, path);
    snprintf(path, sizeof(path), "%s/tests/fuzz/seeds", root ? root : ".");
    collect(&c, path);
    if (shared) {
        snprintf(path, sizeof(path), "%s/data/models", shared);
        collect(&c, path);
        snprintf(path, sizeof(path), "%s/data/conformance/ort-qdq", shared);
        collect(&c, path);
        snprintf(path, sizeof(path), "%s/data/conformance/onnx/node", shared);
        collect(&c, path);
    }
    return c;
}

static void free_seeds(corpus *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->seeds[i].path);
        free(c->seeds[i].data);
    }
    free(c->seeds);
}

/* --- the cases --- */

/* The bytes of case `index`, in memory of exactly their size, so that ASan sees the end. */
static unsigned char *make_case(const corpus *c, int index, size_t *size, const char **path)
{
    oct_rng r;
    const seed *s, *other;
    bytes b;
    unsigned char *exact;

    oct_rng_init(&r, (uint64_t)index);
    s = &c->seeds[oct_rng_below(&r, c->n)];
    other = &c->seeds[oct_rng_below(&r, c->n)];
    *path = s->path;
    b = (bytes){malloc(2 * s->size + MUTATE_ROOM), s->size, other->data, other->size};
    if (!b.p) return NULL;
    memcpy(b.p, s->data, s->size);
    mutate(&b, &r);
    exact = malloc(b.n ? b.n : 1);
    if (exact) memcpy(exact, b.p, b.n);
    free(b.p);
    *size = b.n;
    return exact;
}

/* --- what octet does with them --- */

/* A refusal must have a reason. */
static bool succeeds(oct_ctx *ctx, oct_status st, report *rep)
{
    if (st && !ctx->error[0]) {
        printf("case %d: status %d without a reason\n", rep->current, st);
        fflush(stdout);
        rep->n_silent++;
    }
    return st == OCT_OK;
}

static void run_plan(oct_ctx *ctx, const oct_plan *p, report *rep)
{
    oct_run *r = NULL;

    if (!succeeds(ctx, oct_run_new(ctx, p, &r), rep)) return;
    if (succeeds(ctx, oct_run_execute(r), rep)) { /* inputs are zero */
        rep->n_ran++;
        for (int32_t i = 0; i < oct_plan_n_outputs(p); i++) {
            const oct_tensor *t = NULL;
            (void)oct_run_output(r, i, &t);
        }
    }
    oct_run_free(r);
}

static void use(oct_ctx *ctx, const unsigned char *data, size_t size, report *rep)
{
    oct_graph *g = NULL;
    oct_plan *p = NULL;

    if (!succeeds(ctx, oct_onnx_load_memory(ctx, data, size, &g), rep)) return;
    rep->n_loaded++;
    if (succeeds(ctx, oct_plan_new(g, NULL, &p), rep)) {
        rep->n_planned++;
        if (oct_plan_macs(p) < MAX_MACS) run_plan(ctx, p, rep);
        oct_plan_free(p);
    }
    (void)succeeds(ctx, oct_graph_simplify(g, NULL), rep);
    oct_graph_free(g);
}

/* --- measuring and watching --- */

/* Starts, or with 0 stops, the clocks that end a case that hangs. */
static void set_clocks(int cpu_seconds, unsigned wall_seconds)
{
    const struct itimerval t = {.it_value = {.tv_sec = cpu_seconds}};

    setitimer(ITIMER_PROF, &t, NULL);
    alarm(wall_seconds);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    _exit(111); /* the parent says which case it was */
}

/* A line of /proc/self/status in bytes. */
static size_t status_bytes(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    size_t kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0) kb = strtoul(line + strlen(key), NULL, 10);
    if (f) fclose(f);
    return kb << 10;
}

static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");

    if (!f) return;
    fputs("5", f);
    fclose(f);
}

static void run_case(const corpus *c, int index, report *rep)
{
    const char *path;
    size_t size, before, growth;
    unsigned char *data;
    oct_ctx *ctx = oct_ctx_new(NULL);
    const int64_t start = oct_time_ns();
    double seconds;

    rep->current = index;
    data = make_case(c, index, &size, &path);
    if (!data || !ctx) abort();
    oct_ctx_set_memory_limit(ctx, 4 * size + EXTRA_MEMORY);
    oct_ctx_set_work_limit(ctx, MAX_WORK);
    oct_ctx_set_threads(ctx, 1);
    reset_peak();
    before = status_bytes("VmRSS:");
    set_clocks(CPU_SECONDS, WALL_SECONDS);
    use(ctx, data, size, rep);
    set_clocks(0, 0);
    growth = status_bytes("VmHWM:");
    growth = growth > before ? growth - before : 0;
    seconds = (double)(oct_time_ns() - start) * 1e-9;
    if (growth > rep->worst_growth) rep->worst_growth = growth;
    if (seconds > rep->worst_s) {
        rep->worst_s = seconds;
        rep->worst_case = index;
    }
#ifndef SANITIZED
    if (growth > 4 * size + EXTRA_MEMORY) {
        printf("case %d (%s): took %zu MB for %zu bytes\n", index, path, growth >> 20, size);
        fflush(stdout);
        rep->n_hungry++;
    }
#endif
    oct_ctx_free(ctx);
    free(data);
}

/* Runs [from, to) in a child; the case it died in, or `to`. */
static int run_in_child(const corpus *c, int from, int to, report *rep, int *status)
{
    const pid_t child = fork();

    if (child == 0) {
        signal(SIGALRM, on_alarm);
        signal(SIGPROF, on_alarm);
        for (int i = from; i < to; i++)
            run_case(c, i, rep);
        exit(0); /* not _exit: the leak checker looks now */
    }
    if (child < 0) return from;
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return to;
    return rep->current;
}

static int run_all(const corpus *c, int n_cases)
{
    report *rep =
        mmap(NULL, sizeof(*rep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int n_died = 0;

    if (rep == MAP_FAILED) return 2;
    for (int i = 0; i < n_cases;) {
        int status = 0;
        const int at = run_in_child(c, i, n_cases, rep, &status);

        if (at == n_cases) break;
        n_died++;
        if (WIFSIGNALED(status))
            printf("case %d: killed by signal %d\n", at, WTERMSIG(status));
        else
            printf("case %d: %s\n", at,
                   WEXITSTATUS(status) == 111 ? "hangs" : "the process ended (see stderr)");
        fflush(stdout);
        if (n_died >= 50) {
            printf("that is enough\n");
            break;
        }
        i = at + 1;
    }
    printf("hostile: %d cases from %zu files: %d loaded, %d planned, %d ran; slowest %.2f s (case "
           "%d), most memory %zu MB; %d died, %d took too much memory, %d gave no reason\n",
           n_cases, c->n, rep->n_loaded, rep->n_planned, rep->n_ran, rep->worst_s, rep->worst_case,
           rep->worst_growth >> 20, n_died, rep->n_hungry, rep->n_silent);
    return n_died || rep->n_hungry || rep->n_silent ? 1 : 0;
}

static int run_one(const corpus *c, int index, const char *file)
{
    report rep = {0};
    const char *path;
    size_t size;
    unsigned char *data = make_case(c, index, &size, &path);

    if (!data) return 2;
    printf("case %d: %s, %zu bytes\n", index, path, size);
    fflush(stdout);
    if (file) {
        FILE *f = fopen(file, "wb");

        if (!f || fwrite(data, 1, size, f) != size || fclose(f)) perror(file);
    }
    free(data);
    run_case(c, index, &rep);
    printf("loaded %d, planned %d, ran %d; %.2f s, %zu MB\n", rep.n_loaded, rep.n_planned,
           rep.n_ran, rep.worst_s, rep.worst_growth >> 20);
    return rep.n_hungry + rep.n_silent;
}

int main(int argc, char **argv)
{
    corpus c = find_seeds();
    int status;

    if (!c.n) {
        fprintf(stderr,
                "hostile: no .onnx files in tests/golden (OCTET_SOURCE_ROOT is not set?)\n");
        return 2;
    }
    if (argc >= 3 && strcmp(argv[1], "--case") == 0)
        status = run_one(&c, atoi(argv[2]), argc > 3 ? argv[3] : NULL);
    else
        status = run_all(&c, argc > 1 ? atoi(argv[1]) : N_CASES);
    free_seeds(&c);
    return status;
}
