/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a call, by name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "torch/aten.h"

void oct_aten_fail(oct_aten *a, oct_status st, const char *fmt, ...)
{
    va_list args;

    if (a->b->status) return;
    va_start(args, fmt);
    a->b->status = oct_vfail(a->t->ctx, st, fmt, args);
    va_end(args);
}

static void missing(oct_aten *a, const char *name, const char *what)
{
    oct_aten_fail(a, OCT_ERR_FORMAT, "argument '%s' is not %s", name, what);
}

const oct_arg *oct_aten_arg(const oct_aten *a, const char *name)
{
    for (int32_t i = 0; i < a->n->n_in; i++)
        if (strcmp(a->n->in[i].name, name) == 0)
            return a->n->in[i].value.kind == OCT_ARG_NONE ? NULL : &a->n->in[i].value;
    return NULL;
}

bool oct_aten_has(const oct_aten *a, const char *name)
{
    return oct_aten_arg(a, name) != NULL;
}

/* --- tensors --- */

static oct_value *tensor(oct_aten *a, const oct_arg *arg)
{
    return oct_torch_read(a->t, oct_torch_slot(a->t, arg->s));
}

oct_value *oct_aten_optional(oct_aten *a, const char *name)
{
    const oct_arg *arg = oct_aten_arg(a, name);

    if (!arg || a->b->status) return NULL;
    if (arg->kind != OCT_ARG_TENSOR) {
        missing(a, name, "a tensor");
        return NULL;
    }
    /* The first tensor is what a view is of; see oct_torch_read(). */
    if (a->whole && (strcmp(name, "self") == 0 || strcmp(name, "input") == 0)) return a->whole;
    return tensor(a, arg);
}

oct_value *oct_aten_tensor(oct_aten *a, const char *name)
{
    oct_value *v = oct_aten_optional(a, name);

    if (!v) missing(a, name, "a tensor");
    return v;
}

oct_value **oct_aten_tensors(oct_aten *a, const char *name, int32_t *n)
{
    const oct_arg *arg = oct_aten_arg(a, name);
    oct_value **all;

    *n = 0;
    if (!arg || arg->kind != OCT_ARG_LIST) {
        missing(a, name, "a list of tensors");
        return NULL;
    }
    if (!(all = oct_arena_array(a->t->arena, (size_t)arg->n + 1, sizeof(*all)))) {
        oct_aten_fail(a, OCT_ERR_MEMORY, "out of memory");
        return NULL;
    }
    for (int32_t i = 0; i < arg->n; i++) {
        if (arg->list[i].kind == OCT_ARG_NONE) continue;
        if (arg->list[i].kind != OCT_ARG_TENSOR) missing(a, name, "a list of tensors");
        if (a->b->status || !(all[i] = tensor(a, &arg->list[i]))) return NULL;
    }
    *n = arg->n;
    return all;
}

/* --- numbers --- */

/* A number that is known: written, or a symbolic one that turned out to be fixed. */
static bool is_known(oct_aten *a, const oct_arg *arg, int64_t *out)
{
    const oct_slot *s = arg->kind == OCT_ARG_SYM ? oct_map_get(&a->t->slots, arg->s) : NULL;

    *out = s ? s->number : arg->i;
    return s ? s->is_known : arg->kind == OCT_ARG_INT || arg->kind == OCT_ARG_BOOL;
}

/* Sizes, steps and axes that no tensor could have are refused here, so that products of two of them
 * and sums with dimensions stay within 64 bits. */
static bool is_sensible(oct_aten *a, const char *name, int64_t v)
{
    if (v >= -INT32_MAX && v <= INT32_MAX) return true;
    oct_aten_fail(a, OCT_ERR_FORMAT, "argument '%s' is %" PRId64 ", too large", name, v);
    return false;
}

int64_t oct_aten_int(oct_aten *a, const char *name, int64_t def)
{
    const oct_arg *arg = oct_aten_arg(a, name);
    int64_t v;

    if (!arg) return def;
    if (is_known(a, arg, &v)) return is_sensible(a, name, v) ? v : def;
    missing(a, name, "a known integer");
    return def;
}

double oct_aten_f64(oct_aten *a, const char *name, double def)
{
    const oct_arg *arg = oct_aten_arg(a, name);
    int64_t v;

    if (!arg) return def;
    if (arg->kind == OCT_ARG_FLOAT) return arg->f;
    if (is_known(a, arg, &v)) return (double)v;
    missing(a, name, "a number");
    return def;
}

bool oct_aten_bool(oct_aten *a, const char *name, bool def)
{
    return oct_aten_int(a, name, def) != 0;
}

const char *oct_aten_text(oct_aten *a, const char *name, const char *def)
{
    const oct_arg *arg = oct_aten_arg(a, name);

    if (!arg) return def;
    if (arg->kind == OCT_ARG_STRING) return arg->s;
    missing(a, name, "a text");
    return def;
}

int oct_aten_ints(oct_aten *a, const char *name, int64_t out[OCT_MAX_RANK])
{
    const oct_arg *arg = oct_aten_arg(a, name);
    const int n = !arg ? 0 : arg->kind == OCT_ARG_LIST ? arg->n : 1;

    memset(out, 0, OCT_MAX_RANK * sizeof(*out));
    if (n > OCT_MAX_RANK) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "argument '%s' has %d numbers (at most %d)", name, n,
                      OCT_MAX_RANK);
        return 0;
    }
    for (int i = 0; i < n; i++)
        if (!is_known(a, arg->kind == OCT_ARG_LIST ? &arg->list[i] : arg, &out[i]))
            missing(a, name, "a list of known integers");
        else if (!is_sensible(a, name, out[i]))
            out[i] = 0;
    return a->b->status ? 0 : n;
}

void oct_aten_spatial(oct_aten *a, const char *name, int rank, int64_t def,
                      int64_t out[OCT_MAX_RANK])
{
    const int n = oct_aten_ints(a, name, out);

    if (n > 1 && n != rank)
        oct_aten_fail(a, OCT_ERR_FORMAT, "argument '%s' has %d numbers, not %d", name, n, rank);
    for (int i = n; i < rank; i++)
        out[i] = n == 1 ? out[0] : def;
}

oct_value *oct_aten_number(oct_aten *a, const oct_arg *arg)
{
    oct_slot *s;
    int64_t v;

    if (a->b->status) return NULL;
    if (is_known(a, arg, &v)) return oct_ints(a->b, &v, 1);
    if (arg->kind != OCT_ARG_SYM) {
        oct_aten_fail(a, OCT_ERR_FORMAT, "an integer is expected");
        return NULL;
    }
    return (s = oct_torch_slot(a->t, arg->s)) ? s->v : NULL;
}

oct_value *oct_aten_sizes(oct_aten *a, const char *name, int64_t *known, int *n_out)
{
    const oct_arg *arg = oct_aten_arg(a, name);
    const int n = arg && arg->kind == OCT_ARG_LIST ? arg->n : 0;
    int64_t v[OCT_MAX_RANK];
    oct_value *parts[OCT_MAX_RANK];
    bool is_fixed = true;

    if (n_out) *n_out = n;
    if (!arg || arg->kind != OCT_ARG_LIST || n > OCT_MAX_RANK) {
        missing(a, name, "a list of sizes");
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const bool is_number = is_known(a, &arg->list[i], &v[i]);

        if (!is_number) v[i] = -2;
        is_fixed = is_fixed && is_number;
        if (known) known[i] = v[i];
    }
    if (is_fixed) return oct_ints(a->b, v, n);
    for (int i = 0; i < n; i++)
        parts[i] = oct_aten_number(a, &arg->list[i]);
    return oct_aten_concat(a, parts, n, 0);
}

/* --- operands of arithmetic --- */

oct_value *oct_aten_operand(oct_aten *a, const char *name, oct_dtype dtype)
{
    const oct_arg *arg = oct_aten_arg(a, name);
    int64_t v;

    if (!arg) {
        missing(a, name, "given");
        return NULL;
    }
    if (arg->kind == OCT_ARG_TENSOR) return oct_aten_cast(a, oct_aten_tensor(a, name), dtype);
    if (arg->kind == OCT_ARG_FLOAT) return oct_aten_scalar(a, dtype, arg->f);
    if (is_known(a, arg, &v)) return oct_aten_scalar(a, dtype, (double)v);
    return oct_aten_cast(a, oct_aten_squeeze(a, oct_aten_number(a, arg), 0), dtype);
}

static int kind_rank(oct_dtype t)
{
    return oct_dtype_is_float(t) ? 2 : oct_dtype_is_int(t) ? 1 : 0;
}

/* Of two element types, that which holds both: kinds first, then bits. */
static oct_dtype wider(oct_dtype x, oct_dtype y)
{
    if (kind_rank(x) != kind_rank(y)) return kind_rank(x) > kind_rank(y) ? x : y;
    if (oct_dtype_get(x)->bits == oct_dtype_get(y)->bits && x != y) {
        if (kind_rank(x) == 2) return OCT_DTYPE_F32; /* float16 and bfloat16 */
        return oct_dtype_get(x)->bits == 8 ? OCT_DTYPE_I16 : OCT_DTYPE_I64;
    }
    return oct_dtype_get(x)->bits > oct_dtype_get(y)->bits ? x : y;
}

/* A number changes the type of a tensor only if it is of a higher kind; so does a 0-D tensor. */
oct_dtype oct_aten_common(oct_aten *a, const char *x, const char *y)
{
    const char *const name[] = {x, y};
    oct_dtype strong = OCT_DTYPE_NONE, weak = OCT_DTYPE_NONE;

    for (int i = 0; i < 2 && !a->b->status; i++) {
        const oct_arg *arg = oct_aten_arg(a, name[i]);
        const oct_value *v =
            arg && arg->kind == OCT_ARG_TENSOR ? oct_aten_tensor(a, name[i]) : NULL;
        oct_dtype type = v                                   ? v->type.dtype
                         : !arg || arg->kind == OCT_ARG_BOOL ? OCT_DTYPE_BOOL
                         : arg->kind == OCT_ARG_FLOAT        ? OCT_DTYPE_F32
                                                             : OCT_DTYPE_I64;
        oct_dtype *to = v && v->type.rank != 0 ? &strong : &weak;

        *to = *to ? wider(*to, type) : type;
    }
    if (!strong || !weak) return strong ? strong : weak;
    return kind_rank(weak) > kind_rank(strong) ? weak : strong;
}

int32_t oct_aten_axis(oct_aten *a, int64_t axis, int32_t rank)
{
    const int32_t n = OCT_MAX(rank, 1);

    if (axis >= -n && axis < n) return (int32_t)(axis < 0 ? axis + n : axis);
    oct_aten_fail(a, OCT_ERR_SHAPE, "dimension %lld of a tensor of %d dimensions", (long long)axis,
                  rank);
    return 0;
}
