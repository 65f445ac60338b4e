/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizing, and what its result tells; pruning. */
#include <string.h>

#include "ext.h"

/* --- quantizing --- */

pyo_quantized *pyo_quantized_new(pyo_context *c, PyObject *network)
{
    pyo_quantized *q = pyo_new(pyo.quantized);

    if (!q) return NULL;
    q->context = (pyo_context *)pyo_ref((PyObject *)c);
    q->keeps = pyo_ref(network);
    return q;
}

static PyObject *quantize(PyObject *self, PyObject *args)
{
    const char *json, *source;
    PyObject *network, *images;
    PyThreadState *state;
    oct_quantize_options o;
    pyo_settings s = {0};
    pyo_quantized *q;
    pyo_dataset *d;
    pyo_network *n;
    Py_ssize_t size;
    oct_status st;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!Os#z", pyo.network, &network, &images, &json, &size, &source))
        return NULL;
    n = (pyo_network *)network;
    if (!(d = pyo_dataset_of(images, n->context)) || !(q = pyo_quantized_new(n->context, network)))
        return NULL;
    if (!(state = pyo_enter(n->context))) {
        Py_DECREF(q);
        return NULL;
    }
    st = pyo_settings_read(&s, n->graph, n->context->ctx, json, size);
    if (!st) st = pyo_settings_quantize(&s, source, &o);
    if (!st) st = oct_quantize(n->graph, d->dataset, &o, &q->q);
    if (pyo_settings_leave(&s, n->context, state, st)) Py_CLEAR(q);
    return (PyObject *)q;
}

/* --- what became of it --- */

static PyObject *summary(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_quantize_summary, layers_total, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, layers_quantized, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, macs_quantized_share, PYO_REAL),
        PYO_FIELD(oct_quantize_summary, weights_quantized_share, PYO_REAL),
        PYO_FIELD(oct_quantize_summary, images, PYO_INT64),
        PYO_FIELD(oct_quantize_summary, seconds, PYO_REAL),
        PYO_FIELD(oct_quantize_summary, tail, PYO_TEXT),
        PYO_FIELD(oct_quantize_summary, best_for, PYO_TEXT),
        PYO_FIELD(oct_quantize_summary, equalized, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, smoothed, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, aligned, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, hardened, PYO_INT32),
        PYO_FIELD(oct_quantize_summary, learned, PYO_INT32),
    };
    oct_quantize_summary s = {.struct_size = sizeof(s)};

    (void)unused;
    oct_quantized_summary(((pyo_quantized *)self)->q, &s);
    return pyo_row(fields, PYO_COUNT(fields), &s);
}

static PyObject *layers(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_quantize_layer, name, PYO_TEXT),
        PYO_FIELD(oct_quantize_layer, op, PYO_TEXT),
        PYO_FIELD(oct_quantize_layer, reason, PYO_TEXT),
        PYO_FIELD(oct_quantize_layer, noise, PYO_REAL),
    };
    oct_quantize_layer l = {.struct_size = sizeof(l)};
    PyObject *list = PyList_New(0);

    (void)unused;
    for (int32_t i = 0; list && oct_quantized_layer(((pyo_quantized *)self)->q, i, &l); i++)
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &l))) Py_CLEAR(list);
    return list;
}

static PyObject *graph(PyObject *self, PyObject *unused)
{
    const pyo_quantized *q = (pyo_quantized *)self;
    oct_graph *g = (oct_graph *)(uintptr_t)oct_quantized_graph(q->q);

    (void)unused;
    return pyo_network_new(q->context, g, self, true);
}

static PyObject *save(PyObject *self, PyObject *args,
                      oct_status (*write)(const oct_quantized *, const char *))
{
    const pyo_quantized *q = (pyo_quantized *)self;
    PyThreadState *state;
    PyObject *path;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    if ((state = pyo_enter(q->context)) &&
        pyo_leave(q->context, state, write(q->q, PyBytes_AsString(path))))
        state = NULL;
    Py_DECREF(path);
    return state ? pyo_ref(Py_None) : NULL;
}

static PyObject *save_qmap(PyObject *self, PyObject *args)
{
    return save(self, args, oct_quantized_save_qmap);
}

static PyObject *save_ppq(PyObject *self, PyObject *args)
{
    return save(self, args, oct_quantized_save_ppq);
}

/* --- pruning --- */

static PyObject *prune_layers(const oct_prune_result *r)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_prune_layer, name, PYO_TEXT),
        PYO_FIELD(oct_prune_layer, op, PYO_TEXT),
        PYO_FIELD(oct_prune_layer, channels, PYO_INT64),
        PYO_FIELD(oct_prune_layer, channels_left, PYO_INT64),
        PYO_FIELD(oct_prune_layer, macs, PYO_INT64),
        PYO_FIELD(oct_prune_layer, macs_left, PYO_INT64),
        PYO_FIELD(oct_prune_layer, params, PYO_INT64),
        PYO_FIELD(oct_prune_layer, params_left, PYO_INT64),
        PYO_FIELD(oct_prune_layer, why, PYO_TEXT),
    };
    oct_prune_layer l = {.struct_size = sizeof(l)};
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && oct_prune_get_layer(r, i, &l); i++)
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &l))) Py_CLEAR(list);
    return list;
}

static PyObject *prune_totals(const oct_prune_result *r)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_prune_totals, macs, PYO_INT64),
        PYO_FIELD(oct_prune_totals, macs_left, PYO_INT64),
        PYO_FIELD(oct_prune_totals, params, PYO_INT64),
        PYO_FIELD(oct_prune_totals, params_left, PYO_INT64),
        PYO_FIELD(oct_prune_totals, channels, PYO_INT64),
        PYO_FIELD(oct_prune_totals, channels_left, PYO_INT64),
    };
    oct_prune_totals t = {.struct_size = sizeof(t)};

    oct_prune_get_totals(r, &t);
    return pyo_row(fields, PYO_COUNT(fields), &t);
}

static void free_pruned(void *r)
{
    oct_prune_result_free(r);
}

/* The settings say how pictures are fed. */
static oct_status prune_run(const pyo_network *n, const char *json, Py_ssize_t size,
                            oct_prune_options *o, pyo_settings *s, oct_graph **small,
                            oct_prune_result **r)
{
    const oct_status st = pyo_settings_read(s, n->graph, n->context->ctx, json, size);

    if (st) return st;
    o->family = s->family;
    o->preprocess = s->preprocess;
    return oct_prune_run(n->graph, o, small, r);
}

static PyObject *prune(PyObject *self, PyObject *args)
{
    PyObject *images, *out = NULL;
    int is_global, mask, keep_first, keep_strided;
    oct_prune_result *r = NULL;
    oct_graph *small = NULL;
    oct_prune_options o;
    pyo_settings s = {0};
    PyThreadState *state;
    const char *json;
    pyo_dataset *d = NULL;
    pyo_network *n;
    Py_ssize_t size;
    oct_status st;

    (void)self;
    oct_prune_options_init(&o);
    if (!PyArg_ParseTuple(args, "O!ddddspdizpzppOs#", pyo.network, &n, &o.flops_target,
                          &o.params_target, &o.channels, &o.time_target, &o.importance, &is_global,
                          &o.most, &o.multiple, &o.keep, &mask, &o.only, &keep_first, &keep_strided,
                          &images, &json, &size) ||
        (images != Py_None && !(d = pyo_dataset_of(images, n->context))))
        return NULL;
    o.global = is_global;
    o.mask = mask;
    o.keep_first = keep_first;
    o.keep_strided = keep_strided;
    o.pictures = d ? d->dataset : NULL;
    if (!(state = pyo_enter(n->context))) return NULL;
    st = prune_run(n, json, size, &o, &s, &small, &r);
    if (!pyo_settings_leave(&s, n->context, state, st))
        out = Py_BuildValue("(NNN)", pyo_network_new(n->context, small, n->keeps, false),
                            prune_totals(r), prune_layers(r));
    pyo_dispose(n->context, free_pruned, r);
    return out;
}

/* --- the type --- */

static void free_quantized(void *q)
{
    oct_quantized_free(q);
}

static void quantized_dealloc(PyObject *self)
{
    pyo_quantized *q = (pyo_quantized *)self;

    if (q->context) pyo_dispose(q->context, free_quantized, q->q);
    Py_XDECREF(q->keeps);
    Py_XDECREF((PyObject *)q->context);
    pyo_free(self);
}

static PyMethodDef methods[] = {
    {"summary", summary, METH_NOARGS, "Figures."},
    {"layers", layers, METH_NOARGS, "Layers with weights: why they are float, or their error."},
    {"graph", graph, METH_NOARGS, "The network with QuantizeLinear and DequantizeLinear."},
    {"save_qmap", save_qmap, METH_VARARGS, "(path)"},
    {"save_ppq", save_ppq, METH_VARARGS, "(path)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)pyo_refuse_new},
    {Py_tp_dealloc, (void *)quantized_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Quantized", sizeof(pyo_quantized), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"quantize", quantize, METH_VARARGS, "(network, dataset, settings, source)"},
    {"prune", prune, METH_VARARGS,
     "(network, flops, params, channels, time, importance, global, most, multiple, keep, mask, "
     "only, "
     "keep_first, keep_strided, dataset, settings)"},
    {NULL, NULL, 0, NULL},
};

int pyo_quantize_setup(PyObject *module)
{
    if (pyo_add_type(module, &spec, &pyo.quantized)) return -1;
    return PyModule_AddFunctions(module, functions);
}
