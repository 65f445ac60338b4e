/* SPDX-License-Identifier: Apache-2.0 */
/* The table of losses, and what all of them share. */
#include "loss/loss.h"

#include <string.h>

#include "op/op.h"

#define OCT_LOSS(sym) extern const oct_loss_row oct_loss_##sym;
#include "loss/losses.def"
#undef OCT_LOSS

static const oct_loss_row *const rows[] = {
#define OCT_LOSS(sym) &oct_loss_##sym,
#include "loss/losses.def"
#undef OCT_LOSS
    NULL,
};

const oct_loss_row *oct_loss_at(int i)
{
    return i >= 0 && i < (int)OCT_COUNT(rows) ? rows[i] : NULL;
}

const oct_loss_row *oct_loss_find(const char *name)
{
    for (int i = 0; rows[i]; i++)
        if (strcmp(rows[i]->name, name) == 0) return rows[i];
    return NULL;
}

void oct_loss_defaults(const oct_loss_row *row, oct_loss_job *job)
{
    for (int i = 0; row->settings && row->settings[i].name; i++) {
        job->number[i] = row->settings[i].number;
        job->word[i] = row->settings[i].word;
    }
}

oct_status oct_loss_grad(const oct_grad_args *a)
{
    for (int32_t i = 0; a->dy[0] && i + 2 < a->node->n_out; i++)
        if (a->wanted[i])
            a->dx[i] = oct_emit(a->b, &oct_op_mul, a->node->out[i + 2], a->dy[0], NULL);
    return OCT_OK;
}
