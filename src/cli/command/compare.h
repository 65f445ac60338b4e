/* SPDX-License-Identifier: Apache-2.0 */
/* Several models measured in turns, and what each layer gained: octet bench A B. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli/cli.h"
#include "cli/command/measure.h"

typedef struct cli_compare_options {
    cli_session_options session;
    int64_t warmup, runs; /* runs 0: as many as fit into the seconds */
    double seconds;       /* for each model */
    int64_t enough;       /* runs that end it before the seconds are over; 0: none */
    int64_t top;          /* layers that are listed; 0: all */
} cli_compare_options;

/* A step of a plan with its time. */
typedef struct cli_step {
    oct_step_info info;
    cli_times times;
    double ms; /* the median */
} cli_step;

/* A model, compiled and measured. */
typedef struct cli_measured {
    const char *path;
    cli_session session;
    oct_run *run;
    cli_times times;
    cli_time_stats stats;
    cli_step *steps; /* in the order they run */
    int n_steps;
    double peak_mb; /* of a process that loads and runs only this model; 0: not known */
} cli_measured;

/*
 * Measures n files in turns into as many models, each to be closed. On failure nothing is left to
 * close.
 */
oct_status cli_measure_models(cli *c, char **files, int n, const cli_compare_options *o,
                              cli_measured *models);
void cli_measured_close(cli_measured *m);

/* Measures all files in turns and prints the comparison with the first one. */
oct_status cli_compare(cli *c, char **files, const cli_compare_options *o);

/* --- layers.c --- */

/* What one layer took in the first model and in another one. */
typedef struct cli_layer {
    const cli_step *first, *other; /* first of that name; NULL: the model has none */
    double first_ms, other_ms;     /* of all steps of that name */
    const char *why;               /* it did not gain; NULL: it did, or is in one model only */
} cli_layer;

/* The layers of two models, by name. Steps that only move or convert data are no layers. */
typedef struct cli_layers {
    cli_layer *list; /* slowest of the other model first, then those of the first model alone */
    int n;
    double first_moves_ms, other_moves_ms; /* reorders and conversions */
    int first_moves, other_moves;
} cli_layers;

#define CLI_LAYER_GAIN 1.1 /* a layer with less has not gained */

void cli_layers_init(cli_layers *l, const cli_measured *first, const cli_measured *other);
void cli_layers_fini(cli_layers *l);
double cli_layer_gain(const cli_layer *l); /* 0: in one model only */

/* --- compare_print.c --- */

void cli_compare_text(const cli_measured *models, int n, int64_t top);
oct_status cli_compare_json(cli *c, const cli_measured *models, int n);

#endif
