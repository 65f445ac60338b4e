/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO IR: whatever XML says about layers, edges and constants, a graph comes of it or a
 * reason. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <octet/octet.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t constants[4096] = {1, 2, 3};
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;
    char xml[64], bin[64];

    if (!ctx) return 0;
    (void)snprintf(xml, sizeof(xml), "/tmp/octet-fuzz-openvino-%d.xml", (int)getpid());
    (void)snprintf(bin, sizeof(bin), "/tmp/octet-fuzz-openvino-%d.bin", (int)getpid());
    put(xml, data, size);
    put(bin, constants, sizeof(constants));
    if (oct_openvino_load(ctx, xml, &g)) {
        if (!*oct_ctx_error(ctx)) abort();
    } else {
        oct_graph_free(g);
    }
    unlink(xml);
    unlink(bin);
    oct_ctx_free(ctx);
    return 0;
}
