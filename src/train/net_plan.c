/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a network in training, in as much memory as there may be. */
#include "base/ctx.h"
#include "exec/kernel.h"
#include "train/net_parts.h"

#define MEGABYTE 1e6

/* All that a step needs, as oct_train_describe() says it. */
static size_t total(const oct_train_net *t, const oct_train_net_options *o)
{
    return oct_train_net_bytes(t) + o->memory.others +
           (size_t)o->memory.copies * (size_t)t->params.len * sizeof(float);
}

static oct_status refuse(const oct_train_net *t, const oct_train_net_options *o)
{
    return oct_fail(t->ctx, OCT_ERR_MEMORY,
                    "training needs %.1f MB of memory even if all is computed again that can be, "
                    "and %.1f MB are allowed (--memory): allow more, or use smaller batches",
                    (double)total(t, o) / MEGABYTE + 0.05, (double)o->memory.max / MEGABYTE);
}

oct_status oct_train_net_plan_within(oct_train_net *t, const oct_plan_options *plan,
                                     const oct_train_net_options *o)
{
    oct_plan_training training = {.is_bf16 = o->is_bf16};
    size_t fixed;

    OCT_TRY(oct_plan_new_training(t->g, plan, &training, &t->plan));
    if (!o->memory.max || total(t, o) <= o->memory.max) return OCT_OK;
    fixed = total(t, o) - t->plan->block_size;
    oct_plan_free(t->plan);
    t->plan = NULL;
    /* A block of 1 byte cannot be reached, but tells how small it becomes. */
    training.max_block = o->memory.max > fixed ? o->memory.max - fixed : 1;
    OCT_TRY(oct_plan_new_training(t->g, plan, &training, &t->plan));
    return total(t, o) <= o->memory.max ? OCT_OK : refuse(t, o);
}

const char *oct_train_net_precision(const oct_train_net *t)
{
    int32_t n_narrow = 0, n_wide = 0;

    if (!t->plan->is_bf16) return "float32";
    for (int32_t i = 0; i < t->plan->n_steps; i++) {
        n_narrow += t->plan->steps[i].kernel == &oct_kernel_onednn_conv_bf16;
        n_wide += t->plan->steps[i].kernel == &oct_kernel_widen;
    }
    if (!n_narrow)
        return "bfloat16 (operands rounded, computed in float32: this CPU has no products)";
    return n_wide ? "bfloat16 (this CPU's products; some convolutions in float32, operands rounded)"
                  : "bfloat16 (this CPU's products)";
}
