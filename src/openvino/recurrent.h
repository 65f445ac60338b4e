/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells: where the gates of ONNX are in IR. Both keep them in axis 1 of the weights. */
#ifndef OCT_OPENVINO_RECURRENT_H
#define OCT_OPENVINO_RECURRENT_H

#include "graph/graph.h"

#define OCT_IR_MAX_GATES 4
#define OCT_IR_MAX_ACTS  3

typedef struct oct_ir_cell {
    const oct_op *op;
    const char *name;                  /* of layers, before "Sequence" and "Cell" */
    const char *version;               /* of the sequence */
    int n_gates, n_states, n_acts;     /* activations are those of one direction */
    int gate_of_ir[OCT_IR_MAX_GATES];  /* by gate of ONNX */
    const char *acts[OCT_IR_MAX_ACTS]; /* the defaults of ONNX */
} oct_ir_cell;

extern const oct_ir_cell oct_ir_lstm, oct_ir_gru, oct_ir_rnn;

/*
 * Axis 1 of t, float32, in blocks: block k of the result is block a[k] of t and, if b is not NULL,
 * block b[k] added to it. -1: zeros. t has n_blocks of them.
 */
oct_status oct_ir_pick_blocks(oct_ctx *ctx, const oct_tensor *t, int n_blocks, const int *a,
                              const int *b, int n_picked, oct_tensor **out);

#endif
