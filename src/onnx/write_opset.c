/* SPDX-License-Identifier: Apache-2.0 */
/* Which opsets a written file needs: by its operators, by its element types, by where it came from.
 */
#include <string.h>

#include "onnx/write.h"
#include "op/grad/rules.h"

#define OPSET_LEAST 13 /* older ones lack many types, and inputs that may be left out */

/* Attributes that came to an operator later than the form its row has. */
static const struct {
    const char *op, *attr;
    int version;
} later[] = {
    {"Attention", "left_window_size", 25},
    {"Attention", "right_window_size", 25},
    {"AveragePool", "dilations", 19},
    {"Cast", "round_mode", 24},
    {"Cast", "saturate", 19},
    {"CastLike", "round_mode", 24},
    {"CastLike", "saturate", 19},
    {"DequantizeLinear", "block_size", 21},
    {"DequantizeLinear", "output_dtype", 23},
    {"QuantizeLinear", "block_size", 21},
    {"QuantizeLinear", "output_dtype", 21},
    {"QuantizeLinear", "precision", 23},
    {"QuantizeLinear", "saturate", 19},
    {"Reshape", "allowzero", 14},
    {"Resize", "antialias", 18},
    {"Resize", "axes", 18},
    {"Resize", "keep_aspect_ratio_policy", 18},
    {"ScatterElements", "reduction", 16},
    {"ScatterND", "reduction", 16},
    {"Shape", "end", 15},
    {"Shape", "start", 15},
    {"Split", "num_outputs", 18},
};

/* What must be in the file, and who asks for it. */
typedef struct demand {
    int version;
    const char *who;
} demand;

static void ask(demand *d, int version, const char *who)
{
    if (version > d->version) *d = (demand){version, who};
}

static int type_since(oct_dtype t)
{
    switch (t) {
    case OCT_DTYPE_F8E4M3FN:
    case OCT_DTYPE_F8E4M3FNUZ:
    case OCT_DTYPE_F8E5M2:
    case OCT_DTYPE_F8E5M2FNUZ:
        return 19;
    case OCT_DTYPE_U4:
    case OCT_DTYPE_I4:
        return 21;
    case OCT_DTYPE_F4E2M1:
        return 23;
    case OCT_DTYPE_F8E8M0:
        return 24;
    case OCT_DTYPE_U2:
    case OCT_DTYPE_I2:
        return 25;
    default:
        return 1;
    }
}

/* IR versions came with releases, and releases with opsets. */
static int64_t ir_of_opset(int64_t opset)
{
    return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : opset - 12;
}

static oct_status add_domain(oct_encoder *e, const char *domain, int64_t version, size_t *cap)
{
    for (int32_t i = 0; i < e->opsets.n; i++) {
        if (strcmp(e->opsets.v[i].domain, domain) != 0) continue;
        e->opsets.v[i].version = OCT_MAX(e->opsets.v[i].version, version);
        return OCT_OK;
    }
    OCT_TRY(oct_grow(e->ctx, &e->opsets.v, cap, (size_t)e->opsets.n + 1, sizeof(oct_opset)));
    e->opsets.v[e->opsets.n++] = (oct_opset){domain, version};
    return OCT_OK;
}

/* Codes of 16 bits came to QuantizeLinear and DequantizeLinear later than those of 8. */
static bool has_wide_codes(const oct_node *n)
{
    const bool to_codes = strcmp(n->op->name, "QuantizeLinear") == 0;
    const oct_value *codes = to_codes                                       ? oct_node_out(n, 0)
                             : strcmp(n->op->name, "DequantizeLinear") == 0 ? oct_node_in(n, 0)
                                                                            : NULL;

    return codes && (codes->type.dtype == OCT_DTYPE_U16 || codes->type.dtype == OCT_DTYPE_I16);
}

/* What a node of the standard domain needs. */
static void ask_node(demand *d, const oct_node *n)
{
    const oct_op *op = n->op;

    ask(d, oct_op_is_opaque(op) ? oct_upgrade_since(op->name) : op->since, op->name);
    if (strcmp(op->name, "Pad") == 0 && n->n_in > 3) ask(d, 18, "Pad with axes");
    if (strcmp(op->name, "Attention") == 0 && n->n_in > 6) ask(d, 24, "Attention with lengths");
    if (has_wide_codes(n)) ask(d, 21, "codes of 16 bits");
    for (size_t i = 0; i < OCT_COUNT(later); i++) {
        const oct_attr *a;

        if (strcmp(later[i].op, op->name) != 0) continue;
        a = oct_node_attr(n, later[i].attr);
        if (a && a->given) ask(d, later[i].version, op->name);
    }
}

static oct_status visit_graph(oct_encoder *e, const oct_graph *g, demand *d, size_t *cap);

static oct_status visit_node(oct_encoder *e, const oct_node *n, demand *d, size_t *cap)
{
    const char *domain = oct_op_domain(n->op);

    /* A name of that domain that octet does not know is somebody else's, and kept. */
    if (strcmp(domain, OCT_TRAIN_DOMAIN) == 0 && !oct_op_is_opaque(n->op))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "an operator of training graphs, which ONNX does not have: write the "
                             "network, not the graph that trains it");
    if (domain[0])
        OCT_TRY(add_domain(e, domain, 1, cap));
    else
        ask_node(d, n);
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (n->attr[i].kind == OCT_ATTR_GRAPH) OCT_TRY(visit_graph(e, n->attr[i].g, d, cap));
    for (int i = 0; i < n->n_extra; i++)
        if (n->extra[i].value.kind == OCT_ATTR_GRAPH)
            OCT_TRY(visit_graph(e, n->extra[i].value.g, d, cap));
    return OCT_OK;
}

static oct_status visit_graph(oct_encoder *e, const oct_graph *g, demand *d, size_t *cap)
{
    for (const oct_node *n = g->first; n; n = n->next)
        OCT_TRY(visit_node(e, n, d, cap));
    return OCT_OK;
}

oct_status oct_encoder_choose_opsets(oct_encoder *e, int32_t wanted)
{
    const oct_model_info *info = &e->root->info;
    demand d = {.version = 1, .who = ""};
    int64_t own = OPSET_LEAST;
    size_t cap = 0;

    OCT_TRY(add_domain(e, "", 1, &cap));
    for (int32_t i = 0; i < info->n_opsets; i++) {
        if (info->opsets[i].domain[0])
            OCT_TRY(add_domain(e, info->opsets[i].domain, info->opsets[i].version, &cap));
        else
            own = OCT_MAX(own, info->opsets[i].version);
    }
    OCT_TRY(visit_graph(e, e->root, &d, &cap));
    for (size_t i = 0; i < e->n_values; i++)
        ask(&d, type_since(e->values[i]->type.dtype), oct_dtype_name(e->values[i]->type.dtype));

    if (wanted && (wanted > OCT_OPSET_INTERNAL || wanted < OPSET_LEAST))
        return oct_fail(e->ctx, OCT_ERR_ARG, "opset %d: octet writes %d to %d", (int)wanted,
                        OPSET_LEAST, OCT_OPSET_INTERNAL);
    if (wanted && wanted < d.version)
        return oct_fail(e->ctx, OCT_ERR_ARG, "opset %d is too old for %s, which needs %d or newer",
                        (int)wanted, d.who, d.version);
    e->opsets.v[0].version = wanted ? wanted : OCT_MAX(own, d.version);
    e->ir_version = OCT_MIN(OCT_MAX(info->ir_version, ir_of_opset(e->opsets.v[0].version)),
                            ir_of_opset(OCT_OPSET_INTERNAL));
    return OCT_OK;
}
