/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades of BatchNormalization. */
#include "onnx/upgrade.h"

/* Opset 7: training shows in the number of outputs. */
oct_status oct_up_batch_norm_7(oct_draft *d)
{
    oct_draft_drop(d, "is_test");
    oct_draft_drop(d, "consumed_inputs");
    return OCT_OK;
}

/* Opset 9: statistics are always for each channel. */
oct_status oct_up_batch_norm_9(oct_draft *d)
{
    if (!oct_draft_int(d, "spatial", 1) && oct_draft_rank(d, 0) != 2)
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED, "statistics for each element (spatial=0)");
    oct_draft_drop(d, "spatial");
    return OCT_OK;
}

/* Opset 14: training is asked for by an attribute, and the statistics of the batch itself are no
 * longer given out: if somebody reads them, verifying the graph will say so. */
oct_status oct_up_batch_norm_14(oct_draft *d)
{
    const bool trains = (d->n_out > 1 && d->out[1]) || (d->n_out > 2 && d->out[2]);

    if (d->n_out > 3) d->n_out = 3;
    return trains ? oct_draft_set_int(d, "training_mode", 1) : OCT_OK;
}
