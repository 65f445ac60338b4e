/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tensors: slices, elements by index, splitting and joining. */
#include "torch/aten.h"

static oct_value *self(oct_aten *a)
{
    return oct_aten_tensor(a, "self");
}

static int32_t axis_of(oct_aten *a, const oct_value *x, int64_t def)
{
    return oct_aten_axis(a, oct_aten_int(a, "dim", def), oct_aten_rank(a, x));
}

/* --- slices --- */

/* A bound of a slice: int64[1]; what is missing is the start or the end. */
static oct_value *bound(oct_aten *a, const char *name, int64_t def)
{
    const oct_arg *arg = oct_aten_arg(a, name);

    return arg ? oct_aten_number(a, arg) : oct_ints(a->b, &def, 1);
}

/* Known bounds as positions from the front; false: they, or the size, are not known. */
static bool known_bounds(oct_aten *a, const oct_value *x, int32_t axis, int64_t *begin,
                         int64_t *end)
{
    const oct_value *b = bound(a, "start", 0), *e = bound(a, "end", INT64_MAX);
    const int64_t dim = oct_aten_dim(x, axis);

    if (a->b->status || !b->data || !e->data || dim < 0) return false;
    *begin = oct_tensor_get_i64(b->data, 0);
    *end = oct_tensor_get_i64(e->data, 0);
    if (*begin < 0) *begin += dim;
    if (*end < 0) *end += dim;
    *begin = OCT_MIN(OCT_MAX(*begin, 0), dim);
    *end = OCT_MIN(OCT_MAX(*end, *begin), dim);
    return true;
}

void oct_aten_slice_tensor(oct_aten *a)
{
    oct_value *x = self(a);
    const int64_t step = oct_aten_int(a, "step", 1), axis = axis_of(a, x, 0);
    int64_t begin, end;

    if (step == 1 && known_bounds(a, x, (int32_t)axis, &begin, &end)) {
        const bool is_all = begin == 0 && end == oct_aten_dim(x, (int32_t)axis);

        a->out[0] = is_all ? x : oct_aten_slice(a, x, axis, begin, end);
        return;
    }
    oct_value *const in[] = {x, bound(a, "start", 0), bound(a, "end", INT64_MAX),
                             oct_ints(a->b, &axis, 1), oct_ints(a->b, &step, 1)};

    a->out[0] = oct_aten_done(a, oct_aten_node(a, &oct_op_slice, in, 5, 1));
}

/* [begin, end) of an axis of `whole` replaced by y. */
static oct_value *put_between(oct_aten *a, oct_value *whole, oct_value *y, int32_t axis,
                              int64_t begin, int64_t end)
{
    const int64_t dim = oct_aten_dim(whole, axis);
    oct_value *parts[3];
    int32_t n = 0;

    if (a->b->status) return NULL;
    if (begin == 0 && end == dim) return y;
    if (begin > 0) parts[n++] = oct_aten_slice(a, whole, axis, 0, begin);
    if (end > begin) parts[n++] = y;
    if (end < dim) parts[n++] = oct_aten_slice(a, whole, axis, end, dim);
    return oct_aten_concat(a, parts, n, axis);
}

static oct_value *put_slice(oct_aten *a, oct_value *whole, oct_value *y)
{
    const int32_t axis = axis_of(a, whole, 0);
    int64_t begin, end;

    if (oct_aten_int(a, "step", 1) != 1 || !known_bounds(a, whole, axis, &begin, &end)) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "writing a slice with steps or unknown bounds");
        return NULL;
    }
    return put_between(a, whole, y, axis, begin, end);
}

oct_value *oct_aten_write_slice(oct_aten *a, oct_value *whole, oct_value *y)
{
    return put_slice(a, whole, y);
}

void oct_aten_slice_scatter(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = put_slice(a, x, oct_aten_tensor(a, "src"));
}

void oct_aten_narrow(oct_aten *a)
{
    oct_value *x = self(a);
    const int64_t start = oct_aten_int(a, "start", 0);

    a->out[0] = oct_aten_slice(a, x, axis_of(a, x, 0), start, start + oct_aten_int(a, "length", 0));
}

/* --- select --- */

static oct_value *gather_axis(oct_aten *a, oct_value *x, oct_value *index, int64_t axis)
{
    oct_node *n = oct_aten_node(a, &oct_op_gather, (oct_value *[]){x, index}, 2, 1);

    oct_emit_int(a->b, n, "axis", axis);
    return oct_aten_done(a, n);
}

void oct_aten_select(oct_aten *a)
{
    oct_value *x = self(a);
    const oct_arg *arg = oct_aten_arg(a, "index");
    oct_value *index = arg ? oct_aten_operand(a, "index", OCT_DTYPE_I64) : NULL;

    if (!index) oct_aten_fail(a, OCT_ERR_FORMAT, "argument 'index' is missing");
    a->out[0] = gather_axis(a, x, index, axis_of(a, x, 0));
}

static oct_value *put_selected(oct_aten *a, oct_value *whole, oct_value *y)
{
    const int32_t axis = axis_of(a, whole, 0);
    const int64_t dim = oct_aten_dim(whole, axis);
    int64_t at = oct_aten_int(a, "index", 0);

    if (at < 0) at += dim;
    if (dim < 0 || at < 0 || at >= dim)
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "writing an element of a size that is not known");
    return put_between(a, whole, oct_aten_unsqueeze(a, y, axis), axis, at, at + 1);
}

oct_value *oct_aten_write_select(oct_aten *a, oct_value *whole, oct_value *y)
{
    return put_selected(a, whole, y);
}

void oct_aten_select_scatter(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = put_selected(a, x, oct_aten_tensor(a, "src"));
}

/* --- by index --- */

void oct_aten_gather_dim(oct_aten *a)
{
    oct_value *x = self(a);
    oct_node *n = oct_aten_node(a, &oct_op_gather_elements,
                                (oct_value *[]){x, oct_aten_tensor(a, "index")}, 2, 1);

    oct_emit_int(a->b, n, "axis", axis_of(a, x, 0));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_index_select(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = gather_axis(a, x, oct_aten_tensor(a, "index"), axis_of(a, x, 0));
}

void oct_aten_embedding(oct_aten *a)
{
    oct_value *w = oct_aten_tensor(a, "weight");

    a->out[0] = gather_axis(a, w, oct_aten_tensor(a, "indices"), 0);
}

/* src (a tensor or a number) put where index says, along a dimension. */
void oct_aten_scatter(oct_aten *a)
{
    oct_value *x = self(a), *index = oct_aten_tensor(a, "index");
    const bool is_number = oct_aten_has(a, "value");
    oct_value *src;
    oct_node *n;

    if (a->b->status) return;
    src = oct_aten_operand(a, is_number ? "value" : "src", x->type.dtype);
    if (is_number) src = ATEN2(expand, src, oct_aten_shape_of(a, index));
    n = oct_aten_node(a, &oct_op_scatter_elements, (oct_value *[]){x, index, src}, 3, 1);
    oct_emit_int(a->b, n, "axis", axis_of(a, x, 0));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_nonzero(oct_aten *a)
{
    a->out[0] = oct_aten_swap(a, ATEN1(non_zero, self(a)), 0, 1);
}

/* Elements in reverse order. */
void oct_aten_flip(oct_aten *a)
{
    oct_value *x = self(a);
    int64_t dims[OCT_MAX_RANK], from[OCT_MAX_RANK], to[OCT_MAX_RANK], step[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "dims", dims);

    for (int i = 0; i < n; i++) {
        from[i] = step[i] = -1;
        to[i] = INT64_MIN;
    }
    oct_value *const in[] = {x, oct_ints(a->b, from, n), oct_ints(a->b, to, n),
                             oct_ints(a->b, dims, n), oct_ints(a->b, step, n)};

    a->out[0] = oct_aten_done(a, oct_aten_node(a, &oct_op_slice, in, 5, 1));
}

/* A positive shift moves elements to higher positions. */
void oct_aten_roll(oct_aten *a)
{
    oct_value *x = self(a);
    int64_t shifts[OCT_MAX_RANK], dims[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "shifts", shifts);

    if (oct_aten_ints(a, "dims", dims) != n) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "rolling without as many dimensions as shifts");
        return;
    }
    for (int i = 0; i < n && !a->b->status; i++) {
        const int32_t axis = oct_aten_axis(a, dims[i], oct_aten_rank(a, x));
        const int64_t dim = oct_aten_dim(x, axis);
        int64_t cut;

        if (dim < 1) {
            oct_aten_fail(a, OCT_ERR_SHAPE, "the size it rolls is not known");
            return;
        }
        cut = ((dim - shifts[i] % dim) % dim + dim) % dim;
        if (cut == 0) continue;
        oct_value *const parts[] = {oct_aten_slice(a, x, axis, cut, dim),
                                    oct_aten_slice(a, x, axis, 0, cut)};

        x = oct_aten_concat(a, parts, 2, axis);
    }
    a->out[0] = x;
}

/* --- joining and splitting --- */

/* Operands without elements and with one dimension count for nothing, as they once did. */
void oct_aten_cat(oct_aten *a)
{
    const oct_dtype type = a->meta->type.dtype;
    int32_t n, n_used = 0;
    oct_value **all = oct_aten_tensors(a, "tensors", &n);

    for (int32_t i = 0; i < n; i++)
        if (!(all[i] && all[i]->type.rank == 1 && all[i]->type.dim[0] == 0))
            all[n_used++] = oct_aten_cast(a, all[i], type);
    if (!n_used) oct_aten_fail(a, OCT_ERR_SHAPE, "nothing to join");
    a->out[0] =
        n_used == 1 ? all[0] : oct_aten_concat(a, all, n_used, axis_of(a, all ? all[0] : NULL, 0));
    a->is_copy = true;
}

void oct_aten_stack(oct_aten *a)
{
    const int64_t dim = oct_aten_int(a, "dim", 0);
    int32_t n;
    oct_value **all = oct_aten_tensors(a, "tensors", &n);
    const int32_t axis = n ? oct_aten_axis(a, dim, oct_aten_rank(a, all[0]) + 1) : 0;

    if (!n) oct_aten_fail(a, OCT_ERR_SHAPE, "nothing to stack");
    for (int32_t i = 0; i < n; i++)
        all[i] = oct_aten_unsqueeze(a, oct_aten_cast(a, all[i], a->meta->type.dtype), axis);
    a->out[0] = oct_aten_concat(a, all, n, axis);
}

/* Split into a->n_out parts of these sizes. */
static void split_into(oct_aten *a, oct_value *x, int64_t axis, oct_value *sizes)
{
    oct_node *n;

    if (a->n_out == 1) { /* all of it */
        a->out[0] = x;
        return;
    }
    n = oct_aten_node(a, &oct_op_split, (oct_value *[]){x, sizes}, 2, a->n_out);
    oct_emit_int(a->b, n, "axis", axis);
    if (!oct_aten_done(a, n)) return;
    for (int32_t i = 0; i < a->n_out; i++)
        a->out[i] = n->out[i];
}

static void split_by(oct_aten *a, oct_value *x, int32_t axis, int64_t size)
{
    const int64_t dim = oct_aten_dim(x, axis), n = a->n_out;
    int64_t *sizes = oct_arena_array(a->t->arena, (size_t)n, sizeof(*sizes));

    if (a->b->status || !sizes) return;
    if (dim < 0 || size < 1 || n != OCT_MAX(oct_ceil_div(dim, size), 1)) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "%lld results of size %lld do not make up %lld",
                      (long long)n, (long long)size, (long long)dim);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        sizes[i] = OCT_MIN(size, dim - i * size);
    split_into(a, x, axis, oct_ints(a->b, sizes, n));
}

void oct_aten_split(oct_aten *a)
{
    oct_value *x = self(a);

    split_by(a, x, axis_of(a, x, 0), oct_aten_int(a, "split_size", 1));
}

void oct_aten_chunk(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t axis = axis_of(a, x, 0);
    const int64_t n = oct_aten_int(a, "chunks", 1), dim = oct_aten_dim(x, axis);

    if (n < 1 || dim < 0) oct_aten_fail(a, OCT_ERR_SHAPE, "the size it divides is not known");
    split_by(a, x, axis, n > 0 && dim > 0 ? oct_ceil_div(dim, n) : 1);
}

void oct_aten_split_sizes(oct_aten *a)
{
    oct_value *x = self(a);
    const oct_arg *arg = oct_aten_arg(a, "split_sizes");
    const int32_t n = arg && arg->kind == OCT_ARG_LIST ? arg->n : 0;
    int64_t *sizes = oct_arena_array(a->t->arena, (size_t)n + 1, sizeof(*sizes));

    for (int32_t i = 0; sizes && i < n; i++) {
        if (arg->list[i].kind != OCT_ARG_INT)
            oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "symbolic sizes");
        sizes[i] = arg->list[i].i;
    }
    if (!sizes || n != a->n_out) {
        oct_aten_fail(a, OCT_ERR_FORMAT, "%d sizes and %d results", n, a->n_out);
        return;
    }
    split_into(a, x, axis_of(a, x, 0), oct_ints(a->b, sizes, n));
}

void oct_aten_unbind(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t axis = axis_of(a, x, 0);

    for (int32_t i = 0; i < a->n_out && !a->b->status; i++)
        a->out[i] = gather_axis(a, x, oct_aten_scalar(a, OCT_DTYPE_I64, i), axis);
}
