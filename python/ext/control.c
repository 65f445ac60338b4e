/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizing with a promise, whose measure may be a Python function. */
#include <math.h>
#include <string.h>

#include "ext.h"

/* --- a Python function as the measure --- */

typedef struct asker {
    pyo_context *context;
    PyObject *measure; /* called without arguments, when the network is in the file */
    const char *path;
} asker;

/* On the thread that called octet. The context is at work, so that the function gets its network in
 * a context of its own: by way of a file. */
static oct_status ask(void *user, const oct_graph *g, double *score)
{
    const asker *a = user;
    oct_onnx_options o;
    PyGILState_STATE gil;
    PyObject *answer;
    oct_status st;

    oct_onnx_options_init(&o);
    if ((st = oct_onnx_save(g, a->path, &o))) return st;
    gil = PyGILState_Ensure();
    answer = PyObject_CallFunctionObjArgs(a->measure, NULL);
    *score = answer ? PyFloat_AsDouble(answer) : 0;
    Py_XDECREF(answer);
    if (!PyErr_Occurred() && !isfinite(*score))
        PyErr_SetString(PyExc_ValueError, "a measure must return a finite number");
    if (PyErr_Occurred()) {
        pyo_keep_exception(a->context);
        st = OCT_ERR_CANCELLED;
    }
    PyGILState_Release(gil);
    return st;
}

/* --- the search --- */

/* What one call passes. */
typedef struct search {
    pyo_network *network;
    pyo_dataset *data, *truth; /* truth: NULL, or pictures with labels */
    asker asker;               /* measure NULL: none */
    const char *source, *name; /* name: of the function */
    oct_control *result;
} search;

/* As the program calls it in the metadata. */
static oct_status name_accuracy(const oct_graph *g, const char *family, const char **name)
{
    oct_detector *d = NULL;
    const oct_status st = oct_detector_new(g, family, &d);

    if (!st) *name = oct_detector_is_classifier(d) ? "top-1" : "AP";
    oct_detector_free(d);
    return st;
}

static oct_status by_accuracy(search *h, const pyo_settings *s, const oct_quantize_options *q,
                              oct_control_options *o, oct_quantized **out)
{
    oct_accuracy_measure truth = {.truth = h->truth ? h->truth->dataset : NULL};
    oct_eval_options eval;
    oct_status st;

    o->promise = s->job.drop_type && !strcmp(s->job.drop_type, "relative")
                     ? OCT_PROMISE_RELATIVE_DROP
                     : OCT_PROMISE_DROP;
    o->limit = s->job.max_drop;
    oct_eval_options_init(&eval);
    eval.family = s->family;
    eval.preprocess = s->preprocess;
    eval.names = s->names;
    eval.loader_threads = oct_ctx_threads(h->network->context->ctx);
    truth.options = &eval;
    if (h->asker.measure) {
        o->measure = ask;
        o->user = &h->asker;
        o->name = h->name;
    } else {
        if ((st = name_accuracy(h->network->graph, s->family, &o->name))) return st;
        o->measure = oct_measure_accuracy;
        o->user = &truth;
    }
    return oct_quantize_controlled(h->network->graph, h->data->dataset, q, o, out, &h->result);
}

/* Without labels: against what the float network finds. */
static oct_status by_comparison(search *h, const pyo_settings *s, const oct_quantize_options *q,
                                oct_control_options *o, oct_quantized **out)
{
    const bool is_repeat = s->job.min_repeat > 0;
    oct_comparison *with = NULL;
    oct_compare_options co;
    oct_status st;

    oct_compare_options_init(&co);
    co.family = s->family;
    co.preprocess = s->preprocess;
    st =
        oct_comparison_new(h->network->graph, (h->truth ? h->truth : h->data)->dataset, &co, &with);
    if (st) return st;
    o->promise = is_repeat ? OCT_PROMISE_LEAST : OCT_PROMISE_MOST;
    o->limit = is_repeat ? s->job.min_repeat : s->job.max_noise;
    o->measure = is_repeat ? oct_measure_repeat : oct_measure_noise;
    o->user = with;
    o->name = is_repeat ? "repeat" : "noise";
    st = oct_quantize_controlled(h->network->graph, h->data->dataset, q, o, out, &h->result);
    oct_comparison_free(with);
    return st;
}

static oct_status run_search(search *h, pyo_settings *s, oct_quantized **out)
{
    oct_quantize_options q;
    oct_control_options o;
    oct_status st;

    if ((st = pyo_settings_quantize(s, h->source, &q))) return st;
    oct_control_options_init(&o);
    o.ranking_images = s->job.ranking_subset_size;
    o.max_scores = s->job.max_num_iterations;
    return s->job.max_drop > 0 ? by_accuracy(h, s, &q, &o, out) : by_comparison(h, s, &q, &o, out);
}

/* --- what came of it --- */

static PyObject *step_rows(const oct_control *c)
{
    static const char *const moves[] = {"start", "restore", "give back"};
    static const pyo_field fields[] = {
        PYO_FIELD(oct_control_step, layer, PYO_TEXT),
        PYO_FIELD(oct_control_step, changed, PYO_INT32),
        PYO_FIELD(oct_control_step, restored, PYO_INT32),
        PYO_FIELD(oct_control_step, score, PYO_REAL),
        PYO_FIELD(oct_control_step, holds, PYO_BOOL),
        PYO_FIELD(oct_control_step, is_kept, PYO_BOOL),
        PYO_FIELD(oct_control_step, macs_quantized_share, PYO_REAL),
        PYO_FIELD(oct_control_step, weight_bytes, PYO_INT64),
    };
    oct_control_step s = {.struct_size = sizeof(s)};
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && oct_control_step_at(c, i, &s); i++) {
        PyObject *row = pyo_row(fields, PYO_COUNT(fields), &s);

        if (row && (size_t)s.move < PYO_COUNT(moves) &&
            pyo_set(row, "move", pyo_text(moves[s.move])))
            Py_CLEAR(row);
        if (pyo_append(list, row)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *promise_row(const oct_control *c)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_control_summary, holds, PYO_BOOL),
        PYO_FIELD(oct_control_summary, float_score, PYO_REAL),
        PYO_FIELD(oct_control_summary, first_score, PYO_REAL),
        PYO_FIELD(oct_control_summary, score, PYO_REAL),
        PYO_FIELD(oct_control_summary, need, PYO_REAL),
        PYO_FIELD(oct_control_summary, candidates, PYO_INT32),
        PYO_FIELD(oct_control_summary, scores, PYO_INT32),
        PYO_FIELD(oct_control_summary, seconds, PYO_REAL),
    };
    oct_control_summary s = {.struct_size = sizeof(s)};
    PyObject *names = PyList_New(0), *row;
    const char *name;

    for (int32_t i = 0; names && (name = oct_control_restored(c, i)); i++)
        if (pyo_append(names, pyo_text(name))) Py_CLEAR(names);
    oct_control_get_summary(c, &s);
    row = pyo_row(fields, PYO_COUNT(fields), &s);
    if (row && pyo_set(row, "restored", pyo_xref(names))) Py_CLEAR(row);
    if (row && pyo_set(row, "steps", step_rows(c))) Py_CLEAR(row);
    Py_XDECREF(names);
    return row;
}

static void free_result(void *c)
{
    oct_control_free(c);
}

/* --- the function --- */

static int get_search(search *h, PyObject *args, PyObject **path, const char **json,
                      Py_ssize_t *size)
{
    PyObject *data, *truth, *measure;

    if (!PyArg_ParseTuple(args, "O!Os#zOOO&z", pyo.network, &h->network, &data, json, size,
                          &h->source, &truth, &measure, PyUnicode_FSConverter, path, &h->name))
        return -1;
    h->asker.context = h->network->context;
    h->asker.measure = measure == Py_None ? NULL : measure;
    h->asker.path = PyBytes_AsString(*path);
    if (!(h->data = pyo_dataset_of(data, h->network->context))) return -1;
    if (truth == Py_None) return 0;
    return (h->truth = pyo_dataset_of(truth, h->network->context)) ? 0 : -1;
}

static PyObject *quantize_controlled(PyObject *self, PyObject *args)
{
    PyObject *path = NULL, *out = NULL, *promise;
    pyo_quantized *q = NULL;
    PyThreadState *state;
    pyo_settings s = {0};
    search h = {0};
    const char *json;
    Py_ssize_t size;
    oct_status st;

    (void)self;
    if (get_search(&h, args, &path, &json, &size) ||
        !(q = pyo_quantized_new(h.network->context, (PyObject *)h.network)) ||
        !(state = pyo_enter(h.network->context)))
        goto done;
    st = pyo_settings_read(&s, h.network->graph, h.network->context->ctx, json, size);
    if (!st) st = run_search(&h, &s, &q->q);
    if (!pyo_settings_leave(&s, h.network->context, state, st)) {
        promise = promise_row(h.result);
        if (promise) out = Py_BuildValue("(ON)", q, promise);
    }
    pyo_dispose(h.network->context, free_result, h.result);
done:
    Py_XDECREF((PyObject *)q);
    Py_XDECREF(path);
    return out;
}

static PyMethodDef functions[] = {
    {"quantize_controlled", quantize_controlled, METH_VARARGS,
     "(network, dataset, settings, source, truth, measure, path, name)"},
    {NULL, NULL, 0, NULL},
};

int pyo_control_setup(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
