/* SPDX-License-Identifier: Apache-2.0 */
/* Where a quantized network loses accuracy: rows for people and pandas, and the report. */
#include <stdio.h>
#include <string.h>

#include "ext.h"

/* --- rows --- */

static PyObject *layer_rows(const oct_analysis *a)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_analyzed_layer, name, PYO_TEXT),
        PYO_FIELD(oct_analyzed_layer, op, PYO_TEXT),
        PYO_FIELD(oct_analyzed_layer, reason, PYO_TEXT),
        PYO_FIELD(oct_analyzed_layer, in_tail, PYO_BOOL),
        PYO_FIELD(oct_analyzed_layer, weight_bits, PYO_INT32),
        PYO_FIELD(oct_analyzed_layer, input_bits, PYO_INT32),
        PYO_FIELD(oct_analyzed_layer, macs, PYO_INT64),
        PYO_FIELD(oct_analyzed_layer, params, PYO_INT64),
        PYO_FIELD(oct_analyzed_layer, weight_noise, PYO_REAL),
        PYO_FIELD(oct_analyzed_layer, alone, PYO_ERROR),
        PYO_FIELD(oct_analyzed_layer, all, PYO_ERROR),
    };
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && oct_analysis_layer(a, i, &l); i++)
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &l))) Py_CLEAR(list);
    return list;
}

static PyObject *point_rows(const oct_analysis *a)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_analyzed_point, value, PYO_TEXT),
        PYO_FIELD(oct_analyzed_point, layer, PYO_TEXT),
        PYO_FIELD(oct_analyzed_point, type, PYO_TEXT),
        PYO_FIELD(oct_analyzed_point, n_scales, PYO_INT32),
        PYO_FIELD(oct_analyzed_point, scale, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, zero, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, min, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, max, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, low, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, high, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, clipped, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, levels, PYO_INT32),
        PYO_FIELD(oct_analyzed_point, used, PYO_INT32),
        PYO_FIELD(oct_analyzed_point, kurtosis, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, spread, PYO_REAL),
        PYO_FIELD(oct_analyzed_point, noise, PYO_REAL),
    };
    oct_analyzed_point p = {.struct_size = sizeof(p)};
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && oct_analysis_point(a, i, &p); i++)
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &p))) Py_CLEAR(list);
    return list;
}

static PyObject *advice_rows(const oct_analysis *a)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_advice, text, PYO_TEXT),
        PYO_FIELD(oct_advice, option, PYO_TEXT),
        PYO_FIELD(oct_advice, layer, PYO_TEXT),
        PYO_FIELD(oct_advice, gain, PYO_REAL),
    };
    oct_advice v = {.struct_size = sizeof(v)};
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && oct_analysis_advice(a, i, &v); i++)
        if (pyo_append(list, pyo_row(fields, PYO_COUNT(fields), &v))) Py_CLEAR(list);
    return list;
}

static PyObject *output_rows(const oct_analysis *a)
{
    PyObject *list = PyList_New(0);
    const char *name;
    oct_error e;

    for (int32_t i = 0; list && oct_analysis_output(a, i, &name, &e); i++)
        if (pyo_append(list, Py_BuildValue("{sNsdsdsdsd}", "name", pyo_text(name), "noise", e.noise,
                                           "cosine", e.cosine, "mse", e.mse, "kl", e.kl)))
            Py_CLEAR(list);
    return list;
}

static void free_analysis(void *a)
{
    oct_analysis_free(a);
}

/* Both networks of one context: the float one's. */
static int check_pair(const pyo_network *a, const pyo_network *b)
{
    if (a->context == b->context) return 0;
    PyErr_SetString(PyExc_TypeError, "both networks must live in one context");
    return -1;
}

static PyObject *analyze(PyObject *self, PyObject *args)
{
    int layerwise, graphwise, statistics;
    pyo_network *exact, *quantized;
    oct_analysis *a = NULL;
    oct_analyze_options o;
    PyThreadState *state;
    pyo_settings s = {0};
    PyObject *images, *out;
    const char *json;
    Py_ssize_t size;
    pyo_dataset *d;
    long long limit;
    oct_status st;

    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!Os#Lppp", pyo.network, &exact, pyo.network, &quantized,
                          &images, &json, &size, &limit, &layerwise, &graphwise, &statistics) ||
        check_pair(exact, quantized) || !(d = pyo_dataset_of(images, exact->context)) ||
        !(state = pyo_enter(exact->context)))
        return NULL;
    oct_analyze_options_init(&o);
    o.images = limit;
    o.layerwise = layerwise;
    o.graphwise = graphwise;
    o.statistics = statistics;
    if (!(st = pyo_settings_read(&s, exact->graph, exact->context->ctx, json, size))) {
        o.preprocess = s.preprocess;
        o.family = s.family;
        st = oct_analyze(exact->graph, quantized->graph, d->dataset, &o, &a);
    }
    if (pyo_settings_leave(&s, exact->context, state, st)) return NULL;
    out = Py_BuildValue("{sNsNsNsNsL}", "layers", layer_rows(a), "points", point_rows(a), "advice",
                        advice_rows(a), "outputs", output_rows(a), "images",
                        (long long)oct_analysis_images(a));
    pyo_dispose(exact->context, free_analysis, a);
    return out;
}

/* --- the report --- */

/* What a report shows, and who made it. */
typedef struct page {
    pyo_network *exact, *quantized;
    oct_dataset *images, *truth; /* truth NULL: accuracy is not measured */
    oct_quantize_summary summary;
    oct_eval_result results[2];
    oct_box_eval *boxes[2];
    oct_box_noise noise;
    oct_analysis *analysis;
    oct_report report;
    char set[64];
} page;

static oct_status measure_accuracy(page *p, const pyo_settings *s)
{
    const oct_graph *graphs[] = {p->exact->graph, p->quantized->graph};
    oct_report *r = &p->report;
    oct_eval_options o;

    oct_eval_options_init(&o);
    o.family = s->family;
    o.preprocess = s->preprocess;
    o.names = s->names;
    o.loader_threads = oct_ctx_threads(p->exact->context->ctx);
    for (int i = 0; i < 2; i++) {
        oct_status st;

        p->results[i].struct_size = sizeof(p->results[i]);
        if ((st = oct_eval_run(graphs[i], p->truth, &o, &p->results[i], &p->boxes[i]))) return st;
    }
    r->float_accuracy = &p->results[0];
    r->int8_accuracy = &p->results[1];
    r->float_boxes = p->boxes[0];
    r->int8_boxes = p->boxes[1];
    r->is_classifier = !p->boxes[0];
    (void)snprintf(p->set, sizeof(p->set), "%lld pictures", (long long)p->results[1].images);
    r->accuracy_set = p->set;
    if (!p->boxes[0]) return OCT_OK;
    p->noise.struct_size = sizeof(p->noise);
    r->noise = &p->noise;
    return oct_box_eval_noise(p->boxes[0], p->boxes[1], 1, 0, 0, &p->noise);
}

static oct_status fill_page(page *p, const pyo_settings *s)
{
    oct_analyze_options o;
    oct_status st;

    oct_analyze_options_init(&o);
    o.preprocess = s->preprocess;
    o.family = s->family;
    p->report.graph = p->quantized->graph;
    st = oct_analyze(p->exact->graph, p->quantized->graph, p->images, &o, &p->analysis);
    p->report.analysis = p->analysis;
    return !st && p->truth ? measure_accuracy(p, s) : st;
}

static void free_page(page *p)
{
    oct_analysis_free(p->analysis);
    oct_box_eval_free(p->boxes[0]);
    oct_box_eval_free(p->boxes[1]);
}

static int get_data(PyObject *object, const pyo_context *c, oct_dataset **out)
{
    pyo_dataset *d = NULL;

    if (object != Py_None && !(d = pyo_dataset_of(object, c))) return -1;
    *out = d ? d->dataset : NULL;
    return 0;
}

static PyObject *report(PyObject *self, PyObject *args)
{
    PyObject *images, *truth, *of, *dir;
    PyThreadState *state;
    pyo_settings s = {0};
    const char *json;
    Py_ssize_t size;
    oct_status st;
    page p = {0};
    oct_report *r = &p.report;
    int failed;

    (void)self;
    oct_report_init(r);
    if (!PyArg_ParseTuple(args, "O!O!OOOO&s#szzLLddidddds", pyo.network, &p.exact, pyo.network,
                          &p.quantized, &of, &images, &truth, PyUnicode_FSConverter, &dir, &json,
                          &size, &r->title, &r->float_path, &r->int8_path, &r->float_bytes,
                          &r->int8_bytes, &r->float_ms, &r->int8_ms, &r->runs, &r->float_p10_ms,
                          &r->float_p90_ms, &r->int8_p10_ms, &r->int8_p90_ms, &r->command))
        return NULL;
    failed = check_pair(p.exact, p.quantized) || get_data(images, p.exact->context, &p.images) ||
             get_data(truth, p.exact->context, &p.truth) || !(state = pyo_enter(p.exact->context));
    if (!failed) {
        if (Py_IS_TYPE(of, pyo.quantized)) {
            p.summary.struct_size = sizeof(p.summary);
            oct_quantized_summary(((pyo_quantized *)of)->q, &p.summary);
            r->summary = &p.summary;
        }
        r->versions = oct_version();
        r->threads = oct_ctx_threads(p.exact->context->ctx);
        st = pyo_settings_read(&s, p.exact->graph, p.exact->context->ctx, json, size);
        if (!st) st = fill_page(&p, &s);
        if (!st) st = oct_recipe_text(s.recipe, &r->recipe);
        if (!st) st = oct_report_write(p.exact->context->ctx, r, PyBytes_AsString(dir));
        free_page(&p);
        failed = pyo_settings_leave(&s, p.exact->context, state, st);
    }
    Py_DECREF(dir);
    return failed ? NULL : pyo_ref(Py_None);
}

static PyMethodDef functions[] = {
    {"analyze", analyze, METH_VARARGS,
     "(exact, quantized, dataset, settings, images, layerwise, graphwise, statistics)"},
    {"report", report, METH_VARARGS,
     "(exact, quantized, result or None, dataset, truth or None, dir, settings, title, float_path, "
     "int8_path, float_bytes, int8_bytes, float_ms, int8_ms, runs, p10, p90, p10, p90, command)"},
    {NULL, NULL, 0, NULL},
};

int pyo_analyze_setup(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
