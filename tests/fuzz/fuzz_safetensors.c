/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files: whatever is read has tensors inside the file, and is written and read again as
 * it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 };

/* Through a file: the first tensors and notes. */
static void round_trip(oct_ctx *ctx, const oct_safetensors *s)
{
    oct_safetensors_entry entry[MOST];
    oct_safetensors_text note[MOST];
    oct_safetensors *back = NULL;
    int32_t n = 0, n_notes = 0;
    size_t size;
    char path[64];

    for (int32_t i = 0; i < oct_safetensors_count(s) && n < MOST; i++) {
        if (oct_safetensors_type(s, i)->dtype == OCT_DTYPE_NONE) continue;
        entry[n++] =
            (oct_safetensors_entry){oct_safetensors_name(s, i), *oct_safetensors_type(s, i),
                                    oct_safetensors_data(s, i, &size)};
    }
    for (; n_notes < oct_safetensors_n_notes(s) && n_notes < MOST; n_notes++) {
        note[n_notes].key = oct_safetensors_note_key(s, n_notes);
        note[n_notes].text = oct_safetensors_note(s, note[n_notes].key);
    }
    snprintf(path, sizeof(path), "/tmp/octet-fuzz-safetensors-%d", (int)getpid());
    if (oct_safetensors_save(ctx, path, entry, n, note, n_notes)) abort();
    if (oct_safetensors_open(ctx, path, &back)) abort();
    if (oct_safetensors_count(back) != n || oct_safetensors_n_notes(back) != n_notes) abort();
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = oct_safetensors_find(back, entry[i].name);
        const void *bytes;

        if (k < 0 || !oct_type_equal(oct_safetensors_type(back, k), &entry[i].type)) abort();
        bytes = oct_safetensors_data(back, k, &size);
        if (size && memcmp(bytes, entry[i].data, size) != 0) abort();
    }
    for (int32_t i = 0; i < n_notes; i++) {
        const char *text = oct_safetensors_note(back, note[i].key);

        if (!text || strcmp(text, note[i].text) != 0) abort();
    }
    oct_safetensors_close(back);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_safetensors *s = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (oct_safetensors_parse(ctx, data, size, &s) == OCT_OK) {
        uint8_t sum = 0;

        for (int32_t i = 0; i < oct_safetensors_count(s); i++) {
            oct_tensor *t = NULL;

            if (oct_safetensors_tensor(s, i, &t)) continue;
            for (size_t k = 0; k < t->size; k++) /* all of it is there */
                sum = (uint8_t)(sum + ((const uint8_t *)t->data)[k]);
            oct_tensor_unref(t);
        }
        /* Writing is slow; a part of the files is enough to find a difference. */
        if ((size + sum) % 16 == 0) round_trip(ctx, s);
        oct_safetensors_close(s);
    } else if (!*oct_ctx_error(ctx)) {
        abort(); /* a failure has a reason */
    }
    oct_ctx_free(ctx);
    return 0;
}
