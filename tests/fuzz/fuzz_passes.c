/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ONNX file, through both pipelines of passes: no crash, no hang, still a graph. */
#include <stdlib.h>

#include <octet/octet.h>

#include "graph/graph.h"
#include "pass/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(oct_ctx *ctx, const uint8_t *data, size_t size, const char *pipeline)
{
    oct_graph *g = NULL;

    if (oct_onnx_load_memory(ctx, data, size, &g)) return;
    /* A file may be refused, with a reason; what is not refused must still hold together. */
    if (oct_pipeline_run(g, pipeline, NULL, NULL)) {
        if (!*oct_ctx_error(ctx)) abort();
    } else if (oct_graph_verify(g)) {
        abort();
    }
    oct_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    if (!ctx) return 0;
    oct_ctx_set_threads(ctx, 1);
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    run(ctx, data, size, "simplify");
    run(ctx, data, size, "execute");
    oct_ctx_free(ctx);
    return 0;
}
