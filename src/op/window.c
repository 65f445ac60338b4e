/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow: sums of cosines. */
#include <math.h>

#include "op/work.h"

enum { OUTPUT_DATATYPE, PERIODIC };

static oct_status shape(const oct_infer *q)
{
    int64_t size = -1;
    oct_dtype t;
    int n;

    OCT_TRY(oct_dtype_attr(q->node, oct_int(q->node, OUTPUT_DATATYPE), &t));
    OCT_TRY(oct_infer_ints(q, 0, &size, 1, &n));
    q->out[0] = oct_type_make(t, 1, &(int64_t){-1});
    if (n < 0) return OCT_OK;
    if (n == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "the size is missing");
    return oct_type_of_dims(q->node, t, &size, 1, &q->out[0]);
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) */
static oct_status window(const oct_args *a, double a0, double a1, double a2)
{
    oct_tensor *y = a->out[0];
    const double pi = 3.14159265358979323846;
    int64_t size, n;

    OCT_TRY(oct_args_check(a));
    size = y->type.dim[0];
    n = oct_int(a->node, PERIODIC) ? size : size - 1;
    for (int64_t i = 0; i < size; i++) {
        const double t = n > 0 ? 2 * pi * (double)i / (double)n : 0;
        const double v = size == 1 ? 1 : a0 - a1 * cos(t) + a2 * cos(2 * t);

        oct_store_f64(y->type.dtype, y->data, i, 1, &v);
    }
    return OCT_OK;
}

static oct_status hann(const oct_args *a)
{
    return window(a, 0.5, 0.5, 0);
}

static oct_status hamming(const oct_args *a)
{
    return window(a, 25.0 / 46, 21.0 / 46, 0);
}

static oct_status blackman(const oct_args *a)
{
    return window(a, 0.42, 0.5, 0.08);
}

static const oct_attr_def attrs[] = {
    [OUTPUT_DATATYPE] = {"output_datatype", OCT_ATTR_INT, .def.i = OCT_DTYPE_F32},
    [PERIODIC] = {"periodic", OCT_ATTR_INT, .def.i = 1},
    {0},
};

#define ROW(sym, onnx)                                                                             \
    const oct_op oct_op_##sym##_window = {                                                         \
        .name = onnx,                                                                              \
        .since = 17,                                                                               \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .attrs = attrs,                                                                            \
        .shape = shape,                                                                            \
        .ref = sym,                                                                                \
    }

ROW(hann, "HannWindow");
ROW(hamming, "HammingWindow");
ROW(blackman, "BlackmanWindow");
