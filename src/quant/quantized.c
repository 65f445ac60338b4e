/* SPDX-License-Identifier: Apache-2.0 */
/* What came of quantizing: layers, figures, files. */
#include "quant/quantized.h"

#include <string.h>

#include "base/sized.h"
#include "op/op.h"
#include "quant/io/ppq.h"
#include "quant/lower/lower.h"
#include "stat/noise.h"

#define NOISE_IMAGES 4 /* the order of the worst layers is the same with more */

/* --- layers --- */

static bool has_weights(const oct_node *n)
{
    oct_weight_axes ax;

    return oct_weight_axes_of(n, &ax);
}

static bool is_quantized(const oct_qmap *m, const oct_node *n)
{
    const int32_t w = oct_qmap_at(m, n, 1);

    return w >= 0 && m->points[w].state == OCT_QSTATE_ACTIVE && !m->float_reason[n->id];
}

/* Layers whose weights are no operand of a product: recurrent ones, tables. They come last: noise
 * is measured of those before. Returns how many weights they have. */
static double list_others(oct_quantized *q, double *weights_int)
{
    double weights = 0;

    for (const oct_node *n = q->bound->first; n; n = n->next) {
        const double count = has_weights(n) ? 0 : (double)oct_weight_count(n);
        const int32_t table = oct_node_is(n, &oct_op_gather) ? oct_qmap_at(q->m, n, 0) : -1;
        const bool integer = table >= 0 && q->m->points[table].state == OCT_QSTATE_ACTIVE;

        if (count <= 0) continue;
        weights += count;
        *weights_int += integer ? count : 0;
        q->summary.layers_total++;
        q->summary.layers_quantized += integer;
        q->layers[q->n_layers++] = (oct_quantize_layer){
            .name = n->name,
            .op = n->op->name,
            .reason = integer                    ? NULL
                      : oct_node_is_recurrent(n) ? "without an integer form (recurrent)"
                                                 : "with a table that is only looked up in",
            .noise = -1,
            .why = integer ? OCT_FLOAT_NONE : OCT_FLOAT_TARGET};
    }
    return weights;
}

oct_status oct_quantized_list_layers(oct_quantized *q)
{
    double macs = 0, macs_int = 0, weights = 0, weights_int = 0;

    q->layers = oct_arena_array(q->arena, (size_t)q->bound->n_nodes + 1, sizeof(*q->layers));
    if (!q->layers) return OCT_ERR_MEMORY;
    q->n_layers = 0;
    q->summary.layers_total = q->summary.layers_quantized = 0;
    for (const oct_node *n = q->bound->first; n; n = n->next) {
        const bool integer = has_weights(n) && is_quantized(q->m, n);
        const double k = n->op->macs ? (double)OCT_MAX(n->op->macs(n), (int64_t)0) : 0;
        const char *why = q->m->float_reason[n->id];

        macs += k;
        macs_int += integer ? k : 0;
        if (!has_weights(n)) continue;
        weights += (double)oct_tensor_len(n->in[1]->data);
        weights_int += integer ? (double)oct_tensor_len(n->in[1]->data) : 0;
        q->summary.layers_total++;
        q->summary.layers_quantized += integer;
        q->layers[q->n_layers++] = (oct_quantize_layer){
            .name = n->name,
            .op = n->op->name,
            .reason = integer ? NULL
                      : why   ? why
                              : "its input is float: the layer before it was not quantized",
            .noise = -1,
            .why = integer ? OCT_FLOAT_NONE
                   : why   ? (int32_t)q->m->float_why[n->id]
                           : OCT_FLOAT_INPUT};
    }
    weights += list_others(q, &weights_int);
    q->summary.macs_quantized_share = macs > 0 ? macs_int / macs : 0;
    q->summary.weights_quantized_share = weights > 0 ? weights_int / weights : 0;
    if (q->summary.layers_quantized == 0)
        return oct_fail(
            q->ctx, OCT_ERR_ARG,
            "no layer of this network can be quantized: %d layer%s with weights%s%s%s%s",
            (int)q->summary.layers_total, q->summary.layers_total == 1 ? "" : "s",
            q->n_layers ? "; '" : "", q->n_layers ? q->layers[0].name : "",
            q->n_layers ? "' stays float: " : "", q->n_layers ? q->layers[0].reason : "");
    return OCT_OK;
}

oct_status oct_quantized_measure(oct_quantized *q, oct_feed *f)
{
    oct_noise *noise = oct_arena_array(q->arena, (size_t)q->n_layers + 1, sizeof(*noise));
    oct_graph *lowered = NULL;
    int32_t k = 0;
    oct_status st;

    if (!noise) return OCT_ERR_MEMORY;
    for (const oct_node *n = q->bound->first; n; n = n->next)
        if (has_weights(n)) noise[k++].name = n->out[0]->name;
    for (int32_t i = 0; i < k && q->healed.layers; i++)
        q->layers[i].noise = q->healed.layers[i];
    if (q->healed.layers) return OCT_OK; /* healing measured it */
    st = oct_lower(q->m, NULL, &lowered);
    if (!st)
        st = oct_noise_measure(q->exact ? q->exact : q->bound, lowered, f, NOISE_IMAGES, noise, k);
    oct_graph_free(lowered);
    for (int32_t i = 0; i < k && !st; i++)
        q->layers[i].noise = noise[i].error.noise;
    return st;
}

/* --- asking --- */

void oct_quantized_free(oct_quantized *q)
{
    if (!q) return;
    oct_graph_free(q->qdq);
    oct_graph_free(q->unaligned);
    oct_qmap_free(q->before);
    oct_qmap_free(q->m);
    oct_qmap_free(q->file);
    oct_graph_free(q->bound);
    oct_graph_free(q->exact);
    oct_graph_free(q->unlearned);
    oct_graph_free(q->g);
    oct_arena_free(q->arena);
    oct_free(q->ctx, q);
}

const oct_graph *oct_quantized_graph(const oct_quantized *q)
{
    return q->qdq;
}

oct_graph *oct_quantized_float(const oct_quantized *q)
{
    return q->g;
}

const oct_graph *oct_quantized_unlearned(const oct_quantized *q)
{
    return q->unlearned ? q->unlearned : q->g;
}

oct_qmap *oct_quantized_map(const oct_quantized *q)
{
    q->m->may_write = ~0u;
    return q->m;
}

void oct_quantized_summary(const oct_quantized *q, oct_quantize_summary *s)
{
    oct_quantize_summary all = q->summary;

    all.struct_size = s->struct_size;
    memcpy(s, &all, OCT_MIN(s->struct_size, sizeof(all)));
}

int32_t oct_quantized_layer(const oct_quantized *q, int32_t i, oct_quantize_layer *layer)
{
    if (i < 0 || i >= q->n_layers) return 0;
    oct_sized_give(layer, &q->layers[i], sizeof(*layer));
    return 1;
}

int32_t oct_quantized_block(const oct_quantized *q, int32_t i, oct_quantize_block *block)
{
    oct_quantize_block all = {.struct_size = sizeof(all)};
    const oct_reconstructed *r;

    if (i < 0 || i >= q->learned.n) return 0;
    r = &q->learned.blocks[i];
    all.first = r->first;
    all.last = r->last;
    all.layers = r->n_layers;
    all.before = r->before;
    all.after = r->after;
    all.was_put_back = r->was_worse || r->was_undone;
    all.was_undone = r->was_undone;
    oct_sized_give(block, &all, sizeof(all));
    return 1;
}

int32_t oct_quantized_mend(const oct_quantized *q, int32_t i, oct_quantize_mend *mend)
{
    oct_quantize_mend all = {.struct_size = sizeof(all)};
    const int32_t n = q->corrected.healed;
    const oct_mend *m;

    if (i < 0 || i >= n + q->healed.n) return 0;
    m = i < n ? &q->cured[i] : &q->healed.mends[i - n];
    all.node = m->node;
    all.kind = m->kind;
    all.text = m->text;
    all.error_share = m->error_share;
    all.work_share = m->work_share;
    all.before = m->before;
    all.after = m->after;
    oct_sized_give(mend, &all, sizeof(all));
    return 1;
}

int32_t oct_quantized_move(const oct_quantized *q, int32_t i, oct_quantize_move *move)
{
    oct_quantize_move all = {.struct_size = sizeof(all)};
    const oct_npu_move *k;

    if (i < 0 || i >= q->moves.n) return 0;
    k = &q->moves.at[i];
    all.value = q->m->points[k->point].value->name;
    all.node = k->node->name;
    all.limit = k->limit;
    all.from = k->from;
    all.to = k->to;
    oct_sized_give(move, &all, sizeof(all));
    return 1;
}

const oct_graph *oct_quantized_unaligned(const oct_quantized *q)
{
    return q->unaligned;
}

/* A qmap is for the biases of the file: what logits were centred by is one more shift. */
static oct_status save_uncentred(const oct_quantized *q, oct_qmap *m, const char *path)
{
    m->may_write = OCT_QWRITES_SHIFTS;
    for (int32_t i = 0; i < q->centred.n; i++) {
        const oct_node *n = q->centred.at[i].node;
        const int64_t len = oct_tensor_len(oct_own_bias(n)->data);
        float *by = oct_arena_array(m->arena, (size_t)len, sizeof(*by));

        if (!by) return OCT_ERR_MEMORY;
        for (int64_t c = 0; c < len; c++)
            by[c] = (float)-q->centred.at[i].by;
        OCT_TRY(oct_qmap_shift(m, n, by, len));
    }
    return oct_qmap_save(m, path);
}

oct_status oct_quantized_save_qmap(const oct_quantized *q, const char *path)
{
    OCT_ENTER(q->ctx);
    oct_qmap *m = NULL;
    oct_status st;

    if (q->file)
        return oct_fail(q->ctx, OCT_ERR_UNSUPPORTED,
                        "a qmap goes with a float file, but the network was quantized already; "
                        "save the quantized file alone");
    if (oct_corrections_any(&q->corrected))
        return oct_fail(
            q->ctx, OCT_ERR_UNSUPPORTED,
            "a qmap goes with the float file's own weights, but equalizing, "
            "smoothing, aligning, learning, healing or hard activations changed the network; save "
            "the quantized file alone");
    OCT_TRY(oct_qmap_clone(q->m, &m));
    st = save_uncentred(q, m, path);
    oct_qmap_free(m);
    return st;
}

oct_status oct_quantized_save_ppq(const oct_quantized *q, const char *path)
{
    OCT_ENTER(q->ctx);

    return oct_qmap_save_ppq(q->m, path);
}

oct_status oct_quantized_save_tensorrt(const oct_quantized *q, const char *path, int32_t as_json)
{
    OCT_ENTER(q->ctx);

    return oct_qmap_save_tensorrt(q->m, path, as_json != 0);
}
