/* SPDX-License-Identifier: Apache-2.0 */
/* What octet train, qat and prune do to a network, one after the other: prune it or set weights to
 * zero while it is trained, then train it for integers. */
#ifndef CLI_COMPRESS_H
#define CLI_COMPRESS_H

#include "cli/command/train.h"

typedef enum cli_compress_kind {
    CLI_COMPRESS_TRAIN,
    CLI_COMPRESS_QAT,
    CLI_COMPRESS_PRUNE
} cli_compress_kind;

/* State of one call. */
typedef struct cli_compress {
    cli *c;
    const cli_train_args *a;
    cli_compress_kind kind;
    oct_recipe *recipe;
    oct_recipe_job settings;
    oct_recipe_train_job files;
    bool prunes, sparsifies, quantizes;
    oct_prune_options prune;
    oct_dataset *pictures;     /* of --refit; NULL: not opened */
    oct_preprocess preprocess; /* of them */
    oct_train_pruning pruning;
    oct_sparsity_options sparsity;
    const char *model;      /* what is trained; NULL: what the settings name */
    const char *resume;     /* a checkpoint to go on from; NULL: none */
    const char *begin_with; /* a quantized one whose weights training begins with */
    bool is_pruned;         /* the model was pruned before */
    double float_accuracy;  /* < 0: not measured */
} cli_compress;

/* Reads the settings and decides what there is to do. cli_compress_end() is called afterwards, also
 * after a failure. */
oct_status cli_compress_start(cli_compress *k, char **files);
void cli_compress_end(cli_compress *k, oct_status st);

/* Opens the pictures of --refit for the network that is pruned, if there are any. */
oct_status cli_compress_open_pictures(cli_compress *k, const oct_graph *g);

/* All of it, with pictures. */
oct_status cli_compress_train(cli_compress *k);

/* The whole command, for train and qat. */
oct_status cli_compress_run(cli *c, const cli_train_args *a, cli_compress_kind kind, char **files);

#endif
