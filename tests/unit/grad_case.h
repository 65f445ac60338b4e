/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients against finite differences, in float64, with the reference kernels as judge. A case is
 * one operator with operands and attributes as text; its loss is the sum of all results, weighted
 * with random numbers.
 */
#ifndef OCT_TESTS_GRAD_CASE_H
#define OCT_TESTS_GRAD_CASE_H

#include "base/rng.h"
#include "grad/grad.h"
#include "op/grad/rules.h"
#include "tests/test.h"

/*
 * Operands, separated by blanks:
 *   2x3      floats from low to high, differentiated (1: rank 1; "scalar": rank 0)
 *   =2x3     floats, not differentiated
 *   +2x3     positive floats, differentiated (between .2 and 2.2)
 *   i:1,-1   int64 constants (i: alone: none of them)
 *   i2x3<7   random int64 from 0 to 6
 *   b2x3     random booleans
 *   -        not given
 * Attributes: "axis=1 pads=1,1,0,0 mode=linear".
 */
typedef struct grad_case {
    const oct_op *op;
    const char *in, *attrs;
    int n_out;        /* 0: one */
    double low, high; /* both 0: -2 to 2 */
} grad_case;

enum { GRAD_MAX_IN = 8, GRAD_MAX_TRIED = 48 };

typedef struct grad_test {
    fixture *f;
    const grad_case *c;
    oct_rng rng;
    oct_value *in[GRAD_MAX_IN];  /* operands */
    oct_value *wrt[GRAD_MAX_IN]; /* those that are inputs of the graph */
    oct_tensor *x[GRAD_MAX_IN];  /* their elements */
    int n_in, n_wrt;
} grad_test;

static inline oct_type grad_type(oct_dtype dtype, const char **text)
{
    int64_t dim[OCT_MAX_RANK];
    int32_t rank = 0;

    if (strncmp(*text, "scalar", 6) == 0) {
        *text += 6;
        return oct_type_make(dtype, 0, NULL);
    }
    do {
        char *end;

        dim[rank++] = strtoll(*text, &end, 10);
        *text = end;
    } while (**text == 'x' && (*text)++);
    return oct_type_make(dtype, rank, dim);
}

static inline oct_tensor *grad_random(grad_test *t, const oct_type *type, double low, double high)
{
    oct_tensor *x = NULL;

    assert_ok(t->f->ctx, oct_tensor_make(t->f->ctx, type, &x));
    for (int64_t i = 0; i < oct_type_len(type); i++) {
        const double v = low + (high - low) * oct_rng_f64(&t->rng);

        oct_store_f64(type->dtype, x->data, i, 1, &v);
    }
    return x;
}

static inline void grad_integers(grad_test *t, const char *text)
{
    int64_t v[64], n = 0;

    while (*text) {
        char *end;

        v[n++] = strtoll(text, &end, 10);
        text = end + (*end == ',');
    }
    t->in[t->n_in++] = oct_ints(&t->f->b, v, n);
}

static inline void grad_operand(grad_test *t, const char *text)
{
    double low = t->c->low, high = t->c->high;
    oct_type type;

    if (low == 0 && high == 0) low = -2, high = 2;
    if (*text == '-') {
        t->in[t->n_in++] = NULL;
        return;
    }
    if (text[0] == 'i' && text[1] == ':') {
        grad_integers(t, text + 2);
        return;
    }
    if (*text == 'i' || *text == 'b') {
        const oct_dtype dtype = *text++ == 'i' ? OCT_DTYPE_I64 : OCT_DTYPE_BOOL;

        type = grad_type(dtype, &text);
        high = dtype == OCT_DTYPE_BOOL ? 2 : strtod(text + 1, NULL);
        oct_tensor *x = grad_random(t, &type, 0, high);
        t->in[t->n_in++] = oct_value_const(t->f->g, NULL, x);
        return;
    }
    if (*text == '+') low = .2, high = 2.2;
    const char kind = *text;
    text += kind == '+' || kind == '=';
    type = grad_type(OCT_DTYPE_F64, &text);
    oct_tensor *x = grad_random(t, &type, low, high);
    if (kind == '=') {
        t->in[t->n_in++] = oct_value_const(t->f->g, NULL, x);
        return;
    }
    t->x[t->n_wrt] = x;
    t->in[t->n_in++] = t->wrt[t->n_wrt++] =
        graph_input(t->f, NULL, OCT_DTYPE_F64, type.rank, type.dim);
}

static inline void grad_attribute(fixture *f, oct_node *n, const char *name, char *value)
{
    for (int i = 0; i < oct_op_n_attrs(n->op); i++) {
        int64_t v[16], n_v = 0;

        if (strcmp(n->op->attrs[i].name, name) != 0) continue;
        switch (n->op->attrs[i].kind) {
        case OCT_ATTR_INT:
            assert_ok(f->ctx, oct_node_set_int(n, name, strtoll(value, NULL, 10)));
            return;
        case OCT_ATTR_F32:
            assert_ok(f->ctx, oct_node_set_f32(n, name, strtof(value, NULL)));
            return;
        case OCT_ATTR_STRING:
            assert_ok(f->ctx, oct_node_set_str(n, name, value));
            return;
        default:
            for (char *s = value; *s; s += *s == ',')
                v[n_v++] = strtoll(s, &s, 10);
            assert_ok(f->ctx, oct_node_set_ints(n, name, v, n_v));
            return;
        }
    }
    fail_msg("%s has no attribute '%s'", n->op->name, name);
}

static inline oct_node *grad_node(grad_test *t)
{
    char in[256], attrs[256];
    oct_node *n;

    assert_true(snprintf(in, sizeof(in), "%s", t->c->in) < (int)sizeof(in));
    for (char *save, *word = strtok_r(in, " ", &save); word; word = strtok_r(NULL, " ", &save))
        grad_operand(t, word);
    n = oct_emit_node(&t->f->b, t->c->op, t->in, t->n_in, t->c->n_out ? t->c->n_out : 1);
    assert_non_null(n);
    assert_true(snprintf(attrs, sizeof(attrs), "%s", t->c->attrs ? t->c->attrs : "") <
                (int)sizeof(attrs));
    for (char *save, *word = strtok_r(attrs, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');

        assert_non_null(value);
        *value = 0;
        grad_attribute(t->f, n, word, value + 1);
    }
    assert_ok(t->f->ctx, oct_node_infer(n));
    return n;
}

/* The sum over all float results, weighted. */
static inline oct_value *grad_loss(grad_test *t, const oct_node *n)
{
    oct_builder *b = &t->f->b;
    oct_value *sum = NULL;

    for (int32_t i = 0; i < n->n_out; i++) {
        oct_value *y = n->out[i], *part;

        if (!y || y->type.dtype != OCT_DTYPE_F64) continue;
        part = oct_emit(b, &oct_op_mul, y,
                        oct_value_const(t->f->g, NULL, grad_random(t, &y->type, -1, 1)), NULL);
        if (y->type.rank) {
            oct_node *r = oct_emit_node(b, &oct_op_reduce_sum, (oct_value *[]){part}, 1, 1);

            oct_emit_int(b, r, "keepdims", 0);
            part = oct_emitted(b, r);
        }
        sum = sum ? oct_emit(b, &oct_op_add, sum, part, NULL) : part;
    }
    assert_ok(t->f->ctx, b->status);
    return sum;
}

/* The loss, from a graph whose outputs are the loss and the gradients. */
static inline double grad_eval(grad_test *t, oct_tensor **out)
{
    oct_tensor *mine[GRAD_MAX_IN + 1] = {0};
    double y;

    assert_ok(t->f->ctx, oct_graph_eval(t->f->g, t->x, mine, NULL));
    y = oct_tensor_get_f64(mine[0], 0);
    for (int i = 0; i <= t->n_wrt; i++) {
        if (out)
            out[i] = mine[i];
        else
            oct_tensor_unref(mine[i]);
    }
    return y;
}

static inline void grad_compare(grad_test *t, oct_tensor **got)
{
    for (int k = 0; k < t->n_wrt; k++) {
        const int64_t n = oct_tensor_len(t->x[k]);
        double *x = (double *)t->x[k]->data;

        assert_dims(&got[k + 1]->type, t->x[k]->type.rank, t->x[k]->type.dim);
        for (int64_t tried = 0; tried < OCT_MIN(n, GRAD_MAX_TRIED); tried++) {
            const int64_t i =
                n <= GRAD_MAX_TRIED ? tried : (int64_t)oct_rng_below(&t->rng, (uint64_t)n);
            const double h = 1e-5, x0 = x[i], have = oct_tensor_get_f64(got[k + 1], i);
            double want;

            x[i] = x0 + h;
            want = grad_eval(t, NULL);
            x[i] = x0 - h;
            want = (want - grad_eval(t, NULL)) / (2 * h);
            x[i] = x0;
            if (!(fabs(have - want) <= 2e-6 * (1 + fabs(want))))
                fail_msg("%s of %s (%s): d/d operand %d [%lld] is %.10g, differences give %.10g",
                         t->c->op->name, t->c->in, t->c->attrs ? t->c->attrs : "", k, (long long)i,
                         have, want);
        }
    }
}

static inline void check_grad(const grad_case *c, uint64_t seed)
{
    void *state = NULL;
    oct_tensor *got[GRAD_MAX_IN + 1] = {0};
    oct_value *dwrt[GRAD_MAX_IN];
    grad_test t = {.c = c};
    oct_value *loss;

    assert_int_equal(setup(&state), 0);
    t.f = state;
    oct_rng_init(&t.rng, seed);
    loss = grad_loss(&t, grad_node(&t));
    assert_non_null(loss);
    assert_ok(t.f->ctx, oct_graph_add_output(t.f->g, loss));
    assert_ok(t.f->ctx, oct_grad(t.f->g, loss, t.wrt, t.n_wrt, dwrt));
    for (int i = 0; i < t.n_wrt; i++) {
        /* An output has one name: the gradient of x in x + y may be that of y too. */
        oct_value *own = oct_emit(&t.f->b, &oct_op_identity, dwrt[i], NULL, NULL);

        assert_non_null(own);
        assert_ok(t.f->ctx, oct_graph_add_output(t.f->g, own));
    }
    assert_ok(t.f->ctx, oct_graph_verify(t.f->g));
    grad_eval(&t, got);
    grad_compare(&t, got);
    for (int i = 0; i <= t.n_wrt; i++)
        oct_tensor_unref(got[i]);
    for (int i = 0; i < t.n_wrt; i++)
        oct_tensor_unref(t.x[i]);
    assert_int_equal(teardown(&state), 0);
}

#define check_grads(cases)                                                                         \
    do {                                                                                           \
        for (size_t case_ = 0; case_ < OCT_COUNT(cases); case_++)                                  \
            check_grad(&(cases)[case_], 7 + case_);                                                \
    } while (0)

#endif
