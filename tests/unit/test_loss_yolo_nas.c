/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of YOLO-NAS: SuperGradients' values, gradients, labels that are odd, finding
 * predictions.
 */
#include "tests/unit/dfl_head_case.h"

static void set_words(dfl_case *c, const char *assigner, const char *classification)
{
    c->word[0][0] = "assigner";
    c->word[0][1] = assigner;
    c->word[1][0] = "classification";
    c->word[1][1] = classification;
}

/* By SuperGradients 3.7.1 in float64; its ATSS rounds target scores to float32. */
static void values(void **state)
{
    static const struct {
        const char *assigner, *classification;
        expected want;
        double tolerance;
    } rows[] = {
        {"tal",
         "varifocal",
         {{5.5260776820, 1.0589177725, 1.3310961191}, 10.77211961, 2.76334664},
         1e-8},
        {"tal",
         "focal",
         {{6.7278885907, 1.0589177725, 1.3310961191}, 14.51112614, 2.76334664},
         1e-8},
        {"atss",
         "varifocal",
         {{3.9114478810, 1.2660340024, 1.3981856010}, 6.04047772, 2.83642298},
         2e-7},
        {"atss",
         "focal",
         {{2.8440562682, 1.2660340024, 1.3981856010}, 5.79170663, 2.83642298},
         2e-7},
    };
    dfl_case c;

    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
        set_words(&c, rows[i].assigner, rows[i].classification);
        expect_values(&c, &rows[i].want, rows[i].tolerance);
    }
}

/* The first epochs have the loss of the other assigner, with its own alpha. */
static void assigner_by_epoch(void **state)
{
    static const char *const classifications[] = {"varifocal", "focal"};

    for (int i = 0; i < 4; i++) {
        const bool is_early = i % 2;
        oct_tensor *want[N_RESULTS], *have[N_RESULTS];
        dfl_case c;

        make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
        set_words(&c, is_early ? "atss" : "tal", classifications[i / 2]);
        assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, want));
        set_words(&c, "tal", classifications[i / 2]);
        c.has_epoch = true;
        c.atss_epochs = 3;
        c.epoch = is_early ? 2 : 3;
        assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, have));
        for (int k = 0; k < N_RESULTS; k++)
            assert_memory_equal(want[k]->data, have[k]->data,
                                (size_t)oct_tensor_len(want[k]) * sizeof(double));
        case_free(want);
        case_free(have);
    }
}

static oct_dfl_loss loss_of(bool is_atss, oct_class_term term)
{
    return (oct_dfl_loss){.is_atss = is_atss,
                          .tal = {.topk = 13, .alpha = 1, .beta = 6},
                          .atss = {.topk = 9, .side = 5, .margin = 1e-9, .eps = 1e-10},
                          .term = term,
                          .focal_alpha = .25,
                          .weight = {1, 2.5, .5}};
}

static void slopes(void **state)
{
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    for (int is_atss = 0; is_atss < 2; is_atss++)
        for (int focal = 0; focal < 2; focal++) {
            const oct_dfl_loss loss =
                loss_of(is_atss, focal ? OCT_CLASS_FOCAL : OCT_CLASS_VARIFOCAL);

            check_slopes(&c, &loss);
        }
}

/* The gradient rule: saved gradients times that of the loss. */
static void chain(void **state)
{
    oct_tensor *out[N_RESULTS], *got[2] = {0};
    oct_value *twice, *wrt[2], *dwrt[2];
    oct_node *n;
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out));
    n = case_node(&c, OCT_DTYPE_F64);
    assert_non_null(oct_emitted(&c.f->b, n));
    twice =
        oct_emit(&c.f->b, &oct_op_mul, n->out[0], oct_scalar_of(&c.f->b, OCT_DTYPE_F64, 2), NULL);
    wrt[0] = n->in[0];
    wrt[1] = n->in[1];
    assert_ok(c.f->ctx, oct_grad(c.f->g, twice, wrt, 2, dwrt));
    for (int i = 0; i < 2; i++)
        assert_ok(c.f->ctx, oct_graph_add_output(c.f->g, dwrt[i]));
    assert_ok(c.f->ctx, case_eval(&c, OCT_DTYPE_F64, got));
    for (int i = 0; i < 2; i++) {
        for (int64_t k = 0; k < oct_tensor_len(got[i]); k++)
            assert_true(oct_tensor_get_f64(got[i], k) == 2 * oct_tensor_get_f64(out[D_CLS + i], k));
        oct_tensor_unref(got[i]);
    }
    case_free(out);
}

static void same_for_any_number_of_threads(void **state)
{
    static double grad[2][2][PICTURES * ANCHORS * 4 * 17];
    const oct_dfl_loss loss = loss_of(false, OCT_CLASS_VARIFOCAL);
    double parts[2][OCT_DFL_N_PARTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    for (int i = 0; i < 2; i++) {
        oct_arena *arena = oct_arena_new(c.f->ctx);
        oct_dfl_head h;

        assert_non_null(arena);
        held_head(&c, &h, &loss, arena, grad[i][0], grad[i][1]);
        h.n_threads = i + 1; /* memory is there for two */
        oct_dfl_head_assign(&h, &loss);
        oct_dfl_head_sum(&h, &loss, parts[i]);
        oct_arena_free(arena);
    }
    assert_memory_equal(parts[0], parts[1], sizeof(parts[0]));
    assert_memory_equal(grad[0], grad[1], sizeof(grad[0]));
}

static void clear_labels(dfl_case *c)
{
    for (size_t i = 0; i < OCT_COUNT(c->labels); i++)
        c->labels[i] = -1;
}

static void no_boxes_at_all(void **state)
{
    oct_tensor *out[N_RESULTS];
    dfl_case c;

    for (int kind = 0; kind < 2; kind++) {
        make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
        set_words(&c, kind ? "atss" : "tal", "varifocal");
        clear_labels(&c);
        assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out));
        assert_true(oct_tensor_get_f64(out[PARTS], 0) > 0);
        assert_true(oct_tensor_get_f64(out[PARTS], 1) == 0);
        assert_true(oct_tensor_get_f64(out[PARTS], 2) == 0);
        assert_true(sum_of(out[D_REG], true) == 0);
        /* All logits should become smaller. */
        for (int64_t i = 0; i < oct_tensor_len(out[D_CLS]); i++)
            assert_true(oct_tensor_get_f64(out[D_CLS], i) > 0);
        case_free(out);
    }
}

/* One tiny box that holds no anchor's point is as none. */
static void box_between_points(void **state)
{
    oct_tensor *none[N_RESULTS], *tiny[N_RESULTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    clear_labels(&c);
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, none));
    memcpy(label_of(&c, 0, 0), (double[]){1, 37, 37, 39, 39}, 5 * sizeof(double));
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, tiny));
    assert_true(oct_tensor_get_f64(none[LOSS], 0) == oct_tensor_get_f64(tiny[LOSS], 0));
    case_free(none);
    case_free(tiny);
}

/* Boxes without an area. */
static void rows_that_do_not_count(void **state)
{
    oct_tensor *want[N_RESULTS], *have[N_RESULTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, want));
    memcpy(label_of(&c, 1, 0), (double[]){2, 0, 0, 0, 0}, 5 * sizeof(double));
    memmove(label_of(&c, 2, 1), label_of(&c, 2, 0), 10 * sizeof(double));
    label_of(&c, 2, 0)[OCT_LABEL_X2] = label_of(&c, 2, 0)[OCT_LABEL_X1];
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, have));
    for (int i = 0; i < N_RESULTS; i++) {
        assert_memory_equal(want[i]->data, have[i]->data,
                            (size_t)oct_tensor_len(want[i]) * sizeof(double));
        oct_tensor_unref(want[i]);
    }
    case_free(have);
}

static void labels_that_are_wrong(void **state)
{
    oct_tensor *out[N_RESULTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    label_of(&c, 2, 0)[OCT_LABEL_CLASS] = CLASSES;
    assert_fails(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out), OCT_ERR_ARG,
                 "picture 2 of the batch has a box of class 3");
    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    label_of(&c, 0, 1)[OCT_LABEL_CLASS] = NAN;
    assert_fails(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out), OCT_ERR_ARG, "0 to 2");
    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    label_of(&c, 0, 1)[OCT_LABEL_X2] = INFINITY;
    assert_fails(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out), OCT_ERR_ARG, "picture 0");
}

static void predictions_that_are_no_numbers(void **state)
{
    oct_tensor *out[N_RESULTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolo_nas_loss, 17);
    c.reg[4000] = NAN;
    c.cls[100] = INFINITY;
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F32, out));
    assert_true(!isfinite(oct_tensor_get_f64(out[LOSS], 0)));
    case_free(out);
}

static void attributes_that_are_wrong(void **state)
{
    fixture *f = *state;
    oct_tensor *out[N_RESULTS];
    oct_node *n;
    dfl_case c;

    make_case(&c, f, &oct_op_yolo_nas_loss, 17);
    n = case_node(&c, OCT_DTYPE_F32);
    oct_emit_ints(&f->b, n, "sizes", (int64_t[]){12, 12, 6, 6, 3, 4}, 6);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "192 cells");
    oct_emit_ints(&f->b, n, "sizes", (int64_t[]){12, 12, 6, 6}, 4);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "do not fit");
    set_words(&c, "best", "focal");
    assert_fails(f->ctx, case_run(&c, OCT_DTYPE_F32, out), OCT_ERR_UNSUPPORTED, "tal or atss");
}

/* Split and Concat, thirty times: 2^30 ways from the output to the input. */
static void many_ways(void **state)
{
    fixture *f = *state;
    const oct_loss_row *row = oct_loss_find("yolo_nas");
    oct_loss_job job = {.g = f->g};
    oct_loss_found found;
    oct_value *x;

    (void)graph_input(f, "picture", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 64, 64});
    x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){1, 84, 68});
    for (int i = 0; i < 30; i++) {
        oct_node *split = oct_emit_node(&f->b, &oct_op_split, &x, 1, 2), *join;

        oct_emit_int(&f->b, split, "axis", 2);
        oct_emit_int(&f->b, split, "num_outputs", 2);
        assert_non_null(oct_emitted(&f->b, split));
        join = oct_emit_node(&f->b, &oct_op_concat, split->out, 2, 1);
        oct_emit_int(&f->b, join, "axis", 2);
        x = oct_emitted(&f->b, join);
        assert_non_null(x);
    }
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    oct_loss_defaults(row, &job);
    assert_fails(f->ctx, row->attach(&job, &found), OCT_ERR_UNSUPPORTED, "raw predictions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values, setup, teardown),
        cmocka_unit_test_setup_teardown(assigner_by_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(chain, setup, teardown),
        cmocka_unit_test_setup_teardown(same_for_any_number_of_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(no_boxes_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(box_between_points, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_that_do_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(labels_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(predictions_that_are_no_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(attributes_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(many_ways, setup, teardown),
    };

    return run_test_group(tests);
}
