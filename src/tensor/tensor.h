/* SPDX-License-Identifier: Apache-2.0 */
/* Types (element type + shape) and tensors with shared buffers. */
#ifndef OCT_TENSOR_TENSOR_H
#define OCT_TENSOR_TENSOR_H

#include <stdatomic.h>

#include "base/file.h"
#include "base/mem.h"
#include "tensor/dtype.h"

/* Element type and shape of a value. rank -1: unknown; a dim -1: unknown. */
typedef struct oct_type {
    oct_dtype dtype;
    int32_t rank;
    int64_t dim[OCT_MAX_RANK];
} oct_type;

oct_type oct_type_make(oct_dtype dtype, int32_t rank, const int64_t *dim);
oct_type oct_type_unknown(oct_dtype dtype); /* rank -1 */
bool oct_type_equal(const oct_type *a, const oct_type *b);
bool oct_type_is_static(const oct_type *t); /* rank and all dims known */
int64_t oct_type_len(const oct_type *t);    /* elements; -1 if not static or overflowing */
bool oct_type_bytes(const oct_type *t, size_t *out);
/* "float32[1x3x640x640]", "int64[?]", "float32[...]"; at most 160 bytes with the terminator. */
#define OCT_TYPE_TEXT_SIZE 160
const char *oct_type_text(const oct_type *t, char text[OCT_TYPE_TEXT_SIZE]);

/* Elements in dims [from, to) of a static type. */
static inline int64_t oct_type_span(const oct_type *t, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to; i++)
        n *= t->dim[i];
    return n;
}

/* One element of an OCT_DTYPE_STRING tensor. */
typedef struct oct_string {
    const char *s; /* not terminated */
    size_t len;
} oct_string;

/*
 * A dense row-major tensor. `data` is what kernels use; it may be borrowed from a mapped file,
 * from a plan's activation block or from the caller. The owner of the bytes is behind `release`.
 */
struct oct_tensor {
    oct_ctx *ctx;
    oct_type type;
    void *data;
    size_t size; /* bytes at data */
    atomic_int refs;
    bool read_only;                             /* mapped from a file: copy before writing */
    void (*release)(oct_ctx *ctx, void *owner); /* NULL: data is borrowed or in the same block */
    void *owner;
};

/* Own zeroed data. */
oct_status oct_tensor_make(oct_ctx *ctx, const oct_type *type, oct_tensor **out);

/* Data inside a mapped file; takes a reference to it. Checks nothing: the caller did. */
oct_status oct_tensor_from_file(oct_ctx *ctx, const oct_type *type, oct_file *f, size_t offset,
                                oct_tensor **out);

/* Data that the caller keeps alive as long as the tensor. */
oct_status oct_tensor_borrow(oct_ctx *ctx, const oct_type *type, void *data, oct_tensor **out);

/*
 * Another shape (or type of the same size) on the same bytes; takes a reference to `t`. From then
 * on oct_tensor_mutable() copies, once, on either side, so neither sees the other's changes.
 */
oct_status oct_tensor_view(oct_ctx *ctx, oct_tensor *t, const oct_type *type, oct_tensor **out);

oct_status oct_tensor_copy(oct_ctx *ctx, const oct_tensor *t, oct_tensor **out);
oct_status oct_tensor_cast(oct_ctx *ctx, const oct_tensor *t, oct_dtype to, oct_tensor **out);

/* 0-D and 1-D constants. */
oct_status oct_tensor_scalar_f32(oct_ctx *ctx, float v, oct_tensor **out);
oct_status oct_tensor_vec_i64(oct_ctx *ctx, const int64_t *v, int64_t n, oct_tensor **out);

bool oct_tensor_equal(const oct_tensor *a, const oct_tensor *b); /* type and bytes */

/* Element i as a number. */
int64_t oct_tensor_get_i64(const oct_tensor *t, int64_t i);
double oct_tensor_get_f64(const oct_tensor *t, int64_t i);

#endif
