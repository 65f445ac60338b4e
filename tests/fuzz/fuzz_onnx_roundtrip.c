/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models: what was read is written, and read again as it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "graph/graph.h"
#include "onnx/write.h"

#include "tests/fuzz/onnx_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static oct_status to_str(void *user, const void *p, size_t size)
{
    oct_str *s = user;

    oct_str_put(s, p, size);
    return s->failed ? OCT_ERR_MEMORY : OCT_OK;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

static void round_trip(oct_ctx *ctx, const oct_graph *g)
{
    oct_graph *back = NULL;
    char why[256] = "";
    oct_str bytes;
    oct_status st;

    oct_str_init(&bytes, ctx);
    st = oct_onnx_encode(g, NULL, to_str, &bytes);
    if (st && st != OCT_ERR_MEMORY) fail("not written", oct_ctx_error(ctx));
    if (!st) st = oct_onnx_load_memory(ctx, bytes.s, bytes.len, &back);
    if (st && st != OCT_ERR_MEMORY) fail("not read again", oct_ctx_error(ctx));
    if (!st && !oct_graph_equal(g, back, why, sizeof(why))) fail("not the same", why);
    oct_graph_free(back);
    oct_str_fini(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (oct_onnx_load_memory(ctx, data, size, &g) == OCT_OK) round_trip(ctx, g);
    oct_graph_free(g);
    oct_ctx_free(ctx);
    return 0;
}
