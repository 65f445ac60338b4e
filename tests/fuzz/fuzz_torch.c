/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.export archives: any bytes are read, or refused with a reason. An input is a whole archive,
 * or (when it begins with '{') the program of one whose weights are zeros: mutations of a zip
 * archive would rarely reach the program.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/torch_archive.h"
#include "tests/fuzz/torch_mutator.h"
#include "torch/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Else jansson draws how it hashes, and a fixed number of runs goes another way each time. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_object_seed(1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;
    uint8_t *made = NULL;
    size_t n = size;
    oct_status st;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (size && data[0] == '{') made = archive_of_program(data, size, &n);
    st = oct_torch_load_memory(ctx, made ? made : data, n, &g);
    if (st == OCT_OK)
        oct_graph_free(g);
    else if (!*oct_ctx_error(ctx) || g)
        abort(); /* a failure has a reason, and leaves nothing */
    free(made);
    oct_ctx_free(ctx);
    return 0;
}
