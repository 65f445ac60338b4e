/* SPDX-License-Identifier: Apache-2.0 */
/* NanoDet: scores and distance distributions for three feature maps. */
#include "detect/attach.h"

/* PicoDet has the same outputs for four feature maps: the number tells them apart. */
static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    OCT_TRY(oct_match_levels(net, r));
    if (r->levels.n) *sure = r->levels.n == 3 ? OCT_SURE_YES : OCT_SURE_ASKED;
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    static const float mean[3] = {103.53f, 116.28f, 123.675f}, std[3] = {57.375f, 57.12f, 58.395f};

    (void)r;
    p->fit = OCT_FIT_STRETCH;
    p->color = OCT_COLOR_BGR;
    p->scale = 1;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = mean[c];
        p->std[c] = std[c];
    }
}

static oct_status decode(oct_decoding *d)
{
    return oct_decode_levels(d, -0.5f); /* centre x * s + (s - 1) / 2 */
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    return oct_attach_levels(b, r, -0.5f, out);
}

const oct_family oct_family_nanodet = {
    .name = "nanodet",
    .help = "for each of 3 strides: [n, cells, classes] scores, [n, cells, 4 * bins] distances",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
