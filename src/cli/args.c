/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the command line into the fields that the option tables describe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/near.h"

/* A table and the struct its offsets point into. */
typedef struct target {
    const cli_opt *opts;
    char *base;
} target;

static const cli_opt *find(const target *t, const char *name, size_t len, char **base)
{
    for (; t->opts; t++)
        for (const cli_opt *o = t->opts; o->kind; o++)
            if (strlen(o->name) == len && memcmp(o->name, name, len) == 0) {
                *base = t->base;
                return o;
            }
    return NULL;
}

static const cli_opt *find_letter(const target *t, char letter, char **base)
{
    for (; t->opts; t++)
        for (const cli_opt *o = t->opts; o->kind; o++)
            if (o->letter == letter) {
                *base = t->base;
                return o;
            }
    return NULL;
}

static void append(cli_list *list, const char *value)
{
    list->items = cli_realloc(list->items, (size_t)list->n + 1, sizeof(*list->items));
    list->items[list->n++] = value;
}

static const char *at_most(const cli_opt *o, char *text, size_t size)
{
    *text = '\0';
    if (o->max > 0) (void)snprintf(text, size, " and at most %g", o->max);
    return text;
}

/* value is not NULL unless the option is a flag. */
static oct_status store(cli *c, const cli_opt *o, char *base, const char *value)
{
    void *field = base + o->offset;
    char *end = NULL, most[32];

    errno = 0;
    switch (o->kind) {
    case CLI_FLAG:
    case CLI_ALONE:
        *(bool *)field = true;
        break;
    case CLI_INT: {
        const long long v = strtoll(value, &end, 10);

        if (errno || end == value || *end || v < o->min)
            return cli_fail(c, OCT_ERR_ARG,
                            "option --%s wants a whole number of at least %lld, not '%s'", o->name,
                            (long long)o->min, value);
        *(int64_t *)field = v;
        break;
    }
    case CLI_F64: {
        const double v = strtod(value, &end);

        if (errno || end == value || *end || !(v > 0) || v > (o->max > 0 ? o->max : 1e12))
            return cli_fail(c, OCT_ERR_ARG, "option --%s wants a number above 0%s, not '%s'",
                            o->name, at_most(o, most, sizeof(most)), value);
        *(double *)field = v;
        break;
    }
    case CLI_STR:
        *(const char **)field = value;
        break;
    case CLI_LIST:
        append(field, value);
        break;
    case CLI_END:
        break;
    }
    return OCT_OK;
}

static oct_status unknown(cli *c, const target *targets, const char *word)
{
    cli_near near;
    char name[128];

    cli_near_init(&near, word, false);
    for (const target *t = targets; t->opts; t++)
        for (const cli_opt *o = t->opts; o->kind; o++) {
            (void)snprintf(name, sizeof(name), "--%s", o->name);
            cli_near_try(&near, name);
        }
    return cli_fail(c, OCT_ERR_ARG, "%s has no option '%s'%s", c->cmd->name, word,
                    cli_near_text(&near));
}

/* One option at argv[*i], "--name value" or "--name=value". */
static oct_status option(cli *c, const target *targets, char **argv, int *i)
{
    char *word = argv[*i], *base = NULL;
    const char *eq = strchr(word, '='), *value = eq ? eq + 1 : NULL;
    const size_t len = eq ? (size_t)(eq - word) : strlen(word);
    const cli_opt *o = NULL;

    if (strcmp(word, "-h") == 0)
        o = find(targets, "help", 4, &base);
    else if (len > 2 && word[1] == '-')
        o = find(targets, word + 2, len - 2, &base);
    else if (len == 2)
        o = find_letter(targets, word[1], &base);
    if (!o) {
        if (eq) word[len] = '\0';
        return unknown(c, targets, word);
    }
    if (o->kind == CLI_FLAG || o->kind == CLI_ALONE) {
        if (eq) return cli_fail(c, OCT_ERR_ARG, "option --%s takes no value", o->name);
    } else if (!eq) {
        if (!argv[*i + 1])
            return cli_fail(c, OCT_ERR_ARG, "option --%s wants a value: --%s %s", o->name, o->name,
                            o->metavar);
        value = argv[++*i];
    }
    if (o->given) *(bool *)(void *)(base + o->given) = true;
    return store(c, o, base, value);
}

static bool is_folder(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

/* Checks the files before any work starts: most mistakes are found here. */
static oct_status check_file(cli *c, const cli_file *f, const char *path)
{
    struct stat sb;
    cli_near near;

    if (*path == '\0') return cli_fail(c, OCT_ERR_ARG, "%s is an empty name", f->name);
    if ((f->flags & CLI_FILE_DATA) &&
        (strcmp(path, "-") == 0 || strpbrk(path, "*?[") || is_folder(path)))
        return OCT_OK; /* registered with the guard by the command that opens it */
    if (f->flags & CLI_FILE_IN) {
        if (stat(path, &sb) == 0) {
            if (S_ISDIR(sb.st_mode))
                return cli_fail(c, OCT_ERR_ARG, "%s: is a folder, not a file", path);
        } else if (errno == ENOENT || errno == ENOTDIR) {
            return cli_fail(c, OCT_ERR_ARG, "%s: no such file%s", path, cli_near_file(&near, path));
        }
    }
    if (f->flags & CLI_FILE_OUT) return cli_writes(c, NULL, path);
    cli_reads(c, path);
    return OCT_OK;
}

/* The files that options name: inputs first, so that no output replaces one. */
static oct_status check_options(cli *c, const cli_opt *opts, const char *args, int role)
{
    oct_status st = OCT_OK;

    for (const cli_opt *o = opts; o->kind && !st; o++) {
        if (o->role != role) continue;
        const char *const *word = (const void *)(args + o->offset);
        const cli_list *list = (const void *)(args + o->offset);
        const int n = o->kind == CLI_LIST ? list->n : *word != NULL;
        char option[64];

        (void)snprintf(option, sizeof(option), "--%s", o->name);
        for (int i = 0; i < n && !st; i++) {
            const char *path = o->kind == CLI_LIST ? list->items[i] : *word;

            if (role == CLI_READS)
                cli_reads(c, path);
            else
                st = cli_writes(c, option, path);
        }
    }
    return st;
}

static oct_status check_files(cli *c, const cli_command *cmd, char **files)
{
    const cli_file *f = cmd->files;
    char usage[256];
    int n = 0;

    cli_usage_line(cmd, usage, sizeof(usage));
    for (; f->name; f++) {
        if (!files[n] && (f->flags & CLI_FILE_MAYBE)) return OCT_OK;
        if (!files[n]) return cli_fail(c, OCT_ERR_ARG, "%s is missing; usage: %s", f->name, usage);
        do {
            const oct_status st = check_file(c, f, files[n]);

            if (st) {
                c->hint_help = false;
                return st;
            }
            n++;
        } while ((f->flags & CLI_FILE_MANY) && files[n]);
    }
    if (files[n])
        return cli_fail(c, OCT_ERR_ARG, "'%s' is one word too many; usage: %s", files[n], usage);
    return OCT_OK;
}

static oct_status set_defaults(cli *c, const target *targets)
{
    for (const target *t = targets; t->opts; t++)
        for (const cli_opt *o = t->opts; o->kind; o++)
            if (o->def) {
                const oct_status st = store(c, o, t->base, o->def);

                if (st) return st;
            }
    return OCT_OK;
}

static bool alone_given(const cli_command *cmd, const char *args)
{
    for (const cli_opt *o = cmd->opts; o->kind; o++)
        if (o->kind == CLI_ALONE && *(const bool *)(const void *)(args + o->offset)) return true;
    return false;
}

oct_status cli_parse(cli *c, const cli_command *cmd, int argc, char **argv, void *args,
                     char ***files)
{
    const target targets[] = {{cmd->opts, args}, {cli_common_opts(), (char *)&c->opt}, {0}};
    char **words = cli_alloc((size_t)argc + 1, sizeof(*words));
    bool only_files = false;
    oct_status st;
    int n = 0;

    *files = words;
    c->cmd = cmd;
    c->hint_help = true;
    if ((st = set_defaults(c, targets))) return st;
    for (int i = 0; i < argc; i++) {
        if (only_files || argv[i][0] != '-' || argv[i][1] == '\0')
            words[n++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_files = true;
        else if ((st = option(c, targets, argv, &i)))
            return st;
    }
    if (c->opt.help || alone_given(cmd, args)) return OCT_OK;
    (void)check_options(c, cmd->opts, args, CLI_READS);
    if ((st = check_files(c, cmd, words))) return st;
    st = check_options(c, cmd->opts, args, CLI_WRITES);
    if (st) c->hint_help = false;
    return st;
}

void cli_parse_free(const cli_command *cmd, void *args, char **files)
{
    for (const cli_opt *o = cmd->opts; args && o->kind; o++)
        if (o->kind == CLI_LIST) {
            cli_list *list = (void *)((char *)args + o->offset);

            free(list->items);
        }
    free(args);
    free(files);
}
