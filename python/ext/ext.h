/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension share: contexts, errors, arrays, rows. */
#ifndef PYO_EXT_H
#define PYO_EXT_H

#include "compat.h" /* before all else: Python.h is in it */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <octet/octet.h>

#define PYO_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- types and names, set once when the module is imported (single-phase, one interpreter) --- */

typedef struct pyo_module {
    PyTypeObject *context, *tensor, *network, *session, *run, *dataset, *quantized, *detector,
        *training;
    PyObject *error;   /* octet.Error */
    PyObject *asarray; /* numpy.asarray; NULL: numpy is not there */
} pyo_module;

extern pyo_module pyo;

/* Makes the type, adds it to the module and keeps it in *slot. */
int pyo_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **slot);

int pyo_context_setup(PyObject *module);
int pyo_tensor_setup(PyObject *module);
int pyo_network_setup(PyObject *module);
int pyo_session_setup(PyObject *module);
int pyo_dataset_setup(PyObject *module);
int pyo_quantize_setup(PyObject *module);
int pyo_control_setup(PyObject *module);
int pyo_detect_setup(PyObject *module);
int pyo_analyze_setup(PyObject *module);
int pyo_train_setup(PyObject *module);

/* A new object of a type whose struct begins with PyObject_HEAD, zeroed behind it. */
void *pyo_new(PyTypeObject *type);
void pyo_free(PyObject *self); /* the end of each tp_dealloc */

/* tp_new of types whose objects only octet makes. */
PyObject *pyo_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

/* --- contexts (context.c) --- */

/* What was made in a context and lost its last reference while a call was at work in it. */
typedef struct pyo_trash {
    struct pyo_trash *next;
    void (*free)(void *);
    void *what;
} pyo_trash;

/*
 * An oct_ctx belongs to one thread at a time. The GIL is released while octet works, so each has a
 * lock, and whatever is made in it holds a reference to this object.
 */
typedef struct pyo_context {
    PyObject_HEAD oct_ctx *ctx;
    PyThread_type_lock lock;
    _Atomic(unsigned long) owner;  /* thread that holds the lock; 0: none */
    _Atomic(unsigned long) caller; /* thread of octet's that is in a callback; 0: none */
    PyObject *progress;            /* callable of the call at work, or NULL */
    PyObject *raised[3];           /* by a callback, to be raised when octet is back */
    pyo_trash *trash;
} pyo_context;

pyo_context *pyo_context_new(void);

/*
 * pyo_enter() releases the GIL and waits for the context; NULL with an exception if that would wait
 * for the calling thread itself, from one of its callbacks. pyo_leave() takes the GIL back and
 * raises what a callback raised, or what the status says; 0 or -1.
 */
PyThreadState *pyo_enter(pyo_context *c);
int pyo_leave(pyo_context *c, PyThreadState *state, oct_status st);

/* Frees what was made in the context, as soon as nobody is at work in it. */
void pyo_dispose(pyo_context *c, void (*free)(void *), void *what);

/* For callbacks, with the GIL held: keeps the exception for pyo_leave(), the first one only. */
void pyo_keep_exception(pyo_context *c);

/* --- errors (context.c): the only place that raises octet.Error --- */

void pyo_raise(oct_status st, const char *text);
#define pyo_raise_arg(text) pyo_raise(OCT_ERR_ARG, text)

/* --- arrays (tensor.c out, view.c in) --- */

/* Memory with a type and a shape, which Python sees through the buffer protocol and DLPack. */
typedef struct pyo_tensor {
    PyObject_HEAD void *data;
    size_t size;
    int32_t dtype, rank;
    int64_t dims[OCT_MAX_RANK];
    Py_ssize_t shape[OCT_MAX_RANK], strides[OCT_MAX_RANK]; /* for the buffer protocol */
    PyObject *owner;                                       /* of the memory; NULL: this object */
} pyo_tensor;

/* Zeroed only where asked for. 64-byte aligned, so that a session can read it in place. */
pyo_tensor *pyo_tensor_new(int32_t dtype, int32_t rank, const int64_t *dims);
pyo_tensor *pyo_tensor_wrap(int32_t dtype, int32_t rank, const int64_t *dims, void *data,
                            size_t size, PyObject *owner);

/* As numpy's array, without a copy, if numpy is there. Takes over the reference. */
PyObject *pyo_tensor_out(pyo_tensor *t);

/* A caller's array, dense: its own memory, or a copy if its layout is another one. */
typedef struct pyo_view {
    const void *data;
    size_t size;
    int32_t dtype, rank;
    int64_t dims[OCT_MAX_RANK];
    bool is_copy, readonly;
    Py_buffer buffer; /* buffer.obj NULL: none */
    struct pyo_dlpack *dlpack;
    void *copy;
} pyo_view;

/* `what` names the array in errors. */
int pyo_view_get(PyObject *object, const char *what, pyo_view *out);
void pyo_view_release(pyo_view *v);

/* 0 if type and shape are those wanted (rank < 0: any), else -1 and an exception. */
int pyo_view_check(const pyo_view *v, const char *what, int32_t dtype, int32_t rank,
                   const int64_t *dims);

const char *pyo_format(int32_t dtype); /* of the buffer protocol */
int32_t pyo_dtype_by_name(const char *name);
size_t pyo_dtype_bytes(int32_t dtype, int64_t n); /* of n elements */

/* DLPack (dlpack.c). */
PyObject *pyo_dlpack_export(pyo_tensor *t);
int pyo_dlpack_view(PyObject *object, const char *what, pyo_view *out);
void pyo_dlpack_release(struct pyo_dlpack *d);

/* --- rows (rows.c): structs of octet's as dicts --- */

typedef enum pyo_kind {
    PYO_TEXT,
    PYO_INT32,
    PYO_INT64,
    PYO_REAL,
    PYO_BOOL,
    PYO_ERROR /* oct_error */
} pyo_kind;

typedef struct pyo_field {
    const char *name;
    size_t at;
    pyo_kind kind;
} pyo_field;

#define PYO_FIELD(type, field, kind)                                                               \
    {                                                                                              \
#field, offsetof(type, field), kind                                                        \
    }

PyObject *pyo_row(const pyo_field *fields, size_t n, const void *from);
PyObject *pyo_text(const char *s);                                 /* None for NULL */
int pyo_set(PyObject *dict, const char *key, PyObject *value);     /* takes over the reference */
int pyo_append(PyObject *list, PyObject *item);                    /* the same */
PyObject *pyo_dims(int32_t rank, const int64_t *dims);             /* a tuple */
int pyo_get_dims(PyObject *tuple, int64_t *dims, int32_t *n_dims); /* 0 or -1 */

/* --- objects that several files know --- */

typedef struct pyo_network {
    PyObject_HEAD pyo_context *context;
    oct_graph *graph;
    PyObject *keeps;  /* what the graph borrows from: bytes, a Quantized; NULL: nothing */
    bool is_borrowed; /* the graph is of `keeps` */
} pyo_network;

/* Takes over the graph. */
PyObject *pyo_network_new(pyo_context *c, oct_graph *g, PyObject *keeps, bool is_borrowed);
PyObject *pyo_graph_io(const oct_graph *g, bool outputs);

typedef struct pyo_dataset {
    PyObject_HEAD pyo_context *context;
    oct_dataset *dataset;
    PyObject *next;   /* of a source: its function */
    int32_t n_inputs; /* of a source */
    oct_ctx *tensors; /* of a source: where its tensors live */
} pyo_dataset;

/* NULL with an exception unless it was opened in this context: errors name its items there. */
pyo_dataset *pyo_dataset_of(PyObject *object, const pyo_context *c);

typedef struct pyo_quantized {
    PyObject_HEAD pyo_context *context;
    oct_quantized *q;
    PyObject *keeps; /* what its memory may lie in: the float network */
} pyo_quantized;

/* An empty one, whose q is to be filled. */
pyo_quantized *pyo_quantized_new(pyo_context *c, PyObject *network);

/* --- settings (settings.c): a recipe as JSON, and what octet reads out of it --- */

typedef struct pyo_settings {
    oct_recipe *recipe;
    oct_recipe_job job;
    const char *family;
    oct_preprocess changed;
    const oct_preprocess *preprocess; /* NULL: the family's */
    oct_class_names *names;           /* NULL: as the file says */
} pyo_settings;

/* Inside pyo_enter() and pyo_leave(). */
oct_status pyo_settings_read(pyo_settings *s, const oct_graph *g, oct_ctx *ctx, const char *json,
                             Py_ssize_t size);
int pyo_settings_leave(pyo_settings *s, pyo_context *c, PyThreadState *state, oct_status st);
oct_status pyo_settings_quantize(pyo_settings *s, const char *source, oct_quantize_options *o);

#endif
