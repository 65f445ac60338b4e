/* SPDX-License-Identifier: Apache-2.0 */
/* The module octet._octet: its types and what is about the whole library. */
#include <string.h>

#include "ext.h"

pyo_module pyo;

int pyo_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **slot)
{
    const char *name = strrchr(spec->name, '.') + 1;

    *slot = (PyTypeObject *)PyType_FromSpec(spec);
    return *slot ? pyo_add_object(module, name, (PyObject *)*slot) : -1;
}

void *pyo_new(PyTypeObject *type)
{
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return alloc(type, 0);
}

void pyo_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

PyObject *pyo_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    PyErr_Format(PyExc_TypeError, "%R: only octet's functions make such objects", (PyObject *)type);
    return NULL;
}

/* --- what there is to choose from --- */

static PyObject *names(const char *(*name)(int32_t), const char *(*help)(const char *))
{
    PyObject *d = PyDict_New();

    for (int32_t i = 0; d && name(i); i++)
        if (pyo_set(d, name(i), pyo_text(help ? help(name(i)) : NULL))) Py_CLEAR(d);
    return d;
}

static PyObject *choices(PyObject *self, PyObject *unused)
{
    static const struct {
        const char *what;
        const char *(*name)(int32_t);
        const char *(*help)(const char *);
    } tables[] = {
        {"targets", oct_target_name, oct_target_help},
        {"ranges", oct_observer_name, oct_observer_help},
        {"families", oct_family_name, oct_family_help},
        {"passes", oct_pass_name, oct_pass_help},
        {"train_presets", oct_train_preset_name, NULL},
        {"losses", oct_loss_name, NULL},
        {"optimizers", oct_optimizer_name, NULL},
        {"schedules", oct_schedule_name, NULL},
        {"averages", oct_ema_name, NULL},
        {"augmentations", oct_augment_name, NULL},
        {"importances", oct_prune_importance_name, NULL},
    };
    PyObject *d = PyDict_New();

    (void)self, (void)unused;
    for (size_t i = 0; d && i < PYO_COUNT(tables); i++)
        if (pyo_set(d, tables[i].what, names(tables[i].name, tables[i].help))) Py_CLEAR(d);
    return d;
}

/* The words of a recipe: the path of each field, with its help. */
static PyObject *settings(PyObject *self, PyObject *unused)
{
    oct_recipe_field f = {.struct_size = sizeof(f)};
    PyObject *d = PyDict_New();

    (void)self, (void)unused;
    for (int32_t i = 0; d && oct_recipe_field_at(i, &f); i++)
        if (pyo_set(d, f.path, pyo_text(f.help))) Py_CLEAR(d);
    return d;
}

static PyObject *machine(PyObject *self, PyObject *unused)
{
    static const pyo_field fields[] = {
        PYO_FIELD(oct_machine_info, float_set, PYO_TEXT),
        PYO_FIELD(oct_machine_info, int8_set, PYO_TEXT),
        PYO_FIELD(oct_machine_info, int8_by_16_bits, PYO_BOOL),
        PYO_FIELD(oct_machine_info, cores, PYO_INT32),
        PYO_FIELD(oct_machine_info, memory_bytes, PYO_INT64),
        PYO_FIELD(oct_machine_info, one_thread_loops, PYO_BOOL),
    };
    oct_machine_info info = {.struct_size = sizeof(info)};

    (void)self, (void)unused;
    oct_machine(&info);
    return pyo_row(fields, PYO_COUNT(fields), &info);
}

/* (folder, split, count, size, seed): labelled pictures out of nothing. */
static PyObject *synth(PyObject *self, PyObject *args)
{
    oct_synth_result r = {.struct_size = sizeof(r)};
    unsigned long long seed;
    PyThreadState *state;
    oct_synth_options o;
    PyObject *folder;
    pyo_context *c;
    int failed;

    (void)self;
    oct_synth_options_init(&o);
    if (!PyArg_ParseTuple(args, "O&siiK", PyUnicode_FSConverter, &folder, &o.split, &o.count,
                          &o.size, &seed))
        return NULL;
    o.seed = seed;
    c = pyo_context_new();
    failed = !c || !(state = pyo_enter(c)) ||
             pyo_leave(c, state, oct_synth_write(c->ctx, PyBytes_AsString(folder), &o, &r));
    Py_XDECREF((PyObject *)c);
    Py_DECREF(folder);
    return failed ? NULL : Py_BuildValue("(LL)", (long long)r.images, (long long)r.objects);
}

static PyMethodDef functions[] = {
    {"synth", synth, METH_VARARGS, "(folder, split, count, size, seed)"},
    {"choices", choices, METH_NOARGS, "What there is to choose from, by kind, with help."},
    {"settings", settings, METH_NOARGS, "Paths of all settings of a recipe, with help."},
    {"machine", machine, METH_NOARGS, "What the kernels run on."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_octet",
    "octet's C library, as octet/*.py use it.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

/* Without numpy, arrays are octet.Tensor. */
static void find_numpy(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");

    pyo.asarray = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
    Py_XDECREF(numpy);
    PyErr_Clear();
}

PyMODINIT_FUNC PyInit__octet(void);

PyMODINIT_FUNC PyInit__octet(void)
{
    static int (*const setups[])(PyObject *) = {
        pyo_context_setup, pyo_tensor_setup,   pyo_network_setup, pyo_session_setup,
        pyo_dataset_setup, pyo_quantize_setup, pyo_control_setup, pyo_detect_setup,
        pyo_analyze_setup, pyo_train_setup,
    };
    PyObject *m = PyModule_Create(&definition);

    for (size_t i = 0; m && i < PYO_COUNT(setups); i++)
        if (setups[i](m)) Py_CLEAR(m);
    if (m && PyModule_AddStringConstant(m, "version", oct_version())) Py_CLEAR(m);
    if (m) find_numpy();
    return m;
}
