/* SPDX-License-Identifier: Apache-2.0 */
/* Types and tensors. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

oct_type oct_type_make(oct_dtype dtype, int32_t rank, const int64_t *dim)
{
    oct_type t = {.dtype = dtype, .rank = rank};

    for (int32_t i = 0; i < rank && i < OCT_MAX_RANK; i++)
        t.dim[i] = dim[i];
    return t;
}

oct_type oct_type_unknown(oct_dtype dtype)
{
    return (oct_type){.dtype = dtype, .rank = -1};
}

bool oct_type_equal(const oct_type *a, const oct_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i]) return false;
    }
    return true;
}

bool oct_type_is_static(const oct_type *t)
{
    if (t->rank < 0 || t->rank > OCT_MAX_RANK) return false;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0) return false;
    }
    return true;
}

int64_t oct_type_len(const oct_type *t)
{
    int64_t n = 1;
    bool empty = false;

    if (!oct_type_is_static(t)) return -1;
    for (int32_t i = 0; i < t->rank; i++) {
        /* Kernels multiply some of the dimensions, so even those beside a 0 must have a product. */
        if (!t->dim[i])
            empty = true;
        else if (!oct_mul_i64(n, t->dim[i], &n))
            return -1;
    }
    return empty ? 0 : n;
}

bool oct_type_bytes(const oct_type *t, size_t *out)
{
    const int64_t n = oct_type_len(t);

    return n >= 0 && oct_dtype_bytes(t->dtype, n, out);
}

const char *oct_type_text(const oct_type *t, char text[OCT_TYPE_TEXT_SIZE])
{
    size_t used = (size_t)snprintf(text, OCT_TYPE_TEXT_SIZE, "%s[", oct_dtype_name(t->dtype));

    /* Eight dimensions of twenty digits and the longest name would not fit: cut, not overrun. */
    for (int32_t i = 0; i < OCT_MIN(t->rank, OCT_MAX_RANK) && used < OCT_TYPE_TEXT_SIZE; i++) {
        const char *x = i ? "x" : "";
        const size_t room = OCT_TYPE_TEXT_SIZE - used;

        if (t->dim[i] < 0)
            used += (size_t)snprintf(text + used, room, "%s?", x);
        else
            used += (size_t)snprintf(text + used, room, "%s%lld", x, (long long)t->dim[i]);
    }
    if (used < OCT_TYPE_TEXT_SIZE)
        snprintf(text + used, OCT_TYPE_TEXT_SIZE - used, t->rank < 0 ? "...]" : "]");
    return text;
}

/* Bytes at `data`: of the elements, or of the oct_strings. */
static bool data_size(const oct_type *t, size_t *out)
{
    const int64_t n = oct_type_len(t);

    if (t->dtype != OCT_DTYPE_STRING) return oct_type_bytes(t, out);
    return n >= 0 && oct_mul_size((size_t)n, sizeof(oct_string), out);
}

static oct_status fail_type(oct_ctx *ctx, const oct_type *type)
{
    char text[OCT_TYPE_TEXT_SIZE];

    return oct_fail(ctx, OCT_ERR_SHAPE, "no tensor can have the type %s",
                    oct_type_text(type, text));
}

/* The struct, and `extra` bytes of its own behind it, 64-byte aligned. */
static oct_status new_tensor(oct_ctx *ctx, const oct_type *type, size_t extra, oct_tensor **out)
{
    const size_t head = (sizeof(oct_tensor) + 63) / 64 * 64;
    oct_tensor *t;
    size_t size, total;

    if (!data_size(type, &size) || !oct_add_size(head, extra, &total)) return fail_type(ctx, type);
    t = oct_alloc(ctx, total);
    if (!t) return OCT_ERR_MEMORY;
    *t = (oct_tensor){.ctx = ctx, .type = *type, .data = (char *)t + head, .size = size};
    atomic_init(&t->refs, 1);
    *out = t;
    return OCT_OK;
}

oct_status oct_tensor_make(oct_ctx *ctx, const oct_type *type, oct_tensor **out)
{
    oct_tensor *t = NULL;
    size_t size;

    if (!data_size(type, &size)) return fail_type(ctx, type);
    OCT_TRY(new_tensor(ctx, type, size, &t));
    memset(t->data, 0, size);
    *out = t;
    return OCT_OK;
}

oct_status oct_tensor_new(oct_ctx *ctx, oct_dtype dtype, int32_t rank, const int64_t *dims,
                          oct_tensor **out)
{
    OCT_ENTER(ctx);
    oct_type type;

    if (rank < 0 || rank > OCT_MAX_RANK) {
        return oct_fail(ctx, OCT_ERR_SHAPE, "a tensor has 0 to %d dimensions, not %d", OCT_MAX_RANK,
                        (int)rank);
    }
    type = oct_type_make(dtype, rank, dims);
    return oct_tensor_make(ctx, &type, out);
}

static void release_file(oct_ctx *ctx, void *owner)
{
    (void)ctx;
    oct_file_unref(owner);
}

static void release_tensor(oct_ctx *ctx, void *owner)
{
    (void)ctx;
    oct_tensor_unref(owner);
}

oct_status oct_tensor_from_file(oct_ctx *ctx, const oct_type *type, oct_file *f, size_t offset,
                                oct_tensor **out)
{
    OCT_TRY(oct_tensor_borrow(ctx, type, (void *)(uintptr_t)(oct_file_data(f) + offset), out));
    (*out)->read_only = true;
    (*out)->release = release_file;
    (*out)->owner = oct_file_ref(f);
    return OCT_OK;
}

oct_status oct_tensor_borrow(oct_ctx *ctx, const oct_type *type, void *data, oct_tensor **out)
{
    OCT_TRY(new_tensor(ctx, type, 0, out));
    (*out)->data = data;
    return OCT_OK;
}

oct_status oct_tensor_view(oct_ctx *ctx, oct_tensor *t, const oct_type *type, oct_tensor **out)
{
    char from[OCT_TYPE_TEXT_SIZE], to[OCT_TYPE_TEXT_SIZE];
    size_t size;

    if (!data_size(type, &size) || size != t->size ||
        (type->dtype == OCT_DTYPE_STRING) != (t->type.dtype == OCT_DTYPE_STRING)) {
        return oct_fail(ctx, OCT_ERR_SHAPE, "%s cannot be seen as %s",
                        oct_type_text(&t->type, from), oct_type_text(type, to));
    }
    OCT_TRY(oct_tensor_borrow(ctx, type, t->data, out));
    /* Each copies before it writes, so neither sees the other's changes. What threads share is
     * marked beforehand, and not written here. */
    if (!t->read_only) t->read_only = true;
    (*out)->read_only = true;
    (*out)->release = release_tensor;
    (*out)->owner = oct_tensor_ref(t);
    return OCT_OK;
}

oct_tensor *oct_tensor_ref(oct_tensor *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void oct_tensor_unref(oct_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1) return;
    if (t->release) t->release(t->ctx, t->owner);
    oct_free(t->ctx, t);
}

oct_dtype oct_tensor_dtype(const oct_tensor *t)
{
    return t->type.dtype;
}

int32_t oct_tensor_rank(const oct_tensor *t)
{
    return t->type.rank;
}

const int64_t *oct_tensor_dims(const oct_tensor *t)
{
    return t->type.dim;
}

int64_t oct_tensor_len(const oct_tensor *t)
{
    return oct_type_len(&t->type);
}

size_t oct_tensor_size(const oct_tensor *t)
{
    return t->size;
}

const void *oct_tensor_data(const oct_tensor *t)
{
    return t->data;
}

/* A tensor's own copy of its bytes, which follow, and what it had before. */
typedef struct own_bytes {
    void (*release)(oct_ctx *ctx, void *owner);
    void *owner;
    char pad[48];
} own_bytes;

_Static_assert(sizeof(own_bytes) == 64, "keeps the bytes behind it aligned");

static void release_own(oct_ctx *ctx, void *owner)
{
    own_bytes *own = owner;

    if (own->release) own->release(ctx, own->owner);
    oct_free(ctx, own);
}

void *oct_tensor_mutable(oct_tensor *t)
{
    own_bytes *own;
    size_t total;

    if (!t->read_only) return t->data;
    if (!oct_add_size(t->size, sizeof(*own), &total)) return NULL;
    own = oct_alloc(t->ctx, total);
    if (!own) return NULL;
    *own = (own_bytes){.release = t->release, .owner = t->owner};
    if (t->size) memcpy(own + 1, t->data, t->size);

    /* The old bytes must stay while a view, which holds a reference, or a string points there. */
    if (atomic_load(&t->refs) == 1 && t->type.dtype != OCT_DTYPE_STRING) {
        if (own->release) own->release(t->ctx, own->owner);
        own->release = NULL;
    }
    t->data = own + 1;
    t->release = release_own;
    t->owner = own;
    t->read_only = false;
    return t->data;
}

/* Array and characters in one block, so that the copy needs nothing of the original. */
static oct_status copy_strings(oct_ctx *ctx, const oct_tensor *t, oct_tensor **out)
{
    const oct_string *src = t->data;
    const int64_t n = oct_tensor_len(t);
    size_t total = t->size;
    oct_string *dst;
    char *chars;

    for (int64_t i = 0; i < n; i++) {
        if (!oct_add_size(total, src[i].len, &total)) return fail_type(ctx, &t->type);
    }
    OCT_TRY(new_tensor(ctx, &t->type, total, out));
    dst = (*out)->data;
    chars = (char *)(dst + n);
    for (int64_t i = 0; i < n; i++) {
        if (src[i].len) memcpy(chars, src[i].s, src[i].len);
        dst[i] = (oct_string){chars, src[i].len};
        chars += src[i].len;
    }
    return OCT_OK;
}

oct_status oct_tensor_copy(oct_ctx *ctx, const oct_tensor *t, oct_tensor **out)
{
    if (t->type.dtype == OCT_DTYPE_STRING) return copy_strings(ctx, t, out);
    OCT_TRY(new_tensor(ctx, &t->type, t->size, out));
    if (t->size) memcpy((*out)->data, t->data, t->size);
    return OCT_OK;
}

oct_status oct_tensor_cast(oct_ctx *ctx, const oct_tensor *t, oct_dtype to, oct_tensor **out)
{
    const oct_type type = oct_type_make(to, t->type.rank, t->type.dim);

    if (to == t->type.dtype) return oct_tensor_copy(ctx, t, out);
    if (oct_dtype_get(t->type.dtype)->kind == OCT_DKIND_OTHER ||
        oct_dtype_get(to)->kind == OCT_DKIND_OTHER) {
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "cannot convert %s to %s",
                        oct_dtype_name(t->type.dtype), oct_dtype_name(to));
    }
    OCT_TRY(oct_tensor_make(ctx, &type, out));
    oct_convert(t->type.dtype, t->data, to, (*out)->data, oct_tensor_len(t), true);
    return OCT_OK;
}

oct_status oct_tensor_scalar_f32(oct_ctx *ctx, float v, oct_tensor **out)
{
    OCT_TRY(oct_tensor_new(ctx, OCT_DTYPE_F32, 0, NULL, out));
    *(float *)(*out)->data = v;
    return OCT_OK;
}

oct_status oct_tensor_vec_i64(oct_ctx *ctx, const int64_t *v, int64_t n, oct_tensor **out)
{
    OCT_TRY(oct_tensor_new(ctx, OCT_DTYPE_I64, 1, &n, out));
    if (n) memcpy((*out)->data, v, (*out)->size);
    return OCT_OK;
}

bool oct_tensor_equal(const oct_tensor *a, const oct_tensor *b)
{
    const oct_string *x = a->data, *y = b->data;
    const int64_t n = oct_tensor_len(a);

    if (!oct_type_equal(&a->type, &b->type)) return false;
    if (a->type.dtype != OCT_DTYPE_STRING)
        return a->data == b->data || !a->size || !memcmp(a->data, b->data, a->size);
    for (int64_t i = 0; i < n; i++) {
        if (x[i].len != y[i].len || (x[i].len && memcmp(x[i].s, y[i].s, x[i].len) != 0))
            return false;
    }
    return true;
}

int64_t oct_tensor_get_i64(const oct_tensor *t, int64_t i)
{
    int64_t v = 0;

    oct_load_i64(t->type.dtype, t->data, i, 1, &v);
    return v;
}

double oct_tensor_get_f64(const oct_tensor *t, int64_t i)
{
    double v = 0;

    oct_load_f64(t->type.dtype, t->data, i, 1, &v);
    return v;
}
