/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades of attributes that became inputs. */
#include <string.h>

#include "onnx/upgrade.h"

/* Attribute `name`, a list of integers, becomes input i; nothing happens if it is not given. */
static oct_status ints_to_input(oct_draft *d, const char *name, int i)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, name);
    oct_value *v = NULL;

    if (!a) return OCT_OK;
    if (a->value.kind != OCT_ATTR_INTS)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' is of the wrong kind", name);
    OCT_TRY(oct_draft_ints(d, name, a->value.is, a->value.n, &v));
    oct_draft_drop(d, name);
    return oct_draft_set_in(d, i, v);
}

static oct_status need_attr(const oct_draft *d, const char *name)
{
    if (oct_draft_attr_find(d, name)) return OCT_OK;
    return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' must be given", name);
}

/* Squeeze, Unsqueeze and ReduceSum in opset 13, the other reductions in 18. An empty list of
 * axes means all, before and after. */
oct_status oct_up_axes_to_input(oct_draft *d)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, "axes");

    if (a && a->value.kind == OCT_ATTR_INTS && !a->value.n) {
        oct_draft_drop(d, "axes");
        return OCT_OK;
    }
    return ints_to_input(d, "axes", 1);
}

static oct_status f32_to_input(oct_draft *d, const char *name, int i)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, name);
    oct_value *v = NULL;

    if (!a) return OCT_OK;
    if (a->value.kind != OCT_ATTR_F32)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' is of the wrong kind", name);
    OCT_TRY(oct_draft_scalar(d, name, a->value.f, oct_draft_dtype(d, 0), &v));
    oct_draft_drop(d, name);
    return oct_draft_set_in(d, i, v);
}

oct_status oct_up_clip_11(oct_draft *d)
{
    OCT_TRY(f32_to_input(d, "min", 1));
    return f32_to_input(d, "max", 2);
}

/* Opset 20: the axis is an input, and its default is another one. */
oct_status oct_up_dft_20(oct_draft *d)
{
    const int64_t axis = oct_draft_int(d, "axis", 1);
    oct_tensor *t = NULL;
    oct_value *v = NULL;

    oct_draft_drop(d, "axis");
    OCT_TRY(oct_tensor_new(d->s->r->ctx, OCT_DTYPE_I64, 0, NULL, &t));
    *(int64_t *)t->data = axis;
    OCT_TRY(oct_draft_const(d, "axis", t, &v));
    return oct_draft_set_in(d, 2, v);
}

/* Opset 12: the ratio is an input (always float32 here). Its mask was a number before opset 10;
 * in inference nobody reads it. */
oct_status oct_up_dropout_12(oct_draft *d)
{
    const oct_draft_attr *a = oct_draft_attr_find(d, "ratio");
    oct_value *v = NULL;

    if (!a) return OCT_OK;
    OCT_TRY(oct_draft_scalar(d, "ratio", oct_draft_f32(d, "ratio", 0.5f), OCT_DTYPE_F32, &v));
    oct_draft_drop(d, "ratio");
    return oct_draft_set_in(d, 1, v);
}

/* Opset 2: another name. */
oct_status oct_up_pad_2(oct_draft *d)
{
    oct_draft_attr *a = oct_draft_attr_find(d, "paddings");

    if (a) a->name = "pads";
    return OCT_OK;
}

oct_status oct_up_pad_11(oct_draft *d)
{
    const float value = oct_draft_f32(d, "value", 0);

    OCT_TRY(need_attr(d, "pads"));
    OCT_TRY(ints_to_input(d, "pads", 1));
    if (value == 0) {
        oct_draft_drop(d, "value");
        return OCT_OK;
    }
    return f32_to_input(d, "value", 2);
}

oct_status oct_up_reshape_5(oct_draft *d)
{
    oct_draft_drop(d, "consumed_inputs");
    OCT_TRY(need_attr(d, "shape"));
    return ints_to_input(d, "shape", 1);
}

oct_status oct_up_slice_10(oct_draft *d)
{
    OCT_TRY(need_attr(d, "starts"));
    OCT_TRY(need_attr(d, "ends"));
    OCT_TRY(ints_to_input(d, "starts", 1));
    OCT_TRY(ints_to_input(d, "ends", 2));
    return ints_to_input(d, "axes", 3);
}

oct_status oct_up_split_13(oct_draft *d)
{
    return ints_to_input(d, "split", 1);
}

/* Opset 18: equal parts must be asked for by their number. */
oct_status oct_up_split_18(oct_draft *d)
{
    if (oct_draft_in(d, 1)) return OCT_OK;
    return oct_draft_set_int(d, "num_outputs", d->n_out);
}

/* Opset 6: the number of repeats for each axis; it was a number and an axis. */
oct_status oct_up_tile_6(oct_draft *d)
{
    const oct_value *tiles = oct_draft_in(d, 1), *axis = oct_draft_in(d, 2);
    const int rank = oct_draft_rank(d, 0);
    int64_t repeats[OCT_MAX_RANK], a;
    oct_value *v = NULL;

    if (!tiles || !axis || !tiles->data || !axis->data || rank < 0 ||
        oct_tensor_len(tiles->data) != 1 || oct_tensor_len(axis->data) != 1)
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED,
                              "the form it had before opset 6, with unknown tiles or shape");
    a = oct_tensor_get_i64(axis->data, 0);
    if (a < 0 || a >= rank) return oct_draft_fail(d, OCT_ERR_SHAPE, "axis is out of range");
    for (int i = 0; i < rank; i++)
        repeats[i] = i == a ? oct_tensor_get_i64(tiles->data, 0) : 1;
    OCT_TRY(oct_draft_ints(d, "repeats", repeats, rank, &v));
    d->n_in = 2;
    return oct_draft_set_in(d, 1, v);
}

oct_status oct_up_topk_10(oct_draft *d)
{
    const int64_t k = oct_draft_int(d, "k", -1);
    oct_value *v = NULL;

    OCT_TRY(need_attr(d, "k"));
    OCT_TRY(oct_draft_ints(d, "k", &k, 1, &v));
    oct_draft_drop(d, "k");
    return oct_draft_set_in(d, 1, v);
}
