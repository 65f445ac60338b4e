/* SPDX-License-Identifier: Apache-2.0 */
/* Where random operators take their numbers from. */
#ifndef OCT_OP_RANDOM_H
#define OCT_OP_RANDOM_H

#include "base/rng.h"
#include "op/op.h"

/* Starts from attribute `seed` (float or integer); without one, from the node's name. */
void oct_random_init(oct_rng *r, const oct_node *n, int seed);

#endif
