/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: one plan, as many runs as threads use it at a time. */
#ifndef PYO_SESSION_H
#define PYO_SESSION_H

#include "ext.h"

enum { PYO_KEPT_RUNS = 8 }; /* ready ones; those beyond are made and freed by each call */

/* A run with the context it reports to: of one call at a time. */
typedef struct pyo_slot {
    oct_ctx *ctx;
    oct_run *run;
} pyo_slot;

typedef struct pyo_io {
    oct_io_info info; /* strings and dims are the plan's */
    PyObject *name;
} pyo_io;

typedef struct pyo_session {
    PyObject_HEAD pyo_context *context;
    PyObject *network; /* weights may lie in its memory */
    oct_plan *plan;
    int32_t n_in, n_out;
    pyo_io *io; /* inputs, then outputs */
    pyo_slot ready[PYO_KEPT_RUNS];
    int n_ready;
} pyo_session;

/* A slot in use. Arrays that show its memory hold a reference; the last one gives it back. */
typedef struct pyo_run {
    PyObject_HEAD pyo_session *session;
    pyo_slot slot;
    pyo_view *inputs; /* of results in place, which may show them; NULL: none */
} pyo_run;

pyo_run *pyo_run_take(pyo_session *s);
int pyo_run_failed(const pyo_run *r, oct_status st); /* raises; -1 */
void pyo_slot_free(pyo_slot *slot);

/* What one call passes: views of inputs and outputs, in the order of pyo_session.io. */
typedef struct pyo_call {
    pyo_session *session;
    pyo_run *run;
    pyo_view *views;
    PyObject **arrays; /* results, as they are returned */
    bool in_place;     /* results may show the run's own memory */
} pyo_call;

int pyo_call_open(pyo_call *c, pyo_session *s, PyObject *inputs, PyObject *outputs);
int pyo_call_execute(pyo_call *c);
PyObject *pyo_call_results(pyo_call *c); /* a list, in the order of the outputs */
void pyo_call_close(pyo_call *c);

#endif
