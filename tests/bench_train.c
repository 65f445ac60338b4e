/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a test: steps of training of a network with random pictures and boxes, and where their time
 * goes. With one thread times are those of the CPU, which other processes disturb less.
 * bench_train MODEL LOSS BATCH SIZE [STEPS [THREADS [MEGABYTES [PRECISION]]]]
 * 0 megabytes: as many as it takes; precision: f32 (default) or bf16
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <octet/octet.h>

#include "base/rng.h"
#include "exec/plan.h"
#include "train/net.h"

typedef struct row {
    char what[96];
    int64_t ns, macs;
    int n;
} row;

typedef struct profile {
    const oct_plan *p;
    int64_t *ns; /* by step */
    int n_runs;
    bool by_cpu;
    double last; /* CPU time at the last call */
} profile;

static double time_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now(bool by_cpu)
{
    return time_of(by_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
}

static void seen(void *user, int32_t step, int64_t start, int64_t end)
{
    profile *f = user;
    const double at = now(f->by_cpu);

    f->ns[step] += f->by_cpu ? (int64_t)((at - f->last) * 1e9) : end - start;
    f->last = at;
}

static int by_time(const void *a, const void *b)
{
    const row *x = a, *y = b;

    return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

static void print_profile(const profile *f)
{
    const int32_t n = oct_plan_n_steps(f->p);
    row *rows = calloc((size_t)n + 1, sizeof(*rows));
    int used = 0;
    int64_t total = 0;

    for (int32_t i = 0; rows && i < n; i++) {
        oct_step_info info = {.struct_size = sizeof(info)};
        char what[sizeof(rows->what)];
        int k = 0;

        oct_plan_step(f->p, i, &info);
        snprintf(what, sizeof(what), "%-24.24s %s", info.op, info.kernel);
        while (k < used && strcmp(rows[k].what, what) != 0)
            k++;
        used += k == used;
        memcpy(rows[k].what, what, sizeof(what));
        rows[k].ns += f->ns[i];
        rows[k].macs += info.macs;
        rows[k].n++;
        total += f->ns[i];
    }
    if (rows) qsort(rows, (size_t)used, sizeof(*rows), by_time);
    for (int k = 0; k < used; k++)
        printf("%8.2f ms %5.1f %% %4d x %-64s %6.1f GMAC/s\n", (double)rows[k].ns / 1e6 / f->n_runs,
               100.0 * (double)rows[k].ns / (double)total, rows[k].n, rows[k].what,
               (double)rows[k].macs * f->n_runs / ((double)rows[k].ns + 1));
    printf("%8.2f ms in %d steps of the plan\n", (double)total / 1e6 / f->n_runs, (int)n);
    if (getenv("BENCH_STEPS")) {
        for (int32_t i = 0; i < n; i++) {
            oct_step_info info = {.struct_size = sizeof(info)};

            oct_plan_step(f->p, i, &info);
            printf("%5d %9.3f ms %-20s %-40s %8.1f MMAC %s\n", i,
                   (double)f->ns[i] / 1e6 / f->n_runs, info.op, info.kernel,
                   (double)info.macs / 1e6, info.name);
        }
    }
    free(rows);
}

static void fill_boxes(const oct_train_net_options *o, oct_rng *rng, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += OCT_LABEL_SIZE) {
        const bool used = i / OCT_LABEL_SIZE % o->max_boxes < 12;
        const double w = 20 + oct_rng_f64(rng) * 80, h = 20 + oct_rng_f64(rng) * 80;
        const double x0 = oct_rng_f64(rng) * (o->width - w),
                     y0 = oct_rng_f64(rng) * (o->height - h);

        x[i] = used ? (float)oct_rng_below(rng, 3) : -1;
        x[i + OCT_LABEL_X1] = (float)x0;
        x[i + OCT_LABEL_Y1] = (float)y0;
        x[i + OCT_LABEL_X2] = (float)(x0 + w);
        x[i + OCT_LABEL_Y2] = (float)(y0 + h);
    }
}

static void fill(oct_train_net *t, const oct_train_net_options *o)
{
    oct_rng rng;
    int64_t n;
    float *x = oct_train_net_images(t, &n);

    oct_rng_init(&rng, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)oct_rng_f64(&rng);
    x = oct_train_net_labels(t, &n);
    if (o->loss->has_boxes)
        fill_boxes(o, &rng, x, n);
    else /* classes, as int64 */
        for (int64_t i = 0; i < o->batch; i++)
            ((int64_t *)(void *)x)[i] = i % 10;
}

static oct_status bench(oct_ctx *ctx, char **argv, int argc)
{
    const int steps = argc > 5 ? atoi(argv[5]) : 3;
    oct_train_net_options o = {.batch = atoi(argv[3]),
                               .width = atoi(argv[4]),
                               .height = atoi(argv[4]),
                               .max_boxes = 32,
                               .loss = oct_loss_find(argv[2]),
                               .n_threads = argc > 6 ? atoi(argv[6]) : 0,
                               .memory = {.max = argc > 7 ? (size_t)(atof(argv[7]) * 1e6) : 0},
                               .is_bf16 = argc > 8 && strcmp(argv[8], "bf16") == 0};
    oct_graph *g = NULL;
    oct_train_net *t = NULL;
    profile f = {0};
    struct rusage use;
    double best = 1e9, begin;
    oct_status st = oct_onnx_load(ctx, argv[1], &g);

    f.by_cpu = o.n_threads == 1;
    begin = now(f.by_cpu);
    if (!o.loss) return oct_fail(ctx, OCT_ERR_ARG, "no such loss");
    if (!st) st = oct_train_net_new(g, &o, &t);
    oct_graph_free(g);
    if (st) return st;
    fill(t, &o);
    f.p = oct_train_net_plan(t);
    f.ns = calloc((size_t)oct_plan_n_steps(f.p) + 1, sizeof(*f.ns));
    printf("%s\n", oct_train_net_precision(t));
    printf("made in %.2f s, %d steps, block %.1f MB, scratch %.1f MB, in all %.1f MB\n",
           now(f.by_cpu) - begin, (int)oct_plan_n_steps(f.p), (double)f.p->block_size / 1e6,
           (double)f.p->scratch_size / 1e6, (double)oct_train_net_bytes(t) / 1e6);
    for (int i = 0; i <= steps && !st && f.ns; i++) {
        if (i == 1) oct_run_set_step_hook(oct_train_net_run(t), seen, &f);
        begin = f.last = now(f.by_cpu);
        st = oct_train_net_step(t);
        if (i) best = OCT_MIN(best, now(f.by_cpu) - begin);
        if (i) f.n_runs++;
        printf("step %d: %.3f s, loss %.6f\n", i, now(f.by_cpu) - begin, oct_train_net_loss(t));
    }
    getrusage(RUSAGE_SELF, &use);
    printf("best %.3f s, peak of the process %.1f MB\n", best, (double)use.ru_maxrss / 1e3);
    if (!st && f.n_runs) print_profile(&f);
    free(f.ns);
    oct_train_net_free(t);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = NULL;
    oct_status st;

    if (argc < 5) {
        fprintf(stderr,
                "usage: %s MODEL LOSS BATCH SIZE [STEPS [THREADS [MEGABYTES [f32|bf16]]]]\n",
                argv[0]);
        return 2;
    }
    if (!(ctx = oct_ctx_new(NULL))) return 1;
    st = bench(ctx, argv, argc);
    if (st) fprintf(stderr, "%s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st != OCT_OK;
}
