/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds broken copies of real files to the reader, the passes and the plan: no crash, no hang, no
 * memory beyond 4 times the file plus 256 MB.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <octet/octet.h>

#include "base/machine.h"
#include "base/rng.h"
#include "base/status.h"

#define N_CASES      5000
#define MAX_FILE     (128 << 10) /* larger files make slow cases and few interesting bytes */
#define MAX_SEEDS    4000
#define SECONDS      5
#define EXTRA_MEMORY ((size_t)256 << 20)
#define MAX_MACS     50000000 /* a network that is merely large need not be run */

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
    int n_loaded, n_planned, n_ran, n_hungry;
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

/* --- breaking them; each works on a buffer with room for twice the file and 64 bytes --- */

typedef struct bytes {
    unsigned char *p;
    size_t n;
    const seed *other; /* for splicing */
} bytes;

typedef void (*mutation)(bytes *b, oct_rng *r);

static size_t below(oct_rng *r, size_t n)
{
    return n ? (size_t)oct_rng_below(r, n) : 0;
}

static void truncate_it(bytes *b, oct_rng *r)
{
    b->n = below(r, b->n);
}

static void flip_bits(bytes *b, oct_rng *r)
{
    for (size_t i = 1 + below(r, 8); i > 0 && b->n; i--)
        b->p[below(r, b->n)] ^= (unsigned char)(1u << below(r, 8));
}

static void set_bytes(bytes *b, oct_rng *r)
{
    static const unsigned char telling[] = {0, 1, 8, 0x10, 0x1a, 0x7f, 0x80, 0xfe, 0xff};

    for (size_t i = 1 + below(r, 4); i > 0 && b->n; i--)
        b->p[below(r, b->n)] = telling[below(r, sizeof(telling))];
}

static void insert(bytes *b, size_t at, const unsigned char *from, size_t n)
{
    memmove(b->p + at + n, b->p + at, b->n - at);
    memcpy(b->p + at, from, n);
    b->n += n;
}

static void insert_noise(bytes *b, oct_rng *r)
{
    unsigned char noise[16];
    const size_t n = 1 + below(r, sizeof(noise));

    for (size_t i = 0; i < n; i++)
        noise[i] = (unsigned char)oct_rng_u64(r);
    insert(b, below(r, b->n), noise, n);
}

static void remove_range(bytes *b, oct_rng *r)
{
    const size_t at = below(r, b->n), n = below(r, OCT_MIN(b->n - at, (size_t)64));

    memmove(b->p + at, b->p + at + n, b->n - at - n);
    b->n -= n;
}

/* The same node or value twice: duplicate names, cycles. */
static void repeat_range(bytes *b, oct_rng *r)
{
    unsigned char part[64];
    const size_t at = below(r, b->n), n = OCT_MIN(b->n - at, 1 + below(r, sizeof(part)));

    memcpy(part, b->p + at, n);
    if (below(r, 2))
        insert(b, below(r, b->n), part, n);
    else
        memmove(b->p + below(r, b->n - n + 1), part, n);
}

/* A number becomes huge, or negative: dimensions, lengths, axes. */
static void stretch_number(bytes *b, oct_rng *r)
{
    static const uint64_t telling[] = {
        0,          1,          0x7f,        0xffff,     0x7fffffff,          0x80000000,
        0xffffffff, UINT64_MAX, 1ull << 40,  1ull << 62, UINT64_MAX >> 1,     (uint64_t)-2,
        65537,      1000000007, 0x100000001, 0x20000000, (uint64_t)INT64_MIN, 255,
    };
    uint64_t v = telling[below(r, OCT_COUNT(telling))];
    const size_t at = below(r, b->n);
    unsigned char number[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        number[n++] = (unsigned char)(v | 0x80);
    number[n++] = (unsigned char)v;
    insert(b, at, number, n);
    memmove(b->p + at + n, b->p + at + n + 1, b->n - at - n - 1); /* in place of one byte */
    b->n--;
}

static size_t find_word(const bytes *b, oct_rng *r, size_t *len)
{
    for (int attempt = 0; attempt < 50 && b->n; attempt++) {
        size_t at = below(r, b->n), n = 0;

        while (at > 0 && b->p[at - 1] > ' ' && b->p[at - 1] < 0x7f)
            at--;
        while (at + n < b->n && b->p[at + n] > ' ' && b->p[at + n] < 0x7f)
            n++;
        if (n >= 1 && n <= 64) {
            *len = n;
            return at;
        }
    }
    *len = 0;
    return 0;
}

/* One name in place of another: wrong operators, dangling names, cycles. */
static void swap_words(bytes *b, oct_rng *r)
{
    size_t n_from, n_to;
    const size_t from = find_word(b, r, &n_from), to = find_word(b, r, &n_to);

    memmove(b->p + to, b->p + from, OCT_MIN(n_from, n_to));
}

static void splice(bytes *b, oct_rng *r)
{
    const size_t n = OCT_MIN(below(r, b->other->size) + 1, b->n), at = below(r, b->n - n + 1);

    memcpy(b->p + at, b->other->data + below(r, b->other->size - n + 1), n);
}

static const mutation mutations[] = {
    truncate_it,    flip_bits,      set_bytes,  insert_noise, remove_range, repeat_range,
    stretch_number, stretch_number, swap_words, swap_words,   splice,
};

/* The bytes of case `index`, in memory of exactly their size, so that ASan sees the end. */
static unsigned char *make_case(const corpus *c, int index, size_t *size, const char **path)
{
    oct_rng r;
    const seed *s;
    bytes b;
    unsigned char *exact;

    oct_rng_init(&r, (uint64_t)index);
    s = &c->seeds[below(&r, c->n)];
    *path = s->path;
    b = (bytes){.p = malloc(2 * s->size + 512), .n = s->size, .other = &c->seeds[below(&r, c->n)]};
    if (!b.p) return NULL;
    memcpy(b.p, s->data, s->size);
    for (size_t i = 1 + below(&r, 3); i > 0 && b.n > 1 && b.n < 2 * s->size + 128; i--)
        mutations[below(&r, OCT_COUNT(mutations))](&b, &r);
    exact = malloc(b.n ? b.n : 1);
    if (exact) memcpy(exact, b.p, b.n);
    free(b.p);
    *size = b.n;
    return exact;
}

/* --- what octet does with them --- */

static bool has_loop(const oct_graph *g)
{
    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n))
        if (strcmp(oct_node_op(n), "Loop") == 0 || strcmp(oct_node_op(n), "Scan") == 0) return true;
    return false;
}

static void run_plan(oct_ctx *ctx, const oct_plan *p, report *rep)
{
    oct_run *r = NULL;

    if (oct_run_new(ctx, p, &r)) return;
    if (oct_run_execute(r) == OCT_OK) { /* inputs are zero */
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

    if (oct_onnx_load_memory(ctx, data, size, &g)) return;
    rep->n_loaded++;
    if (oct_plan_new(g, NULL, &p) == OCT_OK) {
        rep->n_planned++;
        if (!has_loop(g) && oct_plan_macs(p) < MAX_MACS) run_plan(ctx, p, rep);
        oct_plan_free(p);
    }
    (void)oct_graph_simplify(g, NULL);
    oct_graph_free(g);
}

/* --- measuring and watching --- */

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
    unsigned char *data = make_case(c, index, &size, &path);
    oct_ctx *ctx = oct_ctx_new(NULL);
    const int64_t start = oct_time_ns();
    double seconds;

    if (!data || !ctx) abort();
    rep->current = index;
    oct_ctx_set_memory_limit(ctx, 4 * size + EXTRA_MEMORY);
    oct_ctx_set_threads(ctx, 1);
    reset_peak();
    before = status_bytes("VmRSS:");
    alarm(SECONDS);
    use(ctx, data, size, rep);
    alarm(0);
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
           "%d), most memory %zu MB; %d died, %d took too much memory\n",
           n_cases, c->n, rep->n_loaded, rep->n_planned, rep->n_ran, rep->worst_s, rep->worst_case,
           rep->worst_growth >> 20, n_died, rep->n_hungry);
    return n_died || rep->n_hungry ? 1 : 0;
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
    return rep.n_hungry;
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
