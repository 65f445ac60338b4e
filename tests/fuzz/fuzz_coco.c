/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's annotation files: what is read holds together; leaving broken entries out always works
 * where stopping at them does. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const oct_dataset *d)
{
    for (int64_t i = 0; i < oct_dataset_size(d); i++) {
        int32_t n = 0;
        const oct_label *l = oct_dataset_labels(d, i, &n);

        if (!oct_dataset_path(d, i)) abort();
        if (i && oct_dataset_image_id(d, i) <= oct_dataset_image_id(d, i - 1)) abort();
        for (int32_t k = 0; k < n; k++) {
            if (!oct_dataset_category_name(d, l[k].category)) abort();
            if (!isfinite(l[k].x) || !(l[k].width >= 0) || !(l[k].height >= 0)) abort();
        }
    }
}

static oct_status parse(oct_ctx *ctx, const uint8_t *data, size_t size, bool skip_bad)
{
    oct_dataset d = {.ctx = ctx, .skip_bad = skip_bad, .arena = oct_arena_new(ctx)};
    oct_status st;

    if (!d.arena) return OCT_ERR_MEMORY;
    if ((st = oct_notes_new(ctx, &d.notes))) {
        oct_arena_free(d.arena);
        return st;
    }
    st = oct_parse_coco(&d, "images", (oct_bytes){data, size});
    if (!st) check(&d);
    if (!skip_bad && d.skipped) abort();
    oct_free(ctx, d.items);
    oct_free(ctx, d.categories);
    oct_notes_free(d.notes);
    oct_arena_free(d.arena);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (parse(ctx, data, size, false) == OCT_OK) {
        if (parse(ctx, data, size, true)) abort();
    } else {
        if (!*oct_ctx_error(ctx)) abort(); /* a failure has a reason */
        (void)parse(ctx, data, size, true);
    }
    oct_ctx_free(ctx);
    return 0;
}
