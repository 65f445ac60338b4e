/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata that exporters write into a file: `names`, `task`, `imgsz` and `kpt_shape`, in
 * Ultralytics' format, and octet's own note of the preprocessing. Any program may have written
 * them, so what cannot be parsed is ignored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/family.h"

/* Names that only repeat the numbers: "class0", "1". Ultralytics generates them. */
static bool is_made_up(const char *name, int32_t number)
{
    char plain[16], with_word[24];

    (void)snprintf(plain, sizeof(plain), "%d", (int)number);
    (void)snprintf(with_word, sizeof(with_word), "class%d", (int)number);
    return strcmp(name, plain) == 0 || strcmp(name, with_word) == 0;
}

/* One name for each number, and not all of them made up. */
static bool is_useful(const oct_class_names *c)
{
    bool tells = false;

    for (int32_t i = 0; i < oct_class_names_size(c); i++) {
        const char *name = oct_class_names_at(c, i);

        if (!name) return false;
        if (!is_made_up(name, i)) tells = true;
    }
    return tells;
}

static oct_status read_names(const oct_graph *g, oct_class_names **out)
{
    const char *text = oct_graph_metadata(g, "names");
    oct_class_names *c = NULL;
    oct_status st;

    if (!text) return OCT_OK;
    OCT_TRY(oct_class_names_new(g->ctx, &c));
    st = oct_class_names_literal(c, "metadata 'names'", text);
    if (!st && is_useful(c)) {
        *out = c;
        return OCT_OK;
    }
    if (st && st != OCT_ERR_MEMORY) {
        oct_log(g->ctx, OCT_LOG_WARN, "left aside: %s", oct_ctx_error(g->ctx));
        st = OCT_OK;
    }
    oct_class_names_free(c);
    return st;
}

/* "[640, 480]", "(640, 480)" or "640": at most n numbers; how many there are. */
static int read_numbers(const char *text, int32_t *out, int n)
{
    int got = 0;

    while (text && *text && got < n) {
        char *end = NULL;
        long v;

        text += strspn(text, "[]() ,\t");
        v = strtol(text, &end, 10);
        if (end == text || v < 1 || v > INT16_MAX) break;
        out[got++] = (int32_t)v;
        text = end;
    }
    return got;
}

static oct_status read_preprocess(const oct_graph *g, oct_metadata *out)
{
    const char *text = oct_graph_metadata(g, OCT_METADATA_PREPROCESS);
    oct_status st;

    if (!text) return OCT_OK;
    oct_preprocess_init(&out->preprocess);
    st = oct_preprocess_parse(g->ctx, &out->preprocess, text);
    out->has_preprocess = !st;
    if (!st || st == OCT_ERR_MEMORY) return st;
    oct_log(g->ctx, OCT_LOG_WARN, "left aside: metadata '%s': %s", OCT_METADATA_PREPROCESS,
            oct_ctx_error(g->ctx));
    return OCT_OK;
}

oct_status oct_metadata_read(const oct_graph *g, oct_metadata *out)
{
    static const char *const tasks[] = {"", "detect", "segment", "pose", "obb", "classify"};
    const char *task = oct_graph_metadata(g, "task");
    int32_t size[2], keypoints[2];
    int n = read_numbers(oct_graph_metadata(g, "imgsz"), size, 2);

    *out = (oct_metadata){.task = tasks[0]};
    for (size_t i = 0; task && i < OCT_COUNT(tasks); i++)
        if (strcmp(task, tasks[i]) == 0) out->task = tasks[i];
    if (n > 0) {
        out->height = size[0];
        out->width = size[n - 1];
    }
    n = read_numbers(oct_graph_metadata(g, "kpt_shape"), keypoints, 2);
    if (n == 2 && keypoints[0] <= 1024 && keypoints[1] <= 3)
        out->n_keypoint_values = keypoints[0] * keypoints[1];
    OCT_TRY(read_preprocess(g, out));
    return read_names(g, &out->names);
}

void oct_metadata_fini(oct_metadata *m)
{
    oct_class_names_free(m->names);
    m->names = NULL;
}
