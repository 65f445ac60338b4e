/* SPDX-License-Identifier: Apache-2.0 */
/* Constants as integers with a DequantizeLinear, with folded factors taken out again. */
#include <math.h>

#include "op/op.h"
#include "quant/lower/lower_parts.h"
#include "quant/solve/round_weights.h"

/* The factor of each element before it is quantized. */
typedef struct folding {
    const float *f; /* NULL: nothing */
    int64_t rows, columns;
    int64_t dim1, inner; /* of the weight: second axis, elements below it */
} folding;

static float factor(const folding *f, int64_t i)
{
    const int64_t row = i / (f->dim1 * f->inner), column = i / f->inner % f->dim1;

    return f->f[row % f->rows * f->columns + column % f->columns];
}

static oct_status read_fold(oct_lowering *l, const oct_qpoint *p, const oct_value *v, folding *out)
{
    const oct_type *t = &v->type;

    *out = (folding){p->fold, p->fold_rows, p->fold_columns, 1, 1};
    if (!p->fold) return OCT_OK;
    if (t->rank < 2 || (p->fold_rows != 1 && p->fold_rows != t->dim[0]) ||
        (p->fold_columns != 1 && p->fold_columns != t->dim[1]))
        return oct_fail(l->ctx, OCT_ERR_SHAPE, "weight '%s': %lld x %lld factors do not fit it",
                        v->name, (long long)p->fold_rows, (long long)p->fold_columns);
    for (int64_t i = 0; i < p->fold_rows * p->fold_columns; i++)
        if (!(p->fold[i] > 0 && p->fold[i] < HUGE_VALF))
            return oct_fail(l->ctx, OCT_ERR_STATE, "weight '%s': factor %lld is %g", v->name,
                            (long long)i, (double)p->fold[i]);
    out->dim1 = t->dim[1];
    out->inner = oct_type_span(t, 2, t->rank);
    return OCT_OK;
}

/* Elements are seen as [outer x n x inner] around the axis of the scales; `taps` are rounded
 * together. */
static void quantize(const oct_qspec *spec, const oct_lowering_params *p, const folding *f,
                     const oct_tensor *w, int64_t taps, oct_tensor *codes)
{
    const oct_type *t = &w->type;
    const int64_t inner = p->n > 1 ? oct_type_span(t, p->axis + 1, t->rank) : 1;
    const int64_t len = oct_tensor_len(w);
    const float *x = w->data;

    for (int64_t at = 0; at < len; at += taps) {
        const int64_t k = p->n > 1 ? at / inner % p->n : 0;
        float y[OCT_MAX_TAPS];
        int32_t code[OCT_MAX_TAPS];
        int64_t wide[OCT_MAX_TAPS];

        for (int64_t i = 0; i < taps; i++)
            y[i] = f->f ? x[at + i] * factor(f, at + i) : x[at + i];
        oct_round_weights(spec, p->scale[k], p->zero ? p->zero[k] : 0, y, code, taps);
        for (int64_t i = 0; i < taps; i++)
            wide[i] = code[i];
        oct_store_i64(p->dtype, codes->data, at, taps, wide);
    }
}

/* Codes that are one above or below; a qmap's file may move them beyond the ends. */
static void move_codes(const oct_qspec *spec, const oct_qpoint *p, oct_tensor *codes)
{
    int32_t low, high;

    oct_qspec_limits(spec, &low, &high);
    for (int64_t i = 0; i < p->n_moved; i++) {
        const int64_t by = p->moved[i] < 0 ? -1 : 1, at = p->moved[i] * by - 1;
        int64_t code;

        oct_load_i64(codes->type.dtype, codes->data, at, 1, &code);
        code = OCT_MIN(OCT_MAX(code + by, (int64_t)low), (int64_t)high);
        oct_store_i64(codes->type.dtype, codes->data, at, 1, &code);
    }
}

/* The factors' inverses, as an operand that broadcasts against the weight. */
static oct_status unfold(oct_lowering *l, const oct_qpoint *p, oct_value *v, oct_node *before,
                         oct_value *dq, oct_value **out)
{
    oct_builder b = {.g = v->graph, .before = before};
    int64_t dims[OCT_MAX_RANK];
    oct_tensor *t = NULL;
    oct_value *inverse;
    oct_type type;

    for (int32_t i = 0; i < v->type.rank; i++)
        dims[i] = i == 0 ? p->fold_rows : i == 1 ? p->fold_columns : 1;
    type = oct_type_make(OCT_DTYPE_F32, v->type.rank, dims);
    OCT_TRY(oct_tensor_make(l->ctx, &type, &t));
    for (int64_t i = 0; i < p->fold_rows * p->fold_columns; i++)
        ((float *)t->data)[i] = 1 / p->fold[i];
    OCT_TRY(oct_lowering_const(l, v->graph, v->name, "unfold", t, &inverse));
    if (!(b.prefix = oct_arena_printf(l->g->arena, "%s_Mul", v->name))) return OCT_ERR_MEMORY;
    *out = oct_emit(&b, &oct_op_mul, dq, inverse, NULL);
    return b.status;
}

oct_status oct_lowering_weight(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root,
                               oct_value *v, oct_node *before, oct_value **out)
{
    oct_value *constants[2], *integers = NULL, *dq = NULL;
    oct_lowering_params params;
    oct_tensor *codes = NULL;
    oct_type type = v->type;
    folding f;

    OCT_TRY(oct_lowering_check(l, p, root, v, &params));
    OCT_TRY(read_fold(l, p, v, &f));
    /* Placed before its only consumer; a body may read what is outside of it, but not the
     * reverse. */
    if (!before) before = v->n_users == 1 ? v->users[0] : v->graph->first;
    if (before && before->graph != v->graph) before = v->graph->first;
    type.dtype = params.dtype;
    OCT_TRY(oct_tensor_make(l->ctx, &type, &codes));
    quantize(&root->spec, &params, &f, v->data, oct_weight_taps(p), codes);
    move_codes(&root->spec, p, codes);
    OCT_TRY(oct_lowering_const(l, v->graph, v->name, "int", codes, &integers));
    OCT_TRY(oct_lowering_constants(l, v->graph, &params, constants));
    OCT_TRY(oct_lowering_qdq(l, v->graph, before, &oct_op_dequantize_linear, integers, &params,
                             constants, &dq));
    *out = dq;
    if (p->fold) OCT_TRY(unfold(l, p, v, before, dq, out));
    return oct_map_put(&l->originals, (*out)->name, (void *)(uintptr_t)v->name);
}
