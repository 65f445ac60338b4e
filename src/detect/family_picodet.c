/* SPDX-License-Identifier: Apache-2.0 */
/* PicoDet: scores and distance distributions for four feature maps. */
#include "detect/attach.h"

/* NanoDet has the same outputs for three feature maps: the number tells them apart. */
static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    OCT_TRY(oct_match_levels(net, r));
    if (r->levels.n) *sure = r->levels.n == 4 ? OCT_SURE_YES : OCT_SURE_ASKED;
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

    (void)r;
    p->fit = OCT_FIT_STRETCH;
    for (int c = 0; c < 3; c++) {
        p->mean[c] = mean[c];
        p->std[c] = std[c];
    }
}

static oct_status decode(oct_decoding *d)
{
    return oct_decode_levels(d, 0); /* centre (x + 0.5) * s */
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    return oct_attach_levels(b, r, 0, out);
}

const oct_family oct_family_picodet = {
    .name = "picodet",
    .help = "for each of 4 strides: [n, cells, classes] scores, [n, cells, 4 * bins] distances",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
