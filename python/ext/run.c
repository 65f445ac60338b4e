/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a session: inputs bound, run, outputs taken; and the runs that calls share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* --- runs: made on demand, kept for the next call (under the GIL) --- */

void pyo_slot_free(pyo_slot *slot)
{
    oct_run_free(slot->run);
    oct_ctx_free(slot->ctx);
    *slot = (pyo_slot){0};
}

int pyo_run_failed(const pyo_run *r, oct_status st)
{
    if (st == OCT_ERR_MEMORY)
        PyErr_SetString(PyExc_MemoryError, oct_ctx_error(r->slot.ctx));
    else
        pyo_raise(st, oct_ctx_error(r->slot.ctx));
    return -1;
}

static int make_slot(pyo_run *r)
{
    const oct_plan *plan = r->session->plan;
    PyThreadState *state;
    oct_status st;

    if (!(r->slot.ctx = oct_ctx_new(NULL))) {
        PyErr_NoMemory();
        return -1;
    }
    state = PyEval_SaveThread();
    st = oct_run_new(r->slot.ctx, plan, &r->slot.run);
    PyEval_RestoreThread(state);
    return st ? pyo_run_failed(r, st) : 0;
}

pyo_run *pyo_run_take(pyo_session *s)
{
    pyo_run *r = pyo_new(pyo.run);

    if (!r) return NULL;
    r->session = (pyo_session *)pyo_ref((PyObject *)s);
    if (s->n_ready) {
        r->slot = s->ready[--s->n_ready];
    } else if (make_slot(r)) {
        pyo_slot_free(&r->slot);
        Py_DECREF(r);
        return NULL;
    }
    return r;
}

static void run_dealloc(PyObject *self)
{
    pyo_run *r = (pyo_run *)self;
    pyo_session *s = r->session;

    for (int32_t i = 0; r->inputs && i < s->n_in + s->n_out; i++)
        pyo_view_release(&r->inputs[i]);
    free(r->inputs);
    if (s && r->slot.run && s->n_ready < PYO_KEPT_RUNS)
        s->ready[s->n_ready++] = r->slot;
    else
        pyo_slot_free(&r->slot);
    Py_XDECREF((PyObject *)s);
    pyo_free(self);
}

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)pyo_refuse_new},
    {Py_tp_dealloc, (void *)run_dealloc},
    {0, NULL},
};

PyType_Spec pyo_run_spec = {"octet._octet.Run", sizeof(pyo_run), 0, Py_TPFLAGS_DEFAULT, slots};

/* --- inputs --- */

static const char *name_of(const pyo_io *io)
{
    return io->info.name;
}

static int bind_input(pyo_call *c, int32_t i, PyObject *array)
{
    const pyo_io *io = &c->session->io[i];
    pyo_view *v = &c->views[i];
    char what[160];
    oct_status st;

    (void)snprintf(what, sizeof(what), "input '%.120s'", name_of(io));
    if (pyo_view_get(array, what, v)) return -1;
    if (io->info.rank < 0) return 0; /* nothing reads it */
    if (pyo_view_check(v, what, io->info.dtype, io->info.rank, io->info.dims)) return -1;
    st = oct_run_bind_input(c->run->slot.run, name_of(io), v->data, v->size);
    return st ? pyo_run_failed(c->run, st) : 0;
}

static int refuse_unknown(const pyo_call *c, PyObject *dict, bool outputs)
{
    const pyo_io *io = c->session->io + (outputs ? c->session->n_in : 0);
    const int32_t n = outputs ? c->session->n_out : c->session->n_in;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    char text[512];

    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *s = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : "?";
        int32_t i = 0;

        while (s && i < n && strcmp(name_of(&io[i]), s))
            i++;
        if (s && i < n) continue;
        (void)snprintf(text, sizeof(text), "there is no %s '%.160s'; the first is '%.160s'",
                       outputs ? "output" : "input", s ? s : "?", n ? name_of(io) : "");
        PyErr_Clear();
        pyo_raise_arg(text);
        return -1;
    }
    return 0;
}

static int bind_dict(pyo_call *c, PyObject *dict)
{
    char text[256];

    if (PyDict_Size(dict) != c->session->n_in && refuse_unknown(c, dict, false)) return -1;
    for (int32_t i = 0; i < c->session->n_in; i++) {
        PyObject *array = PyDict_GetItemWithError(dict, c->session->io[i].name);

        if (!array && !PyErr_Occurred()) {
            if (refuse_unknown(c, dict, false)) return -1;
            (void)snprintf(text, sizeof(text), "input '%.160s' is missing",
                           name_of(&c->session->io[i]));
            pyo_raise_arg(text);
        }
        if (!array || bind_input(c, i, array)) return -1;
    }
    return 0;
}

static int bind_sequence(pyo_call *c, PyObject *sequence)
{
    const Py_ssize_t n = PySequence_Size(sequence);
    char text[128];

    if (n != c->session->n_in) {
        (void)snprintf(text, sizeof(text), "%zd arrays were given for %d inputs", n,
                       (int)c->session->n_in);
        pyo_raise_arg(text);
        return -1;
    }
    for (int32_t i = 0; i < c->session->n_in; i++) {
        PyObject *array = PySequence_GetItem(sequence, i);
        const int failed = !array || bind_input(c, i, array);

        Py_XDECREF(array);
        if (failed) return -1;
    }
    return 0;
}

static int bind_inputs(pyo_call *c, PyObject *inputs)
{
    if (PyDict_Check(inputs)) return bind_dict(c, inputs);
    if (PyTuple_Check(inputs) || PyList_Check(inputs)) return bind_sequence(c, inputs);
    if (c->session->n_in == 1) return bind_input(c, 0, inputs);
    pyo_raise_arg("the network has several inputs: give a dict of arrays by name, or a tuple");
    return -1;
}

/* --- outputs --- */

static int bind_given(pyo_call *c, int32_t i, PyObject *array)
{
    const pyo_io *io = &c->session->io[c->session->n_in + i];
    pyo_view *v = &c->views[c->session->n_in + i];
    char what[160];
    oct_status st;

    (void)snprintf(what, sizeof(what), "output '%.120s'", name_of(io));
    if (pyo_view_get(array, what, v)) return -1;
    if (io->info.rank < 0 || v->is_copy || v->readonly) {
        pyo_raise_arg(io->info.rank < 0 ? "the shape of this output is known only after a run: it "
                                          "cannot be bound"
                      : v->readonly     ? "an array for an output must be writable"
                                        : "an array for an output must be dense, in C order");
        return -1;
    }
    if (pyo_view_check(v, what, io->info.dtype, io->info.rank, io->info.dims)) return -1;
    c->arrays[i] = pyo_ref(array);
    st = oct_run_bind_output(c->run->slot.run, i, (void *)(uintptr_t)v->data, v->size);
    return st ? pyo_run_failed(c->run, st) : 0;
}

static int bind_new(pyo_call *c, int32_t i)
{
    const oct_io_info *info = &c->session->io[c->session->n_in + i].info;
    const bool is_known = info->rank >= 0 && pyo_format(info->dtype) && !c->in_place;
    void *data = NULL;
    oct_status st;

    if (info->dtype == OCT_DTYPE_STRING) return 0; /* refused when it is taken */
    if (is_known) {
        pyo_tensor *t = pyo_tensor_new(info->dtype, info->rank, info->dims);

        if (!t) return -1;
        c->arrays[i] = (PyObject *)t;
        data = t->data;
    }
    st = oct_run_bind_output(c->run->slot.run, i, data, is_known ? info->size : 0);
    return st ? pyo_run_failed(c->run, st) : 0;
}

static int bind_outputs(pyo_call *c, PyObject *outputs)
{
    const pyo_session *s = c->session;

    if (outputs && !PyDict_Check(outputs)) {
        PyErr_SetString(PyExc_TypeError, "outputs is a dict of arrays by name");
        return -1;
    }
    if (outputs && refuse_unknown(c, outputs, true)) return -1;
    for (int32_t i = 0; i < s->n_out; i++) {
        PyObject *given =
            outputs ? PyDict_GetItemWithError(outputs, s->io[s->n_in + i].name) : NULL;

        if (!given && PyErr_Occurred()) return -1;
        if (given ? bind_given(c, i, given) : bind_new(c, i)) return -1;
    }
    return 0;
}

/* --- the call --- */

int pyo_call_open(pyo_call *c, pyo_session *s, PyObject *inputs, PyObject *outputs)
{
    const size_t n = (size_t)(s->n_in + s->n_out) + 1;

    c->session = s;
    c->views = calloc(n, sizeof(*c->views));
    c->arrays = calloc(n, sizeof(*c->arrays));
    if (!c->views || !c->arrays) {
        PyErr_NoMemory();
        return -1;
    }
    if (!(c->run = pyo_run_take(s)) || bind_inputs(c, inputs)) return -1;
    return bind_outputs(c, outputs);
}

int pyo_call_execute(pyo_call *c)
{
    PyThreadState *state = PyEval_SaveThread();
    const oct_status st = oct_run_execute(c->run->slot.run);

    PyEval_RestoreThread(state);
    return st ? pyo_run_failed(c->run, st) : 0;
}

/* Results of a shape that was not known, and those in place. */
static pyo_tensor *take_output(const pyo_call *c, int32_t i)
{
    const oct_tensor *t = NULL;
    const oct_status st = oct_run_output(c->run->slot.run, i, &t);
    pyo_tensor *out;

    if (st) {
        (void)pyo_run_failed(c->run, st);
        return NULL;
    }
    if (c->in_place)
        return pyo_tensor_wrap((int32_t)oct_tensor_dtype(t), oct_tensor_rank(t), oct_tensor_dims(t),
                               (void *)(uintptr_t)oct_tensor_data(t), oct_tensor_size(t),
                               (PyObject *)c->run);
    out = pyo_tensor_new((int32_t)oct_tensor_dtype(t), oct_tensor_rank(t), oct_tensor_dims(t));
    if (out && out->size) memcpy(out->data, oct_tensor_data(t), out->size);
    return out;
}

PyObject *pyo_call_results(pyo_call *c)
{
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < c->session->n_out; i++) {
        PyObject *a = c->arrays[i];

        c->arrays[i] = NULL;
        if (!a) a = (PyObject *)take_output(c, i);
        if (a && Py_IS_TYPE(a, pyo.tensor) && !c->views[c->session->n_in + i].data)
            a = pyo_tensor_out((pyo_tensor *)a);
        if (pyo_append(list, a)) Py_CLEAR(list);
    }
    return list;
}

void pyo_call_close(pyo_call *c)
{
    const int32_t n = c->session->n_in + c->session->n_out;

    if (c->in_place && c->run) { /* a network may hand on its input as it is */
        c->run->inputs = c->views;
        c->views = NULL;
    }
    for (int32_t i = 0; c->views && i < n; i++)
        pyo_view_release(&c->views[i]);
    for (int32_t i = 0; c->arrays && i < c->session->n_out; i++)
        Py_XDECREF(c->arrays[i]);
    free(c->views);
    free(c->arrays);
    Py_XDECREF((PyObject *)c->run);
}
