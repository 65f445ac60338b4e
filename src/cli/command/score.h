/* SPDX-License-Identifier: Apache-2.0 */
/* Output of box metrics: shared by the commands that score. */
#ifndef CLI_SCORE_H
#define CLI_SCORE_H

#include "cli/cli.h"
#include "cli/term/json.h"

/* The twelve numbers with what each of them means. */
void cli_score_print(FILE *out, const oct_box_metrics *m);

/* Categories by rising AP: the n worst, or all if n is 0. Prints nothing if none has labels. */
void cli_score_print_classes(FILE *out, const oct_box_eval *e, const oct_dataset *d, int n);

/* ap, ap50 .. ar_large (null where there is nothing to measure), voc_map50, per_class. */
void cli_score_json(cli_json *j, const oct_box_metrics *m, const oct_box_eval *e,
                    const oct_dataset *d, bool curves);

/*
 * How much AP depends on the pictures, by the bootstrap; `other` may be NULL. Fields are < 0 where
 * nothing is known.
 */
oct_status cli_score_noise(const oct_box_eval *e, const oct_box_eval *other, oct_box_noise *out);

/* "AP 0.4205 (+- 0.0120 on 320 pictures, 95 %)" */
void cli_score_print_noise(FILE *out, const oct_box_metrics *m, const oct_box_noise *n);

/* ap_noise (null: not known) and resamples; precision50 and precision, the means of the classes. */
void cli_score_noise_json(cli_json *j, const oct_box_noise *n);
void cli_score_curves_json(cli_json *j, const oct_box_eval *e);

#endif
