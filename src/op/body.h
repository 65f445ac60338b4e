/* SPDX-License-Identifier: Apache-2.0 */
/* What operators with bodies share: merging types, and stacking one result of each iteration. */
#ifndef OCT_OP_BODY_H
#define OCT_OP_BODY_H

#include "op/op.h"

/* What two types have in common; what differs is unknown. */
oct_type oct_type_join(const oct_type *a, const oct_type *b);

/* Fails unless the body has this many inputs and outputs. */
oct_status oct_body_check(const oct_node *n, const oct_graph *body, int64_t n_in, int64_t n_out);

/* Evaluates the body; on failure all outs are NULL. */
oct_status oct_body_run(const oct_args *a, const oct_graph *body, oct_tensor *const *ins,
                        oct_tensor **outs);

/* Tensors of one type, one after the other. Starts as {0}. */
typedef struct oct_stack {
    oct_type item;
    uint8_t *data;
    size_t size, cap;
    int64_t n;
} oct_stack;

oct_status oct_stack_push(const oct_args *a, oct_stack *s, const oct_tensor *t);

/*
 * Makes output i of the node from what was pushed, along a new axis (of the result, may be
 * negative), the last first if `reverse`. Without items the body's own type is taken.
 */
oct_status oct_stack_finish(const oct_args *a, const oct_stack *s, int i, const oct_value *like,
                            int64_t axis, bool reverse);
void oct_stack_fini(oct_stack *s, oct_ctx *ctx);

/* The type a stack of `n` (-1: unknown) such values has; unknown if the rank is. */
oct_status oct_stack_type(const oct_node *n, const oct_type *item, int64_t len, int64_t axis,
                          oct_type *out);

#endif
