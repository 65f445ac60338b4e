/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent cells of IR, and their gates in another order. */
#include "openvino/recurrent.h"

#include "op/op.h"

/* f, i, c, o are i, o, f, c in ONNX. */
const oct_ir_cell oct_ir_lstm = {
    &oct_op_lstm, "LSTM", "opset5", 4, 2, 3, {1, 3, 0, 2}, {"sigmoid", "tanh", "tanh"}};
const oct_ir_cell oct_ir_gru = {&oct_op_gru, "GRU", "opset5",  3,
                                1,           2,     {0, 1, 2}, {"sigmoid", "tanh"}};
const oct_ir_cell oct_ir_rnn = {&oct_op_rnn, "RNN", "opset5", 1, 1, 1, {0}, {"tanh"}};

static void add_block(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

oct_status oct_ir_pick_blocks(oct_ctx *ctx, const oct_tensor *t, int n_blocks, const int *a,
                              const int *b, int n_picked, oct_tensor **out)
{
    const int64_t rows = t->type.dim[1] / n_blocks;
    const int64_t wide = t->type.rank == 3 ? t->type.dim[2] : 1, block = rows * wide;
    oct_type type = t->type;

    type.dim[1] = rows * n_picked;
    OCT_TRY(oct_tensor_make(ctx, &type, out));
    for (int64_t d = 0; d < type.dim[0]; d++)
        for (int k = 0; k < n_picked; k++) {
            const float *from = (const float *)t->data + d * n_blocks * block;
            float *to = (float *)(*out)->data + (d * n_picked + k) * block;

            if (a[k] >= 0) add_block(to, from + a[k] * block, block);
            if (b && b[k] >= 0) add_block(to, from + b[k] * block, block);
        }
    return OCT_OK;
}
