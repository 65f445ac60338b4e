/* SPDX-License-Identifier: Apache-2.0 */
/* DFT: discrete Fourier transform along one axis. */
#include "op/fft.h"
#include "op/move.h"
#include "op/work.h"

enum { INVERSE, ONESIDED };
enum { INPUT, DFT_LENGTH, AXIS };

/* What the operands say; -1: not known. */
typedef struct plan {
    int32_t axis;
    int64_t length; /* of the transform */
    int64_t parts;  /* 1: real input, 2: complex */
    int64_t n_out;  /* along the axis */
} plan;

static oct_status check_types(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, INPUT, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, DFT_LENGTH, OCT_SET_INT));
    return oct_infer_check(q, AXIS, OCT_SET_INT);
}

static oct_status resolve(const oct_node *n, const oct_type *x, int64_t axis, int64_t length,
                          plan *p)
{
    const bool onesided = oct_int(n, ONESIDED) != 0;

    if (x->rank < 2) return oct_node_fail(n, OCT_ERR_SHAPE, "rank is %d, below 2", x->rank);
    OCT_TRY(oct_axis(n, axis, x->rank, &p->axis));
    if (p->axis == x->rank - 1)
        return oct_node_fail(n, OCT_ERR_SHAPE, "the last axis holds the parts of numbers");
    p->parts = x->dim[x->rank - 1];
    if (p->parts > 2 || p->parts == 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "the last axis has %lld elements, not 1 or 2",
                             (long long)p->parts);
    if (onesided && (p->parts == 2 || oct_int(n, INVERSE)))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "onesided needs a real signal, forward");
    p->length = length >= 0 ? length : x->dim[p->axis];
    if (p->length == 0) return oct_node_fail(n, OCT_ERR_SHAPE, "there is nothing to transform");
    p->n_out = p->length < 0 ? -1 : onesided ? p->length / 2 + 1 : p->length;
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    int64_t axis = -2, length = -1;
    int has_axis, has_length;
    plan p;

    OCT_TRY(oct_infer_need(q, INPUT, &x));
    OCT_TRY(check_types(q));
    OCT_TRY(oct_infer_ints(q, AXIS, &axis, 1, &has_axis));
    OCT_TRY(oct_infer_ints(q, DFT_LENGTH, &length, 1, &has_length));
    if (has_length == 1 && length < 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "dft_length is %lld", (long long)length);
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0) return OCT_OK;
    q->out[0] = *x;
    if (oct_infer_in(q, AXIS) && has_axis != 1) { /* any axis may change */
        for (int i = 0; i < x->rank; i++)
            q->out[0].dim[i] = -1;
    } else {
        OCT_TRY(resolve(q->node, x, axis, length, &p));
        q->out[0].dim[p.axis] = oct_infer_in(q, DFT_LENGTH) && has_length != 1 ? -1 : p.n_out;
    }
    q->out[0].dim[x->rank - 1] = 2;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[INPUT];
    const oct_type *t = &x->type;
    oct_tensor *y = a->out[0];
    int64_t outer, inner, n_in;
    oct_complex *line;
    oct_fft f;
    plan p;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(resolve(a->node, t, oct_read_int(oct_args_in(a, AXIS), -2),
                    oct_read_int(oct_args_in(a, DFT_LENGTH), -1), &p));
    if (oct_tensor_len(y) == 0) return OCT_OK;
    /* As the standard's reference: complex numbers in their own precision, real ones in double. */
    OCT_TRY(oct_fft_init(&f, a, p.length, oct_int(a->node, INVERSE) != 0,
                         p.parts == 2 && t->dtype != OCT_DTYPE_F64));
    if (!(line = oct_args_scratch(a, (size_t)p.length, sizeof(*line)))) return OCT_ERR_MEMORY;
    outer = oct_type_span(t, 0, p.axis);
    inner = oct_type_span(t, p.axis + 1, t->rank - 1);
    n_in = t->dim[p.axis];
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t from = i / inner * n_in * inner + i % inner;
        const int64_t to = i / inner * p.n_out * inner + i % inner;

        for (int64_t k = 0; k < p.length; k++) {
            line[k] = (oct_complex){0, 0};
            if (k < n_in)
                oct_load_f64(t->dtype, x->data, (from + k * inner) * p.parts, p.parts, &line[k].re);
        }
        oct_fft_run(&f, line);
        for (int64_t k = 0; k < p.n_out; k++)
            oct_store_f64(y->type.dtype, y->data, (to + k * inner) * 2, 2, &line[k].re);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [INVERSE] = {"inverse", OCT_ATTR_INT, .def.i = 0},
    [ONESIDED] = {"onesided", OCT_ATTR_INT, .def.i = 0},
    {0},
};

const oct_op oct_op_dft = {
    .name = "DFT",
    .since = 20,
    .min_in = 1,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
