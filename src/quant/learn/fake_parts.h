/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of fake quantization share. */
#ifndef OCT_QUANT_LEARN_FAKE_PARTS_H
#define OCT_QUANT_LEARN_FAKE_PARTS_H

#include "op/grad/fake_quant.h"
#include "quant/learn/fake.h"

/* Of a point that has parameters of its own. */
typedef struct oct_fake_point {
    oct_value *step, *zero; /* constants of g; step NULL: the point has none; zero NULL: 0 */
    oct_step_kind kind;
    unsigned learns;
} oct_fake_point;

struct oct_fake {
    oct_ctx *ctx;
    oct_graph *g;
    oct_qmap *m;
    oct_arena *arena;
    oct_fake_point *of_point; /* by index of the point */
    int32_t n_nodes;          /* ids of nodes of g */
};

#endif
