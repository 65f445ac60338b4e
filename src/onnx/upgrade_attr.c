/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades of attributes that went away, changed their default or their words. */
#include <string.h>

#include "onnx/upgrade.h"

/* Opset 6: a hint about memory of an earlier runtime is gone. */
oct_status oct_up_drop_consumed(oct_draft *d)
{
    oct_draft_drop(d, "consumed_inputs");
    return OCT_OK;
}

/* Opset 6: the type is a number; it was the name of one. */
oct_status oct_up_cast_6(oct_draft *d)
{
    static const struct {
        const char *name;
        oct_dtype dtype;
    } types[] = {
        {"FLOAT", OCT_DTYPE_F32},   {"UINT8", OCT_DTYPE_U8},      {"INT8", OCT_DTYPE_I8},
        {"UINT16", OCT_DTYPE_U16},  {"INT16", OCT_DTYPE_I16},     {"INT32", OCT_DTYPE_I32},
        {"INT64", OCT_DTYPE_I64},   {"STRING", OCT_DTYPE_STRING}, {"BOOL", OCT_DTYPE_BOOL},
        {"FLOAT16", OCT_DTYPE_F16}, {"DOUBLE", OCT_DTYPE_F64},    {"UINT32", OCT_DTYPE_U32},
        {"UINT64", OCT_DTYPE_U64},  {"COMPLEX64", OCT_DTYPE_C64}, {"COMPLEX128", OCT_DTYPE_C128},
    };

    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (oct_draft_str_is(d, "to", types[i].name))
            return oct_draft_set_int(d, "to", types[i].dtype);
    return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute 'to' is not the name of a type");
}

/* Opset 4: the axis must be given; it was 1. */
oct_status oct_up_concat_4(oct_draft *d)
{
    return oct_draft_attr_find(d, "axis") ? OCT_OK : oct_draft_set_int(d, "axis", 1);
}

/* Opset 7: networks are for inference; training mode comes back as an input in opset 12. */
oct_status oct_up_dropout_7(oct_draft *d)
{
    oct_draft_drop(d, "is_test");
    return OCT_OK;
}

/* Opset 7: C is always broadcast. */
oct_status oct_up_gemm_7(oct_draft *d)
{
    oct_draft_drop(d, "broadcast");
    return OCT_OK;
}

/* Opset 20: interpolations got the names Resize uses. */
oct_status oct_up_grid_sample_20(oct_draft *d)
{
    if (oct_draft_str_is(d, "mode", "bilinear")) return oct_draft_set_str(d, "mode", "linear");
    if (oct_draft_str_is(d, "mode", "bicubic")) return oct_draft_set_str(d, "mode", "cubic");
    return OCT_OK;
}

/* Opset 2: the norm's power is an integer. */
oct_status oct_up_lp_pool_2(oct_draft *d)
{
    const float p = oct_draft_f32(d, "p", 2.0f);

    if (!oct_draft_attr_find(d, "p")) return OCT_OK;
    if (!(p >= 1 && p <= 1024) || p != (float)(int64_t)p)
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED, "the norm's power %g is not an integer",
                              (double)p);
    return oct_draft_set_int(d, "p", (int64_t)p);
}

/* Opset 7: what is wanted shows in the outputs that are named. */
oct_status oct_up_recurrent_7(oct_draft *d)
{
    oct_draft_drop(d, "output_sequence");
    return OCT_OK;
}

/* Opset 16: half a pixel is taken off by default; before, it never was. */
oct_status oct_up_roi_align_16(oct_draft *d)
{
    return oct_draft_set_str(d, "coordinate_transformation_mode", "output_half_pixel");
}

/* Opset 9: no batch dimension, no lengths. The old form has no equal. */
oct_status oct_up_scan_9(oct_draft *d)
{
    return oct_draft_fail(d, OCT_ERR_UNSUPPORTED, "the form it had in opset 8 is not supported");
}

/* Opset 11: a new name. */
oct_status oct_up_scatter_11(oct_draft *d)
{
    d->op = "ScatterElements";
    return OCT_OK;
}

/* Opset 6: the defaults got more digits. */
oct_status oct_up_selu_6(oct_draft *d)
{
    oct_draft_drop(d, "consumed_inputs");
    if (!oct_draft_attr_find(d, "alpha"))
        OCT_TRY(oct_draft_set(d, "alpha", &(oct_attr){.kind = OCT_ATTR_F32, .f = 1.6732f}));
    if (!oct_draft_attr_find(d, "gamma"))
        OCT_TRY(oct_draft_set(d, "gamma", &(oct_attr){.kind = OCT_ATTR_F32, .f = 1.0507f}));
    return OCT_OK;
}
