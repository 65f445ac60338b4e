/* SPDX-License-Identifier: Apache-2.0 */
/* The main job, from a float graph to a quantized one. */
#include "quant/quantize.h"

#include <stdlib.h>
#include <string.h>

#include <octet/op.h>
#include <octet/quant.h>

#include "base/machine.h"
#include "base/sized.h"
#include "detect/input_preprocess.h"
#include "op/op.h"
#include "pass/pass.h"
#include "quant/bits/few_bits.h"
#include "quant/fallback/fallback.h"
#include "quant/lower/lower.h"
#include "quant/observe/calibrate.h"
#include "quant/place/place.h"
#include "quant/provenance.h"

/* Operators may be of this opset (LayerNormalization, HardSwish); every runtime reads it by now. */
#define WORKING_OPSET 17

void oct_quantize_options_init_sized(oct_quantize_options *o, size_t struct_size)
{
    const oct_quantize_options all = {
        .struct_size = struct_size, .target = "octet", .tail = "auto", .percentile = 99.99};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- the network --- */

/* The file that will be written may have operators up to this opset. */
static void raise_opset(oct_graph *g)
{
    for (int32_t i = 0; i < g->info.n_opsets; i++) {
        oct_opset *s = &g->info.opsets[i];

        if (!*s->domain || strcmp(s->domain, "ai.onnx") == 0)
            s->version = OCT_MAX(s->version, (int64_t)WORKING_OPSET);
    }
}

oct_status oct_quantize_normalise(const oct_graph *g, oct_graph **out)
{
    oct_graph *copy = NULL;
    bool widened = false;
    oct_status st;

    OCT_TRY(oct_graph_clone(g, &copy));
    raise_opset(copy);
    if ((st = oct_pipeline_run(copy, "simplify", NULL, NULL))) goto fail;
    if ((st = oct_widen_half(copy, &widened))) goto fail;
    if (widened && (st = oct_pipeline_run(copy, "simplify", NULL, NULL))) goto fail;
    if ((st = oct_graph_infer(copy))) goto fail;
    *out = copy;
    return OCT_OK;
fail:
    oct_graph_free(copy);
    return st;
}

/* --- the stages between placing and lowering --- */

typedef struct job {
    oct_quantized *q;
    oct_feed *f;
    oct_calibration *c;
    oct_qmap *unhealed; /* the calibration borrows from it */
} job;

static oct_status centre_logits(job *j)
{
    return oct_centre_logits(j->q->m, j->q->g, j->f, &j->q->centred);
}

static oct_status choose_observers(job *j)
{
    OCT_TRY(oct_solve_watch(j->q->m, j->q->target, &j->q->o, j->c));
    return oct_fallback_watch(j->q->m, j->q->target, j->c);
}

static oct_status calibrate(job *j)
{
    OCT_TRY(oct_calibrate(j->c, j->q->bound, j->f));
    j->q->summary.images = j->c->images;
    j->q->summary.float_pass_seconds = j->c->seconds - j->c->hook_seconds;
    return OCT_OK;
}

static oct_status solve_activations(job *j)
{
    return oct_solve_activations(j->q->m, j->c);
}

static oct_status take_activations(job *j)
{
    return oct_retarget_activations(j->q->m, j->q->file, &j->q->from_file);
}

static oct_status take_weights(job *j)
{
    return oct_retarget_weights(j->q->m, j->q->file, &j->q->from_file);
}

static oct_status fall_back(job *j)
{
    return oct_fallback(j->q->m, j->q->target, j->c);
}

static oct_status set_ort_signs(job *j)
{
    return oct_ort_signs(j->q->m);
}

static oct_status solve_weights(job *j)
{
    return oct_solve_weights(j->q->m, j->q->target, &j->q->o);
}

static oct_status choose_bits(job *j)
{
    return oct_few_bits_choose(j->q->m, j->q->bound, j->q->target, &j->q->o, j->f);
}

static oct_status fit_npu_shifts(job *j)
{
    oct_quantized *q = j->q;

    if (q->target->bias != OCT_BIAS_POW2) return OCT_OK;
    OCT_TRY(oct_qmap_clone(q->m, &q->before));
    OCT_TRY(oct_npu_fit(q->m, q->arena, &q->moves));
    for (int32_t i = 0; i < q->moves.n; i++) {
        const oct_npu_move *k = &q->moves.at[i];

        oct_log(q->ctx, OCT_LOG_INFO, "'%s': scale 2^%d became 2^%d for the %s of '%s'",
                q->m->points[k->point].value->name, -k->from, -k->to, k->limit, k->node->name);
    }
    if (q->moves.n) return OCT_OK;
    oct_qmap_free(q->before);
    q->before = NULL;
    return OCT_OK;
}

static oct_status correct_bias(job *j)
{
    const char *kind = j->q->o.bias_correction ? j->q->o.bias_correction : "fast";

    if (strcmp(kind, "none") == 0) return OCT_OK;
    if (strcmp(kind, "fast") != 0 && strcmp(kind, "full") != 0)
        return oct_fail(j->q->ctx, OCT_ERR_ARG,
                        "there is no bias correction '%s'; there are: none, fast, full", kind);
    if (j->q->before) OCT_TRY(oct_correct_bias_fast(j->q->before, j->c));
    OCT_TRY(oct_correct_bias_fast(j->q->m, j->c));
    return strcmp(kind, "full") ? OCT_OK : oct_correct_bias_full(j->q->m, j->q->bound, j->f);
}

static oct_status reconstruct(job *j)
{
    oct_quantized *q = j->q;

    if (!oct_reconstruct_wanted(&q->o)) return OCT_OK;
    OCT_TRY(oct_graph_clone(q->bound, &q->exact));
    OCT_TRY(oct_graph_clone(q->g, &q->unlearned));
    OCT_TRY(oct_reconstruct(q->m, q->bound, j->f, &q->o, q->arena, &q->learned));
    q->corrected.learned = q->learned.n_changed;
    oct_qmap_free(q->before); /* with these weights it says nothing any more */
    q->before = NULL;
    return OCT_OK;
}

static oct_status solve_biases(job *j)
{
    if (j->q->before) OCT_TRY(oct_solve_biases(j->q->before));
    return oct_solve_biases(j->q->m);
}

/* What rounding took from a bias of few bits, weights give. */
static oct_status cancel_residues(job *j)
{
    if (j->q->before) OCT_TRY(oct_cancel_bias_residues(j->q->before, j->c));
    return oct_cancel_bias_residues(j->q->m, j->c);
}

static bool heals(const oct_quantized *q)
{
    return !q->o.heal || strcmp(q->o.heal, "off") != 0;
}

/* Whoever asks for few bits wants to see what they do. */
static bool asks_for_bits(const oct_quantize_options *o)
{
    bool asks = (o->weight_bits > 0 && o->weight_bits < 8) ||
                (o->activation_bits > 0 && o->activation_bits < 8);

    for (int32_t i = 0; i < o->n_overrides; i++) {
        oct_quant_override one;

        oct_sized_element(&one, o->overrides, o->override_size, i, sizeof(one));
        asks = asks || one.weight_bits > 0 || one.activation_bits > 0;
    }
    return asks;
}

/* Ranges that the user chose are not changed, and what they cost is not made up for. */
static bool asks_for_ranges(const oct_quantize_options *o)
{
    return o->activation_ranges || o->channel_ranges || o->range_low || o->range_high;
}

/* NPUs have no other scales, and no float. What was learned has measured itself. */
static oct_status heal(job *j)
{
    oct_quantized *q = j->q;
    const oct_heal_job h = {.bound = q->bound,
                            .target = q->target,
                            .o = &q->o,
                            .c = j->c,
                            .feed = j->f,
                            .arena = q->arena};
    oct_qmap *mended = NULL;

    if (!heals(q) || asks_for_bits(&q->o) || asks_for_ranges(&q->o)) return OCT_OK;
    if (q->target->bias == OCT_BIAS_POW2 || oct_reconstruct_wanted(&q->o)) return OCT_OK;
    OCT_TRY(oct_heal(&h, q->m, &q->healed, &mended));
    if (!mended) return OCT_OK;
    j->unhealed = q->m;
    q->m = mended;
    return OCT_OK;
}

/* When a stage is left out. */
enum {
    PICTURES = 1u << 0,   /* it needs pictures */
    FROM_FLOAT = 1u << 1, /* it is for networks that were float */
    FROM_CODES = 1u << 2, /* and for those that were quantized already */
};

/*
 * In processing order. Placing has made the qmap, with points that have no scales yet; each stage
 * may write to it what its row says, and oct_qpoint_set() and its like refuse anything else.
 */
static const struct stage {
    const char *name;
    oct_status (*run)(job *j);
    unsigned writes, only;
} stages[] = {
    {"centre logits", centre_logits, 0, PICTURES | FROM_FLOAT}, /* in biases of the network */
    {"choose observers", choose_observers, 0, PICTURES},
    {"calibrate", calibrate, 0, PICTURES},
    {"activation scales", solve_activations, OCT_QWRITES_SCALES, PICTURES},
    {"the file's activation scales", take_activations,
     OCT_QWRITES_SCALES | OCT_QWRITES_STATES | OCT_QWRITES_REASONS, FROM_CODES},
    {"fallback", fall_back,
     OCT_QWRITES_POINTS | OCT_QWRITES_SCALES | OCT_QWRITES_STATES | OCT_QWRITES_REASONS,
     FROM_FLOAT},
    {"ORT signs", set_ort_signs, OCT_QWRITES_SCALES, 0},
    {"weight scales", solve_weights, OCT_QWRITES_SCALES, 0},
    {"the file's weight scales", take_weights, OCT_QWRITES_SCALES, FROM_CODES},
    {"bits of weights", choose_bits, OCT_QWRITES_SCALES, PICTURES | FROM_FLOAT},
    {"NPU shifts", fit_npu_shifts, OCT_QWRITES_SCALES, 0},
    {"bias correction", correct_bias, OCT_QWRITES_SHIFTS, FROM_FLOAT},
    {"reconstruction", reconstruct, OCT_QWRITES_SHIFTS | OCT_QWRITES_SCALES, FROM_FLOAT},
    {"bias scales", solve_biases, OCT_QWRITES_SCALES, 0},
    {"bias residues", cancel_residues, OCT_QWRITES_CODES, PICTURES},
    {"healing", heal, 0, PICTURES | FROM_FLOAT}, /* on copies */
};

static bool is_left_out(const job *j, unsigned only)
{
    return ((only & PICTURES) && !j->f) || ((only & FROM_FLOAT) && j->q->file) ||
           ((only & FROM_CODES) && !j->q->file);
}

static oct_status run_stages(oct_quantized *q, oct_feed *f)
{
    job j = {.q = q, .f = f};
    oct_status st = oct_calibration_new(q->bound, &j.c);

    for (size_t i = 0; i < OCT_COUNT(stages) && !st; i++) {
        if (is_left_out(&j, stages[i].only)) continue;
        q->m->stage = stages[i].name;
        q->m->may_write = stages[i].writes;
        st = stages[i].run(&j);
    }
    oct_calibration_free(j.c);
    oct_qmap_free(j.unhealed);
    q->m->stage = NULL;
    q->m->may_write = 0; /* lowering only reads */
    return st;
}

/* Weights that blocks learned belong to the network, whatever its shapes. */
static void take_learned(oct_quantized *q)
{
    for (int32_t i = 0; q->exact && i < q->g->n_value_ids; i++) {
        oct_value *from = q->bound->values[i], *to = q->g->values[i];

        if (!from || !to || !from->data || from->data == q->exact->values[i]->data) continue;
        oct_tensor_unref(to->data);
        to->data = oct_tensor_ref(from->data);
    }
}

/* The qmap was made for the shapes of the data; the result keeps the network's own. */
static oct_status rehome(oct_quantized *q)
{
    const oct_node **by_id =
        oct_arena_array(q->arena, (size_t)q->g->n_node_ids + 1, sizeof(*by_id));

    if (!by_id) return OCT_ERR_MEMORY;
    take_learned(q);
    for (const oct_node *n = q->g->first; n; n = n->next)
        by_id[n->id] = n;
    for (int32_t i = 0; i < q->m->n_points; i++) {
        oct_qpoint *p = &q->m->points[i];

        p->value = q->g->values[p->value->id];
        if (p->node) p->node = by_id[p->node->id];
    }
    for (int32_t i = 0; i < q->m->n_shifts; i++)
        q->m->shifts[i].node = by_id[q->m->shifts[i].node->id];
    q->m->g = q->g;
    return OCT_OK;
}

/* The options' strings are the caller's and may be gone: what the first lowering said is copied. */
static oct_status copy_origin(const oct_graph *from, oct_graph *to)
{
    const char *key;

    to->info.producer_name = "octet";
    to->info.producer_version = oct_version();
    for (int32_t i = 0; (key = oct_graph_metadata_key(from, i)) != NULL; i++)
        OCT_TRY(oct_graph_set_metadata(to, key, oct_graph_metadata(from, key)));
    return OCT_OK;
}

oct_status oct_quantized_lower(const oct_quantized *q, oct_graph **out)
{
    const oct_lower_options lower = {.int8_io = q->o.int8_io != 0};
    oct_graph *g = NULL;
    oct_status st = oct_lower(q->m, &lower, &g);

    if (!st) st = q->qdq ? copy_origin(q->qdq, g) : oct_origin_write(g, &q->o, &q->corrected);
    if (st) {
        oct_graph_free(g);
        return st;
    }
    *out = g;
    return OCT_OK;
}

/* Corrections move weights, whose codes are there already. */
static oct_status check_retarget(const oct_quantized *q)
{
    const oct_quantize_options *o = &q->o;

    if (o->equalize || o->align_channels || o->smooth_quant > 0 || o->hard_activations ||
        oct_reconstruct_wanted(o))
        return oct_fail(q->ctx, OCT_ERR_ARG,
                        "equalizing, aligning, smoothing, learning and hard activations need the "
                        "float network; this one is quantized already");
    return OCT_OK;
}

/* What can be run of the network, up to operators that octet does not know, with the shapes of the
 * data. The rest is written back as it is. */
static oct_status open_part(oct_quantized *q, const oct_dataset *images, oct_feed **f)
{
    const oct_feed_options feeding = {.preprocess = q->o.preprocess, .family = q->o.family};
    oct_graph *part = NULL;
    int32_t n_dropped;
    oct_status st;

    OCT_TRY(oct_graph_clone(q->g, &part));
    st = oct_graph_drop_unknown(part, &n_dropped);
    if (!st && !images) {
        q->bound = part;
        return OCT_OK;
    }
    if (!st) st = oct_feed_new(part, images, &feeding, &q->bound, f);
    oct_graph_free(part);
    return st;
}

/* What tells a family how to scale pixels (norms, who made the file) is not in the network that is
 * quantized any more: how pictures are made is noted there. */
static oct_status note_pictures(oct_quantized *q, const oct_graph *g, const oct_dataset *images)
{
    oct_preprocess p;
    oct_status st;

    if (!images || oct_dataset_is_tensors(images)) return OCT_OK;
    if (q->o.preprocess) return oct_preprocess_note(q->g, q->o.preprocess);
    st = oct_graph_preprocess(g, q->o.family, NULL, &p);
    /* A family that is not found for operators that octet does not know may be found without. */
    if (st) return st == OCT_ERR_MEMORY ? st : OCT_OK;
    return oct_preprocess_note(q->g, &p);
}

/* The network that is quantized, with the shapes of the data; *f NULL: no pictures. */
static oct_status open_network(oct_quantized *q, const oct_graph *g, const oct_dataset *images,
                               oct_feed **f)
{
    int32_t n_cured = 0;

    q->corrected = (oct_corrections){-1, -1, -1, -1, -1, 0};
    OCT_TRY(oct_quantize_normalise(g, &q->g));
    OCT_TRY(note_pictures(q, g, images));
    OCT_TRY(oct_retarget_open(&q->g, &q->file));
    if (!q->file && !images)
        return oct_fail(q->ctx, OCT_ERR_ARG,
                        "pictures to calibrate on are missing, and the network has no scales of "
                        "its own");
    if (q->file) {
        OCT_TRY(check_retarget(q));
    } else {
        if (heals(q)) OCT_TRY(oct_heal_channels(q->g, q->arena, &q->cured, &n_cured));
        OCT_TRY(oct_correct_graph(q->g, images, &q->o, &q->corrected));
        if (q->target->flags & OCT_TARGET_DFL_SUMS) OCT_TRY(oct_centre_bins(q->g));
        q->corrected.healed = n_cured;
    }
    return open_part(q, images, f);
}

static void sum_up(oct_quantized *q)
{
    oct_quantize_summary *s = &q->summary;

    s->tail = q->m ? q->m->tail_text : NULL;
    s->best_for = q->target->best_for;
    s->equalized = q->corrected.equalized;
    s->smoothed = q->corrected.smoothed;
    s->aligned = q->corrected.aligned;
    s->hardened = q->corrected.hardened;
    s->learned = q->corrected.learned;
    s->learned_from = q->learned.pictures;
    s->learned_before = q->learned.before;
    s->learned_after = q->learned.after;
    s->scales_kept = q->file ? q->from_file.kept : -1;
    s->scales_fitted = q->file ? q->from_file.fitted : -1;
    s->scales_missing = q->file ? q->from_file.missing : -1;
}

static oct_status work(oct_quantized *q, const oct_graph *g, const oct_dataset *images)
{
    const int64_t start = oct_time_ns();
    oct_feed *f = NULL;
    oct_status st;

    OCT_TRY(oct_target_find(q->ctx, q->o.target, &q->target));
    OCT_TRY(open_network(q, g, images, &f));
    st = oct_place(q->bound, q->target, &q->o, &q->m);
    if (!st) st = oct_quantized_list_layers(q);
    if (!st) st = run_stages(q, f);
    if (!st) st = oct_quantized_list_layers(q); /* again: fallback has switched points off */
    if (!st && f) st = oct_quantized_measure(q, f);
    if (!st && q->before) st = oct_lower(q->before, NULL, &q->unaligned);
    oct_feed_free(f);
    if (!st) st = rehome(q);
    if (!st) st = oct_quantized_lower(q, &q->qdq);
    sum_up(q);
    q->summary.seconds = (double)(oct_time_ns() - start) * 1e-9;
    return st;
}

oct_status oct_quantize(const oct_graph *g, const oct_dataset *images,
                        const oct_quantize_options *options, oct_quantized **out)
{
    OCT_ENTER(g->ctx);
    oct_quantized *q = oct_calloc(g->ctx, 1, sizeof(*q));
    oct_status st;

    if (!q) return OCT_ERR_MEMORY;
    q->ctx = g->ctx;
    oct_quantize_options_init(&q->o);
    if (options) memcpy(&q->o, options, OCT_MIN(options->struct_size, sizeof(q->o)));
    st = (q->arena = oct_arena_new(g->ctx)) ? work(q, g, images) : OCT_ERR_MEMORY;
    if (st) {
        oct_quantized_free(q);
        return st;
    }
    *out = q;
    return OCT_OK;
}

oct_status oct_qmap_apply(const oct_graph *g, const char *qmap_path, oct_graph **out)
{
    OCT_ENTER(g->ctx);
    oct_quantized q = {.ctx = g->ctx};
    oct_status st = oct_quantize_normalise(g, &q.g);

    if (!st) st = oct_qmap_load(q.g, qmap_path, &q.m);
    if (!st) st = oct_lower(q.m, NULL, out);
    oct_qmap_free(q.m);
    oct_graph_free(q.g);
    return st;
}
