/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of datasets share: small files in a folder that goes away. */
#ifndef OCT_TESTS_DATA_FILES_H
#define OCT_TESTS_DATA_FILES_H

#include <sys/stat.h>

#include "tests/alloc.h"

#include "base/status.h"

/* A fixture with a folder. */
typedef struct files {
    fixture *f;
    oct_ctx *ctx;
    char folder[64];
} files;

static inline int setup_files(void **state)
{
    files *t = calloc(1, sizeof(*t));
    void *f = NULL;

    if (!t || setup(&f)) return -1;
    t->f = f;
    t->ctx = t->f->ctx;
    make_folder(t->folder);
    *state = t;
    return 0;
}

static inline int teardown_files(void **state)
{
    files *t = *state;
    void *f = t->f;
    int st;

    remove_folder(t->folder);
    st = teardown(&f);
    free(t);
    return st;
}

/* The path of a name below the folder; good for the four latest calls. */
static inline const char *below(const files *t, const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", t->folder, name);
    return path;
}

static inline const char *put_bytes(const files *t, const char *name, const void *data, size_t size)
{
    const char *path = below(t, name);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *put_text(const files *t, const char *name, const char *text)
{
    return put_bytes(t, name, text, strlen(text));
}

static inline const char *put_folder(const files *t, const char *name)
{
    const char *path = below(t, name);

    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

static inline void put_picture(const files *t, const char *name, int w, int h)
{
    oct_image *im = NULL;

    assert_ok(t->ctx, oct_image_new(t->ctx, w, h, &im));
    memset(oct_image_rgb(im), w, (size_t)w * (size_t)h * 3);
    assert_ok(t->ctx, oct_image_save(t->ctx, im, below(t, name)));
    oct_image_free(im);
}

static inline oct_status open_dataset(oct_ctx *ctx, const char *images, const char *annotations,
                                      bool skip_bad, oct_dataset **out)
{
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    o.images = images;
    o.annotations = annotations;
    o.skip_bad = skip_bad;
    return oct_dataset_open(ctx, &o, out);
}

/* It must fail so, and with broken entries left out give this many items, of them this many. */
static inline void assert_bad(const files *t, const char *images, const char *annotations,
                              const char *error, int64_t n_items, int64_t n_skipped)
{
    oct_dataset *d = NULL;
    const oct_status st = open_dataset(t->ctx, images, annotations, false, &d);

    if (!st || !strstr(oct_ctx_error(t->ctx), error))
        fail_msg("status %d, \"%s\", want \"%s\"", st, oct_ctx_error(t->ctx), error);
    if (n_items < 0) { /* nothing is left */
        assert_int_not_equal(open_dataset(t->ctx, images, annotations, true, &d), OCT_OK);
        return;
    }
    assert_ok(t->ctx, open_dataset(t->ctx, images, annotations, true, &d));
    if (oct_dataset_size(d) != n_items || oct_dataset_skipped(d) != n_skipped)
        fail_msg("%s: %lld items, %lld skipped", error, (long long)oct_dataset_size(d),
                 (long long)oct_dataset_skipped(d));
    oct_dataset_close(d);
}

static inline void assert_label(const oct_dataset *d, int64_t i, int32_t k, double x, double y,
                                double w, double h, int32_t category)
{
    int32_t n = 0;
    const oct_label *l = oct_dataset_labels(d, i, &n);

    assert_true(k < n);
    l += k;
    if (fabs(l->x - x) > 1e-9 || fabs(l->y - y) > 1e-9 || fabs(l->width - w) > 1e-9 ||
        fabs(l->height - h) > 1e-9 || l->category != category)
        fail_msg("label %d of picture %lld: %g, %g, %g x %g, category %d", k, (long long)i, l->x,
                 l->y, l->width, l->height, l->category);
}

#endif
