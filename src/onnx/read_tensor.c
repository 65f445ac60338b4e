/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of an ONNX file: seen in place where they can be, decoded where they must be. */
#include <string.h>

#include "onnx/read.h"

/* A sparse tensor is made dense; zeros cost nothing in a file, so there must be a bound. */
#define MAX_SPARSE_BYTES ((size_t)1 << 28)

oct_status oct_hold_tensor(oct_reader *r, oct_tensor *t)
{
    const oct_status st =
        oct_grow(r->ctx, &r->held, &r->cap_held, r->n_held + 1, sizeof(oct_tensor *));

    if (st) {
        oct_tensor_unref(t);
        return st;
    }
    r->held[r->n_held++] = t;
    return OCT_OK;
}

/* Shape and element type of a tensor, checked: a number of elements exists. */
static oct_status read_type(oct_reader *r, int32_t dtype, const oct_wire_ints *dims, oct_type *out)
{
    oct_type t = {.dtype = (oct_dtype)dtype};

    if (dtype != OCT_DTYPE_STRING && oct_dtype_get(t.dtype)->bits == 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "unknown data type %d", (int)dtype);
    if (dims->n > OCT_MAX_RANK)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "%zu dimensions, at most %d are supported",
                        dims->n, OCT_MAX_RANK);
    t.rank = (int32_t)dims->n;
    for (int i = 0; i < t.rank; i++) {
        if (dims->v[i] < 0)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "dimension %d is negative (%lld)", i,
                            (long long)dims->v[i]);
        t.dim[i] = dims->v[i];
    }
    if (oct_type_len(&t) < 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "the number of its elements overflows");
    *out = t;
    return OCT_OK;
}

/* Bytes to which the data of a type must be aligned for kernels to read them. */
static size_t alignment(oct_dtype t)
{
    const size_t size = oct_dtype_get(t)->bits / 8u;

    return OCT_MIN(OCT_MAX(size, 1), 8);
}

/* Bytes of the file as a tensor. Those that lie at an address kernels cannot use are copied. */
static oct_status see_bytes(oct_reader *r, const oct_type *type, oct_file *f, const uint8_t *p,
                            oct_tensor **out)
{
    oct_tensor *seen = NULL;
    oct_status st;

    if ((uintptr_t)p % alignment(type->dtype) == 0 && f)
        return oct_tensor_from_file(r->ctx, type, f, (size_t)(p - oct_file_data(f)), out);
    OCT_TRY(oct_tensor_borrow(r->ctx, type, (void *)(uintptr_t)p, &seen));
    seen->read_only = true;
    if ((uintptr_t)p % alignment(type->dtype) == 0) {
        *out = seen;
        return OCT_OK;
    }
    st = oct_tensor_copy(r->ctx, seen, out);
    oct_tensor_unref(seen);
    return st;
}

static oct_status wrong_length(oct_reader *r, size_t have, const char *unit, size_t need,
                               const oct_type *type)
{
    char text[OCT_TYPE_TEXT_SIZE];

    return oct_fail(r->ctx, OCT_ERR_FORMAT, "has %zu %s of data, but %s needs %zu", have, unit,
                    oct_type_text(type, text), need);
}

/* Integers and small floats lie one to an int32, as numbers or bits, or (packed types) one byte. */
static oct_status read_i32(oct_reader *r, const oct_pb_tensor *pb, oct_tensor *t, size_t n)
{
    const size_t width = t->size / n;
    int64_t *v = oct_alloc(r->ctx, n * sizeof(*v)); /* n: counted in the file, fits */
    uint8_t *dst = t->data;
    oct_status st;

    if (!v) return OCT_ERR_MEMORY;
    st = oct_wire_tensor_numbers(&r->wire, pb->self, &(oct_wire_numbers){.i32 = v});
    for (size_t i = 0; i < n && !st; i++)
        memcpy(dst + i * width, &v[i], width); /* the low bytes: little-endian */
    oct_free(r->ctx, v);
    return st;
}

/* The typed data field that holds elements of a type. */
static oct_status read_typed(oct_reader *r, const oct_pb_tensor *pb, const oct_type *type,
                             oct_tensor **out)
{
    const oct_dtype dt = type->dtype;
    const size_t len = (size_t)oct_type_len(type), bits = oct_dtype_get(dt)->bits;
    const bool is_float = dt == OCT_DTYPE_F32 || dt == OCT_DTYPE_C64;
    const bool is_double = dt == OCT_DTYPE_F64 || dt == OCT_DTYPE_C128;
    const bool is_u64 = dt == OCT_DTYPE_U32 || dt == OCT_DTYPE_U64;
    const bool is_i64 = dt == OCT_DTYPE_I64;
    const size_t parts = dt == OCT_DTYPE_C64 || dt == OCT_DTYPE_C128 ? 2 : 1;
    const size_t have = is_float    ? pb->n_float
                        : is_double ? pb->n_double
                        : is_u64    ? pb->n_u64
                        : is_i64    ? pb->n_i64
                                    : pb->n_i32;
    size_t need = len / (bits < 8 ? 8 / bits : 1) + (bits < 8 && len % (8 / bits));
    oct_wire_numbers to = {0};
    oct_tensor *t = NULL;
    oct_status st = OCT_OK;

    if (!oct_mul_size(need, parts, &need) || have != need)
        return wrong_length(r, have, "numbers", need, type);
    OCT_TRY(oct_tensor_make(r->ctx, type, &t)); /* as large as the file has numbers */
    if (is_float) to.f = t->data;
    if (is_double) to.d = t->data;
    if (is_i64) to.i64 = t->data;
    if (dt == OCT_DTYPE_U64) to.u64 = t->data;
    if (!have)
        st = OCT_OK;
    else if (dt == OCT_DTYPE_U32) {
        uint32_t *dst = t->data;

        if (!(to.u64 = oct_alloc(r->ctx, have * sizeof(int64_t)))) st = OCT_ERR_MEMORY;
        if (!st) st = oct_wire_tensor_numbers(&r->wire, pb->self, &to);
        for (size_t i = 0; i < have && !st; i++)
            dst[i] = (uint32_t)to.u64[i];
        oct_free(r->ctx, to.u64);
    } else if (is_float || is_double || is_i64 || is_u64)
        st = oct_wire_tensor_numbers(&r->wire, pb->self, &to);
    else
        st = read_i32(r, pb, t, have);
    if (st)
        oct_tensor_unref(t);
    else
        *out = t;
    return st;
}

static oct_status read_strings(oct_reader *r, const oct_pb_tensor *pb, const oct_type *type,
                               oct_tensor **out)
{
    const size_t len = (size_t)oct_type_len(type);
    oct_tensor *seen = NULL;
    oct_string *s;
    oct_status st;

    if (pb->strings.n != len) return wrong_length(r, pb->strings.n, "strings", len, type);
    OCT_TRY(oct_tensor_make(r->ctx, type, &seen));
    s = seen->data;
    for (size_t i = 0; i < len; i++)
        s[i] = (oct_string){(const char *)pb->strings.v[i].p, pb->strings.v[i].size};
    st = oct_tensor_copy(r->ctx, seen, out); /* with the characters */
    oct_tensor_unref(seen);
    return st;
}

static oct_status read_data(oct_reader *r, const oct_pb_tensor *pb, const oct_type *type,
                            oct_tensor **out)
{
    size_t bytes, offset = 0;
    oct_file *f = NULL;

    if (type->dtype == OCT_DTYPE_STRING) {
        if (pb->location == 1 || pb->raw.p)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "strings must be in string_data");
        return read_strings(r, pb, type, out);
    }
    if (!oct_type_bytes(type, &bytes))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "the number of its bytes overflows");
    if (pb->location == 1) {
        OCT_TRY(oct_external_find(r, pb, bytes, &f, &offset));
        return see_bytes(r, type, f, oct_file_data(f) + offset, out);
    }
    if (pb->location != 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "unknown data location %d", (int)pb->location);
    if (!pb->raw.p) return read_typed(r, pb, type, out);
    if (pb->raw.size != bytes) return wrong_length(r, pb->raw.size, "bytes", bytes, type);
    return see_bytes(r, type, r->file, pb->raw.p, out);
}

oct_status oct_read_tensor(oct_reader *r, const oct_pb_tensor *pb, const char *where,
                           oct_tensor **out)
{
    oct_type type;
    oct_status st = read_type(r, pb->data_type, &pb->dims, &type);

    if (!st) st = read_data(r, pb, &type, out);
    return st ? oct_fail_at(r->ctx, st, where) : OCT_OK;
}

/* --- sparse --- */

/* The place of stored element k in the dense tensor: indices are linear, or one row for each. */
static oct_status sparse_place(oct_reader *r, const oct_tensor *indices, int64_t k,
                               const oct_type *dense, int64_t *out)
{
    const int64_t len = oct_type_len(dense);
    int64_t at = 0;

    if (indices->type.rank == 1) {
        at = oct_tensor_get_i64(indices, k);
    } else {
        for (int i = 0; i < dense->rank; i++) {
            const int64_t x = oct_tensor_get_i64(indices, k * dense->rank + i);

            if (x < 0 || x >= dense->dim[i]) {
                at = -1;
                break;
            }
            at = at * dense->dim[i] + x;
        }
    }
    if (at < 0 || at >= len)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "sparse index %lld is outside the tensor",
                        (long long)k);
    *out = at;
    return OCT_OK;
}

static oct_status make_dense(oct_reader *r, const oct_tensor *values, const oct_tensor *indices,
                             const oct_type *type, oct_tensor **out)
{
    const size_t width = oct_dtype_size(type->dtype);
    const int64_t n = oct_tensor_len(values);
    const oct_type *it = &indices->type;
    oct_tensor *t = NULL;
    oct_status st = OCT_OK;
    size_t bytes;

    if (!width || !oct_type_bytes(type, &bytes) || bytes > MAX_SPARSE_BYTES)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "sparse tensor of this type or size");
    if (values->type.rank != 1 || it->dtype != OCT_DTYPE_I64 || it->rank < 1 || it->rank > 2 ||
        it->dim[0] != n || (it->rank == 2 && it->dim[1] != type->rank))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "sparse values and indices do not fit together");
    OCT_TRY(oct_tensor_make(r->ctx, type, &t));
    for (int64_t k = 0; k < n && !st; k++) {
        int64_t at = 0;

        st = sparse_place(r, indices, k, type, &at);
        if (!st)
            memcpy((char *)t->data + (size_t)at * width,
                   (const char *)values->data + (size_t)k * width, width);
    }
    if (st)
        oct_tensor_unref(t);
    else
        *out = t;
    return st;
}

oct_status oct_read_sparse(oct_reader *r, oct_span bytes, const char *where, oct_tensor **out,
                           oct_span *name)
{
    oct_tensor *values = NULL, *indices = NULL;
    oct_pb_tensor pb_values, pb_indices;
    oct_pb_sparse pb;
    oct_type type;
    oct_status st;

    OCT_TRY(oct_wire_sparse(&r->wire, bytes, &pb));
    OCT_TRY(oct_wire_tensor(&r->wire, pb.values, &pb_values));
    OCT_TRY(oct_wire_tensor(&r->wire, pb.indices, &pb_indices));
    if ((st = read_type(r, pb_values.data_type, &pb.dims, &type))) {
        oct_fail_at(r->ctx, st, where);
        goto done;
    }
    if ((st = oct_read_tensor(r, &pb_values, where, &values))) goto done;
    if ((st = oct_read_tensor(r, &pb_indices, where, &indices))) goto done;
    st = make_dense(r, values, indices, &type, out);
    if (st) oct_fail_at(r->ctx, st, where);
    *name = pb_values.name;
done:
    oct_tensor_unref(values);
    oct_tensor_unref(indices);
    return st;
}
