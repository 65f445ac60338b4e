/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that count and index. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

#define IN(i) oct_from_ir_in(r, l, i)

/* Indices are int64 in octet. */
static oct_value *indices(oct_from_ir *r, const oct_ir_layer *l, int32_t i)
{
    return oct_from_ir_cast(r, IN(i), OCT_DTYPE_I64);
}

oct_status oct_from_ir_gather_nd(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = indices(r, l, 1);
    n = oct_emit_node(&r->b, &oct_op_gather_nd, in, 2, 1);
    oct_emit_int(&r->b, n, "batch_dims", oct_from_ir_int(l, "batch_dims", 0));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_gather_elements(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = indices(r, l, 1);
    n = oct_emit_node(&r->b, &oct_op_gather_elements, in, 2, 1);
    oct_emit_int(&r->b, n, "axis", oct_from_ir_int(l, "axis", 0));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_scatter_nd(oct_from_ir *r, const oct_ir_layer *l)
{
    OCT_TRY(oct_from_ir_need(r, l, 3));
    if (strcmp(oct_from_ir_str(l, "reduction", "none"), "none") != 0)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read its reduction '%s'",
                                oct_from_ir_str(l, "reduction", ""));
    return oct_from_ir_done(r, l, 0,
                            oct_emit(&r->b, &oct_op_scatter_nd, IN(0), indices(r, l, 1), IN(2)));
}

oct_status oct_from_ir_non_zero(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_dtype to = oct_ir_dtype(oct_from_ir_str(l, "output_type", "i64"));

    OCT_TRY(oct_from_ir_need(r, l, 1));
    return oct_from_ir_done(r, l, 0,
                            oct_from_ir_cast(r,
                                             oct_emit(&r->b, &oct_op_non_zero, IN(0), NULL, NULL),
                                             to == OCT_DTYPE_NONE ? OCT_DTYPE_I64 : to));
}

oct_status oct_from_ir_cum_sum(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *in[2];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = indices(r, l, 1);
    n = oct_emit_node(&r->b, &oct_op_cum_sum, in, 2, 1);
    oct_emit_int(&r->b, n, "exclusive", oct_from_ir_bool(l, "exclusive", false));
    oct_emit_int(&r->b, n, "reverse", oct_from_ir_bool(l, "reverse", false));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}
