/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files of named tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tensor/safetensors_parts.h"

#define ALIGN 8 /* the data begin at a multiple of this */

/* A tensor with the rank of its type: files have the widest types first. */
typedef struct placed {
    const oct_safetensors_entry *entry;
    const oct_safetensors_dtype *dtype;
    size_t size;
} placed;

static int by_type_and_name(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    if (x->dtype != y->dtype) return x->dtype < y->dtype ? -1 : 1; /* rows of one table */
    return strcmp(x->entry->name, y->entry->name);
}

static oct_status place(oct_ctx *ctx, const oct_safetensors_entry *entry, int32_t n, placed *out)
{
    oct_map names;
    oct_status st = OCT_OK;

    oct_map_init(&names, ctx);
    for (int32_t i = 0; i < n && !st; i++) {
        const oct_safetensors_dtype *dtype = oct_safetensors_dtype_of(entry[i].type.dtype);
        char text[OCT_TYPE_TEXT_SIZE];

        out[i] = (placed){.entry = &entry[i], .dtype = dtype};
        if (!dtype || !oct_type_bytes(&entry[i].type, &out[i].size) ||
            (dtype->bits < 8 && oct_type_len(&entry[i].type) % 2))
            st = oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                          "tensor '%s': %s cannot be written to safetensors", entry[i].name,
                          oct_type_text(&entry[i].type, text));
        else if (oct_map_get(&names, entry[i].name) ||
                 strcmp(entry[i].name, OCT_SAFETENSORS_METADATA) == 0)
            st = oct_fail(ctx, OCT_ERR_ARG, "tensor '%s': its name is taken", entry[i].name);
        else
            st = oct_map_put(&names, entry[i].name, &out[i]);
    }
    oct_map_fini(&names);
    if (!st && n) qsort(out, (size_t)n, sizeof(*out), by_type_and_name);
    return st;
}

/* False: not UTF-8, which JSON must be. */
static bool put_text(oct_str *b, const char *text)
{
    oct_str_puts(b, "\"");
    while (*text) {
        const unsigned char c = (unsigned char)*text;
        int len = 1;

        if (c == '"' || c == '\\') {
            oct_str_printf(b, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            oct_str_printf(b, "\\u%04x", c);
        } else {
            len = oct_utf8_len(text);
            if (!len) return false;
            oct_str_put(b, text, (size_t)len);
        }
        text += len;
    }
    oct_str_puts(b, "\"");
    return true;
}

static bool put_notes(oct_str *b, const oct_safetensors_text *note, int32_t n)
{
    oct_str_puts(b, "\"" OCT_SAFETENSORS_METADATA "\":{");
    for (int32_t i = 0; i < n; i++) {
        if (i) oct_str_puts(b, ",");
        if (!put_text(b, note[i].key)) return false;
        oct_str_puts(b, ":");
        if (!put_text(b, note[i].text)) return false;
    }
    oct_str_puts(b, "}");
    return true;
}

static bool put_item(oct_str *b, const placed *p, uint64_t at)
{
    if (!put_text(b, p->entry->name)) return false;
    oct_str_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", p->dtype->name);
    for (int32_t k = 0; k < p->entry->type.rank; k++)
        oct_str_printf(b, "%s%lld", k ? "," : "", (long long)p->entry->type.dim[k]);
    oct_str_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                   (unsigned long long)at + p->size);
    return true;
}

/* The header, padded; *size: bytes of all data. */
static oct_status make_header(oct_ctx *ctx, const placed *p, int32_t n,
                              const oct_safetensors_text *note, int32_t n_notes, oct_str *b,
                              uint64_t *size)
{
    uint64_t at = 0;

    oct_str_puts(b, "{");
    if (n_notes && !put_notes(b, note, n_notes))
        return oct_fail(ctx, OCT_ERR_ARG, "a note is not UTF-8");
    for (int32_t i = 0; i < n; i++) {
        if (i || n_notes) oct_str_puts(b, ",");
        if (!put_item(b, &p[i], at))
            return oct_fail(ctx, OCT_ERR_ARG, "tensor '%s': its name is not UTF-8",
                            p[i].entry->name);
        at += p[i].size;
    }
    oct_str_puts(b, "}");
    while (!b->failed && b->len % ALIGN)
        oct_str_puts(b, " ");
    if (b->failed) return OCT_ERR_MEMORY;
    if (b->len > OCT_SAFETENSORS_MAX_HEADER)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "too many tensors for one safetensors file");
    *size = at;
    return OCT_OK;
}

static oct_status write_file(oct_ctx *ctx, const char *path, const oct_str *header, const placed *p,
                             int32_t n, uint64_t size)
{
    uint8_t length[8];
    oct_writer *w = NULL;
    oct_status st;

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)header->len >> 8 * i);
    OCT_TRY(oct_writer_open(ctx, path, &w));
    st = oct_writer_expect(w, size + header->len + sizeof(length));
    if (!st) st = oct_writer_put(w, length, sizeof(length));
    if (!st) st = oct_writer_put(w, header->s, header->len);
    for (int32_t i = 0; i < n && !st; i++)
        st = oct_writer_put(w, p[i].entry->data, p[i].size);
    if (!st) return oct_writer_commit(w);
    oct_writer_abort(w);
    return st;
}

oct_status oct_safetensors_save(oct_ctx *ctx, const char *path, const oct_safetensors_entry *entry,
                                int32_t n, const oct_safetensors_text *note, int32_t n_notes)
{
    placed *p = oct_calloc(ctx, (size_t)OCT_MAX(n, 1), sizeof(*p));
    oct_str header;
    uint64_t size = 0;
    oct_status st;

    if (!p) return OCT_ERR_MEMORY;
    oct_str_init(&header, ctx);
    st = place(ctx, entry, n, p);
    if (!st) st = make_header(ctx, p, n, note, n_notes, &header, &size);
    if (!st)
        st = write_file(ctx, path, &header, p, n, size);
    else
        oct_fail_at(ctx, st, path);
    oct_str_fini(&header);
    oct_free(ctx, p);
    return st;
}
