/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of octet quantize: the files it writes, and its summary. */
#ifndef CLI_QUANTIZE_H
#define CLI_QUANTIZE_H

#include <octet/control.h>
#include <octet/quant.h>
#include <octet/recipe.h>

#include "cli/cli.h"
#include "cli/term/json.h"

/*
 * Writes the network, and beside it what was asked for: all of them or none, and existing files
 * stay until then.
 */
oct_status cli_quantize_write(cli *c, const oct_quantized *q, const oct_recipe_job *settings,
                              const char *family);

/* Path of the scales in PPQ's format, to be freed; NULL: none. */
char *cli_quantize_cfg_path(const oct_recipe_job *settings);

typedef struct cli_quantize_report {
    cli *c;
    const oct_quantized *q;
    const char *model, *output, *target;
    int64_t bytes_before, bytes_after;
    double seconds, peak_rss_mb; /* from the start until the file was written */
    uint64_t seed;
    bool has_accuracy, is_classifier;
    oct_eval_result before, after; /* if has_accuracy */
    char *report;                  /* path of the page; NULL: none was asked for */
    oct_box_eval *boxes[2];        /* before, after; NULL: a classifier */
    oct_box_noise noise;           /* if has_accuracy and not a classifier */
    char family[64];               /* "": not known */
    char preprocess[256];          /* "": none, or not known */
    int64_t n_left_out;            /* of the pictures to calibrate on */
    bool tensors;                  /* are given instead of pictures */
    bool has_unaligned;            /* scales were fitted to an NPU, and accuracy is measured: */
    oct_eval_result unaligned;     /* that of the network before */
    oct_control *control;          /* of a promise; NULL: none was asked for */
} cli_quantize_report;

/* --- quantize_promise.c --- */

/* What is quantized, and what it is measured with. */
typedef struct cli_quantize_work {
    cli *c;
    const oct_graph *g;
    const oct_dataset *images, *truth; /* truth NULL: none */
    const oct_class_names *names;      /* NULL: none */
    const oct_quantize_options *options;
    const oct_recipe_job *settings;
    bool is_classifier;
} cli_quantize_work;

/* Before and after, if there are labels. */
oct_status cli_quantize_accuracy(const cli_quantize_work *w, const oct_quantized *q,
                                 cli_quantize_report *r);

/* --max-drop, --min-repeat, --max-noise: one of them at most. */
bool cli_promise_wanted(const oct_recipe_job *s);
oct_status cli_promise_check(cli *c, const oct_recipe_job *s);

/* Quantizes so that it is kept; r->control is to be freed. */
oct_status cli_promise_quantize(const cli_quantize_work *w, cli_quantize_report *r,
                                oct_quantized **out);

/* Fails if it is not kept: after all was written and printed. */
oct_status cli_promise_verdict(const cli_quantize_report *r);
void cli_promise_print(const cli_quantize_report *r, int column);
void cli_promise_json(cli_json *j, const cli_quantize_report *r);

/* What a file says of its promise: kind, limit, measure, float, score, need, held, restored. */
void cli_promise_file_json(cli_json *j, const oct_graph *g);

/* What was fitted to an NPU; returns how many scales. And all of it under the key "moved". */
int cli_quantize_print_moves(const cli_quantize_report *r, int column);
void cli_quantize_moves_json(cli_json *j, const cli_quantize_report *r);

/* What healing did, a line each. And all of it under the key "mends". */
void cli_quantize_print_mends(const cli_quantize_report *r, int column);
void cli_quantize_mends_json(cli_json *j, const cli_quantize_report *r);

/*
 * Prints family, preprocessing and the number of pictures, warns of few, and keeps it for the
 * report. `words` (may be NULL) override the family's preprocessing; then *p is to be used.
 */
oct_status cli_quantize_assume(cli_quantize_report *r, const oct_graph *g, const char *family,
                               const char *words, const oct_dataset *images, oct_preprocess *p);

void cli_quantize_print(const cli_quantize_report *r);
oct_status cli_quantize_print_json(const cli_quantize_report *r);

#endif
