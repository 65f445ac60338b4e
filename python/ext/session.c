/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a network compiled once and run by any number of threads. */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

extern PyType_Spec pyo_run_spec;

/* --- making one --- */

static int fill_io(pyo_session *s)
{
    s->n_in = oct_plan_n_inputs(s->plan);
    s->n_out = oct_plan_n_outputs(s->plan);
    if (!(s->io = calloc((size_t)(s->n_in + s->n_out) + 1, sizeof(*s->io)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (int32_t i = 0; i < s->n_in + s->n_out; i++) {
        pyo_io *io = &s->io[i];

        io->info.struct_size = sizeof(io->info);
        if (i < s->n_in)
            (void)oct_plan_input_info(s->plan, i, &io->info);
        else
            (void)oct_plan_output_info(s->plan, i - s->n_in, &io->info);
        if (!(io->name = pyo_text(io->info.name))) return -1;
        PyUnicode_InternInPlace(&io->name);
    }
    return 0;
}

static PyObject *session_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"network", "threads", "simulate", "plain", "default_dim", NULL};
    int threads, simulate, plain;
    long long default_dim;
    PyThreadState *state;
    oct_plan_options o;
    pyo_network *n;
    pyo_session *s;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!ippL", names, pyo.network, &n, &threads,
                                     &simulate, &plain, &default_dim))
        return NULL;
    if (!(s = pyo_new(type))) return NULL;
    s->context = (pyo_context *)pyo_ref((PyObject *)n->context);
    s->network = pyo_ref((PyObject *)n);
    oct_plan_options_init(&o);
    o.n_threads = threads;
    o.simulate = simulate;
    o.plain = plain;
    o.default_dim = default_dim;
    if (!(state = pyo_enter(n->context)) ||
        pyo_leave(n->context, state, oct_plan_new(n->graph, &o, &s->plan)) || fill_io(s))
        Py_CLEAR(s);
    return (PyObject *)s;
}

static void free_plan(void *plan)
{
    oct_plan_free(plan);
}

static void session_dealloc(PyObject *self)
{
    pyo_session *s = (pyo_session *)self;

    while (s->n_ready)
        pyo_slot_free(&s->ready[--s->n_ready]);
    for (int32_t i = 0; s->io && i < s->n_in + s->n_out; i++)
        Py_XDECREF(s->io[i].name);
    free(s->io);
    if (s->context) pyo_dispose(s->context, free_plan, s->plan);
    Py_XDECREF(s->network);
    Py_XDECREF((PyObject *)s->context);
    pyo_free(self);
}

/* --- running --- */

static PyObject *run_list(PyObject *self, PyObject *inputs, PyObject *outputs, int copy)
{
    pyo_call c = {.in_place = !copy};
    PyObject *list = NULL;

    if (!pyo_call_open(&c, (pyo_session *)self, inputs, outputs == Py_None ? NULL : outputs) &&
        !pyo_call_execute(&c))
        list = pyo_call_results(&c);
    pyo_call_close(&c);
    return list;
}

static PyObject *run(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"inputs", "outputs", "copy", NULL};
    const pyo_session *s = (pyo_session *)self;
    PyObject *inputs, *outputs = NULL, *list, *dict;
    int copy = 1;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|Op", names, &inputs, &outputs, &copy))
        return NULL;
    if (!(list = run_list(self, inputs, outputs, copy))) return NULL;
    dict = PyDict_New();
    for (int32_t i = 0; dict && i < s->n_out; i++)
        if (PyDict_SetItem(dict, s->io[s->n_in + i].name, PyList_GetItem(list, i))) Py_CLEAR(dict);
    Py_DECREF(list);
    return dict;
}

/* The only output itself, or a tuple. */
static PyObject *call(PyObject *self, PyObject *args, PyObject *keywords)
{
    const bool is_one = PyTuple_Size(args) == 1;
    PyObject *list, *out;

    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "inputs by name are given as a dict");
        return NULL;
    }
    if (!(list = run_list(self, is_one ? PyTuple_GetItem(args, 0) : args, NULL, 1))) return NULL;
    out = PyList_Size(list) == 1 ? pyo_ref(PyList_GetItem(list, 0)) : PyList_AsTuple(list);
    Py_DECREF(list);
    return out;
}

/* --- looking and measuring --- */

static PyObject *io_rows(PyObject *self, bool outputs)
{
    const pyo_session *s = (pyo_session *)self;
    const int32_t first = outputs ? s->n_in : 0, n = outputs ? s->n_out : s->n_in;
    PyObject *list = PyList_New(0);

    for (int32_t i = first; list && i < first + n; i++) {
        const oct_io_info *o = &s->io[i].info;
        PyObject *shape = o->rank < 0 ? pyo_ref(Py_None) : pyo_dims(o->rank, o->dims);

        if (pyo_append(list, Py_BuildValue("(ONN)", s->io[i].name,
                                           pyo_text(oct_dtype_name((oct_dtype)o->dtype)), shape)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return io_rows(self, false);
}

static PyObject *outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return io_rows(self, true);
}

static PyObject *steps(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_step_info, name, PYO_TEXT),
        PYO_FIELD(oct_step_info, op, PYO_TEXT),
        PYO_FIELD(oct_step_info, kernel, PYO_TEXT),
        PYO_FIELD(oct_step_info, macs, PYO_INT64),
        PYO_FIELD(oct_step_info, bytes, PYO_INT64),
        PYO_FIELD(oct_step_info, is_plain, PYO_BOOL),
        PYO_FIELD(oct_step_info, is_reorder, PYO_BOOL),
        PYO_FIELD(oct_step_info, is_integer, PYO_BOOL),
        PYO_FIELD(oct_step_info, is_conversion, PYO_BOOL),
    };
    const oct_plan *p = ((pyo_session *)self)->plan;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (int32_t i = 0; list && i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &info))) Py_CLEAR(list);
    }
    return list;
}

/* Times of one run: of each step, if they are wanted, and the whole. */
typedef struct timing {
    int64_t *step_ns; /* NULL: not wanted */
    int32_t n_steps;
} timing;

static void on_step(void *user, int32_t step, int64_t start_ns, int64_t end_ns)
{
    const timing *t = user;

    if (step < t->n_steps) t->step_ns[step] += end_ns - start_ns;
}

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int time_one(pyo_call *c, PyObject *list)
{
    const int64_t start = now_ns();

    if (pyo_call_execute(c) || pyo_append(list, PyLong_FromLongLong(now_ns() - start))) return -1;
    return PyErr_CheckSignals();
}

/* (inputs, runs, with_steps): times of each run in ns, and sums of each step over all of them. */
static PyObject *measure(PyObject *self, PyObject *args)
{
    pyo_session *s = (pyo_session *)self;
    timing t = {.n_steps = oct_plan_n_steps(s->plan)};
    PyObject *inputs_given, *list = PyList_New(0), *sums = PyList_New(0), *out = NULL;
    pyo_call c = {0};
    int with_steps, failed;
    long runs;

    if (!list || !sums || !PyArg_ParseTuple(args, "Olp", &inputs_given, &runs, &with_steps))
        goto done;
    if (with_steps && !(t.step_ns = calloc((size_t)t.n_steps + 1, sizeof(*t.step_ns)))) {
        PyErr_NoMemory();
        goto done;
    }
    failed = pyo_call_open(&c, s, inputs_given, NULL);
    if (!failed && with_steps) oct_run_set_step_hook(c.run->slot.run, on_step, &t);
    for (long i = 0; !failed && i < runs; i++)
        failed = time_one(&c, list);
    if (c.run) oct_run_set_step_hook(c.run->slot.run, NULL, NULL);
    for (int32_t i = 0; !failed && with_steps && i < t.n_steps; i++)
        failed = pyo_append(sums, PyLong_FromLongLong(t.step_ns[i]));
    pyo_call_close(&c);
    if (!failed) out = Py_BuildValue("(OO)", list, sums);
done:
    free(t.step_ns);
    Py_XDECREF(list);
    Py_XDECREF(sums);
    return out;
}

static PyObject *sizes(PyObject *self, PyObject *unused)
{
    const oct_plan *p = ((pyo_session *)self)->plan;

    (void)unused;
    return Py_BuildValue("{snsnsL}", "activations", (Py_ssize_t)oct_plan_activation_size(p),
                         "inputs", (Py_ssize_t)oct_plan_input_size(p), "macs",
                         (long long)oct_plan_macs(p));
}

/* --- the type --- */

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_VARARGS | METH_KEYWORDS,
     "run(inputs, outputs=None, copy=True)\n\nRuns: `inputs` is a dict of arrays by name, a tuple, "
     "or the only array. Returns a dict of arrays. `outputs`: arrays to write results into. "
     "copy=False: results show the run's own memory, which stays theirs as long as they live."},
    {"_inputs", inputs, METH_NOARGS, "(name, dtype, shape) of each input, as compiled."},
    {"_outputs", outputs, METH_NOARGS, "(name, dtype, shape) of each output, as compiled."},
    {"_steps", steps, METH_NOARGS, "What is computed, in order."},
    {"_measure", measure, METH_VARARGS, "(inputs, runs, with_steps): times in ns."},
    {"_sizes", sizes, METH_NOARGS, "Bytes and multiply-adds of one run."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)session_make},
    {Py_tp_dealloc, (void *)session_dealloc},
    {Py_tp_call, (void *)call},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Session", sizeof(pyo_session), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

int pyo_session_setup(PyObject *module)
{
    if (pyo_add_type(module, &pyo_run_spec, &pyo.run)) return -1;
    return pyo_add_type(module, &spec, &pyo.session);
}
