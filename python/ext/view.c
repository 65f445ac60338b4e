/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in: whatever has the buffer protocol or DLPack, in place where it is dense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* --- what a format means --- */

/* Letters differ between machines ('l' has 4 or 8 bytes): the kind and the size decide. */
static int32_t by_size(char letter, Py_ssize_t size)
{
    static const struct {
        const char *letters;
        int32_t by_log[4]; /* 1, 2, 4, 8 bytes */
    } kinds[] = {
        {"bhilqn", {OCT_DTYPE_I8, OCT_DTYPE_I16, OCT_DTYPE_I32, OCT_DTYPE_I64}},
        {"BHILQN", {OCT_DTYPE_U8, OCT_DTYPE_U16, OCT_DTYPE_U32, OCT_DTYPE_U64}},
        {"efdg", {0, OCT_DTYPE_F16, OCT_DTYPE_F32, OCT_DTYPE_F64}},
        {"?", {OCT_DTYPE_BOOL, 0, 0, 0}},
    };

    for (size_t i = 0; i < PYO_COUNT(kinds); i++)
        for (int log = 0; log < 4 && strchr(kinds[i].letters, letter); log++)
            if (size == 1 << log) return kinds[i].by_log[log];
    return OCT_DTYPE_NONE;
}

static int32_t dtype_of(const Py_buffer *b)
{
    const char *f = b->format ? b->format : "B";

    if (*f && strchr("@=<|", *f)) f++;
    if (f[0] == 'Z' && f[1] && !f[2])
        return b->itemsize == 8    ? OCT_DTYPE_C64
               : b->itemsize == 16 ? OCT_DTYPE_C128
                                   : OCT_DTYPE_NONE;
    return f[0] && !f[1] ? by_size(f[0], b->itemsize) : OCT_DTYPE_NONE;
}

/* --- the buffer protocol --- */

static int describe(const Py_buffer *b, const char *what, pyo_view *out)
{
    if (!(out->dtype = dtype_of(b))) {
        PyErr_Format(PyExc_TypeError, "%s: its element type ('%s') is none of octet's", what,
                     b->format ? b->format : "B");
        return -1;
    }
    if (b->ndim > OCT_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%s: %d dimensions are more than %d", what, b->ndim,
                     OCT_MAX_RANK);
        return -1;
    }
    out->rank = b->ndim;
    for (int i = 0; i < b->ndim; i++)
        out->dims[i] = b->shape ? b->shape[i] : b->len / b->itemsize;
    out->size = (size_t)b->len;
    out->readonly = b->readonly;
    return 0;
}

static int take_buffer(const char *what, pyo_view *out)
{
    Py_buffer *b = &out->buffer;

    if (describe(b, what, out)) return -1;
    out->data = b->buf;
    if (PyBuffer_IsContiguous(b, 'C')) return 0;
    if (!(out->copy = malloc(out->size ? out->size : 1))) {
        PyErr_NoMemory();
        return -1;
    }
    out->data = out->copy;
    out->is_copy = true;
    return PyBuffer_ToContiguous(out->copy, b, b->len, 'C');
}

/* --- both --- */

int pyo_view_get(PyObject *object, const char *what, pyo_view *out)
{
    int failed;

    memset(out, 0, sizeof(*out));
    if (PyObject_CheckBuffer(object)) {
        failed = PyObject_GetBuffer(object, &out->buffer, PyBUF_RECORDS_RO);
        if (!failed) failed = take_buffer(what, out);
    } else if (PyObject_HasAttrString(object, "__dlpack__")) {
        failed = pyo_dlpack_view(object, what, out);
    } else {
        PyErr_Format(PyExc_TypeError, "%s: %R is not an array", what, (PyObject *)Py_TYPE(object));
        failed = -1;
    }
    if (failed) pyo_view_release(out);
    return failed ? -1 : 0;
}

void pyo_view_release(pyo_view *v)
{
    PyObject *kept[3];

    PyErr_Fetch(&kept[0], &kept[1], &kept[2]); /* what is called here must not see it */
    if (v->buffer.obj) PyBuffer_Release(&v->buffer);
    pyo_dlpack_release(v->dlpack);
    free(v->copy);
    memset(v, 0, sizeof(*v));
    PyErr_Restore(kept[0], kept[1], kept[2]);
}

static bool same_dims(const pyo_view *v, int32_t rank, const int64_t *dims)
{
    for (int32_t i = 0; v->rank == rank && i < rank; i++)
        if (v->dims[i] != dims[i]) return false;
    return v->rank == rank;
}

int pyo_view_check(const pyo_view *v, const char *what, int32_t dtype, int32_t rank,
                   const int64_t *dims)
{
    char text[256];
    PyObject *have, *want;

    if (v->dtype != dtype) {
        (void)snprintf(text, sizeof(text), "%.120s takes %s, the array has %s", what,
                       oct_dtype_name((oct_dtype)dtype), oct_dtype_name((oct_dtype)v->dtype));
        pyo_raise(OCT_ERR_TYPE, text);
        return -1;
    }
    if (rank < 0 || same_dims(v, rank, dims)) return 0;
    have = pyo_dims(v->rank, v->dims);
    want = pyo_dims(rank, dims);
    if (have && want) {
        PyObject *s = PyUnicode_FromFormat("%s has the shape %R, the array %R", what, want, have);
        const char *utf8 = s ? PyUnicode_AsUTF8AndSize(s, NULL) : NULL;

        if (utf8) pyo_raise(OCT_ERR_SHAPE, utf8);
        Py_XDECREF(s);
    }
    Py_XDECREF(have);
    Py_XDECREF(want);
    return -1;
}
