/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: who works in one, progress, and errors as exceptions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* --- errors --- */

static const char *reason_of(oct_status st)
{
    static const char *const words[] = {
        [OCT_OK] = "ok",           [OCT_ERR_MEMORY] = "memory",
        [OCT_ERR_IO] = "io",       [OCT_ERR_FORMAT] = "format",
        [OCT_ERR_SHAPE] = "shape", [OCT_ERR_TYPE] = "type",
        [OCT_ERR_ARG] = "arg",     [OCT_ERR_UNSUPPORTED] = "unsupported",
        [OCT_ERR_STATE] = "state", [OCT_ERR_CANCELLED] = "cancelled",
    };

    return (size_t)st < PYO_COUNT(words) ? words[st] : "unknown";
}

/* Texts may quote files, which may hold any bytes. */
void pyo_raise(oct_status st, const char *text)
{
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *reason = PyUnicode_FromString(reason_of(st));
    PyObject *error = message ? PyObject_CallFunctionObjArgs(pyo.error, message, NULL) : NULL;

    if (error && reason && PyObject_SetAttrString(error, "reason", reason) == 0)
        PyErr_SetObject(pyo.error, error);
    Py_XDECREF(error);
    Py_XDECREF(reason);
    Py_XDECREF(message);
}

void pyo_keep_exception(pyo_context *c)
{
    if (c->raised[0])
        PyErr_Clear();
    else
        PyErr_Fetch(&c->raised[0], &c->raised[1], &c->raised[2]);
}

/* --- progress: on the thread that called octet --- */

static int on_progress(void *user, const char *what, int64_t done, int64_t total)
{
    pyo_context *c = user;
    const PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals();

    if (!stop && c->progress) {
        PyObject *r =
            PyObject_CallFunction(c->progress, "sLL", what, (long long)done, (long long)total);

        stop = r ? 0 : -1;
        Py_XDECREF(r);
    }
    if (stop) pyo_keep_exception(c);
    stop = stop || c->raised[0]; /* by a callback on another thread */
    PyGILState_Release(gil);
    return stop;
}

/* --- working in a context --- */

PyThreadState *pyo_enter(pyo_context *c)
{
    const unsigned long me = PyThread_get_thread_ident();
    PyThreadState *state;

    if (atomic_load(&c->owner) == me || atomic_load(&c->caller) == me) {
        pyo_raise(OCT_ERR_STATE,
                  "octet is at work with this network: its own callbacks cannot use it too");
        return NULL;
    }
    state = PyEval_SaveThread();
    (void)PyThread_acquire_lock(c->lock, WAIT_LOCK);
    atomic_store(&c->owner, me);
    return state;
}

static void empty_trash(pyo_context *c)
{
    while (c->trash) {
        pyo_trash *t = c->trash;

        c->trash = t->next;
        t->free(t->what);
        free(t);
    }
}

int pyo_leave(pyo_context *c, PyThreadState *state, oct_status st)
{
    char text[2048];
    PyObject *raised[3];

    text[0] = '\0';
    if (st) (void)snprintf(text, sizeof(text), "%s", oct_ctx_error(c->ctx));
    PyEval_RestoreThread(state);
    empty_trash(c); /* with the GIL: others add to it with the GIL */
    memcpy(raised, c->raised, sizeof(raised));
    memset(c->raised, 0, sizeof(c->raised));
    atomic_store(&c->owner, 0);
    PyThread_release_lock(c->lock);
    if (raised[0]) {
        PyErr_Restore(raised[0], raised[1], raised[2]);
        return -1;
    }
    if (!st) return 0;
    if (st == OCT_ERR_MEMORY)
        PyErr_SetString(PyExc_MemoryError, text);
    else
        pyo_raise(st, text);
    return -1;
}

/* An object may lose its last reference in a callback, while octet is at work on its context. */
void pyo_dispose(pyo_context *c, void (*release)(void *), void *what)
{
    const unsigned long me = PyThread_get_thread_ident();
    PyThreadState *state;
    pyo_trash *t;

    if (!what) return;
    if (atomic_load(&c->owner) == me || atomic_load(&c->caller) == me) {
        if (!(t = malloc(sizeof(*t)))) return; /* lost, rather than used by two */
        *t = (pyo_trash){c->trash, release, what};
        c->trash = t;
        return;
    }
    state = PyEval_SaveThread();
    (void)PyThread_acquire_lock(c->lock, WAIT_LOCK);
    release(what);
    PyThread_release_lock(c->lock);
    PyEval_RestoreThread(state);
}

/* --- the type --- */

pyo_context *pyo_context_new(void)
{
    pyo_context *c = pyo_new(pyo.context);

    if (!c) return NULL;
    c->ctx = oct_ctx_new(NULL);
    c->lock = PyThread_allocate_lock();
    if (!c->ctx || !c->lock) {
        Py_DECREF(c);
        PyErr_NoMemory();
        return NULL;
    }
    oct_ctx_set_progress(c->ctx, on_progress, c);
    return c;
}

static PyObject *context_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"threads", NULL};
    int threads = 0;
    pyo_context *c;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|i", names, &threads)) return NULL;
    if ((c = pyo_context_new())) oct_ctx_set_threads(c->ctx, threads);
    return (PyObject *)c;
}

static void context_dealloc(PyObject *self)
{
    pyo_context *c = (pyo_context *)self;

    oct_ctx_free(c->ctx);
    if (c->lock) PyThread_free_lock(c->lock);
    Py_XDECREF(c->progress);
    pyo_free(self);
}

static PyObject *get_progress(PyObject *self, void *unused)
{
    PyObject *p = ((pyo_context *)self)->progress;

    (void)unused;
    return pyo_ref(p ? p : Py_None);
}

static int set_progress(PyObject *self, PyObject *value, void *unused)
{
    pyo_context *c = (pyo_context *)self;
    PyObject *old = c->progress;

    (void)unused;
    if (value && value != Py_None && !PyCallable_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "progress is a function of (what, done, total)");
        return -1;
    }
    c->progress = value && value != Py_None ? pyo_ref(value) : NULL;
    Py_XDECREF(old);
    return 0;
}

static PyObject *set_threads(PyObject *self, PyObject *args)
{
    pyo_context *c = (pyo_context *)self;
    PyThreadState *state;
    int threads;

    if (!PyArg_ParseTuple(args, "i", &threads) || !(state = pyo_enter(c))) return NULL;
    oct_ctx_set_threads(c->ctx, threads);
    threads = oct_ctx_threads(c->ctx);
    return pyo_leave(c, state, OCT_OK) ? NULL : PyLong_FromLong(threads);
}

static PyMethodDef methods[] = {
    {"set_threads", set_threads, METH_VARARGS, "Threads for what is made from now on; 0: cores."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"progress", get_progress, set_progress, "Called with (what, done, total), or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)context_make},
    {Py_tp_dealloc, (void *)context_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_doc, "Where networks, data and results live together."},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Context", sizeof(pyo_context), 0, Py_TPFLAGS_DEFAULT,
                           slots};

int pyo_context_setup(PyObject *module)
{
    PyObject *members = PyDict_New();

    if (!members || pyo_set(members, "reason", PyUnicode_FromString("unknown"))) return -1;
    pyo.error = PyErr_NewExceptionWithDoc(
        "octet.Error",
        "What octet could not do. Its text says what, where and what to do; `reason` is one of "
        "memory, io, format, shape, type, unsupported, arg, state, cancelled.",
        NULL, members);
    Py_DECREF(members);
    if (!pyo.error || pyo_add_object(module, "Error", pyo.error)) return -1;
    return pyo_add_type(module, &spec, &pyo.context);
}
