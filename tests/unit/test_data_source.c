/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that a function gives: quantizing and analyzing with them. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

enum { SIDE = 8 };

/* The items that quant_job.h's items() writes to files. */
typedef struct giver {
    oct_ctx *ctx;
    oct_dataset *files;
    int64_t n;     /* items there are */
    int64_t bad;   /* this one cannot be had; -1: all can */
    int64_t empty; /* this one has no tensor */
    int n_calls;
} giver;

static oct_status next(void *user, int64_t index, oct_tensor **tensors)
{
    giver *g = user;

    g->n_calls++;
    if (index >= g->n) return OCT_ERR_STATE;
    if (index == g->bad) return OCT_ERR_IO;
    if (index == g->empty) return OCT_OK;
    return oct_dataset_tensor(g->files, index, "x", &tensors[0]);
}

static oct_value *make_net(fixture *f)
{
    oct_value *x = picture(f, 1, 3, SIDE, SIDE), *y;
    oct_rng rng;

    oct_rng_init(&rng, 7);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){8, 4, 1, 1, 1, 0, 1}));
    return x;
}

static oct_dataset *open_source(const giver *g, const char *input, int64_t size)
{
    oct_source_options o;
    oct_dataset *d = NULL;

    oct_source_options_init(&o);
    o.next = next;
    o.user = (void *)(uintptr_t)g;
    o.inputs = &input;
    o.n_inputs = 1;
    o.size = size;
    o.name = "my data";
    assert_ok(g->ctx, oct_dataset_from_source(g->ctx, &o, &d));
    return d;
}

static oct_quantized *quantize_with(files *t, const oct_dataset *d)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    return q;
}

/* The same tensors give the same network, wherever they come from, with and without a size. */
static void quantizes_as_with_files(void **state)
{
    files *t = *state;
    oct_value *x = make_net(t->f);
    giver g = {.ctx = t->ctx, .files = items(t, x, 2), .bad = -1, .empty = -1};
    oct_quantized *want = quantize_with(t, g.files);

    g.n = oct_dataset_size(g.files);
    for (int known = 0; known < 2; known++) {
        oct_dataset *d = open_source(&g, x->name, known ? g.n : -1);
        oct_quantize_layer a = {.struct_size = sizeof(a)}, b = {.struct_size = sizeof(b)};
        oct_quantized *got;

        assert_string_equal(oct_dataset_kind(d), "callback");
        assert_int_equal(oct_dataset_size(d), g.n);
        assert_int_equal(g.n_calls > 0, !known); /* counted, or believed */
        got = quantize_with(t, d);
        assert_true(job_noise(t, got) == job_noise(t, want));
        for (int32_t i = 0; oct_quantized_layer(want, i, &a); i++) {
            assert_true(oct_quantized_layer(got, i, &b));
            assert_true(a.noise == b.noise && a.noise >= 0);
        }
        oct_quantized_free(got);
        oct_dataset_close(d);
        g.n_calls = 0;
    }
    oct_quantized_free(want);
    oct_dataset_close(g.files);
}

static void analyzes(void **state)
{
    files *t = *state;
    oct_value *x = make_net(t->f);
    giver g = {.ctx = t->ctx, .files = items(t, x, 2), .bad = -1, .empty = -1};
    oct_quantized *q = quantize_with(t, g.files);
    oct_analysis *a = NULL;
    oct_dataset *d;

    g.n = 3;
    d = open_source(&g, x->name, -1);
    assert_ok(t->ctx, oct_analyze(t->f->g, oct_quantized_graph(q), d, NULL, &a));
    assert_int_equal(oct_analysis_images(a), 3);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
    oct_dataset_close(g.files);
}

static void assert_ends(files *t, const giver *g, const char *input, oct_status status,
                        const char *text)
{
    oct_dataset *d = open_source(g, input, 4);
    oct_quantized *q = NULL;

    assert_fails(t->ctx, oct_quantize(t->f->g, d, NULL, &q), status, text);
    oct_dataset_close(d);
}

static void tells_what_went_wrong(void **state)
{
    files *t = *state;
    oct_value *x = make_net(t->f);
    giver g = {.ctx = t->ctx, .files = items(t, x, 2), .n = 4, .bad = 2, .empty = -1};

    assert_ends(t, &g, x->name, OCT_ERR_IO, "my data: item 2 cannot be had");
    g.bad = -1;
    g.empty = 1;
    assert_ends(t, &g, x->name, OCT_ERR_ARG, "my data: item 1 has no tensor for input");
    g.empty = -1;
    g.n = 3;
    assert_ends(t, &g, x->name, OCT_ERR_ARG, "my data: there is no item 3, though");
    assert_ends(t, &g, "other", OCT_ERR_ARG, "gives nothing for the network's input");
    oct_dataset_close(g.files);
}

static void refuses_bad_options(void **state)
{
    files *t = *state;
    const char *name = "x";
    giver g = {.ctx = t->ctx, .bad = -1, .empty = -1};
    oct_source_options o;
    oct_dataset *d = NULL;

    oct_source_options_init(&o);
    assert_fails(t->ctx, oct_dataset_from_source(t->ctx, &o, &d), OCT_ERR_ARG, "no function");
    o.next = next;
    o.user = &g;
    assert_fails(t->ctx, oct_dataset_from_source(t->ctx, &o, &d), OCT_ERR_ARG, "no input");
    o.inputs = &name;
    o.n_inputs = 1;
    assert_fails(t->ctx, oct_dataset_from_source(t->ctx, &o, &d), OCT_ERR_ARG, "not a single item");
    o.size = 0;
    assert_fails(t->ctx, oct_dataset_from_source(t->ctx, &o, &d), OCT_ERR_ARG, "size of 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(quantizes_as_with_files, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(analyzes, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(tells_what_went_wrong, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(refuses_bad_options, setup_files, teardown_files),
    };

    return tests_status(cmocka_run_group_tests(tests, NULL, NULL));
}
