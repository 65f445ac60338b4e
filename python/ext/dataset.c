/* SPDX-License-Identifier: Apache-2.0 */
/* Data: what octet opens itself, and what a Python function gives item by item. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* --- a list of strings, as octet wants it --- */

typedef struct strings {
    PyObject *kept; /* tuple of bytes */
    const char **list;
    int32_t n;
} strings;

static void free_strings(strings *s)
{
    free(s->list);
    Py_XDECREF(s->kept);
}

static int get_strings(PyObject *sequence, bool are_paths, strings *out)
{
    PyObject *items = PySequence_Tuple(sequence);
    const Py_ssize_t n = items ? PyTuple_Size(items) : 0;

    out->kept = items ? PyTuple_New(n) : NULL;
    out->list = calloc((size_t)n + 1, sizeof(*out->list));
    for (Py_ssize_t i = 0; out->kept && out->list && i < n; i++) {
        PyObject *item = PyTuple_GetItem(items, i), *bytes = NULL;

        if (are_paths ? !PyUnicode_FSConverter(item, &bytes)
                      : !(bytes = PyUnicode_AsUTF8String(item)))
            break;
        (void)PyTuple_SetItem(out->kept, i, bytes);
        out->list[i] = PyBytes_AsString(bytes);
        out->n++;
    }
    Py_XDECREF(items);
    if (out->kept && out->list && out->n == n) return 0;
    if (!PyErr_Occurred()) PyErr_NoMemory();
    free_strings(out);
    return -1;
}

/* --- what octet opens itself --- */

static pyo_dataset *new_dataset(pyo_context *c)
{
    pyo_dataset *d = pyo_new(pyo.dataset);

    if (d) d->context = (pyo_context *)pyo_ref((PyObject *)c);
    return d;
}

static PyObject *open_files(PyObject *self, PyObject *args)
{
    int limit, subset_size, is_random, skip_bad, every;
    PyObject *images, *annotations;
    unsigned long long seed;
    strings paths = {0};
    oct_dataset_options o;
    PyThreadState *state;
    pyo_dataset *d;
    pyo_context *c;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOiipKpi", pyo.context, &c, &images, &annotations, &limit,
                          &subset_size, &is_random, &seed, &skip_bad, &every))
        return NULL;
    oct_dataset_options_init(&o);
    if (get_strings(images, true, &paths)) return NULL;
    if (annotations == Py_None)
        annotations = NULL;
    else if (!PyUnicode_FSConverter(annotations, &annotations)) {
        free_strings(&paths);
        return NULL;
    }
    o.images = paths.n ? paths.list[0] : NULL;
    o.more_images = paths.list + 1;
    o.n_more_images = paths.n > 1 ? paths.n - 1 : 0;
    o.annotations = annotations ? PyBytes_AsString(annotations) : NULL;
    o.limit = limit;
    o.subset_size = subset_size;
    o.random = is_random;
    o.seed = seed;
    o.skip_bad = skip_bad;
    o.every = every;
    o.need_files = paths.n > 0;
    if ((d = new_dataset(c)) &&
        (!(state = pyo_enter(c)) || pyo_leave(c, state, oct_dataset_open(c->ctx, &o, &d->dataset))))
        Py_CLEAR(d);
    free_strings(&paths);
    Py_XDECREF(annotations);
    return (PyObject *)d;
}

/* --- what a function gives --- */

static oct_status copy_item(pyo_dataset *d, PyObject *arrays, oct_tensor **tensors)
{
    for (int32_t i = 0; i < d->n_inputs; i++) {
        PyObject *array = PySequence_GetItem(arrays, i);
        pyo_view v;
        oct_status st;

        if (!array || pyo_view_get(array, "calibration data", &v)) {
            Py_XDECREF(array);
            return OCT_ERR_ARG;
        }
        st = oct_tensor_new(d->tensors, (oct_dtype)v.dtype, v.rank, v.dims, &tensors[i]);
        if (!st && v.size) memcpy(oct_tensor_mutable(tensors[i]), v.data, v.size);
        pyo_view_release(&v);
        Py_DECREF(array);
        if (st) {
            pyo_raise(st, oct_ctx_error(d->tensors));
            return st;
        }
    }
    return OCT_OK;
}

/* On a thread of octet's, or on the one that called it. None: there is no such item. */
static oct_status on_next(void *user, int64_t index, oct_tensor **tensors)
{
    pyo_dataset *d = user;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *arrays;
    oct_status st;

    if (d->context->raised[0]) { /* the call is ending */
        PyGILState_Release(gil);
        return OCT_ERR_CANCELLED;
    }
    atomic_store(&d->context->caller, PyThread_get_thread_ident());
    arrays = PyObject_CallFunction(d->next, "L", (long long)index);
    st = !arrays ? OCT_ERR_ARG : arrays == Py_None ? OCT_ERR_STATE : copy_item(d, arrays, tensors);
    Py_XDECREF(arrays);
    if (PyErr_Occurred()) pyo_keep_exception(d->context);
    atomic_store(&d->context->caller, 0);
    PyGILState_Release(gil);
    return st;
}

static PyObject *open_source(PyObject *self, PyObject *args)
{
    PyObject *next, *inputs;
    oct_source_options o;
    PyThreadState *state;
    strings names = {0};
    long long size;
    pyo_dataset *d;
    pyo_context *c;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOL", pyo.context, &c, &next, &inputs, &size)) return NULL;
    if (get_strings(inputs, false, &names)) return NULL;
    oct_source_options_init(&o);
    if ((d = new_dataset(c))) {
        d->next = pyo_ref(next);
        d->n_inputs = names.n;
        d->tensors = oct_ctx_new(NULL);
        o.next = on_next;
        o.user = d;
        o.inputs = names.list;
        o.n_inputs = names.n;
        o.size = size;
        o.name = "the dataset";
        if (!d->tensors) PyErr_NoMemory();
        if (!d->tensors || !(state = pyo_enter(c)) ||
            pyo_leave(c, state, oct_dataset_from_source(c->ctx, &o, &d->dataset)))
            Py_CLEAR(d);
    }
    free_strings(&names);
    return (PyObject *)d;
}

/* --- the type --- */

pyo_dataset *pyo_dataset_of(PyObject *object, const pyo_context *c)
{
    pyo_dataset *d = (pyo_dataset *)object;

    if (Py_IS_TYPE(object, pyo.dataset) && d->context == c) return d;
    PyErr_SetString(PyExc_TypeError, "data that was opened for this network is wanted");
    return NULL;
}

/* Tensors of a source live in a context of their own, which goes after the dataset. */
typedef struct remains {
    oct_dataset *dataset;
    oct_ctx *tensors;
} remains;

static void free_remains(void *p)
{
    remains *r = p;

    oct_dataset_close(r->dataset);
    oct_ctx_free(r->tensors);
    free(r);
}

static void dataset_dealloc(PyObject *self)
{
    pyo_dataset *d = (pyo_dataset *)self;
    remains *r = malloc(sizeof(*r));

    if (r) {
        *r = (remains){d->dataset, d->tensors};
        pyo_dispose(d->context, free_remains, r);
    }
    Py_XDECREF(d->next);
    Py_XDECREF((PyObject *)d->context);
    pyo_free(self);
}

static PyObject *facts(PyObject *self, PyObject *unused)
{
    const oct_dataset *d = ((pyo_dataset *)self)->dataset;
    PyObject *names = PyList_New(0), *notes = PyList_New(0);
    const char *note;

    (void)unused;
    for (int32_t i = 0; names && i < oct_dataset_n_categories(d); i++)
        if (pyo_append(names, pyo_text(oct_dataset_category_name(d, i)))) Py_CLEAR(names);
    for (int32_t i = 0; notes && (note = oct_dataset_note(d, i)); i++)
        if (pyo_append(notes, pyo_text(note))) Py_CLEAR(notes);
    return Py_BuildValue("{sNsLsLsNsN}", "kind", pyo_text(oct_dataset_kind(d)), "size",
                         (long long)oct_dataset_size(d), "skipped",
                         (long long)oct_dataset_skipped(d), "categories", names, "notes", notes);
}

static PyMethodDef methods[] = {
    {"facts", facts, METH_NOARGS, "Its kind, size, categories, and what was left out."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)pyo_refuse_new},
    {Py_tp_dealloc, (void *)dataset_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Dataset", sizeof(pyo_dataset), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"open_files", open_files, METH_VARARGS,
     "(context, images, annotations, limit, subset_size, random, seed, skip_bad, every)"},
    {"open_source", open_source, METH_VARARGS, "(context, next, inputs, size)"},
    {NULL, NULL, 0, NULL},
};

int pyo_dataset_setup(PyObject *module)
{
    if (pyo_add_type(module, &spec, &pyo.dataset)) return -1;
    return PyModule_AddFunctions(module, functions);
}
