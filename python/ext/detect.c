/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes out of pictures, and how good they are: detecting and evaluating. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* --- evaluating --- */

static PyObject *box_rows(const oct_box_metrics *m)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_box_metrics, ap, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ap50, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ap75, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ap_small, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ap_medium, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ap_large, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar1, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar10, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar100, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar_small, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar_medium, PYO_REAL),
        PYO_FIELD(oct_box_metrics, ar_large, PYO_REAL),
        PYO_FIELD(oct_box_metrics, voc_map50, PYO_REAL),
    };

    return pyo_row(fields, PYO_COUNT(fields), m);
}

static PyObject *class_rows(const oct_box_eval *e, const oct_dataset *d)
{
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < oct_dataset_n_categories(d); i++) {
        double ap, ap50;

        oct_box_eval_category(e, i, &ap, &ap50);
        if (pyo_append(list,
                       Py_BuildValue("{sNsdsdsL}", "name",
                                     pyo_text(oct_dataset_category_name(d, i)), "ap", ap, "ap50",
                                     ap50, "labels", (long long)oct_box_eval_labels(e, i))))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *eval_rows(const oct_eval_result *r, const oct_box_eval *e, const oct_dataset *d)
{
    const bool has_top5 = !e && r->top5 >= 0; /* more than five classes */
    PyObject *out = e ? box_rows(&r->box) : Py_BuildValue("{sd}", "top1", r->top1);

    if (!out || (has_top5 && pyo_set(out, "top5", PyFloat_FromDouble(r->top5))) ||
        pyo_set(out, "images", PyLong_FromLongLong(r->images)) ||
        pyo_set(out, "skipped", PyLong_FromLongLong(r->skipped)) ||
        pyo_set(out, "seconds", PyFloat_FromDouble(r->seconds)) ||
        (e && pyo_set(out, "classes", class_rows(e, d))))
        Py_CLEAR(out);
    return out;
}

static void free_eval(void *e)
{
    oct_box_eval_free(e);
}

static PyObject *evaluate(PyObject *self, PyObject *args)
{
    oct_eval_result r = {.struct_size = sizeof(r)};
    PyObject *images, *results, *out = NULL;
    oct_box_eval *boxes = NULL;
    PyThreadState *state;
    oct_eval_options o;
    pyo_settings s = {0};
    const char *json;
    Py_ssize_t size;
    pyo_network *n;
    pyo_dataset *d;
    oct_status st;

    (void)self;
    oct_eval_options_init(&o);
    if (!PyArg_ParseTuple(args, "O!Os#iO", pyo.network, &n, &images, &json, &size, &o.batch,
                          &results) ||
        !(d = pyo_dataset_of(images, n->context)))
        return NULL;
    if (results == Py_None)
        results = NULL;
    else if (!PyUnicode_FSConverter(results, &results))
        return NULL;
    if (!(state = pyo_enter(n->context))) goto done;
    if (!(st = pyo_settings_read(&s, n->graph, n->context->ctx, json, size))) {
        o.results = results ? PyBytes_AsString(results) : NULL;
        o.family = s.family;
        o.preprocess = s.preprocess;
        o.names = s.names;
        o.loader_threads = oct_ctx_threads(n->context->ctx);
        st = oct_eval_run(n->graph, d->dataset, &o, &r, &boxes);
    }
    if (!pyo_settings_leave(&s, n->context, state, st)) out = eval_rows(&r, boxes, d->dataset);
    pyo_dispose(n->context, free_eval, boxes);
done:
    Py_XDECREF(results);
    return out;
}

/* --- a detector: the network compiled, and how it is fed and read --- */

typedef struct parts {
    oct_detector *detector;
    oct_plan *plan;
    oct_run *run;
} parts;

typedef struct pyo_detector {
    PyObject_HEAD pyo_context *context;
    PyObject *network;
    parts *p;
    oct_preprocess preprocess;
    oct_dtype dtype;
    const char *input; /* the plan's */
} pyo_detector;

static void free_parts(void *what)
{
    parts *p = what;

    oct_run_free(p->run);
    oct_plan_free(p->plan);
    oct_detector_free(p->detector);
    free(p);
}

/* The input takes the size of the preprocessing, where the network leaves it open. */
static oct_status fix_input(pyo_detector *d, oct_graph *g)
{
    const bool nhwc = d->preprocess.layout == OCT_IMAGE_NHWC;
    const int64_t c = d->preprocess.color == OCT_COLOR_GRAY ? 1 : 3, h = d->preprocess.height,
                  w = d->preprocess.width;
    const int64_t dims[] = {1, nhwc ? h : c, nhwc ? w : h, nhwc ? c : w};

    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++) {
        const oct_value *v = oct_graph_input(g, i);
        bool is_same = true;

        if (oct_value_rank(v) != 4) continue;
        for (int32_t k = 0; k < 4; k++)
            is_same = is_same && oct_value_dim(v, k) == dims[k];
        return is_same ? OCT_OK : oct_graph_set_input_shape(g, oct_value_name(v), 4, dims);
    }
    return OCT_OK;
}

static oct_status find_input(pyo_detector *d)
{
    oct_io_info info = {.struct_size = sizeof(info)};

    for (int32_t i = 0; oct_plan_input_info(d->p->plan, i, &info); i++) {
        if (info.rank != 4) continue;
        d->input = info.name;
        d->dtype = (oct_dtype)info.dtype;
        return OCT_OK;
    }
    return OCT_ERR_UNSUPPORTED;
}

static oct_status compile(pyo_detector *d, oct_graph *g, pyo_settings *s)
{
    oct_ctx *ctx = d->context->ctx;
    oct_status st;

    if ((st = oct_detector_new(g, s->family, &d->p->detector))) return st;
    oct_preprocess_init(&d->preprocess);
    oct_detector_preprocess(d->p->detector, &d->preprocess);
    if (s->preprocess) d->preprocess = *s->preprocess;
    oct_detector_free(d->p->detector); /* shapes become known */
    d->p->detector = NULL;
    if ((st = fix_input(d, g))) return st;
    if ((st = oct_detector_new(g, s->family, &d->p->detector))) return st;
    if (s->names && (st = oct_detector_set_names(d->p->detector, s->names))) return st;
    if ((st = oct_plan_new(g, NULL, &d->p->plan))) return st;
    if ((st = find_input(d))) return st;
    return oct_run_new(ctx, d->p->plan, &d->p->run);
}

static PyObject *detector_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyThreadState *state;
    pyo_settings s = {0};
    const char *json;
    Py_ssize_t size;
    pyo_detector *d;
    pyo_network *n;
    oct_status st;

    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!s#", pyo.network, &n, &json, &size)) return NULL;
    if (!(d = pyo_new(type))) return NULL;
    d->context = (pyo_context *)pyo_ref((PyObject *)n->context);
    d->network = pyo_ref((PyObject *)n);
    if (!(d->p = calloc(1, sizeof(*d->p)))) PyErr_NoMemory();
    if (!d->p || !(state = pyo_enter(d->context))) {
        Py_DECREF(d);
        return NULL;
    }
    st = pyo_settings_read(&s, n->graph, d->context->ctx, json, size);
    if (!st) st = compile(d, n->graph, &s);
    if (pyo_settings_leave(&s, d->context, state, st)) Py_CLEAR(d);
    return (PyObject *)d;
}

static void detector_dealloc(PyObject *self)
{
    pyo_detector *d = (pyo_detector *)self;

    if (d->context) pyo_dispose(d->context, free_parts, d->p);
    Py_XDECREF(d->network);
    Py_XDECREF((PyObject *)d->context);
    pyo_free(self);
}

/* --- one picture --- */

typedef struct picture {
    PyObject *path; /* bytes, or NULL: an array */
    pyo_view pixels;
    oct_image *image;
    oct_detection *found;
    int32_t n;
    const float *scores; /* classifiers */
    int32_t n_scores;
} picture;

static oct_status read_picture(oct_ctx *ctx, picture *p)
{
    oct_status st;

    if (p->path) return oct_image_load(ctx, PyBytes_AsString(p->path), NULL, &p->image);
    st = oct_image_new(ctx, (int32_t)p->pixels.dims[1], (int32_t)p->pixels.dims[0], &p->image);
    if (!st) memcpy(oct_image_rgb(p->image), p->pixels.data, p->pixels.size);
    return st;
}

static oct_status detect_one(pyo_detector *d, picture *p, const oct_nms_options *o, const char *out)
{
    oct_ctx *ctx = d->context->ctx;
    oct_mapping map;
    oct_status st;
    size_t size;
    void *data;

    if ((st = read_picture(ctx, p))) return st;
    if ((st = oct_run_input(d->p->run, d->input, &data, &size))) return st;
    if ((st = oct_preprocess_run(ctx, &d->preprocess, p->image, d->dtype, data, &map))) return st;
    if ((st = oct_run_execute(d->p->run))) return st;
    if (oct_detector_is_classifier(d->p->detector))
        return oct_detector_scores(d->p->detector, d->p->run, 0, &p->scores, &p->n_scores);
    st = oct_detector_decode(d->p->detector, d->p->run, 0, &map, o, p->found, &p->n);
    if (!st && out) st = oct_detections_draw(ctx, p->image, p->found, p->n, NULL, 0);
    return !st && out ? oct_image_save(ctx, p->image, out) : st;
}

static PyObject *found_rows(const pyo_detector *d, const picture *p)
{
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < p->n; i++) {
        const oct_detection *f = &p->found[i];
        PyObject *row =
            Py_BuildValue("{sisNsdsdsdsdsd}", "category", (int)f->category, "name",
                          pyo_text(oct_detector_class_name(d->p->detector, f->category)), "score",
                          (double)f->score, "x", (double)f->x, "y", (double)f->y, "width",
                          (double)f->width, "height", (double)f->height);

        if (pyo_append(list, row)) Py_CLEAR(list);
    }
    for (int32_t i = 0; list && i < p->n_scores; i++) {
        PyObject *row = Py_BuildValue("{sisNsd}", "category", (int)i, "name",
                                      pyo_text(oct_detector_class_name(d->p->detector, i)), "score",
                                      (double)p->scores[i]);

        if (pyo_append(list, row)) Py_CLEAR(list);
    }
    return list;
}

static int get_picture(PyObject *object, picture *p)
{
    if (!PyObject_CheckBuffer(object) && !PyObject_HasAttrString(object, "__dlpack__"))
        return PyUnicode_FSConverter(object, &p->path) ? 0 : -1;
    if (pyo_view_get(object, "the picture", &p->pixels)) return -1;
    if (p->pixels.dtype == OCT_DTYPE_U8 && p->pixels.rank == 3 && p->pixels.dims[2] == 3 &&
        p->pixels.dims[0] > 0 && p->pixels.dims[1] > 0 && p->pixels.size < INT32_MAX)
        return 0;
    pyo_raise(OCT_ERR_SHAPE,
              "a picture is an array of uint8 with the shape (height, width, 3), RGB");
    return -1;
}

static PyObject *detect(PyObject *self, PyObject *args)
{
    pyo_detector *d = (pyo_detector *)self;
    PyObject *object, *to, *out = NULL;
    PyThreadState *state;
    oct_nms_options o;
    picture p = {0};
    int agnostic;
    oct_status st;

    oct_nms_options_init(&o);
    if (!PyArg_ParseTuple(args, "OffpiO", &object, &o.score, &o.iou, &agnostic, &o.max_detections,
                          &to))
        return NULL;
    o.agnostic = agnostic;
    if (o.max_detections < 1 || o.max_detections > 100000) {
        pyo_raise_arg("max_detections is 1 to 100000");
        return NULL;
    }
    if (to == Py_None)
        to = NULL;
    else if (!PyUnicode_FSConverter(to, &to))
        return NULL;
    if (get_picture(object, &p)) goto done;
    if (!(p.found = calloc((size_t)o.max_detections, sizeof(*p.found)))) {
        PyErr_NoMemory();
        goto done;
    }
    if (!(state = pyo_enter(d->context))) goto done;
    st = detect_one(d, &p, &o, to ? PyBytes_AsString(to) : NULL);
    oct_image_free(p.image);
    PyEval_RestoreThread(state); /* scores are the run's, until somebody else runs it */
    if (!st) out = found_rows(d, &p);
    if (pyo_leave(d->context, PyEval_SaveThread(), st)) Py_CLEAR(out);
done:
    pyo_view_release(&p.pixels);
    Py_XDECREF(p.path);
    Py_XDECREF(to);
    free(p.found);
    return out;
}

static PyObject *detector_facts(PyObject *self, PyObject *unused)
{
    const oct_detector *d = ((pyo_detector *)self)->p->detector;
    PyObject *names = PyList_New(0);
    char words[512];

    (void)unused;
    for (int32_t i = 0; names && i < oct_detector_n_classes(d); i++)
        if (pyo_append(names, pyo_text(oct_detector_class_name(d, i)))) Py_CLEAR(names);
    return Py_BuildValue(
        "{sNsNsNsNsN}", "family", pyo_text(oct_detector_family(d)), "why",
        pyo_text(oct_detector_why(d)), "names", names, "is_classifier",
        PyBool_FromLong(oct_detector_is_classifier(d)), "preprocess",
        pyo_text(oct_preprocess_text(&((pyo_detector *)self)->preprocess, words, sizeof(words))));
}

/* --- the type --- */

static PyMethodDef methods[] = {
    {"detect", detect, METH_VARARGS, "(picture, score, iou, agnostic, max_detections, out)"},
    {"facts", detector_facts, METH_NOARGS, "Family, classes, preprocessing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)detector_make},
    {Py_tp_dealloc, (void *)detector_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"octet._octet.Detector", sizeof(pyo_detector), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"evaluate", evaluate, METH_VARARGS, "(network, dataset, settings, batch, results)"},
    {NULL, NULL, 0, NULL},
};

int pyo_detect_setup(PyObject *module)
{
    if (pyo_add_type(module, &spec, &pyo.detector)) return -1;
    return PyModule_AddFunctions(module, functions);
}
