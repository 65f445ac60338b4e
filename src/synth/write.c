/* SPDX-License-Identifier: Apache-2.0 */
/* Series of pictures as files: JPEG, COCO labels, names of the classes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/str.h"
#include "data/image/image.h"
#include "synth/synth.h"

enum {
    MIN_SIDE = 64,
    MAX_SIDE = 2048,
    PART = 64, /* pictures between two reports of progress */
};

/* One thread's own things. */
typedef struct worker {
    oct_ctx *ctx;
    oct_canvas canvas;
    oct_image *im;
    oct_status status; /* of its first failure */
} worker;

typedef struct job {
    oct_ctx *ctx;
    oct_synth_options o;
    const char *folder;
    uint64_t key;
    int32_t n_workers;
    worker *workers;
    int64_t first;                 /* picture of the part */
    oct_synth_labels labels[PART]; /* by picture of the part */
    oct_writer *json;
    int64_t n_objects;
} job;

void oct_synth_options_init_sized(oct_synth_options *o, size_t struct_size)
{
    const oct_synth_options all = {
        .struct_size = struct_size, .count = 200, .size = 256, .split = "val"};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

static oct_status check(oct_ctx *ctx, const oct_synth_options *o)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    if (o->count < 1)
        return oct_fail(ctx, OCT_ERR_ARG, "count is %d, must be at least 1", o->count);
    if (o->size < MIN_SIDE || o->size > MAX_SIDE)
        return oct_fail(ctx, OCT_ERR_ARG, "size is %d, must be %d to %d", o->size, MIN_SIDE,
                        MAX_SIDE);
    if (!o->split || !*o->split || strlen(o->split) > 64 ||
        o->split[strspn(o->split, allowed)] != '\0')
        return oct_fail(ctx, OCT_ERR_ARG,
                        "split must be a name of letters, digits, '-' and '_', not '%.64s'",
                        o->split ? o->split : "");
    return OCT_OK;
}

/* --- files --- */

static oct_status make_folder(oct_ctx *ctx, const char *path)
{
    struct stat sb;

    if (!mkdir(path, 0777)) return OCT_OK;
    if (errno == EEXIST && !stat(path, &sb) && S_ISDIR(sb.st_mode)) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_IO, "%s: cannot make this folder: %s", path, strerror(errno));
}

/* A path below the job's folder. */
static oct_status path_of(oct_ctx *ctx, const job *j, const char *name, char path[PATH_MAX])
{
    const int n = snprintf(path, PATH_MAX, "%s/%s", j->folder, name);

    if (n < 0 || n >= PATH_MAX)
        return oct_fail(ctx, OCT_ERR_ARG, "%.80s...: path too long", j->folder);
    return OCT_OK;
}

/* Is this file there with these bytes already? */
static bool is_written(oct_ctx *ctx, const char *path, const oct_str *text)
{
    oct_file *f = NULL;
    bool same;

    if (access(path, F_OK) || oct_file_map(ctx, path, &f)) return false;
    same = oct_file_size(f) == text->len && memcmp(oct_file_data(f), text->s, text->len) == 0;
    oct_file_unref(f);
    return same;
}

/* All series of a folder have the same names. */
static oct_status write_names(job *j)
{
    char path[PATH_MAX];
    oct_writer *w = NULL;
    oct_str text;
    oct_status st = OCT_OK;

    OCT_TRY(path_of(j->ctx, j, "names.txt", path));
    oct_str_init(&text, j->ctx);
    for (int32_t i = 0; i < OCT_SYNTH_CLASSES; i++)
        oct_str_printf(&text, "%s\n", oct_synth_class_name(i));
    if (text.failed) st = OCT_ERR_MEMORY;
    if (st || is_written(j->ctx, path, &text)) goto done;
    if ((st = oct_writer_open(j->ctx, path, &w))) goto done;
    if (!(st = oct_writer_put(w, text.s, text.len))) {
        st = oct_writer_commit(w);
        w = NULL;
    }
done:
    oct_writer_abort(w);
    oct_str_fini(&text);
    return st;
}

static oct_status save_picture(const job *j, worker *w, int64_t index)
{
    char name[96], path[PATH_MAX];
    oct_writer *file = NULL;
    oct_status st;

    (void)snprintf(name, sizeof(name), "%s/%06lld.jpg", j->o.split, (long long)index);
    OCT_TRY(path_of(w->ctx, j, name, path));
    OCT_TRY(oct_writer_open(w->ctx, path, &file));
    if ((st = oct_codec_jpeg.encode(w->ctx, w->im, file))) {
        oct_writer_abort(file);
        return oct_fail_at(w->ctx, st, path);
    }
    return oct_writer_commit_unsynced(file); /* it can be made again any time */
}

/* --- labels --- */

static oct_status open_json(job *j)
{
    char name[80], path[PATH_MAX];

    (void)snprintf(name, sizeof(name), "%s.json", j->o.split);
    OCT_TRY(path_of(j->ctx, j, name, path));
    OCT_TRY(oct_writer_open(j->ctx, path, &j->json));
    OCT_TRY(oct_writer_printf(j->json,
                              "{\"info\":{\"description\":\"octet synth, seed %llu, split %s\"},\n"
                              "\"categories\":[",
                              (unsigned long long)j->o.seed, j->o.split));
    for (int32_t i = 0; i < OCT_SYNTH_CLASSES; i++)
        OCT_TRY(oct_writer_printf(j->json, "%s\n{\"id\":%d,\"name\":\"%s\"}", i ? "," : "",
                                  (int)i + 1, oct_synth_class_name(i)));
    OCT_TRY(oct_writer_printf(j->json, "],\n\"images\":["));
    for (int64_t i = 0; i < j->o.count; i++)
        OCT_TRY(oct_writer_printf(
            j->json, "%s\n{\"id\":%lld,\"file_name\":\"%06lld.jpg\",\"width\":%d,\"height\":%d}",
            i ? "," : "", (long long)i + 1, (long long)i, (int)j->o.size, (int)j->o.size));
    return oct_writer_printf(j->json, "],\n\"annotations\":[");
}

static oct_status put_labels(job *j, int64_t index, const oct_synth_labels *labels)
{
    for (int32_t i = 0; i < labels->n; i++) {
        const oct_synth_label *l = &labels->items[i];

        OCT_TRY(oct_writer_printf(
            j->json,
            "%s\n{\"id\":%lld,\"image_id\":%lld,\"category_id\":%d,\"bbox\":[%d,%d,%d,%d],"
            "\"area\":%d,\"iscrowd\":0}",
            j->n_objects ? "," : "", (long long)j->n_objects + 1, (long long)index + 1,
            (int)l->category + 1, (int)l->x, (int)l->y, (int)l->width, (int)l->height,
            (int)l->area));
        j->n_objects++;
    }
    return OCT_OK;
}

static oct_status close_json(job *j)
{
    oct_writer *w = j->json;

    OCT_TRY(oct_writer_printf(w, "]}\n"));
    j->json = NULL; /* freed in any case */
    return oct_writer_commit(w);
}

/* --- work --- */

static void draw_range(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;
    worker *w = &j->workers[oct_parallel_thread()];

    for (int64_t i = begin; i < end && !w->status; i++) {
        oct_synth_picture(&w->canvas, j->key, j->first + i, &j->labels[i]);
        oct_canvas_export(&w->canvas, w->im->rgb);
        w->status = save_picture(j, w, j->first + i);
    }
}

static oct_status draw_part(job *j)
{
    const int64_t n = OCT_MIN(PART, j->o.count - j->first);

    oct_parallel_for(j->n_workers, n, 1, draw_range, j);
    for (int32_t i = 0; i < j->n_workers; i++) {
        const worker *w = &j->workers[i];

        if (w->status) return oct_fail(j->ctx, w->status, "%s", oct_ctx_error(w->ctx));
    }
    for (int64_t i = 0; i < n; i++)
        OCT_TRY(put_labels(j, j->first + i, &j->labels[i]));
    j->first += n;
    return oct_progress(j->ctx, "drawing", j->first, j->o.count);
}

static oct_status make_workers(job *j)
{
    j->n_workers = OCT_MIN(OCT_MAX(oct_ctx_threads(j->ctx), 1), PART);
    j->workers = oct_calloc(j->ctx, (size_t)j->n_workers, sizeof(*j->workers));
    if (!j->workers) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < j->n_workers; i++) {
        worker *w = &j->workers[i];

        w->ctx = oct_ctx_new_like(j->ctx);
        if (!w->ctx) return oct_fail(j->ctx, OCT_ERR_MEMORY, "no memory for a context");
        OCT_TRY(oct_canvas_new(j->ctx, j->o.size, &w->canvas));
        OCT_TRY(oct_image_new(j->ctx, j->o.size, j->o.size, &w->im));
    }
    return OCT_OK;
}

static void free_workers(job *j)
{
    for (int32_t i = 0; j->workers && i < j->n_workers; i++) {
        oct_image_free(j->workers[i].im);
        oct_canvas_free(j->ctx, &j->workers[i].canvas);
        oct_ctx_free(j->workers[i].ctx);
    }
    oct_free(j->ctx, j->workers);
}

static oct_status write_all(job *j)
{
    char path[PATH_MAX];

    OCT_TRY(make_folder(j->ctx, j->folder));
    OCT_TRY(path_of(j->ctx, j, j->o.split, path));
    OCT_TRY(make_folder(j->ctx, path));
    OCT_TRY(make_workers(j));
    OCT_TRY(open_json(j));
    OCT_TRY(oct_progress(j->ctx, "drawing", 0, j->o.count));
    while (j->first < j->o.count)
        OCT_TRY(draw_part(j));
    OCT_TRY(write_names(j));
    return close_json(j);
}

oct_status oct_synth_write(oct_ctx *ctx, const char *folder, const oct_synth_options *options,
                           oct_synth_result *result)
{
    OCT_ENTER(ctx);
    job *j = oct_calloc(ctx, 1, sizeof(*j));
    oct_status st;

    if (!j) return OCT_ERR_MEMORY;
    j->ctx = ctx;
    j->folder = folder;
    oct_synth_options_init(&j->o);
    if (options) memcpy(&j->o, options, OCT_MIN(options->struct_size, sizeof(j->o)));
    st = check(ctx, &j->o);
    if (!st) {
        j->key = oct_synth_key(j->o.seed, j->o.split);
        st = write_all(j);
    }
    if (!st && result) {
        const oct_synth_result all = {result->struct_size, j->o.count, j->n_objects};

        memcpy(result, &all, OCT_MIN(result->struct_size, sizeof(all)));
    }
    oct_writer_abort(j->json);
    free_workers(j);
    oct_free(ctx, j);
    return st;
}
