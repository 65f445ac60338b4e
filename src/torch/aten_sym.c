/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic numbers: sizes of tensors and arithmetic on them. Known ones are computed here. */
#include "torch/aten.h"

/* The result of the node is this number: known, or int64[1]. */
static void define_number(oct_aten *a, bool is_known, int64_t number, oct_value *v)
{
    oct_slot *s;

    if (a->b->status || !a->n->n_out || a->n->out[0].kind != OCT_ARG_SYM) return;
    if ((a->b->status = oct_torch_define(a->t, a->n->out[0].s, &s))) return;
    s->is_sym = true;
    s->is_known = is_known;
    s->number = number;
    s->v = v;
}

void oct_aten_sym_size(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int32_t axis = oct_aten_axis(a, oct_aten_int(a, "dim", 0), oct_aten_rank(a, x));
    const int64_t dim = oct_aten_dim(x, axis);

    define_number(a, dim >= 0, dim, dim >= 0 ? NULL : oct_aten_size_of(a, x, axis));
}

void oct_aten_sym_numel(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int64_t n = x ? oct_type_len(&x->type) : -1;

    define_number(a, n >= 0, n,
                  n >= 0 ? NULL : oct_aten_reshape(a, ATEN1(size, x), (int64_t[]){1}, 1));
}

/* A tensor with one element, as a number. */
void oct_aten_item(oct_aten *a)
{
    oct_value *x = oct_aten_cast(a, oct_aten_tensor(a, "self"), OCT_DTYPE_I64);

    define_number(a, false, 0, oct_aten_reshape(a, x, (int64_t[]){1}, 1));
}

/* Operands by position: Python's own functions have no names to go by. */
static oct_value *operand(oct_aten *a, int32_t i, bool *is_known, int64_t *number)
{
    oct_value *v = NULL;

    if (i >= a->n->n_in)
        oct_aten_fail(a, OCT_ERR_FORMAT, "operand %d is missing", (int)i);
    else
        v = oct_aten_number(a, &a->n->in[i].value);
    *is_known = v && v->data;
    *number = *is_known ? oct_tensor_get_i64(v->data, 0) : 0;
    return v;
}

static int64_t floor_div(int64_t x, int64_t y)
{
    const int64_t q = x / y;

    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

typedef bool (*number_fn)(int64_t x, int64_t y, int64_t *out);

static bool add(int64_t x, int64_t y, int64_t *out)
{
    return oct_add_i64(x, y, out);
}

static bool sub(int64_t x, int64_t y, int64_t *out)
{
    return y != INT64_MIN && oct_add_i64(x, -y, out);
}

static bool mul(int64_t x, int64_t y, int64_t *out)
{
    return oct_mul_i64(x, y, out);
}

static bool divide(int64_t x, int64_t y, int64_t *out)
{
    if (y == 0 || y == -1) return false;
    *out = floor_div(x, y);
    return true;
}

static bool modulo(int64_t x, int64_t y, int64_t *out)
{
    if (y == 0 || y == -1) return false;
    *out = x - floor_div(x, y) * y;
    return true;
}

static bool larger(int64_t x, int64_t y, int64_t *out)
{
    *out = OCT_MAX(x, y);
    return true;
}

static bool smaller(int64_t x, int64_t y, int64_t *out)
{
    *out = OCT_MIN(x, y);
    return true;
}

static void arithmetic(oct_aten *a, number_fn known, const oct_op *op)
{
    bool kx, ky;
    int64_t nx, ny, r = 0;
    oct_value *x = operand(a, 0, &kx, &nx), *y = operand(a, 1, &ky, &ny);

    if (a->b->status) return;
    if (kx && ky && !known(nx, ny, &r))
        oct_aten_fail(a, OCT_ERR_SHAPE, "a size overflows or is divided by zero");
    define_number(a, kx && ky, r, kx && ky ? NULL : oct_aten_emit(a, op, x, y, NULL));
}

void oct_aten_sym_add(oct_aten *a)
{
    arithmetic(a, add, &oct_op_add);
}

void oct_aten_sym_sub(oct_aten *a)
{
    arithmetic(a, sub, &oct_op_sub);
}

void oct_aten_sym_mul(oct_aten *a)
{
    arithmetic(a, mul, &oct_op_mul);
}

/* Sizes are not negative: division towards zero is division downwards. */
void oct_aten_sym_floordiv(oct_aten *a)
{
    arithmetic(a, divide, &oct_op_div);
}

void oct_aten_sym_mod(oct_aten *a)
{
    arithmetic(a, modulo, &oct_op_mod);
}

void oct_aten_sym_max(oct_aten *a)
{
    arithmetic(a, larger, &oct_op_max);
}

void oct_aten_sym_min(oct_aten *a)
{
    arithmetic(a, smaller, &oct_op_min);
}

void oct_aten_sym_neg(oct_aten *a)
{
    bool is_known;
    int64_t n;
    oct_value *x = operand(a, 0, &is_known, &n);

    if (is_known && n == INT64_MIN) oct_aten_fail(a, OCT_ERR_SHAPE, "a size overflows");
    define_number(a, is_known, is_known ? -n : 0, is_known ? NULL : ATEN1(neg, x));
}

/* Checks of sizes: octet makes its own. */
void oct_aten_drop(oct_aten *a)
{
    (void)a;
}
