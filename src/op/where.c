/* SPDX-License-Identifier: Apache-2.0 */
/* Where: elements of the second operand where the first is true, else of the third. */
#include <string.h>

#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/grad/rules.h"

static oct_status shape(const oct_infer *q)
{
    const oct_type *cond, *x, *y;
    oct_type *out = &q->out[0];

    OCT_TRY(oct_infer_need(q, 0, &cond));
    OCT_TRY(oct_infer_need(q, 1, &x));
    OCT_TRY(oct_infer_need(q, 2, &y));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_BOOL));
    if (x->dtype != y->dtype && x->dtype != OCT_DTYPE_NONE && y->dtype != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "chooses between %s and %s",
                              oct_dtype_name(x->dtype), oct_dtype_name(y->dtype));
    out->dtype = x->dtype != OCT_DTYPE_NONE ? x->dtype : y->dtype;
    if (out->dtype != OCT_DTYPE_NONE && oct_dtype_size(out->dtype) == 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "cannot choose between elements of type %s",
                              oct_dtype_name(out->dtype));
    OCT_TRY(oct_broadcast(q->node, x, y, out));
    return oct_broadcast(q->node, out, cond, out);
}

typedef struct job {
    oct_bcast b;
    const uint8_t *cond;
    const char *x, *y;
    char *z;
    size_t size;
} job;

#define CHOOSE(T)                                                                                  \
    do {                                                                                           \
        const T *x = (const T *)(const void *)(j->x) + off[1];                                     \
        const T *y = (const T *)(const void *)(j->y) + off[2];                                     \
        T *z = (T *)(void *)(j->z) + at;                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            z[i] = cond[i * sc] ? x[i * sx] : y[i * sy];                                           \
    } while (0)

static void row(void *arg, int64_t at, const int64_t off[], int64_t n)
{
    const job *j = arg;
    const int inner = j->b.rank - 1;
    const int64_t sc = j->b.stride[0][inner], sx = j->b.stride[1][inner];
    const int64_t sy = j->b.stride[2][inner], size = (int64_t)j->size;
    const uint8_t *cond = j->cond + off[0]; /* a file may hold any byte */

    if (size == 1) {
        CHOOSE(uint8_t);
    } else if (size == 2) {
        CHOOSE(uint16_t);
    } else if (size == 4) {
        CHOOSE(uint32_t);
    } else if (size == 8) {
        CHOOSE(uint64_t);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(j->z + (at + i) * size,
                   cond[i * sc] ? j->x + (off[1] + i * sx) * size : j->y + (off[2] + i * sy) * size,
                   j->size);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;

    oct_bcast_walk(&j->b, begin, end, row, j);
}

static oct_status ref(const oct_args *a)
{
    const oct_type *const types[] = {&a->in[0]->type, &a->in[1]->type, &a->in[2]->type};
    job j = {.cond = a->in[0]->data,
             .x = a->in[1]->data,
             .y = a->in[2]->data,
             .z = a->out[0]->data,
             .size = oct_dtype_size(a->out[0]->type.dtype)};

    oct_bcast_init(&j.b, &a->out[0]->type, 3, types);
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

static oct_status grad(const oct_grad_args *a)
{
    oct_value *cond = a->node->in[0], *zero = oct_grad_number(a, 1, 0), *dy = a->dy[0];

    if (a->wanted[1])
        a->dx[1] = oct_grad_sum_to(a->b, OCT_EMIT3(where, cond, dy, zero), a->node->in[1]);
    if (a->wanted[2])
        a->dx[2] = oct_grad_sum_to(a->b, OCT_EMIT3(where, cond, zero, dy), a->node->in[2]);
    return OCT_OK;
}

const oct_op oct_op_where = {
    .name = "Where",
    .since = 9,
    .min_in = 3,
    .max_in = 3,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};
