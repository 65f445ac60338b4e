/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of octet's as dicts, ready for pandas: a table of fields says which. */
#include <string.h>

#include "ext.h"

PyObject *pyo_text(const char *s)
{
    if (!s) return pyo_ref(Py_None);
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}

int pyo_set(PyObject *dict, const char *key, PyObject *value)
{
    const int failed = !value || PyDict_SetItemString(dict, key, value);

    Py_XDECREF(value);
    return failed ? -1 : 0;
}

int pyo_append(PyObject *list, PyObject *item)
{
    const int failed = !item || PyList_Append(list, item);

    Py_XDECREF(item);
    return failed ? -1 : 0;
}

static PyObject *error_row(const oct_error *e)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_error, noise, PYO_REAL),
        PYO_FIELD(oct_error, cosine, PYO_REAL),
        PYO_FIELD(oct_error, mse, PYO_REAL),
        PYO_FIELD(oct_error, kl, PYO_REAL),
    };

    if (e->noise < 0) return pyo_ref(Py_None);
    return pyo_row(fields, PYO_COUNT(fields), e);
}

static PyObject *field_value(const pyo_field *f, const char *from)
{
    const void *at = from + f->at;

    switch (f->kind) {
    case PYO_TEXT:
        return pyo_text(*(const char *const *)at);
    case PYO_INT32:
        return PyLong_FromLong(*(const int32_t *)at);
    case PYO_INT64:
        return PyLong_FromLongLong(*(const int64_t *)at);
    case PYO_REAL:
        return PyFloat_FromDouble(*(const double *)at);
    case PYO_BOOL:
        return PyBool_FromLong(*(const int32_t *)at);
    case PYO_ERROR:
        return error_row(at);
    }
    return NULL;
}

PyObject *pyo_row(const pyo_field *fields, size_t n, const void *from)
{
    PyObject *d = PyDict_New();

    for (size_t i = 0; d && i < n; i++)
        if (pyo_set(d, fields[i].name, field_value(&fields[i], from))) Py_CLEAR(d);
    return d;
}

PyObject *pyo_dims(int32_t rank, const int64_t *dims)
{
    PyObject *t = PyTuple_New(rank);

    for (int32_t i = 0; t && i < rank; i++) {
        PyObject *n = PyLong_FromLongLong(dims[i]);

        if (!n || PyTuple_SetItem(t, i, n)) Py_CLEAR(t);
    }
    return t;
}

int pyo_get_dims(PyObject *sequence, int64_t *dims, int32_t *n_dims)
{
    PyObject *t = PySequence_Tuple(sequence);
    const Py_ssize_t n = t ? PyTuple_Size(t) : -1;

    if (n > OCT_MAX_RANK) PyErr_Format(PyExc_ValueError, "more than %d dimensions", OCT_MAX_RANK);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(t, i));
        if (dims[i] < 0 && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "dimension %zd is %lld", i, (long long)dims[i]);
    }
    *n_dims = (int32_t)n;
    Py_XDECREF(t);
    return PyErr_Occurred() ? -1 : 0;
}
