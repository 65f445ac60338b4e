/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ONNX file: compiled and run, in plans of fast and of plain kernels. */
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#include "base/ctx.h"
#include "tests/mutate.h"

#define MAX_MACS 10000000 /* a network that is merely large need not be run */
#define MAX_WORK (1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* A failure must have a reason. */
static oct_status check(oct_ctx *ctx, oct_status st)
{
    if (st && !ctx->error[0]) abort();
    return st;
}

static void run(oct_ctx *ctx, const oct_graph *g, int32_t plain)
{
    oct_plan_options o;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    oct_plan_options_init(&o);
    o.plain = plain;
    if (check(ctx, oct_plan_new(g, &o, &p))) return;
    if (oct_plan_macs(p) < MAX_MACS && check(ctx, oct_run_new(ctx, p, &r)) == OCT_OK)
        (void)check(ctx, oct_run_execute(r));
    oct_run_free(r);
    oct_plan_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;

    if (!ctx) return 0;
    oct_ctx_set_threads(ctx, 1);
    oct_ctx_set_memory_limit(ctx, 4 * size + ((size_t)64 << 20));
    oct_ctx_set_work_limit(ctx, MAX_WORK);
    if (check(ctx, oct_onnx_load_memory(ctx, data, size, &g)) == OCT_OK) {
        run(ctx, g, 0);
        run(ctx, g, 1);
    }
    oct_graph_free(g);
    oct_ctx_free(ctx);
    return 0;
}

/* Blind changes rarely get past the wire format: most are made inside it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    bytes b = {.n = size, .other = data, .n_other = size};
    oct_rng r;

    oct_rng_init(&r, seed);
    if (size < 2 || seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
    b.p = malloc(2 * size + MUTATE_ROOM);
    if (!b.p) return size;
    memcpy(b.p, data, size);
    mutate(&b, &r);
    if (b.n <= max_size) {
        memcpy(data, b.p, b.n);
        size = b.n;
    }
    free(b.p);
    return size;
}
