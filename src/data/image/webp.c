/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebP through libwebp; nothing else includes it. Transparency is dropped (not blended), as for
 * PNG. An animation is refused: it is not clear which picture is meant.
 */
#include <string.h>

#include <webp/decode.h>

#include "data/image/image.h"

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The file is a RIFF: chunks of a name, a size and data of even length. */
static int orientation_of(oct_bytes file)
{
    size_t at = 12;

    while (file.size > at && file.size - at >= 8) {
        const uint8_t *chunk = file.data + at;
        const size_t size = get32(chunk + 4), left = file.size - at - 8;

        if (size > left) return 1;
        if (!memcmp(chunk, "EXIF", 4)) { /* some writers put JPEG's header before it */
            const size_t skip = size >= 6 && !memcmp(chunk + 8, "Exif\0", 6) ? 6 : 0;

            return oct_exif_orientation((oct_bytes){chunk + 8 + skip, size - skip});
        }
        if (left - size < size % 2) return 1;
        at += 8 + size + size % 2;
    }
    return 1;
}

static const char *reason(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the file ends too early";
    case VP8_STATUS_OUT_OF_MEMORY:
        return "out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "a feature that is not known";
    default:
        return "its data make no sense";
    }
}

static oct_status read_header(oct_ctx *ctx, oct_bytes file, WebPBitstreamFeatures *f)
{
    const VP8StatusCode code = WebPGetFeatures(file.data, file.size, f);

    if (code != VP8_STATUS_OK)
        return oct_fail(ctx, OCT_ERR_FORMAT, "broken WebP: %s", reason(code));
    if (f->has_animation)
        return oct_fail(ctx, OCT_ERR_FORMAT, "WebP: an animation; give one of its pictures");
    return OCT_OK;
}

static oct_status size(oct_ctx *ctx, oct_bytes file, oct_image_header *out)
{
    WebPBitstreamFeatures f;

    OCT_TRY(read_header(ctx, file, &f));
    *out = (oct_image_header){f.width, f.height, orientation_of(file)};
    return OCT_OK;
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation)
{
    WebPDecoderConfig config;
    oct_image *im = NULL;
    VP8StatusCode code;

    if (!WebPInitDecoderConfig(&config))
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "WebP: another version of its library");
    OCT_TRY(read_header(ctx, file, &config.input));
    OCT_TRY(oct_image_make(ctx, config.input.width, config.input.height, max_pixels, &im));
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = im->rgb;
    config.output.u.RGBA.stride = 3 * im->width;
    config.output.u.RGBA.size = (size_t)im->width * (size_t)im->height * 3;
    code = WebPDecode(file.data, file.size, &config);
    WebPFreeDecBuffer(&config.output);
    if (code != VP8_STATUS_OK) {
        oct_image_free(im);
        return oct_fail(ctx, code == VP8_STATUS_OUT_OF_MEMORY ? OCT_ERR_MEMORY : OCT_ERR_FORMAT,
                        "broken WebP: %s", reason(code));
    }
    *orientation = orientation_of(file);
    *out = im;
    return OCT_OK;
}

static bool knows(oct_bytes file)
{
    return file.size >= 12 && !memcmp(file.data, "RIFF", 4) && !memcmp(file.data + 8, "WEBP", 4);
}

const oct_codec oct_codec_webp = {"WebP", " .webp ", knows, size, decode, NULL};
