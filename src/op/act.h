/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that other kernels can apply to their results. */
#ifndef OCT_OP_ACT_H
#define OCT_OP_ACT_H

#include "graph/op.h"

typedef enum oct_act_kind {
    OCT_ACT_NONE = 0,
#define OCT_ACT(kind, name, y, y64) OCT_ACT_##kind,
#include "op/acts.def"
#undef OCT_ACT
    OCT_ACT_COUNT
} oct_act_kind;

typedef struct oct_act {
    oct_act_kind kind;
    float a, b; /* parameters: see acts.def */
} oct_act;

/* What an operator's row says of its activation. */
typedef struct oct_act_row {
    oct_act_kind kind;
    /* Sets the parameters (and the kind, if attributes choose it); false: not with these. NULL:
     * there are none. */
    bool (*read)(const oct_node *n, oct_act *act);
} oct_act_row;

/* For rows: .act = OCT_ACT_ROW(RELU, NULL) */
#define OCT_ACT_ROW(kind_, read_) (&(const oct_act_row){.kind = OCT_ACT_##kind_, .read = (read_)})

/* Is this node an activation of one f32 operand with constant parameters? */
bool oct_act_of(const oct_node *n, oct_act *act);

/*
 * The logistic function as odd(x) / even(x) + 1/2 between two limits; the coefficients of the
 * polynomials go from the highest power down.
 */
#define OCT_ACT_LOGISTIC_LIMIT 18.0f
#define OCT_ACT_LOGISTIC_ODD                                                                       \
    {                                                                                              \
        4.37031012579801e-11f, 1.15627324459942e-07f, 6.08574864600143e-05f,                       \
            8.51377133304701e-03f, 2.48287947061529e-01f                                           \
    }
#define OCT_ACT_LOGISTIC_EVEN                                                                      \
    {                                                                                              \
        6.10247389755681e-13f, 5.76102136993427e-09f, 6.29106785017040e-06f,                       \
            1.70198817374094e-03f, 1.16817656904453e-01f, 9.93151921023180e-01f                    \
    }

/* One element; tests compare all vectorised forms with it. */
float oct_act_apply(const oct_act *act, float x);

double oct_act_value(const oct_act *act, double x); /* the same in f64 */

const char *oct_act_name(oct_act_kind kind);

#endif
