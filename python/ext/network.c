/* SPDX-License-Identifier: Apache-2.0 */
/* Networks: reading, looking at, simplifying, writing. */
#include <string.h>

#include "ext.h"

/* --- inputs and outputs --- */

static PyObject *value_shape(const oct_value *v)
{
    const int32_t rank = oct_value_rank(v);
    PyObject *t = rank < 0 ? pyo_ref(Py_None) : PyTuple_New(rank);

    for (int32_t i = 0; t && i < rank; i++) {
        const int64_t n = oct_value_dim(v, i);
        const char *name = oct_value_dim_name(v, i);
        PyObject *d = n >= 0 ? PyLong_FromLongLong(n) : pyo_text(name);

        if (!d || PyTuple_SetItem(t, i, d)) Py_CLEAR(t);
    }
    return t;
}

PyObject *pyo_graph_io(const oct_graph *g, bool outputs)
{
    const int32_t n = outputs ? oct_graph_n_outputs(g) : oct_graph_n_inputs(g);
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < n; i++) {
        const oct_value *v = outputs ? oct_graph_output(g, i) : oct_graph_input(g, i);
        PyObject *row = Py_BuildValue("(NNN)", pyo_text(oct_value_name(v)),
                                      pyo_text(oct_dtype_name(oct_value_dtype(v))), value_shape(v));

        if (pyo_append(list, row)) Py_CLEAR(list);
    }
    return list;
}

/* Graphs are looked at with the GIL held and nobody at work in the context. */
static PyObject *look(PyObject *self, PyObject *(*at)(const oct_graph *))
{
    pyo_network *n = (pyo_network *)self;
    PyThreadState *state = pyo_enter(n->context);
    PyObject *out;

    if (!state) return NULL;
    PyEval_RestoreThread(state);
    out = at(n->graph);
    state = PyEval_SaveThread();
    if (pyo_leave(n->context, state, OCT_OK)) Py_CLEAR(out);
    return out;
}

static PyObject *inputs_at(const oct_graph *g)
{
    return pyo_graph_io(g, false);
}

static PyObject *outputs_at(const oct_graph *g)
{
    return pyo_graph_io(g, true);
}

static PyObject *facts_at(const oct_graph *g)
{
    char text[512];

    return Py_BuildValue("{sNsLsLsNsisN}", "name", pyo_text(oct_graph_name(g)), "opset",
                         (long long)oct_graph_opset(g), "ir_version",
                         (long long)oct_graph_ir_version(g), "producer",
                         pyo_text(oct_graph_producer(g)), "n_nodes", (int)oct_graph_n_nodes(g),
                         "quantized", pyo_text(oct_graph_quant_text(g, text, sizeof(text))));
}

static PyObject *names_at(const oct_node *n, int32_t count,
                          const oct_value *(*value)(const oct_node *, int32_t))
{
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < count; i++) {
        const oct_value *v = value(n, i);

        if (pyo_append(list, pyo_text(v ? oct_value_name(v) : ""))) Py_CLEAR(list);
    }
    return list;
}

static PyObject *nodes_at(const oct_graph *g)
{
    PyObject *list = PyList_New(0);

    for (const oct_node *n = oct_graph_first_node(g); list && n; n = oct_node_next(n)) {
        PyObject *row =
            Py_BuildValue("{sNsNsNsNsNsLsL}", "name", pyo_text(oct_node_name(n)), "op",
                          pyo_text(oct_node_op(n)), "domain", pyo_text(oct_node_domain(n)),
                          "inputs", names_at(n, oct_node_n_in(n), oct_node_input), "outputs",
                          names_at(n, oct_node_n_out(n), oct_node_output), "params",
                          (long long)oct_node_params(n), "macs", (long long)oct_node_macs(n));

        if (pyo_append(list, row)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *metadata_at(const oct_graph *g)
{
    PyObject *d = PyDict_New();

    for (int32_t i = 0; d && oct_graph_metadata_key(g, i); i++) {
        const char *key = oct_graph_metadata_key(g, i);

        if (pyo_set(d, key, pyo_text(oct_graph_metadata(g, key)))) Py_CLEAR(d);
    }
    return d;
}

static PyObject *inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return look(self, inputs_at);
}

static PyObject *outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return look(self, outputs_at);
}

static PyObject *facts(PyObject *self, PyObject *unused)
{
    (void)unused;
    return look(self, facts_at);
}

static PyObject *nodes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return look(self, nodes_at);
}

static PyObject *metadata(PyObject *self, PyObject *unused)
{
    (void)unused;
    return look(self, metadata_at);
}

/* --- changing --- */

/* Quantized networks are looked at by others too: whoever wants to change one copies it. */
static PyThreadState *enter_to_change(pyo_network *n)
{
    if (n->is_borrowed) {
        pyo_raise(OCT_ERR_STATE, "a result cannot be changed: change a copy() of it");
        return NULL;
    }
    return pyo_enter(n->context);
}

static PyObject *done(pyo_network *n, PyThreadState *state, oct_status st)
{
    return pyo_leave(n->context, state, st) ? NULL : pyo_ref(Py_None);
}

static PyObject *simplify(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    PyThreadState *state;
    oct_simplify_options o;

    oct_simplify_options_init(&o);
    if (!PyArg_ParseTuple(args, "zz", &o.only, &o.skip)) return NULL;
    if (!(state = enter_to_change(n))) return NULL;
    return done(n, state, oct_graph_simplify(n->graph, &o));
}

static PyObject *set_shape(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    int64_t dims[OCT_MAX_RANK];
    PyThreadState *state;
    const char *name;
    PyObject *shape;
    int32_t rank;

    if (!PyArg_ParseTuple(args, "sO", &name, &shape) || pyo_get_dims(shape, dims, &rank))
        return NULL;
    if (!(state = enter_to_change(n))) return NULL;
    return done(n, state, oct_graph_set_input_shape(n->graph, name, rank, dims));
}

static PyObject *keep_outputs(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    PyThreadState *state;
    const char *names;

    if (!PyArg_ParseTuple(args, "s", &names) || !(state = enter_to_change(n))) return NULL;
    return done(n, state, oct_graph_keep_outputs(n->graph, names));
}

static PyObject *set_metadata(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    PyThreadState *state;
    const char *key, *value;

    if (!PyArg_ParseTuple(args, "sz", &key, &value) || !(state = enter_to_change(n))) return NULL;
    return done(n, state, oct_graph_set_metadata(n->graph, key, value));
}

/* --- files --- */

static PyObject *save_onnx(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    PyObject *path;
    PyThreadState *state;
    oct_onnx_options o;
    int external, opset;

    if (!PyArg_ParseTuple(args, "O&pi", PyUnicode_FSConverter, &path, &external, &opset))
        return NULL;
    oct_onnx_options_init(&o);
    o.external_data = external;
    o.opset = opset;
    if ((state = pyo_enter(n->context)) &&
        pyo_leave(n->context, state, oct_onnx_save(n->graph, PyBytes_AsString(path), &o)))
        state = NULL;
    Py_DECREF(path);
    return state ? pyo_ref(Py_None) : NULL;
}

static PyObject *save_openvino(PyObject *self, PyObject *args)
{
    pyo_network *n = (pyo_network *)self;
    PyObject *path;
    PyThreadState *state;
    oct_openvino_options o;
    int half;

    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &half)) return NULL;
    oct_openvino_options_init(&o);
    o.half = half;
    if ((state = pyo_enter(n->context)) &&
        pyo_leave(n->context, state, oct_openvino_save(n->graph, PyBytes_AsString(path), &o)))
        state = NULL;
    Py_DECREF(path);
    return state ? pyo_ref(Py_None) : NULL;
}

static PyObject *load(PyObject *self, PyObject *args)
{
    pyo_context *c;
    PyThreadState *state;
    PyObject *path, *n = NULL;
    oct_graph *g = NULL;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!O&", pyo.context, &c, PyUnicode_FSConverter, &path)) return NULL;
    if ((state = pyo_enter(c)) &&
        !pyo_leave(c, state, oct_model_load(c->ctx, PyBytes_AsString(path), &g)))
        n = pyo_network_new(c, g, NULL, false);
    Py_DECREF(path);
    return n;
}

static PyObject *load_bytes(PyObject *self, PyObject *args)
{
    pyo_context *c;
    PyThreadState *state;
    PyObject *bytes;
    oct_graph *g = NULL;
    oct_status st;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!S", pyo.context, &c, &bytes)) return NULL;
    if (!(state = pyo_enter(c))) return NULL;
    st = oct_onnx_load_memory(c->ctx, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes), &g);
    return pyo_leave(c, state, st) ? NULL : pyo_network_new(c, g, bytes, false);
}

/* --- the type --- */

PyObject *pyo_network_new(pyo_context *c, oct_graph *g, PyObject *keeps, bool is_borrowed)
{
    pyo_network *n = pyo_new(pyo.network);

    if (!n) {
        if (!is_borrowed) oct_graph_free(g);
        return NULL;
    }
    n->context = (pyo_context *)pyo_ref((PyObject *)c);
    n->graph = g;
    n->keeps = pyo_xref(keeps);
    n->is_borrowed = is_borrowed;
    return (PyObject *)n;
}

static void free_graph(void *g)
{
    oct_graph_free(g);
}

static void network_dealloc(PyObject *self)
{
    pyo_network *n = (pyo_network *)self;

    if (!n->is_borrowed && n->context) pyo_dispose(n->context, free_graph, n->graph);
    Py_XDECREF(n->keeps);
    Py_XDECREF((PyObject *)n->context);
    pyo_free(self);
}

static PyObject *get_context(PyObject *self, void *unused)
{
    (void)unused;
    return pyo_ref((PyObject *)((pyo_network *)self)->context);
}

static PyMethodDef methods[] = {
    {"inputs", inputs, METH_NOARGS, "(name, dtype, shape) of each input."},
    {"outputs", outputs, METH_NOARGS, "(name, dtype, shape) of each output."},
    {"facts", facts, METH_NOARGS, "Name, opset, producer and the like."},
    {"nodes", nodes, METH_NOARGS, "One dict for each node."},
    {"metadata", metadata, METH_NOARGS, "What the file says of itself."},
    {"set_metadata", set_metadata, METH_VARARGS, "(key, value or None)"},
    {"simplify", simplify, METH_VARARGS, "(only or None, skip or None)"},
    {"set_shape", set_shape, METH_VARARGS, "(input, dims)"},
    {"keep_outputs", keep_outputs, METH_VARARGS, "(names with commas)"},
    {"save_onnx", save_onnx, METH_VARARGS, "(path, external_data, opset)"},
    {"save_openvino", save_openvino, METH_VARARGS, "(path, half)"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"context", get_context, NULL, "Where it lives.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)pyo_refuse_new},
    {Py_tp_dealloc, (void *)network_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Network", sizeof(pyo_network), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"load", load, METH_VARARGS, "(context, path): a network of any kind octet reads."},
    {"load_bytes", load_bytes, METH_VARARGS, "(context, bytes): an ONNX model in memory."},
    {NULL, NULL, 0, NULL},
};

int pyo_network_setup(PyObject *module)
{
    if (pyo_add_type(module, &spec, &pyo.network)) return -1;
    return PyModule_AddFunctions(module, functions);
}
