/* SPDX-License-Identifier: Apache-2.0 */
/* Learning block by block: the gradients of a block, what it reads, whole quantizations. */
#include "quant/learn/change.h"
#include "quant/learn/guard.h"
#include "tests/unit/place_net.h"
#include "tests/unit/quant_job.h"

/* --- one block --- */

static void solve_all(placed *p)
{
    for (int32_t i = 0; i < p->m->n_points; i++) {
        const oct_qpoint *q = &p->m->points[i];
        const bool channels = q->spec.axis >= 0 && q->role == OCT_QROLE_WEIGHT;
        float scale[16];
        int32_t zero[16] = {0};

        if (q->state != OCT_QSTATE_ACTIVE) continue;
        for (int k = 0; k < 16; k++)
            scale[k] = .05f;
        p->m->points[i].spec.axis = channels ? q->spec.axis : OCT_QSPEC_PER_TENSOR;
        assert_ok(p->f->ctx, oct_qpoint_set(p->m, i, scale, zero,
                                            channels ? q->value->type.dim[q->spec.axis] : 1, "t"));
    }
}

static double loss_with(oct_block_net *net, int64_t i, float x)
{
    const float was = net->values[i];
    double loss;

    net->values[i] = x;
    assert_ok(net->ctx, oct_block_net_step(net));
    loss = oct_block_net_loss(net);
    net->values[i] = was;
    return loss;
}

static void check_param(oct_block_net *net, int32_t param)
{
    const oct_param *p = &net->params.v[param];
    const int64_t n = p->len < 4 ? p->len : 4;
    float grad[4];

    assert_ok(net->ctx, oct_block_net_step(net));
    memcpy(grad, oct_block_net_grad(net, param), (size_t)n * sizeof(*grad));
    for (int64_t i = 0; i < n; i++) {
        const float at = net->values[p->offset + i], step = 1e-2f;
        const double slope =
            (loss_with(net, p->offset + i, at + step) - loss_with(net, p->offset + i, at - step)) /
            (2 * (double)step);

        if (fabs(slope - (double)grad[i]) > 1e-3 * (1 + fabs(slope)))
            fail_msg("parameter %d, %d: %g, differences say %g", (int)param, (int)i,
                     (double)grad[i], slope);
    }
}

/* Two blocks: layers a and b, and c. */
static oct_block_net *net_of(placed *p, void *state, const char *target, int32_t block, bool scales,
                             float size, oct_arena **a)
{
    const double one[] = {1, 1, 1};
    const oct_block *k;
    oct_block_net *net = NULL;
    oct_blocks b;

    start(p, state, target);
    output(p, layer(p, "c", silu(p, layer(p, "b", layer(p, "a", image(p, 3), 4), 4)), 4));
    p->o.tail = "off";
    place(p);
    solve_all(p);
    *a = oct_arena_new(p->f->ctx);
    assert_ok(p->f->ctx, oct_blocks_find(p->m, 4, *a, &b));
    assert_int_equal(b.n, 2);
    k = &b.item[block];
    assert_ok(p->f->ctx, oct_block_net_new(p->m, k, one, scales, &net));
    for (int64_t i = 0; i < oct_type_len(&k->in[0]->type); i++)
        net->in[0][i] = size * (float)oct_rng_normal(&p->rng);
    for (int64_t i = 0; i < oct_type_len(&k->out[0]->type); i++)
        net->target[0][i] = (float)oct_rng_normal(&p->rng);
    return net;
}

/* The last layer: no rounding between its weights and the loss. */
static void blocks_have_gradients(void **state)
{
    placed p;
    oct_arena *a;
    oct_block_net *net = net_of(&p, *state, "octet", 1, true, 1, &a);

    assert_int_equal(net->n_layers, 1);
    assert_int_equal(net->n_scales, 0); /* its input is the other block's, its result is float */
    assert_int_equal(net->params.n, 2);
    for (int32_t i = 0; i < net->params.n; i++)
        check_param(net, i);
    oct_block_net_free(net);
    oct_arena_free(a);
    finish(&p);
}

/* Places that count nothing have no error, those that count twice have twice as much. */
static void places_count(void **state)
{
    placed p;
    oct_arena *a;
    oct_block_net *net = net_of(&p, *state, "octet", 1, true, 1, &a);
    const int64_t n = oct_objects_places(&net->block->out[0]->type);
    double loss[3];

    assert_true(n > 0 && net->counts[0][0] == 1);
    for (int times = 0; times < 3; times++) {
        for (int64_t i = 0; i < n; i++)
            net->counts[0][i] = (float)times;
        assert_ok(net->ctx, oct_block_net_step(net));
        loss[times] = oct_block_net_loss(net);
    }
    assert_true(loss[0] == 0 && loss[1] > 0 && fabs(loss[2] / loss[1] - 2) < 1e-5);
    oct_block_net_free(net);
    oct_arena_free(a);
    finish(&p);
}

/* What is beyond the codes is the largest value that has one: smooth in the scale. */
static void scales_have_gradients(void **state)
{
    placed p;
    oct_arena *a;
    oct_block_net *net = net_of(&p, *state, "octet", 0, true, 1e4f, &a);
    bool has_result = false;

    assert_true(net->n_scales > 0);
    for (int32_t i = 0; i < net->n_scales; i++)
        net->values[net->params.v[net->scales[i].param].offset] = -11;
    for (int32_t i = 0; i < net->n_scales; i++) {
        const oct_qpoint *q = &p.m->points[net->scales[i].point];

        assert_true(q->value->producer != NULL); /* the network's input keeps its own */
        assert_int_equal(net->scales[i].kind, OCT_STEP_LOG2);
        has_result |= q->value == net->block->out[0];
        check_param(net, net->scales[i].param);
    }
    assert_true(has_result);
    oct_block_net_free(net);
    oct_arena_free(a);
    finish(&p);
}

static void exponents_are_learned(void **state)
{
    placed p;
    oct_arena *a;
    oct_block_net *net = net_of(&p, *state, "npu-pow2", 1, true, 1, &a);

    assert_int_equal(net->n_scales, 1); /* of what the network gives */
    assert_int_equal(net->scales[0].kind, OCT_STEP_LOG2_WHOLE);
    oct_block_net_free(net);
    oct_arena_free(a);
    finish(&p);
}

/* Logits that only a Sigmoid reads: their range was chosen for scores, and errors count within. */
static void scores_keep_their_range(void **state)
{
    const double one[] = {1, 1, 1};
    placed p;
    oct_arena *a;
    oct_value *x, *logits, *s;
    oct_block_values values = {0};
    oct_blocks b;
    int n_learned = 0;

    start(&p, *state, "npu-pow2");
    x = silu(&p, layer(&p, "a", image(&p, 3), 4));
    logits = layer(&p, "b", x, 4);
    s = emit(p.f, &oct_op_sigmoid, join(&p, logits, layer(&p, "c", x, 4), 2), NULL);
    name_node(s, "s");
    output(&p, s);
    p.o.tail = "s";
    place(&p);
    solve_all(&p);
    a = oct_arena_new(p.f->ctx);
    assert_ok(p.f->ctx, oct_blocks_find(p.m, 4, a, &b));
    for (int32_t i = 0; i < b.n; i++) {
        oct_block_net *net = NULL;

        assert_ok(p.f->ctx, oct_block_net_new(p.m, &b.item[i], one, true, &net));
        for (int32_t k = 0; k < net->n_scales; k++)
            assert_ptr_not_equal(p.m->points[net->scales[k].point].value, logits);
        n_learned += net->n_scales;
        oct_block_net_free(net);
    }
    assert_true(n_learned > 0); /* of the others */
    values.low = oct_arena_array(a, (size_t)p.f->g->n_value_ids + 1, sizeof(float));
    values.high = oct_arena_array(a, (size_t)p.f->g->n_value_ids + 1, sizeof(float));
    assert_ok(p.f->ctx, oct_block_values_bound(&values, p.m, a));
    assert_true(fabsf(values.low[logits->id] + 128 * .05f) < 1e-5f);
    assert_true(fabsf(values.high[logits->id] - 127 * .05f) < 1e-5f);
    assert_true(values.low[x->id] == 0 && values.high[x->id] == 0);
    oct_arena_free(a);
    finish(&p);
}

static void values_stay_within_bounds(void **state)
{
    fixture *f = *state;
    const int64_t four = 4;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &four);
    oct_value *x = oct_value_new(f->g, "x", &type);
    float low[8] = {0}, high[8] = {0}, scratch[8];
    const float y[] = {-100, -1, 3, 100};
    const oct_block_values values = {.low = low, .high = high};

    assert_true(x->id < 8);
    assert_ptr_equal(oct_block_values_within(&values, x, y, scratch), y);
    low[x->id] = -2;
    high[x->id] = 4;
    assert_ptr_equal(oct_block_values_within(&values, x, y, scratch), scratch);
    assert_true(scratch[0] == -2 && scratch[1] == -1 && scratch[2] == 3 && scratch[3] == 4);
}

/* Every value is 2 as the float network has it, and 1 as it is now. */
static void a_share_of_inputs_is_dropped(void **state)
{
    enum { N = 10001, PICTURES = 2 };
    static const double shares[] = {0, .25, .5, 1};
    fixture *f = *state;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, (int64_t[]){N});
    uint16_t *exact = oct_calloc(f->ctx, N * PICTURES, sizeof(*exact));
    uint16_t *now = oct_calloc(f->ctx, N * PICTURES, sizeof(*now));
    uint16_t *by_id[OCT_SIDES][8] = {{0}};
    oct_value *input = oct_value_new(f->g, "x", &type), *v;
    const oct_block_values values = {.data = {by_id[OCT_SIDE_EXACT], by_id[OCT_SIDE_NOW]}};
    float *to = oct_calloc(f->ctx, N, sizeof(*to)), *scratch = oct_calloc(f->ctx, N, sizeof(*to));
    oct_rng rng;

    oct_rng_init(&rng, 3);
    v = emit(f, &oct_op_relu, input, NULL);
    for (int64_t i = 0; i < N * PICTURES; i++) {
        exact[i] = oct_f32_to_f16(i < N ? 7 : 2);
        now[i] = oct_f32_to_f16(i < N ? 7 : 1);
    }
    assert_true(v->id < 8 && input->id < 8);
    for (int i = 0; i < 2; i++) {
        by_id[OCT_SIDE_EXACT][i ? v->id : input->id] = exact;
        by_id[OCT_SIDE_NOW][i ? v->id : input->id] = now;
    }
    for (size_t k = 0; k < OCT_COUNT(shares); k++) {
        int64_t dropped = 0;

        oct_block_values_mix(&values, v, 1, shares[k], &rng, to, scratch);
        for (int64_t i = 0; i < N; i++) {
            assert_true(to[i] == 1 || to[i] == 2);
            dropped += to[i] == 2;
        }
        /* five standard errors of half a share: 250 */
        assert_true(fabs((double)dropped - shares[k] * N) <= (k == 1 || k == 2 ? 250 : 0));
    }
    oct_block_values_mix(&values, input, 1, 1, &rng, to, scratch); /* no block before it errs */
    assert_true(to[0] == 1 && to[N - 1] == 1);
    oct_free(f->ctx, exact);
    oct_free(f->ctx, now);
    oct_free(f->ctx, to);
    oct_free(f->ctx, scratch);
}

/* --- changes --- */

static int32_t activation_of(const placed *p)
{
    int32_t i = 0;

    while (p->m->points[i].role != OCT_QROLE_ACT || p->m->points[i].state != OCT_QSTATE_ACTIVE)
        i++;
    return i;
}

/* Weights, biases, scales and how they came about are as before. */
static void changes_can_be_taken_out(void **state)
{
    float zeros[4 * 4 * 9] = {0}, shift[4] = {1, 2, 3, 4};
    placed p;
    oct_arena *a;
    oct_block_net *net = net_of(&p, *state, "npu-pow2", 1, true, 1, &a);
    const oct_node *n = net->layers[0].node;
    const oct_value *w = p.f->g->values[n->in[1]->id];
    const oct_tensor *was = w->data;
    const oct_qpoint *q = &p.m->points[activation_of(&p)];
    const oct_qpoint *of_weight = &p.m->points[oct_qmap_at(p.m, n, 1)];
    const float weight_scale = of_weight->scale[0];
    float other_scale[1] = {2 * weight_scale};
    oct_learned_layer layer = {n, zeros, shift, 4, other_scale, 1};
    oct_learned_scale scale = {(int32_t)(q - p.m->points), .125f};
    const oct_learned learned = {&layer, 1, &scale, 1};
    oct_change c;

    assert_true(oct_tensor_len(was) <= 4 * 4 * 9 && of_weight->n == 1);
    assert_ok(p.f->ctx, oct_change_make(p.f->ctx, &learned, a, &c));
    assert_ok(p.f->ctx, oct_change_swap(&c, p.m, p.f->g));
    assert_true(c.is_in && w->data != was && oct_tensor_get_f64(w->data, 1) == 0);
    assert_true(q->scale[0] == .125f && strstr(q->scale_by, "learned"));
    assert_true(of_weight->scale[0] == 2 * weight_scale && strstr(of_weight->scale_by, "learned"));
    assert_true(oct_qmap_shift_of(p.m, n)->shift[2] == 3);
    assert_ok(p.f->ctx, oct_change_swap(&c, p.m, p.f->g));
    assert_true(!c.is_in && w->data == was);
    assert_true(q->scale[0] == .05f && !strstr(q->scale_by, "learned"));
    assert_true(of_weight->scale[0] == weight_scale && !strstr(of_weight->scale_by, "learned"));
    assert_true(oct_qmap_shift_of(p.m, n)->shift[2] == 0);
    oct_change_fini(&c);
    oct_block_net_free(net);
    oct_arena_free(a);
    finish(&p);
}

/* Block `spoils` makes the network worse, those before it better. */
static oct_status spoiled_by(void *arg, int32_t n, double *noise)
{
    const int32_t *spoils = arg;

    *noise = n > *spoils ? 2 : 1 - .01 * n;
    return OCT_OK;
}

static void the_last_good_block_is_found(void **state)
{
    (void)state;
    for (int32_t spoils = 0; spoils < 9; spoils++) {
        int32_t kept = -1, at = spoils;
        double noise = 0;

        assert_int_equal(oct_guard_search(9, 1, spoiled_by, &at, &kept, &noise), OCT_OK);
        assert_int_equal(kept, spoils);
        assert_true(fabs(noise - (1 - .01 * spoils)) < 1e-12);
    }
}

/* --- whole quantizations --- */

static void run_on_held_out(files *t, const oct_graph *g, oct_tensor **out)
{
    const oct_tensor *y = NULL;
    oct_tensor *x = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    assert_ok(t->ctx, oct_tensor_load_npy(t->ctx, below(t, "items/3.npy"), &x));
    assert_ok(t->ctx, oct_plan_new(g, NULL, &p));
    assert_ok(t->ctx, oct_run_new(t->ctx, p, &r));
    assert_ok(t->ctx, oct_run_set_input(r, oct_plan_input_name(p, 0), x));
    assert_ok(t->ctx, oct_run_execute(r));
    assert_ok(t->ctx, oct_run_output(r, 0, &y));
    assert_ok(t->ctx, oct_tensor_copy(t->ctx, y, out));
    oct_run_free(r);
    oct_plan_free(p);
    oct_tensor_unref(x);
}

/* Error power / signal power of the quantized network on the picture that is held out. */
static double held_out_noise(files *t, const oct_quantized *q)
{
    oct_tensor *want = NULL, *got = NULL;
    double error = 0, power = 0;

    run_on_held_out(t, t->f->g, &want);
    run_on_held_out(t, oct_quantized_graph(q), &got);
    for (int64_t i = 0; i < oct_tensor_len(want); i++) {
        const double y = oct_tensor_get_f64(want, i), e = oct_tensor_get_f64(got, i) - y;

        error += e * e;
        power += y * y;
    }
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    return error / power;
}

/* Scales of powers of two end as such. */
static void check_exponents(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next) {
        const oct_tensor *t = oct_node_is(n, &oct_op_quantize_linear) ? oct_node_const(n, 1) : NULL;
        int e;

        if (t) assert_true(frexp(oct_tensor_get_f64(t, 0), &e) == 0.5);
    }
}

typedef struct outcome {
    double noise, last; /* of the file; as the last block says */
    int32_t blocks, better, learned;
} outcome;

static outcome quantize_with(files *t, const oct_dataset *d, const char *target, bool adaround,
                             bool lsq, double drop)
{
    oct_quantize_block b = {.struct_size = sizeof(b)};
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_quantize_options o;
    oct_quantized *q = NULL;
    outcome out = {0};

    oct_quantize_options_init(&o);
    o.target = target;
    o.weight_bits = 3;
    o.tail = "off";
    o.adaround = adaround;
    o.lsq = lsq;
    o.reconstruct_drop = drop;
    o.reconstruct_steps = adaround ? 1000 : 25; /* fewer are LSQ's */
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    out.noise = held_out_noise(t, q);
    for (int32_t i = 0; oct_quantized_block(q, i, &b); i++) {
        assert_true(b.after <= b.before);
        assert_true(!b.was_put_back || b.after == b.before);
        out.blocks++;
        out.better += b.after < b.before;
        out.last = b.after;
    }
    oct_quantized_summary(q, &s);
    out.learned = s.learned;
    assert_true(s.learned_after <= s.learned_before);
    if (strcmp(target, "npu-pow2") == 0) check_exponents(oct_quantized_graph(q));
    if (s.learned > 0)
        assert_fails(t->ctx, oct_quantized_save_qmap(q, below(t, "q.json")), OCT_ERR_UNSUPPORTED,
                     "learning");
    oct_quantized_free(q);
    return out;
}

/* Of unrelated pixels nearest rounding is the best there is; pictures are not like that. */
static oct_value *smooth(fixture *f, oct_value *x)
{
    oct_node *n = node(f, &oct_op_average_pool, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){5, 5}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){2, 2, 2, 2}, 4));
    return infer(f, n);
}

/* Three pictures leave none to judge by, and nothing learns in both ways at once. */
static void refuse(files *t)
{
    oct_dataset_options few;
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_dataset *d = NULL;

    oct_dataset_options_init(&few);
    few.images = below(t, "items");
    few.limit = 3;
    assert_ok(t->ctx, oct_dataset_open(t->ctx, &few, &d));
    oct_quantize_options_init(&o);
    o.tail = "off";
    o.lsq = 1;
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "too few");
    o.reconstruct_drop = 1.5;
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "drop_prob 1.5");
    o.adaround = 1;
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "one of them only");
    oct_dataset_close(d);
}

/* The file has the very weights whose error was measured, and that error is smaller. */
static void blocks_learn(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *z;
    oct_dataset *d;
    oct_rng rng;
    int differ = 0;

    oct_ctx_set_threads(f->ctx, 1); /* many small steps */
    oct_rng_init(&rng, 5);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 24, 24});
    y = conv(f, &rng, smooth(f, x), &(conv_case){3, 8, 3, 1, 1, 1, 1});
    y = emit(f, &oct_op_relu, y, NULL);
    z = conv(f, &rng, y, &(conv_case){8, 8, 3, 1, 1, 1, 1});
    y = emit(f, &oct_op_add, y, emit(f, &oct_op_relu, z, NULL));
    y = conv(f, &rng, y, &(conv_case){8, 8, 3, 1, 1, 1, 1});
    y = conv(f, &rng, emit(f, &oct_op_relu, y, NULL), &(conv_case){8, 4, 1, 1, 1, 0, 1});
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    d = items(t, x, 2);
    for (int lsq = 0; lsq < 2; lsq++) {
        const char *target = lsq ? "npu-pow2" : "octet";
        const outcome none = quantize_with(t, d, target, false, false, 0);
        const outcome now = quantize_with(t, d, target, !lsq, lsq, 0);
        const outcome dropping = quantize_with(t, d, target, !lsq, lsq, .5);

        assert_int_equal(none.learned, -1);
        assert_int_equal(none.blocks, 0);
        assert_int_equal(now.blocks, 2);
        assert_true(now.learned > 0 && now.better > 0);
        assert_true(dropping.better > 0);
        differ += dropping.noise != now.noise;
        if (!(fabs(now.noise - now.last) < .1 * now.last))
            fail_msg("%s: the file has noise %g, the last block had %g", target, now.noise,
                     now.last);
    }
    assert_true(differ > 0); /* unless what was learned is put back */
    oct_dataset_close(d);
    refuse(t);
}

/* Four bits, and hardly any gradients: codes that make up for each other are what helps. Layers of
 * all kinds: with groups, a stride, of one pixel. */
static void few_bits_are_compensated(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_dataset *d;
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_rng rng;

    oct_ctx_set_threads(f->ctx, 2);
    oct_rng_init(&rng, 6);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 24, 24});
    y = conv(f, &rng, smooth(f, x), &(conv_case){3, 16, 3, 1, 1, 1, 1});
    y = emit(f, &oct_op_relu, y, NULL);
    y = conv(f, &rng, y, &(conv_case){16, 16, 3, 2, 1, 1, 4});
    y = conv(f, &rng, emit(f, &oct_op_relu, y, NULL), &(conv_case){16, 16, 1, 1, 1, 0, 1});
    y = conv(f, &rng, emit(f, &oct_op_relu, y, NULL), &(conv_case){16, 8, 3, 1, 1, 1, 1});
    y = conv(f, &rng, emit(f, &oct_op_relu, y, NULL), &(conv_case){8, 4, 1, 1, 1, 0, 1});
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    d = items(t, x, 2);
    oct_quantize_options_init(&o);
    o.weight_bits = 4;
    o.lsq = 1;
    o.reconstruct_steps = 1;
    o.reconstruct_rate = 1e-12;
    o.reconstruct_fix_scales = 1;
    assert_ok(f->ctx, oct_quantize(f->g, d, &o, &q));
    oct_quantized_summary(q, &s);
    assert_true(s.learned > 0);
    if (!(s.learned_after < .8 * s.learned_before))
        fail_msg("noise %g before, %g after", s.learned_before, s.learned_after);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_can_be_taken_out, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_have_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(places_count, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_have_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(exponents_are_learned, setup, teardown),
        cmocka_unit_test_setup_teardown(scores_keep_their_range, setup, teardown),
        cmocka_unit_test_setup_teardown(values_stay_within_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_share_of_inputs_is_dropped, setup, teardown),
        cmocka_unit_test(the_last_good_block_is_found),
        cmocka_unit_test_setup_teardown(blocks_learn, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(few_bits_are_compensated, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
