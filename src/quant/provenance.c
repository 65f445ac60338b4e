/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a quantized file, and what can be derived from one without it. */
#include "quant/provenance.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "op/op.h"
#include "pass/integer/qlinear.h"
#include "quant/correct/channel_factors.h"
#include "quant/correct/smooth_quant.h"
#include "quant/heal/heal.h"

#define DEPTH 4 /* nodes between a layer and its weight that are looked through */

/* --- writing --- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The name of the file the network came from, and what sha256sum says of it. */
static oct_status write_source(oct_graph *g, const char *path)
{
    char digits[OCT_SHA256_TEXT];
    oct_file *f = NULL;

    OCT_TRY(oct_file_map(g->ctx, path, &f));
    (void)oct_sha256(oct_file_data(f), oct_file_size(f), digits);
    oct_file_unref(f);
    OCT_TRY(oct_graph_set_metadata(g, "octet.source", base_name(path)));
    return oct_graph_set_metadata(g, "octet.source_sha256", digits);
}

/* Who made the float network; a file that octet made before keeps what it says of that. */
static oct_status keep_producer(oct_graph *g)
{
    const char *name = g->info.producer_name, *version = g->info.producer_version;
    const char *both;

    if (!name || !*name || strcmp(name, "octet") == 0) return OCT_OK;
    both = oct_arena_printf(g->arena, "%s%s%s", name, version && *version ? " " : "",
                            version ? version : "");
    return both ? oct_graph_set_metadata(g, "octet.original_producer", both) : OCT_ERR_MEMORY;
}

static oct_status write_count(oct_graph *g, const char *key, int32_t n)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)n);
    return oct_graph_set_metadata(g, key, n > 0 ? text : NULL);
}

oct_status oct_origin_write(oct_graph *g, const oct_quantize_options *o, const oct_corrections *c)
{
    OCT_TRY(write_count(g, "octet.healed", c->healed));
    OCT_TRY(write_count(g, "octet.equalized", c->equalized));
    OCT_TRY(write_count(g, "octet.smoothed", c->smoothed));
    OCT_TRY(write_count(g, "octet.aligned", c->aligned));
    OCT_TRY(write_count(g, "octet.learned", c->learned));
    OCT_TRY(keep_producer(g));
    g->info.producer_name = "octet";
    g->info.producer_version = oct_version();
    OCT_TRY(oct_graph_set_metadata(g, "octet.version", oct_version()));
    OCT_TRY(oct_graph_set_metadata(g, "octet.target", o->target));
    if (o->settings) OCT_TRY(oct_graph_set_metadata(g, "octet.settings", o->settings));
    return o->source ? write_source(g, o->source) : OCT_OK;
}

/* --- reading --- */

/* *known: g is now as it was when the file was made, as to what this key tells. */
static oct_status move_again(const oct_graph *quantized, const char *done, const char *key,
                             oct_channel_factors_fn again, oct_graph *g, bool *known)
{
    const char *text = oct_graph_metadata(quantized, key);

    if (text) return oct_channel_factors_replay(g, text, again, known);
    *known = !oct_graph_metadata(quantized, done);
    return OCT_OK;
}

static oct_status heal_again(oct_graph *g)
{
    oct_arena *a = oct_arena_new(g->ctx);
    oct_mend *mends;
    int32_t n;
    const oct_status st = a ? oct_heal_channels(g, a, &mends, &n) : OCT_ERR_MEMORY;

    oct_arena_free(a);
    return st;
}

oct_status oct_origin_replay(const oct_graph *quantized, oct_graph *g)
{
    bool smoothed, aligned, centred;

    if (oct_graph_metadata(quantized, "octet.healed")) OCT_TRY(heal_again(g));
    if (oct_graph_metadata(quantized, "octet.equalized")) OCT_TRY(oct_equalize(g, NULL));
    OCT_TRY(
        move_again(quantized, "octet.smoothed", OCT_MOVED_SMOOTH, oct_smooth_again, g, &smoothed));
    OCT_TRY(move_again(quantized, "octet.aligned", OCT_MOVED_ALIGN, oct_align_again, g, &aligned));
    OCT_TRY(
        move_again(quantized, OCT_MOVED_LOGITS, OCT_MOVED_LOGITS, oct_centre_again, g, &centred));
    if (!smoothed || !aligned || !centred)
        oct_log(g->ctx, OCT_LOG_WARN,
                "%s moved weights between layers of this file, and what its metadata says of that "
                "is missing or does not fit the float network; it counts as error of these layers "
                "here, but not at the outputs",
                !smoothed  ? "SmoothQuant"
                : !aligned ? "channel alignment"
                           : "centring of logits");
    return OCT_OK;
}

static bool computes_codes(const oct_node *n)
{
    return oct_node_is_qlinear(n) || strcmp(n->op->name, "ConvInteger") == 0 ||
           strcmp(n->op->name, "MatMulInteger") == 0;
}

bool oct_node_is_quantizing(const oct_node *n)
{
    return oct_node_is(n, &oct_op_quantize_linear) || oct_node_is(n, &oct_op_dequantize_linear) ||
           strcmp(n->op->name, "DynamicQuantizeLinear") == 0 || computes_codes(n);
}

typedef enum kind { NO_WEIGHT, FLOAT, HALF, CODES } kind;

/* The constant a weight is made from, upstream of folded factors and transposes. */
static kind kind_of(const oct_value *v, int depth)
{
    const oct_node *by = v ? v->producer : NULL;

    if (v && v->data)
        return v->type.dtype == OCT_DTYPE_F32   ? FLOAT
               : v->type.dtype == OCT_DTYPE_F16 ? HALF
                                                : NO_WEIGHT;
    if (!by || depth == 0 || by->n_in < 1 || !by->in[0]) return NO_WEIGHT;
    if (oct_node_is(by, &oct_op_dequantize_linear)) {
        const oct_node *q = by->in[0]->producer;

        return by->in[0]->data || (oct_node_is(q, &oct_op_quantize_linear) && q->in[0]->data)
                   ? CODES
                   : NO_WEIGHT;
    }
    if (oct_node_is(by, &oct_op_mul) || oct_node_is(by, &oct_op_transpose) ||
        oct_node_is(by, &oct_op_reshape) || oct_node_is(by, &oct_op_cast))
        return kind_of(by->in[0], depth - 1);
    return NO_WEIGHT;
}

static kind weight_of(const oct_node *n)
{
    if (computes_codes(n)) {
        const int at = n->n_in > 3 ? 3 : 1; /* QLinearConv has scales between its operands */

        return oct_node_const(n, at) ? CODES : NO_WEIGHT;
    }
    if (n->n_in > 1 && n->op->quant.in[1] == OCT_QROLE_WEIGHT) return kind_of(n->in[1], DEPTH);
    return oct_weight_count(n) ? FLOAT : NO_WEIGHT;
}

void oct_graph_quant_info(const oct_graph *g, oct_quant_info *out)
{
    oct_quant_info all = {.struct_size = out->struct_size};

    for (const oct_node *n = g->first; n; n = n->next) {
        const kind k = weight_of(n);

        all.quantizers += oct_node_is_quantizing(n);
        all.layers_total += k != NO_WEIGHT;
        all.layers_quantized += k == CODES;
        all.layers_half += k == HALF;
    }
    all.version = oct_graph_metadata(g, "octet.version");
    all.target = oct_graph_metadata(g, "octet.target");
    all.settings = oct_graph_metadata(g, "octet.settings");
    all.source = oct_graph_metadata(g, "octet.source");
    all.source_sha256 = oct_graph_metadata(g, "octet.source_sha256");
    all.original_producer = oct_graph_metadata(g, "octet.original_producer");
    memcpy(out, &all, OCT_MIN(out->struct_size, sizeof(all)));
}

const char *oct_graph_quant_text(const oct_graph *g, char *text, size_t size)
{
    oct_quant_info q = {.struct_size = sizeof(q)};
    const char *by = oct_graph_producer(g);
    const char *s;

    oct_graph_quant_info(g, &q);
    s = q.layers_total == 1 ? "" : "s";
    if (!q.quantizers)
        (void)snprintf(text, size, "%s: %d layer%s with weights",
                       q.layers_half * 2 > q.layers_total ? "float16" : "float",
                       (int)q.layers_total, s);
    else if (q.version)
        (void)snprintf(text, size,
                       "INT8 by octet %.40s for target %.40s: %d of %d layer%s quantized%s%.200s",
                       q.version, q.target ? q.target : "?", (int)q.layers_quantized,
                       (int)q.layers_total, s, q.source ? ", from " : "", q.source ? q.source : "");
    else
        (void)snprintf(text, size, "quantized elsewhere%s%.100s%s: %d of %d layer%s quantized",
                       *by ? " (by " : "", by, *by ? ")" : "", (int)q.layers_quantized,
                       (int)q.layers_total, s);
    return text;
}
