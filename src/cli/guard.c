/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of one call, and what may be replaced. */
#include "cli/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is read or written, with links resolved. */
typedef struct entry {
    char *path;
    bool exists, is_folder;
    dev_t dev;
    ino_t ino;
    dev_t dir_dev; /* of an output: identified by its folder and name while the file does not
                    * exist */
    ino_t dir_ino;
    bool is_written, may_repeat;
} entry;

struct cli_guard {
    pthread_mutex_t lock; /* the library asks from several threads */
    entry *in, *out;
    size_t n_in, n_out;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? cli_format("%.*s", (int)(slash - path) + 1, path) : cli_format(".");
}

static entry entry_of(const char *path)
{
    entry e = {.path = cli_format("%s", path)};
    char *dir = folder_of(path);
    struct stat sb;

    if (stat(path, &sb) == 0) {
        e.exists = true;
        e.is_folder = S_ISDIR(sb.st_mode);
        e.dev = sb.st_dev;
        e.ino = sb.st_ino;
    }
    if (stat(dir, &sb) == 0) {
        e.dir_dev = sb.st_dev;
        e.dir_ino = sb.st_ino;
    }
    free(dir);
    return e;
}

static entry *append(entry **list, size_t *n, entry e)
{
    *list = cli_realloc(*list, *n + 1, sizeof(**list));
    (*list)[*n] = e;
    return &(*list)[(*n)++];
}

static bool is_same(const entry *a, const entry *b)
{
    if (a->exists && b->exists && a->dev == b->dev && a->ino == b->ino) return true;
    return a->dir_ino && a->dir_dev == b->dir_dev && a->dir_ino == b->dir_ino &&
           strcmp(base_name(a->path), base_name(b->path)) == 0;
}

/* Is the file in this folder, however deep? */
static bool is_below(const char *path, const entry *folder)
{
    char *real = realpath(path, NULL), *slash;
    bool below = false;
    struct stat sb;

    while (real && !below && (slash = strrchr(real, '/')) && slash != real) {
        *slash = '\0';
        below = stat(real, &sb) == 0 && sb.st_dev == folder->dev && sb.st_ino == folder->ino;
    }
    free(real);
    return below;
}

static const entry *find_same(const entry *list, size_t n, const entry *e)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(&list[i], e)) return &list[i];
    return NULL;
}

static bool is_in_read_folder(const cli_guard *g, const char *path)
{
    for (size_t i = 0; i < g->n_in; i++)
        if (g->in[i].is_folder && is_below(path, &g->in[i])) return true;
    return false;
}

bool cli_is_sink(const char *path)
{
    struct stat sb;

    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
           (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode));
}

/* Writes the reason to `why`; false: it may be written. */
static bool refuse(const cli *c, const cli_guard *g, const entry *e, char *why, size_t size)
{
    const entry *in;
    struct stat sb;

    if (strcmp(e->path, "-") == 0)
        (void)snprintf(why, size, "is no file name; /dev/stdout is standard output");
    else if (e->is_folder)
        (void)snprintf(why, size, "is a folder, not a file");
    else if ((in = find_same(g->in, g->n_in, e)))
        (void)snprintf(why, size, "%s%s is read by this command; give the result another name",
                       strcmp(in->path, e->path) ? "is the same file as " : "",
                       strcmp(in->path, e->path) ? in->path : "it");
    else if (!e->exists)
        return false;
    else if (stat(e->path, &sb) == 0 && !(sb.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)))
        (void)snprintf(why, size,
                       "is read-only and stays as it is; choose another name, or make it writable");
    else if (cli_is_own(e->path))
        return false;
    else if (is_in_read_folder(g, e->path))
        (void)snprintf(why, size,
                       "is in a folder that this command reads, and octet did not make "
                       "it; give the result another name");
    else if (!c->opt.force)
        (void)snprintf(why, size,
                       "is there already, and octet did not make it; choose another "
                       "name, or replace it with --force");
    else
        return false;
    return true;
}

/* Called by the library for every file. What was registered before is not checked again. */
static int may_write(void *user, const char *path, char *why, size_t size)
{
    cli *c = user;
    cli_guard *g = c->guard;
    entry e, *known;
    bool no = false;

    if (cli_is_sink(path)) return 0;
    (void)pthread_mutex_lock(&g->lock);
    e = entry_of(path);
    known = (entry *)find_same(g->out, g->n_out, &e);
    if (known && known->is_written && !known->may_repeat) {
        (void)snprintf(why, size, "this command has written another result under this name");
        no = true;
    } else if (known) {
        known->is_written = true;
    } else if (!(no = refuse(c, g, &e, why, size))) {
        append(&g->out, &g->n_out, e)->is_written = true;
        e.path = NULL;
    }
    (void)pthread_mutex_unlock(&g->lock);
    free(e.path);
    return no;
}

/* Weights beside a network are inputs too, but known only after it is read. */
static int may_read(void *user, const char *path, char *why, size_t size)
{
    cli *c = user;
    cli_guard *g = c->guard;
    const entry *out;
    bool no;
    entry e;

    (void)pthread_mutex_lock(&g->lock);
    e = entry_of(path);
    out = find_same(g->out, g->n_out, &e);
    no = out && !out->is_written; /* a command may read back what it wrote */
    if (no)
        (void)snprintf(why, size,
                       "the network's weights are in it, and %s was to be written; give "
                       "the result another name",
                       strcmp(out->path, path) ? out->path : "it");
    if (out) {
        free(e.path);
    } else {
        (void)append(&g->in, &g->n_in, e);
    }
    (void)pthread_mutex_unlock(&g->lock);
    return no;
}

void cli_reads(cli *c, const char *path)
{
    if (!c->guard || !path) return;
    (void)pthread_mutex_lock(&c->guard->lock);
    (void)append(&c->guard->in, &c->guard->n_in, entry_of(path));
    (void)pthread_mutex_unlock(&c->guard->lock);
}

static oct_status check_folder(cli *c, const char *option, const char *sep, const char *path)
{
    char *dir = folder_of(path);
    struct stat sb;
    const bool missing = stat(dir, &sb) || !S_ISDIR(sb.st_mode);

    free(dir);
    if (!missing) return OCT_OK;
    return cli_fail(c, OCT_ERR_ARG, "%s%s%s: its folder does not exist; make it first", option, sep,
                    path);
}

oct_status cli_writes(cli *c, const char *option, const char *path)
{
    const char *name = option ? option : "", *sep = option ? " " : "";
    cli_guard *g = c->guard;
    char why[512];
    const entry *other;
    oct_status st;
    entry e;

    if (*path == '\0') return cli_fail(c, OCT_ERR_ARG, "%s%san empty file name", name, sep);
    if (strcmp(path, "/dev/stdout") == 0)
        stdout = stderr; /* the output goes to stdout: messages
                          * must not mix with it */
    if (cli_is_sink(path)) return OCT_OK;
    if ((st = check_folder(c, name, sep, path))) return st;
    e = entry_of(path);
    if ((other = find_same(g->out, g->n_out, &e)))
        st = cli_fail(c, OCT_ERR_ARG, "%s%s%s: two results cannot go into one file", name, sep,
                      path);
    else if (refuse(c, g, &e, why, sizeof(why)))
        st = cli_fail(c, OCT_ERR_ARG, "%s%s%s: %s", name, sep, path, why);
    if (st)
        free(e.path);
    else
        (void)append(&g->out, &g->n_out, e);
    return st;
}

oct_status cli_rewrites(cli *c, const char *option, const char *path)
{
    const size_t n = c->guard->n_out;
    const oct_status st = cli_writes(c, option, path);

    if (!st && c->guard->n_out > n) c->guard->out[n].may_repeat = true;
    return st;
}

bool cli_has_suffix(const char *path, const char *suffix)
{
    const char *dot = strrchr(base_name(path), '.');

    return dot && strcasecmp(dot, suffix) == 0;
}

oct_status cli_check_model_name(cli *c, const char *option, const char *path)
{
    if (cli_has_suffix(path, ".onnx") || cli_has_suffix(path, ".xml") || cli_is_sink(path))
        return OCT_OK;
    return cli_fail(c, OCT_ERR_ARG,
                    "%s%s%s: octet writes networks as ONNX (a name that ends in .onnx) or as "
                    "OpenVINO IR (.xml, with a .bin file beside it)",
                    option ? option : "", option ? " " : "", path);
}

void cli_guard_start(cli *c)
{
    c->guard = cli_alloc(1, sizeof(*c->guard));
    (void)pthread_mutex_init(&c->guard->lock, NULL);
    oct_ctx_set_write_check(c->ctx, may_write, c);
    oct_ctx_set_read_check(c->ctx, may_read, c);
}

void cli_guard_end(cli *c)
{
    cli_guard *g = c->guard;

    if (!g) return;
    oct_ctx_set_write_check(c->ctx, NULL, NULL);
    oct_ctx_set_read_check(c->ctx, NULL, NULL);
    for (size_t i = 0; i < g->n_in; i++)
        free(g->in[i].path);
    for (size_t i = 0; i < g->n_out; i++)
        free(g->out[i].path);
    free(g->in);
    free(g->out);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
    c->guard = NULL;
}
