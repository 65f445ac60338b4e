/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft operators of one 8-bit tensor have their operands in the same places. */
#ifndef OCT_OP_Q_LINEAR_UNARY_H
#define OCT_OP_Q_LINEAR_UNARY_H

#include "op/quant.h"

enum { OCT_QX, OCT_QX_SCALE, OCT_QX_ZERO, OCT_QY_SCALE, OCT_QY_ZERO };

/* Types and shapes of these five. */
oct_status oct_q_linear_check(const oct_infer *q);

#endif
