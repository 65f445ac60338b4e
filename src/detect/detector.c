/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors: recognising a network's family, reading its outputs. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "detect/detector.h"
#include "detect/family.h"

/* --- recognising --- */

/* "boxes float32[1x2100x4], scores float32[1x2100x3]" */
static void put_outputs(oct_str *s, const oct_graph *g)
{
    enum { MAX_SHOWN = 8 };
    char text[OCT_TYPE_TEXT_SIZE];

    for (int32_t i = 0; i < g->n_outputs && i < MAX_SHOWN; i++)
        oct_str_printf(s, "%s%s %s", i ? ", " : "", g->outputs[i]->name,
                       oct_type_text(&g->outputs[i]->type, text));
    if (g->n_outputs > MAX_SHOWN)
        oct_str_printf(s, " and %d more", (int)(g->n_outputs - MAX_SHOWN));
}

static void put_families(oct_str *s)
{
    for (int32_t i = 0; oct_family_at(i); i++)
        oct_str_printf(s, "%s%s", i ? ", " : "", oct_family_at(i)->name);
}

static oct_status unknown_family(oct_ctx *ctx, const char *name)
{
    oct_nearest near = {name, 4, NULL}; /* as many edits are another word */
    oct_str s;
    oct_status st;

    for (int32_t i = 0; oct_family_at(i); i++)
        oct_nearest_try(&near, oct_family_at(i)->name);
    oct_str_init(&s, ctx);
    put_families(&s);
    st = oct_fail(ctx, OCT_ERR_ARG, "no family '%s'%s%s%s; there are: auto, %s", name,
                  near.name ? ", did you mean '" : "", near.name ? near.name : "",
                  near.name ? "'?" : "", s.s ? s.s : "");
    oct_str_fini(&s);
    return st;
}

/* Why the outputs cannot be read; `asked` is the family the user named, or NULL. */
static oct_status not_recognised(const oct_net *net, const oct_family *asked)
{
    oct_str outputs, families;
    oct_status st;

    oct_str_init(&outputs, net->g->ctx);
    oct_str_init(&families, net->g->ctx);
    put_outputs(&outputs, net->g);
    put_families(&families);
    if (asked)
        st = oct_fail(net->g->ctx, OCT_ERR_SHAPE,
                      "the outputs (%s) are not those of family %s: %s; families: %s",
                      outputs.s ? outputs.s : "", asked->name, asked->help,
                      families.s ? families.s : "");
    else
        st = oct_fail(net->g->ctx, OCT_ERR_SHAPE,
                      "no family recognises the outputs (%s); name one of: %s",
                      outputs.s ? outputs.s : "", families.s ? families.s : "");
    oct_str_fini(&outputs);
    oct_str_fini(&families);
    return st;
}

static oct_status ambiguous(const oct_net *net, const oct_family *a, const oct_reading *ra,
                            const oct_family *b, const oct_reading *rb)
{
    return oct_fail(net->g->ctx, OCT_ERR_SHAPE,
                    "the outputs fit more than one family; name one: %s (%s) or %s (%s)", a->name,
                    ra->why, b->name, rb->why);
}

static oct_status try_family(const oct_family *f, const oct_net *net, oct_reading *r, int32_t *sure)
{
    *r = (oct_reading){.boxes = -1, .scores = -1, .extra = {-1, -1}};
    *sure = OCT_SURE_NO;
    r->width = net->width;
    r->height = net->height;
    return f->match(net, r, sure);
}

static oct_status recognise(oct_detector *d, const oct_net *net)
{
    const oct_family *rival = NULL;
    oct_reading rival_reading = {0}, r;
    int32_t best = OCT_SURE_ASKED, sure;

    for (int32_t i = 0; oct_family_at(i); i++) {
        const oct_family *f = oct_family_at(i);

        OCT_TRY(try_family(f, net, &r, &sure));
        if (sure > best) {
            d->family = f;
            d->reading = r;
            best = sure;
            rival = NULL;
        } else if (sure == best && d->family) {
            rival = f;
            rival_reading = r;
        }
    }
    if (!d->family) return not_recognised(net, NULL);
    return rival ? ambiguous(net, d->family, &d->reading, rival, &rival_reading) : OCT_OK;
}

static oct_status take_named(oct_detector *d, const oct_net *net, const char *name)
{
    int32_t sure;

    if (!(d->family = oct_family_find(name))) return unknown_family(net->g->ctx, name);
    OCT_TRY(try_family(d->family, net, &d->reading, &sure));
    return sure == OCT_SURE_NO ? not_recognised(net, d->family) : OCT_OK;
}

/* A detector without anything recognised yet. */
static oct_status make(oct_ctx *ctx, int32_t n_out, oct_detector **out)
{
    oct_detector *d = oct_calloc(ctx, 1, sizeof(*d));

    if (!d) return OCT_ERR_MEMORY;
    d->ctx = ctx;
    d->n_out = n_out;
    oct_candidates_init(&d->found, ctx);
    d->converted = oct_calloc(ctx, (size_t)n_out + 1, sizeof(*d->converted));
    d->cap_converted = oct_calloc(ctx, (size_t)n_out + 1, sizeof(*d->cap_converted));
    if (!d->converted || !d->cap_converted) {
        oct_detector_free(d);
        return OCT_ERR_MEMORY;
    }
    *out = d;
    return OCT_OK;
}

oct_status oct_detector_copy(oct_ctx *ctx, const oct_detector *d, oct_detector **out)
{
    OCT_ENTER(ctx);

    OCT_TRY(make(ctx, d->n_out, out));
    (*out)->family = d->family;
    (*out)->reading = d->reading;
    (*out)->is_nhwc = d->is_nhwc;
    (*out)->is_gray = d->is_gray;
    (*out)->preprocess = d->preprocess;
    (*out)->has_preprocess = d->has_preprocess;
    (*out)->names_given = d->names_given;
    if (d->names && oct_class_names_copy(ctx, d->names, &(*out)->names)) {
        oct_detector_free(*out);
        *out = NULL;
        return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

oct_status oct_detector_new_sized(const oct_graph *g, const char *family,
                                  const oct_preprocess *asked, oct_detector **out)
{
    oct_detector *d = NULL;
    oct_graph *bound = NULL;
    oct_net net;
    oct_status st;

    OCT_TRY(make(g->ctx, g->n_outputs, &d));
    if ((st = oct_net_init(&net, g, asked, &bound))) goto done;
    d->is_nhwc = net.is_nhwc;
    d->is_gray = net.input->type.dim[net.is_nhwc ? 3 : 1] == 1;
    st = !family || strcmp(family, "auto") == 0 ? recognise(d, &net) : take_named(d, &net, family);
    if (!st) st = oct_detector_take_metadata(d, &net.says);
done:
    oct_net_fini(&net);
    oct_graph_free(bound);
    if (st)
        oct_detector_free(d);
    else
        *out = d;
    return st;
}

oct_status oct_detector_new(const oct_graph *g, const char *family, oct_detector **out)
{
    OCT_ENTER(g->ctx);

    return oct_detector_new_sized(g, family, NULL, out);
}

void oct_detector_free(oct_detector *d)
{
    if (!d) return;
    for (int32_t i = 0; d->converted && i < d->n_out; i++)
        oct_free(d->ctx, d->converted[i]);
    oct_free(d->ctx, d->converted);
    oct_free(d->ctx, d->cap_converted);
    oct_candidates_fini(&d->found);
    oct_class_names_free(d->names);
    oct_free(d->ctx, d);
}

const char *oct_detector_family(const oct_detector *d)
{
    return d->family->name;
}

const char *oct_detector_why(const oct_detector *d)
{
    return d->reading.why;
}

int32_t oct_detector_is_classifier(const oct_detector *d)
{
    return d->family->is_classifier;
}

int32_t oct_detector_n_classes(const oct_detector *d)
{
    return d->reading.n_classes;
}

void oct_detector_preprocess(const oct_detector *d, oct_preprocess *p)
{
    oct_preprocess all;

    oct_preprocess_init(&all);
    if (d->has_preprocess)
        all = d->preprocess;
    else if (d->family->preprocess)
        d->family->preprocess(&d->reading, &all);
    all.width = d->reading.width;
    all.height = d->reading.height;
    all.layout = d->is_nhwc ? OCT_IMAGE_NHWC : OCT_IMAGE_NCHW;
    if (d->is_gray) all.color = OCT_COLOR_GRAY;
    all.struct_size = p->struct_size;
    memcpy(p, &all, OCT_MIN(p->struct_size, sizeof(all)));
}

/* --- reading outputs --- */

static oct_status floats_of(oct_decoding *d, int32_t i, const oct_tensor *t, const float **out)
{
    oct_detector *det = d->detector;
    const int64_t n = oct_tensor_len(t);

    if (t->type.dtype == OCT_DTYPE_F32) {
        *out = t->data;
        return OCT_OK;
    }
    OCT_TRY(oct_grow(d->ctx, &det->converted[i], &det->cap_converted[i], (size_t)OCT_MAX(n, 1),
                     sizeof(float)));
    for (int64_t k = 0; k < n; k++)
        det->converted[i][k] = (float)oct_tensor_get_f64(t, k);
    *out = det->converted[i];
    return OCT_OK;
}

oct_status oct_decoding_misfit(const oct_decoding *d, int32_t i)
{
    const oct_tensor *t = NULL;
    char text[OCT_TYPE_TEXT_SIZE];

    OCT_TRY(oct_run_output(d->run, i, &t));
    return oct_fail(d->ctx, OCT_ERR_SHAPE, "output %d is %s, which does not fit family %s", (int)i,
                    oct_type_text(&t->type, text), d->detector->family->name);
}

oct_status oct_decoding_whole(oct_decoding *d, int32_t i, oct_view *v)
{
    const oct_tensor *t = NULL;

    OCT_TRY(oct_run_output(d->run, i, &t));
    OCT_TRY(floats_of(d, i, t, &v->x));
    v->rank = t->type.rank;
    memcpy(v->dim, t->type.dim, sizeof(v->dim));
    return OCT_OK;
}

oct_status oct_decoding_view(oct_decoding *d, int32_t i, int32_t rank, oct_view *v)
{
    oct_view all;
    int64_t len = 1;

    OCT_TRY(oct_decoding_whole(d, i, &all));
    if (all.rank != rank + 1 || d->index >= all.dim[0]) return oct_decoding_misfit(d, i);
    v->rank = rank;
    for (int32_t k = 0; k < rank; k++)
        len *= v->dim[k] = all.dim[k + 1];
    v->x = all.x + d->index * len;
    return OCT_OK;
}

static void read_options(oct_nms_options *all, const oct_nms_options *given)
{
    oct_nms_options_init(all);
    if (given) memcpy(all, given, OCT_MIN(given->struct_size, sizeof(*all)));
}

static oct_status check_options(oct_ctx *ctx, const oct_nms_options *o, const oct_mapping *map)
{
    if (o->top_k < 1 || o->max_detections < 1)
        return oct_fail(ctx, OCT_ERR_ARG, "top_k (%d) and max_detections (%d) must be at least 1",
                        (int)o->top_k, (int)o->max_detections);
    if (!(map->scale_x > 0) || !(map->scale_y > 0))
        return oct_fail(ctx, OCT_ERR_ARG, "the mapping to the picture has no scale");
    return OCT_OK;
}

oct_status oct_detector_decode(oct_detector *d, oct_run *r, int32_t index, const oct_mapping *map,
                               const oct_nms_options *options, oct_detection *out, int32_t *n)
{
    OCT_ENTER(d->ctx);
    oct_nms_options o;
    oct_decoding dec = {.ctx = d->ctx,
                        .detector = d,
                        .reading = &d->reading,
                        .run = r,
                        .index = index,
                        .found = &d->found};

    read_options(&o, options);
    if (!d->family->decode)
        return oct_fail(d->ctx, OCT_ERR_STATE, "family %s finds no boxes", d->family->name);
    OCT_TRY(oct_detector_check(d));
    OCT_TRY(check_options(d->ctx, &o, map));
    if (index < 0) return oct_fail(d->ctx, OCT_ERR_ARG, "picture %d of a batch", (int)index);
    if (d->family->is_suppressed) {
        o.iou = INFINITY;
        o.soft_sigma = 0;
    }
    dec.threshold = o.score;
    oct_candidates_start(&d->found, o.top_k);
    OCT_TRY(d->family->decode(&dec));
    return oct_candidates_suppress(&d->found, &o, map, out, n);
}

oct_status oct_detector_scores(oct_detector *d, oct_run *r, int32_t index, const float **scores,
                               int32_t *n)
{
    OCT_ENTER(d->ctx);
    oct_decoding dec = {
        .ctx = d->ctx, .detector = d, .reading = &d->reading, .run = r, .index = index};
    oct_view v;
    int64_t len = 1;

    if (!d->family->is_classifier)
        return oct_fail(d->ctx, OCT_ERR_STATE, "family %s gives boxes, not scores of a picture",
                        d->family->name);
    OCT_TRY(oct_decoding_whole(&dec, d->reading.scores, &v));
    if (v.rank < 2 || index < 0 || index >= v.dim[0])
        return oct_decoding_misfit(&dec, d->reading.scores);
    for (int32_t k = 1; k < v.rank; k++)
        len *= v.dim[k];
    if (len != d->reading.n_classes) return oct_decoding_misfit(&dec, d->reading.scores);
    *scores = v.x + index * len;
    *n = d->reading.n_classes;
    return OCT_OK;
}
