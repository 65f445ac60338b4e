/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the extension needs beyond the limited API of 3.9. The buffer protocol became part of it in
 * 3.11, with the struct and the functions that 3.9 and 3.10 have and export: those two versions
 * change no more, and later ones have promised not to.
 */
#ifndef PYO_COMPAT_H
#define PYO_COMPAT_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct Py_buffer {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

enum {
    PyBUF_FORMAT = 0x4,
    PyBUF_ND = 0x8,
    PyBUF_STRIDES = 0x10 | PyBUF_ND,
    PyBUF_RECORDS_RO = PyBUF_STRIDES | PyBUF_FORMAT
};

#ifndef Py_bf_getbuffer /* some versions show it always */
#define Py_bf_getbuffer 1
#endif

PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *object);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
PyAPI_FUNC(int) PyBuffer_IsContiguous(const Py_buffer *view, char order);
PyAPI_FUNC(int) PyBuffer_ToContiguous(void *to, const Py_buffer *from, Py_ssize_t size, char order);
PyAPI_FUNC(int) PyBuffer_FillInfo(Py_buffer *view, PyObject *object, void *data, Py_ssize_t size,
                                  int readonly, int flags);

/* Exported since 3.3, part of the limited API since 3.10. */
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size);

/* Functions of 3.10. */
static inline PyObject *pyo_ref(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

static inline PyObject *pyo_xref(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}

static inline int pyo_add_object(PyObject *module, const char *name, PyObject *object)
{
    Py_INCREF(object);
    if (!PyModule_AddObject(module, name, object)) return 0;
    Py_DECREF(object);
    return -1;
}

#endif
