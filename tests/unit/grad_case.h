/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients against finite differences, in float64, with the reference kernels as judge; then the
 * gradients in float32 against those in float64. A case is one operator with operands and
 * attributes as text; its loss is the sum of all results, weighted with random numbers.
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
 *   b:1      one boolean constant
 *   f:1,.5   float constants, rank 1 (f:.5: one of them)
 *   -        not given
 * A size may be a letter: a random number from 1 to 4, the same wherever the letter stands in the
 * case. With ~ after it, it is 1 half of the time: 2xC~xH broadcasts. Cases with letters are run
 * several times. Attributes: "axis=1 pads=1,1,0,0 mode=linear axis=-2..1 keepdims=0..1", where ..
 * is a random integer in a range; a word "loss:1" among them: only the first result counts.
 */
typedef struct grad_case {
    const oct_op *op;
    const char *in, *attrs;
    int n_out;        /* 0: one */
    double low, high; /* both 0: -2 to 2 */
} grad_case;

#define GRAD_CASE(sym, in, attrs)                                                                  \
    {                                                                                              \
        &oct_op_##sym, in, attrs, 0, 0, 0                                                          \
    }
#define GRAD_CASE_IN(sym, in, low, hi)                                                             \
    {                                                                                              \
        &oct_op_##sym, in, NULL, 0, low, hi                                                        \
    }

enum { GRAD_MAX_IN = 8, GRAD_MAX_TRIED = 48, GRAD_ROUNDS = 6 };

typedef struct grad_test {
    fixture *f;
    const grad_case *c;
    oct_dtype dtype;
    oct_rng rng;
    int64_t size[26];            /* of each letter */
    oct_value *in[GRAD_MAX_IN];  /* operands */
    oct_value *wrt[GRAD_MAX_IN]; /* those that are inputs of the graph */
    oct_tensor *x[GRAD_MAX_IN];  /* their elements */
    int n_in, n_wrt;
    int n_loss;         /* results that count; 0: all */
    oct_graph *forward; /* without the gradients */
} grad_test;

/* One size of a shape: a number, or a letter's. */
static inline int64_t grad_size(grad_test *t, const char **text)
{
    int64_t size;
    char *end;

    if (**text < 'A' || **text > 'Z') {
        size = strtoll(*text, &end, 10);
        *text = end;
        return size;
    }
    size = t->size[*(*text)++ - 'A'];
    if (**text != '~') return size;
    (*text)++;
    return oct_rng_below(&t->rng, 2) ? 1 : size;
}

static inline oct_type grad_type(grad_test *t, oct_dtype dtype, const char **text)
{
    int64_t dim[OCT_MAX_RANK];
    int32_t rank = 0;

    if (strncmp(*text, "scalar", 6) == 0) {
        *text += 6;
        return oct_type_make(dtype, 0, NULL);
    }
    do {
        dim[rank++] = grad_size(t, text);
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

static inline void grad_floats(grad_test *t, const char *text)
{
    double v[16];
    int64_t n = 0;

    while (*text) {
        char *end;

        v[n++] = strtod(text, &end);
        text = end + (*end == ',');
    }
    t->in[t->n_in++] = oct_value_const(t->f->g, NULL, tensor_of(t->f->ctx, t->dtype, 1, &n, v));
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
    if (text[0] == 'b' && text[1] == ':') {
        const double v = strtod(text + 2, NULL);

        t->in[t->n_in++] =
            oct_value_const(t->f->g, NULL, tensor_of(t->f->ctx, OCT_DTYPE_BOOL, 0, NULL, &v));
        return;
    }
    if (text[0] == 'f' && text[1] == ':') {
        grad_floats(t, text + 2);
        return;
    }
    if (*text == 'i' || *text == 'b') {
        const oct_dtype dtype = *text++ == 'i' ? OCT_DTYPE_I64 : OCT_DTYPE_BOOL;

        type = grad_type(t, dtype, &text);
        high = dtype == OCT_DTYPE_BOOL ? 2 : strtod(text + 1, NULL);
        oct_tensor *x = grad_random(t, &type, 0, high);
        t->in[t->n_in++] = oct_value_const(t->f->g, NULL, x);
        return;
    }
    if (*text == '+') low = .2, high = 2.2;
    const char kind = *text;
    text += kind == '+' || kind == '=';
    type = grad_type(t, t->dtype, &text);
    oct_tensor *x = grad_random(t, &type, low, high);
    if (kind == '=') {
        t->in[t->n_in++] = oct_value_const(t->f->g, NULL, x);
        return;
    }
    t->x[t->n_wrt] = x;
    t->in[t->n_in++] = t->wrt[t->n_wrt++] = graph_input(t->f, NULL, t->dtype, type.rank, type.dim);
}

/* A number, or one of a range: -2..1. */
static inline int64_t grad_number(grad_test *t, char **text)
{
    int64_t low = strtoll(*text, text, 10), high;

    if (strncmp(*text, "..", 2) != 0) return low;
    high = strtoll(*text + 2, text, 10);
    return low + (int64_t)oct_rng_below(&t->rng, (uint64_t)(high - low + 1));
}

static inline void grad_attribute(grad_test *t, oct_node *n, const char *name, char *value)
{
    fixture *f = t->f;

    for (int i = 0; i < oct_op_n_attrs(n->op); i++) {
        int64_t v[16], n_v = 0;

        if (strcmp(n->op->attrs[i].name, name) != 0) continue;
        switch (n->op->attrs[i].kind) {
        case OCT_ATTR_INT:
            assert_ok(f->ctx, oct_node_set_int(n, name, grad_number(t, &value)));
            return;
        case OCT_ATTR_F32:
            assert_ok(f->ctx, oct_node_set_f32(n, name, strtof(value, NULL)));
            return;
        case OCT_ATTR_STRING:
            assert_ok(f->ctx, oct_node_set_str(n, name, value));
            return;
        default:
            for (char *s = value; *s; s += *s == ',')
                v[n_v++] = grad_number(t, &s);
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

        if (strncmp(word, "loss:", 5) == 0) {
            t->n_loss = atoi(word + 5);
            continue;
        }
        assert_non_null(value);
        *value = 0;
        grad_attribute(t, n, word, value + 1);
    }
    assert_ok(t->f->ctx, oct_node_infer(n));
    return n;
}

/* The sum over all float results, weighted. */
static inline oct_value *grad_loss(grad_test *t, const oct_node *n)
{
    oct_builder *b = &t->f->b;
    oct_value *sum = NULL;

    for (int32_t i = 0; i < (t->n_loss ? t->n_loss : n->n_out); i++) {
        oct_value *y = n->out[i], *part;

        if (!y || y->type.dtype != t->dtype) continue;
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

/* The loss; with `out`, that of the graph whose outputs are the loss and the gradients. */
static inline double grad_eval(grad_test *t, oct_tensor **out)
{
    oct_tensor *mine[GRAD_MAX_IN + 1] = {0};
    double y;

    assert_ok(t->f->ctx, oct_graph_eval(out ? t->f->g : t->forward, t->x, mine, NULL));
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

/* Rules emit nothing that no gradient needs, unless all are zero. */
static inline void grad_check_needed(const grad_test *t, const oct_node *last,
                                     oct_value *const *dwrt)
{
    bool any = false;

    for (int i = 0; i < t->n_wrt; i++)
        any |= dwrt[i]->producer != NULL;
    if (!any) return;
    for (const oct_node *n = last->next; n; n = n->next) {
        bool is_used = false;

        for (int32_t i = 0; i < n->n_out; i++)
            is_used |= n->out[i] && (n->out[i]->n_users || n->out[i]->is_output);
        if (!is_used)
            fail_msg("%s of %s (%s): its gradient has a %s that nothing reads", t->c->op->name,
                     t->c->in, t->c->attrs ? t->c->attrs : "", n->op->name);
    }
}

/* Loss and gradients of the case in this type into got[]. */
static inline void grad_build(grad_test *t, uint64_t seed, oct_tensor **got)
{
    oct_value *dwrt[GRAD_MAX_IN], *loss;
    const oct_node *last;

    oct_rng_init(&t->rng, seed);
    for (size_t i = 0; i < OCT_COUNT(t->size); i++)
        t->size[i] = 1 + (int64_t)oct_rng_below(&t->rng, 4);
    loss = grad_loss(t, grad_node(t));
    assert_non_null(loss);
    assert_ok(t->f->ctx, oct_graph_add_output(t->f->g, loss));
    assert_ok(t->f->ctx, oct_graph_clone(t->f->g, &t->forward));
    last = t->f->g->last;
    assert_ok(t->f->ctx, oct_grad(t->f->g, loss, t->wrt, t->n_wrt, dwrt));
    for (int i = 0; i < t->n_wrt; i++) {
        /* An output has one name: the gradient of x in x + y may be that of y too. */
        oct_value *own = oct_emit(&t->f->b, &oct_op_identity, dwrt[i], NULL, NULL);

        assert_non_null(own);
        assert_ok(t->f->ctx, oct_graph_add_output(t->f->g, own));
    }
    assert_ok(t->f->ctx, oct_graph_verify(t->f->g));
    grad_check_needed(t, last, dwrt);
    grad_eval(t, got);
}

static inline void grad_free(grad_test *t, oct_tensor **got)
{
    for (int i = 0; i <= t->n_wrt; i++)
        oct_tensor_unref(got[i]);
    for (int i = 0; i < t->n_wrt; i++)
        oct_tensor_unref(t->x[i]);
    oct_graph_free(t->forward);
}

/* The same case in float32, whose numbers differ by rounding only. */
static inline void grad_compare_f32(const grad_case *c, uint64_t seed, oct_tensor **want)
{
    oct_tensor *got[GRAD_MAX_IN + 1] = {0};
    grad_test t = {.c = c, .dtype = OCT_DTYPE_F32};
    void *state = NULL;

    assert_int_equal(setup(&state), 0);
    t.f = state;
    grad_build(&t, seed, got);
    for (int k = 1; k <= t.n_wrt; k++) {
        assert_int_equal(got[k]->type.dtype, OCT_DTYPE_F32);
        for (int64_t i = 0; i < oct_tensor_len(got[k]); i++) {
            const double have = oct_tensor_get_f64(got[k], i), is = oct_tensor_get_f64(want[k], i);

            if (!(fabs(have - is) <= 1e-3 * (1 + fabs(is))))
                fail_msg("%s of %s (%s): d/d operand %d [%lld] is %.7g in f32, %.7g in f64",
                         c->op->name, c->in, c->attrs ? c->attrs : "", k - 1, (long long)i, have,
                         is);
        }
    }
    grad_free(&t, got);
    assert_int_equal(teardown(&state), 0);
}

static inline void check_grad(const grad_case *c, uint64_t seed)
{
    void *state = NULL;
    oct_tensor *got[GRAD_MAX_IN + 1] = {0};
    grad_test t = {.c = c, .dtype = OCT_DTYPE_F64};

    assert_int_equal(setup(&state), 0);
    t.f = state;
    grad_build(&t, seed, got);
    grad_compare(&t, got);
    grad_compare_f32(c, seed, got);
    grad_free(&t, got);
    assert_int_equal(teardown(&state), 0);
}

/* Has the case a random part? */
static inline bool grad_is_random(const grad_case *c)
{
    bool any = c->attrs && strstr(c->attrs, "..");

    for (const char *s = c->in; *s && !any; s++)
        any = *s >= 'A' && *s <= 'Z';
    return any;
}

#define check_grads(cases)                                                                         \
    do {                                                                                           \
        for (size_t case_ = 0; case_ < OCT_COUNT(cases); case_++)                                  \
            for (size_t round_ = 0; round_ < (grad_is_random(&(cases)[case_]) ? GRAD_ROUNDS : 1);  \
                 round_++)                                                                         \
                check_grad(&(cases)[case_], 7 + case_ + 1000 * round_);                            \
    } while (0)

#endif
