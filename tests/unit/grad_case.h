/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients against finite differences, in float64, with the reference kernels as judge; then the
 * gradients in float32 against those in float64. A case is one operator with operands and
 * attributes as text; its loss is the sum of all results, weighted with random numbers.
 */
#ifndef OCT_TESTS_GRAD_CASE_H
#define OCT_TESTS_GRAD_CASE_H

#include "tests/unit/grad_operands.h"

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
