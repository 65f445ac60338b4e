/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG through libjpeg-turbo's libjpeg interface; nothing else sees it. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "data/image/image.h"

#define QUALITY   92
#define MAX_SCANS 500 /* a progressive file can ask for endless work */

/* State of a decoder or an encoder, with the jump buffer for the library's errors. */
typedef struct session {
    struct jpeg_error_mgr errors; /* first: the library hands back a pointer to it */
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    jmp_buf on_error;
    char text[JMSG_LENGTH_MAX];
    oct_image *im;
    uint8_t *cmyk; /* one row */
    unsigned char *encoded;
    unsigned long encoded_size;
} session;

static void leave(j_common_ptr c)
{
    session *s = (session *)(void *)c->err;

    c->err->format_message(c, s->text);
    longjmp(s->on_error, 1);
}

/*
 * Stray bytes between segments are common in real files and harmless; data that stops inside a
 * scan is not: the rest of the picture would be grey.
 */
static void see_warning(j_common_ptr c, int level)
{
    if (level >= 0) return;
    if (c->err->msg_code == JWRN_HIT_MARKER || c->err->msg_code == JWRN_JPEG_EOF) leave(c);
    c->err->num_warnings++;
}

static void print_nothing(j_common_ptr c)
{
    (void)c;
}

static void count_scans(j_common_ptr c)
{
    session *s = (session *)(void *)c->err;

    if (!c->is_decompressor || s->in.input_scan_number <= MAX_SCANS) return;
    snprintf(s->text, sizeof(s->text), "more than %d scans", MAX_SCANS);
    longjmp(s->on_error, 1);
}

static void init_source(j_decompress_ptr d)
{
    (void)d;
}

/* The whole file is in memory: a request for more data means that it is truncated. */
static boolean fill_source(j_decompress_ptr d)
{
    session *s = (session *)(void *)d->err;

    snprintf(s->text, sizeof(s->text), "the file ends too early");
    longjmp(s->on_error, 1);
}

static void skip_source(j_decompress_ptr d, long n)
{
    if (n <= 0) return;
    if ((unsigned long)n > d->src->bytes_in_buffer) (void)fill_source(d);
    d->src->next_input_byte += n;
    d->src->bytes_in_buffer -= (size_t)n;
}

static session *new_session(oct_ctx *ctx)
{
    session *s = oct_calloc(ctx, 1, sizeof(*s));

    if (!s) return NULL;
    jpeg_std_error(&s->errors);
    s->errors.error_exit = leave;
    s->errors.emit_message = see_warning;
    s->errors.output_message = print_nothing;
    s->progress.progress_monitor = count_scans;
    s->source.init_source = init_source;
    s->source.fill_input_buffer = fill_source;
    s->source.skip_input_data = skip_source;
    s->source.resync_to_restart = jpeg_resync_to_restart;
    s->source.term_source = init_source;
    s->in.err = &s->errors;
    s->out.err = &s->errors;
    return s;
}

static void free_session(oct_ctx *ctx, session *s)
{
    jpeg_destroy_decompress(&s->in); /* harmless on one that was never made */
    jpeg_destroy_compress(&s->out);
    free(s->encoded); /* the library's, from malloc */
    oct_free(ctx, s->cmyk);
    oct_image_free(s->im);
    oct_free(ctx, s);
}

static void read_header(session *s, oct_bytes file)
{
    jpeg_create_decompress(&s->in);
    s->in.progress = &s->progress;
    s->in.src = &s->source;
    s->source.next_input_byte = file.data;
    s->source.bytes_in_buffer = file.size;
    jpeg_save_markers(&s->in, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&s->in, TRUE);
}

static int orientation_of(const session *s)
{
    for (jpeg_saved_marker_ptr m = s->in.marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && !memcmp(m->data, "Exif\0", 6))
            return oct_exif_orientation((oct_bytes){m->data + 6, m->data_length - 6});
    }
    return 1;
}

/* CMYK files are stored inverted, as Adobe does; all readers assume it. */
static void from_cmyk(const uint8_t *cmyk, uint8_t *rgb, int32_t n)
{
    for (int32_t i = 0; i < n; i++, cmyk += 4, rgb += 3) {
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)((cmyk[c] * cmyk[3] + 127) / 255);
    }
}

static void read_rows(session *s)
{
    const size_t pitch = (size_t)s->im->width * 3;

    while (s->in.output_scanline < s->in.output_height) {
        uint8_t *dst = s->im->rgb + s->in.output_scanline * pitch;
        JSAMPROW row = s->cmyk ? s->cmyk : dst;

        jpeg_read_scanlines(&s->in, &row, 1);
        if (s->cmyk) from_cmyk(row, dst, s->im->width);
    }
}

/* Everything that may longjmp. What it allocates is kept in the session, so nothing leaks. */
static oct_status decode_inside(oct_ctx *ctx, session *s, oct_bytes file, int64_t max_pixels)
{
    if (setjmp(s->on_error)) return oct_fail(ctx, OCT_ERR_FORMAT, "broken JPEG: %s", s->text);
    read_header(s, file);
    OCT_TRY(oct_image_make(ctx, s->in.image_width, s->in.image_height, max_pixels, &s->im));
    if (s->in.num_components == 4) {
        s->cmyk = oct_alloc(ctx, (size_t)s->im->width * 4);
        if (!s->cmyk) return OCT_ERR_MEMORY;
        s->in.out_color_space = JCS_CMYK;
    } else {
        s->in.out_color_space = JCS_RGB;
    }
    s->in.dct_method = JDCT_ISLOW; /* what Pillow and OpenCV use */
    jpeg_start_decompress(&s->in);
    read_rows(s);
    return OCT_OK; /* what follows the last row does not matter */
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation)
{
    session *s = new_session(ctx);
    oct_status st;

    if (!s) return OCT_ERR_MEMORY;
    st = decode_inside(ctx, s, file, max_pixels);
    if (!st) {
        *orientation = orientation_of(s);
        *out = s->im;
        s->im = NULL;
    }
    free_session(ctx, s);
    return st;
}

static oct_status size_inside(oct_ctx *ctx, session *s, oct_bytes file)
{
    if (setjmp(s->on_error)) return oct_fail(ctx, OCT_ERR_FORMAT, "broken JPEG: %s", s->text);
    read_header(s, file);
    return OCT_OK;
}

static oct_status size(oct_ctx *ctx, oct_bytes file, oct_image_header *out)
{
    session *s = new_session(ctx);
    oct_status st;

    if (!s) return OCT_ERR_MEMORY;
    st = size_inside(ctx, s, file);
    if (!st) {
        out->width = (int32_t)s->in.image_width;
        out->height = (int32_t)s->in.image_height;
        out->orientation = orientation_of(s);
    }
    free_session(ctx, s);
    return st;
}

static oct_status encode_inside(oct_ctx *ctx, session *s, const oct_image *im)
{
    if (setjmp(s->on_error)) return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "JPEG: %s", s->text);
    jpeg_create_compress(&s->out);
    jpeg_mem_dest(&s->out, &s->encoded, &s->encoded_size);
    s->out.image_width = (JDIMENSION)im->width;
    s->out.image_height = (JDIMENSION)im->height;
    s->out.input_components = 3;
    s->out.in_color_space = JCS_RGB;
    jpeg_set_defaults(&s->out);
    jpeg_set_quality(&s->out, QUALITY, TRUE);
    s->out.dct_method = JDCT_ISLOW; /* whole numbers: the same bytes everywhere */
    /* Colour as sharp as brightness: thin coloured lines are drawn on these pictures. */
    s->out.comp_info[0].h_samp_factor = s->out.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&s->out, TRUE);
    jpeg_write_marker(&s->out, JPEG_COM, (const JOCTET *)OCT_IMAGE_MADE_BY,
                      (unsigned)strlen(OCT_IMAGE_MADE_BY));
    while (s->out.next_scanline < s->out.image_height) {
        /* The library does not write to its rows; its interface lacks the const. */
        JSAMPROW row = (JSAMPROW)im->rgb + (size_t)s->out.next_scanline * (size_t)im->width * 3;

        jpeg_write_scanlines(&s->out, &row, 1);
    }
    jpeg_finish_compress(&s->out);
    return OCT_OK;
}

static oct_status encode(oct_ctx *ctx, const oct_image *im, oct_writer *w)
{
    session *s = new_session(ctx);
    oct_status st;

    if (!s) return OCT_ERR_MEMORY;
    st = encode_inside(ctx, s, im);
    if (!st) st = oct_writer_put(w, s->encoded, s->encoded_size);
    free_session(ctx, s);
    return st;
}

static bool knows(oct_bytes file)
{
    return file.size >= 3 && !memcmp(file.data, "\xff\xd8\xff", 3);
}

const oct_codec oct_codec_jpeg = {"JPEG", " .jpg .jpeg .jpe ", knows, size, decode, encode};
