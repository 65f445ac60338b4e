/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of all kinds: whatever is decoded can be preprocessed; whatever is not has a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <octet/data.h>

#include "base/ctx.h"

#define PNG_SIGNATURE "\x89PNG\r\n\x1a\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Makes a PNG file's checksums right, or nothing behind the first changed byte is ever reached. */
static void mend(uint8_t *p, size_t size)
{
    size_t at = 8;

    if (size < 8 || memcmp(p, PNG_SIGNATURE, 8) != 0) return;
    while (size - at >= 12) {
        const uint32_t n = (uint32_t)p[at] << 24 | (uint32_t)p[at + 1] << 16 |
                           (uint32_t)p[at + 2] << 8 | p[at + 3];
        uint32_t crc;

        if (n > size - at - 12) return;
        crc = crc_of(p + at + 4, (size_t)n + 4);
        for (size_t i = 0; i < 4; i++)
            p[at + 8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + (size_t)n;
    }
}

static void preprocess(oct_ctx *ctx, const oct_image *im, int32_t fit)
{
    static float dst[3 * 16 * 12];
    oct_preprocess p;
    oct_mapping map;

    oct_preprocess_init(&p);
    p.width = 16;
    p.height = 12;
    p.fit = fit % 4;
    p.interpolation = fit / 4 % 2;
    if (oct_preprocess_run(ctx, &p, im, OCT_DTYPE_F32, dst, &map)) abort();
    for (size_t i = 0; i < sizeof(dst) / sizeof(dst[0]); i++) {
        if (!(dst[i] >= 0 && dst[i] <= 1)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_image_options o;
    oct_image *im = NULL;
    uint8_t *file = malloc(size + 1);

    if (!ctx || !file) abort();
    memcpy(file, data, size);
    mend(file, size);
    oct_ctx_set_memory_limit(ctx, (size_t)64 << 20);
    oct_image_options_init(&o);
    o.exif = 1;
    o.max_pixels = 1 << 18;
    if (oct_image_decode(ctx, "x", file, size, &o, &im) == OCT_OK) {
        preprocess(ctx, im, (int32_t)(size % 8));
        oct_image_free(im);
    } else if (!ctx->error[0]) {
        abort(); /* a failure has a reason */
    }
    oct_ctx_free(ctx);
    free(file);
    return 0;
}
