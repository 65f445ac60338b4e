/* SPDX-License-Identifier: Apache-2.0 */
/* Networks whose outputs are known numbers: a detector sees nothing but its outputs. */
#ifndef OCT_TESTS_DETECT_NET_H
#define OCT_TESTS_DETECT_NET_H

#include "tests/test.h"

#include "graph/op.h"
#include "op/op.h"

/* The picture's input; it need not be used. */
static inline oct_value *picture_input(fixture *f, int64_t batch, int64_t height, int64_t width)
{
    return graph_input(f, "images", OCT_DTYPE_F32, 4, (int64_t[]){batch, 3, height, width});
}

/* A constant filled with `fill`; *data is where its numbers are. */
static inline oct_value *filled(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                                float fill, float **data)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;
    oct_value *v;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = fill;
    if (data) *data = t->data;
    v = oct_value_const(f->g, name, t);
    assert_non_null(v);
    return v;
}

/* One as an output. */
static inline oct_value *output(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                                float fill, float **data)
{
    oct_value *v = filled(f, name, rank, dims, fill, data);

    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
    return v;
}

/* The same behind an activation: its numbers are what goes into it. */
static inline oct_value *activated(fixture *f, const oct_op *op, int32_t rank, const int64_t *dims,
                                   float fill, float **data)
{
    oct_value *v = filled(f, NULL, rank, dims, fill, data);

    v = oct_emit(&f->b, op, v, NULL, NULL);
    if (!v) fail_msg("%s: %s", op->name, oct_ctx_error(f->ctx));
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
    return v;
}

/* What a run of the network finds, in a picture of the input's own size. */
typedef struct found_boxes {
    oct_detection d[64];
    int32_t n;
    char family[32];
} found_boxes;

static inline oct_status find_boxes_of(fixture *f, const char *family, int32_t index,
                                       const oct_nms_options *o, found_boxes *out)
{
    const oct_mapping same = {1, 1, 0, 0, 4096, 4096};
    oct_detector *d = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_status st;

    if ((st = oct_detector_new(f->g, family, &d))) return st;
    snprintf(out->family, sizeof(out->family), "%s", oct_detector_family(d));
    assert_true(strlen(oct_detector_why(d)) > 10);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_run_execute(r));
    st = oct_detector_decode(d, r, index, &same, o, out->d, &out->n);
    oct_run_free(r);
    oct_plan_free(p);
    oct_detector_free(d);
    return st;
}

static inline void find_boxes(fixture *f, const char *want_family, found_boxes *out)
{
    oct_nms_options o;

    oct_nms_options_init(&o);
    o.score = 0.3f;
    o.max_detections = 64;
    assert_ok(f->ctx, find_boxes_of(f, NULL, 0, &o, out));
    assert_string_equal(out->family, want_family);
}

static inline void assert_box(const oct_detection *d, float x, float y, float w, float h,
                              float score, int32_t category)
{
    if (!(fabsf(d->x - x) < 1e-3f && fabsf(d->y - y) < 1e-3f && fabsf(d->width - w) < 1e-3f &&
          fabsf(d->height - h) < 1e-3f && fabsf(d->score - score) < 1e-4f &&
          d->category == category))
        fail_msg("box %g %g %g %g score %g class %d, want %g %g %g %g %g %d", (double)d->x,
                 (double)d->y, (double)d->width, (double)d->height, (double)d->score,
                 (int)d->category, (double)x, (double)y, (double)w, (double)h, (double)score,
                 (int)category);
}

#endif
