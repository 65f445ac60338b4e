/* SPDX-License-Identifier: Apache-2.0 */
/* The search for layers that have to be float, on made-up damages; promises in metadata; a small
 * network quantized under a promise. */
#include "test.h"

#include "control/control.h"
#include "control/search.h"
#include "op/op.h"

enum { N = 16 };

/* A made-up network: each layer in integers costs so much of the score. */
typedef struct made_up {
    const char *what;
    double damage[N]; /* of the score */
    double ranked[N]; /* what the first ranking believes */
    double again[N];  /* what later ones believe; all 0: the same */
    double lost;      /* that no layer gives back */
    double need;      /* score to reach; without damage it is 1 */
    int32_t max;      /* scores */
    bool holds;
    uint32_t floats;    /* bits of the layers that are to be float in the end */
    int32_t most_asked; /* scores it may take */
} made_up;

static const made_up cases[] = {
    {"nothing to do", {.001, .002}, {1, 2}, {0}, 0, .99, 0, true, 0, 1},
    {"one layer does it", {.001, .001, .3, .001}, {1, 1, 9, 1}, {0}, 0, .99, 0, true, 1u << 2, 2},
    {"the ranking is wrong",
     {.001, .3, .001, .001},
     {9, 1, 8, 7},
     {0},
     0,
     .99,
     0,
     true,
     1u << 1,
     10},
    {"three of many",
     {.1, .001, .1, .001, .1, .001},
     {9, 1, 8, 2, 7, 3},
     {0},
     0,
     .98,
     0,
     true,
     1u << 0 | 1u << 2 | 1u << 4,
     10},
    {"those that are not needed go back",
     {.01, .01, .01, .2},
     {9, 8, 7, 6},
     {0},
     0,
     .96,
     0,
     true,
     1u << 3,
     10},
    /* After the first one nothing of what is believed helps; a new look shows the right layer. */
    {"a stall is ranked again",
     {.1, 0, 0, 0, 0, 0, 0, 0, .1},
     {9, 8, 7, 6, 5, 4, 3, 2, 1},
     {0, 1, 1, 1, 1, 1, 1, 1, 9},
     0,
     .99,
     0,
     true,
     1u << 0 | 1u << 8,
     9},
    /* Layers 2 to 9 are better in integers: groups bring them along. */
    {"single layers where groups go past it",
     {.1, .1, -.03, -.03, -.03, -.03, -.03, -.03, -.03, -.03},
     {9, 6, 8, 7, 5, 4, 3, 2, 1, 1},
     {0},
     .24,
     .99,
     0,
     true,
     1u << 0 | 1u << 1,
     14},
    {"it cannot be kept", {.1, .1}, {2, 1}, {0}, .5, .9, 0, false, (1u << 15) - 1, 20},
    {"the best is kept when time is up",
     {.1, .2, .1},
     {1, 2, 1},
     {0},
     0,
     .95,
     2,
     false,
     1u << 1,
     2},
};

typedef struct player {
    const made_up *k;
    int32_t n_ranked, n_steps;
    double last;
} player;

static double score_of(const made_up *k, const uint8_t *is_float)
{
    double s = 1 - k->lost;

    for (int32_t i = 0; i < N; i++)
        s -= is_float[i] ? 0 : k->damage[i];
    return s;
}

static oct_status score(void *user, const uint8_t *is_float, double *out)
{
    player *p = user;

    *out = p->last = score_of(p->k, is_float);
    return OCT_OK;
}

static oct_status rank(void *user, const uint8_t *is_float, double *harm)
{
    player *p = user;
    bool has_again = false;

    for (int32_t i = 0; i < N; i++)
        has_again |= p->k->again[i] > 0;
    for (int32_t i = 0; i < N; i++)
        if (!is_float[i]) harm[i] = has_again && p->n_ranked ? p->k->again[i] : p->k->ranked[i];
    p->n_ranked++;
    return OCT_OK;
}

static oct_status step(void *user, const oct_search_step *s)
{
    player *p = user;

    p->n_steps++;
    assert_true(s->score == p->last);
    assert_int_equal(s->holds, s->score >= p->k->need);
    return OCT_OK;
}

static void finds_the_layers(void **state)
{
    fixture *f = *state;
    double work[N];

    for (int32_t i = 0; i < N; i++)
        work[i] = 1;
    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        const made_up *k = &cases[c];
        uint8_t is_float[N];
        uint32_t bits = 0;
        player p = {.k = k};
        oct_search s = {.ctx = f->ctx,
                        .n = N,
                        .work = work,
                        .need = k->need,
                        .max_scores = k->max,
                        .most = N - 1,
                        .user = &p,
                        .score = score,
                        .rank = rank,
                        .step = step,
                        .is_float = is_float};

        assert_ok(f->ctx, oct_search_run(&s));
        for (int32_t i = 0; i < N; i++)
            bits |= (uint32_t)is_float[i] << i;
        if (s.holds != k->holds || s.n_scores > k->most_asked || s.n_scores != p.n_steps)
            fail_msg("%s: holds %d after %d scores", k->what, s.holds, s.n_scores);
        if (k->holds && bits != k->floats)
            fail_msg("%s: layers 0x%x, want 0x%x", k->what, bits, k->floats);
        if (!k->holds && k->max && bits != k->floats)
            fail_msg("%s: layers 0x%x, want 0x%x", k->what, bits, k->floats);
        if (fabs(s.score_kept - score_of(k, is_float)) > 1e-12)
            fail_msg("%s: the score is not that of the set", k->what);
    }
}

/* Whatever the damages are: no layer that is float could be in integers. */
static void nothing_is_float_without_need(void **state)
{
    fixture *f = *state;
    unsigned seed = 1;

    for (int round = 0; round < 200; round++) {
        made_up k = {.what = "random", .need = .9};
        uint8_t is_float[N];
        double work[N];
        player p = {.k = &k};
        oct_search s = {.ctx = f->ctx,
                        .n = N,
                        .work = work,
                        .need = k.need,
                        .most = N - 1,
                        .user = &p,
                        .score = score,
                        .rank = rank,
                        .is_float = is_float};

        for (int32_t i = 0; i < N; i++) {
            seed = seed * 1103515245u + 12345u;
            k.damage[i] = (double)(seed >> 16 & 255u) / 255 / 20;
            seed = seed * 1103515245u + 12345u;
            k.ranked[i] = k.damage[i] * (double)(1 + (seed >> 16 & 3u));
            work[i] = (double)(1 + (seed >> 20 & 15u));
        }
        assert_ok(f->ctx, oct_search_run(&s));
        assert_true(s.holds);
        for (int32_t i = 0; i < N; i++) {
            if (!is_float[i]) continue;
            is_float[i] = 0;
            if (score_of(&k, is_float) >= k.need) fail_msg("round %d: layer %d", round, (int)i);
            is_float[i] = 1;
        }
    }
}

/* --- metadata --- */

static void promises_are_read_back(void **state)
{
    fixture *f = *state;
    const oct_promise p = {.kind = OCT_PROMISE_RELATIVE_DROP,
                           .limit = .01,
                           .measure = "AP",
                           .float_score = .4,
                           .score = .398,
                           .held = 1,
                           .restored = 2,
                           .layers = "/a,/b"};
    oct_promise back = {.struct_size = sizeof(back)};
    char text[200];

    assert_int_equal(oct_graph_promise(f->g, &back), 0);
    assert_string_equal(oct_graph_promise_text(f->g, text, sizeof(text)), "");
    assert_ok(f->ctx, oct_promise_write(f->g, &p));
    assert_int_equal(oct_graph_promise(f->g, &back), 1);
    assert_int_equal(back.kind, p.kind);
    assert_int_equal(back.restored, 2);
    assert_int_equal(back.held, 1);
    assert_string_equal(back.layers, "/a,/b");
    assert_true(fabs(back.need - .396) < 1e-9);
    assert_string_equal(oct_graph_promise_text(f->g, text, sizeof(text)),
                        "AP drops by at most 1 %: 0.4000 float, 0.398 INT8, 2 layers float for it");
    /* A file may say anything. */
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "octet.promise.limit", "much"));
    assert_int_equal(oct_graph_promise(f->g, &back), 0);
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "octet.promise.limit", "nan"));
    assert_int_equal(oct_graph_promise(f->g, &back), 0);
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "octet.promise.limit", "1"));
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "octet.promise", "everything"));
    assert_int_equal(oct_graph_promise(f->g, &back), 0);
}

/* --- a network --- */

static const int64_t shape[] = {1, 8, 4, 4};

static oct_status next(void *user, int64_t index, oct_tensor **tensors)
{
    oct_ctx *ctx = user;
    double v[8 * 16];

    for (int i = 0; i < 8 * 16; i++)
        v[i] = sin(i * 7.0 + (double)index);
    tensors[0] = tensor_of(ctx, OCT_DTYPE_F32, 4, shape, v);
    return OCT_OK;
}

/* Three convolutions, of which "bad" has a channel that makes one scale for all useless. */
static oct_dataset *four_items(fixture *f)
{
    const char *inputs[] = {"x"};
    oct_source_options so;
    oct_dataset *d = NULL;

    oct_source_options_init(&so);
    so.next = next;
    so.user = f->ctx;
    so.inputs = inputs;
    so.n_inputs = 1;
    so.size = 4;
    assert_ok(f->ctx, oct_dataset_from_source(f->ctx, &so, &d));
    return d;
}

static oct_value *convolution(fixture *f, const char *name, oct_value *x, float wide)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){8, 8, 1, 1});
    oct_tensor *w = NULL;
    oct_value *y = oct_value_new(f->g, NULL, NULL);
    oct_node *n;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int i = 0; i < 64; i++)
        ((float *)w->data)[i] = cosf((float)i) * (i / 8 == 0 ? wide : 1.0f);
    n = oct_node_new(f->g, NULL, name, &oct_op_conv,
                     (oct_value *[]){x, oct_value_const(f->g, NULL, w)}, 2, &y, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_infer(n));
    return y;
}

/* Integer layers that the network has: what is measured here. "b" may not be one. */
static oct_status without_b(void *user, const oct_graph *g, double *score)
{
    int *calls = user;

    *score = 1;
    (*calls)++;
    for (const oct_node *n = g->first; n; n = n->next)
        if (strcmp(n->name, "b") == 0 && n->in[1]->producer) *score = .5;
    return OCT_OK;
}

static oct_status always_bad(void *user, const oct_graph *g, double *score)
{
    (void)user, (void)g;
    *score = 3;
    return OCT_OK;
}

static void restores_a_layer(void **state)
{
    fixture *f = *state;
    oct_control_summary s = {.struct_size = sizeof(s)};
    oct_control_step st = {.struct_size = sizeof(st)};
    oct_promise p = {.struct_size = sizeof(p)};
    oct_control_options o;
    oct_dataset *d = NULL;
    oct_quantized *q = NULL;
    oct_control *c = NULL;
    oct_value *x;
    int calls = 0;

    x = graph_input(f, "x", OCT_DTYPE_F32, 4, shape);
    x = convolution(f, "a", x, 1);
    x = convolution(f, "b", x, 30);
    x = convolution(f, "c", x, 1);
    x = convolution(f, "d", x, 1);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    d = four_items(f);

    oct_control_options_init(&o);
    assert_fails(f->ctx, oct_quantize_controlled(f->g, d, NULL, &o, &q, NULL), OCT_ERR_ARG,
                 "measure");
    o.measure = without_b;
    o.user = &calls;
    o.name = "own";
    assert_ok(f->ctx, oct_quantize_controlled(f->g, d, NULL, &o, &q, &c));
    oct_control_get_summary(c, &s);
    assert_int_equal(s.holds, 1);
    assert_int_equal(s.restored, 1);
    assert_int_equal(calls, s.scores + 1); /* the float network too */
    assert_true(s.first_score == .5 && s.score == 1 && s.float_score == 1);
    assert_string_equal(oct_control_restored(c, 0), "b");
    assert_null(oct_control_restored(c, 1));
    assert_int_equal(oct_control_step_at(c, 0, &st), 1);
    assert_true(st.move == OCT_CONTROL_START && !st.holds && st.weight_bytes > 0);
    assert_int_equal(oct_control_step_at(c, s.scores, &st), 0);
    assert_int_equal(oct_graph_promise(oct_quantized_graph(q), &p), 1);
    assert_string_equal(p.measure, "own");
    assert_string_equal(p.layers, "b");
    oct_control_free(c);
    oct_quantized_free(q);

    /* What cannot be kept gives the best there is, and says so. */
    o.measure = always_bad;
    o.promise = OCT_PROMISE_MOST;
    o.limit = 1;
    assert_ok(f->ctx, oct_quantize_controlled(f->g, d, NULL, &o, &q, &c));
    oct_control_get_summary(c, &s);
    assert_int_equal(s.holds, 0);
    assert_true(isnan(s.float_score) && s.score == 3);
    assert_int_equal(s.restored, 0); /* nothing helped: the first one is as good */
    assert_int_equal(oct_graph_promise(oct_quantized_graph(q), &p), 1);
    assert_int_equal(p.held, 0);
    oct_control_free(c);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static oct_status few_roundings(void *user, const oct_graph *g, double *score)
{
    int n = 0;

    (void)user;
    for (const oct_node *k = g->first; k; k = k->next)
        n += oct_node_is(k, &oct_op_quantize_linear);
    *score = n <= 2 ? 1 : .5 - .01 * n;
    return OCT_OK;
}

/* All layers in float but one are not enough here: "gate" and "product" have to be, too. */
static void restores_what_has_no_weights(void **state)
{
    fixture *f = *state;
    oct_control_summary s = {.struct_size = sizeof(s)};
    oct_quantize_options how;
    oct_control_options o;
    oct_dataset *d = NULL;
    oct_quantized *q = NULL;
    oct_control *c = NULL;
    oct_value *x, *y;

    x = convolution(f, "a", graph_input(f, "x", OCT_DTYPE_F32, 4, shape), 1);
    x = convolution(f, "b", x, 1);
    y = oct_emit(&f->b, &oct_op_global_average_pool, x, NULL, NULL);
    y->producer->name = "gate";
    y = oct_emit(&f->b, &oct_op_mul, x, y, NULL);
    y->producer->name = "product";
    y = convolution(f, "c", y, 1);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    d = four_items(f);
    oct_quantize_options_init(&how);
    how.target = "npu-pow2";
    oct_control_options_init(&o);
    o.measure = few_roundings;
    assert_ok(f->ctx, oct_quantize_controlled(f->g, d, &how, &o, &q, &c));
    oct_control_get_summary(c, &s);
    assert_true(s.first_score < .5 && s.score == 1 && s.holds);
    oct_control_free(c);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_the_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_float_without_need, setup, teardown),
        cmocka_unit_test_setup_teardown(promises_are_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(restores_a_layer, setup, teardown),
        cmocka_unit_test_setup_teardown(restores_what_has_no_weights, setup, teardown),
    };

    return run_test_group(tests);
}
