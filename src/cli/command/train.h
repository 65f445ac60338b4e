/* SPDX-License-Identifier: Apache-2.0 */
/* What octet train and octet qat share: options, the job, and what they show. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include <octet/report.h>
#include <octet/train.h>

#include "cli/cli.h"
#include "cli/command/recipe.h"

typedef struct cli_train_args {
    cli_recipe_args recipe; /* first: options of fields lie in it */
    const char *resume, *show_batch, *report;
    bool table; /* qat */
} cli_train_args;

#define CLI_OPTS_TRAIN                                                                             \
    {CLI_STR, "resume", offsetof(cli_train_args, resume), "FILE",                                  \
     .help = "go on from a checkpoint, with the same settings and pictures, as if it had never "   \
             "stopped"},                                                                           \
        {CLI_STR, "report", offsetof(cli_train_args, report), "DIR",                               \
         .help = "write the curves of loss, accuracy and rate as DIR/index.html, to look at in a " \
                 "browser; anew after each epoch"},                                                \
    {                                                                                              \
        CLI_STR, "show-batch", offsetof(cli_train_args, show_batch), "FILE",                       \
            .help = "draw the first batch with its boxes as a JPEG or PNG, and do nothing else"    \
    }

/* How far it is. */
typedef struct cli_training {
    oct_train *train;
    oct_train_epoch epoch; /* the last one */
    oct_eval_result result;
    bool is_classifier;
    bool is_measured, is_best; /* the last epoch */
    double best;
    int32_t best_epoch;       /* 0: accuracy was never measured */
    oct_report_epoch *epochs; /* of this call, for the report */
    int32_t n_epochs;
} cli_training;

struct cli_compress;

/* One training. What is opened in it is closed by cli_train_job_run(). */
typedef struct cli_train_job {
    cli *c;
    const cli_train_args *a;
    struct cli_compress *compress; /* the whole of which it is a part; has the recipe */
    bool is_qat;
    const char *model, *output, *checkpoints; /* in place of the settings'; NULL: those */
    const char *resume, *begin_with;          /* checkpoints; NULL: none */
    bool is_second;                           /* another one wrote the model before */
    oct_recipe *recipe;                       /* borrowed */
    oct_recipe_job settings;
    oct_recipe_train_job files;
    oct_graph *g;
    oct_dataset *images, *truth, *calibration;
    oct_class_names *names;
    oct_preprocess preprocess;
    oct_train_options options;
    oct_quantize_options quantize;        /* qat */
    const oct_train_pruning *prune;       /* NULL: no channels are pruned */
    const oct_prune_options *cut;         /* what is cut out before training; NULL: nothing */
    oct_graph *uncut;                     /* the network before that; NULL: nothing was cut out */
    oct_graph *teacher;                   /* the one that --teacher names; NULL: none */
    const oct_sparsity_options *sparsity; /* NULL: no weights are set to zero */
    double least;                         /* accuracy that ends the training; < 0: none */
    int32_t norm_pictures;    /* > 0: not trained; norms are adapted to so many pictures */
    oct_prune_result *pruned; /* what was cut out; NULL: nothing */
    cli_training t;
    char *folder, *last, *best;
    char *folded, *ptq, *unaligned; /* files of --table; NULL: not written */
} cli_train_job;

/* All of a job whose first fields, and what belongs to pruning and sparsity, are set. */
oct_status cli_train_job_run(cli_train_job *j);

/* --- train_open.c --- */

void cli_train_read(cli_train_job *j);        /* settings */
oct_status cli_train_check(cli_train_job *j); /* before anything expensive */
oct_status cli_train_open(cli_train_job *j);

/* The folder for checkpoints, to be freed. */
char *cli_train_folder(const oct_recipe_job *s, const oct_recipe_train_job *files);

/* --- train_goal.c --- */

/* The accuracy that the training is to reach, from that of the float network. */
oct_status cli_train_goal(cli_train_job *j);

/* After the last epoch: an error if it was not reached. */
oct_status cli_train_check_goal(cli_train_job *j);

/* --- train_epochs.c --- */

/* Measures a network on the pictures for it. */
oct_status cli_train_measure(cli_train_job *j, const oct_graph *g, double *accuracy);

oct_status cli_train_epochs(cli_train_job *j);
oct_status cli_train_write(cli_train_job *j);

/* --- train_report.c --- */

/* Both do nothing without --report: after an epoch; in the end, with the table of networks. */
oct_status cli_train_report(cli_train_job *j);
oct_status cli_train_report_networks(cli_train_job *j, const oct_report_network *networks, int n);

/* With what is left of layers, when that is known. */
oct_status cli_train_report_pruned(const cli_train_job *j);

/* --- qat_table.c --- */

/* Names the files that --table writes beside the network. */
oct_status cli_table_files(cli_train_job *j);

/* After an epoch that is the best so far: the network as it is before its shifts are made to fit.
 */
oct_status cli_table_keep(cli_train_job *j);

/* Measures float, calibrated and trained networks on the files themselves, and prints them. */
oct_status cli_table_print_all(cli_train_job *j);

/* --- train_print.c --- */

void cli_train_print_start(cli *c, const cli_training *t);
oct_status cli_train_print_epoch(cli *c, const cli_training *t);
oct_status cli_train_print_end(cli *c, const cli_training *t, const char *output,
                               const char *folder);

#endif
