/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YOLOX's loss against a second implementation with whole matrices of costs and overlaps; gradients
 * against its differences with the assignment held fixed.
 */
#include "tests/unit/loss_case.h"

enum {
    PICTURES = 2,
    SIDE = 64,
    ANCHORS = 8 * 8 + 4 * 4 + 2 * 2,
    CLASSES = 3,
    CHANNELS = 5 + CLASSES,
    BOXES = 4
};

typedef struct plain {
    double x[PICTURES][ANCHORS][CHANNELS];
    double label[PICTURES][BOXES][OCT_LABEL_SIZE];
    double weight[4], radius;
    bool box_or_centre, giou;
    /* the assignment */
    int match[PICTURES][ANCHORS];
    double iou[PICTURES][ANCHORS];
} plain;

/* Column, row and stride of an anchor. */
static void cell(int k, double *col, double *row, double *stride)
{
    int s = 8;

    for (; k >= SIDE / s * (SIDE / s); s *= 2)
        k -= SIDE / s * (SIDE / s);
    *col = k % (SIDE / s);
    *row = k / (SIDE / s);
    *stride = s;
}

static void box_of(const double *x, int k, double box[4])
{
    double col, row, s;

    cell(k, &col, &row, &s);
    box[0] = (x[0] + col) * s - exp(x[2]) * s / 2;
    box[1] = (x[1] + row) * s - exp(x[3]) * s / 2;
    box[2] = (x[0] + col) * s + exp(x[2]) * s / 2;
    box[3] = (x[1] + row) * s + exp(x[3]) * s / 2;
}

static double overlap(const double *a, const double *b, double *giou)
{
    const double w = fmin(a[2], b[2]) - fmax(a[0], b[0]), h = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double inter = w > 0 && h > 0 ? w * h : 0;
    const double uni = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter;
    const double all =
        (fmax(a[2], b[2]) - fmin(a[0], b[0])) * (fmax(a[3], b[3]) - fmin(a[1], b[1]));

    if (giou) *giou = inter / uni - (all - uni) / all;
    return inter / uni;
}

static double clamped_log(double p)
{
    return p > 0 ? fmax(log(p), -100) : -100;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Where the anchor lies: bit 0 near the centre of the box, bit 1 inside it. */
static int where(const plain *p, const double *row, int k)
{
    const double *b = row + 1;
    double x, y, s;
    int bits = 0;

    cell(k, &x, &y, &s);
    x = (x + .5) * s;
    y = (y + .5) * s;
    if (fabs(x - (b[0] + b[2]) / 2) < p->radius * s && fabs(y - (b[1] + b[3]) / 2) < p->radius * s)
        bits |= 1;
    if (x > b[0] && x < b[2] && y > b[1] && y < b[3]) bits |= 2;
    return bits;
}

static void costs_of(const plain *p, int i, int n, bool *is_candidate, double cost[][ANCHORS],
                     double iou[][ANCHORS])
{
    for (int k = 0; k < ANCHORS; k++) {
        const double *x = p->x[i][k];
        double box[4];

        is_candidate[k] = false;
        box_of(x, k, box);
        for (int j = 0; j < n; j++) {
            const double *row = p->label[i][j];
            const int bits = where(p, row, k), best = p->box_or_centre ? 3 : 1;

            is_candidate[k] |= p->box_or_centre ? bits != 0 : (bits & 1) != 0;
            iou[j][k] = overlap(row + 1, box, NULL);
            cost[j][k] = -3 * log(iou[j][k] + 1e-8);
            for (int c = 0; c < CLASSES; c++) {
                const double s = sqrt(sigmoid(x[5 + c]) * sigmoid(x[4]));

                cost[j][k] -= c == (int)row[0] ? clamped_log(s) : clamped_log(1 - s);
            }
            if ((bits & best) != best) cost[j][k] += p->box_or_centre ? 1e5 : 1e6;
        }
    }
}

/* The smallest (sign 1) or largest (sign -1) candidate that is not used yet; -1: none. */
static int next_of(const double *v, const bool *is_candidate, const bool *used, double sign)
{
    int best = -1;

    for (int k = 0; k < ANCHORS; k++)
        if (is_candidate[k] && !used[k] && (best < 0 || sign * v[k] < sign * v[best])) best = k;
    return best;
}

static void assign(plain *p, int i)
{
    static double cost[BOXES][ANCHORS], iou[BOXES][ANCHORS];
    static bool taken[BOXES][ANCHORS];
    bool is_candidate[ANCHORS];
    int n = 0;

    while (n < BOXES && p->label[i][n][0] >= 0)
        n++;
    costs_of(p, i, n, is_candidate, cost, iou);
    memset(taken, 0, sizeof(taken));
    for (int j = 0; j < n; j++) {
        bool used[ANCHORS] = {false};
        double sum = 0;

        for (int t = 0, k; t < 10 && (k = next_of(iou[j], is_candidate, used, -1)) >= 0; t++) {
            used[k] = true;
            sum += iou[j][k];
        }
        for (int t = 0, k; t < fmax((int)sum, 1); t++)
            if ((k = next_of(cost[j], is_candidate, taken[j], 1)) >= 0) taken[j][k] = true;
    }
    for (int k = 0; k < ANCHORS; k++) {
        int n_taken = 0, least = 0;

        p->match[i][k] = -1;
        for (int j = 0; j < n; j++) {
            if (cost[j][k] < cost[least][k]) least = j;
            if (taken[j][k]) p->match[i][k] = j;
            n_taken += taken[j][k];
        }
        if (n_taken > 1) p->match[i][k] = least;
        if (n_taken) p->iou[i][k] = iou[p->match[i][k]][k];
    }
}

static double bce(double x, double t)
{
    return -t * log(sigmoid(x)) - (1 - t) * log(1 - sigmoid(x));
}

/* The four parts with the assignment as it is. */
static void parts_of(const plain *p, double out[4])
{
    int n_fg = 0;

    memset(out, 0, 4 * sizeof(*out));
    for (int i = 0; i < PICTURES; i++)
        for (int k = 0; k < ANCHORS; k++) {
            const double *x = p->x[i][k],
                         *row = p->label[i][p->match[i][k] < 0 ? 0 : p->match[i][k]];
            double box[4], giou, iou, col, line, s;

            out[1] += bce(x[4], p->match[i][k] >= 0);
            if (p->match[i][k] < 0) continue;
            n_fg++;
            box_of(x, k, box);
            cell(k, &col, &line, &s);
            iou = overlap(box, row + 1, &giou);
            out[0] += p->giou ? 1 - giou : 1 - iou * iou;
            for (int c = 0; c < CLASSES; c++)
                out[2] += bce(x[5 + c], c == (int)row[0] ? p->iou[i][k] : 0);
            out[3] += fabs(x[0] - ((row[1] + row[3]) / 2 / s - col)) +
                      fabs(x[1] - ((row[2] + row[4]) / 2 / s - line)) +
                      fabs(x[2] - log((row[3] - row[1]) / s + 1e-8)) +
                      fabs(x[3] - log((row[4] - row[2]) / s + 1e-8));
        }
    for (int k = 0; k < 4; k++)
        out[k] *= p->weight[k] / fmax(n_fg, 1);
}

static double plain_value(void *arg)
{
    double parts[4];

    parts_of(arg, parts);
    return parts[0] + parts[1] + parts[2] + parts[3];
}

static plain *make(uint64_t seed)
{
    static plain p;
    oct_rng rng;

    p = (plain){.weight = {5, 1, 1, 0}, .radius = 1.5};
    oct_rng_init(&rng, seed);
    for (int i = 0; i < PICTURES; i++) {
        for (int k = 0; k < ANCHORS; k++) {
            fill_random(&rng, p.x[i][k], CHANNELS, -1, 2);
            p.x[i][k][2] *= .7; /* logarithms of sizes */
            p.x[i][k][3] *= .7;
        }
        for (int j = 0; j < BOXES; j++) {
            double *row = p.label[i][j];

            row[0] = (double)oct_rng_below(&rng, CLASSES);
            fill_random(&rng, row + 1, 2, 0, 40);
            row[3] = row[1] + 6 + 30 * oct_rng_f64(&rng);
            row[4] = row[2] + 6 + 30 * oct_rng_f64(&rng);
            for (int e = 1; e < OCT_LABEL_SIZE; e++)
                row[e] = (float)row[e];
        }
    }
    return &p;
}

static void begin(loss_case *c, void **state, const plain *p)
{
    *c = loss_begin(state, "yolox");
    loss_input(c, "images", OCT_DTYPE_F32, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE}, NULL);
    loss_pred(c, "x", &oct_op_identity, 3, (int64_t[]){PICTURES, ANCHORS, CHANNELS}, p->x[0][0]);
    c->job.labels = loss_input(c, "labels", OCT_DTYPE_F32, 3,
                               (int64_t[]){PICTURES, BOXES, OCT_LABEL_SIZE}, p->label[0][0]);
}

static int compare(loss_case *c, plain *p)
{
    double parts[4];
    int n_fg = 0;

    for (int i = 0; i < PICTURES; i++)
        assign(p, i);
    loss_attach(c);
    loss_run(c);
    parts_of(p, parts);
    for (int k = 0; k < 4; k++)
        assert_near(c->parts[k], parts[k], 1e-9);
    loss_check_grad(c, 0, p->x[0][0], (int64_t)PICTURES * ANCHORS * CHANNELS, plain_value, p, 1e-6);
    for (int i = 0; i < PICTURES; i++)
        for (int k = 0; k < ANCHORS; k++)
            n_fg += p->match[i][k] >= 0;
    loss_end(c);
    return n_fg;
}

static void as_yolox_has_it(void **state)
{
    plain *p = make(1);
    loss_case c;

    begin(&c, state, p);
    assert_true(compare(&c, p) > PICTURES * BOXES);
}

static void with_l1_and_giou(void **state)
{
    plain *p = make(2);
    loss_case c;

    begin(&c, state, p);
    p->weight[3] = 1.5;
    p->giou = true;
    loss_set(&c, "weight_l1", 1.5, NULL);
    loss_set(&c, "overlap", 0, "giou");
    assert_true(compare(&c, p) > 0);
}

static void candidates_in_boxes(void **state)
{
    plain *p = make(3);
    loss_case c;

    begin(&c, state, p);
    p->box_or_centre = true;
    p->radius = 2.5;
    loss_set(&c, "candidates", 0, "box_or_centre");
    loss_set(&c, "radius", 2.5, NULL);
    assert_true(compare(&c, p) > 0);
}

/* One picture without boxes: objectness alone. */
static void picture_without_boxes(void **state)
{
    plain *p = make(4);
    loss_case c;

    p->label[1][0][0] = -1;
    begin(&c, state, p);
    assert_true(compare(&c, p) > 0);
}

static void batch_without_boxes(void **state)
{
    plain *p = make(5);
    loss_case c;

    p->label[0][0][0] = p->label[1][0][0] = -1;
    begin(&c, state, p);
    assert_int_equal(compare(&c, p), 0);
}

/* Two equal boxes: the first gets every anchor that both take. A box far outside of the picture has
 * no candidates of its own; like YOLOX, it competes for those of others. */
static void equal_and_far_boxes(void **state)
{
    plain *p = make(6);
    loss_case c;

    memcpy(p->label[0][1], p->label[0][0], sizeof(p->label[0][0]));
    for (int e = 1; e < OCT_LABEL_SIZE; e++)
        p->label[1][2][e] += 1000;
    begin(&c, state, p);
    assert_true(compare(&c, p) > 0);
    for (int k = 0; k < ANCHORS; k++)
        assert_int_not_equal(p->match[0][k], 1);
}

/* A row without an area counts as none. */
static void empty_boxes(void **state)
{
    plain *p = make(7);
    loss_case c;

    for (int i = 0; i < PICTURES; i++) {
        p->label[i][3][3] = p->label[i][3][1];
        p->label[i][2][0] = 1;
    }
    begin(&c, state, p);
    p->label[0][3][0] = p->label[1][3][0] = -1;
    assert_true(compare(&c, p) > 0);
}

static void any_number_of_threads(void **state)
{
    plain *p = make(9);
    loss_case c;

    begin(&c, state, p);
    loss_attach(&c);
    loss_check_threads(&c);
    loss_end(&c);
}

/* As an export that decodes boxes has them: scores after Sigmoid, channels before anchors, then
 * centres plus the grid and sizes as exponents, in pixels. */
static void decoded_boxes(void **state)
{
    enum { MANY = 9 }; /* classes: what is not a box could be taken for predictions as well */
    const int64_t channels[] = {4, 1, MANY}, cut[] = {0, 2, 4, 5 + MANY};
    static double x[3][PICTURES * MANY * ANCHORS];
    oct_value *part[3], *all;
    plain *p = make(10);
    loss_case c = loss_begin(state, "yolox");
    oct_builder *b = &c.f->b;
    oct_node *n;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    loss_input(&c, "images", OCT_DTYPE_F32, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE}, NULL);
    for (int k = 0; k < 3; k++) {
        fill_random(&rng, x[k], PICTURES * channels[k] * ANCHORS, -2, 1);
        part[k] = loss_input(&c, NULL, OCT_DTYPE_F64, 3,
                             (int64_t[]){PICTURES, channels[k], ANCHORS}, x[k]);
        c.pred[c.n_pred++] = part[k];
        if (k) part[k] = oct_emit(b, &oct_op_sigmoid, part[k], NULL, NULL);
    }
    n = oct_emit_node(b, &oct_op_concat, part, 3, 1);
    oct_emit_int(b, n, "axis", 1);
    all = oct_emitted(b, n);
    n = oct_emit_node(b, &oct_op_transpose, &all, 1, 1);
    oct_emit_ints(b, n, "perm", (int64_t[]){0, 2, 1}, 3);
    all = oct_emitted(b, n);
    for (int k = 0; k < 3; k++) {
        n = oct_emit_node(b, &oct_op_slice,
                          (oct_value *[]){all, oct_ints(b, &cut[k], 1), oct_ints(b, &cut[k + 1], 1),
                                          oct_ints(b, (int64_t[]){2}, 1)},
                          4, 1);
        part[k] = oct_emitted(b, n);
    }
    part[0] = oct_emit(b, &oct_op_add, part[0], oct_scalar_of(b, OCT_DTYPE_F64, 3), NULL);
    part[1] = oct_emit(b, &oct_op_exp, part[1], NULL, NULL);
    n = oct_emit_node(b, &oct_op_concat, part, 3, 1);
    oct_emit_int(b, n, "axis", 2);
    assert_ok(c.f->ctx, oct_graph_add_output(c.f->g, oct_emitted(b, n)));
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_F32, 3,
                              (int64_t[]){PICTURES, BOXES, OCT_LABEL_SIZE}, p->label[0][0]);
    loss_attach(&c);
    assert_non_null(strstr(c.found.why, "9 classes"));
    loss_run(&c);
    /* objectness of an anchor without a box, of the gradient [pictures, 1, anchors] */
    for (int k = 0; k < ANCHORS; k++) {
        const double slope = oct_tensor_get_f64(c.grad[1], k);
        const double first = oct_tensor_get_f64(c.grad[1], 0);

        if (oct_tensor_get_f64(c.grad[2], k) == 0 && oct_tensor_get_f64(c.grad[2], 0) == 0)
            assert_near(slope / first, sigmoid(x[1][k]) / sigmoid(x[1][0]), 1e-9);
    }
    loss_end(&c);
}

static void bad_labels_are_refused(void **state)
{
    plain *p = make(8);
    loss_case c;

    p->label[1][1][0] = CLASSES;
    begin(&c, state, p);
    loss_attach(&c);
    assert_fails(c.f->ctx, loss_try(&c), OCT_ERR_ARG,
                 "picture 1 of the batch has a box of class 3");
    p->label[1][1][0] = 0;
    p->label[1][1][2] = NAN;
    oct_store_f64(OCT_DTYPE_F32, c.x[2]->data, 0, (int64_t)PICTURES * BOXES * OCT_LABEL_SIZE,
                  p->label[0][0]);
    assert_fails(c.f->ctx, loss_try(&c), OCT_ERR_ARG, "coordinate");
    loss_end(&c);
}

static void other_networks_are_refused(void **state)
{
    loss_case c = loss_begin(state, "yolox");

    loss_input(&c, "images", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE}, NULL);
    loss_pred(&c, "x", &oct_op_identity, 3, (int64_t[]){1, ANCHORS + 2, CHANNELS}, NULL);
    c.job.labels =
        loss_input(&c, "labels", OCT_DTYPE_F32, 3, (int64_t[]){1, BOXES, OCT_LABEL_SIZE}, NULL);
    assert_fails(c.f->ctx, c.row->attach(&c.job, &c.found), OCT_ERR_UNSUPPORTED, "5 + classes");
    loss_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_yolox_has_it, setup, teardown),
        cmocka_unit_test_setup_teardown(with_l1_and_giou, setup, teardown),
        cmocka_unit_test_setup_teardown(candidates_in_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(picture_without_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(batch_without_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_and_far_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(any_number_of_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(decoded_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_labels_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(other_networks_are_refused, setup, teardown),
    };

    return run_test_group(tests);
}
