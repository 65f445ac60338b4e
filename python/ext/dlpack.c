/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, both ways: how PyTorch and others hand over memory (the structs are those of its ABI). */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

enum { DEVICE_CPU = 1, DEVICE_CUDA_HOST = 3, DEVICE_ROCM_HOST = 11 };
enum {
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4,
    CODE_COMPLEX = 5,
    CODE_BOOL = 6
};

typedef struct dl_tensor {
    void *data;
    int32_t device, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in elements; NULL: dense */
    uint64_t byte_offset;
} dl_tensor;

typedef struct pyo_dlpack {
    dl_tensor tensor;
    void *user;
    void (*release)(struct pyo_dlpack *);
} pyo_dlpack;

/* --- element types --- */

static const struct {
    int32_t dtype;
    uint8_t code, bits;
} kinds[] = {
    {OCT_DTYPE_F32, CODE_FLOAT, 32},     {OCT_DTYPE_F64, CODE_FLOAT, 64},
    {OCT_DTYPE_F16, CODE_FLOAT, 16},     {OCT_DTYPE_BF16, CODE_BFLOAT, 16},
    {OCT_DTYPE_I8, CODE_INT, 8},         {OCT_DTYPE_I16, CODE_INT, 16},
    {OCT_DTYPE_I32, CODE_INT, 32},       {OCT_DTYPE_I64, CODE_INT, 64},
    {OCT_DTYPE_U8, CODE_UINT, 8},        {OCT_DTYPE_U16, CODE_UINT, 16},
    {OCT_DTYPE_U32, CODE_UINT, 32},      {OCT_DTYPE_U64, CODE_UINT, 64},
    {OCT_DTYPE_BOOL, CODE_BOOL, 8},      {OCT_DTYPE_C64, CODE_COMPLEX, 64},
    {OCT_DTYPE_C128, CODE_COMPLEX, 128},
};

/* --- out --- */

static void release_export(pyo_dlpack *d)
{
    const PyGILState_STATE gil = PyGILState_Ensure(); /* consumers may let go on any thread */

    Py_DECREF((PyObject *)d->user);
    PyGILState_Release(gil);
    free(d);
}

/* Only of a capsule that nobody took. */
static void close_capsule(PyObject *capsule)
{
    pyo_dlpack *d;

    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    d = PyCapsule_GetPointer(capsule, "dltensor");
    if (d) d->release(d);
}

PyObject *pyo_dlpack_export(pyo_tensor *t)
{
    size_t k = 0;
    pyo_dlpack *d;
    PyObject *capsule;

    while (k < PYO_COUNT(kinds) && kinds[k].dtype != t->dtype)
        k++;
    if (k == PYO_COUNT(kinds)) {
        PyErr_Format(PyExc_BufferError, "DLPack has no type %s",
                     oct_dtype_name((oct_dtype)t->dtype));
        return NULL;
    }
    if (!(d = calloc(1, sizeof(*d)))) return PyErr_NoMemory();
    d->tensor = (dl_tensor){.data = t->data,
                            .device = DEVICE_CPU,
                            .rank = t->rank,
                            .code = kinds[k].code,
                            .bits = kinds[k].bits,
                            .lanes = 1,
                            .shape = t->dims}; /* lives as long as t, which d->user keeps */
    d->release = release_export;
    if (!(capsule = PyCapsule_New(d, "dltensor", close_capsule))) {
        free(d);
        return NULL;
    }
    d->user = pyo_ref((PyObject *)t);
    return capsule;
}

/* --- in --- */

void pyo_dlpack_release(pyo_dlpack *d)
{
    if (d && d->release) d->release(d);
}

/* Elements of a strided tensor one after the other. */
static void gather(const dl_tensor *t, size_t item, const char *from, char *to)
{
    int64_t at[OCT_MAX_RANK] = {0};

    for (;;) {
        int64_t offset = 0;
        int32_t axis = t->rank - 1;

        for (int32_t i = 0; i < t->rank; i++)
            offset += at[i] * t->strides[i];
        memcpy(to, from + offset * (int64_t)item, item);
        to += item;
        while (axis >= 0 && ++at[axis] == t->shape[axis])
            at[axis--] = 0;
        if (axis < 0) return;
    }
}

static bool is_dense(const dl_tensor *t)
{
    int64_t expected = 1;

    if (!t->strides) return true;
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != expected) return false;
        expected *= t->shape[i];
    }
    return true;
}

static int describe(const dl_tensor *t, const char *what, pyo_view *out)
{
    int64_t n = 1;
    size_t k = 0;

    while (k < PYO_COUNT(kinds) && (kinds[k].code != t->code || kinds[k].bits != t->bits))
        k++;
    if (k == PYO_COUNT(kinds) || t->lanes != 1) {
        PyErr_Format(PyExc_TypeError, "%s: its element type is none of octet's", what);
        return -1;
    }
    if (t->rank < 0 || t->rank > OCT_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%s: %d dimensions are more than %d", what, (int)t->rank,
                     OCT_MAX_RANK);
        return -1;
    }
    if (t->device != DEVICE_CPU && t->device != DEVICE_CUDA_HOST && t->device != DEVICE_ROCM_HOST) {
        PyErr_Format(PyExc_ValueError, "%s: it is not in the memory of the CPU: use .cpu()", what);
        return -1;
    }
    out->dtype = kinds[k].dtype;
    out->rank = t->rank;
    for (int32_t i = 0; i < t->rank; i++)
        n *= (out->dims[i] = t->shape[i]);
    out->size = pyo_dtype_bytes(out->dtype, n);
    return 0;
}

static int take(pyo_dlpack *d, const char *what, pyo_view *out)
{
    const dl_tensor *t = &d->tensor;

    if (describe(t, what, out)) return -1;
    out->data = (const char *)t->data + t->byte_offset;
    if (is_dense(t) || !out->size) return 0;
    if (!(out->copy = malloc(out->size))) {
        PyErr_NoMemory();
        return -1;
    }
    gather(t, t->bits / 8, out->data, out->copy);
    out->data = out->copy;
    out->is_copy = true;
    return 0;
}

int pyo_dlpack_view(PyObject *object, const char *what, pyo_view *out)
{
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    pyo_dlpack *d = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;

    if (d && PyCapsule_SetName(capsule, "used_dltensor")) d = NULL; /* it is ours from here on */
    out->dlpack = d;
    Py_XDECREF(capsule);
    return d ? take(d, what, out) : -1;
}
