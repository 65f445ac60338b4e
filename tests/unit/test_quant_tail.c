/* SPDX-License-Identifier: Apache-2.0 */
/* The tail: what stays float behind the last layers with weights. */
#include "tests/unit/place_net.h"

typedef struct found {
    oct_arena *a;
    uint8_t *is_tail;
    const char *text;
} found;

static oct_status look(placed *p, const char *setting, found *t)
{
    *t = (found){.a = oct_arena_new(p->f->ctx)};
    assert_non_null(t->a);
    t->is_tail = oct_arena_alloc(t->a, (size_t)p->f->g->n_node_ids + 1);
    assert_non_null(t->is_tail);
    return oct_tail_find(p->f->g, setting, t->a, t->is_tail, &t->text);
}

static void find_tail(placed *p, const char *setting, found *t)
{
    assert_ok(p->f->ctx, look(p, setting, t));
}

static bool in_tail(const found *t, const oct_value *v)
{
    return t->is_tail[v->producer->id];
}

static oct_value *softmax(placed *p, oct_value *x, int64_t axis)
{
    oct_node *s = node(p->f, &oct_op_softmax, x, NULL, NULL);

    assert_ok(p->f->ctx, oct_node_set_int(s, "axis", axis));
    return infer(p->f, s);
}

/* As YOLOv8 ends. */
typedef struct yolo_end {
    oct_value *a, *head, *r, *s, *box, *y;
} yolo_end;

/* Head, distribution, fixed projection, boxes joined with scores. */
static void end_as_yolo(placed *p, yolo_end *e)
{
    const conv_case project = {4, 1, 1, 1, 1, 0, 1};
    oct_value *score;

    e->a = layer(p, "a", image(p, 3), 8);
    e->head = layer(p, "head", silu(p, e->a), 4);
    e->r = reshape(p->f, e->head, 4, (int64_t[]){1, 4, 1, 64});
    name_node(e->r, "decode");
    e->s = softmax(p, e->r, 1);
    e->box = conv(p->f, &p->rng, e->s, &project);
    score = emit(p->f, &oct_op_sigmoid, reshape(p->f, e->head, 4, (int64_t[]){1, 4, 1, 64}), NULL);
    e->y = join(p, e->box, score, 1);
    output(p, e->y);
}

static void a_projection_behind_softmax_is_tail(void **state)
{
    placed p;
    found t;
    yolo_end e;

    start(&p, *state, "octet");
    end_as_yolo(&p, &e);
    find_tail(&p, "auto", &t);
    assert_false(in_tail(&t, e.a));
    assert_false(in_tail(&t, e.head));
    assert_true(in_tail(&t, e.r) && in_tail(&t, e.s) && in_tail(&t, e.box) && in_tail(&t, e.y));
    assert_string_equal(t.text, "tail of 6 nodes from 'decode' on: boxes and scores are put "
                                "together there; kept in float");
    oct_arena_free(t.a);
    find_tail(&p, "off", &t);
    assert_null(t.text);
    assert_false(in_tail(&t, e.y));
    oct_arena_free(t.a);
}

/* OpenVINO's convolutions are integer even there, unless the user says where the tail begins. */
static void some_targets_sum_bins_in_integers(void **state)
{
    static const struct {
        const char *target, *tail, *reason;
    } rows[] = {
        {"octet", "auto", "tail"},
        {"openvino", "auto", NULL},
        {"openvino", NULL, NULL},
        {"openvino", "decode", "tail"},
    };

    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        placed p;
        yolo_end e;

        restart(*state);
        start(&p, *state, rows[i].target);
        end_as_yolo(&p, &e);
        p.o.tail = rows[i].tail;
        place(&p);
        if (rows[i].reason) {
            assert_string_equal(reason(&p, e.box), rows[i].reason);
            assert_null(strstr(p.m->tail_text, "bins"));
        } else {
            assert_null(reason(&p, e.box));
            assert_true(is_active(&p, e.s));
            assert_non_null(strstr(p.m->tail_text, "kept in float, but for 1 sum over bins"));
        }
        finish(&p);
    }
}

static void a_classifier_has_its_softmax_alone(void **state)
{
    placed p;
    found t;
    oct_value *x, *norm, *y, *s;
    oct_rng rng;

    start(&p, *state, "octet");
    oct_rng_init(&rng, 2);
    x = graph_input(p.f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 8});
    norm = oct_emit(&p.f->b, &oct_op_layer_normalization, x, weights(p.f, &rng, 1, (int64_t[]){8}),
                    NULL);
    assert_non_null(norm);
    y = emit(p.f, &oct_op_gemm, norm, weights(p.f, &rng, 2, (int64_t[]){8, 4}));
    s = softmax(&p, y, 1);
    output(&p, s);
    find_tail(&p, NULL, &t);
    assert_false(in_tail(&t, norm)); /* a layer follows */
    assert_false(in_tail(&t, y));
    assert_true(in_tail(&t, s));
    assert_non_null(strstr(t.text, "scores are made there"));
    oct_arena_free(t.a);
}

/* exp(x) / sum(exp(x)) is a Softmax; an exp() alone has nothing to do with boxes. */
static void a_written_out_softmax_makes_scores(void **state)
{
    placed p;
    found t;
    oct_value *x, *y, *e, *sum;

    start(&p, *state, "octet");
    x = graph_input(p.f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 8});
    y = emit(p.f, &oct_op_gemm, x, weights(p.f, &p.rng, 2, (int64_t[]){8, 4}));
    e = emit(p.f, &oct_op_exp, y, NULL);
    sum = emit(p.f, &oct_op_reduce_sum, e, oct_ints(&p.f->b, (int64_t[]){1}, 1));
    output(&p, emit(p.f, &oct_op_div, e, sum));
    find_tail(&p, "auto", &t);
    assert_non_null(strstr(t.text, ": scores are made there"));
    oct_arena_free(t.a);
}

static void an_exp_alone_is_no_box(void **state)
{
    placed p;
    found t;
    oct_value *x;

    start(&p, *state, "octet");
    x = image(&p, 3);
    output(&p, emit(p.f, &oct_op_exp, layer(&p, "a", x, 4), NULL));
    find_tail(&p, "auto", &t);
    assert_non_null(strstr(t.text, ": no layer with weights follows"));
    oct_arena_free(t.a);
}

/* What only feeds a choice of boxes is tail, even if layers follow on the regions chosen. */
static void a_choice_ends_what_feeds_it(void **state)
{
    placed p;
    found t;
    oct_value *x, *a, *score, *flat, *best, *k;
    oct_node *top;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    score = emit(p.f, &oct_op_sigmoid, a, NULL);
    flat = reshape(p.f, score, 2, (int64_t[]){1, 256});
    k = oct_ints(&p.f->b, (int64_t[]){64}, 1);
    top = oct_emit_node(&p.f->b, &oct_op_top_k, (oct_value *[]){flat, k}, 2, 2);
    assert_ok(p.f->ctx, oct_node_infer(top));
    best = reshape(p.f, top->out[0], 4, (int64_t[]){1, 1, 8, 8});
    output(&p, layer(&p, "second", best, 2));
    find_tail(&p, "auto", &t);
    assert_false(in_tail(&t, a));
    assert_true(in_tail(&t, score));
    assert_true(in_tail(&t, flat));
    assert_false(in_tail(&t, best));
    assert_non_null(strstr(t.text, "boxes"));
    oct_arena_free(t.a);
}

static void names_say_where_it_starts(void **state)
{
    placed p;
    found t;
    oct_value *x, *a, *b, *c;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "first", x, 4);
    b = layer(&p, "second", a, 4);
    c = layer(&p, "third", b, 4);
    output(&p, c);
    find_tail(&p, "second", &t);
    assert_false(in_tail(&t, a));
    assert_true(in_tail(&t, b) && in_tail(&t, c));
    assert_non_null(strstr(t.text, "'second'"));
    oct_arena_free(t.a);
    assert_fails(p.f->ctx, look(&p, "first,secnd", &t), OCT_ERR_ARG, "did you mean 'second'");
    oct_arena_free(t.a);
}

static void a_network_may_have_none(void **state)
{
    placed p;
    found t;
    oct_value *x;

    start(&p, *state, "octet");
    x = image(&p, 3);
    output(&p, layer(&p, "a", x, 4));
    find_tail(&p, "auto", &t);
    assert_null(t.text);
    oct_arena_free(t.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_projection_behind_softmax_is_tail, setup, teardown),
        cmocka_unit_test_setup_teardown(some_targets_sum_bins_in_integers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_classifier_has_its_softmax_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_written_out_softmax_makes_scores, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exp_alone_is_no_box, setup, teardown),
        cmocka_unit_test_setup_teardown(a_choice_ends_what_feeds_it, setup, teardown),
        cmocka_unit_test_setup_teardown(names_say_where_it_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_network_may_have_none, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
