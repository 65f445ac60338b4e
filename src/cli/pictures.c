/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures a command processes one by one, and the names of its results. */
#include "cli/pictures.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/data.h"
#include "cli/guard.h"

/* --- opening --- */

static oct_status read_standard_input(cli_pictures *p)
{
    enum { BLOCK = 1 << 16, MOST = 1 << 30 };
    unsigned char *data = NULL;
    size_t n = 0, got;
    oct_status st;

    do {
        data = cli_realloc(data, n + BLOCK, 1);
        got = fread(data + n, 1, BLOCK, stdin);
        n += got;
    } while (got > 0 && n < MOST);
    st = oct_image_decode(p->c->ctx, "standard input", data, n, NULL, &p->typed);
    free(data);
    p->n = 1;
    return st;
}

static oct_status open_dataset(cli_pictures *p, const cli_pictures_words *w)
{
    const int n_files = w->images->n;
    cli *c = p->c;
    const char **paths = NULL;
    oct_dataset_options o;
    oct_status st;
    int n = 0;

    for (char **f = w->files; *f; f++) {
        if (strcmp(*f, "-") == 0)
            return cli_fail(c, OCT_ERR_ARG,
                            "- is one picture on standard input and stands alone; a list of names "
                            "is --images -");
        paths = cli_realloc(paths, (size_t)n + 1, sizeof(*paths));
        paths[n++] = *f;
    }
    for (int i = 0; i < n_files; i++) {
        paths = cli_realloc(paths, (size_t)n + 1, sizeof(*paths));
        paths[n++] = w->images->items[i];
    }
    if (!n) return cli_fail(c, OCT_ERR_ARG, "IMAGE is missing: pictures, a folder, or --images");
    oct_dataset_options_init(&o);
    cli_data_images(&o, paths, n);
    o.every = (int32_t)(w->every > INT32_MAX ? INT32_MAX : w->every);
    o.skip_bad = w->skip_bad;
    o.need_files = 1;
    st = oct_dataset_open(c->ctx, &o, &p->d);
    if (!st && oct_dataset_is_tensors(p->d))
        st = cli_fail(c, OCT_ERR_ARG, "%s: tensors, where pictures are wanted", paths[0]);
    if (!st) (void)cli_data_notes(c, paths[0], p->d, 0);
    free(paths);
    return st;
}

/* --- names --- */

/* Pictures are written as JPEG and PNG: others get another ending. */
static char *name_of(const char *path, int64_t frame, int64_t number)
{
    static const char *const kept[] = {".jpg", ".jpeg", ".jpe", ".png"};
    const char *dot = strrchr(path, '.'), *ending = ".jpg";
    const int stem = (int)(dot && dot > path ? (size_t)(dot - path) : strlen(path));
    char more[64] = "";

    for (size_t i = 0; dot && frame < 0 && i < CLI_COUNT(kept); i++)
        if (strcasecmp(dot, kept[i]) == 0) ending = dot;
    if (frame >= 0) (void)snprintf(more, sizeof(more), "-%06lld", (long long)frame);
    if (number) (void)snprintf(more + strlen(more), 32, "-%lld", (long long)number);
    return cli_format("%.*s%s%s", stem, path, more, ending);
}

typedef struct named {
    const char *name;
    int64_t index;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : x->index < y->index ? -1 : 1;
}

/*
 * Calls `change` for each picture whose name is not unique; returns how many there were. `all` is
 * false: not for the first of them.
 */
static int64_t resolve(cli_pictures *p, bool all, char *(*change)(const cli_pictures *p, int64_t i))
{
    named *list = cli_alloc((size_t)p->n, sizeof(*list));
    char **changed = cli_alloc((size_t)p->n, sizeof(*changed));
    int64_t n = 0;

    for (int64_t i = 0; i < p->n; i++)
        list[i] = (named){p->names[i], i};
    qsort(list, (size_t)p->n, sizeof(*list), by_name);
    for (int64_t i = 0; i < p->n; i++) {
        const bool before = i > 0 && strcmp(list[i].name, list[i - 1].name) == 0;
        const bool next = i + 1 < p->n && strcmp(list[i].name, list[i + 1].name) == 0;

        if (before || (all && next)) changed[list[i].index] = change(p, list[i].index);
    }
    for (int64_t i = 0; i < p->n; i++) {
        if (!changed[i]) continue;
        free(p->names[i]);
        p->names[i] = changed[i];
        n++;
    }
    free(changed);
    free(list);
    return n;
}

/* a/x.jpg as a_x.jpg */
static char *with_folders(const cli_pictures *p, int64_t i)
{
    const char *path = cli_pictures_path(p, i);
    char *flat, *name;

    path += strspn(path, "./");
    flat = cli_format("%s", path);
    for (char *s = flat; *s; s++)
        if (*s == '/') *s = '_';
    name = name_of(flat, cli_pictures_frame(p, i), 0);
    free(flat);
    return name;
}

static char *with_number(const cli_pictures *p, int64_t i)
{
    return name_of(p->names[i], -1, i + 1);
}

/* The file's own name; with its folders where two have the same; with a number as a last resort. */
static void choose_names(cli_pictures *p)
{
    p->names = cli_alloc((size_t)p->n, sizeof(*p->names));
    for (int64_t i = 0; i < p->n; i++) {
        const char *path = cli_pictures_path(p, i), *slash = strrchr(path, '/');

        p->names[i] =
            name_of(p->d ? (slash ? slash + 1 : path) : "stdin", cli_pictures_frame(p, i), 0);
    }
    p->n_names = p->n;
    if (resolve(p, true, with_folders))
        while (resolve(p, false, with_number))
            ;
}

oct_status cli_pictures_open(cli *c, const cli_pictures_words *words, cli_pictures *out)
{
    const bool typed = words->files[0] && strcmp(words->files[0], "-") == 0 && !words->files[1] &&
                       words->images->n == 0;
    const char *model = c->model;
    oct_status st;

    *out = (cli_pictures){.c = c, .skip_bad = words->skip_bad};
    c->model = NULL; /* errors here are about pictures */
    if ((st = typed ? read_standard_input(out) : open_dataset(out, words))) return st;
    c->model = model;
    if (out->d) out->n = oct_dataset_size(out->d);
    for (int64_t i = 0; out->d && i < out->n; i++)
        if (cli_pictures_frame(out, i) <= 0) cli_reads(c, cli_pictures_path(out, i));
    choose_names(out);
    return OCT_OK;
}

void cli_pictures_close(cli_pictures *p)
{
    for (int64_t i = 0; i < p->n_names; i++)
        free(p->names[i]);
    free(p->names);
    oct_image_free(p->typed);
    oct_dataset_close(p->d);
    *p = (cli_pictures){0};
}

/* --- one by one --- */

oct_status cli_pictures_load(cli_pictures *p, int64_t i, oct_image **out)
{
    cli *c = p->c;
    oct_status st;

    if (!p->d) {
        *out = p->typed;
        p->typed = NULL;
        return OCT_OK;
    }
    *out = NULL;
    if (!(st = oct_dataset_load(p->d, i, out))) return OCT_OK;
    /* A video may have fewer pictures than its header says; at least one is required. */
    if (st == OCT_ERR_MEMORY || (!p->skip_bad && cli_pictures_frame(p, i) <= 0)) return st;
    cli_note(c, "left out: %s", oct_ctx_error(c->ctx));
    if (++p->n_broken < p->n) return OCT_OK;
    return cli_fail(c, st, "no picture is left: all %lld are broken; the last: %s", (long long)p->n,
                    oct_ctx_error(c->ctx));
}

const char *cli_pictures_path(const cli_pictures *p, int64_t i)
{
    return p->d ? oct_dataset_path(p->d, i) : "-";
}

int64_t cli_pictures_frame(const cli_pictures *p, int64_t i)
{
    return p->d ? oct_dataset_frame(p->d, i) : -1;
}
