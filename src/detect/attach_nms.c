/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppression inside the network, and its results in the two forms of super-gradients: rows of
 * seven (flat), or a count, boxes, scores and classes with max_det places for each picture (batch).
 * Everything works for any batch. Rows are ordered by picture, then by falling score, so that
 * max_det leaves out the worst.
 */
#include "detect/attach.h"
#include "op/grad/rules.h"

enum { IMAGE, BOX, SCORE = 5, CLASS, ROW }; /* columns of a row */

static oct_value *cast(oct_builder *b, oct_value *v, oct_dtype to)
{
    return b->status ? NULL : oct_grad_cast(b, v, to);
}

static oct_value *reshape(oct_builder *b, oct_value *v, int32_t rank, const int64_t *dims)
{
    return oct_emit(b, &oct_op_reshape, v, oct_ints(b, dims, rank), NULL);
}

static oct_value *gather(oct_builder *b, oct_value *v, oct_value *indices, int64_t axis)
{
    oct_value *const in[] = {v, indices};
    oct_node *n = oct_emit_node(b, &oct_op_gather, in, 2, 1);

    oct_emit_int(b, n, "axis", axis);
    return oct_emitted(b, n);
}

static oct_value *gather_nd(oct_builder *b, oct_value *v, oct_value *indices, int64_t batch_dims)
{
    oct_value *const in[] = {v, indices};
    oct_node *n = oct_emit_node(b, &oct_op_gather_nd, in, 2, 1);

    oct_emit_int(b, n, "batch_dims", batch_dims);
    return oct_emitted(b, n);
}

/* Indices of the k greatest (or smallest) along an axis, in order. */
static oct_value *top(oct_builder *b, oct_value *v, oct_value *k, int64_t axis, bool largest)
{
    oct_value *const in[] = {v, k};
    oct_node *n = oct_emit_node(b, &oct_op_top_k, in, 2, 2);

    oct_emit_int(b, n, "axis", axis);
    oct_emit_int(b, n, "largest", largest);
    oct_emit_int(b, n, "sorted", 1);
    return oct_emitted(b, n) ? n->out[1] : NULL;
}

/* The pre_nms anchors whose best class is best. */
static void choose_anchors(oct_builder *b, oct_head *h, int64_t pre_nms)
{
    const int64_t anchors = b->status ? 0 : h->boxes->type.dim[1];
    oct_value *best, *i;

    if (b->status || (anchors >= 0 && anchors <= pre_nms)) return;
    best = oct_grad_reduce(b, &oct_op_reduce_max, h->scores, (int64_t[]){2}, 1, false);
    i = top(b, best, oct_ints(b, &pre_nms, 1), 1, true);
    i = oct_emit(b, &oct_op_unsqueeze, i, oct_ints(b, (int64_t[]){2}, 1), NULL);
    h->boxes = gather_nd(b, h->boxes, i, 1);
    h->scores = gather_nd(b, h->scores, i, 1);
}

/* --- ONNX's operator --- */

/*
 * All kept boxes as rows [k + 1, 7], best first. The last row is -1 everywhere: so no size is ever
 * 0, which some runtimes do not take.
 */
static oct_value *kept_rows(oct_builder *b, const oct_head *h, const oct_attach_nms *o)
{
    static const float last[ROW] = {-1, -1, -1, -1, -1, -1, -1};
    oct_value *scores = oct_grad_transpose(b, h->scores, (int64_t[]){0, 2, 1});
    oct_value *in[] = {h->boxes, scores, oct_ints(b, &o->pre_nms, 1),
                       oct_attach_floats(b, 1, (int64_t[]){1}, &o->iou),
                       oct_attach_floats(b, 1, (int64_t[]){1}, &o->score)};
    oct_value *chosen = oct_emitted(b, oct_emit_node(b, &oct_op_non_max_suppression, in, 5, 1));
    oct_value *place = gather(b, chosen, oct_ints(b, (int64_t[]){0, 2}, 2), 1);
    oct_value *part[4], *rows, *all[2], *score;

    part[0] = cast(b, oct_grad_part(b, chosen, 1, 0, 1), OCT_DTYPE_F32);
    part[1] = gather_nd(b, h->boxes, place, 0);
    part[2] = reshape(b, gather_nd(b, scores, chosen, 0), 2, (int64_t[]){-1, 1});
    part[3] = cast(b, oct_grad_part(b, chosen, 1, 1, 2), OCT_DTYPE_F32);
    all[0] = oct_attach_concat(b, 1, part, 4);
    all[1] = oct_attach_floats(b, 2, (int64_t[]){1, ROW}, last);
    rows = oct_attach_concat(b, 0, all, 2);
    score = reshape(b, oct_grad_part(b, rows, 1, SCORE, CLASS), 1, (int64_t[]){-1});
    return gather(b, rows, top(b, score, oct_emit(b, &oct_op_shape, score, NULL, NULL), 0, true),
                  0);
}

/* How rows spread over pictures. */
typedef struct spread {
    oct_value *n;     /* pictures, int64 [1] */
    oct_value *image; /* of each row, float [k, 1] */
    oct_value *hits;  /* float [k, pictures]: 1 where a row is of a picture */
    oct_value *slot;  /* float [k, 1]: how many better rows its picture has */
    oct_value *keep;  /* bool [k, 1]: among the best max_det of its picture */
} spread;

static oct_value *pictures(oct_builder *b, oct_value *n)
{
    oct_value *count = oct_emit(b, &oct_op_squeeze, n, NULL, NULL);
    oct_value *range = oct_emit(b, &oct_op_range, oct_scalar_of(b, OCT_DTYPE_I64, 0), count,
                                oct_scalar_of(b, OCT_DTYPE_I64, 1));

    return cast(b, range, OCT_DTYPE_F32);
}

static void spread_rows(oct_builder *b, oct_value *rows, const oct_head *h, int64_t max_det,
                        spread *s)
{
    oct_value *shape = oct_emit(b, &oct_op_shape, h->boxes, NULL, NULL), *before, *in[2], *is_real;
    oct_node *sum;

    s->n = oct_grad_part(b, shape, 0, 0, 1);
    s->image = oct_grad_part(b, rows, 1, IMAGE, BOX);
    s->hits = cast(b, oct_emit(b, &oct_op_equal, s->image, pictures(b, s->n), NULL), OCT_DTYPE_F32);
    in[0] = s->hits;
    in[1] = oct_scalar_of(b, OCT_DTYPE_I64, 0);
    sum = oct_emit_node(b, &oct_op_cum_sum, in, 2, 1);
    oct_emit_int(b, sum, "exclusive", 1);
    before = oct_emit(b, &oct_op_mul, s->hits, oct_emitted(b, sum), NULL);
    s->slot = oct_grad_reduce(b, &oct_op_reduce_sum, before, (int64_t[]){1}, 1, true);
    is_real = oct_emit(b, &oct_op_greater_or_equal, s->image, oct_scalar(b, 0), NULL);
    s->keep = oct_emit(b, &oct_op_less, s->slot, oct_scalar(b, (float)max_det), NULL);
    s->keep = oct_emit(b, &oct_op_and, s->keep, is_real, NULL);
}

/* Rows of the pictures one after the other. */
static oct_value *flat_rows(oct_builder *b, oct_value *rows, const spread *s)
{
    oct_value *which =
        oct_emit(b, &oct_op_non_zero, reshape(b, s->keep, 1, (int64_t[]){-1}), NULL, NULL);
    oct_value *count, *key, *image;

    which = reshape(b, which, 1, (int64_t[]){-1});
    rows = gather(b, rows, which, 0);
    /* Picture first, then the place in the order of scores: whole numbers, none of them twice. */
    count = oct_grad_part(b, oct_emit(b, &oct_op_shape, s->image, NULL, NULL), 0, 0, 1);
    image = cast(b, reshape(b, oct_grad_part(b, rows, 1, IMAGE, BOX), 1, (int64_t[]){-1}),
                 OCT_DTYPE_I64);
    key = oct_emit(b, &oct_op_add, oct_emit(b, &oct_op_mul, image, count, NULL), which, NULL);
    return gather(b, rows, top(b, key, oct_emit(b, &oct_op_shape, key, NULL, NULL), 0, false), 0);
}

/* Rows at their places in [pictures, max_det, 7], -1 where there is none. */
static oct_value *padded_rows(oct_builder *b, oct_value *rows, const spread *s, int64_t max_det)
{
    oct_value *most = oct_ints(b, &max_det, 1), *one = oct_ints(b, (int64_t[]){1}, 1);
    oct_value *places = oct_emit(b, &oct_op_mul, s->n, most, NULL), *at, *size[2], *empty, *all;
    oct_value *image = cast(b, s->image, OCT_DTYPE_I64), *slot = cast(b, s->slot, OCT_DTYPE_I64);

    /* What has no place goes to one after the last, which is cut off. */
    at = oct_emit(b, &oct_op_add, oct_emit(b, &oct_op_mul, image, most, NULL), slot, NULL);
    at = oct_emit(b, &oct_op_where, s->keep, at, places);
    size[0] = oct_emit(b, &oct_op_add, places, one, NULL);
    size[1] = oct_ints(b, (int64_t[]){ROW}, 1);
    empty = oct_emit(b, &oct_op_expand, oct_scalar(b, -1), oct_attach_concat(b, 0, size, 2), NULL);
    all = oct_emit(b, &oct_op_scatter_nd, empty, at, rows);
    if (b->status) return NULL;
    {
        oct_value *const in[] = {all, oct_ints(b, (int64_t[]){0}, 1), places,
                                 oct_ints(b, (int64_t[]){0}, 1)};

        all = oct_emitted(b, oct_emit_node(b, &oct_op_slice, in, 4, 1));
    }
    return reshape(b, all, 3, (int64_t[]){-1, max_det, ROW});
}

/* --- outputs --- */

/* The value gets this name, whoever had it, and becomes an output. */
static void add_output(oct_builder *b, oct_value *v, const char *name)
{
    oct_value *other;

    if (b->status) return;
    if ((other = oct_graph_find_value(b->g, name)) && other != v) {
        const char *fresh = oct_graph_fresh_name(b->g, name);

        if (!fresh) b->status = OCT_ERR_MEMORY;
        if (b->status) return;
        other->name = fresh;
    }
    if (!(v->name = oct_arena_strdup(b->g->arena, name)))
        b->status = OCT_ERR_MEMORY;
    else
        b->status = oct_graph_add_output(b->g, v);
}

static void add_padded(oct_builder *b, oct_value *rows, const spread *s, int64_t max_det)
{
    oct_value *kept = oct_emit(b, &oct_op_mul, s->hits, cast(b, s->keep, OCT_DTYPE_F32), NULL);
    oct_value *n = oct_grad_reduce(b, &oct_op_reduce_sum, kept, (int64_t[]){0}, 1, false);
    oct_value *all = padded_rows(b, rows, s, max_det);
    const int64_t flat[] = {-1, max_det};

    n = cast(b, reshape(b, n, 2, (int64_t[]){-1, 1}), OCT_DTYPE_I64);
    add_output(b, n, "num_predictions");
    add_output(b, oct_grad_part(b, all, 2, BOX, SCORE), "pred_boxes");
    add_output(b, reshape(b, oct_grad_part(b, all, 2, SCORE, CLASS), 2, flat), "pred_scores");
    add_output(b, cast(b, reshape(b, oct_grad_part(b, all, 2, CLASS, ROW), 2, flat), OCT_DTYPE_I64),
               "pred_classes");
}

static void suppress_onnx(oct_builder *b, const oct_head *h, const oct_attach_nms *o)
{
    oct_value *rows = kept_rows(b, h, o);
    spread s = {0};

    spread_rows(b, rows, h, o->max_det, &s);
    if (o->is_flat)
        add_output(b, flat_rows(b, rows, &s), "flat_predictions");
    else
        add_padded(b, rows, &s, o->max_det);
}

/* --- TensorRT's plugin --- */

/* Its four results: octet's own row of the operator infers them, else they are known from here. */
static void set_types(oct_builder *b, oct_node *n, int64_t batch, int64_t max_det)
{
    const oct_type types[] = {
        oct_type_make(OCT_DTYPE_I32, 2, (int64_t[]){batch, 1}),
        oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){batch, max_det, 4}),
        oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){batch, max_det}),
        oct_type_make(OCT_DTYPE_I32, 2, (int64_t[]){batch, max_det}),
    };

    for (size_t i = 0; !b->status && i < OCT_COUNT(types); i++) {
        n->out[i]->type = types[i];
        n->out[i]->is_declared = true; /* other runtimes' shape inference ends here */
    }
}

static oct_node *efficient_nms(oct_builder *b, const oct_head *h, const oct_attach_nms *o)
{
    static const char domain[] = "TRT", name[] = "EfficientNMS_TRT";
    const oct_op *op = oct_op_find(domain, name);
    oct_value *const in[] = {h->boxes, h->scores};
    oct_node *n;

    if (!op) op = oct_op_opaque(b->g, domain, name);
    if (!op && !b->status) b->status = OCT_ERR_MEMORY;
    n = b->status ? NULL : oct_emit_node(b, op, in, 2, 4);
    oct_emit_f32(b, n, "score_threshold", o->score);
    oct_emit_f32(b, n, "iou_threshold", o->iou);
    oct_emit_int(b, n, "max_output_boxes", o->max_det);
    oct_emit_int(b, n, "background_class", -1);
    oct_emit_int(b, n, "score_activation", 0);
    oct_emit_int(b, n, "class_agnostic", 0);
    oct_emit_int(b, n, "box_coding", 0);
    oct_emit_str(b, n, "plugin_version", "1");
    if (!b->status) set_types(b, n, h->boxes->type.dim[0], o->max_det);
    return b->status ? NULL : n;
}

/* The plugin's counted results as rows. */
static oct_value *counted_rows(oct_builder *b, oct_node *n, const oct_head *h, int64_t max_det)
{
    oct_value *shape = oct_emit(b, &oct_op_shape, h->boxes, NULL, NULL), *image, *part[4], *rows;
    oct_value *slots, *is_used, *size[2], *v;
    float *x;

    if (b->status) return NULL;
    if (!(x = oct_arena_array(b->g->arena, (size_t)max_det, sizeof(*x)))) {
        b->status = OCT_ERR_MEMORY;
        return NULL;
    }
    for (int64_t i = 0; i < max_det; i++)
        x[i] = (float)i;
    slots = oct_attach_floats(b, 2, (int64_t[]){1, max_det}, x);
    is_used = oct_emit(b, &oct_op_less, slots, cast(b, n->out[0], OCT_DTYPE_F32), NULL);
    v = oct_grad_part(b, shape, 0, 0, 1);
    size[0] = v;
    size[1] = oct_ints(b, &max_det, 1);
    image = reshape(b, pictures(b, v), 2, (int64_t[]){-1, 1});
    image = oct_emit(b, &oct_op_expand, image, oct_attach_concat(b, 0, size, 2), NULL);
    part[0] = reshape(b, image, 2, (int64_t[]){-1, 1});
    part[1] = reshape(b, n->out[1], 2, (int64_t[]){-1, 4});
    part[2] = reshape(b, n->out[2], 2, (int64_t[]){-1, 1});
    part[3] = reshape(b, cast(b, n->out[3], OCT_DTYPE_F32), 2, (int64_t[]){-1, 1});
    rows = oct_attach_concat(b, 1, part, 4);
    v = oct_emit(b, &oct_op_non_zero, reshape(b, is_used, 1, (int64_t[]){-1}), NULL, NULL);
    return gather(b, rows, reshape(b, v, 1, (int64_t[]){-1}), 0);
}

static void suppress_tensorrt(oct_builder *b, const oct_head *h, const oct_attach_nms *o)
{
    static const char *const names[] = {"num_dets", "det_boxes", "det_scores", "det_classes"};
    oct_node *n = efficient_nms(b, h, o);

    if (b->status) return;
    if (o->is_flat) add_output(b, counted_rows(b, n, h, o->max_det), "flat_predictions");
    for (size_t i = 0; !o->is_flat && i < OCT_COUNT(names); i++)
        add_output(b, n->out[i], names[i]);
}

oct_status oct_attach_suppress(oct_builder *b, oct_head head, const oct_attach_nms *o)
{
    oct_graph *g = b->g;

    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    choose_anchors(b, &head, o->pre_nms);
    if (o->is_tensorrt)
        suppress_tensorrt(b, &head, o);
    else
        suppress_onnx(b, &head, o);
    return b->status;
}
