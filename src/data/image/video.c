/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Videos through ffmpeg's libraries; nothing else includes them. The file is in memory: they open
 * nothing themselves, neither files it names nor addresses. One thread decodes and colours are
 * converted in integers, so that the same file gives the same pictures.
 */
#include "data/image/video.h"

#include <math.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>

#include "data/files.h"

#define IO_SIZE     65536
#define MAX_PIXELS  178956970 /* as for pictures */
#define MAX_FRAMES  10000000
#define MAX_STREAMS 64

struct oct_video {
    oct_ctx *ctx;
    oct_file *file;
    const char *path; /* of the file */
    int64_t at;       /* in the file */
    AVFormatContext *format;
    AVIOContext *io;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    struct SwsContext *scaler;
    int stream, orientation;
    int64_t next; /* number of the next picture */
    bool is_flushed;
};

/* --- the file in memory --- */

static int take(void *user, uint8_t *to, int n)
{
    oct_video *v = user;
    const int64_t left = (int64_t)oct_file_size(v->file) - v->at;
    const int size = (int)OCT_MIN((int64_t)n, left);

    if (size <= 0) return AVERROR_EOF;
    memcpy(to, (const uint8_t *)oct_file_data(v->file) + v->at, (size_t)size);
    v->at += size;
    return size;
}

static int64_t seek(void *user, int64_t offset, int whence)
{
    oct_video *v = user;
    const int64_t size = (int64_t)oct_file_size(v->file);

    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
        return size;
    case SEEK_SET:
        break;
    case SEEK_CUR:
        offset += v->at;
        break;
    case SEEK_END:
        offset += size;
        break;
    default:
        return AVERROR(EINVAL);
    }
    if (offset < 0 || offset > size) return AVERROR(EINVAL);
    return v->at = offset;
}

/* --- opening --- */

static oct_status failed(const oct_video *v, const char *what, int code)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";

    (void)av_strerror(code, text, sizeof(text));
    return oct_fail(v->ctx, code == AVERROR(ENOMEM) ? OCT_ERR_MEMORY : OCT_ERR_FORMAT, "%s: %s: %s",
                    v->path, what, text);
}

static oct_status no_memory(const oct_video *v)
{
    return oct_fail(v->ctx, OCT_ERR_MEMORY, "%s: no memory to read the video", v->path);
}

static oct_status open_format(oct_video *v)
{
    const char *name =
        oct_video_format((oct_bytes){oct_file_data(v->file), oct_file_size(v->file)});
    const AVInputFormat *kind = name ? av_find_input_format(name) : NULL;
    unsigned char *buffer;
    int code;

    if (!kind) return oct_fail(v->ctx, OCT_ERR_FORMAT, "%s: no video that can be read", v->path);
    if (!(buffer = av_malloc(IO_SIZE))) return no_memory(v);
    if (!(v->io = avio_alloc_context(buffer, IO_SIZE, 0, v, take, NULL, seek))) {
        av_free(buffer);
        return no_memory(v);
    }
    if (!(v->format = avformat_alloc_context())) return no_memory(v);
    v->format->pb = v->io;
    v->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    v->format->max_streams = MAX_STREAMS;
    code = avformat_open_input(&v->format, "", kind, NULL); /* frees the context if it fails */
    if (code < 0) return failed(v, "broken video", code);
    code = avformat_find_stream_info(v->format, NULL);
    return code < 0 ? failed(v, "broken video", code) : OCT_OK;
}

/* Rotation in quarter turns clockwise, as phones record it, to EXIF's numbers. */
static int orientation_of(const AVStream *s)
{
    size_t size = 0;
    const uint8_t *matrix = av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, &size);
    double angle;

    if (!matrix || size < 9 * sizeof(int32_t)) return 1;
    angle = -av_display_rotation_get((const int32_t *)(const void *)matrix);
    if (!isfinite(angle)) return 1;
    switch (((int)lround(angle / 90) % 4 + 4) % 4) {
    case 1:
        return 6;
    case 2:
        return 3;
    case 3:
        return 8;
    default:
        return 1;
    }
}

static oct_status open_codec(oct_video *v)
{
    const AVCodec *codec = NULL;
    const AVStream *s;
    int code;

    v->stream = av_find_best_stream(v->format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (v->stream < 0 || !codec)
        return oct_fail(v->ctx, OCT_ERR_FORMAT, "%s: there is no video in it that can be decoded",
                        v->path);
    s = v->format->streams[v->stream];
    if (!(v->codec = avcodec_alloc_context3(codec))) return no_memory(v);
    if ((code = avcodec_parameters_to_context(v->codec, s->codecpar)) < 0)
        return failed(v, "broken video", code);
    v->codec->thread_count = 1;
    v->codec->max_pixels = MAX_PIXELS;
    if ((code = avcodec_open2(v->codec, codec, NULL)) < 0) return failed(v, codec->name, code);
    for (unsigned i = 0; i < v->format->nb_streams; i++)
        if ((int)i != v->stream) v->format->streams[i]->discard = AVDISCARD_ALL;
    v->orientation = orientation_of(s);
    v->packet = av_packet_alloc();
    v->frame = av_frame_alloc();
    return v->packet && v->frame ? OCT_OK : no_memory(v);
}

static void close_streams(oct_video *v)
{
    sws_freeContext(v->scaler);
    av_frame_free(&v->frame);
    av_packet_free(&v->packet);
    avcodec_free_context(&v->codec);
    avformat_close_input(&v->format);
    if (v->io) av_freep(&v->io->buffer);
    avio_context_free(&v->io);
    v->scaler = NULL;
    v->at = v->next = 0;
    v->is_flushed = false;
}

static oct_status open_streams(oct_video *v)
{
    OCT_TRY(open_format(v));
    return open_codec(v);
}

oct_status oct_video_open(oct_ctx *ctx, const char *path, oct_video **out)
{
    oct_video *v = oct_calloc(ctx, 1, sizeof(*v));
    oct_status st;

    if (!v) return OCT_ERR_MEMORY;
    av_log_set_level(AV_LOG_QUIET); /* otherwise it writes to stderr */
    v->ctx = ctx;
    if ((st = oct_file_map(ctx, path, &v->file))) {
        oct_free(ctx, v);
        return st;
    }
    if (!(v->path = oct_strdup(ctx, path)))
        st = OCT_ERR_MEMORY;
    else
        st = open_streams(v);
    if (st) {
        oct_video_close(v);
        return st;
    }
    *out = v;
    return OCT_OK;
}

void oct_video_close(oct_video *v)
{
    if (!v) return;
    close_streams(v);
    oct_file_unref(v->file);
    oct_free(v->ctx, (char *)v->path);
    oct_free(v->ctx, v);
}

/* --- pictures --- */

oct_status oct_video_count(oct_video *v, int64_t *n)
{
    *n = 0;
    while (av_read_frame(v->format, v->packet) >= 0) {
        *n += v->packet->stream_index == v->stream && !(v->packet->flags & AV_PKT_FLAG_DISCARD);
        av_packet_unref(v->packet);
        if (*n > MAX_FRAMES)
            return oct_fail(v->ctx, OCT_ERR_UNSUPPORTED, "%s: more than %d pictures; cut it",
                            v->path, MAX_FRAMES);
    }
    close_streams(v); /* from the start again */
    return open_streams(v);
}

int64_t oct_video_next(const oct_video *v)
{
    return v->next;
}

/* Decodes the next picture into v->frame; false: there is none. Broken packets are passed over. */
static bool decode_next(oct_video *v)
{
    for (;;) {
        int code = avcodec_receive_frame(v->codec, v->frame);

        if (code == 0) return true;
        if (code != AVERROR(EAGAIN) && v->is_flushed) return false;
        do {
            av_packet_unref(v->packet);
            code = av_read_frame(v->format, v->packet);
        } while (code >= 0 && v->packet->stream_index != v->stream);
        if (code < 0 && v->is_flushed) return false;
        v->is_flushed = code < 0;
        (void)avcodec_send_packet(v->codec, code < 0 ? NULL : v->packet);
        av_packet_unref(v->packet);
    }
}

static oct_status convert(oct_video *v, oct_image **out)
{
    const AVFrame *f = v->frame;
    oct_image *im = NULL;
    const int *table;
    uint8_t *rgb[4]; /* the library's: it may write whole vectors beyond the end of a row */
    int pitch[4];
    oct_status st;

    OCT_TRY(oct_image_make(v->ctx, f->width, f->height, MAX_PIXELS, &im));
    v->scaler = sws_getCachedContext(
        v->scaler, f->width, f->height, f->format, f->width, f->height, AV_PIX_FMT_RGB24,
        SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
        NULL, NULL, NULL);
    if (!v->scaler) {
        oct_image_free(im);
        return oct_fail(v->ctx, OCT_ERR_UNSUPPORTED, "%s: colours of kind %d are not read", v->path,
                        f->format);
    }
    table = sws_getCoefficients(f->colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_DEFAULT);
    (void)sws_setColorspaceDetails(v->scaler, table, f->color_range == AVCOL_RANGE_JPEG, table, 1,
                                   0, 1 << 16, 1 << 16);
    if (av_image_alloc(rgb, pitch, f->width, f->height, AV_PIX_FMT_RGB24, 64) < 0) {
        oct_image_free(im);
        return no_memory(v);
    }
    (void)sws_scale(v->scaler, (const uint8_t *const *)f->data, f->linesize, 0, f->height, rgb,
                    pitch);
    for (size_t y = 0; y < (size_t)f->height; y++)
        memcpy(im->rgb + y * (size_t)f->width * 3, rgb[0] + y * (size_t)pitch[0],
               (size_t)f->width * 3);
    av_freep(&rgb[0]);
    if ((st = oct_exif_apply(v->ctx, v->orientation, &im))) {
        oct_image_free(im);
        return st;
    }
    *out = im;
    return OCT_OK;
}

oct_status oct_video_read(oct_video *v, int64_t frame, oct_image **out)
{
    *out = NULL;
    if (frame < v->next)
        return oct_fail(v->ctx, OCT_ERR_STATE, "%s: picture %lld was passed already", v->path,
                        (long long)frame);
    for (;;) {
        oct_status st;

        if (!decode_next(v)) return OCT_OK;
        if (v->next++ < frame) {
            av_frame_unref(v->frame);
            continue;
        }
        st = convert(v, out);
        av_frame_unref(v->frame);
        return st;
    }
}
