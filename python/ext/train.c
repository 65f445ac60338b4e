/* SPDX-License-Identifier: Apache-2.0 */
/* Training jobs, epoch by epoch: float and quantization-aware. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

typedef struct pyo_training {
    PyObject_HEAD pyo_context *context;
    PyObject *network, *data, *calibration; /* the job works with the data until it is freed */
    oct_train *job;
} pyo_training;

/* --- making one --- */

static oct_status open_job(pyo_training *t, const oct_graph *g, pyo_settings *s, bool is_qat,
                           const char *source)
{
    const pyo_dataset *data = (pyo_dataset *)t->data, *calibration = (pyo_dataset *)t->calibration;
    oct_recipe_train_job files = {.struct_size = sizeof(files)};
    oct_quantize_options quantize;
    oct_train_options o;
    oct_status st;

    oct_train_options_init(&o);
    oct_recipe_get_train(s->recipe, &o);
    oct_recipe_get_train_job(s->recipe, &files);
    if ((st = oct_recipe_lines(s->recipe, &o.settings))) return st;
    o.preprocess = s->preprocess;
    o.names = s->names;
    o.tensorboard = files.tensorboard;
    if (is_qat) {
        if ((st = pyo_settings_quantize(s, source, &quantize))) return st;
        o.quantize = &quantize;
        o.calibration = calibration ? calibration->dataset : NULL;
    }
    return oct_train_new(g, data->dataset, &o, &t->job);
}

static PyObject *training_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *data, *calibration;
    const char *json, *source;
    PyThreadState *state;
    pyo_settings s = {0};
    pyo_training *t;
    pyo_network *n;
    Py_ssize_t size;
    oct_status st;
    int is_qat;

    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!OOs#pz", pyo.network, &n, &data, &calibration, &json, &size,
                          &is_qat, &source) ||
        !pyo_dataset_of(data, n->context) ||
        (calibration != Py_None && !pyo_dataset_of(calibration, n->context)))
        return NULL;
    if (!(t = pyo_new(type))) return NULL;
    t->context = (pyo_context *)pyo_ref((PyObject *)n->context);
    t->network = pyo_ref((PyObject *)n);
    t->data = pyo_ref(data);
    t->calibration = calibration == Py_None ? NULL : pyo_ref(calibration);
    if (!(state = pyo_enter(t->context))) {
        Py_DECREF(t);
        return NULL;
    }
    st = pyo_settings_read(&s, n->graph, t->context->ctx, json, size);
    if (!st) st = open_job(t, n->graph, &s, is_qat, source);
    if (pyo_settings_leave(&s, t->context, state, st)) Py_CLEAR(t);
    return (PyObject *)t;
}

static void free_job(void *job)
{
    oct_train_free(job);
}

static void training_dealloc(PyObject *self)
{
    pyo_training *t = (pyo_training *)self;

    if (t->context) pyo_dispose(t->context, free_job, t->job);
    Py_XDECREF(t->data);
    Py_XDECREF(t->calibration);
    Py_XDECREF(t->network);
    Py_XDECREF((PyObject *)t->context);
    pyo_free(self);
}

/* --- epochs --- */

static PyObject *run(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_train_epoch, epoch, PYO_INT32),
        PYO_FIELD(oct_train_epoch, step, PYO_INT64),
        PYO_FIELD(oct_train_epoch, loss, PYO_REAL),
        PYO_FIELD(oct_train_epoch, rate, PYO_REAL),
        PYO_FIELD(oct_train_epoch, grad_norm, PYO_REAL),
        PYO_FIELD(oct_train_epoch, seconds, PYO_REAL),
    };
    oct_train_epoch e = {.struct_size = sizeof(e)};
    pyo_training *t = (pyo_training *)self;
    PyThreadState *state = pyo_enter(t->context);

    (void)unused;
    if (!state || pyo_leave(t->context, state, oct_train_run(t->job, &e))) return NULL;
    return pyo_row(fields, PYO_COUNT(fields), &e);
}

static PyObject *is_done(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(oct_train_is_done(((pyo_training *)self)->job));
}

static PyObject *graph(PyObject *self, PyObject *unused)
{
    pyo_training *t = (pyo_training *)self;
    PyThreadState *state = pyo_enter(t->context);
    oct_graph *g = NULL;

    (void)unused;
    if (!state || pyo_leave(t->context, state, oct_train_graph(t->job, &g))) return NULL;
    return pyo_network_new(t->context, g, t->network, false);
}

static PyObject *file(PyObject *self, PyObject *args, bool is_read)
{
    pyo_training *t = (pyo_training *)self;
    PyThreadState *state;
    PyObject *path;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    if ((state = pyo_enter(t->context))) {
        const char *name = PyBytes_AsString(path);
        const oct_status st =
            is_read ? oct_train_resume(t->job, name) : oct_train_save(t->job, name);

        if (pyo_leave(t->context, state, st)) state = NULL;
    }
    Py_DECREF(path);
    return state ? pyo_ref(Py_None) : NULL;
}

static PyObject *save(PyObject *self, PyObject *args)
{
    return file(self, args, false);
}

static PyObject *resume(PyObject *self, PyObject *args)
{
    return file(self, args, true);
}

static PyObject *facts(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_train_info, loss, PYO_TEXT),
        PYO_FIELD(oct_train_info, why, PYO_TEXT),
        PYO_FIELD(oct_train_info, max_boxes, PYO_INT32),
        PYO_FIELD(oct_train_info, precision, PYO_TEXT),
    };
    oct_train_info info = {.struct_size = sizeof(info)};

    (void)unused;
    oct_train_describe(((pyo_training *)self)->job, &info);
    return pyo_row(fields, PYO_COUNT(fields), &info);
}

/* --- the type --- */

static PyMethodDef methods[] = {
    {"run", run, METH_NOARGS, "Trains an epoch."},
    {"is_done", is_done, METH_NOARGS, "All epochs were trained."},
    {"graph", graph, METH_NOARGS, "The network as it is now."},
    {"save", save, METH_VARARGS, "(path): a checkpoint."},
    {"resume", resume, METH_VARARGS, "(path): goes on from a checkpoint."},
    {"facts", facts, METH_NOARGS, "Its loss, and how it computes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)training_make},
    {Py_tp_dealloc, (void *)training_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Training", sizeof(pyo_training), 0, Py_TPFLAGS_DEFAULT,
                           slots};

int pyo_train_setup(PyObject *module)
{
    return pyo_add_type(module, &spec, &pyo.training);
}
