/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing as text: "size=640x640,fit=letterbox,...", read and written by one table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "data/image/preprocess.h"
#include "tensor/dtype.h"

#define WORD_SIZE 128

size_t oct_preprocess_size(const oct_preprocess *p, oct_dtype dtype)
{
    const size_t n_channels = p->color == OCT_COLOR_GRAY ? 1 : 3;

    return n_channels * (size_t)p->width * (size_t)p->height * oct_dtype_size(dtype);
}

/* Names of an enum's values, in their order. */
static const char *const fits[] = {"letterbox", "letterbox_top_left", "stretch", "crop", NULL};
static const char *const interpolations[] = {"linear", "antialias", NULL};
static const char *const colors[] = {"rgb", "bgr", "gray", NULL};
static const char *const layouts[] = {"nchw", "nhwc", NULL};

_Static_assert(offsetof(oct_preprocess, height) ==
                       offsetof(oct_preprocess, width) + sizeof(int32_t) &&
                   offsetof(oct_preprocess, inner_height) ==
                       offsetof(oct_preprocess, inner_width) + sizeof(int32_t),
               "sizes are read as two numbers in a row");

typedef enum kind { KIND_SIZE, KIND_CHOICE, KIND_INT, KIND_FLOAT, KIND_FLOATS } kind;

typedef struct word {
    const char *name;
    kind kind;
    size_t offset;
    const char *const *choices;
} word;

static const word words[] = {
    {"size", KIND_SIZE, offsetof(oct_preprocess, width), NULL},
    {"fit", KIND_CHOICE, offsetof(oct_preprocess, fit), fits},
    {"interpolation", KIND_CHOICE, offsetof(oct_preprocess, interpolation), interpolations},
    {"color", KIND_CHOICE, offsetof(oct_preprocess, color), colors},
    {"layout", KIND_CHOICE, offsetof(oct_preprocess, layout), layouts},
    {"inner", KIND_SIZE, offsetof(oct_preprocess, inner_width), NULL},
    {"crop_resize", KIND_INT, offsetof(oct_preprocess, crop_resize), NULL},
    {"pad", KIND_FLOAT, offsetof(oct_preprocess, pad), NULL},
    {"scale", KIND_FLOAT, offsetof(oct_preprocess, scale), NULL},
    {"mean", KIND_FLOATS, offsetof(oct_preprocess, mean), NULL},
    {"std", KIND_FLOATS, offsetof(oct_preprocess, std), NULL},
};

/* "did you mean x?", or "there are a, b, c". */
static void suggest(char text[WORD_SIZE], const char *near, const char *const *names)
{
    size_t used = 0;

    if (near) {
        snprintf(text, WORD_SIZE, "did you mean \"%s\"?", near);
        return;
    }
    used += (size_t)snprintf(text, WORD_SIZE, "there are ");
    for (int i = 0; names[i] && used < WORD_SIZE; i++)
        used += (size_t)snprintf(text + used, WORD_SIZE - used, "%s%s", i ? ", " : "", names[i]);
}

static int far_of(const char *text)
{
    return 2 + (int)OCT_MIN(strlen(text) / 3, 7);
}

static oct_status parse_choice(oct_ctx *ctx, const word *w, const char *text, int32_t *out)
{
    oct_nearest near = {text, far_of(text), NULL};
    char hint[WORD_SIZE];

    for (int i = 0; w->choices[i]; i++) {
        if (!strcmp(w->choices[i], text)) {
            *out = i;
            return OCT_OK;
        }
        oct_nearest_try(&near, w->choices[i]);
    }
    suggest(hint, near.name, w->choices);
    return oct_fail(ctx, OCT_ERR_ARG, "preprocess: %s cannot be \"%s\"; %s", w->name, text, hint);
}

static bool parse_int(const char *text, char stop, int32_t *out, const char **end)
{
    char *rest;
    long v;

    errno = 0;
    v = strtol(text, &rest, 10);
    if (rest == text || *rest != stop || errno || v < INT32_MIN || v > INT32_MAX) return false;
    *out = (int32_t)v;
    *end = rest;
    return true;
}

/* "640x480", or "640" for both. */
static bool parse_size(const char *text, int32_t size[2])
{
    const char *end = text;

    if (parse_int(text, '\0', &size[0], &end)) {
        size[1] = size[0];
        return true;
    }
    return parse_int(text, 'x', &size[0], &end) && parse_int(end + 1, '\0', &size[1], &end);
}

/* "a:b:c", or "a" for all. */
static bool parse_floats(const char *text, float *out, int n)
{
    int i = 0;

    for (;; text++) {
        char *rest;
        const float v = strtof(text, &rest);

        if (rest == text || i == n || !isfinite(v)) return false;
        out[i++] = v;
        text = rest;
        if (*text != ':') break;
    }
    if (*text || (i != 1 && i != n)) return false;
    for (; i < n; i++)
        out[i] = out[0];
    return true;
}

static oct_status parse_word(oct_ctx *ctx, oct_preprocess *p, const word *w, const char *text)
{
    void *field = (char *)p + w->offset;
    const char *end = text;
    bool ok = false;

    switch (w->kind) {
    case KIND_CHOICE:
        return parse_choice(ctx, w, text, field);
    case KIND_SIZE:
        ok = parse_size(text, field);
        break;
    case KIND_INT:
        ok = parse_int(text, '\0', field, &end);
        break;
    case KIND_FLOAT:
        ok = parse_floats(text, field, 1);
        break;
    case KIND_FLOATS:
        ok = parse_floats(text, field, 3);
        break;
    }
    if (ok) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "preprocess: %s cannot be \"%s\"; %s", w->name, text,
                    w->kind == KIND_SIZE     ? "it is like 640x480 (width, height) or 640"
                    : w->kind == KIND_FLOATS ? "it is one number, or three like .485:.456:.406"
                                             : "it is a number");
}

static oct_status find_word(oct_ctx *ctx, const char *name, const word **out)
{
    const char *names[OCT_COUNT(words) + 1] = {NULL};
    oct_nearest near = {name, far_of(name), NULL};
    char hint[WORD_SIZE];

    for (size_t i = 0; i < OCT_COUNT(words); i++) {
        if (!strcmp(words[i].name, name)) {
            *out = &words[i];
            return OCT_OK;
        }
        names[i] = words[i].name;
        oct_nearest_try(&near, words[i].name);
    }
    suggest(hint, near.name, names);
    return oct_fail(ctx, OCT_ERR_ARG, "preprocess: there is no \"%s\"; %s", name, hint);
}

/* Takes "name=value" off the text. */
static oct_status next_word(oct_ctx *ctx, const char **text, char item[WORD_SIZE], char **value)
{
    const size_t len = strcspn(*text, ",");

    if (len >= WORD_SIZE)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: \"%.40s...\" is too long", *text);
    memcpy(item, *text, len);
    item[len] = '\0';
    *text += len + ((*text)[len] == ',');
    *value = strchr(item, '=');
    if (!*value)
        return oct_fail(ctx, OCT_ERR_ARG, "preprocess: \"%s\" is not like NAME=VALUE", item);
    *(*value)++ = '\0';
    return OCT_OK;
}

oct_status oct_preprocess_parse(oct_ctx *ctx, oct_preprocess *p, const char *text)
{
    OCT_ENTER(ctx);
    const size_t struct_size = p->struct_size;
    oct_preprocess copy;

    oct_preprocess_read(&copy, p);
    while (*text) {
        char item[WORD_SIZE], *value = NULL;
        const word *w = NULL;

        OCT_TRY(next_word(ctx, &text, item, &value));
        OCT_TRY(find_word(ctx, item + strspn(item, " \n"), &w));
        OCT_TRY(parse_word(ctx, &copy, w, value));
    }
    OCT_TRY(oct_preprocess_check(ctx, &copy));
    copy.struct_size = struct_size;
    memcpy(p, &copy, OCT_MIN(struct_size, sizeof(copy)));
    return OCT_OK;
}

/* The fewest digits that give the same float back. */
static size_t put_float(char *text, size_t size, float v)
{
    int digits = 6;

    while (snprintf(text, size, "%.*g", digits, (double)v) && digits < 9 && strtof(text, NULL) != v)
        digits++;
    return strlen(text);
}

static const char *choice_name(const word *w, int32_t value)
{
    for (int32_t i = 0; w->choices[i]; i++) {
        if (i == value) return w->choices[i];
    }
    return "?";
}

static void put_word(char *text, size_t size, const oct_preprocess *p, const word *w)
{
    const void *field = (const char *)p + w->offset;
    size_t used = (size_t)snprintf(text, size, "%s=", w->name);
    const int n = w->kind == KIND_FLOATS ? 3 : 1;

    switch (w->kind) {
    case KIND_SIZE:
        snprintf(text + used, size - used, "%dx%d", ((const int32_t *)field)[0],
                 ((const int32_t *)field)[1]);
        break;
    case KIND_CHOICE:
        snprintf(text + used, size - used, "%s", choice_name(w, *(const int32_t *)field));
        break;
    case KIND_INT:
        snprintf(text + used, size - used, "%d", *(const int32_t *)field);
        break;
    case KIND_FLOAT:
    case KIND_FLOATS:
        for (int i = 0; i < n; i++) {
            if (i) text[used++] = ':';
            used += put_float(text + used, size - used, ((const float *)field)[i]);
        }
        break;
    }
}

const char *oct_preprocess_text(const oct_preprocess *options, char *text, size_t size)
{
    char buffer[WORD_SIZE];
    oct_preprocess p;
    size_t used = 0;

    oct_preprocess_read(&p, options);
    if (size) *text = '\0';
    for (size_t i = 0; i < OCT_COUNT(words) && used < size; i++) {
        if (words[i].offset == offsetof(oct_preprocess, crop_resize) && !p.crop_resize) continue;
        if (words[i].offset == offsetof(oct_preprocess, inner_width) && !p.inner_width) continue;
        put_word(buffer, sizeof(buffer), &p, &words[i]);
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", buffer);
    }
    return text;
}
