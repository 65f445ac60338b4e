/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network with its pre- and postprocessing inside: pictures of bytes in, boxes out. Resizing is
 * not included: pictures come in the network's size.
 */
#include "detect/attach.h"

#include <string.h>

#include "detect/detector.h"
#include "detect/input_preprocess.h"
#include "op/grad/rules.h"
#include "pass/pass.h"

enum { MOST_BOXES = 100000 };

void oct_attach_options_init_sized(oct_attach_options *o, size_t struct_size)
{
    const oct_attach_options all = {.struct_size = struct_size,
                                    .preprocess = "auto",
                                    .nms = "onnx",
                                    .format = "batch",
                                    .score = 0.25f,
                                    .iou = 0.65f,
                                    .max_det = 300,
                                    .pre_nms = 1000};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- options --- */

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

static oct_status read_nms(oct_ctx *ctx, const oct_attach_options *o, oct_attach_nms *out)
{
    *out = (oct_attach_nms){.is_tensorrt = is(o->nms, "tensorrt"),
                            .is_flat = is(o->format, "flat"),
                            .score = o->score,
                            .iou = o->iou,
                            .max_det = o->max_det,
                            .pre_nms = o->pre_nms};
    if (!out->is_tensorrt && !is(o->nms, "onnx") && !is(o->nms, "none"))
        return oct_fail(ctx, OCT_ERR_ARG, "nms '%.40s': there are onnx, tensorrt and none",
                        o->nms ? o->nms : "");
    if (!out->is_flat && !is(o->format, "batch"))
        return oct_fail(ctx, OCT_ERR_ARG, "format '%.40s': there are flat and batch",
                        o->format ? o->format : "");
    if (!(o->score >= 0 && o->score < 1) || !(o->iou >= 0 && o->iou <= 1))
        return oct_fail(ctx, OCT_ERR_ARG, "score %g and iou %g must be from 0 to 1",
                        (double)o->score, (double)o->iou);
    if (o->max_det < 1 || o->max_det > MOST_BOXES || o->pre_nms < 1 || o->batch < 0)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "max_det (%d, at most %d), pre_nms (%d) and batch (%d) must be at least 1",
                        (int)o->max_det, MOST_BOXES, (int)o->pre_nms, (int)o->batch);
    return OCT_OK;
}

/* --- the head --- */

/* float32, whatever the network computes in. */
static void widen_outputs(oct_builder *b)
{
    for (int32_t i = 0; i < b->g->n_outputs && !b->status; i++) {
        oct_value *v = b->g->outputs[i];

        if (v->type.dtype != OCT_DTYPE_F16 && v->type.dtype != OCT_DTYPE_BF16) continue;
        v->is_output = false;
        if ((v = oct_grad_cast(b, v, OCT_DTYPE_F32))) b->g->outputs[i] = v;
    }
}

static oct_status add_nms(oct_graph *g, const oct_detector *d, oct_attach_nms *o)
{
    const oct_family *f = d->family;
    oct_builder b = {.g = g, .prefix = "nms"};
    oct_head head = {0};

    if (!f->attach)
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED, "family %s: %s; use nms none", f->name,
                        f->is_classifier   ? "a classifier has no boxes to suppress"
                        : f->is_suppressed ? "suppression is part of the network already"
                                           : "octet cannot attach its suppression");
    OCT_TRY(oct_detector_check(d));
    if (f->is_suppressed) o->iou = 1; /* queries: no box is another one's double */
    widen_outputs(&b);
    OCT_TRY(b.status);
    OCT_TRY(f->attach(&b, &d->reading, &head));
    OCT_TRY(oct_attach_suppress(&b, head, o));
    return oct_drop_dead(g);
}

/* --- the input --- */

/* value = (pixel / scale - mean[c]) / std[c], for channels along axis 1. */
static oct_value *normalise(oct_builder *b, oct_value *x, const oct_preprocess *p, int64_t n)
{
    const int64_t dims[] = {1, n, 1, 1};
    bool has_mean = false, has_std = false;
    float std[3];

    for (int64_t c = 0; c < n; c++) {
        has_mean |= p->mean[c] != 0;
        has_std |= p->std[c] != 1;
        std[c] = p->std[c];
    }
    if (p->scale != 1) x = oct_emit(b, &oct_op_div, x, oct_scalar(b, p->scale), NULL);
    if (has_mean) x = oct_emit(b, &oct_op_sub, x, oct_attach_floats(b, 4, dims, p->mean), NULL);
    if (has_std) x = oct_emit(b, &oct_op_div, x, oct_attach_floats(b, 4, dims, std), NULL);
    return x;
}

/* From bytes [n, c, h, w] or [n, h, w, c], RGB, to what the network takes. */
static oct_value *prepare(oct_builder *b, oct_value *bytes, const oct_value *old,
                          const oct_preprocess *p, bool from_nhwc)
{
    static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    const bool to_nhwc = p->layout == OCT_IMAGE_NHWC;
    oct_value *x = bytes;

    if (from_nhwc) x = oct_grad_transpose(b, x, to_first);
    if (p->color == OCT_COLOR_BGR) {
        oct_value *const in[] = {x, oct_ints(b, (int64_t[]){2, 1, 0}, 3)};
        oct_node *n = oct_emit_node(b, &oct_op_gather, in, 2, 1);

        oct_emit_int(b, n, "axis", 1);
        x = oct_emitted(b, n);
    }
    if (!b->status) x = oct_grad_cast(b, x, OCT_DTYPE_F32);
    x = normalise(b, x, p, p->color == OCT_COLOR_GRAY ? 1 : 3);
    if (to_nhwc) x = oct_grad_transpose(b, x, to_last);
    return b->status ? NULL : oct_grad_cast(b, x, old->type.dtype);
}

/* What a picture needs outside, for octet's own commands: sizes and layout are the input's. */
static oct_status note_preprocess(oct_graph *g, const oct_preprocess *p, bool is_inside)
{
    oct_preprocess left = *p;

    if (is_inside) {
        left.scale = 1;
        for (int c = 0; c < 3; c++) {
            left.mean[c] = 0;
            left.std[c] = 1;
        }
        if (left.color == OCT_COLOR_BGR) left.color = OCT_COLOR_RGB;
    }
    return oct_preprocess_note(g, &left);
}

static oct_type input_type(const oct_type *old, bool was_nhwc, bool is_nhwc)
{
    oct_type t = *old;

    t.dtype = OCT_DTYPE_U8;
    if (was_nhwc == is_nhwc) return t;
    t.dim[is_nhwc ? 3 : 1] = old->dim[was_nhwc ? 3 : 1];
    t.dim[is_nhwc ? 1 : 2] = old->dim[was_nhwc ? 1 : 2];
    t.dim[is_nhwc ? 2 : 3] = old->dim[was_nhwc ? 2 : 3];
    return t;
}

static oct_status replace_input(oct_graph *g, oct_value *old, const oct_preprocess *p, bool is_nhwc)
{
    oct_builder b = {.g = g, .before = g->first, .prefix = "preprocess"};
    const oct_type type = input_type(&old->type, p->layout == OCT_IMAGE_NHWC, is_nhwc);
    oct_value *bytes = oct_value_new(g, NULL, &type), *x;
    const char *name = old->name;

    if (!bytes) return OCT_ERR_MEMORY;
    if (old->dim_name && !(bytes->dim_name = oct_arena_array(g->arena, 4, sizeof(char *))))
        return OCT_ERR_MEMORY;
    if (old->dim_name) bytes->dim_name[0] = old->dim_name[0];
    bytes->is_declared = true;
    if (!(x = prepare(&b, bytes, old, p, is_nhwc))) return b.status;
    while (old->n_users) {
        oct_node *u = old->users[0];

        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == old) OCT_TRY(oct_node_set_input(u, i, x));
    }
    old->name = bytes->name;
    bytes->name = name;
    old->is_input = false;
    bytes->is_input = true;
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == old) g->inputs[i] = bytes;
    return OCT_OK;
}

/* A network that takes bytes already keeps its input. */
static oct_status add_preprocess(oct_graph *g, const oct_attach_options *o, const oct_preprocess *p)
{
    const oct_value *found = NULL;

    OCT_TRY(oct_detector_input(g, &found));
    if (found->type.dtype == OCT_DTYPE_U8 || is(o->preprocess, "none"))
        return note_preprocess(g, p, found->type.dtype == OCT_DTYPE_U8);
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == found)
            OCT_TRY(replace_input(g, g->inputs[i], p, o->layout == OCT_IMAGE_NHWC));
    return note_preprocess(g, p, true);
}

/* --- both --- */

/* A copy with the batch that is asked for, and sizes of pictures fixed: grids depend on them. */
static oct_status copy(const oct_graph *g, int32_t batch, const oct_preprocess *p, oct_graph **out)
{
    const bool is_nhwc = p->layout == OCT_IMAGE_NHWC;
    const int h = is_nhwc ? 1 : 2, w = is_nhwc ? 2 : 3;
    const oct_value *found = NULL;

    if (batch) return oct_detector_bind(g, batch, p->width, p->height, out);
    OCT_TRY(oct_detector_input(g, &found));
    OCT_TRY(oct_graph_clone(g, out));
    for (int32_t i = 0; i < (*out)->n_inputs; i++) {
        oct_value *v = (*out)->inputs[i];

        if (strcmp(v->name, found->name) != 0 || (v->type.dim[h] >= 0 && v->type.dim[w] >= 0))
            continue;
        v->type.dim[h] = p->height;
        v->type.dim[w] = p->width;
        if (v->dim_name) v->dim_name[h] = v->dim_name[w] = NULL;
        return oct_graph_infer(*out);
    }
    return OCT_OK;
}

/* The family is told by the outputs, so it is asked before they change. */
static oct_status change(oct_graph *g, const oct_attach_options *o, const oct_preprocess *p,
                         oct_attach_nms *nms)
{
    const bool suppresses = !is(o->nms, "none");
    oct_detector *d = NULL;
    oct_status st;

    if (suppresses) OCT_TRY(oct_detector_new(g, o->family, &d));
    st = add_preprocess(g, o, p);
    if (!st && suppresses) st = add_nms(g, d, nms);
    oct_detector_free(d);
    OCT_TRY(st);
    OCT_TRY(oct_graph_infer(g));
    return oct_graph_verify(g);
}

static oct_status attach(const oct_graph *g, const oct_attach_options *o, oct_attach_nms *nms,
                         oct_graph **out)
{
    const bool has_words = !is(o->preprocess, "auto") && !is(o->preprocess, "none");
    oct_graph *made = NULL;
    oct_preprocess p;
    oct_status st;

    OCT_TRY(oct_graph_preprocess(g, o->family, has_words ? o->preprocess : NULL, &p));
    st = copy(g, o->batch, &p, &made);
    if (!st) st = change(made, o, &p, nms);
    if (st)
        oct_graph_free(made);
    else
        *out = made;
    return st;
}

oct_status oct_graph_attach(const oct_graph *g, const oct_attach_options *options, oct_graph **out)
{
    OCT_ENTER(g->ctx);
    oct_graph *opened = NULL;
    oct_attach_options o;
    oct_attach_nms nms;
    oct_status st;

    oct_attach_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    if (!o.preprocess) o.preprocess = "auto";
    OCT_TRY(read_nms(g->ctx, &o, &nms));
    OCT_TRY(oct_graph_float_io(g, &opened)); /* codes in and out become numbers */
    st = attach(opened ? opened : g, &o, &nms, out);
    oct_graph_free(opened);
    return st;
}
