/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small batch for the losses of heads with distributions over distances: three pictures of 96x96,
 * three classes, predictions from formulas. The second picture has no boxes.
 */
#ifndef OCT_TESTS_DFL_HEAD_CASE_H
#define OCT_TESTS_DFL_HEAD_CASE_H

#include "base/rng.h"
#include "grad/grad.h"
#include "loss/dfl_head.h"
#include "loss/loss.h"
#include "op/op.h"
#include "tests/test.h"

enum { PICTURES = 3, ANCHORS = 189, CLASSES = 3, MAX_BOXES = 4, MAX_BINS = 17 };
enum { LOSS, PARTS, D_CLS, D_REG, N_RESULTS };

typedef struct dfl_case {
    fixture *f;
    const oct_op *op;
    int bins;
    double cls[PICTURES * ANCHORS * CLASSES], reg[PICTURES * ANCHORS * 4 * MAX_BINS];
    double labels[PICTURES * MAX_BOXES * OCT_LABEL_SIZE];
    const char *word[4][2]; /* attributes that are words */
    bool has_epoch;         /* as operand 3 */
    double epoch, atss_epochs;
} dfl_case;

static inline void make_case(dfl_case *c, fixture *f, const oct_op *op, int bins)
{
    static const double first[3][5] = {{0, 5.25, 7.125, 40.75, 52.875},
                                       {1, 21.375, 13.25, 70.625, 61.875},
                                       {1, 60.25, 66.375, 75.875, 79.125}};
    static const double third[2][5] = {{2, 50.125, 20.25, 53.25, 41.375},
                                       {0, 3.5, 40.25, 90.75, 93.125}};

    *c = (dfl_case){.f = f, .op = op, .bins = bins};
    for (int i = 0; i < PICTURES * ANCHORS * CLASSES; i++)
        c->cls[i] = 1.5 * sin(.7 * i + .3) - 2;
    for (int i = 0; i < PICTURES * ANCHORS * 4 * bins; i++)
        c->reg[i] = 2 * cos(.37 * i + .001 * i * i) - .3 * (i % bins);
    for (int i = 0; i < PICTURES * MAX_BOXES * OCT_LABEL_SIZE; i++)
        c->labels[i] = -1;
    memcpy(c->labels, first, sizeof(first));
    memcpy(c->labels + 2 * MAX_BOXES * OCT_LABEL_SIZE, third, sizeof(third));
}

static inline double *label_of(dfl_case *c, int picture, int box)
{
    return c->labels + (picture * MAX_BOXES + box) * OCT_LABEL_SIZE;
}

/* The operator on inputs 0, 1, 2 of a graph of its own. */
static inline oct_node *case_node(const dfl_case *c, oct_dtype dtype)
{
    const int64_t cls[] = {PICTURES, ANCHORS, CLASSES}, reg[] = {PICTURES, ANCHORS, 4 * c->bins};
    const int64_t labels[] = {PICTURES, MAX_BOXES, OCT_LABEL_SIZE};
    oct_ctx *ctx = c->f->ctx;
    oct_value *in[4];
    oct_node *n;

    oct_graph_free(c->f->g);
    assert_ok(ctx, oct_graph_new(ctx, "loss", &c->f->g));
    c->f->b = (oct_builder){.g = c->f->g};
    in[0] = graph_input(c->f, "cls", dtype, 3, cls);
    in[1] = graph_input(c->f, "reg", dtype, 3, reg);
    in[2] = graph_input(c->f, "labels", OCT_DTYPE_F32, 3, labels);
    if (c->has_epoch) in[3] = graph_input(c->f, "epoch", OCT_DTYPE_F32, 0, NULL);
    n = oct_emit_node(&c->f->b, c->op, in, c->has_epoch ? 4 : 3, N_RESULTS);
    assert_non_null(n);
    oct_emit_ints(&c->f->b, n, "strides", (int64_t[]){8, 16, 32}, 3);
    oct_emit_ints(&c->f->b, n, "sizes", (int64_t[]){12, 12, 6, 6, 3, 3}, 6);
    for (int i = 0; i < 4 && c->word[i][0]; i++)
        oct_emit_str(&c->f->b, n, c->word[i][0], c->word[i][1]);
    if (c->has_epoch) oct_emit_f32(&c->f->b, n, "atss_epochs", (float)c->atss_epochs);
    return n;
}

/* Evaluates the graph's outputs, n of them. */
static inline oct_status case_eval(const dfl_case *c, oct_dtype dtype, oct_tensor **out)
{
    const int64_t cls[] = {PICTURES, ANCHORS, CLASSES}, reg[] = {PICTURES, ANCHORS, 4 * c->bins};
    const int64_t labels[] = {PICTURES, MAX_BOXES, OCT_LABEL_SIZE};
    oct_tensor *in[4] = {tensor_of(c->f->ctx, dtype, 3, cls, c->cls),
                         tensor_of(c->f->ctx, dtype, 3, reg, c->reg),
                         tensor_of(c->f->ctx, OCT_DTYPE_F32, 3, labels, c->labels),
                         tensor_of(c->f->ctx, OCT_DTYPE_F32, 0, NULL, &c->epoch)};
    const oct_status st = oct_graph_eval(c->f->g, in, out, NULL);

    for (int i = 0; i < 4; i++)
        oct_tensor_unref(in[i]);
    return st;
}

/* All results of the operator; the caller gives them to case_free(). */
static inline oct_status case_run(const dfl_case *c, oct_dtype dtype, oct_tensor *out[N_RESULTS])
{
    oct_node *n = case_node(c, dtype);

    assert_non_null(oct_emitted(&c->f->b, n));
    for (int i = 0; i < N_RESULTS; i++) {
        assert_ok(c->f->ctx, oct_graph_add_output(c->f->g, n->out[i]));
        out[i] = NULL;
    }
    assert_ok(c->f->ctx, oct_graph_verify(c->f->g));
    return case_eval(c, dtype, out);
}

static inline void case_free(oct_tensor *out[N_RESULTS])
{
    for (int i = 0; i < N_RESULTS; i++)
        oct_tensor_unref(out[i]);
}

static inline double sum_of(const oct_tensor *t, bool absolute)
{
    double sum = 0;

    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        sum += absolute ? fabs(oct_tensor_get_f64(t, i)) : oct_tensor_get_f64(t, i);
    return sum;
}

static inline void near(const char *what, double have, double want, double tolerance)
{
    if (!(fabs(have - want) <= tolerance * OCT_MAX(1, fabs(want))))
        fail_msg("%s is %.12g, expected %.12g", what, have, want);
}

/* What a project's own code gives in float64: the parts, and the sums of absolute gradients. */
typedef struct expected {
    double parts[3], d_cls, d_reg;
} expected;

static inline void expect_values(const dfl_case *c, const expected *want, double tolerance)
{
    for (int dtype = 0; dtype < 2; dtype++) {
        const double allowed = dtype ? 1e-6 : tolerance;
        oct_tensor *out[N_RESULTS];
        double sum = 0;

        assert_ok(c->f->ctx, case_run(c, dtype ? OCT_DTYPE_F32 : OCT_DTYPE_F64, out));
        for (int i = 0; i < 3; i++) {
            near("a part", oct_tensor_get_f64(out[PARTS], i), want->parts[i], allowed);
            sum += want->parts[i];
        }
        near("the loss", oct_tensor_get_f64(out[LOSS], 0), sum, allowed);
        near("the gradient of scores", sum_of(out[D_CLS], true), want->d_cls, allowed);
        near("the gradient of distances", sum_of(out[D_REG], true), want->d_reg, allowed);
        case_free(out);
    }
}

/* --- with the assignment held --- */

static inline void held_head(const dfl_case *c, oct_dfl_head *h, const oct_dfl_loss *loss,
                             oct_arena *arena, double *d_cls, double *d_reg)
{
    *h = (oct_dfl_head){.batch = PICTURES,
                        .n_anchors = ANCHORS,
                        .n_classes = CLASSES,
                        .bins = c->bins,
                        .dtype = OCT_DTYPE_F64,
                        .cls = c->cls,
                        .reg = c->reg,
                        .d_cls = d_cls,
                        .d_reg = d_reg};
    assert_true(oct_anchor_levels_read((int64_t[]){8, 16, 32}, 3, (int64_t[]){12, 12, 6, 6, 3, 3},
                                       6, &h->levels));
    h->labels = (oct_label_boxes){MAX_BOXES, oct_arena_array(arena, PICTURES, sizeof(int64_t)),
                                  oct_arena_array(arena, PICTURES * MAX_BOXES, 4 * sizeof(double)),
                                  oct_arena_array(arena, PICTURES * MAX_BOXES, sizeof(int32_t))};
    assert_true(h->labels.n && h->labels.box && h->labels.label);
    assert_ok(c->f->ctx, oct_dfl_head_alloc(h, loss, arena, 2));
    for (int i = 0; i < PICTURES * MAX_BOXES; i++) {
        const double *label = c->labels + i * OCT_LABEL_SIZE;

        if (label[0] < 0) continue;
        h->labels.label[i] = (int32_t)label[0];
        memcpy(h->labels.box + 4 * (ptrdiff_t)i, label + 1, 4 * sizeof(double));
        h->labels.n[i / MAX_BOXES]++;
    }
    oct_dfl_head_assign(h, loss);
}

static inline double held_loss(oct_dfl_head *h, const oct_dfl_loss *loss)
{
    double parts[OCT_DFL_N_PARTS];

    oct_dfl_head_sum(h, loss, parts);
    return parts[0] + parts[1] + parts[2];
}

/* d loss / d x[i] at every step-th element. */
static inline int differences(oct_dfl_head *h, const oct_dfl_loss *loss, double *x,
                              const double *dx, int64_t n, int64_t step)
{
    const double size = 1e-5;
    int n_moved = 0;

    for (int64_t i = 0; i < n; i += step) {
        const double x0 = x[i];
        double want;

        x[i] = x0 + size;
        want = held_loss(h, loss);
        x[i] = x0 - size;
        want = (want - held_loss(h, loss)) / (2 * size);
        x[i] = x0;
        near("a derivative", dx[i], want, 1e-7);
        n_moved += want != 0;
    }
    return n_moved;
}

static inline void check_slopes(dfl_case *c, const oct_dfl_loss *loss)
{
    static double d_cls[PICTURES * ANCHORS * CLASSES], d_reg[PICTURES * ANCHORS * 4 * MAX_BINS];
    static double scrap[PICTURES * ANCHORS * 4 * MAX_BINS];
    oct_arena *arena = oct_arena_new(c->f->ctx);
    oct_dfl_head h;
    int positives = 0;

    assert_non_null(arena);
    held_head(c, &h, loss, arena, d_cls, d_reg);
    held_loss(&h, loss);
    h.n_threads = 1; /* many small sums */
    h.d_cls = h.d_reg = scrap;
    assert_true(differences(&h, loss, c->cls, d_cls, PICTURES * ANCHORS * CLASSES, 17) > 50);
    for (int64_t i = 0; i < PICTURES * ANCHORS; i++) {
        if (h.assigned.q[i] == 0) continue;
        if (positives++ % 5 == 0) {
            const int64_t at = i * 4 * c->bins;

            assert_true(differences(&h, loss, c->reg + at, d_reg + at, 4 * c->bins, 7) > 0);
        }
    }
    assert_true(positives > 10);
    oct_arena_free(arena);
}

#endif
