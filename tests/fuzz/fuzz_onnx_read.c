/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models: any bytes are read, or refused with a reason. */
#include <stdint.h>
#include <stdlib.h>

#include <octet/octet.h>

#include "tests/fuzz/onnx_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (oct_onnx_load_memory(ctx, data, size, &g) == OCT_OK)
        oct_graph_free(g);
    else if (!*oct_ctx_error(ctx) || g)
        abort(); /* a failure has a reason, and leaves nothing */
    oct_ctx_free(ctx);
    return 0;
}
