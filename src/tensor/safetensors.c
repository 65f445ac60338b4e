/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of named tensors: what the header says is compared with the file's size. */
#include "tensor/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/safetensors_parts.h"

#define LENGTH_SIZE 8 /* bytes of the header's length, little-endian */

static const oct_safetensors_dtype dtypes[] = {
    {"U64", 64, OCT_DTYPE_U64},
    {"I64", 64, OCT_DTYPE_I64},
    {"F64", 64, OCT_DTYPE_F64},
    {"C64", 64, OCT_DTYPE_C64},
    {"F32", 32, OCT_DTYPE_F32},
    {"U32", 32, OCT_DTYPE_U32},
    {"I32", 32, OCT_DTYPE_I32},
    {"BF16", 16, OCT_DTYPE_BF16},
    {"F16", 16, OCT_DTYPE_F16},
    {"U16", 16, OCT_DTYPE_U16},
    {"I16", 16, OCT_DTYPE_I16},
    {"F8_E5M2FNUZ", 8, OCT_DTYPE_F8E5M2FNUZ},
    {"F8_E4M3FNUZ", 8, OCT_DTYPE_F8E4M3FNUZ},
    {"F8_E8M0", 8, OCT_DTYPE_F8E8M0},
    {"F8_E4M3", 8, OCT_DTYPE_F8E4M3FN},
    {"F8_E5M2", 8, OCT_DTYPE_F8E5M2},
    {"I8", 8, OCT_DTYPE_I8},
    {"U8", 8, OCT_DTYPE_U8},
    {"F6_E3M2", 6, OCT_DTYPE_NONE},
    {"F6_E2M3", 6, OCT_DTYPE_NONE},
    {"F4", 4, OCT_DTYPE_F4E2M1},
    {"BOOL", 8, OCT_DTYPE_BOOL},
};

const oct_safetensors_dtype *oct_safetensors_dtype_named(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

const oct_safetensors_dtype *oct_safetensors_dtype_of(oct_dtype dtype)
{
    for (size_t i = 0; i < OCT_COUNT(dtypes); i++)
        if (dtype != OCT_DTYPE_NONE && dtypes[i].dtype == dtype) return &dtypes[i];
    return NULL;
}

/* --- checks --- */

static int by_offset(const void *a, const void *b)
{
    const oct_safetensors_item *x = *(oct_safetensors_item *const *)a;
    const oct_safetensors_item *y = *(oct_safetensors_item *const *)b;

    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static oct_status check_item(const oct_safetensors *s, const oct_safetensors_item *item)
{
    const int64_t n = oct_type_len(&item->type);
    size_t bits;

    if (item->end < item->begin)
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "tensor '%.200s' ends before it begins",
                        item->name);
    if (n < 0 || !oct_mul_size((size_t)n, item->dtype->bits, &bits))
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "tensor '%.200s' is too large", item->name);
    if (bits % 8 || bits / 8 != item->end - item->begin)
        return oct_fail(s->ctx, OCT_ERR_FORMAT,
                        "tensor '%.200s': its shape needs %zu bits of %s, but it has %llu bytes",
                        item->name, bits, item->dtype->name,
                        (unsigned long long)(item->end - item->begin));
    return OCT_OK;
}

/* The tensors lie one behind the other and fill the file. */
static oct_status check_layout(oct_safetensors *s, uint64_t size)
{
    uint64_t at = 0;

    if (s->n) qsort(s->item, (size_t)s->n, sizeof(*s->item), by_offset);
    for (int32_t i = 0; i < s->n; i++) {
        oct_safetensors_item *item = s->item[i];

        OCT_TRY(check_item(s, item));
        if (item->begin != at)
            return oct_fail(s->ctx, OCT_ERR_FORMAT,
                            "tensor '%.200s' begins at byte %llu, but the one before it ends at "
                            "%llu",
                            item->name, (unsigned long long)item->begin, (unsigned long long)at);
        at = item->end;
        item->index = i;
    }
    if (at != size)
        return oct_fail(
            s->ctx, OCT_ERR_FORMAT, "the tensors need %llu bytes, but the file has %llu of data%s",
            (unsigned long long)at, (unsigned long long)size, size < at ? "; it is cut off" : "");
    return OCT_OK;
}

static oct_status read_bytes(oct_safetensors *s, const uint8_t *data, size_t size)
{
    uint64_t n = 0;

    if (size < LENGTH_SIZE)
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "not a safetensors file: %zu bytes", size);
    for (int i = 0; i < LENGTH_SIZE; i++)
        n |= (uint64_t)data[i] << 8 * i;
    if (n > OCT_SAFETENSORS_MAX_HEADER)
        return oct_fail(s->ctx, OCT_ERR_FORMAT,
                        "not a safetensors file: a header of %llu bytes, which may have %u",
                        (unsigned long long)n, OCT_SAFETENSORS_MAX_HEADER);
    if (n > size - LENGTH_SIZE)
        return oct_fail(s->ctx, OCT_ERR_FORMAT,
                        "the header has %llu bytes, but the file ends after %zu of them",
                        (unsigned long long)n, size - LENGTH_SIZE);
    OCT_TRY(oct_safetensors_read_header(s, (const char *)data + LENGTH_SIZE, (size_t)n));
    s->data = data + LENGTH_SIZE + n;
    return check_layout(s, (uint64_t)size - LENGTH_SIZE - n);
}

/* --- making --- */

static oct_status make(oct_ctx *ctx, oct_file *file, const void *data, size_t size,
                       oct_safetensors **out)
{
    oct_safetensors *s = oct_calloc(ctx, 1, sizeof(*s));
    oct_status st;

    if (!s) return OCT_ERR_MEMORY;
    s->ctx = ctx;
    s->file = file ? oct_file_ref(file) : NULL;
    oct_map_init(&s->items, ctx);
    oct_map_init(&s->notes, ctx);
    s->arena = oct_arena_new(ctx);
    st = s->arena ? read_bytes(s, data, size) : OCT_ERR_MEMORY;
    if (st)
        oct_safetensors_close(s);
    else
        *out = s;
    return st;
}

oct_status oct_safetensors_open(oct_ctx *ctx, const char *path, oct_safetensors **out)
{
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, path, &f));
    st = make(ctx, f, oct_file_data(f), oct_file_size(f), out);
    oct_file_unref(f);
    return st ? oct_fail_at(ctx, st, path) : OCT_OK;
}

oct_status oct_safetensors_parse(oct_ctx *ctx, const void *data, size_t size, oct_safetensors **out)
{
    return make(ctx, NULL, data, size, out);
}

void oct_safetensors_close(oct_safetensors *s)
{
    if (!s) return;
    oct_map_fini(&s->items);
    oct_map_fini(&s->notes);
    oct_free(s->ctx, s->item);
    oct_free(s->ctx, s->note);
    oct_arena_free(s->arena);
    oct_file_unref(s->file);
    oct_free(s->ctx, s);
}

/* --- looking --- */

int32_t oct_safetensors_count(const oct_safetensors *s)
{
    return s->n;
}

const char *oct_safetensors_name(const oct_safetensors *s, int32_t i)
{
    return s->item[i]->name;
}

const oct_type *oct_safetensors_type(const oct_safetensors *s, int32_t i)
{
    return &s->item[i]->type;
}

int32_t oct_safetensors_find(const oct_safetensors *s, const char *name)
{
    const oct_safetensors_item *item = oct_map_get(&s->items, name);

    return item ? item->index : -1;
}

const void *oct_safetensors_data(const oct_safetensors *s, int32_t i, size_t *size)
{
    *size = (size_t)(s->item[i]->end - s->item[i]->begin);
    return s->data + s->item[i]->begin;
}

oct_file *oct_safetensors_file(const oct_safetensors *s)
{
    return s->file;
}

/* Own data: copied, and what is true is 1. */
static oct_status copy_tensor(const oct_safetensors *s, const oct_safetensors_item *item,
                              oct_tensor **out)
{
    uint8_t *to;

    OCT_TRY(oct_tensor_make(s->ctx, &item->type, out));
    to = (*out)->data;
    if ((*out)->size) memcpy(to, s->data + item->begin, (*out)->size);
    for (size_t k = 0; item->type.dtype == OCT_DTYPE_BOOL && k < (*out)->size; k++)
        to[k] = to[k] != 0;
    return OCT_OK;
}

oct_status oct_safetensors_tensor(const oct_safetensors *s, int32_t i, oct_tensor **out)
{
    const oct_safetensors_item *item = s->item[i];
    const uint8_t *data = s->data + item->begin;
    const size_t align = OCT_MAX(oct_dtype_size(item->type.dtype), 1);

    if (item->type.dtype == OCT_DTYPE_NONE)
        return oct_fail(s->ctx, OCT_ERR_UNSUPPORTED, "tensor '%.200s': type %s cannot be used",
                        item->name, item->dtype->name);
    if ((uintptr_t)data % align || item->type.dtype == OCT_DTYPE_BOOL)
        return copy_tensor(s, item, out);
    if (s->file)
        return oct_tensor_from_file(s->ctx, &item->type, s->file,
                                    (size_t)(data - oct_file_data(s->file)), out);
    OCT_TRY(oct_tensor_borrow(s->ctx, &item->type, (void *)(uintptr_t)data, out));
    (*out)->read_only = true;
    return OCT_OK;
}

int32_t oct_safetensors_n_notes(const oct_safetensors *s)
{
    return s->n_notes;
}

const char *oct_safetensors_note_key(const oct_safetensors *s, int32_t i)
{
    return s->note[i].key;
}

const char *oct_safetensors_note(const oct_safetensors *s, const char *key)
{
    return oct_map_get(&s->notes, key);
}
