/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit pictures to the numbers a network wants, and back to look at them. */
#include "augment/to_input.h"

#include <math.h>

void oct_to_input_init(oct_to_input *t, const oct_preprocess *p)
{
    t->p = *p;
    t->n_channels = p->color == OCT_COLOR_GRAY ? 1 : 3;
    for (int c = 0; c < t->n_channels; c++)
        for (int v = 0; v < 256; v++)
            t->value[c][v] =
                (float)((v / (double)p->scale - (double)p->mean[c]) / (double)p->std[c]);
}

size_t oct_to_input_size(const oct_to_input *t)
{
    return (size_t)t->p.width * (size_t)t->p.height * (size_t)t->n_channels;
}

/* Position in RGB of the network's channel c. */
static int source_of(const oct_to_input *t, int c)
{
    return t->p.color == OCT_COLOR_BGR ? 2 - c : c;
}

static void write_gray(const oct_to_input *t, const uint8_t *rgb, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++, rgb += 3)
        to[i] = t->value[0][(rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16];
}

void oct_to_input_run(const oct_to_input *t, const uint8_t *rgb, float *to)
{
    const size_t n = (size_t)t->p.width * (size_t)t->p.height;
    const bool last = t->p.layout == OCT_IMAGE_NHWC;

    if (t->n_channels == 1) {
        write_gray(t, rgb, to, n);
        return;
    }
    for (int c = 0; c < 3; c++) {
        const uint8_t *from = rgb + source_of(t, c);
        const float *value = t->value[c];
        const size_t step = last ? 3 : 1;
        float *at = last ? to + c : to + (size_t)c * n;

        for (size_t i = 0; i < n; i++)
            at[i * step] = value[from[3 * i]];
    }
}

static uint8_t level_of(const oct_to_input *t, int c, float v)
{
    const double level =
        ((double)v * (double)t->p.std[c] + (double)t->p.mean[c]) * (double)t->p.scale;

    return level > 0 ? (uint8_t)lrint(fmin(level, 255)) : 0; /* NaN: black */
}

void oct_to_input_back(const oct_to_input *t, const float *from, uint8_t *rgb)
{
    const size_t n = (size_t)t->p.width * (size_t)t->p.height;
    const bool last = t->p.layout == OCT_IMAGE_NHWC;

    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            const int c = t->n_channels == 1 ? 0 : source_of(t, k);
            const size_t at = last ? i * (size_t)t->n_channels + (size_t)c : (size_t)c * n + i;

            rgb[3 * i + (size_t)k] = level_of(t, c, from[at]);
        }
}
