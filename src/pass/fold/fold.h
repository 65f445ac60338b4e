/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating nodes whose operands are all constant, within limits of size and work. */
#ifndef OCT_PASS_FOLD_FOLD_H
#define OCT_PASS_FOLD_FOLD_H

#include "graph/op.h"

/* Budget of one run of a folding pass: a file must not make octet hang or grow. */
typedef struct oct_fold_budget {
    int64_t growth; /* bytes by which constants may grow */
    int64_t work;   /* operations of reference kernels */
    int64_t ratio;  /* a result larger than 1 MiB: at most so many times its operands' bytes */
} oct_fold_budget;

oct_fold_budget oct_fold_budget_for(const oct_graph *g);

/* Are all operands constant, and is the node a plain function of them? */
bool oct_fold_possible(const oct_node *n);

/* Evaluates n, makes its outputs constants and removes n. A node that is too large, too much
 * work or cannot be evaluated stays: *done is false. */
oct_status oct_fold_node(oct_node *n, oct_fold_budget *budget, bool *done);

#endif
