/* SPDX-License-Identifier: Apache-2.0 */
/* How well a network repeats another: figures of hand-made answers, and of small networks. */
#include "test.h"

#include "eval/answers.h"
#include "op/op.h"

/* --- detections --- */

enum { MOST = 4 };

typedef struct answers_case {
    const char *what;
    oct_detection exact[2][MOST], other[2][MOST]; /* of two pictures; width 0 ends a list */
    int64_t sure;
    double repeat, added, ap50;
} answers_case;

#define BOX(x_, y_, score_, class_)                                                                \
    {                                                                                              \
        .x = (x_), .y = (y_), .width = 10, .height = 10, .score = (score_), .category = (class_)   \
    }

static const answers_case cases[] = {
    {"the same",
     {{BOX(0, 0, .9f, 1)}, {BOX(5, 5, .8f, 2)}},
     {{BOX(0, 0, .9f, 1)}, {BOX(5, 5, .8f, 2)}},
     2,
     1,
     0,
     1},
    {"one is gone",
     {{BOX(0, 0, .9f, 1)}, {BOX(5, 5, .8f, 2)}},
     {{BOX(0, 0, .9f, 1)}, {{0}}},
     2,
     .5,
     0,
     51 / 101.0},
    {"another class", {{BOX(0, 0, .9f, 1)}}, {{BOX(0, 0, .9f, 2)}}, 1, 0, 1, 0},
    {"too far away", {{BOX(0, 0, .9f, 1)}}, {{BOX(5, 0, .9f, 1)}}, 1, 0, 1, 0},
    {"a weaker score is enough", {{BOX(0, 0, .31f, 1)}}, {{BOX(0, 0, .16f, 1)}}, 1, 1, -1, 1},
    {"half of it is not", {{BOX(0, 0, .31f, 1)}}, {{BOX(0, 0, .14f, 1)}}, 1, 0, -1, 1},
    {"what was nearly found is not new",
     {{BOX(0, 0, .9f, 1), BOX(50, 0, .2f, 1)}},
     {{BOX(0, 0, .9f, 1), BOX(50, 0, .4f, 1)}},
     1,
     1,
     0,
     1},
    {"one box repeats one",
     {{BOX(0, 0, .9f, 1), BOX(1, 0, .8f, 1)}},
     {{BOX(0, 0, .9f, 1)}},
     2,
     .5,
     0,
     51 / 101.0},
    {"nothing is sure", {{BOX(0, 0, .29f, 1)}}, {{BOX(0, 0, .29f, 1)}}, 0, -1, -1, -1},
};

static oct_answer answer_of(const oct_detection *list)
{
    oct_answer a = {.found = (oct_detection *)list};

    while (a.n_found < MOST && list[a.n_found].width > 0)
        a.n_found++;
    return a;
}

static void must_be(const answers_case *k, const char *name, double got, double want)
{
    if (fabs(got - want) > 1e-6) fail_msg("%s: %s is %g, want %g", k->what, name, got, want);
}

static void boxes_are_compared(void **state)
{
    fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const answers_case *k = &cases[i];
        oct_answer a[2] = {answer_of(k->exact[0]), answer_of(k->exact[1])};
        oct_answer b[2] = {answer_of(k->other[0]), answer_of(k->other[1])};
        const oct_answers exact = {.ctx = f->ctx, .kind = OCT_COMPARED_BOXES, .items = a, .n = 2};
        const oct_answers other = {.ctx = f->ctx, .kind = OCT_COMPARED_BOXES, .items = b, .n = 2};
        oct_compare_result r = {.struct_size = sizeof(r)};

        assert_ok(f->ctx, oct_answers_compare(&exact, &other, .3, .5, &r));
        assert_int_equal(r.sure, k->sure);
        assert_int_equal(r.images, 2);
        must_be(k, "repeat", r.repeat, k->repeat);
        must_be(k, "added", r.added, k->added);
        must_be(k, "AP at .5", r.ap50, k->ap50);
    }
}

/* --- classes --- */

static void classes_are_compared(void **state)
{
    fixture *f = *state;
    const float scores[] = {.1f, NAN, .7f, .2f, .7f, .05f, .3f, .4f};
    oct_answer a[2] = {{.top = {4, 2, 7, 6, 3}, .n_top = 5}, {.top = {1, 2, 3, 4, 5}, .n_top = 5}};
    oct_answer b[2] = {{.top = {4, 2, 7, 6, 3}, .n_top = 5}, {.top = {2, 1, 3, 8, 9}, .n_top = 5}};
    oct_answers exact = {
        .ctx = f->ctx, .kind = OCT_COMPARED_CLASSES, .items = a, .n = 2, .n_classes = 10};
    const oct_answers other = {.ctx = f->ctx, .kind = OCT_COMPARED_CLASSES, .items = b, .n = 2};
    const oct_answers boxes = {.ctx = f->ctx, .kind = OCT_COMPARED_BOXES, .items = b, .n = 2};
    oct_compare_result r = {.struct_size = sizeof(r)};
    int32_t top[OCT_ANSWER_TOP];

    assert_int_equal(oct_answer_best(scores, 8, top), 5);
    assert_memory_equal(top, ((int32_t[]){2, 4, 7, 6, 3}), sizeof(top));
    assert_int_equal(oct_answer_best(scores, 3, top), 2);
    assert_memory_equal(top, ((int32_t[]){2, 0}), 2 * sizeof(*top));
    assert_ok(f->ctx, oct_answers_compare(&exact, &other, .3, .5, &r));
    assert_true(r.top1 == .5 && r.repeat == .5);
    assert_true(fabs(r.top5 - .8) < 1e-12);
    assert_true(r.ap == -1);
    exact.n_classes = 5; /* all of them are the five best */
    assert_ok(f->ctx, oct_answers_compare(&exact, &other, .3, .5, &r));
    assert_true(r.top1 == .5 && r.top5 == -1);
    assert_fails(f->ctx, oct_answers_compare(&exact, &boxes, .3, .5, &r), OCT_ERR_ARG,
                 "not of the same kind");
}

/* --- networks --- */

static oct_status next(void *user, int64_t index, oct_tensor **tensors)
{
    oct_ctx *ctx = user;
    const double v[4] = {1 + (double)index, -2, 3, 4};

    tensors[0] = tensor_of(ctx, OCT_DTYPE_F32, 2, (int64_t[]){1, 4}, v);
    return OCT_OK;
}

/* y = x * by, z = x */
static oct_graph *make_network(oct_ctx *ctx, float by)
{
    fixture f = {.ctx = ctx};
    oct_value *x, *y, *z;

    assert_ok(ctx, oct_graph_new(ctx, "net", &f.g));
    f.b.g = f.g;
    x = graph_input(&f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 4});
    y = oct_emit(&f.b, &oct_op_mul, x, input(&f, 1, &by), NULL);
    z = oct_emit(&f.b, &oct_op_relu, x, NULL, NULL);
    assert_true(y && z);
    assert_ok(ctx, oct_graph_add_output(f.g, y));
    assert_ok(ctx, oct_graph_add_output(f.g, z));
    return f.g;
}

static void noise_of_any_network(void **state)
{
    fixture *f = *state;
    oct_graph *exact = make_network(f->ctx, 1), *other = make_network(f->ctx, 1.1f);
    const char *inputs[] = {"x"}, *name = NULL;
    oct_compare_result r = {.struct_size = sizeof(r)};
    oct_source_options o;
    oct_compare_options co;
    oct_comparison *c = NULL;
    oct_dataset *d = NULL;
    oct_error e;

    oct_source_options_init(&o);
    o.next = next;
    o.user = f->ctx;
    o.inputs = inputs;
    o.n_inputs = 1;
    o.size = 5;
    assert_ok(f->ctx, oct_dataset_from_source(f->ctx, &o, &d));
    assert_ok(f->ctx, oct_compare(exact, other, d, NULL, &r));
    assert_int_equal(r.kind, OCT_COMPARED_OUTPUTS);
    assert_int_equal(r.images, 5);
    assert_true(fabs(r.noise - .01) < 1e-6 && fabs(r.cosine - 1) < 1e-6);
    assert_true(r.repeat == -1 && r.ap == -1);

    oct_compare_options_init(&co);
    co.limit = 3;
    assert_ok(f->ctx, oct_comparison_new(exact, d, &co, &c));
    assert_ok(f->ctx, oct_comparison_run(c, other, &r));
    assert_int_equal(oct_comparison_output(c, 0, &name, &e), 1);
    assert_true(fabs(e.noise - .01) < 1e-6);
    assert_int_equal(oct_comparison_output(c, 1, &name, &e), 1);
    assert_true(e.noise == 0);
    assert_int_equal(oct_comparison_output(c, 2, &name, &e), 0);
    assert_ok(f->ctx, oct_comparison_run(c, exact, &r)); /* figures are of the last run */
    assert_int_equal(r.images, 3);
    assert_true(r.noise == 0);
    oct_comparison_free(c);

    co.sure = 1.5;
    assert_fails(f->ctx, oct_compare(exact, other, d, &co, &r), OCT_ERR_ARG, "1.5");
    oct_dataset_close(d);
    oct_graph_free(exact);
    oct_graph_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boxes_are_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_are_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(noise_of_any_network, setup, teardown),
    };

    return run_test_group(tests);
}
