/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads run one plan and must get what one thread gets, byte for byte: streams MODEL.
 * Behind --fails: networks that fail when they run, which every thread must learn for itself.
 * Then a run is cancelled from another thread.
 * tools/check-streams builds it with ThreadSanitizer, so it uses threads of its own alone.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

enum { STREAMS = 2, RUNS = 4, INPUTS = 3 };

typedef struct output {
    void *data;
    size_t size;
} output;

typedef struct shared {
    const oct_plan *plan;
    output *want; /* of every input, all outputs in a row */
} shared;

/* Numbers in [0, 1) that depend on the input's number alone. */
static void fill(float *x, size_t n, unsigned seed)
{
    uint32_t state = 12345u + seed;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-24f;
    }
}

static oct_status run_input(const oct_plan *p, oct_run *r, int which, output *out)
{
    void *data = NULL;
    size_t size = 0;
    oct_status st = oct_run_input(r, oct_plan_input_name(p, 0), &data, &size);

    if (st) return st;
    fill(data, size / sizeof(float), (unsigned)which);
    st = oct_run_execute(r);
    out->size = 0;
    for (int32_t i = 0; !st && i < oct_plan_n_outputs(p); i++) {
        const oct_tensor *t = NULL;
        void *grown;

        if ((st = oct_run_output(r, i, &t))) break;
        grown = realloc(out->data, out->size + oct_tensor_size(t) + 1);
        if (!grown) return OCT_ERR_MEMORY;
        out->data = grown;
        memcpy((char *)grown + out->size, oct_tensor_data(t), oct_tensor_size(t));
        out->size += oct_tensor_size(t);
    }
    return st;
}

static void *stream_main(void *arg)
{
    const shared *s = arg;
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_run *r = NULL;
    output got = {0};
    oct_status st = ctx ? oct_run_new(ctx, s->plan, &r) : OCT_ERR_MEMORY;
    int n_wrong = 0;

    for (int i = 0; !st && i < RUNS * INPUTS; i++) {
        const output *want = &s->want[i % INPUTS];

        st = run_input(s->plan, r, i % INPUTS, &got);
        if (!st) n_wrong += got.size != want->size || memcmp(got.data, want->data, got.size) != 0;
    }
    if (st) fprintf(stderr, "streams: %s\n", ctx ? oct_ctx_error(ctx) : "no memory");
    if (n_wrong) fprintf(stderr, "streams: %d runs gave other bytes\n", n_wrong);
    free(got.data);
    oct_run_free(r);
    oct_ctx_free(ctx);
    return st || n_wrong ? arg : NULL;
}

/* The reason must be in the thread's own context, and name the node. */
static void *failing_main(void *arg)
{
    const shared *s = arg;
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_run *r = NULL;
    output got = {0};
    int n_wrong = !ctx || oct_run_new(ctx, s->plan, &r) != OCT_OK;

    for (int i = 0; !n_wrong && i < RUNS * INPUTS; i++) {
        const oct_status st = run_input(s->plan, r, i % INPUTS, &got);

        if (st && strstr(oct_ctx_error(ctx), "node '")) continue;
        fprintf(stderr, "streams: status %d with reason \"%s\"\n", (int)st, oct_ctx_error(ctx));
        n_wrong++;
    }
    free(got.data);
    oct_run_free(r);
    oct_ctx_free(ctx);
    return n_wrong ? arg : NULL;
}

/* Returns how many threads found something wrong. */
static int run_streams(shared *s, void *(*stream)(void *))
{
    pthread_t threads[STREAMS];
    int n_failed = 0;

    for (int i = 0; i < STREAMS; i++)
        if (pthread_create(&threads[i], NULL, stream, s)) exit(2);
    for (int i = 0; i < STREAMS; i++) {
        void *failed = NULL;

        pthread_join(threads[i], &failed);
        n_failed += failed != NULL;
    }
    return n_failed;
}

/* Runs until another thread cancels it. */
static void *cancelled_main(void *arg)
{
    oct_status st;

    do
        st = oct_run_execute(arg);
    while (!st);
    return st == OCT_ERR_CANCELLED ? NULL : arg;
}

static oct_status check_cancel(oct_run *r, int *n_failed)
{
    pthread_t thread;
    void *failed = NULL;

    if (pthread_create(&thread, NULL, cancelled_main, r)) exit(2);
    oct_run_cancel(r, 1);
    pthread_join(thread, &failed);
    *n_failed += failed != NULL;
    oct_run_cancel(r, 0);
    return oct_run_execute(r);
}

static oct_status check_failing(oct_ctx *ctx, const char *path, int *n_failed)
{
    oct_graph *g = NULL;
    oct_plan *p = NULL;
    oct_status st = oct_onnx_load(ctx, path, &g);

    if (!st) st = oct_plan_new(g, NULL, &p);
    if (!st) *n_failed += run_streams(&(shared){p, NULL}, failing_main);
    oct_plan_free(p);
    oct_graph_free(g);
    return st;
}

static oct_status check(oct_ctx *ctx, const char *path, int *n_failed)
{
    output want[INPUTS] = {{0}};
    oct_graph *g = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_status st = oct_onnx_load(ctx, path, &g);

    if (!st) st = oct_plan_new(g, NULL, &p);
    if (!st) st = oct_run_new(ctx, p, &r);
    for (int i = 0; !st && i < INPUTS; i++)
        st = run_input(p, r, i, &want[i]);
    if (!st) *n_failed += run_streams(&(shared){p, want}, stream_main);
    if (!st) st = check_cancel(r, n_failed);
    for (int i = 0; i < INPUTS; i++)
        free(want[i].data);
    oct_run_free(r);
    oct_plan_free(p);
    oct_graph_free(g);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    int n_failed = 0;
    bool fails = false;
    oct_status st = ctx && argc > 1 ? OCT_OK : OCT_ERR_ARG;

    if (!st) oct_ctx_set_threads(ctx, 1);
    for (int i = 1; !st && i < argc; i++) {
        if (strcmp(argv[i], "--fails") == 0)
            fails = true;
        else
            st = (fails ? check_failing : check)(ctx, argv[i], &n_failed);
    }
    if (st)
        fprintf(stderr, "streams MODEL... [--fails MODEL...]: %s\n", ctx ? oct_ctx_error(ctx) : "");
    oct_ctx_free(ctx);
    if (!st && !n_failed) printf("%d streams agree with one\n", STREAMS);
    return st || n_failed;
}
