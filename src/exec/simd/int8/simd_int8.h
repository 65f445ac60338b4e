/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner loops on 8-bit codes: u8 activations, s8 weights, s32 accumulators. Like the f32 loops they
 * are compiled once for each instruction set from the same source. All sets give the same
 * accumulators, and the same codes after no activation, Relu, Clip, LeakyRelu, Swish, HardSwish and
 * Sigmoid; after others a tie in rounding may be rounded the other way. (The reference set works on
 * one element at a time, with the C library's functions.)
 *
 * A value is scale * (code - zero). Activations are NHWC with any pitch (elements from pixel to
 * pixel). Scales are finite and above zero, zero points are in 0..255: the caller checks.
 *
 * Use: fill an oct_int8_conv with the geometry and an oct_int8_epilogue_spec with the epilogue, ask
 * for the sizes, pack both into memory that lives as long as they do, then run.
 */
#ifndef OCT_EXEC_SIMD_INT8_SIMD_INT8_H
#define OCT_EXEC_SIMD_INT8_SIMD_INT8_H

#include "op/act.h"

/* Quantization parameters of a tensor: one for all channels (n = 1) or one for each. */
typedef struct oct_int8_codes {
    int64_t n;
    const float *scale;
    const int32_t *zero;
    int32_t last; /* codes of fewer bits: the largest one; 0: 255 */
} oct_int8_codes;

static inline int32_t oct_int8_last(const oct_int8_codes *q)
{
    return q->last ? q->last : 255;
}

typedef enum oct_int8_type {
    OCT_INT8_NONE = 0, /* no residual */
    OCT_INT8_U8,
    OCT_INT8_F32,
    OCT_INT8_S32, /* results only: the accumulators themselves */
} oct_int8_type;

/* --- epilogue --- */

/*
 * f = act[1](act[0](scale[c] * accumulator + bias[c]) + residual), then f itself, or
 * saturate(rint(f / y.scale) + y.zero), ties to even. Without bias and residual, and with at most
 * Relu or Clip, it is saturate(rint(accumulator * (scale[c] / y.scale)) + y.zero) in exactly these
 * operations: ONNX Runtime's QLinearConv.
 */
typedef struct oct_int8_epilogue_spec {
    int64_t c;          /* channels */
    const float *scale; /* [c] */
    const float *bias;  /* [c] or NULL */
    oct_act act[2];
    oct_int8_type residual; /* NONE, U8 or F32 */
    oct_int8_codes r;       /* of a U8 residual */
    float residual_scale;   /* of an F32 residual */
    oct_int8_type out;      /* U8, F32 or S32 */
    oct_int8_codes y;       /* of a U8 result */
} oct_int8_epilogue_spec;

/* Short forms of the epilogue, only without residual and to U8: the scale is divided by the
 * result's. */
typedef enum oct_int8_way {
    OCT_INT8_GENERAL,    /* general form */
    OCT_INT8_DIRECT,     /* linear; the limits of Relu and Clip are in low, high */
    OCT_INT8_LEAKY,      /* LeakyRelu */
    OCT_INT8_SWISH,      /* Swish */
    OCT_INT8_HARD_SWISH, /* HardSwish */
} oct_int8_way;

/* Packed; each array has oct_int8_padded(c) entries. */
typedef struct oct_int8_epilogue {
    oct_int8_way way;
    oct_int8_type out, residual;
    oct_act act[2];
    const float *scale, *bias;
    bool no_overflow;   /* short forms only: scaled results fit int32, so the clamp before
                         * rounding is skipped */
    const float *slope; /* of the accumulator in the inner function: power of 2, line of
                         * HardSwish */
    const float *limit; /* of the accumulator: beyond it the exponent has no effect */
    const float *r_scale, *r_zero; /* F32: residual_scale, 0 */
    const float *inv;              /* 1 / y.scale; 1 / scale where Swish has a short form */
    const float *low, *high;       /* limits of the result above its zero point */
    const int32_t *zero;
} oct_int8_epilogue;

static inline int64_t oct_int8_padded(int64_t c)
{
    return (c + 63) / 64 * 64;
}

/* Rows of accumulators of channels [first, first + n), and where their results go. */
typedef struct oct_int8_rows {
    int32_t *sum;      /* overwritten */
    int64_t acc_pitch; /* whole vectors */
    int64_t first, n;
    int64_t count; /* rows */
    void *y;       /* of channel `first` */
    int64_t y_pitch;
    const void *residual; /* of channel `first`; NULL unless the epilogue has one */
    int64_t residual_pitch;
} oct_int8_rows;

/* Bytes of memory (64-byte aligned) that packing fills. */
size_t oct_int8_epilogue_size(int64_t c);
void oct_int8_epilogue_pack(const oct_int8_epilogue_spec *s, void *memory, oct_int8_epilogue *f);

/* --- convolution and matrix product --- */

/* Weights in the file's order: elements from filter to filter, channel to channel, tap to tap. */
typedef struct oct_int8_weights {
    const int8_t *w;
    int64_t o, c, t;       /* OIHW: c_in * taps, taps, 1; a matrix [k][n]: 1, n, 0 */
    const int32_t *x_zero; /* of the input's channels */
    int64_t n_zero;        /* 1 or c_in */
    const int32_t *bias;   /* [c_out], in accumulator units; or NULL */
} oct_int8_weights;

/* Output channels that one pass over the input computes. */
typedef struct oct_int8_block {
    int n_vec;       /* vectors of channels */
    int64_t first;   /* first output channel */
    int64_t n;       /* output channels; the last vector may be partly used */
    const int8_t *w; /* packed; the order is the instruction set's */
} oct_int8_block;

#define OCT_INT8_DW_PIXELS 32 /* pixels of a depthwise convolution that are computed together */

typedef struct oct_int8 oct_int8;

/*
 * A dense convolution of one group, or a depthwise one (c_in == c_out, one filter each). Fill the
 * first part; packing fills the rest. A matrix product x[m][k] w[k][n] is an image of m pixels in
 * one row with k channels, kernel 1x1.
 */
typedef struct oct_int8_conv {
    bool depthwise;
    int64_t batch, c_in, c_out;
    int64_t in_h, in_w, in_pitch;
    int64_t out_h, out_w, out_pitch, residual_pitch;   /* of the result's and residual's type */
    int64_t in_step, out_step, residual_step;          /* elements from image to image */
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* y, x; padding before the image */

    const oct_int8 *set;
    int64_t k_pad; /* length of the reduction, rounded up to whole quads */
    bool gather;   /* taps are copied side by side first (im2col): few channels or odd numbers of
                    * them */
    oct_int8_block *blocks;
    int32_t n_blocks;
    const int32_t *base;      /* [padded c_out]: bias less the zero-point terms */
    const int32_t *sum;       /* [padded c_out]: sum of all weights of a filter, for run-time zero
                               * points */
    const uint8_t *pad_pixel; /* [padded c_in]: the zero points */
    const int8_t *dw_w;       /* depthwise: packed */
    bool winograd;            /* 3x3 by tiles: see int8_winograd.h */
    bool base_fits;           /* 64 times an accumulator fits with its base, too */
    int64_t tiles[2];         /* of 4x4 results: y, x */
    size_t scratch_size;      /* bytes one thread needs */
    int64_t chunk;            /* pixels whose input is prepared or copied together */
    int64_t patch_row;        /* bytes of a row of copied input */
    const int32_t *quads, *quads_patch; /* [k_pad / 4]: offsets of the taps from a pixel's first */
    /* how the work is split */
    int64_t rows, groups, grain;
    int64_t segment; /* pixels of a row that are computed together, at most */
    int32_t group_size;
} oct_int8_conv;

/* Addresses of one run. */
typedef struct oct_int8_io {
    const uint8_t *x;
    const void *residual; /* NULL unless the epilogue has one */
    void *y;
    void *scratch;            /* n_threads * scratch_size bytes, 64-byte aligned */
    const int32_t *base;      /* instead of the packed ones, if not NULL: zero points that are */
    const uint8_t *pad_pixel; /* known only at run time */
} oct_int8_io;

/* Bytes of memory (64-byte aligned) that packing fills; 0: too large. */
size_t oct_int8_conv_size(const oct_int8 *set, const oct_int8_conv *c);
void oct_int8_conv_pack(const oct_int8 *set, const oct_int8_weights *w, void *memory,
                        oct_int8_conv *c);
void oct_int8_conv_run(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                       int n_threads);

/* --- pooling --- */

typedef struct oct_int8_pool {
    int64_t batch, c;
    int64_t in_h, in_w, in_pitch, out_h, out_w, out_pitch;
    int64_t in_step, out_step; /* elements from image to image */
    int64_t kernel[2], stride[2], dilation[2], pad[2], pad_end[2];
    bool count_pads; /* average: padding counts as zeros */
    oct_int8_codes x, y;
} oct_int8_pool;

/* rint(sum of (x - x.zero) * (x.scale / (y.scale * count))) + y.zero; also global. */
void oct_int8_average_pool(const oct_int8 *set, const oct_int8_pool *p, const uint8_t *x,
                           uint8_t *y, int n_threads);

/* --- elementwise: rows of n elements with pitches; parameters go along the row --- */

typedef enum oct_int8_op {
    OCT_INT8_ADD,
    OCT_INT8_SUB,
    OCT_INT8_MUL,
} oct_int8_op;

typedef struct oct_int8_binary_spec {
    oct_int8_op op;
    int64_t c; /* elements of a row that have parameters of their own; 1: all the same */
    oct_int8_codes a, b;
    bool swapped;   /* a is the node's second operand: matters to the last bit */
    int32_t offset; /* codes are this far above those of the file: 128 where it has signed bytes */
    oct_act act;
    oct_int8_type out; /* U8 or F32 */
    oct_int8_codes y;
} oct_int8_binary_spec;

/*
 * Packed. Without an activation (or with Relu, Clip), to U8, in ONNX Runtime's operations on
 * the file's codes: sum: rint(fma(a, a_scale, fma(b, b_scale, shift))); product: rint((a - a_zero)
 * * (b - b_zero) * a_scale + shift). Else on real values.
 */
typedef struct oct_int8_binary {
    oct_int8_op op;
    bool each, direct;
    oct_int8_type out;
    oct_act act;
    float offset;
    const float *a_scale, *b_scale, *a_zero, *b_zero, *shift;
    const float *inv, *low, *high;
    const int32_t *zero;
} oct_int8_binary;

size_t oct_int8_binary_size(int64_t c);
void oct_int8_binary_pack(const oct_int8_binary_spec *s, void *memory, oct_int8_binary *b);

/* Strides of the rows of a matrix; pitch 0: the same row is repeated. */
typedef struct oct_int8_strides {
    int64_t rows, n;
    int64_t a_pitch, b_pitch, y_pitch; /* elements */
} oct_int8_strides;

/* --- an instruction set --- */

struct oct_int8 {
    const char *name;
    int width;      /* s32 lanes of a vector */
    int quad_bytes; /* bytes of four packed weights: 4, or 8 where products have 16 bits */
    int max_vec;    /* vectors of the largest block */

    /* Output pixels [x0, x1) of row y, blocks [b0, b1); addresses are those of one image. */
    void (*dense)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                  int64_t y, int64_t x0, int64_t x1, int32_t b0, int32_t b1);
    void (*depthwise)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                      int64_t y);
    /* Tiles [first, first + n) of one image, blocks [b0, b1); NULL: there is no such loop. */
    void (*winograd)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                     int64_t first, int64_t n, int32_t b0, int32_t b1);

    void (*epilogue)(const oct_int8_epilogue *f, const oct_int8_rows *r);

    /* y = saturate(rint(x / scale) + zero); y = scale * (x - zero); the two in one. */
    void (*quantize)(const oct_int8_codes *q, const oct_int8_strides *r, const float *x,
                     uint8_t *y);
    void (*dequantize)(const oct_int8_codes *q, const oct_int8_strides *r, const uint8_t *x,
                       float *y);
    void (*requantize)(const oct_int8_codes *from, const oct_int8_codes *to,
                       const oct_int8_strides *r, const uint8_t *x, uint8_t *y);

    /* The same between f32 NCHW (channels `plane` apart) and NHWC codes (pixels `pitch` apart):
     * inputs and outputs of a network. */
    void (*quantize_nchw)(const oct_int8_codes *q, const float *x, int64_t plane, int64_t c,
                          int64_t pixels, uint8_t *y, int64_t pitch);
    void (*dequantize_nchw)(const oct_int8_codes *q, const uint8_t *x, int64_t pitch, int64_t c,
                            int64_t pixels, float *y, int64_t plane);

    /* y[i] = table[x[i]] */
    void (*lookup)(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n);
    void (*lookup_f32)(const float table[256], const uint8_t *x, float *y, int64_t n);

    /* b_step 0: one element of b for the whole row. */
    void (*binary)(const oct_int8_binary *s, const oct_int8_strides *r, const uint8_t *a,
                   const uint8_t *b, int b_step, void *y);

    /* y[i] = max(y[i], x[i]); y[i] += x[i] (first: =) */
    void (*max)(const uint8_t *x, uint8_t *y, int64_t n);
    void (*add)(const uint8_t *x, int32_t *y, int64_t n, bool first);
};

/* The best the CPU has, at most what ONEDNN_MAX_CPU_ISA allows. */
const oct_int8 *oct_int8_get(void);

/*
 * All that were compiled in and that this CPU can run, best first; NULL beyond the end. The last is
 * plain C, one element at a time: the reference that tests compare the others with.
 */
const oct_int8 *oct_int8_at(int i);

#endif
