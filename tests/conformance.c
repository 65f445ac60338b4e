/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs ONNX backend tests: folders with model.onnx and test_data_set_*, or bare *.onnx files with
 * *_output_N.pb beside them, fed with 0, 1/n, 2/n, ...
 *
 *   conformance DIR [--filter SUBSTR] [--plain | --plan] [--least PASSED] [-v]
 *
 * Each case runs in a child process, on plain kernels (unless --plan) and through a plan (unless
 * --plain).
 * passed: all outputs have the type, shape and values expected. skipped: refused, before anything
 * runs, with a reason that names a node, or listed below as expecting what the standard forbids.
 * failed: everything else, crashes and hangs included.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <octet/octet.h>

#include "graph/op.h"
#include "onnx/onnx.h"

#define RTOL 1e-3
#define ATOL 1e-7

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 5
#else
#define SLOWER 1
#endif
#define SECONDS       (10 * SLOWER) /* for one case; bare files hold whole networks */
#define SECONDS_LARGE (120 * SLOWER)

enum { MAX_VALUES = 64, TEXT = 1024 };

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

typedef struct options {
    const char *dir, *filter;
    bool plain, plan, verbose;
    int least; /* cases that must pass: a case that is skipped must not go unnoticed */
} options;

/*
 * Cases that expect something else than the standard says. Their other elements are compared; they
 * never count as passed.
 */
static const struct {
    const char *name, *why;
} errata[] = {
    {"test_qlinearmatmul_2D_int8_float16", "expects -236 to wrap to 20, not to saturate"},
    {"test_qlinearmatmul_2D_int8_float32", "expects -236 to wrap to 20, not to saturate"},
    {"test_qlinearmatmul_3D_int8_float16", "expects -140 to wrap to 116, not to saturate"},
    {"test_qlinearmatmul_3D_int8_float32", "expects -139 to wrap to 117, not to saturate"},
};

/* One case as its child process sees it. */
typedef struct run_case {
    oct_ctx *ctx;
    oct_graph *g;
    char path[TEXT];     /* the model */
    char stem[2 * TEXT]; /* bare files: the path without .onnx; folders: the data set */
    bool is_bare;
    bool plain_only, plan_only;
    bool zero_norm;      /* recorded as 0 / 0, before the text of LpNormalization said 0 */
    const char *erratum; /* why int8 limits are right where something else is expected; NULL */
    bool is_random;      /* no two libraries draw the same numbers: only types can be compared */
    char why[TEXT];
} run_case;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static verdict
say(run_case *c, verdict v, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(c->why, sizeof(c->why), fmt, args);
    va_end(args);
    return v;
}

/* A refusal must say that octet cannot do it, and name the node. */
static verdict refused(run_case *c, oct_status st)
{
    const char *why = oct_ctx_error(c->ctx);
    const bool is_refusal = st == OCT_ERR_UNSUPPORTED && strstr(why, "node '");

    return say(c, is_refusal ? SKIPPED : FAILED, "load: %s", why);
}

/* --- comparing --- */

static bool close_to(double got, double want)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= ATOL + RTOL * fabs(want);
}

static bool same_strings(const oct_tensor *a, const oct_tensor *b, int64_t n, int64_t *at)
{
    const oct_string *x = a->data, *y = b->data;

    for (*at = 0; *at < n; ++*at)
        if (x[*at].len != y[*at].len || (x[*at].len && memcmp(x[*at].s, y[*at].s, x[*at].len) != 0))
            return false;
    return true;
}

/* Complex numbers are twice as many real ones. */
static bool same_numbers(const run_case *c, oct_dtype t, const oct_tensor *a, const oct_tensor *b,
                         int64_t n, int64_t *at)
{
    for (*at = 0; *at < n; ++*at) {
        if (oct_dtype_is_float(t)) {
            double x, y;

            oct_load_f64(t, a->data, *at, 1, &x);
            oct_load_f64(t, b->data, *at, 1, &y);
            if (!close_to(x, y) && !(c->zero_norm && x == 0 && isnan(y))) return false;
        } else {
            int64_t x, y;

            oct_load_i64(t, a->data, *at, 1, &x);
            oct_load_i64(t, b->data, *at, 1, &y);
            if (x != y && !(c->erratum && (x == INT8_MIN || x == INT8_MAX))) return false;
        }
    }
    return true;
}

static verdict compare(run_case *c, const char *name, const char *how, const oct_tensor *got,
                       const oct_tensor *want)
{
    char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];
    oct_dtype t = want->type.dtype;
    int64_t n = oct_type_len(&want->type), at = 0;
    bool same;

    if (!oct_type_equal(&got->type, &want->type))
        return say(c, FAILED, "%s: output '%s' is %s, expected %s", how, name,
                   oct_type_text(&got->type, a), oct_type_text(&want->type, b));
    if (c->is_random) return PASSED;
    if (t == OCT_DTYPE_C64 || t == OCT_DTYPE_C128) {
        t = t == OCT_DTYPE_C64 ? OCT_DTYPE_F32 : OCT_DTYPE_F64;
        n *= 2;
    }
    same = t == OCT_DTYPE_STRING ? same_strings(got, want, n, &at)
                                 : same_numbers(c, t, got, want, n, &at);
    if (same) return PASSED;
    if (t == OCT_DTYPE_STRING)
        return say(c, FAILED, "%s: output '%s' differs at %lld", how, name, (long long)at);
    double x, y;
    oct_load_f64(t, got->data, at, 1, &x);
    oct_load_f64(t, want->data, at, 1, &y);
    return say(c, FAILED, "%s: output '%s' is %.9g at %lld of %lld, expected %.9g", how, name, x,
               (long long)at, (long long)n, y);
}

/* --- inputs and expected outputs --- */

typedef struct data_set {
    oct_tensor *in[MAX_VALUES], *want[MAX_VALUES], *got[MAX_VALUES];
} data_set;

static void drop(data_set *d)
{
    for (int i = 0; i < MAX_VALUES; i++) {
        oct_tensor_unref(d->in[i]);
        oct_tensor_unref(d->want[i]);
        oct_tensor_unref(d->got[i]);
    }
    *d = (data_set){{NULL}, {NULL}, {NULL}};
}

/* 0, 1/n, 2/n, ... as ONNX's own runner feeds networks without inputs. */
static oct_status make_ramp(run_case *c, const oct_value *v, oct_tensor **out)
{
    oct_type t = v->type;
    int64_t n;

    for (int32_t d = 0; d < t.rank; d++)
        if (t.dim[d] < 0) t.dim[d] = 1;
    OCT_TRY(oct_tensor_make(c->ctx, &t, out));
    n = oct_type_len(&t);
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)i / (double)n;
        oct_store_f64(t.dtype, (*out)->data, i, 1, &x);
    }
    return OCT_OK;
}

static verdict read_file(run_case *c, const char *kind, int i, oct_tensor **out)
{
    char path[3 * TEXT];

    snprintf(path, sizeof(path), "%s%s%s_%d.pb", c->stem, c->is_bare ? "_" : "/", kind, i);
    if (oct_onnx_read_tensor(c->ctx, path, out))
        return say(c, FAILED, "cannot read %s: %s", path, oct_ctx_error(c->ctx));
    return PASSED;
}

static verdict read_data(run_case *c, data_set *d)
{
    verdict v = PASSED;

    if (c->g->n_inputs > MAX_VALUES || c->g->n_outputs > MAX_VALUES)
        return say(c, FAILED, "more than %d inputs or outputs", MAX_VALUES);
    for (int i = 0; i < c->g->n_inputs && !v; i++) {
        if (!c->is_bare)
            v = read_file(c, "input", i, &d->in[i]);
        else if (make_ramp(c, c->g->inputs[i], &d->in[i]))
            v = say(c, FAILED, "input %d: %s", i, oct_ctx_error(c->ctx));
    }
    for (int i = 0; i < c->g->n_outputs && !v; i++)
        v = read_file(c, "output", i, &d->want[i]);
    return v;
}

/* --- running --- */

/* Sequences and optionals are kept, but have no tensors to run on. */
static const oct_value *not_tensor(const oct_graph *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->raw_type) return g->inputs[i];
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i]->raw_type) return g->outputs[i];
    return NULL;
}

/* The first node that octet can only keep, in the bodies too. */
static const oct_node *find_opaque(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next) {
        if (oct_op_is_opaque(n->op)) return n;
        for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
            const oct_node *inner =
                n->attr[i].kind == OCT_ATTR_GRAPH ? find_opaque(n->attr[i].g) : NULL;

            if (inner) return inner;
        }
    }
    return NULL;
}

static bool has_random(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (n->op->flags & OCT_OP_RANDOM) return true;
    return false;
}

static verdict check_supported(run_case *c)
{
    const oct_node *n = find_opaque(c->g);
    const oct_value *v = not_tensor(c->g);

    c->is_random = has_random(c->g);
    if (n)
        return say(c, SKIPPED, "node '%s' (%s): octet cannot run this operator", n->name,
                   n->op->name);
    if (v) {
        n = v->producer ? v->producer : v->n_users ? v->users[0] : c->g->first;
        return say(c, SKIPPED, "node '%s' (%s): '%s' is not a tensor", n ? n->name : "?",
                   n ? n->op->name : "?", v->name);
    }
    return PASSED;
}

static verdict run_plain(run_case *c, data_set *d)
{
    verdict v = PASSED;

    if (oct_graph_eval(c->g, d->in, d->got, NULL))
        return say(c, FAILED, "plain: %s", oct_ctx_error(c->ctx));
    for (int i = 0; i < c->g->n_outputs && !v; i++)
        v = compare(c, c->g->outputs[i]->name, "plain", d->got[i], d->want[i]);
    return v;
}

static verdict execute(run_case *c, data_set *d, oct_plan *p)
{
    oct_run *r = NULL;
    verdict v = PASSED;

    if (oct_run_new(c->ctx, p, &r)) v = say(c, FAILED, "plan: %s", oct_ctx_error(c->ctx));
    for (int i = 0; i < c->g->n_inputs && !v; i++)
        if (oct_run_set_input(r, c->g->inputs[i]->name, d->in[i]))
            v = say(c, FAILED, "plan: %s", oct_ctx_error(c->ctx));
    if (!v && oct_run_execute(r)) v = say(c, FAILED, "plan: %s", oct_ctx_error(c->ctx));
    for (int i = 0; i < c->g->n_outputs && !v; i++) {
        const oct_tensor *got;

        if (oct_run_output(r, i, &got))
            v = say(c, FAILED, "plan: %s", oct_ctx_error(c->ctx));
        else
            v = compare(c, c->g->outputs[i]->name, "plan", got, d->want[i]);
    }
    oct_run_free(r);
    return v;
}

/* The plan is made for the shapes of this data set. */
static verdict run_plan(run_case *c, data_set *d)
{
    oct_plan *p = NULL;
    oct_status st = OCT_OK;
    verdict v;

    for (int i = 0; i < c->g->n_inputs && !st; i++)
        st = oct_graph_set_input_shape(c->g, c->g->inputs[i]->name, d->in[i]->type.rank,
                                       d->in[i]->type.dim);
    if (!st) st = oct_plan_new(c->g, NULL, &p);
    v = st ? say(c, FAILED, "plan: %s", oct_ctx_error(c->ctx)) : execute(c, d, p);
    oct_plan_free(p);
    return v;
}
static verdict run_data(run_case *c)
{
    data_set d = {{NULL}, {NULL}, {NULL}};
    verdict v = read_data(c, &d);

    if (!v && !c->plan_only) v = run_plain(c, &d);
    if (!v && !c->plain_only) v = run_plan(c, &d);
    drop(&d);
    return v;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_data_set(const struct dirent *e)
{
    return strncmp(e->d_name, "test_data_set_", 14) == 0;
}

static verdict run_sets(run_case *c, const char *folder)
{
    struct dirent **sets = NULL;
    const int n = scandir(folder, &sets, is_data_set, by_name);
    verdict v = n > 0 ? PASSED : say(c, FAILED, "has no test_data_set");

    for (int i = 0; i < n; i++) {
        if (!v) {
            snprintf(c->stem, sizeof(c->stem), "%s/%s", folder, sets[i]->d_name);
            v = run_data(c);
        }
        free(sets[i]);
    }
    free(sets);
    return v;
}

/* The whole case, in the child. */
static verdict run_one(run_case *c, const char *folder)
{
    oct_status st;
    verdict v;

    if (!(c->ctx = oct_ctx_new(NULL))) return say(c, FAILED, "no memory");
    st = oct_onnx_load(c->ctx, c->path, &c->g);
    v = st ? refused(c, st) : check_supported(c);
    if (!v) v = c->is_bare ? run_data(c) : run_sets(c, folder);
    if (!v && c->erratum) v = say(c, SKIPPED, "%s", c->erratum);
    oct_graph_free(c->g);
    oct_ctx_free(c->ctx);
    return v;
}

/* --- all cases --- */

static void run_child(const options *o, const char *path, const char *stem, bool is_bare, int out)
{
    run_case c = {.is_bare = is_bare, .plain_only = o->plain, .plan_only = o->plan};
    verdict v;

    alarm(is_bare ? SECONDS_LARGE : SECONDS);
    for (size_t i = 0; i < OCT_COUNT(errata); i++)
        if (strstr(stem, errata[i].name)) c.erratum = errata[i].why;
    c.zero_norm = strstr(stem, "l2normalization_axis_0") != NULL;
    snprintf(c.path, sizeof(c.path), "%s", path);
    snprintf(c.stem, sizeof(c.stem), "%s", stem);
    v = run_one(&c, stem);
    if (write(out, c.why, strlen(c.why)) < 0) v = FAILED;
    close(out);
    exit((int)v); /* through exit, so that leaks are found */
}

/* Starts a child for the case and collects what it says. */
static verdict judge(const options *o, const char *path, const char *stem, bool is_bare, char *why,
                     size_t size)
{
    size_t used = 0;
    int fd[2], status = 0;
    ssize_t got;
    pid_t pid;

    if (pipe(fd) || (pid = fork()) < 0) {
        snprintf(why, size, "cannot start a process");
        return FAILED;
    }
    if (pid == 0) {
        close(fd[0]);
        run_child(o, path, stem, is_bare, fd[1]);
    }
    close(fd[1]);
    while (used + 1 < size && (got = read(fd[0], why + used, size - 1 - used)) > 0)
        used += (size_t)got;
    why[used] = 0;
    close(fd[0]);
    if (waitpid(pid, &status, 0) < 0) return FAILED;
    if (WIFSIGNALED(status)) {
        snprintf(why, size, WTERMSIG(status) == SIGALRM ? "hangs" : "crashes with signal %d",
                 WTERMSIG(status));
        return FAILED;
    }
    if (WEXITSTATUS(status) <= SKIPPED) return (verdict)WEXITSTATUS(status);
    snprintf(why, size, "exit status %d (a sanitizer's report?)", WEXITSTATUS(status));
    return FAILED;
}

static verdict run_entry(const options *o, const char *name)
{
    static const char *const words[] = {"PASS", "FAIL", "SKIP"};
    const size_t len = strlen(name);
    const bool is_bare = len > 5 && strcmp(name + len - 5, ".onnx") == 0;
    char path[TEXT], stem[TEXT], why[TEXT] = "";
    verdict v;

    if (is_bare) {
        snprintf(path, sizeof(path), "%s/%s", o->dir, name);
        snprintf(stem, sizeof(stem), "%s/%.*s", o->dir, (int)(len - 5), name);
    } else {
        snprintf(path, sizeof(path), "%s/%s/model.onnx", o->dir, name);
        snprintf(stem, sizeof(stem), "%s/%s", o->dir, name);
    }
    v = judge(o, path, stem, is_bare, why, sizeof(why));
    if (v == FAILED || o->verbose) printf("%s %s: %s\n", words[v], name, why);
    fflush(stdout);
    return v;
}

/* Folders with a model, and bare models. */
static bool is_case(const options *o, const char *name)
{
    const size_t len = strlen(name);
    char path[TEXT];
    struct stat st;

    if (name[0] == '.' || (o->filter && !strstr(name, o->filter))) return false;
    if (len > 5 && strcmp(name + len - 5, ".onnx") == 0) return true;
    snprintf(path, sizeof(path), "%s/%s/model.onnx", o->dir, name);
    return stat(path, &st) == 0;
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plain") == 0)
            o->plain = true;
        else if (strcmp(argv[i], "--plan") == 0)
            o->plan = true;
        else if (strcmp(argv[i], "-v") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            o->filter = argv[++i];
        else if (strcmp(argv[i], "--least") == 0 && i + 1 < argc)
            o->least = atoi(argv[++i]);
        else if (argv[i][0] != '-' && !o->dir)
            o->dir = argv[i];
        else
            return false;
    }
    return o->dir && !(o->plain && o->plan);
}

int main(int argc, char **argv)
{
    options o = {0};
    struct dirent **entries = NULL;
    int count[3] = {0, 0, 0}, n;

    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: conformance DIR [--filter SUBSTR] [--plain | --plan] "
                        "[--least PASSED] [-v]\n");
        return 2;
    }
    if ((n = scandir(o.dir, &entries, NULL, by_name)) < 0) {
        perror(o.dir);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        if (is_case(&o, entries[i]->d_name)) count[run_entry(&o, entries[i]->d_name)]++;
        free(entries[i]);
    }
    free(entries);
    printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    if (count[PASSED] < o.least) printf("fewer than the %d that passed before\n", o.least);
    return count[FAILED] || count[PASSED] < o.least ? 1 : 0;
}
