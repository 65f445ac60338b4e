/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a convolution in the order in which the integer loops read them. */
#include <string.h>

#include "exec/simd/int8/int8_winograd.h"

#define ALIGN 64
#define PATCH_BYTES                                                                                \
    24576                    /* copied input: with weights and accumulators it should stay in the  \
                              * cache */
#define CHUNK_PIXELS 48      /* of input that is prepared together */
#define GROUP_BYTES  393216  /* weights that should stay in the second-level cache */
#define CHUNK_MACS   1200000 /* work that is worth a thread */
#define SEGMENT      240     /* pixels of an image that needs no rows (1x1) */
#define SCRATCH_STEP 393216  /* bytes between the data of two threads, to avoid false sharing */

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Takes the next part of a block of memory. */
static void *take(uint8_t **memory, size_t size)
{
    void *p = *memory;

    *memory += align_up(size);
    return p;
}

static int64_t blocks_of(const oct_int8 *set, int64_t c_out)
{
    const int64_t n_vec = oct_ceil_div(c_out, set->width);

    /* pairs of vectors; an odd one out makes three where there are registers for it */
    if (set->max_vec >= 3 && n_vec > 1) return n_vec / 2;
    return oct_ceil_div(n_vec, OCT_MIN(set->max_vec, 2));
}

/* Quads of weights of a filter. */
static int64_t quads_of(const oct_int8_conv *c)
{
    return c->depthwise ? c->kernel[1] * oct_ceil_div(c->kernel[0], 4)
                        : c->kernel[0] * oct_ceil_div(c->kernel[1] * c->c_in, 4);
}

/* Bytes of packed weights of a vector of channels. */
static int64_t vector_bytes(const oct_int8 *set, const oct_int8_conv *c)
{
    return quads_of(c) * set->width * set->quad_bytes;
}

size_t oct_int8_conv_size(const oct_int8 *set, const oct_int8_conv *c)
{
    const double macs = (double)c->kernel[0] * (double)c->kernel[1] * (double)c->c_in *
                        (double)(c->depthwise ? 1 : c->c_out);
    const double reach = (double)(c->kernel[1] - 1) * (double)c->dilation[1] +
                         (double)OCT_INT8_DW_PIXELS * (double)c->stride[1];
    size_t size = 0, packed;

    if (!(macs < 1e12) || (c->depthwise && !(reach * (double)c->kernel[0] < 1e6))) return 0;
    if (!c->depthwise) size += align_up((size_t)blocks_of(set, c->c_out) * sizeof(oct_int8_block));
    packed = (size_t)(oct_ceil_div(c->c_out, set->width) * vector_bytes(set, c));
    if (oct_int8_winograd_pays(set, c)) packed = OCT_MAX(packed, oct_int8_winograd_size(set, c));
    size += align_up(packed);
    if (!c->depthwise) size += 2 * align_up((size_t)quads_of(c) * sizeof(int32_t));
    size += 2 * align_up((size_t)oct_int8_padded(c->c_out) * sizeof(int32_t));
    return size + align_up((size_t)oct_int8_padded(c->c_in));
}

/* Four weights of lane `i`: bytes 0 to 3, or pairs (0, 2) and (1, 3) of 16 bits. */
static void put_quad(const oct_int8 *set, int8_t *vector, int64_t i, const int8_t q[4])
{
    int16_t pair[2];

    if (set->quad_bytes == 4) {
        memcpy(vector + i * 4, q, 4);
        return;
    }
    for (int half = 0; half < 2; half++) {
        pair[0] = q[half];
        pair[1] = q[half + 2];
        memcpy(vector + (half * set->width + i) * 4, pair, sizeof(pair));
    }
}

/* Blocks of nearly the same number of vectors; their weights follow. */
static void cut_blocks(const oct_int8 *set, oct_int8_conv *c)
{
    const int64_t n_vec = oct_ceil_div(c->c_out, set->width);

    for (int32_t b = 0; b < c->n_blocks; b++) {
        const int64_t v0 = n_vec * b / c->n_blocks, vecs = n_vec * (b + 1) / c->n_blocks - v0;
        const int64_t first = v0 * set->width, n = OCT_MIN(vecs * set->width, c->c_out - first);

        c->blocks[b] = (oct_int8_block){.n_vec = (int)vecs, .first = first, .n = n};
    }
}

static void pack_blocks(const oct_int8 *set, const oct_int8_weights *w, int8_t *to,
                        oct_int8_conv *c)
{
    const int64_t rows = c->gather ? 1 : c->kernel[0], run_pad = c->k_pad / rows;
    const int64_t run = c->kernel[0] * c->kernel[1] * c->c_in / rows;

    for (oct_int8_block *b = c->blocks; b < c->blocks + c->n_blocks; b++) {
        b->w = to;
        for (int64_t q = 0; q < c->k_pad; q += 4)
            for (int64_t v = 0; v < b->n_vec; v++, to += set->width * set->quad_bytes)
                for (int64_t i = 0; i < set->width && v * set->width + i < b->n; i++) {
                    const int8_t *from = w->w + (b->first + v * set->width + i) * w->o;
                    int8_t quad[4] = {0};

                    for (int64_t j = q; j < q + 4; j++) {
                        const int64_t at = j / run_pad * run + j % run_pad;

                        if (j % run_pad < run)
                            quad[j - q] = from[at % c->c_in * w->c + at / c->c_in * w->t];
                    }
                    put_quad(set, to, i, quad);
                }
    }
}

static void pack_depthwise(const oct_int8 *set, const oct_int8_weights *w, int8_t *to,
                           oct_int8_conv *c)
{
    c->dw_w = to;
    for (int64_t v = 0; v < c->c_out; v += set->width)
        for (int64_t kx = 0; kx < c->kernel[1]; kx++)
            for (int64_t ky = 0; ky < c->kernel[0]; ky += 4) {
                for (int64_t i = 0; i < set->width && v + i < c->c_out; i++) {
                    int8_t quad[4] = {0};

                    for (int64_t j = ky; j < OCT_MIN(ky + 4, c->kernel[0]); j++)
                        quad[j - ky] = w->w[(v + i) * w->o + (j * c->kernel[1] + kx) * w->t];
                    put_quad(set, to, i, quad);
                }
                to += set->width * set->quad_bytes;
            }
}

/* base = bias - sum of weight * zero point; wraps around like the accumulators themselves. */
static void fill_base(const oct_int8_weights *w, const oct_int8_conv *c, int32_t *base,
                      int32_t *sum)
{
    const int64_t taps = c->kernel[0] * c->kernel[1], per_filter = c->depthwise ? 1 : c->c_in;

    for (int64_t o = 0; o < c->c_out; o++) {
        uint32_t total = 0, share = 0;

        for (int64_t i = 0; i < per_filter; i++) {
            const int64_t channel = c->depthwise ? o : i;
            const int32_t zero = w->x_zero ? w->x_zero[w->n_zero > 1 ? channel : 0] : 0;
            int64_t part = 0;

            for (int64_t t = 0; t < taps; t++)
                part += w->w[o * w->o + i * w->c + t * w->t];
            total += (uint32_t)part;
            share += (uint32_t)(part * zero);
        }
        base[o] = (int32_t)((w->bias ? (uint32_t)w->bias[o] : 0) - share);
        sum[o] = (int32_t)total;
    }
}

/* Number of blocks whose weights stay in the cache. */
static int32_t blocks_together(const oct_int8 *set, const oct_int8_conv *c)
{
    const int64_t fit = GROUP_BYTES / OCT_MAX(vector_bytes(set, c) * 2, 1);

    return (int32_t)OCT_MIN(OCT_MAX(fit, 1), c->n_blocks);
}

/* How the work is split: rows, parts of rows, groups of blocks. */
static void share_out(const oct_int8 *set, oct_int8_conv *c)
{
    const bool pointwise = c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 &&
                           c->stride[1] == 1 && !c->pad[0] && !c->pad[1] && c->out_h == c->in_h &&
                           c->out_w == c->in_w && !c->depthwise;
    int64_t macs;

    if (pointwise) { /* all pixels are one long row; those of all images if they are contiguous */
        const int64_t size = c->in_h * c->in_w;
        const bool one = c->in_step == size * c->in_pitch && c->out_step == size * c->out_pitch &&
                         c->residual_step == size * c->residual_pitch;

        c->in_w = c->out_w = one ? c->batch * size : size;
        c->in_h = c->out_h = 1;
        if (one) c->batch = 1;
    }
    c->rows = c->out_h;
    c->segment = pointwise ? SEGMENT : c->out_w;
    c->group_size = c->depthwise ? 1 : blocks_together(set, c);
    c->groups = c->depthwise ? 1 : oct_ceil_div(c->n_blocks, c->group_size);
    macs = c->kernel[0] * c->kernel[1] * OCT_MIN(c->segment, c->out_w) * c->c_out / c->groups *
           (c->depthwise ? 8 : c->c_in + 16); /* the epilogue is work, too */
    c->grain = OCT_MAX(1, CHUNK_MACS / OCT_MAX(macs, 1));
}

/* Scratch memory of a thread, and how many pixels fit in it. */
static void size_scratch(oct_int8_conv *c)
{
    const int64_t reach = (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t rows = c->depthwise ? oct_ceil_div(c->kernel[0], 4) * 4 : c->kernel[0];
    const int64_t channels = c->depthwise ? 64 : c->c_in;

    for (c->chunk = c->depthwise ? OCT_INT8_DW_PIXELS : CHUNK_PIXELS;; c->chunk /= 2) {
        const int64_t columns = (c->chunk - 1) * c->stride[1] + reach;
        const int64_t size = c->gather ? c->chunk * c->k_pad : rows * columns * channels;

        c->scratch_size = align_up((size_t)size + 64);
        c->patch_row = columns * c->c_in;
        if (size <= PATCH_BYTES || c->chunk <= (c->depthwise ? 4 : 12)) break;
    }
}

/* Are taps or pixels so far apart that the bytes between them are not worth copying? */
static bool spreads(const oct_int8_conv *c)
{
    const double columns = (double)(c->kernel[1] - 1) * (double)c->dilation[1] +
                           (double)CHUNK_PIXELS * (double)c->stride[1];

    if ((double)c->kernel[0] * (double)c->dilation[0] * (double)c->in_w * (double)c->in_pitch > 2e9)
        return true;
    return columns * (double)c->kernel[0] * (double)c->c_in > 4e6;
}

/* Is each row of taps one contiguous run, or made of whole quads? Codes after a run meet zero
 * weights. */
static bool has_runs(const oct_int8_conv *c)
{
    return c->c_in % 4 == 0 || c->kernel[1] == 1 || (c->in_pitch == c->c_in && c->dilation[1] == 1);
}

/* Offsets of the quads of taps: in the image, and in the copied input. */
static void place_quads(oct_int8_conv *c, int32_t *in, int32_t *patch)
{
    const int64_t rows = c->gather ? 1 : c->kernel[0], run = c->k_pad / rows;

    for (int64_t q = 0; q < c->k_pad / 4; q++) {
        const int64_t y = q * 4 / run, at = q * 4 % run;
        /* neighbouring taps may be apart: then they are whole quads */
        const int64_t x = c->c_in % 4 == 0 ? at / c->c_in : 0, i = at - x * c->c_in;

        patch[q] =
            (int32_t)(c->gather ? q * 4 : y * c->patch_row + x * c->dilation[1] * c->c_in + i);
        in[q] =
            (int32_t)(c->gather
                          ? 0
                          : (y * c->dilation[0] * c->in_w + x * c->dilation[1]) * c->in_pitch + i);
    }
    c->quads = in;
    c->quads_patch = patch;
}

void oct_int8_conv_pack(const oct_int8 *set, const oct_int8_weights *w, void *memory,
                        oct_int8_conv *c)
{
    const int64_t taps = c->kernel[0] * c->kernel[1], k = taps * c->c_in;
    uint8_t *at = memory, *pad;
    int32_t *base, *sum;
    int8_t *packed;

    memset(memory, 0, oct_int8_conv_size(set, c));
    c->set = set;
    c->gather = !c->depthwise && (spreads(c) || !has_runs(c));
    c->k_pad = c->gather ? oct_ceil_div(k, 4) * 4
                         : oct_ceil_div(c->c_in * c->kernel[1], 4) * 4 * c->kernel[0];
    c->n_blocks = c->depthwise ? 0 : (int32_t)blocks_of(set, c->c_out);
    c->blocks = c->depthwise ? NULL : take(&at, (size_t)c->n_blocks * sizeof(oct_int8_block));
    cut_blocks(set, c);
    base = take(&at, (size_t)oct_int8_padded(c->c_out) * sizeof(int32_t));
    sum = take(&at, (size_t)oct_int8_padded(c->c_out) * sizeof(int32_t));
    pad = take(&at, (size_t)oct_int8_padded(c->c_in));
    size_scratch(c);
    if (!c->depthwise) {
        int32_t *in = take(&at, (size_t)quads_of(c) * sizeof(int32_t));

        place_quads(c, in, take(&at, (size_t)quads_of(c) * sizeof(int32_t)));
    }
    fill_base(w, c, base, sum);
    c->base = base;
    c->sum = sum;
    packed = (int8_t *)at;
    if (c->depthwise)
        pack_depthwise(set, w, packed, c);
    else if (!oct_int8_winograd_pays(set, c) || !oct_int8_winograd_pack(set, w, packed, c))
        pack_blocks(set, w, packed, c);
    for (int64_t i = 0; i < c->c_in; i++)
        pad[i] = (uint8_t)(w->x_zero ? w->x_zero[w->n_zero > 1 ? i : 0] : 0);
    c->pad_pixel = pad;
    /* the same for most layers, so that a thread finds it in its own cache */
    c->scratch_size = OCT_MAX(c->scratch_size, SCRATCH_STEP);
    share_out(set, c);
}
