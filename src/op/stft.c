/* SPDX-License-Identifier: Apache-2.0 */
/* STFT: Fourier transforms of overlapping, windowed pieces of a signal. */
#include "op/fft.h"
#include "op/move.h"
#include "op/work.h"

enum { ONESIDED };
enum { SIGNAL, FRAME_STEP, WINDOW, FRAME_LENGTH };

static oct_status check_types(const oct_infer *q)
{
    const oct_type *x = q->in[SIGNAL], *w = oct_infer_in(q, WINDOW);

    OCT_TRY(oct_infer_check(q, SIGNAL, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, FRAME_STEP, OCT_SET_INT));
    OCT_TRY(oct_infer_check(q, WINDOW, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, FRAME_LENGTH, OCT_SET_INT));
    /* Rank 2 is a real signal; the text asks for 3, ONNX Runtime and exporters do not. */
    if (x->rank >= 0 && x->rank != 2 && x->rank != 3)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the signal has rank %d, expected 3", x->rank);
    if (x->rank == 3 && (x->dim[2] > 2 || x->dim[2] == 0))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the last axis is not 1 or 2");
    if (x->rank == 3 && x->dim[2] == 2 && oct_int(q->node, ONESIDED))
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "onesided needs a real signal");
    if (w && w->rank >= 0 && w->rank != 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the window has rank %d, expected 1", w->rank);
    return OCT_OK;
}

/* Length of a frame: as given, else the window's. -1: not known. */
static oct_status frame_length(const oct_infer *q, int64_t *out)
{
    const oct_type *w = oct_infer_in(q, WINDOW);
    const int64_t window = w && w->rank == 1 ? w->dim[0] : -1;
    int n;

    *out = -1;
    if (!w && !oct_infer_in(q, FRAME_LENGTH))
        return oct_infer_fail(q, OCT_ERR_FORMAT, "needs a window or a frame length");
    OCT_TRY(oct_infer_ints(q, FRAME_LENGTH, out, 1, &n));
    if (n == 1 && window >= 0 && window != *out)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "a window of %lld for frames of %lld",
                              (long long)window, (long long)*out);
    if (n != 1) *out = oct_infer_in(q, FRAME_LENGTH) ? -1 : window;
    if ((n == 1 && *out < 1) || *out == 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "frames have no elements");
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    oct_type *out = &q->out[0];
    int64_t length, step = -1;
    int has_step;

    OCT_TRY(oct_infer_need(q, SIGNAL, &x));
    OCT_TRY(check_types(q));
    OCT_TRY(frame_length(q, &length));
    OCT_TRY(oct_infer_ints(q, FRAME_STEP, &step, 1, &has_step));
    if (has_step == 0 || (has_step == 1 && step < 1))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "frame_step is not positive");
    *out = oct_type_make(x->dtype, 4, (int64_t[]){x->rank >= 0 ? x->dim[0] : -1, -1, -1, 2});
    if (length < 0) return OCT_OK;
    out->dim[2] = oct_int(q->node, ONESIDED) ? length / 2 + 1 : length;
    if (x->rank < 0 || x->dim[1] < 0 || has_step != 1) return OCT_OK;
    if (x->dim[1] < length)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "a frame of %lld in a signal of %lld",
                              (long long)length, (long long)x->dim[1]);
    out->dim[1] = (x->dim[1] - length) / step + 1;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *t = &a->in[SIGNAL]->type;
    const oct_tensor *w = oct_args_in(a, WINDOW);
    const int64_t step = oct_read_int(a->in[FRAME_STEP], 1), parts = t->rank == 3 ? t->dim[2] : 1;
    const int64_t length = oct_read_int(oct_args_in(a, FRAME_LENGTH), w ? w->type.dim[0] : 0);
    oct_tensor *y = a->out[0];
    const int64_t frames = y->type.dim[1], bins = y->type.dim[2];
    const double *x, *window;
    oct_complex *line;
    oct_fft f;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_work_in_f64(a, SIGNAL, &x));
    OCT_TRY(oct_work_in_f64(a, WINDOW, &window));
    OCT_TRY(oct_fft_init(&f, a, length, false, false));
    if (!(line = oct_args_scratch(a, (size_t)length, sizeof(*line)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < t->dim[0] * frames; i++) {
        const double *from = x + (i / frames * t->dim[1] + i % frames * step) * parts;

        for (int64_t k = 0; k < length; k++) {
            const double s = window ? window[k] : 1;

            line[k].re = from[k * parts] * s;
            line[k].im = parts == 2 ? from[k * parts + 1] * s : 0;
        }
        oct_fft_run(&f, line);
        oct_store_f64(y->type.dtype, y->data, i * bins * 2, bins * 2, &line[0].re);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {[ONESIDED] = {"onesided", OCT_ATTR_INT, .def.i = 1}, {0}};

const oct_op oct_op_stft = {
    .name = "STFT",
    .since = 17,
    .min_in = 2,
    .max_in = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
