/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random small networks of QuantizeLinear, DequantizeLinear and what may stand between them, in
 * forms no exporter writes but a file may have: the plan in integers and the simulation against
 * plain evaluation. Where sums occur all scales are powers of two and numbers short enough to be
 * exact in float, so results are the same bit for bit, whatever the order of the sums.
 */
#include "tests/unit/quant_net.h"

#include "exec/kernel.h"

enum { SIDE = 4, MAX_VALUES = 32, MAX_OUT = 16, MAX_BITS = 22, N_GRAPHS = 4000 };

/* A value of the network. Floats are multiples of 2^low, below 2^high; codes have `high` bits. */
typedef struct item {
    oct_value *v;
    int low, high;
} item;

typedef struct maker {
    fixture *f;
    oct_rng rng;
    bool is_exact; /* sums may occur */
    item items[MAX_VALUES];
    int n;
} maker;

static int pick(maker *m, int n)
{
    return (int)(oct_rng_f64(&m->rng) * n);
}

static bool is_float(const item *i)
{
    return i->v->type.dtype == OCT_DTYPE_F32;
}

static void add(maker *m, oct_value *v, int low, int high)
{
    if (m->n < MAX_VALUES) m->items[m->n++] = (item){v, low, high};
}

static const int64_t shape[4] = {1, SIDE, SIDE, SIDE};

static int bits_of(oct_dtype t)
{
    return t == OCT_DTYPE_U8 || t == OCT_DTYPE_I8 ? 8 : 10; /* wide codes are not used up */
}

static int32_t random_code(maker *m, oct_dtype t)
{
    const bool is_signed = t == OCT_DTYPE_I8 || t == OCT_DTYPE_I16;
    const int n = 1 << bits_of(t);

    return pick(m, n) - (is_signed ? n / 2 : 0);
}

static oct_dtype random_type(maker *m)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_I8,  OCT_DTYPE_U8,
                                      OCT_DTYPE_I8, OCT_DTYPE_U16, OCT_DTYPE_I16};

    return types[pick(m, (int)OCT_COUNT(types))];
}

/* --- sources --- */

static void fill(maker *m, oct_tensor *t)
{
    for (int64_t i = 0; i < oct_tensor_len(t); i++) {
        const double number = (double)(pick(m, 512) - 256) / 64;
        const int64_t code = t->type.dtype == OCT_DTYPE_F32 ? 0 : random_code(m, t->type.dtype);

        if (t->type.dtype == OCT_DTYPE_F32)
            oct_store_f64(OCT_DTYPE_F32, t->data, i, 1, &number);
        else
            oct_store_i64(t->type.dtype, t->data, i, 1, &code);
    }
}

static void add_source(maker *m, oct_dtype type, bool is_const)
{
    const oct_type t = oct_type_make(type, 4, shape);
    oct_tensor *data = NULL;
    char name[16];

    snprintf(name, sizeof(name), "x%d", m->n);
    if (is_const) {
        assert_ok(m->f->ctx, oct_tensor_make(m->f->ctx, &t, &data));
        fill(m, data);
    }
    add(m,
        is_const ? oct_value_const(m->f->g, NULL, data) : graph_input(m->f, name, type, 4, shape),
        -6, type == OCT_DTYPE_F32 ? 2 : bits_of(type));
}

/* --- nodes --- */

/* Scales and zero points of which there are few, so that pairs are often equal. */
static oct_value *convert(maker *m, const item *x, int *low, int *high)
{
    const bool back = !is_float(x);
    const oct_dtype t = back ? x->v->type.dtype : random_type(m);
    const int n = pick(m, 4) ? 1 : SIDE, power = -4 - pick(m, 2);
    const bool is_signed = t == OCT_DTYPE_I8 || t == OCT_DTYPE_I16;
    float scale[SIDE];
    int32_t zero[SIDE];
    oct_value *v;

    for (int i = 0; i < n; i++) {
        scale[i] = m->is_exact ? ldexpf(1, power - i % 2) : power == -4 ? 0.0171f : 0.023f;
        zero[i] = is_signed ? 3 * i : 120;
    }
    v = linear(m->f, back ? &oct_op_dequantize_linear : &oct_op_quantize_linear, x->v, t, scale,
               pick(m, 3) && t != OCT_DTYPE_U8 ? NULL : zero, n, 1 + pick(m, 3));
    *low = back ? power - (n > 1) : 0;
    *high = back ? x->high + 1 + power : bits_of(t) + (bits_of(t) > 8 ? 4 : 0);
    return v;
}

static oct_value *weights_of(maker *m, int rank)
{
    const int64_t dims[4] = {SIDE, SIDE, rank == 2 ? SIDE : 1, 1};
    int32_t data[SIDE * SIDE];
    oct_value *w;

    for (int i = 0; i < SIDE * SIDE; i++)
        data[i] = pick(m, 16) - 8;
    w = constant_int(m->f, OCT_DTYPE_I8, rank, dims, data);
    w = dequantize(m->f, w, &(float){0.125f}, NULL, 1, 0);
    if (!pick(m, 3)) w = qdq(m->f, w, OCT_DTYPE_I8, &(float){0.125f}, NULL, 1, 0);
    return w;
}

static oct_value *pool(maker *m, oct_value *x)
{
    oct_node *n = node(m->f, &oct_op_max_pool, x, NULL, NULL);

    assert_ok(m->f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    assert_ok(m->f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    return infer(m->f, n);
}

/* The halves of the channels change places. */
static oct_value *swap_halves(maker *m, oct_value *x)
{
    oct_node *n = oct_emit_node(&m->f->b, &oct_op_split, &x, 1, 2);

    assert_non_null(n);
    assert_ok(m->f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(m->f->ctx, oct_node_set_int(n, "num_outputs", 2));
    infer(m->f, n);
    return concat(m->f, (oct_value *[]){n->out[1], n->out[0]}, 2, 1);
}

static const item *another_float(maker *m, const item *x)
{
    const item *y = &m->items[pick(m, m->n)];

    return is_float(y) && y != x ? y : NULL;
}

/* A node with sums or products; NULL if it would not be exact. */
static oct_value *combine(maker *m, const item *x, int *low, int *high)
{
    const item *y = another_float(m, x);
    const int kind = pick(m, 4), bits = x->high - x->low;
    const bool by_weights = kind < 2;

    if (!m->is_exact || bits > MAX_BITS - 6 || (!by_weights && !y)) return NULL;
    *low = by_weights ? x->low - 3 : kind == 2 ? OCT_MIN(x->low, y->low) : x->low + y->low;
    *high = by_weights  ? x->high + 2
            : kind == 2 ? OCT_MAX(x->high, y->high) + 1
                        : x->high + y->high;
    if (*high - *low > MAX_BITS) return NULL;
    if (by_weights)
        return infer(m->f, node(m->f, kind ? &oct_op_mat_mul : &oct_op_conv, x->v,
                                weights_of(m, kind ? 2 : 4), NULL));
    return emit(m->f, kind == 2 ? &oct_op_add : &oct_op_mul, x->v,
                pick(m, 3) ? y->v : reshape(m->f, y->v, 3, shape + 1));
}

static void add_node(maker *m)
{
    const item x = m->items[pick(m, 3) ? m->n - 1 : pick(m, m->n)];
    const bool is_byte = !is_float(&x) && bits_of(x.v->type.dtype) == 8;
    int low = x.low, high = x.high;
    const int kind = pick(m, 10);
    oct_value *v = NULL;

    if (kind == 0 && is_float(&x)) v = emit(m->f, &oct_op_relu, x.v, NULL);
    if (kind == 1 && (is_float(&x) || is_byte)) v = pool(m, x.v);
    if (kind == 2) v = transpose(m->f, x.v, 4, (int64_t[]){0, 2, 3, 1});
    if (kind == 6 && pick(m, 2)) v = swap_halves(m, x.v);
    if (kind > 2 && kind < 6 && is_float(&x)) v = combine(m, &x, &low, &high);
    if (!v) v = convert(m, &x, &low, &high);
    add(m, v, low, high);
}

static void make_network(maker *m)
{
    const int n_sources = 1 + pick(m, 3), n_nodes = 2 + pick(m, 8);
    int n_out = 0;

    for (int i = 0; i < n_sources; i++)
        add_source(m, pick(m, 2) ? OCT_DTYPE_F32 : random_type(m), i > 0 && pick(m, 2));
    for (int i = 0; i < n_nodes; i++)
        add_node(m);
    for (int i = 0; i < m->n; i++) {
        oct_value *v = m->items[i].v;

        if (!v->producer || (v->n_users && pick(m, 6)) || n_out == MAX_OUT) continue;
        output(m->f, v);
        n_out++;
    }
}

/* --- comparing --- */

static void run_plan(maker *m, bool simulate, oct_tensor *const *ins, oct_tensor **outs)
{
    fixture *f = m->f;
    oct_plan_options o;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    oct_plan_options_init(&o);
    o.n_threads = 1;
    o.simulate = simulate;
    assert_ok(f->ctx, oct_plan_new(f->g, &o, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    for (int32_t i = 0; i < f->g->n_inputs; i++)
        assert_ok(f->ctx, oct_run_set_input(r, f->g->inputs[i]->name, ins[i]));
    assert_ok(f->ctx, oct_run_execute(r));
    for (int32_t i = 0; i < f->g->n_outputs; i++) {
        const oct_tensor *t = NULL;

        assert_ok(f->ctx, oct_run_output(r, i, &t));
        assert_ok(f->ctx, oct_tensor_copy(f->ctx, t, &outs[i]));
    }
    oct_run_free(r);
    oct_plan_free(p);
}

static void check_network(maker *m, uint64_t seed)
{
    fixture *f = m->f;
    oct_tensor *ins[MAX_VALUES] = {NULL}, *want[MAX_OUT] = {NULL}, *got[MAX_OUT] = {NULL};
    char what[64];

    for (int32_t i = 0; i < f->g->n_inputs; i++) {
        assert_ok(f->ctx, oct_tensor_make(f->ctx, &f->g->inputs[i]->type, &ins[i]));
        fill(m, ins[i]);
    }
    assert_ok(f->ctx, oct_graph_eval(f->g, ins, want, NULL));
    for (int simulate = 0; simulate < 2; simulate++) {
        run_plan(m, simulate, ins, got);
        for (int32_t i = 0; i < f->g->n_outputs; i++) {
            snprintf(what, sizeof(what), "network %llu, %s, output '%.20s'",
                     (unsigned long long)seed, simulate ? "simulated" : "in integers",
                     f->g->outputs[i]->name);
            assert_same(what, got[i], want[i], 0);
            oct_tensor_unref(got[i]);
        }
    }
    for (int32_t i = 0; i < f->g->n_outputs; i++)
        oct_tensor_unref(want[i]);
    for (int32_t i = 0; i < f->g->n_inputs; i++)
        oct_tensor_unref(ins[i]);
}

static void check_seed(fixture *f, uint64_t seed, bool is_exact)
{
    maker m = {.f = f, .is_exact = is_exact};

    oct_ctx_set_threads(f->ctx, 1); /* too small for more, and there are many */
    oct_rng_init(&m.rng, seed);
    restart(f);
    make_network(&m);
    check_network(&m, seed);
}

/* Set by the first argument: only this network. */
static const char *only;

static void check_all(fixture *f, uint64_t n, bool is_exact)
{
    if (only) {
        check_seed(f, strtoull(only, NULL, 10), is_exact);
        return;
    }
    for (uint64_t seed = 0; seed < n; seed++)
        check_seed(f, seed, is_exact);
}

static void with_sums_of_exact_numbers(void **state)
{
    check_all(*state, N_GRAPHS, true);
}

static void with_any_scales(void **state)
{
    check_all(*state, N_GRAPHS / 2, false);
}

/* --- the smallest of those that went wrong --- */

static void start(maker *m, fixture *f)
{
    *m = (maker){.f = f, .is_exact = true};
    oct_rng_init(&m->rng, 1);
    restart(f);
}

static oct_value *source(maker *m, oct_dtype type)
{
    add_source(m, type, false);
    return m->items[m->n - 1].v;
}

static const float quarter = 0.25f;

/* Codes that become floats and the same codes again are no quantization of floats. */
static void codes_to_floats_and_back(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U16, OCT_DTYPE_I16};
    maker m;

    for (size_t i = 0; i < OCT_COUNT(types); i++) {
        start(&m, *state);
        output(m.f, quantize(m.f, dequantize(m.f, source(&m, types[i]), &quarter, NULL, 1, 1),
                             types[i], &quarter, &(int32_t){0}, 1, 1));
        check_network(&m, i);
    }
}

/* Codes made from other codes: the step between them may not be lost. */
static void codes_of_codes(void **state)
{
    static const struct {
        oct_dtype first, second;
        bool first_leaves;
    } cases[] = {{OCT_DTYPE_U16, OCT_DTYPE_U8, false},
                 {OCT_DTYPE_I16, OCT_DTYPE_I8, true},
                 {OCT_DTYPE_I8, OCT_DTYPE_I8, true},
                 {OCT_DTYPE_I8, OCT_DTYPE_U16, false}};
    maker m;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const int32_t zero = cases[i].second == OCT_DTYPE_U8 ? 128 : 0;
        oct_value *x;

        start(&m, *state);
        x = quantize(m.f, source(&m, OCT_DTYPE_F32), cases[i].first, &quarter, &zero, 1, 1);
        if (cases[i].first_leaves) output(m.f, x);
        x = dequantize(m.f, x, &quarter, &zero, 1, 1);
        x = qdq(m.f, x, cases[i].second, &(float){0.5f}, &zero, 1, 1);
        x = infer(m.f, node(m.f, &oct_op_conv, x, weights_of(&m, 4), NULL));
        output(m.f, qdq(m.f, x, cases[i].second, &(float){0.5f}, &zero, 1, 1));
        check_network(&m, i);
    }
}

/* A constant quantized twice; a float network reads it as weights. */
static void weights_quantized_twice(void **state)
{
    maker m;
    oct_value *w;

    start(&m, *state);
    w = dequantize(m.f, weights_of(&m, 4)->producer->in[0], &quarter, NULL, 1, 0);
    w = qdq(m.f, w, OCT_DTYPE_I8, &quarter, &(int32_t){0}, 1, 0);
    output(m.f, infer(m.f, node(m.f, &oct_op_conv, source(&m, OCT_DTYPE_F32), w, NULL)));
    check_network(&m, 0);
}

/* What is added to a convolution lies channels-last like its result, which a constant does not. */
static void a_constant_is_no_residual(void **state)
{
    maker m;
    oct_value *y;

    start(&m, *state);
    y = infer(m.f, node(m.f, &oct_op_conv, source(&m, OCT_DTYPE_F32), weights_of(&m, 4), NULL));
    add_source(&m, OCT_DTYPE_I8, true);
    output(m.f,
           emit(m.f, &oct_op_add, dequantize(m.f, m.items[m.n - 1].v, &quarter, NULL, 1, 1), y));
    check_network(&m, 0);
}

/* [1, C, H, W] and [C, H, W]: what is a channel of one is none of the other. */
static void operands_with_fewer_axes(void **state)
{
    static const oct_op *const ops[] = {&oct_op_add, &oct_op_mul, &oct_op_sub};
    maker m;

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        oct_value *x, *y;

        start(&m, *state);
        x = qdq_u8(m.f, pool(&m, qdq_u8(m.f, source(&m, OCT_DTYPE_F32), 0.125f)), 0.125f);
        y = qdq_u8(m.f, graph_input(m.f, "y", OCT_DTYPE_F32, 3, shape + 1), 0.125f);
        output(m.f, qdq_u8(m.f, emit(m.f, ops[i], x, y), 0.25f));
        assert_int_equal(count_kernels(m.f, NULL, "int8 binary"), 1);
        check_network(&m, i);
    }
}

/* --- a plan is checked before it runs --- */

static void a_plan_with_a_hole_is_refused(void **state)
{
    fixture *f = *state;
    const oct_kernel *kernel;
    oct_plan *p = NULL;
    oct_step *s;

    output(f,
           emit(f, &oct_op_mat_mul, emit(f, &oct_op_softmax, picture(f, 1, SIDE, SIDE, SIDE), NULL),
                graph_input(f, "w", OCT_DTYPE_F32, 4, shape)));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_ok(f->ctx, oct_plan_check(p));
    s = &p->steps[0];
    kernel = s->kernel;
    s->kernel = NULL;
    assert_fails(f->ctx, oct_plan_check(p), OCT_ERR_STATE,
                 "(Softmax): internal error: there is no");
    s->kernel = kernel;
    for (int32_t i = 0; i < p->n_steps; i++) { /* as if it was not there */
        const int32_t n_out = p->steps[i].n_out;

        p->steps[i].n_out = 0;
        assert_fails(f->ctx, oct_plan_check(p), OCT_ERR_STATE,
                     i < p->n_steps - 1 ? "reads a value that no step" : "no step makes it");
        p->steps[i].n_out = n_out;
    }
    assert_ok(f->ctx, oct_plan_check(p));
    oct_plan_free(p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(codes_to_floats_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(codes_of_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_quantized_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_constant_is_no_residual, setup, teardown),
        cmocka_unit_test_setup_teardown(operands_with_fewer_axes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plan_with_a_hole_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(with_sums_of_exact_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(with_any_scales, setup, teardown),
    };

    only = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
