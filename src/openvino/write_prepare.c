/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of other forms before they are written: QOperator, constants downstream of other nodes.
 */
#include "op/op.h"
#include "openvino/write.h"
#include "pass/integer/qlinear.h"
#include "pass/pass.h"

/* Q or DQ whose scale or zero point is computed, by whatever. */
static bool has_computed_params(const oct_node *n)
{
    if (!oct_node_is(n, &oct_op_quantize_linear) && !oct_node_is(n, &oct_op_dequantize_linear))
        return false;
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data) return true;
    return false;
}

oct_status oct_to_ir_prepare(oct_graph *g)
{
    bool has_qlinear = false, is_computed = false;
    int n_changed = 0;

    OCT_TRY(oct_to_ir_spell_dynamic(g));
    for (const oct_node *n = g->first; n; n = n->next) {
        has_qlinear = has_qlinear || oct_node_is_qlinear(n);
        is_computed = is_computed || has_computed_params(n);
    }
    if (!has_qlinear && !is_computed) return OCT_OK;
    OCT_TRY(oct_pipeline_run(g, "simplify", "fold-constants,drop-copies,drop-dead", NULL));
    OCT_TRY(oct_graph_infer(g));
    return has_qlinear ? oct_qlinear_expand_all(g, &n_changed) : OCT_OK;
}
