/* SPDX-License-Identifier: Apache-2.0 */
/* What counts and indexes, as IR: the tails of detectors with suppression are made of it. */
#include <string.h>

#include "op/op.h"
#include "openvino/write.h"

oct_status oct_to_ir_gather_nd(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "GatherND", "opset8", 2));
    oct_ir_attr_int(&w->ir, "batch_dims", oct_to_ir_int(n, "batch_dims", 0));
    return w->ir.status;
}

oct_status oct_to_ir_gather_elements(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "GatherElements", "opset6", 2));
    oct_ir_attr_int(&w->ir, "axis", oct_to_ir_int(n, "axis", 0));
    return w->ir.status;
}

oct_status oct_to_ir_scatter_nd(oct_to_ir *w, const oct_node *n)
{
    const char *reduction = oct_to_ir_str(w, n, "reduction", "none");

    if (strcmp(reduction, "none") != 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet cannot write its reduction '%s' as OpenVINO IR", reduction);
    return oct_to_ir_same(w, n, "ScatterNDUpdate", "opset4", 3);
}

oct_status oct_to_ir_non_zero(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "NonZero", "opset3", 1));
    oct_ir_attr_str(&w->ir, "output_type", "i64");
    return w->ir.status;
}

oct_status oct_to_ir_cum_sum(oct_to_ir *w, const oct_node *n)
{
    const oct_type axis = {.dtype = n->in[1]->type.dtype};
    const oct_ir_at in[2] = {oct_to_ir_in(w, n, 0), oct_to_ir_reshaped(w, n, n->in[1], &axis)};
    const oct_ir_at y = oct_to_ir_emit(w, n, NULL, "CumSum", "opset3", in, 2, &n->out[0]->type);

    oct_ir_attr_bool(&w->ir, "exclusive", oct_to_ir_int(n, "exclusive", 0) != 0);
    oct_ir_attr_bool(&w->ir, "reverse", oct_to_ir_int(n, "reverse", 0) != 0);
    return oct_to_ir_done(w, n, 0, y);
}

/* Its operands are scalars in IR. */
oct_status oct_to_ir_range(oct_to_ir *w, const oct_node *n)
{
    const oct_type scalar = {.dtype = n->out[0]->type.dtype};
    oct_ir_at in[3], y;

    for (int32_t i = 0; i < 3; i++)
        in[i] = oct_to_ir_reshaped(w, n, n->in[i], &scalar);
    y = oct_to_ir_emit(w, n, NULL, "Range", "opset4", in, 3, &n->out[0]->type);
    oct_ir_attr_str(&w->ir, "output_type", oct_ir_element(scalar.dtype));
    return oct_to_ir_done(w, n, 0, y);
}
