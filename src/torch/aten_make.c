/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made of nothing: constants, ranges, grids; and tensors filled in place. */
#include <string.h>

#include "torch/aten.h"

static oct_dtype type_of_result(const oct_aten *a)
{
    return a->meta->type.dtype ? a->meta->type.dtype : OCT_DTYPE_F32;
}

static void fill(oct_aten *a, double v)
{
    a->out[0] = oct_aten_filled(a, oct_aten_sizes(a, "size", NULL, NULL), type_of_result(a), v);
}

/* empty as well: nobody may read what is in it. */
void oct_aten_zeros(oct_aten *a)
{
    fill(a, 0);
}

void oct_aten_ones(oct_aten *a)
{
    fill(a, 1);
}

void oct_aten_full(oct_aten *a)
{
    fill(a, oct_aten_f64(a, "fill_value", 0));
}

static void fill_like(oct_aten *a, double v)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const oct_dtype type = a->meta->type.dtype ? a->meta->type.dtype : x ? x->type.dtype : 0;

    a->out[0] = oct_aten_filled(a, oct_aten_shape_of(a, x), type, v);
}

void oct_aten_zeros_like(oct_aten *a)
{
    fill_like(a, 0);
}

void oct_aten_ones_like(oct_aten *a)
{
    fill_like(a, 1);
}

void oct_aten_full_like(oct_aten *a)
{
    fill_like(a, oct_aten_f64(a, "fill_value", 0));
}

/* What fill_ and zero_ leave behind. */
void oct_aten_fill(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");

    if (x)
        a->out[0] =
            ATEN2(expand, oct_aten_operand(a, "value", x->type.dtype), oct_aten_shape_of(a, x));
}

void oct_aten_copy(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *src;

    if (!x) return;
    src = oct_aten_cast(a, oct_aten_tensor(a, "src"), x->type.dtype);
    a->out[0] = ATEN2(expand, src, oct_aten_shape_of(a, x));
}

void oct_aten_scalar_tensor(oct_aten *a)
{
    a->out[0] = oct_aten_scalar(a, type_of_result(a), oct_aten_f64(a, "s", 0));
}

/* --- ranges --- */

static oct_value *range_operand(oct_aten *a, const char *name, double def, oct_dtype type)
{
    return oct_aten_has(a, name) ? oct_aten_operand(a, name, type) : oct_aten_scalar(a, type, def);
}

/* Range has no small integers: they are cast at the end. */
void oct_aten_arange(oct_aten *a)
{
    const oct_dtype type = type_of_result(a);
    const oct_dtype in = oct_dtype_is_float(type) ? OCT_DTYPE_F32 : OCT_DTYPE_I64;
    oct_value *from = range_operand(a, "start", 0, in), *to = oct_aten_operand(a, "end", in);

    a->out[0] = oct_aten_cast(a, ATEN3(range, from, to, range_operand(a, "step", 1, in)), type);
}

void oct_aten_linspace(oct_aten *a)
{
    const double from = oct_aten_f64(a, "start", 0), to = oct_aten_f64(a, "end", 1);
    const int64_t n = oct_aten_int(a, "steps", 1);
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &n);
    oct_tensor *t = NULL;
    oct_value *v;

    if (n < 0 || n > 1 << 24) oct_aten_fail(a, OCT_ERR_SHAPE, "%lld steps", (long long)n);
    if (a->b->status || (a->b->status = oct_tensor_make(a->t->ctx, &type, &t))) return;
    for (int64_t i = 0; i < n; i++)
        ((float *)t->data)[i] =
            (float)(n == 1 ? from : from + (to - from) * (double)i / (double)(n - 1));
    if (!(v = oct_value_const(a->t->g, NULL, t))) a->b->status = OCT_ERR_MEMORY;
    a->out[0] = oct_aten_cast(a, v, type_of_result(a));
}

void oct_aten_eye(oct_aten *a)
{
    const int64_t n = oct_aten_int(a, "n", 1), m = oct_aten_int(a, "m", n);
    const oct_dtype type = type_of_result(a);
    oct_value *x = oct_aten_filled(a, oct_aten_ints_of(a, 2, n, m), type, 0);
    oct_node *node = oct_aten_node(a, &oct_op_eye_like, &x, 1, 1);

    oct_emit_int(a->b, node, "dtype", (int64_t)type);
    a->out[0] = oct_aten_done(a, node);
}

/* Each of n vectors along an axis of its own; "xy" swaps the first two axes. */
void oct_aten_meshgrid(oct_aten *a)
{
    const char *indexing = oct_aten_text(a, "indexing", "ij");
    int32_t n;
    oct_value **all = oct_aten_tensors(a, "tensors", &n), *sizes[OCT_MAX_RANK], *shape;
    int32_t at[OCT_MAX_RANK];

    if (a->b->status) return;
    if (n < 1 || n > OCT_MAX_RANK || n != a->n_out) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "a grid of %d dimensions", n);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        at[i] = n > 1 && i < 2 && strcmp(indexing, "xy") == 0 ? 1 - i : i;
    for (int32_t i = 0; i < n; i++)
        sizes[at[i]] = all[i]->type.rank == 0 ? oct_aten_ints_of(a, 1, (int64_t)1)
                                              : oct_aten_size_of(a, all[i], 0);
    shape = oct_aten_concat(a, sizes, n, 0);
    for (int32_t i = 0; i < n; i++) {
        int64_t dims[OCT_MAX_RANK];

        for (int32_t k = 0; k < n; k++)
            dims[k] = k == at[i] ? -1 : 1;
        a->out[i] = ATEN2(expand, oct_aten_reshape(a, all[i], dims, n), shape);
    }
}

/* --- triangles and labels --- */

static void triangle(oct_aten *a, bool upper)
{
    oct_value *x = oct_aten_tensor(a, "self");
    oct_value *k = oct_aten_scalar(a, OCT_DTYPE_I64, (double)oct_aten_int(a, "diagonal", 0));
    oct_node *n = oct_aten_node(a, &oct_op_trilu, (oct_value *[]){x, k}, 2, 1);

    oct_emit_int(a->b, n, "upper", upper);
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_triu(oct_aten *a)
{
    triangle(a, true);
}

void oct_aten_tril(oct_aten *a)
{
    triangle(a, false);
}

void oct_aten_one_hot(oct_aten *a)
{
    const int64_t n = oct_aten_int(a, "num_classes", -1);
    oct_value *x = oct_aten_tensor(a, "self");

    if (n < 1) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "an unknown number of classes");
    a->out[0] = ATEN3(one_hot, x, oct_aten_ints_of(a, 1, n),
                      oct_aten_ints_of(a, 2, (int64_t)0, (int64_t)1));
}
