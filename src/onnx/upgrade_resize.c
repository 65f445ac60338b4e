/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades of Upsample, and what it became: Resize. */
#include <string.h>

#include "onnx/upgrade.h"

/* Opset 7: a scale for each axis, not only for height and width. */
oct_status oct_up_upsample_7(oct_draft *d)
{
    float *scales = oct_arena_array(d->s->r->wire.arena, 4, sizeof(*scales));

    if (!scales) return OCT_ERR_MEMORY;
    scales[0] = scales[1] = 1;
    scales[2] = oct_draft_f32(d, "height_scale", 1);
    scales[3] = oct_draft_f32(d, "width_scale", 1);
    oct_draft_drop(d, "height_scale");
    oct_draft_drop(d, "width_scale");
    if (oct_draft_str_is(d, "mode", "bilinear")) OCT_TRY(oct_draft_set_str(d, "mode", "linear"));
    return oct_draft_set(d, "scales", &(oct_attr){.kind = OCT_ATTR_F32S, .n = 4, .fs = scales});
}

/* Opset 9: the scales are an input. */
oct_status oct_up_upsample_9(oct_draft *d)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, "scales");
    oct_tensor *t = NULL;
    oct_value *v = NULL;

    if (!a || a->value.kind != OCT_ATTR_F32S)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute 'scales' must be given");
    OCT_TRY(oct_tensor_new(d->s->r->ctx, OCT_DTYPE_F32, 1, &a->value.n, &t));
    if (t->size) memcpy(t->data, a->value.fs, t->size);
    OCT_TRY(oct_draft_const(d, "scales", t, &v));
    oct_draft_drop(d, "scales");
    return oct_draft_set_in(d, 1, v);
}

/* Opset 10: a new name. */
oct_status oct_up_upsample_10(oct_draft *d)
{
    d->op = "Resize";
    return OCT_OK;
}

static bool shrinks(const oct_value *scales)
{
    const int64_t n = scales && scales->data ? oct_tensor_len(scales->data) : 0;

    for (int64_t i = 0; i < n; i++)
        if (oct_tensor_get_f64(scales->data, i) < 1) return true;
    return false;
}

/* Opset 11: a region and sizes as inputs, and rules for coordinates. The one rule before: divide
 * by the scale; the pixel at or before that place when enlarging, at or after it when shrinking. */
oct_status oct_up_resize_11(oct_draft *d)
{
    oct_value *scales = oct_draft_in(d, 1);

    OCT_TRY(oct_draft_set_in(d, 1, NULL));
    OCT_TRY(oct_draft_set_in(d, 2, scales));
    OCT_TRY(oct_draft_set_str(d, "coordinate_transformation_mode", "asymmetric"));
    return oct_draft_set_str(d, "nearest_mode", shrinks(scales) ? "ceil" : "floor");
}

static bool is_empty(const oct_value *v)
{
    return v && v->type.rank == 1 && v->type.dim[0] == 0;
}

/* Opset 13: inputs that are not used need not be given, where empty tensors stood for them; and
 * one of the coordinate rules is gone, which the others can express: its place is half a pixel
 * further than half_pixel's. */
oct_status oct_up_resize_13(oct_draft *d)
{
    for (int i = 1; i < d->n_in; i++)
        if (is_empty(d->in[i])) d->in[i] = NULL;
    if (!oct_draft_str_is(d, "coordinate_transformation_mode", "tf_half_pixel_for_nn"))
        return OCT_OK;
    if (oct_draft_str_is(d, "nearest_mode", "floor"))
        OCT_TRY(oct_draft_set_str(d, "nearest_mode", "round_prefer_ceil"));
    else if (oct_draft_str_is(d, "nearest_mode", "round_prefer_floor") ||
             !oct_draft_attr_find(d, "nearest_mode"))
        OCT_TRY(oct_draft_set_str(d, "nearest_mode", "ceil"));
    else
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED,
                              "coordinate rule tf_half_pixel_for_nn with this rounding");
    return oct_draft_set_str(d, "coordinate_transformation_mode", "half_pixel");
}
