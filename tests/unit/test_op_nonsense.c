/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row on operands and attributes that make no sense: it must answer or refuse, and a refusal
 * must name the node. Meant for sanitizers; OCTET_ROUNDS sets how long it looks.
 */
#include "op_case.h"

#include <unistd.h>

#include "base/rng.h"

enum { MAX_OPERANDS = 6, MAX_RESULTS = 4, ROUNDS = 25, SECONDS = 10 };

/* Of n numbers, mostly the small ones that come first. */
static int64_t pick(oct_rng *r, const int64_t *v, uint64_t n)
{
    return v[oct_rng_below(r, oct_rng_below(r, 4) ? (n + 1) / 2 : n)];
}

static int64_t odd_int(oct_rng *r)
{
    static const int64_t v[] = {0,  1, 2,   -1,      3,         4,         -2,
                                -3, 7, 100, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};

    return pick(r, v, OCT_COUNT(v));
}

static double odd_number(oct_rng *r)
{
    static const double v[] = {0, 1, -1, 0.5, 2, 3, 1e-30, 1e30, (double)INFINITY, (double)NAN};

    if (oct_rng_below(r, 2)) return (double)(int64_t)oct_rng_below(r, 5);
    return v[oct_rng_below(r, OCT_COUNT(v))];
}

static oct_type odd_type(oct_rng *r, const oct_type *like)
{
    static const oct_dtype types[] = {
        OCT_DTYPE_F32,    OCT_DTYPE_F32,   OCT_DTYPE_F32, OCT_DTYPE_I64,  OCT_DTYPE_I64,
        OCT_DTYPE_I32,    OCT_DTYPE_U8,    OCT_DTYPE_I8,  OCT_DTYPE_BOOL, OCT_DTYPE_F16,
        OCT_DTYPE_F64,    OCT_DTYPE_BF16,  OCT_DTYPE_U64, OCT_DTYPE_I4,   OCT_DTYPE_C64,
        OCT_DTYPE_STRING, OCT_DTYPE_F8E5M2};
    static const int64_t dims[] = {2, 1, 3, 4, 0, 5, 8};
    oct_type t = {.dtype = types[oct_rng_below(r, OCT_COUNT(types))]};

    if (like && oct_rng_below(r, 3) == 0) return *like;
    if (like && oct_rng_below(r, 2)) t.dtype = like->dtype;
    t.rank = (int32_t)oct_rng_below(r, oct_rng_below(r, 8) ? 5 : OCT_MAX_RANK + 1);
    for (int32_t d = 0; d < t.rank; d++)
        t.dim[d] = t.rank > 5 ? 1 + (int64_t)oct_rng_below(r, 2) : pick(r, dims, OCT_COUNT(dims));
    return t;
}

static oct_value *odd_operand(fixture *f, oct_rng *r, const oct_type *like)
{
    const oct_type t = odd_type(r, like);
    oct_tensor *x = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &t, &x));
    for (int64_t i = 0, n = oct_type_len(&t); i < n; i++) {
        const double e = odd_number(r);
        const int64_t v = oct_rng_below(r, 3) ? (int64_t)oct_rng_below(r, 4) : odd_int(r);

        if (oct_dtype_is_float(t.dtype))
            oct_store_f64(t.dtype, x->data, i, 1, &e);
        else if (t.dtype != OCT_DTYPE_STRING && t.dtype != OCT_DTYPE_C64)
            oct_store_i64(t.dtype, x->data, i, 1, &v);
    }
    return oct_value_const(f->g, NULL, x);
}

static void odd_attr(oct_node *n, oct_rng *r, const oct_attr_def *def)
{
    static const char *const words[] = {"linear", "cubic",      "reflect", "none",
                                        "max",    "SAME_UPPER", "i,j->ij", "wrap",
                                        "tanh",   "forward",    "",        "no such"};
    int64_t list[4];
    const int64_t count = (int64_t)oct_rng_below(r, 5);
    oct_attr a = {.kind = def->kind, .given = true};
    float floats[4] = {0};

    for (int i = 0; i < 4; i++) {
        list[i] = odd_int(r);
        floats[i] = (float)odd_number(r);
    }
    a.n = count;
    switch (def->kind) {
    case OCT_ATTR_INT:
        a.i = list[0];
        break;
    case OCT_ATTR_F32:
        a.f = floats[0];
        break;
    case OCT_ATTR_INTS:
        a.is = list;
        break;
    case OCT_ATTR_F32S:
        a.fs = floats;
        break;
    case OCT_ATTR_STRING:
        a.s = words[oct_rng_below(r, OCT_COUNT(words))];
        a.n = (int64_t)strlen(a.s);
        break;
    default:
        return;
    }
    assert_ok(n->graph->ctx, oct_node_set_attr(n, def->name, &a));
}

static oct_node *odd_node(fixture *f, oct_rng *r, const oct_op *op)
{
    const int max_in = op->max_in < 0 ? MAX_OPERANDS : OCT_MIN(op->max_in, MAX_OPERANDS);
    const int min_in = OCT_MIN(op->min_in, max_in);
    const int max_out =
        op->max_out < 0 ? MAX_RESULTS : OCT_MIN(OCT_MAX(op->max_out, 1), MAX_RESULTS);
    const int n_in = min_in + (int)oct_rng_below(r, (uint64_t)(max_in - min_in) + 1);
    oct_value *in[MAX_OPERANDS];
    oct_node *n;

    for (int i = 0; i < n_in; i++)
        in[i] = i >= op->min_in && oct_rng_below(r, 4) == 0
                    ? NULL
                    : odd_operand(f, r, i ? in[0] ? &in[0]->type : NULL : NULL);
    n = oct_emit_node(&f->b, op, in, n_in,
                      OCT_MAX(op->min_out, 1 + (int)oct_rng_below(r, (uint64_t)max_out)));
    assert_non_null(n);
    for (int i = 0, k = oct_op_n_attrs(op); i < k; i++)
        if (oct_rng_below(r, 3) == 0) odd_attr(n, r, &op->attrs[i]);
    return n;
}

/* Rows with bodies or required attributes that cannot be made up here have tests of their own. */
static bool can_make(const oct_op *op)
{
    for (int i = 0, k = oct_op_n_attrs(op); i < k; i++)
        if (op->attrs[i].kind == OCT_ATTR_GRAPH) return false;
    return op->ref && op->min_in <= MAX_OPERANDS;
}

static void try_row(fixture *f, oct_rng *r, const oct_op *op)
{
    oct_tensor *in[MAX_OPERANDS] = {NULL}, *out[64] = {NULL};
    oct_node *n = odd_node(f, r, op);
    oct_status st;

    alarm(SECONDS); /* a hang ends the test */
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->data : NULL;
    st = oct_node_infer(n);
    if (!st) st = oct_node_eval(n, in, out, NULL);
    alarm(0);
    if (st && st != OCT_ERR_MEMORY && !strstr(oct_ctx_error(f->ctx), n->name))
        fail_msg("%s refuses without naming the node: %s", op->name, oct_ctx_error(f->ctx));
    for (int i = 0; i < 64; i++)
        oct_tensor_unref(out[i]);
}

static void every_row_answers_or_refuses(void **state)
{
    const char *env = getenv("OCTET_ROUNDS"), *only = getenv("OCTET_ROW");
    const int rounds = env ? atoi(env) : ROUNDS;
    const oct_op *op;

    (void)state;
    for (int i = 0; (op = oct_op_at(i)); i++) {
        if (!can_make(op) || (only && strcmp(only, op->name) != 0)) continue;
        for (int round = 0; round < rounds; round++) {
            oct_rng r;
            void *each = NULL;

            oct_rng_init(&r, (uint64_t)i * 1000003 + (uint64_t)round);
            assert_int_equal(setup(&each), 0);
            oct_ctx_set_memory_limit(((fixture *)each)->ctx, (size_t)64 << 20);
            oct_ctx_set_threads(((fixture *)each)->ctx, 1);
            if (getenv("OCTET_TALK")) fprintf(stderr, "%s %d\n", op->name, round);
            try_row(each, &r, op);
            assert_int_equal(teardown(&each), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_answers_or_refuses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
