/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: the output is the input. */
#include <string.h>

#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/op.h"

static oct_status ref(const oct_args *a)
{
    if (a->out[0]->size > 0) memcpy(a->out[0]->data, a->in[0]->data, a->out[0]->size);
    return OCT_OK;
}

const oct_op oct_op_identity = {
    .name = "Identity",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .shape = oct_shape_same,
    .ref = ref,
    .grad = oct_grad_copy,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_IS_COPY | OCT_OP_ELEMENTWISE,
    .moves = &oct_moves_copy,
};
