/* SPDX-License-Identifier: Apache-2.0 */
/* An accuracy that ends a training: so much below the float network's (train.max_drop). */
#include "cli/command/compress.h"

oct_status cli_train_goal(cli_train_job *j)
{
    const double relative = j->files.max_relative_drop;
    double accuracy = j->compress->float_accuracy;
    oct_status st;

    j->least = -1;
    if (!(j->files.max_drop > 0) && !(relative > 0)) return OCT_OK;
    if (!j->truth)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "train.max_drop (accuracy_aware_training) needs pictures that accuracy is "
                        "measured on: --eval-images DIR --eval-annotations FILE");
    if (accuracy < 0 && (st = cli_train_measure(j, j->g, &accuracy))) return st;
    j->compress->float_accuracy = accuracy; /* of the network before anything was done to it */
    j->least = accuracy - j->files.max_drop - accuracy * relative / 100;
    cli_note(j->c, "the float network has %.4f; training ends as soon as %.4f is reached", accuracy,
             j->least);
    return OCT_OK;
}

oct_status cli_train_check_goal(cli_train_job *j)
{
    if (j->least < 0 || (j->t.best_epoch && j->t.best >= j->least)) return OCT_OK;
    if (j->output) return OCT_OK; /* another training follows */
    return cli_fail(
        j->c, OCT_ERR_STATE,
        "%s was written, but its accuracy of %.4f is below the %.4f that was asked for: "
        "train longer, or compress less",
        j->settings.output, j->t.best, j->least);
}
