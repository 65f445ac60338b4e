/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are videos, by their first bytes. */
#include <string.h>

#include "data/files.h"
#include "data/image/video.h"

static const struct {
    const char *format;
    size_t at, size;
    const char *bytes;
} kinds[] = {
    {"mov", 4, 4, "ftyp"},          {"mov", 4, 4, "moov"},
    {"mov", 4, 4, "mdat"},          {"mov", 4, 4, "wide"},
    {"avi", 8, 4, "AVI "},          {"matroska", 0, 4, "\x1a\x45\xdf\xa3"},
    {"mpeg", 0, 4, "\0\0\x01\xba"}, {"asf", 0, 4, "\x30\x26\xb2\x75"},
    {"flv", 0, 4, "FLV\x01"},       {"ogg", 0, 4, "OggS"},
};

/* Still pictures in the MP4 container. */
static bool is_still(oct_bytes b)
{
    static const char *const brands[] = {"heic", "heix", "mif1", "avif"};

    for (size_t i = 0; i < OCT_COUNT(brands) && b.size >= 12; i++)
        if (!memcmp(b.data + 4, "ftyp", 4) && !memcmp(b.data + 8, brands[i], 4)) return true;
    return false;
}

const char *oct_video_format(oct_bytes b)
{
    if (is_still(b)) return NULL;
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (b.size >= kinds[i].at + kinds[i].size &&
            !memcmp(b.data + kinds[i].at, kinds[i].bytes, kinds[i].size))
            return kinds[i].format;
    if (b.size > 188 && b.data[0] == 0x47 && b.data[188] == 0x47) return "mpegts";
    return NULL;
}

bool oct_is_video(oct_bytes start)
{
    return oct_video_format(start) != NULL;
}

bool oct_is_video_file(const char *path)
{
    uint8_t start[192];

    return oct_is_video((oct_bytes){start, oct_file_start(path, start, sizeof(start))});
}
