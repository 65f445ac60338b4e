/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of gradient tests as text: an operator's operands and attributes, and the node they make.
 */
#ifndef OCT_TESTS_GRAD_OPERANDS_H
#define OCT_TESTS_GRAD_OPERANDS_H

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

#endif
