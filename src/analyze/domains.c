/* SPDX-License-Identifier: Apache-2.0 */
/* Domains of a quantized graph: integer, float, conversions between them. */
#include "analyze/domains.h"

#include <string.h>

#include "graph/op.h"

enum {
    FROM_CODES = 1,
    TO_CODES = 2
}; /* all operands of a node come from codes; all its results
    * become codes */

static bool is_conversion(const oct_node *n)
{
    return strcmp(n->op->name, "QuantizeLinear") == 0 ||
           strcmp(n->op->name, "DequantizeLinear") == 0;
}

/* Operators that take codes as operands directly. */
static bool is_integer_op(const oct_node *n)
{
    const char *name = n->op->name;
    const size_t len = strlen(name);

    return strncmp(name, "QLinear", 7) == 0 || strcmp(name, "QGemm") == 0 ||
           (len > 7 && strcmp(name + len - 7, "Integer") == 0);
}

static bool is_constant(const oct_value *v, const oct_domain *parts)
{
    return !v || v->data || (v->producer && parts[v->producer->id] == OCT_DOMAIN_CONSTANT);
}

static void find_constants(const oct_graph *g, oct_domain *parts)
{
    for (const oct_node *n = g->first; n; n = n->next) {
        bool constant = n->n_in > 0;

        for (int32_t i = 0; i < n->n_in && constant; i++)
            constant = is_constant(n->in[i], parts);
        for (int32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && n->out[i]->is_output) constant = false;
        parts[n->id] = constant           ? OCT_DOMAIN_CONSTANT
                       : is_conversion(n) ? OCT_DOMAIN_CONVERSION
                                          : OCT_DOMAIN_FLOAT;
    }
}

static bool reads_codes_only(const oct_node *n, const oct_domain *parts, const uint8_t *ends)
{
    bool any = false;

    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i];

        if (is_constant(v, parts)) continue;
        if (!v->producer) return false;
        if (parts[v->producer->id] != OCT_DOMAIN_CONVERSION &&
            !(ends[v->producer->id] & FROM_CODES))
            return false;
        any = true;
    }
    return any;
}

static bool makes_codes_only(const oct_node *n, const oct_domain *parts, const uint8_t *ends)
{
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_value *v = n->out[i];

        if (!v) continue;
        if (v->is_output || !v->n_users) return false;
        for (int32_t k = 0; k < v->n_users; k++)
            if (parts[v->users[k]->id] != OCT_DOMAIN_CONVERSION &&
                !(ends[v->users[k]->id] & TO_CODES))
                return false;
    }
    return true;
}

/* The last convolution before a float tail: codes and integer weights in, floats out. */
static bool has_integer_weights(const oct_node *n, const oct_domain *parts)
{
    bool activation = false, weight = false;

    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_node *from = n->in[i] ? n->in[i]->producer : NULL;

        if (!from) continue;
        activation |= parts[from->id] == OCT_DOMAIN_CONVERSION;
        weight |= parts[from->id] == OCT_DOMAIN_CONSTANT && is_conversion(from);
    }
    return activation && weight;
}

oct_domain *oct_graph_domains(const oct_graph *g)
{
    const size_t n_ids = (size_t)g->root->n_node_ids + 1;
    oct_domain *parts = oct_calloc(g->ctx, n_ids, sizeof(*parts));
    uint8_t *ends = parts ? oct_calloc(g->ctx, n_ids, sizeof(*ends)) : NULL;

    if (!ends) {
        oct_free(g->ctx, parts);
        return NULL;
    }
    find_constants(g, parts);
    for (const oct_node *n = g->first; n; n = n->next)
        if (parts[n->id] == OCT_DOMAIN_FLOAT && reads_codes_only(n, parts, ends))
            ends[n->id] |= FROM_CODES;
    for (const oct_node *n = g->last; n; n = n->prev)
        if (parts[n->id] == OCT_DOMAIN_FLOAT && makes_codes_only(n, parts, ends))
            ends[n->id] |= TO_CODES;
    for (const oct_node *n = g->first; n; n = n->next)
        if (parts[n->id] == OCT_DOMAIN_FLOAT &&
            (is_integer_op(n) || ends[n->id] == (FROM_CODES | TO_CODES) ||
             has_integer_weights(n, parts)))
            parts[n->id] = OCT_DOMAIN_INTEGER;
    oct_free(g->ctx, ends);
    return parts;
}

const oct_value *oct_value_before_conversions(const oct_value *v, const oct_domain *parts,
                                              bool *through)
{
    *through = false;
    while (v->producer && parts[v->producer->id] == OCT_DOMAIN_CONVERSION && v->producer->n_in &&
           v->producer->in[0]) {
        v = v->producer->in[0];
        *through = true;
    }
    return v;
}
