/* SPDX-License-Identifier: Apache-2.0 */
/* Which reader a file is for: by what is in it. base/sniff.c tells; this is the table of readers.
 */
#include <octet/model.h>
#include <octet/onnx.h>
#include <octet/openvino.h>
#include <octet/train.h>
#include <stdio.h>

#include "base/file.h"
#include "base/sniff.h"
#include "torch/torch.h"

static oct_status load_torch(oct_ctx *ctx, const char *path, oct_graph **out)
{
    oct_file *f = NULL;
    oct_status st = oct_file_map(ctx, path, &f);

    if (st) return st;
    st = oct_torch_load(ctx, f, out);
    oct_file_unref(f);
    return st ? oct_fail_at(ctx, st, path) : OCT_OK;
}

/* Files of weights alone are of the same kind as checkpoints. */
static oct_status load_checkpoint(oct_ctx *ctx, const char *path, oct_graph **out)
{
    const oct_status st = oct_checkpoint_load(ctx, path, out);
    char why[512];

    if (st != OCT_ERR_FORMAT) return st;
    (void)snprintf(why, sizeof(why), "%s", oct_ctx_error(ctx));
    return oct_fail(ctx, st,
                    "%s; it is a file of weights (safetensors), and octet takes those that octet "
                    "train saved: others hold no network",
                    why);
}

static const struct {
    oct_kind_id kind;
    oct_status (*load)(oct_ctx *ctx, const char *path, oct_graph **out);
} readers[] = {
    {OCT_KIND_TORCH_EXPORT, load_torch},
    {OCT_KIND_SAFETENSORS, load_checkpoint},
    {OCT_KIND_OPENVINO, oct_openvino_load},
};

oct_status oct_model_load(oct_ctx *ctx, const char *path, oct_graph **out)
{
    OCT_ENTER(ctx);
    const oct_kind *kind;
    oct_file *f = NULL;

    OCT_TRY(oct_file_map(ctx, path, &f));
    kind = oct_sniff(oct_file_data(f), oct_file_size(f));
    oct_file_unref(f);
    for (size_t i = 0; kind && i < OCT_COUNT(readers); i++)
        if (readers[i].kind == kind->id) return readers[i].load(ctx, path, out);
    return oct_onnx_load(ctx, path,
                         out); /* says itself what the file is, if it is something else */
}
