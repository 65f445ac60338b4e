/* SPDX-License-Identifier: Apache-2.0 */
/* Self-distillation: its three kinds, and what it compares in small networks. */
#include "loss/distill.h"
#include "tests/unit/loss_case.h"

enum { MAX_N = 64 };

typedef struct plain {
    const char *kind;
    double s[MAX_N], t[MAX_N], temperature, weight;
    int n, lanes, group, inner; /* distribution l is at l / inner * group * inner + l % inner */
} plain;

static double plain_kl(const plain *p)
{
    double sum = 0;

    for (int l = 0; l < p->lanes; l++) {
        const int at = l / p->inner * p->group * p->inner + l % p->inner;
        double all_s = 0, all_t = 0;

        for (int k = 0; k < p->group; k++) {
            all_s += exp(p->s[at + k * p->inner] / p->temperature);
            all_t += exp(p->t[at + k * p->inner] / p->temperature);
        }
        for (int k = 0; k < p->group; k++) {
            const double p_s = exp(p->s[at + k * p->inner] / p->temperature) / all_s;
            const double p_t = exp(p->t[at + k * p->inner] / p->temperature) / all_t;

            sum += p_t * log(p_t / p_s);
        }
    }
    return sum * p->temperature * p->temperature / p->lanes;
}

static double plain_value(void *arg)
{
    const plain *p = arg;
    double sum = 0;

    if (strcmp(p->kind, "kl") == 0) return p->weight * plain_kl(p);
    for (int i = 0; i < p->n; i++) {
        const double q_s = 1 / (1 + exp(-p->s[i] / p->temperature));
        const double q_t = 1 / (1 + exp(-p->t[i] / p->temperature));

        if (strcmp(p->kind, "mse") == 0)
            sum += (p->s[i] - p->t[i]) * (p->s[i] - p->t[i]) / p->n;
        else
            sum += (q_t * log(q_t / q_s) + (1 - q_t) * log((1 - q_t) / (1 - q_s))) *
                   p->temperature * p->temperature / p->lanes;
    }
    return p->weight * sum;
}

static void teach(loss_case *c, int input, const double *t, int64_t n)
{
    oct_type type = c->f->g->inputs[input]->type;

    assert_ok(c->f->ctx, oct_tensor_make(c->f->ctx, &type, &c->x[input]));
    oct_store_f64(type.dtype, c->x[input]->data, 0, n, t);
}

static void compare(void **state, plain *p, const oct_op *op, int32_t rank, const int64_t *dims)
{
    oct_rng rng;
    loss_case c = loss_begin(state, "distill");

    oct_rng_init(&rng, 11);
    fill_random(&rng, p->s, p->n, -2, 2);
    fill_random(&rng, p->t, p->n, -2, 2);
    loss_set(&c, "temperature", p->temperature, NULL);
    loss_set(&c, "weight_outputs", p->weight, NULL);
    loss_pred(&c, "x", op, rank, dims, p->s);
    if (op == &oct_op_identity) loss_set(&c, "kind", 0, p->kind);
    loss_attach(&c);
    assert_int_equal(c.found.n_pairs, 1);
    assert_ptr_equal(c.found.pairs[0].value, c.pred[0]);
    assert_ptr_equal(c.found.pairs[0].teacher, c.f->g->inputs[1]);
    teach(&c, 1, p->t, p->n);
    loss_run(&c);
    assert_near(c.loss, plain_value(p), 1e-9);
    assert_near(c.parts[1], 0, 1e-12);
    loss_check_grad(&c, 0, p->s, p->n, plain_value, p, 1e-7);
    loss_end(&c);
}

static void mean_square(void **state)
{
    plain p = {.kind = "mse", .temperature = 1, .weight = 2.5, .n = 24};

    compare(state, &p, &oct_op_identity, 3, (int64_t[]){2, 3, 4});
}

static void divergence(void **state)
{
    plain p = {
        .kind = "kl", .temperature = 4, .weight = .5, .n = 24, .lanes = 8, .group = 3, .inner = 4};

    compare(state, &p, &oct_op_identity, 3, (int64_t[]){2, 3, 4});
}

/* Before a Softmax along the last axis: found without being asked for. */
static void before_softmax(void **state)
{
    plain p = {
        .kind = "kl", .temperature = 1.5, .weight = 1, .n = 24, .lanes = 6, .group = 4, .inner = 1};

    compare(state, &p, &oct_op_softmax, 3, (int64_t[]){2, 3, 4});
}

static void before_sigmoid(void **state)
{
    plain p = {.kind = "bce", .temperature = 2, .weight = 1, .n = 24, .lanes = 8};

    compare(state, &p, &oct_op_sigmoid, 3, (int64_t[]){2, 3, 4});
}

/* The same network: no loss, no gradient; far logits stay finite. */
static void teacher_itself(void **state)
{
    const double x[] = {800, -800, 0, 1, 2, 3};
    loss_case c = loss_begin(state, "distill");

    loss_pred(&c, "a", &oct_op_sigmoid, 2, (int64_t[]){2, 3}, x);
    loss_pred(&c, "b", &oct_op_softmax, 2, (int64_t[]){2, 3}, x);
    loss_attach(&c);
    assert_int_equal(c.found.n_pairs, 2);
    teach(&c, 2, x, 6);
    teach(&c, 3, x, 6);
    loss_run(&c);
    assert_near(c.loss, 0, 1e-12);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 6; i++)
            assert_near(oct_tensor_get_f64(c.grad[k], i), 0, 1e-12);
    loss_end(&c);
}

/* Inner values by name of the value or node, each with its kind. */
static void inner_values(void **state)
{
    const int64_t dims[] = {1, 4};
    const double x[] = {.5, -1, 2, 0}, t[] = {0, 0, 1, 0};
    double want = 0;
    loss_case c = loss_begin(state, "distill");
    oct_value *y = loss_input(&c, "x", OCT_DTYPE_F64, 2, dims, x);

    c.pred[c.n_pred++] = y;
    y = oct_emit(&c.f->b, &oct_op_relu, y, NULL, NULL);
    y->producer->name = "layer";
    y = oct_emit(&c.f->b, &oct_op_tanh, y, NULL, NULL);
    y->name = "in:side";
    y = oct_emit(&c.f->b, &oct_op_sigmoid, y, NULL, NULL);
    assert_ok(c.f->ctx, oct_graph_add_output(c.f->g, y));
    loss_set(&c, "values", 0, "layer:mse, in:side:kl");
    loss_set(&c, "weight_outputs", 0, NULL);
    loss_set(&c, "weight_inner", 3, NULL);
    loss_attach(&c);
    /* tanh is the raw prediction of the Sigmoid already: it is compared once */
    assert_int_equal(c.found.n_pairs, 2);
    assert_string_equal(c.found.pairs[0].teacher->name, "teacher/in:side");
    teach(&c, 1, t, 4);
    teach(&c, 2, t, 4);
    loss_run(&c);
    for (int i = 0; i < 4; i++)
        want += 3 * pow(fmax(x[i], 0) - t[i], 2) / 4;
    assert_near(c.parts[0], 0, 1e-12);
    assert_near(c.parts[1], want, 1e-9);
    assert_near(oct_tensor_get_f64(c.grad[0], 2), 3 * 2 * (2. - 1) / 4, 1e-9);
    loss_end(&c);
}

static void unknown_value_is_named(void **state)
{
    loss_case c = loss_begin(state, "distill");

    loss_pred(&c, "x", &oct_op_identity, 2, (int64_t[]){1, 4}, NULL);
    loss_set(&c, "values", 0, "nowhere:kl");
    assert_fails(c.f->ctx, c.row->attach(&c.job, &c.found), OCT_ERR_ARG, "'nowhere'");
    loss_end(&c);
}

/* --- beside labels --- */

enum { PICTURES = 2, ANCHORS = 3, CLASSES = 2, BINS = 4, SIDES = 4 };
enum { N_CLS = PICTURES * ANCHORS * CLASSES, N_REG = PICTURES * ANCHORS * SIDES * BINS };

typedef struct plain_head {
    double cls[N_CLS], reg[N_REG], teacher_cls[N_CLS], teacher_reg[N_REG], weight;
} plain_head;

static double plain_sides(const plain_head *h, int anchor)
{
    double sum = 0;

    for (int k = anchor * SIDES; k < (anchor + 1) * SIDES; k++) {
        const double *s = h->reg + k * BINS, *t = h->teacher_reg + k * BINS;
        double all_s = 0, all_t = 0;

        for (int b = 0; b < BINS; b++) {
            all_s += exp(s[b]);
            all_t += exp(t[b]);
        }
        for (int b = 0; b < BINS; b++)
            sum += exp(t[b]) / all_t * log(exp(t[b]) / all_t * all_s / exp(s[b])) / SIDES;
    }
    return sum;
}

static double plain_head_value(void *arg)
{
    const plain_head *h = arg;
    double sum = 0, n = 0;

    for (int a = 0; a < PICTURES * ANCHORS; a++) {
        double best = 0;

        for (int c = a * CLASSES; c < (a + 1) * CLASSES; c++) {
            const double p = 1 / (1 + exp(-h->cls[c])), q = 1 / (1 + exp(-h->teacher_cls[c]));

            sum += q * log(q / p) + (1 - q) * log((1 - q) / (1 - p));
            best = fmax(best, q);
        }
        sum += best * plain_sides(h, a);
        n += best;
    }
    return h->weight * sum / fmax(n, 1);
}

/* A loss of labels that is always 2, on predictions of anchors. */
static oct_status attach_beside(const oct_loss_job *job, oct_loss_found *out)
{
    oct_builder b = {.g = job->g};
    const oct_loss_found labels = {.why = "labels",
                                   .loss = oct_scalar_of(&b, OCT_DTYPE_F64, 2),
                                   .scores = job->g->outputs[0],
                                   .boxes = job->g->outputs[1]};

    *out = labels;
    out->parts = oct_emit(&b, &oct_op_reshape, out->loss, oct_ints(&b, (int64_t[]){1}, 1), NULL);
    OCT_TRY(b.status);
    return oct_distill_beside(job, job->number[0], out);
}

static void teacher_beside_labels(void **state)
{
    static const oct_loss_row row = {
        .name = "beside", .parts = {"labels", "teacher"}, .attach = attach_beside};
    plain_head h = {.weight = 1.5};
    oct_rng rng;
    loss_case c = loss_begin(state, "distill");

    oct_rng_init(&rng, 5);
    fill_random(&rng, h.cls, N_CLS, -2, 2);
    fill_random(&rng, h.reg, N_REG, -2, 2);
    fill_random(&rng, h.teacher_cls, N_CLS, -2, 2);
    fill_random(&rng, h.teacher_reg, N_REG, -2, 2);
    c.row = &row;
    c.job.number[0] = h.weight;
    loss_pred(&c, "scores", &oct_op_identity, 3, (int64_t[]){PICTURES, ANCHORS, CLASSES}, h.cls);
    loss_pred(&c, "boxes", &oct_op_identity, 3, (int64_t[]){PICTURES, ANCHORS, SIDES * BINS},
              h.reg);
    loss_attach(&c);
    assert_int_equal(c.found.n_pairs, 2);
    teach(&c, 2, h.teacher_cls, N_CLS);
    teach(&c, 3, h.teacher_reg, N_REG);
    loss_check_threads(&c);
    assert_near(c.parts[0], 2, 1e-12);
    assert_near(c.parts[1], plain_head_value(&h), 1e-9);
    loss_check_grad(&c, 0, h.cls, N_CLS, plain_head_value, &h, 1e-7);
    loss_check_grad(&c, 1, h.reg, N_REG, plain_head_value, &h, 1e-7);
    loss_end(&c);
}

/* --- places of a detector --- */

enum { CELLS = 25, KINDS = 3 };
enum { N_KINDS = PICTURES * KINDS * CELLS, N_OBJ = PICTURES * CELLS };
enum { N_DIST = PICTURES * CELLS * SIDES * BINS };

/* Classes and "there is an object" as feature maps, distributions with the places first. */
typedef struct plain_places {
    double cls[N_KINDS], obj[N_OBJ], dist[N_DIST];
    double teacher_cls[N_KINDS], teacher_obj[N_OBJ], teacher_dist[N_DIST];
} plain_places;

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double divergence_of(double s, double t)
{
    const double p = logistic(s), q = logistic(t);

    return q * log(q / p) + (1 - q) * log((1 - q) / (1 - p));
}

static double side_divergence(const double *s, const double *t)
{
    double all_s = 0, all_t = 0, sum = 0;

    for (int b = 0; b < BINS; b++) {
        all_s += exp(s[b]);
        all_t += exp(t[b]);
    }
    for (int b = 0; b < BINS; b++)
        sum += exp(t[b]) / all_t * log(exp(t[b]) / all_t * all_s / exp(s[b]));
    return sum;
}

static double plain_places_value(void *arg)
{
    const plain_places *h = arg;
    double sum = 0, n = 0;

    for (int i = 0; i < N_OBJ; i++) {
        const double there = logistic(h->teacher_obj[i]);
        const int first = i / CELLS * KINDS * CELLS + i % CELLS;
        double best = 0;

        for (int c = 0; c < KINDS; c++) {
            const int at = first + c * CELLS;

            sum += there * divergence_of(h->cls[at], h->teacher_cls[at]);
            best = fmax(best, logistic(h->teacher_cls[at]));
        }
        sum += divergence_of(h->obj[i], h->teacher_obj[i]);
        for (int k = i * SIDES; k < (i + 1) * SIDES; k++)
            sum += best * there / SIDES *
                   side_divergence(h->dist + k * BINS, h->teacher_dist + k * BINS);
        n += best * there;
    }
    return sum / fmax(n, 1);
}

static void places_count_by_the_teachers_scores(void **state)
{
    static plain_places h;
    oct_rng rng;
    loss_case c = loss_begin(state, "distill");

    oct_rng_init(&rng, 7);
    fill_random(&rng, h.cls, N_KINDS, -2, 2);
    fill_random(&rng, h.obj, N_OBJ, -2, 2);
    fill_random(&rng, h.dist, N_DIST, -2, 2);
    fill_random(&rng, h.teacher_cls, N_KINDS, -2, 2);
    fill_random(&rng, h.teacher_obj, N_OBJ, -2, 2);
    fill_random(&rng, h.teacher_dist, N_DIST, -2, 2);
    loss_pred(&c, "cls", &oct_op_sigmoid, 4, (int64_t[]){PICTURES, KINDS, 5, 5}, h.cls);
    loss_pred(&c, "obj", &oct_op_sigmoid, 4, (int64_t[]){PICTURES, 1, 5, 5}, h.obj);
    loss_pred(&c, "dist", &oct_op_softmax, 4, (int64_t[]){PICTURES, CELLS, SIDES, BINS}, h.dist);
    loss_attach(&c);
    assert_int_equal(c.found.n_pairs, 3);
    teach(&c, 3, h.teacher_cls, N_KINDS);
    teach(&c, 4, h.teacher_obj, N_OBJ);
    teach(&c, 5, h.teacher_dist, N_DIST);
    loss_check_threads(&c);
    assert_near(c.loss, plain_places_value(&h), 1e-9);
    loss_check_grad(&c, 0, h.cls, N_KINDS, plain_places_value, &h, 1e-7);
    loss_check_grad(&c, 1, h.obj, N_OBJ, plain_places_value, &h, 1e-7);
    loss_check_grad(&c, 2, h.dist, N_DIST, plain_places_value, &h, 1e-7);
    loss_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mean_square, setup, teardown),
        cmocka_unit_test_setup_teardown(divergence, setup, teardown),
        cmocka_unit_test_setup_teardown(before_softmax, setup, teardown),
        cmocka_unit_test_setup_teardown(before_sigmoid, setup, teardown),
        cmocka_unit_test_setup_teardown(teacher_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(inner_values, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_value_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(teacher_beside_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(places_count_by_the_teachers_scores, setup, teardown),
    };

    return run_test_group(tests);
}
