/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: whatever is read must be written and read again as it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tensor/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Through a file. */
static void round_trip(oct_ctx *ctx, const oct_tensor *t)
{
    oct_tensor *back = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/tmp/octet-fuzz-npy-%d", (int)getpid());
    if (oct_tensor_save_npy(ctx, t, path)) abort();
    if (oct_tensor_load_npy(ctx, path, &back)) abort();
    if (!oct_tensor_equal(t, back)) abort();
    oct_tensor_unref(back);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *t = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (oct_npy_decode(ctx, data, size, &t) == OCT_OK) {
        /* Writing is slow; one file in sixteen is enough to find a difference. */
        if (size % 16 == 0) round_trip(ctx, t);
        oct_tensor_unref(t);
    } else if (!*oct_ctx_error(ctx)) {
        abort(); /* a failure has a reason */
    }
    oct_ctx_free(ctx);
    return 0;
}
