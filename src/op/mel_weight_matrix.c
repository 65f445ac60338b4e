/* SPDX-License-Identifier: Apache-2.0 */
/* MelWeightMatrix: triangles, evenly spaced on the mel scale, over the bins of a spectrum. */
#include <math.h>

#include "op/work.h"

enum { OUTPUT_DATATYPE };
enum { N_MEL, DFT_LENGTH, SAMPLE_RATE, LOW_HZ, HIGH_HZ };

static oct_status shape(const oct_infer *q)
{
    int64_t n_mel = -1, length = -1;
    oct_dtype t;
    int has_mel, has_length;

    OCT_TRY(oct_dtype_attr(q->node, oct_int(q->node, OUTPUT_DATATYPE), &t));
    for (int i = 0; i <= HIGH_HZ; i++)
        OCT_TRY(oct_infer_check(q, i, i < LOW_HZ ? OCT_SET_INT : OCT_SET_FLOAT));
    for (int i = 0; i <= HIGH_HZ; i++)
        if (q->in[i] && oct_type_is_static(q->in[i]) && oct_type_len(q->in[i]) != 1)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d is not one number", i);
    OCT_TRY(oct_infer_ints(q, N_MEL, &n_mel, 1, &has_mel));
    OCT_TRY(oct_infer_ints(q, DFT_LENGTH, &length, 1, &has_length));
    q->out[0] = oct_type_make(t, 2, (int64_t[]){-1, -1});
    if (has_mel == 1) q->out[0].dim[1] = n_mel;
    if (has_length == 1) q->out[0].dim[0] = length / 2 + 1;
    if ((has_mel == 1 && n_mel < 0) || (has_length == 1 && length < 0))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "a size is negative");
    return OCT_OK;
}

static double to_mel(double hz)
{
    return 2595 * log10(1 + hz / 700);
}

/* The bin that edge i of the triangles lies in, kept inside the matrix. */
static int64_t edge_bin(const oct_args *a, int64_t i, int64_t n_mel, int64_t n_bins)
{
    const double low = to_mel(oct_tensor_get_f64(a->in[LOW_HZ], 0));
    const double high = to_mel(oct_tensor_get_f64(a->in[HIGH_HZ], 0));
    const double length = oct_tensor_get_f64(a->in[DFT_LENGTH], 0);
    const double rate = oct_tensor_get_f64(a->in[SAMPLE_RATE], 0);
    const double mel = low + (double)i * (high - low) / (double)(n_mel + 2);
    const double bin = floor((length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate);

    if (!(bin > 0)) return 0;
    return bin < (double)n_bins ? (int64_t)bin : n_bins;
}

static double triangle(int64_t j, int64_t low, int64_t mid, int64_t high)
{
    if (j >= mid && j < high) return (double)(high - j) / (double)(high - mid);
    if (j == mid && low == mid) return 1;
    return j >= low && j <= mid ? (double)(j - low) / (double)(mid - low) : 0;
}

static oct_status ref(const oct_args *a)
{
    oct_tensor *y = a->out[0];
    const int64_t n_bins = y->type.dim[0], n_mel = y->type.dim[1];

    OCT_TRY(oct_args_check(a));
    for (int64_t i = 0; i < n_mel; i++) {
        const int64_t low = edge_bin(a, i, n_mel, n_bins), mid = edge_bin(a, i + 1, n_mel, n_bins);
        const int64_t high = edge_bin(a, i + 2, n_mel, n_bins);

        for (int64_t j = 0; j < n_bins; j++) {
            const double v = triangle(j, low, mid, high);

            oct_store_f64(y->type.dtype, y->data, j * n_mel + i, 1, &v);
        }
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [OUTPUT_DATATYPE] = {"output_datatype", OCT_ATTR_INT, .def.i = OCT_DTYPE_F32}, {0}};

const oct_op oct_op_mel_weight_matrix = {
    .name = "MelWeightMatrix",
    .since = 17,
    .min_in = 5,
    .max_in = 5,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
