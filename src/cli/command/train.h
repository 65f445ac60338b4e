/* SPDX-License-Identifier: Apache-2.0 */
/* What octet train shows. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include <octet/train.h>

#include "cli/cli.h"

typedef struct cli_training {
    oct_train *train;
    oct_train_epoch epoch; /* the last one */
    oct_eval_result result;
    bool is_classifier;
    bool is_measured, is_best; /* the last epoch */
    double best;
    int32_t best_epoch; /* 0: accuracy was never measured */
} cli_training;

void cli_train_print_start(cli *c, const cli_training *t);
oct_status cli_train_print_epoch(cli *c, const cli_training *t);
oct_status cli_train_print_end(cli *c, const cli_training *t, const char *output,
                               const char *folder);

#endif
