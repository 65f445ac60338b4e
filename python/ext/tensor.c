/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays out: memory with a type and a shape, shown to Python without a copy. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

enum { ALIGNMENT = 64 }; /* what oct_run_bind_input() reads in place */

/* --- element types --- */

/* Types that the buffer protocol has no letter for are shown as integers of their size, those of
 * less than a byte as bytes. */
static const struct {
    const char *format;
    int bits;
} kinds[] = {
    [OCT_DTYPE_F32] = {"f", 32},       [OCT_DTYPE_U8] = {"B", 8},
    [OCT_DTYPE_I8] = {"b", 8},         [OCT_DTYPE_U16] = {"H", 16},
    [OCT_DTYPE_I16] = {"h", 16},       [OCT_DTYPE_I32] = {"i", 32},
    [OCT_DTYPE_I64] = {"q", 64},       [OCT_DTYPE_BOOL] = {"?", 8},
    [OCT_DTYPE_F16] = {"e", 16},       [OCT_DTYPE_F64] = {"d", 64},
    [OCT_DTYPE_U32] = {"I", 32},       [OCT_DTYPE_U64] = {"Q", 64},
    [OCT_DTYPE_C64] = {"Zf", 64},      [OCT_DTYPE_C128] = {"Zd", 128},
    [OCT_DTYPE_BF16] = {"H", 16},      [OCT_DTYPE_F8E4M3FN] = {"B", 8},
    [OCT_DTYPE_F8E4M3FNUZ] = {"B", 8}, [OCT_DTYPE_F8E5M2] = {"B", 8},
    [OCT_DTYPE_F8E5M2FNUZ] = {"B", 8}, [OCT_DTYPE_U4] = {"B", 4},
    [OCT_DTYPE_I4] = {"B", 4},         [OCT_DTYPE_F4E2M1] = {"B", 4},
    [OCT_DTYPE_F8E8M0] = {"B", 8},     [OCT_DTYPE_U2] = {"B", 2},
    [OCT_DTYPE_I2] = {"B", 2},
};

static bool is_known(int32_t dtype)
{
    return dtype > 0 && (size_t)dtype < PYO_COUNT(kinds) && kinds[dtype].bits;
}

const char *pyo_format(int32_t dtype)
{
    return is_known(dtype) ? kinds[dtype].format : NULL;
}

size_t pyo_dtype_bytes(int32_t dtype, int64_t n)
{
    return is_known(dtype) ? ((size_t)n * (size_t)kinds[dtype].bits + 7) / 8 : 0;
}

int32_t pyo_dtype_by_name(const char *name)
{
    for (int32_t i = 1; (size_t)i < PYO_COUNT(kinds); i++)
        if (is_known(i) && !strcmp(oct_dtype_name((oct_dtype)i), name)) return i;
    PyErr_Format(PyExc_TypeError, "octet has no arrays of type '%s'", name);
    return OCT_DTYPE_NONE;
}

/* --- making one --- */

/* The number of bytes; -1 and an exception if that is too many, or the type has no size. */
static Py_ssize_t count_bytes(int32_t dtype, int32_t rank, const int64_t *dims)
{
    int64_t n = 1;

    if (!is_known(dtype)) {
        PyErr_Format(PyExc_TypeError, "arrays of %s have no form in Python",
                     oct_dtype_name((oct_dtype)dtype));
        return -1;
    }
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || (dims[i] && n > (PY_SSIZE_T_MAX / 32) / dims[i])) {
            PyErr_NoMemory();
            return -1;
        }
        n *= dims[i];
    }
    return (Py_ssize_t)pyo_dtype_bytes(dtype, n);
}

static void set_shape(pyo_tensor *t)
{
    Py_ssize_t stride = (Py_ssize_t)kinds[t->dtype].bits / 8;

    for (int32_t i = t->rank - 1; i >= 0; i--) {
        t->shape[i] = (Py_ssize_t)t->dims[i];
        t->strides[i] = stride;
        stride *= t->shape[i];
    }
}

pyo_tensor *pyo_tensor_wrap(int32_t dtype, int32_t rank, const int64_t *dims, void *data,
                            size_t size, PyObject *owner)
{
    pyo_tensor *t = pyo_new(pyo.tensor);

    if (!t) return NULL;
    t->data = data;
    t->size = size;
    t->dtype = dtype;
    t->rank = rank;
    if (rank) memcpy(t->dims, dims, (size_t)rank * sizeof(*dims));
    t->owner = pyo_xref(owner);
    set_shape(t);
    return t;
}

pyo_tensor *pyo_tensor_new(int32_t dtype, int32_t rank, const int64_t *dims)
{
    const Py_ssize_t size = count_bytes(dtype, rank, dims);
    pyo_tensor *t;
    void *data;

    if (size < 0) return NULL;
    if (posix_memalign(&data, ALIGNMENT, size ? (size_t)size : 1)) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!(t = pyo_tensor_wrap(dtype, rank, dims, data, (size_t)size, NULL))) free(data);
    return t;
}

PyObject *pyo_tensor_out(pyo_tensor *t)
{
    PyObject *a;

    if (!t || !pyo.asarray) return (PyObject *)t;
    a = PyObject_CallFunctionObjArgs(pyo.asarray, t, NULL);
    Py_DECREF(t);
    return a;
}

/* --- the buffer protocol --- */

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    pyo_tensor *t = (pyo_tensor *)self;
    const bool is_packed = kinds[t->dtype].bits < 8;

    if (is_packed) return PyBuffer_FillInfo(view, self, t->data, (Py_ssize_t)t->size, 0, flags);
    *view = (Py_buffer){
        .buf = t->data,
        .obj = pyo_ref(self),
        .len = (Py_ssize_t)t->size,
        .itemsize = kinds[t->dtype].bits / 8,
        .ndim = t->rank,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)kinds[t->dtype].format : NULL,
        .shape = flags & PyBUF_ND ? t->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? t->strides : NULL,
    };
    return 0;
}

/* --- the type --- */

static void tensor_dealloc(PyObject *self)
{
    pyo_tensor *t = (pyo_tensor *)self;

    if (t->owner)
        Py_DECREF(t->owner);
    else
        free(t->data);
    pyo_free(self);
}

static PyObject *tensor_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"shape", "dtype", NULL};
    const char *dtype = "float32";
    int64_t dims[OCT_MAX_RANK];
    PyObject *shape;
    int32_t rank, kind;
    pyo_tensor *t;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|s", names, &shape, &dtype)) return NULL;
    if (pyo_get_dims(shape, dims, &rank) || !(kind = pyo_dtype_by_name(dtype))) return NULL;
    if ((t = pyo_tensor_new(kind, rank, dims))) memset(t->data, 0, t->size);
    return (PyObject *)t;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return pyo_dims(((pyo_tensor *)self)->rank, ((pyo_tensor *)self)->dims);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return pyo_text(oct_dtype_name((oct_dtype)((pyo_tensor *)self)->dtype));
}

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((pyo_tensor *)self)->data);
}

/* Consumers that ask for a version of DLPack accept the first one too. */
static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return pyo_dlpack_export((pyo_tensor *)self);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", 1, 0); /* the CPU */
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *r = shape
                      ? PyUnicode_FromFormat("octet.Tensor(%R, '%s')", shape,
                                             oct_dtype_name((oct_dtype)((pyo_tensor *)self)->dtype))
                      : NULL;

    Py_XDECREF(shape);
    return r;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
     "The memory as a DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "Always the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"shape", get_shape, NULL, "Its dimensions.", NULL},
    {"dtype", get_dtype, NULL, "The name of its element type.", NULL},
    {"address", get_address, NULL, "Where its memory begins.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)tensor_make},
    {Py_tp_dealloc, (void *)tensor_dealloc},
    {Py_tp_repr, (void *)tensor_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_bf_getbuffer, (void *)get_buffer},
    {Py_tp_doc, "Tensor(shape, dtype='float32')\n\nZeroed memory that sessions read in place; "
                "numpy.asarray() and torch.from_dlpack() show it without a copy."},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Tensor", sizeof(pyo_tensor), 0, Py_TPFLAGS_DEFAULT, slots};

int pyo_tensor_setup(PyObject *module)
{
    return pyo_add_type(module, &spec, &pyo.tensor);
}
