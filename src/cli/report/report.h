/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a command: collects what oct_report_write() shows. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/* What the command has already. What is NULL is measured here, or omitted. */
typedef struct cli_report {
    cli *c;
    const char *dir;
    const char *float_path, *int8_path; /* the second NULL: a qmap, no file to measure */
    const cli_list *shapes;             /* of --input-shape; may be NULL */
    const oct_graph *exact, *quantized;
    oct_dataset *images;              /* to analyse, and to draw on */
    oct_dataset *truth;               /* with labels, to draw on instead; may be NULL */
    const oct_class_names *names;     /* of --labels; NULL: none */
    const oct_preprocess *preprocess; /* NULL: the family's */
    const char *family;               /* NULL: auto */
    const oct_quantized *q;           /* may be NULL */
    const oct_analysis *analysis;     /* NULL: made here */
    const oct_eval_result *before, *after;
    bool is_classifier;
    const char *recipe;
    const oct_box_eval *boxes[2]; /* float, INT8; NULL: none */
    const oct_box_noise *noise;
    const oct_prune_result *pruned; /* NULL: not pruned */
} cli_report;

/* Before the work: can DIR/index.html be written? `is_rewritten`: several times. */
oct_status cli_report_check(cli *c, const char *dir, bool is_rewritten);

/* Analyses, measures, draws and writes. */
oct_status cli_report_write(const cli_report *in);

char *cli_report_path(const char *dir); /* DIR/index.html, to be freed */

/* --- report_pictures.c --- */

enum { CLI_REPORT_PICTURES = 8 };

/* What both networks find, on the pictures where they differ most; none where they find nothing. */
typedef struct cli_report_pictures {
    oct_report_scene list[CLI_REPORT_PICTURES];
    int n, n_seen;
    float score;  /* boxes with less were left out */
    char **names; /* of classes */
    int32_t n_names;
} cli_report_pictures;

oct_status cli_report_draw(const cli_report *in, cli_report_pictures *p);
void cli_report_pictures_fini(cli_report_pictures *p);

/* --- report_words.c: all to be freed --- */

char *cli_report_title(const char *path); /* "yolov8n" */
char *cli_report_command(const cli *c);   /* as one would type it into a shell */
char *cli_report_machine(const cli *c);   /* CPU, instruction sets, kernels, threads */
char *cli_report_versions(void);          /* octet and its libraries */

#endif
