/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: what people write for layers. */
#include "tests/unit/place_net.h"

static const char *const names[] = {
    "/model/backbone/stem/conv/Conv",   "/model/heads/head1/reg_convs/reg_convs.0/conv/Conv",
    "/model/heads/head1/reg_pred/Conv", "/model/heads/head2/reg_pred/Conv",
    "/model/heads/head2/cls_pred/Conv",
};
enum { N_LAYERS = OCT_COUNT(names) };

/* A chain of convolutions with an exporter's names. */
static void make(placed *p, fixture *f)
{
    oct_value *x;

    start(p, f, "octet");
    x = image(p, 3);
    for (int i = 0; i < N_LAYERS; i++)
        x = layer(p, names[i], x, 4);
    output(p, x);
}

/* The layers that stay float, as bits. */
static unsigned float_layers(placed *p)
{
    unsigned bits = 0;

    place(p);
    for (int i = 0; i < N_LAYERS; i++)
        if (p->m->float_reason[oct_graph_find_node(p->f->g, names[i])->id]) bits |= 1u << i;
    finish(p);
    return bits;
}

static unsigned ignoring_name(placed *p, const char *name)
{
    p->o.ignored = (oct_scope){.names = &name, .n_names = 1};
    return float_layers(p);
}

static unsigned ignoring_pattern(placed *p, const char *pattern)
{
    p->o.ignored = (oct_scope){.patterns = &pattern, .n_patterns = 1};
    return float_layers(p);
}

static void names_match_as_people_write_them(void **state)
{
    placed p;

    make(&p, *state);
    assert_int_equal(float_layers(&p), 0);
    assert_int_equal(ignoring_name(&p, names[2]), 4);
    assert_int_equal(ignoring_name(&p, "heads.head1.reg_convs"), 2);
    assert_int_equal(ignoring_name(&p, "heads.head1"), 6);
    assert_int_equal(ignoring_name(&p, "heads"), 30);
    assert_int_equal(ignoring_name(&p, "/model/heads/head2"), 24);
    assert_int_equal(ignoring_name(&p, "heads.*.reg_pred"), 12);
    assert_int_equal(ignoring_name(&p, "heads.+reg_pred"), 12);
    assert_int_equal(ignoring_name(&p, "{re}.*cls_pred"), 16);
    assert_int_equal(ignoring_name(&p, "Net/NDFLHeads[heads]/DFLHead[head1]/NNCFConv2d[reg_pred]"),
                     4);
    assert_int_equal(ignoring_name(&p, p.f->g->outputs[0]->name), 16); /* a value's */
}

static void parts_of_names_are_no_names(void **state)
{
    placed p;
    const char *name = "reg_con";

    make(&p, *state);
    p.o.ignored = (oct_scope){.names = &name, .n_names = 1};
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "did you mean '/model");
    name = "heads.head1.reg_cnvs";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG,
                 "did you mean 'heads.head1.reg_convs'");
    name = "conv";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "no node matches");
    p.o.ignored.allow_unmatched = 1;
    assert_int_equal(float_layers(&p), 0);
}

static void patterns_are_anchored_at_the_start(void **state)
{
    placed p;
    const char *bad = "heads(";

    make(&p, *state);
    assert_int_equal(ignoring_pattern(&p, ".*/head2/.*"), 24);
    assert_int_equal(ignoring_pattern(&p, "/model/heads/head1"), 6);
    assert_int_equal(ignoring_pattern(&p, "heads.+reg_pred"), 12); /* nothing else matches */
    p.o.ignored = (oct_scope){.patterns = &bad, .n_patterns = 1};
    assert_int_not_equal(oct_place(p.f->g, p.t, &p.o, &p.m), OCT_OK);
}

static void types_and_their_spelling(void **state)
{
    placed p;
    const char *type = "Conv";

    make(&p, *state);
    p.o.ignored = (oct_scope){.types = &type, .n_types = 1};
    assert_int_equal(float_layers(&p), 31);
    type = "Conw";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "did you mean 'Conv'");
}

static void subgraphs_take_all_between(void **state)
{
    placed p;
    oct_subgraph s = {.inputs = &names[1], .n_inputs = 1, .outputs = &names[3], .n_outputs = 1};

    make(&p, *state);
    p.o.ignored = (oct_scope){.subgraphs = &s, .n_subgraphs = 1};
    assert_int_equal(float_layers(&p), 14);
    s = (oct_subgraph){.inputs = &names[3], .n_inputs = 1, .outputs = &names[1], .n_outputs = 1};
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "no path leads");
}

/* What a node makes stands for the node; what is not there is not passed over. */
static void ends_of_subgraphs_are_looked_for(void **state)
{
    placed p;
    const char *ends[2];
    oct_subgraph s = {.inputs = &ends[0], .n_inputs = 1, .outputs = &ends[1], .n_outputs = 1};

    make(&p, *state);
    p.o.ignored = (oct_scope){.subgraphs = &s, .n_subgraphs = 1};
    for (int i = 0; i < 2; i++)
        ends[i] = oct_graph_find_node(p.f->g, names[1 + 2 * i])->out[0]->name;
    assert_int_equal(float_layers(&p), 14);
    ends[1] = "heads.head9";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG,
                 "there is no node 'heads.head9'");
    p.o.ignored.allow_unmatched = 1;
    assert_int_equal(float_layers(&p), 0);
}

static void only_is_the_inverse(void **state)
{
    placed p;
    const char *name = "heads.head1";

    make(&p, *state);
    p.o.only = (oct_scope){.names = &name, .n_names = 1};
    assert_int_equal(float_layers(&p), 31 - 6);
}

static void reasons_say_what_the_user_said(void **state)
{
    placed p;
    const char *name = "heads.head1.reg_pred";
    const oct_node *n;

    make(&p, *state);
    p.o.ignored = (oct_scope){.names = &name, .n_names = 1};
    place(&p);
    n = oct_graph_find_node(p.f->g, names[2]);
    assert_string_equal(p.m->float_reason[n->id], "ignored by name 'heads.head1.reg_pred'");
    finish(&p);
}

static void overrides_change_one_layer(void **state)
{
    placed p;
    const oct_quant_override o[] = {
        {.name = names[1], .weight_bits = 4, .activation_bits = 16, .activation_ranges = "minmax"},
        {.pattern = ".*/head2/reg.*", .symmetric = 1, .per_tensor = 1, .weight_ranges = "mse"},
    };
    const oct_quant_override bad = {.name = names[1], .weight_bits = 77};
    const oct_quant_override none = {.pattern = "nothing.*", .weight_bits = 4};
    const oct_node *a, *b;
    const oct_qpoint *w;

    make(&p, *state);
    p.o.overrides = o;
    p.o.n_overrides = 2;
    place(&p);
    a = oct_graph_find_node(p.f->g, names[1]);
    b = oct_graph_find_node(p.f->g, names[3]);
    w = &p.m->points[oct_qmap_at(p.m, a, 1)];
    assert_int_equal(w->spec.bits, 4);
    assert_int_equal(w->spec.axis, 0);
    assert_int_equal(at(&p, a->out[0])->spec.bits, 16);
    assert_string_equal(at(&p, a->out[0])->observer, "minmax");
    assert_int_equal(at(&p, a->in[0])->spec.bits, 8);
    w = &p.m->points[oct_qmap_at(p.m, b, 1)];
    assert_int_equal(w->spec.axis, OCT_QSPEC_PER_TENSOR);
    assert_string_equal(w->observer, "mse");
    assert_true(at(&p, b->out[0])->spec.is_symmetric);
    assert_false(at(&p, b->in[0])->spec.is_symmetric);
    finish(&p);
    p.o.overrides = &bad;
    p.o.n_overrides = 1;
    assert_int_not_equal(oct_place(p.f->g, p.t, &p.o, &p.m), OCT_OK);
    p.o.overrides = &none;
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "matches 'nothing.*'");
}

/* The first and the last layer, and the picture, keep 8 bits unless an override says otherwise. */
static void bits_of_all_layers(void **state)
{
    const oct_quant_override last = {.name = names[N_LAYERS - 1], .weight_bits = 6};
    placed p;

    make(&p, *state);
    p.o.weight_bits = p.o.activation_bits = 4;
    p.o.overrides = &last;
    p.o.n_overrides = 1;
    place(&p);
    for (int i = 0; i < N_LAYERS; i++) {
        const oct_node *n = oct_graph_find_node(p.f->g, names[i]);
        const oct_qpoint *w = &p.m->points[oct_qmap_at(p.m, n, 1)];

        assert_int_equal(w->spec.bits, i == 0 ? 8 : i == N_LAYERS - 1 ? 6 : 4);
        assert_int_equal(at(&p, n->in[0])->spec.bits, i == 0 ? 8 : 4);
        if (i == 1) assert_string_equal(w->observer, "mse");
    }
    finish(&p);
    p.o.activation_bits = 5;
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "4, 6, 8 and 16");
    p.o.activation_bits = 0;
    p.o.weight_bits = 9;
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "2 to 8");
}

/* The smallest layers keep 8 bits, as long as they are a twentieth of all weights. */
static void small_layers_keep_8_bits(void **state)
{
    /* channels of 3x3 convolutions: 144, 288, 288, 4608, 18432, 576 weights */
    static const struct {
        const char *name;
        int64_t channels;
        int bits;
    } of[] = {{"first", 16, 8}, {"narrow", 2, 8},  {"out", 16, 8},
              {"wide", 32, 4},  {"widest", 64, 4}, {"last", 1, 8}};
    oct_value *x;
    placed p;

    start(&p, *state, "octet");
    x = image(&p, 1);
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        x = layer(&p, of[i].name, x, of[i].channels);
    output(&p, x);
    p.o.weight_bits = 4;
    place(&p);
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        const oct_node *n = oct_graph_find_node(p.f->g, of[i].name);

        assert_int_equal(p.m->points[oct_qmap_at(p.m, n, 1)].spec.bits, of[i].bits);
    }
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_match_as_people_write_them, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_names_are_no_names, setup, teardown),
        cmocka_unit_test_setup_teardown(patterns_are_anchored_at_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(types_and_their_spelling, setup, teardown),
        cmocka_unit_test_setup_teardown(subgraphs_take_all_between, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_of_subgraphs_are_looked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(only_is_the_inverse, setup, teardown),
        cmocka_unit_test_setup_teardown(reasons_say_what_the_user_said, setup, teardown),
        cmocka_unit_test_setup_teardown(overrides_change_one_layer, setup, teardown),
        cmocka_unit_test_setup_teardown(bits_of_all_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(small_layers_keep_8_bits, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
