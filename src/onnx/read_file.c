/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor in a file of its own, as ONNX's tests store inputs and outputs. */
#include "onnx/onnx.h"
#include "onnx/read.h"

oct_status oct_onnx_read_tensor(oct_ctx *ctx, const char *path, oct_tensor **out)
{
    oct_reader r = {.ctx = ctx};
    oct_pb_tensor pb;
    oct_status st;

    if ((st = oct_file_map(ctx, path, &r.file))) return st;
    r.wire = (oct_wire){.ctx = ctx,
                        .arena = oct_arena_new(ctx),
                        .all = {oct_file_data(r.file), oct_file_size(r.file)}};
    st = r.wire.arena ? oct_wire_tensor(&r.wire, r.wire.all, &pb) : OCT_ERR_MEMORY;
    if (!st) st = oct_read_tensor(&r, &pb, "tensor", out);
    if (st) oct_fail_at(ctx, st, path);
    oct_arena_free(r.wire.arena);
    oct_file_unref(r.file);
    return st;
}
