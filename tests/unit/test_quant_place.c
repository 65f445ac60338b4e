/* SPDX-License-Identifier: Apache-2.0 */
/* Where points stand, for each kind of network and target. */
#include "tests/unit/place_net.h"

#include "op/channels.h"
#include "tests/alloc.h"

static void nothing_stands_inside_a_group(void **state)
{
    placed p;
    oct_value *x, *a, *s, *b;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    s = silu(&p, a);
    b = layer(&p, "b", s, 4);
    output(&p, b);
    place(&p);
    assert_true(is_active(&p, x));
    assert_null(at(&p, a));
    assert_null(at(&p, s->producer->in[1])); /* the sigmoid */
    assert_true(is_active(&p, s));
    assert_null(at(&p, b)); /* only the network's output */
    assert_null(reason(&p, a));
    assert_int_equal(p.m->points[oct_qmap_at(p.m, a->producer, 1)].role, OCT_QROLE_WEIGHT);
    assert_int_equal(p.m->points[oct_qmap_at(p.m, a->producer, 1)].spec.axis, 0);
    assert_int_equal(p.m->points[oct_qmap_at(p.m, a->producer, 2)].state, OCT_QSTATE_PASSIVE);
    finish(&p);
}

/* A convolution whose result somebody else reads too cannot take its activation in. */
static void a_value_read_elsewhere_has_a_point(void **state)
{
    placed p;
    oct_value *x, *a, *s, *b;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    s = silu(&p, a);
    b = layer(&p, "b", emit(p.f, &oct_op_add, s, layer(&p, "c", a, 4)), 4);
    output(&p, b);
    place(&p);
    assert_true(is_active(&p, a));
    finish(&p);
}

static oct_value *gelu_in_parts(placed *p, oct_value *x)
{
    oct_builder *b = &p->f->b;
    oct_value *e =
        emit(p->f, &oct_op_erf, emit(p->f, &oct_op_div, x, oct_scalar(b, 1.41421f)), NULL);
    oct_value *y = emit(p->f, &oct_op_mul, x, emit(p->f, &oct_op_add, e, oct_scalar(b, 1.0f)));

    return emit(p->f, &oct_op_mul, y, oct_scalar(b, 0.5f));
}

static void a_written_out_activation_is_one(void **state)
{
    placed p;
    oct_value *x, *a, *y, *b;
    int acts = 0;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    y = gelu_in_parts(&p, a);
    b = layer(&p, "b", y, 4);
    output(&p, b);
    place(&p);
    for (int32_t i = 0; i < p.m->n_points; i++)
        acts += p.m->points[i].role == OCT_QROLE_ACT;
    assert_int_equal(acts, 2);
    assert_true(is_active(&p, y));
    finish(&p);
}

/* conv + Add of a scaled other value: only what comes from outside and the sum have points. */
static void a_residual_sum_is_part_of_its_convolution(void **state)
{
    placed p;
    oct_value *x, *a, *half, *b, *sum, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    half = emit(p.f, &oct_op_mul, a, oct_scalar(&p.f->b, 0.5f));
    b = layer(&p, "b", a, 4);
    sum = emit(p.f, &oct_op_add, half, b);
    y = layer(&p, "c", sum, 4);
    output(&p, y);
    place(&p);
    assert_true(is_active(&p, a));
    assert_null(at(&p, half));
    assert_null(at(&p, b));
    assert_true(is_active(&p, sum));
    finish(&p);
    p.t = NULL;
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "openvino", &p.t));
    place(&p);
    assert_true(is_active(&p, b)); /* there Add is a layer of its own */
    finish(&p);
}

static void concat_keeps_shares_or_requantizes(void **state)
{
    placed p;
    oct_value *x, *a, *b, *c, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    b = emit(p.f, &oct_op_relu, layer(&p, "b", x, 2), NULL);
    c = join(&p, a, pool(&p, b), 1);
    y = layer(&p, "y", c, 4);
    output(&p, y);
    place(&p); /* octet: each its own */
    assert_true(is_active(&p, a) && is_active(&p, b));
    assert_null(at(&p, c));
    finish(&p);
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "openvino", &p.t));
    place(&p); /* one for all */
    assert_true(is_active(&p, a));
    assert_int_equal(at(&p, b)->state, OCT_QSTATE_DOMINATED);
    assert_ptr_equal(oct_qmap_root(p.m, p.m->of_value[b->id]), at(&p, a));
    assert_ptr_equal(oct_qmap_root(p.m, p.m->of_value[c->id]), at(&p, a));
    finish(&p);
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "ort", &p.t));
    place(&p); /* its own */
    assert_true(is_active(&p, a) && is_active(&p, b) && is_active(&p, c));
    assert_int_equal(at(&p, c->producer->in[1])->state, OCT_QSTATE_DOMINATED); /* MaxPool */
    finish(&p);
}

static void tensors_at_depthwise_have_scales_for_channels(void **state)
{
    placed p;
    oct_value *x, *a, *b, *c, *d, *y;
    oct_arena *arena;
    oct_channel_source *o;
    int64_t n;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    b = emit(p.f, &oct_op_relu, layer(&p, "b", a, 2), NULL);
    c = join(&p, b, a, 1);
    d = layer(&p, "d", c, 0);
    y = layer(&p, "y", d, 4);
    output(&p, y);
    place(&p);
    assert_int_equal(at(&p, x)->spec.axis, OCT_QSPEC_PER_TENSOR);
    assert_int_equal(at(&p, a)->spec.axis, 1);
    assert_int_equal(at(&p, b)->spec.axis, 1);
    assert_true(at(&p, a)->channel_share == 1.0f && at(&p, b)->channel_share == 1.0f);
    assert_int_equal(at(&p, d)->spec.axis, 1); /* a dense one reads it: half-way */
    assert_true(at(&p, d)->channel_share == 0.5f);
    arena = oct_arena_new(p.f->ctx);
    assert_ok(p.f->ctx, oct_place_origins(p.m, d->producer, 0, arena, &n, &o));
    assert_int_equal(n, 6);
    assert_int_equal(o[1].point, p.m->of_value[b->id]);
    assert_int_equal(o[1].channel, 1);
    assert_int_equal(o[5].point, p.m->of_value[a->id]);
    assert_int_equal(o[5].channel, 3);
    oct_arena_free(arena);
    finish(&p);
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "ort", &p.t));
    place(&p);
    assert_int_equal(at(&p, a)->spec.axis, OCT_QSPEC_PER_TENSOR);
    finish(&p);
}

/* Squeeze and excitation: what only a pool and a product read may have a scale for each channel. */
static void gated_tensors_have_scales_for_channels(void **state)
{
    placed p;
    oct_value *x, *a, *gate, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    gate = emit(p.f, &oct_op_global_average_pool, a, NULL);
    gate = emit(p.f, &oct_op_hard_sigmoid, layer(&p, "gate", gate, 4), NULL);
    y = emit(p.f, &oct_op_mul, a, gate);
    output(&p, layer(&p, "y", y, 4));
    place(&p);
    assert_int_equal(at(&p, a)->spec.axis, 1);
    assert_true(at(&p, a)->channel_share == 1.0f);
    assert_int_equal(at(&p, gate)->spec.axis, OCT_QSPEC_PER_TENSOR); /* one pixel */
    assert_true(at(&p, y)->channel_share == 0.5f);
    finish(&p);
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "openvino", &p.t));
    place(&p);
    assert_int_equal(at(&p, a)->spec.axis, OCT_QSPEC_PER_TENSOR);
    finish(&p);
}

/* Exponents of channels at dense layers: sums, pools and pictures keep one. */
static void exponents_of_channels_stay_between_convolutions(void **state)
{
    placed p;
    oct_value *x, *a, *b, *c, *sum, *d, *e;

    start(&p, *state, "npu-pow2-pc");
    x = image(&p, 3);
    a = silu(&p, layer(&p, "a", x, 4));
    b = emit(p.f, &oct_op_relu, layer(&p, "b", a, 4), NULL);
    c = layer(&p, "c", a, 4);
    sum = emit(p.f, &oct_op_add, b, c);
    d = layer(&p, "d", join(&p, sum, a, 1), 4);
    e = emit(p.f, &oct_op_global_average_pool, d, NULL);
    output(&p, layer(&p, "y", e, 4));
    place(&p);
    assert_int_equal(at(&p, a)->spec.axis, 1); /* joined with others, too */
    assert_true(at(&p, a)->channel_share == 0.5f);
    assert_true(at(&p, a)->spec.is_pow2);
    assert_int_equal(at(&p, x)->spec.axis, OCT_QSPEC_PER_TENSOR);
    assert_int_equal(at(&p, b)->spec.axis, OCT_QSPEC_PER_TENSOR); /* a sum reads it */
    assert_int_equal(at(&p, c)->spec.axis, OCT_QSPEC_PER_TENSOR);
    assert_int_equal(at(&p, sum)->spec.axis, OCT_QSPEC_PER_TENSOR); /* a convolution reads it */
    assert_int_equal(at(&p, d)->spec.axis, OCT_QSPEC_PER_TENSOR);
    finish(&p);
    assert_ok(p.f->ctx, oct_target_find(p.f->ctx, "npu-pow2", &p.t));
    place(&p);
    assert_int_equal(at(&p, a)->spec.axis, OCT_QSPEC_PER_TENSOR);
    finish(&p);
}

static void scales_reach_their_readers(void **state)
{
    placed p;
    oct_value *x, *a, *b, *c, *y;
    const float sa[] = {1, 2, 3, 4}, sb[] = {0.5f};
    const int32_t za[] = {0, 10, 20, 30}, zb[] = {7};
    const float *scale;
    const int32_t *zero;
    oct_arena *arena;
    int64_t n;
    bool is_integer;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    b = emit(p.f, &oct_op_relu, layer(&p, "b", a, 2), NULL);
    c = join(&p, b, a, 1);
    y = layer(&p, "y", c, 4);
    output(&p, emit(p.f, &oct_op_add, layer(&p, "dw", a, 0), y));
    place(&p);
    arena = oct_arena_new(p.f->ctx);
    assert_fails(p.f->ctx,
                 oct_place_input_scales(p.m, y->producer, 0, arena, &n, &scale, &zero, &is_integer),
                 OCT_ERR_STATE, "not known yet");
    assert_ok(p.f->ctx, oct_qpoint_set(p.m, p.m->of_value[a->id], sa, za, 4, "test"));
    assert_ok(p.f->ctx, oct_qpoint_set(p.m, p.m->of_value[b->id], sb, zb, 1, "test"));
    assert_ok(p.f->ctx,
              oct_place_input_scales(p.m, y->producer, 0, arena, &n, &scale, &zero, &is_integer));
    assert_true(is_integer);
    assert_int_equal(n, 6);
    assert_memory_equal(scale, ((float[]){0.5f, 0.5f, 1, 2, 3, 4}), 6 * sizeof(float));
    assert_memory_equal(zero, ((int32_t[]){7, 7, 0, 10, 20, 30}), 6 * sizeof(int32_t));
    p.m->points[p.m->of_value[a->id]].state = OCT_QSTATE_OFF;
    assert_ok(p.f->ctx,
              oct_place_input_scales(p.m, y->producer, 0, arena, &n, &scale, &zero, &is_integer));
    assert_false(is_integer);
    oct_arena_free(arena);
    finish(&p);
}

/* Tokens: channels stand on the last axis, where a product sums; they need one scale. */
static void products_over_another_axis_get_one_scale(void **state)
{
    placed p;
    oct_value *x, *a, *b, *c, *tokens, *y;
    oct_node *t;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    b = emit(p.f, &oct_op_relu, layer(&p, "b", a, 4), NULL);
    c = join(&p, a, b, 1);
    t = node(p.f, &oct_op_transpose,
             emit(p.f, &oct_op_reshape, c, oct_ints(&p.f->b, (int64_t[]){1, 8, 64}, 3)), NULL,
             NULL);
    assert_ok(p.f->ctx, oct_node_set_ints(t, "perm", (int64_t[]){0, 2, 1}, 3));
    tokens = infer(p.f, t);
    y = emit(p.f, &oct_op_mat_mul, tokens, weights(p.f, &p.rng, 2, (int64_t[]){8, 5}));
    output(&p, y);
    output(&p, layer(&p, "dw", a, 0));
    place(&p);
    assert_true(is_active(&p, a));
    assert_int_equal(at(&p, a)->spec.axis, OCT_QSPEC_PER_TENSOR);
    assert_ptr_equal(oct_qmap_root(p.m, p.m->of_value[b->id]), at(&p, a));
    assert_int_equal(p.m->points[oct_qmap_at(p.m, y->producer, 1)].spec.axis, 1);
    finish(&p);
}

/* A sum that only float nodes read stays float: nothing would be won. */
static void float_readers_pull_no_points(void **state)
{
    placed p;
    oct_value *x, *a, *b, *sum, *norm, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    b = layer(&p, "b", x, 4);
    sum = emit(p.f, &oct_op_mul, a, b);
    norm = emit(p.f, &oct_op_exp, sum, NULL);
    y = layer(&p, "y", norm, 4);
    output(&p, y);
    place(&p);
    assert_null(at(&p, a));
    assert_null(at(&p, sum));
    assert_true(is_active(&p, norm));
    assert_string_equal(reason(&p, sum), "nothing reads its result as integers");
    finish(&p);
}

/* Attention: both operands of the product, although only Softmax reads its result. */
static void a_product_of_activations_is_integer(void **state)
{
    placed p;
    oct_value *x, *q, *k, *logits, *scaled;
    oct_node *s;

    start(&p, *state, "octet");
    x = graph_input(p.f, "x", OCT_DTYPE_F32, 3, (int64_t[]){1, 6, 8});
    q = emit(p.f, &oct_op_mat_mul, x, weights(p.f, &p.rng, 2, (int64_t[]){8, 4}));
    k = emit(p.f, &oct_op_mat_mul, x, weights(p.f, &p.rng, 2, (int64_t[]){8, 6}));
    k = emit(p.f, &oct_op_reshape, k, oct_ints(&p.f->b, (int64_t[]){1, 4, 9}, 3));
    logits = emit(p.f, &oct_op_mat_mul, q, k);
    scaled = emit(p.f, &oct_op_mul, logits, oct_scalar(&p.f->b, 0.5f));
    s = node(p.f, &oct_op_softmax, scaled, NULL, NULL);
    output(&p,
           emit(p.f, &oct_op_mat_mul, infer(p.f, s), weights(p.f, &p.rng, 2, (int64_t[]){9, 2})));
    p.o.tail = "off";
    place(&p);
    assert_true(is_active(&p, q));
    assert_int_equal(at(&p, k)->state, OCT_QSTATE_DOMINATED);
    assert_null(at(&p, logits));
    assert_null(at(&p, scaled));
    assert_true(is_active(&p, s->out[0]));
    finish(&p);
    p.o.model_type = "transformer";
    place(&p);
    assert_true(at(&p, q)->spec.is_symmetric && !at(&p, x)->spec.is_symmetric);
    finish(&p);
}

static void weights_that_change_stay_float(void **state)
{
    placed p;
    oct_value *x, *w, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    w = graph_input(p.f, "w", OCT_DTYPE_F32, 4, (int64_t[]){4, 3, 1, 1});
    y = infer(p.f, node(p.f, &oct_op_conv, x, w, NULL));
    output(&p, layer(&p, "z", y, 2));
    place(&p);
    assert_string_equal(reason(&p, y), "weights are not constant");
    assert_null(at(&p, x));
    assert_true(is_active(&p, y));
    finish(&p);
}

static void weight_axes_follow_the_operator(void **state)
{
    placed p;
    oct_value *x, *t, *g;
    oct_node *n;

    start(&p, *state, "octet");
    x = image(&p, 4);
    n = node(p.f, &oct_op_conv_transpose, x, weights(p.f, &p.rng, 4, (int64_t[]){4, 1, 2, 2}),
             NULL);
    assert_ok(p.f->ctx, oct_node_set_int(n, "group", 4));
    t = infer(p.f, n);
    n = node(p.f, &oct_op_gemm, emit(p.f, &oct_op_flatten, t, NULL),
             weights(p.f, &p.rng, 2, (int64_t[]){3, 4 * 81}),
             weights(p.f, &p.rng, 1, (int64_t[]){3}));
    assert_ok(p.f->ctx, oct_node_set_int(n, "transB", 1));
    g = infer(p.f, n);
    output(&p, g);
    place(&p);
    assert_int_equal(p.m->points[oct_qmap_at(p.m, t->producer, 1)].spec.axis, 0);
    assert_int_equal(p.m->points[oct_qmap_at(p.m, g->producer, 1)].spec.axis, 0);
    assert_int_equal(p.m->points[oct_qmap_at(p.m, g->producer, 2)].state, OCT_QSTATE_PASSIVE);
    finish(&p);
}

/* ONNX Runtime: a point behind each convolution, which may be switched off. */
static void ort_has_points_in_front_of_activations(void **state)
{
    placed p;
    oct_value *x, *a, *s, *sigmoid, *h, *l, *b;

    start(&p, *state, "ort");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    s = silu(&p, a);
    sigmoid = s->producer->in[1];
    h = layer(&p, "h", s, 4);
    l = layer(&p, "l", emit(p.f, &oct_op_hard_swish, h, NULL), 4);
    b = layer(&p, "b", emit(p.f, &oct_op_leaky_relu, l, NULL), 4);
    output(&p, emit(p.f, &oct_op_exp, b, NULL));
    place(&p);
    assert_ptr_equal(oct_place_preact(p.m, p.m->of_value[l->id]), l->producer);
    assert_true(is_active(&p, a) && is_active(&p, sigmoid) && is_active(&p, s));
    assert_ptr_equal(oct_place_preact(p.m, p.m->of_value[a->id]), a->producer);
    assert_ptr_equal(oct_place_preact(p.m, p.m->of_value[sigmoid->id]), a->producer);
    assert_null(oct_place_preact(p.m, p.m->of_value[s->id]));
    assert_true(is_active(&p, h)); /* read by nobody but HardSwish, which is float there */
    assert_ptr_equal(oct_place_preact(p.m, p.m->of_value[h->id]), h->producer);
    assert_ptr_equal(oct_place_preact(p.m, p.m->of_value[b->id]), b->producer);
    finish(&p);
}

static void ort_quantizes_constants_of_sums(void **state)
{
    placed p;
    oct_value *x, *a, *sum;
    int32_t k;

    start(&p, *state, "ort");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    sum = emit(p.f, &oct_op_mul, a, oct_scalar(&p.f->b, 0.5f));
    output(&p, layer(&p, "b", sum, 4));
    place(&p);
    k = oct_qmap_at(p.m, sum->producer, 1);
    assert_true(k >= 0 && p.m->points[k].node == sum->producer);
    finish(&p);
}

/* Variance as E[x^2] - E[x]^2, held above 0, 1 / deviation times a scale: as Flax writes
 * LayerNorm. All of it stays float, and what comes out is rounded again. */
static void normalisation_is_computed_in_float(void **state)
{
    fixture *f = *state;
    oct_builder *b = &f->b;
    oct_value *x, *axes, *mean, *square, *v, *root, *inverse, *scaled, *y, *z;
    placed p;

    start(&p, f, "octet");
    x = emit(f, &oct_op_relu, layer(&p, "a", image(&p, 3), 4), NULL);
    axes = oct_ints(b, (int64_t[]){3}, 1);
    mean = emit(f, &oct_op_reduce_mean, x, axes);
    square = emit(f, &oct_op_reduce_mean, emit(f, &oct_op_mul, x, x), axes);
    v = emit(f, &oct_op_sub, square, emit(f, &oct_op_mul, mean, mean));
    root = emit(f, &oct_op_max, oct_scalar(b, 0), v);
    root = reshape(f, root, 4, (int64_t[]){1, 4, 8, 1});
    root = emit(f, &oct_op_sqrt, emit(f, &oct_op_add, root, oct_scalar(b, 1e-6f)), NULL);
    inverse = emit(f, &oct_op_reciprocal, root, NULL);
    scaled = emit(f, &oct_op_mul, inverse, oct_scalar(b, 2));
    y = emit(f, &oct_op_mul, emit(f, &oct_op_sub, x, mean), scaled);
    z = layer(&p, "z", y, 4);
    output(&p, layer(&p, "last", z, 4));
    for (int i = 0; (p.t = oct_target_at(i)); i++) {
        place(&p);
        assert_true(!at(&p, v) && !at(&p, square) && !at(&p, mean));
        assert_true(!at(&p, inverse) && !at(&p, scaled));
        assert_true(oct_qmap_at(p.m, z->producer, 0) >= 0);
        assert_null(reason(&p, z));
        finish(&p);
    }
}

/* TensorRT: others go on reading floats. */
static void tensorrt_has_points_where_layers_read(void **state)
{
    placed p;
    oct_value *x, *a, *b, *e;

    start(&p, *state, "tensorrt");
    x = image(&p, 3);
    a = emit(p.f, &oct_op_relu, layer(&p, "a", x, 4), NULL);
    b = layer(&p, "b", a, 4);
    e = emit(p.f, &oct_op_exp, a, NULL);
    output(&p, emit(p.f, &oct_op_mul, b, e));
    place(&p);
    assert_true(is_active(&p, x));
    assert_null(at(&p, a));
    assert_true(oct_qmap_at(p.m, b->producer, 0) >= 0);
    assert_true(oct_qmap_at(p.m, e->producer, 0) < 0);
    assert_true(p.m->points[oct_qmap_at(p.m, b->producer, 0)].spec.is_symmetric);
    finish(&p);
}

static void settings_are_checked(void **state)
{
    placed p;
    const oct_target *t;

    start(&p, *state, "octet");
    output(&p, layer(&p, "a", image(&p, 3), 4));
    p.o.preset = "performance";
    place(&p);
    assert_true(p.m->points[0].spec.is_symmetric);
    assert_true(p.m->target->act.is_symmetric); /* later stages see the same row */
    finish(&p);
    p.o.preset = "performanse";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "'performance'");
    p.o.preset = NULL;
    p.o.target_device = "CPU_SPT";
    assert_fails(p.f->ctx, oct_place(p.f->g, p.t, &p.o, &p.m), OCT_ERR_ARG, "'CPU_SPR'");
    p.o.target_device = "NPU";
    p.o.model_type = "transformer";
    place(&p);
    finish(&p);
    assert_fails(p.f->ctx, oct_target_find(p.f->ctx, "openvine", &t), OCT_ERR_ARG, "'openvino'");
}

static void every_target_is_sound(void **state)
{
    placed p;
    oct_value *x, *a, *b, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = silu(&p, layer(&p, "a", x, 4));
    b = emit(p.f, &oct_op_relu, layer(&p, "b", a, 0), NULL);
    y = layer(&p, "y", join(&p, a, emit(p.f, &oct_op_add, a, b), 1), 4);
    output(&p, emit(p.f, &oct_op_sigmoid, y, NULL));
    for (int i = 0; (p.t = oct_target_at(i)); i++) {
        place(&p);
        for (int32_t k = 0; k < p.m->n_points; k++)
            assert_ok(p.f->ctx, oct_qspec_check(p.f->ctx, &p.m->points[k].spec));
        assert_true(oct_qmap_at(p.m, y->producer, 1) >= 0);
        finish(&p);
    }
}

static void integer_outputs_have_points(void **state)
{
    placed p;
    oct_value *x, *y;

    start(&p, *state, "octet");
    x = image(&p, 3);
    y = emit(p.f, &oct_op_sigmoid, layer(&p, "a", x, 4), NULL);
    output(&p, y);
    p.o.int8_io = 1;
    place(&p);
    assert_true(is_active(&p, y));
    finish(&p);
}

/* A file may leave operands out: no crash, no points. */
static void broken_nodes_stay_float(void **state)
{
    placed p;
    oct_value *x, *a;
    const oct_op *const ops[] = {&oct_op_add, &oct_op_mul,     &oct_op_conv,    &oct_op_gemm,
                                 &oct_op_sub, &oct_op_mat_mul, &oct_op_concat,  &oct_op_reshape,
                                 &oct_op_pad, &oct_op_slice,   &oct_op_softmax, &oct_op_resize};

    start(&p, *state, "octet");
    x = image(&p, 3);
    a = layer(&p, "a", x, 4);
    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        oct_node *n =
            oct_emit_node(&p.f->b, ops[i], (oct_value *[]){a, NULL}, 1 + (int32_t)(i % 2), 1);

        assert_non_null(n);
        n->out[0]->type = a->type;
        output(&p, n->out[0]);
        n = oct_emit_node(&p.f->b, ops[i], (oct_value *[]){NULL, n->out[0]}, 2, 1);
        n->out[0]->type = a->type;
        output(&p, n->out[0]);
    }
    for (int i = 0; (p.t = oct_target_at(i)); i++) {
        place(&p);
        finish(&p);
    }
}

static oct_value *small_const(oct_graph *g, int32_t rank, const int64_t *dims)
{
    const oct_type t = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *data = NULL;

    return oct_tensor_make(g->ctx, &t, &data) ? NULL : oct_value_const(g, NULL, data);
}

static oct_status build(oct_graph *g)
{
    const oct_type t = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 4, 4});
    oct_builder b = {.g = g};
    oct_value *x = oct_value_new(g, "x", &t), *w, *y, *c;
    oct_node *n;

    if (!x || oct_graph_add_input(g, x)) return OCT_ERR_MEMORY;
    if (!(w = small_const(g, 4, (int64_t[]){2, 2, 1, 1}))) return OCT_ERR_MEMORY;
    y = oct_emit(&b, &oct_op_relu, oct_emit(&b, &oct_op_conv, x, w, NULL), NULL, NULL);
    if (b.status) return b.status;
    n = oct_emit_node(&b, &oct_op_concat, (oct_value *[]){x, y}, 2, 1);
    if (!n || oct_node_set_int(n, "axis", 1) || oct_node_infer(n)) return OCT_ERR_MEMORY;
    if (!(w = small_const(g, 4, (int64_t[]){4, 1, 1, 1}))) return OCT_ERR_MEMORY;
    if (!(n = oct_emit_node(&b, &oct_op_conv, (oct_value *[]){n->out[0], w}, 2, 1)))
        return OCT_ERR_MEMORY;
    if (oct_node_set_int(n, "group", 4) || oct_node_infer(n)) return OCT_ERR_MEMORY;
    c = oct_emit(&b, &oct_op_sigmoid, n->out[0], NULL, NULL);
    return c ? oct_graph_add_output(g, c) : OCT_ERR_MEMORY;
}

static oct_status place_all(oct_ctx *ctx)
{
    const char *name = "x", *pattern = ".*";
    const oct_quant_override over = {.pattern = ".*", .activation_ranges = "minmax"};
    oct_quantize_options o = {.struct_size = sizeof(o), .overrides = &over, .n_overrides = 1};
    const oct_target *t;
    oct_graph *g = NULL;
    oct_qmap *m = NULL;
    oct_status st = oct_graph_new(ctx, "g", &g);

    o.only = (oct_scope){.names = &name, .n_names = 1, .patterns = &pattern, .n_patterns = 1};
    if (!st) st = build(g);
    if (!st) st = oct_target_find(ctx, "octet", &t);
    if (!st) st = oct_place(g, t, &o, &m);
    oct_qmap_free(m);
    oct_graph_free(g);
    return st;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    fail_each_allocation(place_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_stands_inside_a_group, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_read_elsewhere_has_a_point, setup, teardown),
        cmocka_unit_test_setup_teardown(a_written_out_activation_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_residual_sum_is_part_of_its_convolution, setup, teardown),
        cmocka_unit_test_setup_teardown(concat_keeps_shares_or_requantizes, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_at_depthwise_have_scales_for_channels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(gated_tensors_have_scales_for_channels, setup, teardown),
        cmocka_unit_test_setup_teardown(exponents_of_channels_stay_between_convolutions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(scales_reach_their_readers, setup, teardown),
        cmocka_unit_test_setup_teardown(products_over_another_axis_get_one_scale, setup, teardown),
        cmocka_unit_test_setup_teardown(float_readers_pull_no_points, setup, teardown),
        cmocka_unit_test_setup_teardown(a_product_of_activations_is_integer, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_that_change_stay_float, setup, teardown),
        cmocka_unit_test_setup_teardown(weight_axes_follow_the_operator, setup, teardown),
        cmocka_unit_test_setup_teardown(ort_has_points_in_front_of_activations, setup, teardown),
        cmocka_unit_test_setup_teardown(ort_quantizes_constants_of_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(normalisation_is_computed_in_float, setup, teardown),
        cmocka_unit_test_setup_teardown(tensorrt_has_points_where_layers_read, setup, teardown),
        cmocka_unit_test_setup_teardown(settings_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(every_target_is_sound, setup, teardown),
        cmocka_unit_test_setup_teardown(integer_outputs_have_points, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_nodes_stay_float, setup, teardown),
        cmocka_unit_test(memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
