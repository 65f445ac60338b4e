/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks through everything: written, read, simplified, compiled, run; every way must give
 * the plain kernels' answer. Odd networks only must not crash, hang, or be refused without a
 * reason.
 *
 *   random_graphs KIND FIRST COUNT              seeds FIRST.. of kind float, open, codes, corners,
 * odd random_graphs KIND FIRST COUNT --write DIR  leaves SEED.onnx with SEED.in.K.npy and
 * SEED.out.K.npy for comparison with other runtimes
 *
 * A seed is the same network everywhere. Networks run in a child process, which is started again
 * after one that killed it. The last line counts; exit status 1 if any failed.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/random/net.h"

enum { MAX_VALUES = 8, SECONDS = 60, MAX_DIED = 30 };

/* Shared with the child that does the work. */
typedef struct report {
    int64_t current; /* the seed at work */
    int n_equal, n_empty, n_failed;
} report;

typedef struct job {
    net_kind kind;
    const char *folder; /* where files are written */
    bool keep;          /* for other runtimes */
} job;

typedef struct one {
    const job *j;
    uint64_t seed;
    oct_ctx *ctx;
    net_types types;
    oct_graph *g; /* as read from the file */
    oct_tensor *in[MAX_VALUES], *want[MAX_VALUES];
    report *rep;
    bool failed;
} one;

static void complain(one *o, const char *fmt, ...) OCT_PRINTF(2, 3);

static void complain(one *o, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    printf("%s %llu: ", net_kind_name(o->j->kind), (unsigned long long)o->seed);
    vprintf(fmt, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    o->failed = true;
}

/* A refusal must have a reason; one of a valid network is a failure. */
static bool passed(one *o, const char *what, oct_status st)
{
    if (!st) return true;
    if (!*oct_ctx_error(o->ctx))
        complain(o, "%s: status %d without a reason", what, st);
    else if (o->j->kind != NET_ODD)
        complain(o, "%s: %s", what, oct_ctx_error(o->ctx));
    return false;
}

/* --- comparing --- */

/* Networks of codes may round ties another way, and a step goes on through later layers. */
typedef struct limits {
    double each, most; /* of the largest magnitude: for every element; for all but a few */
} limits;

static limits limits_of(const one *o, const oct_tensor *want)
{
    const bool is_code = !oct_dtype_is_float(want->type.dtype);

    if (o->j->kind == NET_FLOAT || o->j->kind == NET_OPEN) return (limits){2e-4, 2e-4};
    return is_code ? (limits){8, 1} : (limits){0.12, 0.03};
}

static double scale_of(const one *o, const oct_tensor *want)
{
    double top = o->j->kind == NET_FLOAT || o->j->kind == NET_OPEN ? 1e-3 : 0.2;

    if (!oct_dtype_is_float(want->type.dtype)) return 1;
    for (int64_t i = 0; i < oct_tensor_len(want); i++)
        if (isfinite(oct_tensor_get_f64(want, i)))
            top = fmax(top, fabs(oct_tensor_get_f64(want, i)));
    return top;
}

static void compare(one *o, const char *what, int k, const oct_tensor *got)
{
    const oct_tensor *want = o->want[k];
    const limits l = limits_of(o, want);
    const double top = scale_of(o, want);
    int64_t n_far = 0, len = oct_tensor_len(want), worst_at = -1;
    double worst = 0;

    if (!oct_type_equal(&got->type, &want->type)) {
        char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];

        complain(o, "%s: output %d is %s, want %s", what, k, oct_type_text(&got->type, a),
                 oct_type_text(&want->type, b));
        return;
    }
    for (int64_t i = 0; i < len; i++) {
        const double x = oct_tensor_get_f64(got, i), y = oct_tensor_get_f64(want, i);
        double e = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y) / top;

        if (!isfinite(e)) e = INFINITY;
        n_far += e > l.most;
        if (e > worst) {
            worst = e;
            worst_at = i;
        }
    }
    if (worst > l.each || n_far > len / 50 + 1)
        complain(o, "%s: output %d: %lld of %lld elements differ; element %lld is %.9g, want %.9g",
                 what, k, (long long)n_far, (long long)len, (long long)worst_at,
                 oct_tensor_get_f64(got, worst_at), oct_tensor_get_f64(want, worst_at));
}

/* --- the ways to an answer --- */

static void try_eval(one *o, const char *what, const oct_graph *g)
{
    oct_tensor *out[MAX_VALUES] = {NULL};

    if (passed(o, what, oct_graph_eval(g, o->in, out, NULL)) && o->want[0])
        for (int32_t k = 0; k < g->n_outputs; k++)
            compare(o, what, k, out[k]);
    for (int32_t k = 0; k < MAX_VALUES; k++)
        oct_tensor_unref(out[k]);
}

static void keep_outputs(one *o, oct_run *r)
{
    char path[512];

    for (int32_t k = 0; k < o->g->n_outputs; k++) {
        const oct_tensor *t = NULL;

        snprintf(path, sizeof(path), "%s/%llu.out.%d.npy", o->j->folder,
                 (unsigned long long)o->seed, k);
        if (!oct_run_output(r, k, &t)) passed(o, "npy", oct_tensor_save_npy(o->ctx, t, path));
    }
}

static oct_status run_once(one *o, const char *what, oct_run *r, bool is_default)
{
    for (int32_t i = 0; i < o->g->n_inputs; i++)
        OCT_TRY(oct_run_set_input(r, o->g->inputs[i]->name, o->in[i]));
    OCT_TRY(oct_run_execute(r));
    for (int32_t k = 0; k < o->g->n_outputs && o->want[0]; k++) {
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(r, k, &t));
        compare(o, what, k, t);
    }
    if (is_default && o->j->keep) keep_outputs(o, r);
    return OCT_OK;
}

static void try_plan(one *o, const char *what, bool simulate)
{
    oct_plan_options options;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    oct_plan_options_init(&options);
    options.simulate = simulate;
    options.n_threads = 1 + (int32_t)(o->seed % 2);
    if (passed(o, what, oct_plan_new(o->g, &options, &p)) &&
        passed(o, what, oct_run_new(o->ctx, p, &r)))
        passed(o, what, run_once(o, what, r, !simulate));
    oct_run_free(r);
    oct_plan_free(p);
}

static void try_simplified(one *o)
{
    oct_graph *copy = NULL;

    if (!passed(o, "copy", oct_graph_clone(o->g, &copy))) return;
    if (passed(o, "simplify", oct_graph_simplify(copy, NULL))) try_eval(o, "simplified", copy);
    oct_graph_free(copy);
}

/* --- one network --- */

static bool make_input(one *o, int i, oct_rng *r)
{
    const oct_type *type = &o->types.in[i];
    char path[512];

    if (oct_tensor_make(o->ctx, type, &o->in[i])) return false;
    for (int64_t k = 0; k < oct_type_len(type); k++) {
        const double f = oct_rng_f64(r) * 4 - 2;
        const int64_t v = (int64_t)oct_rng_below(r, 100);

        if (oct_dtype_is_float(type->dtype))
            oct_store_f64(type->dtype, o->in[i]->data, k, 1, &f);
        else
            oct_store_i64(type->dtype, o->in[i]->data, k, 1, &v);
    }
    if (!o->j->keep) return true;
    snprintf(path, sizeof(path), "%s/%llu.in.%d.npy", o->j->folder, (unsigned long long)o->seed, i);
    return passed(o, "npy", oct_tensor_save_npy(o->ctx, o->in[i], path));
}

/* Through a file, so that writing and reading are part of it. */
static bool make_network(one *o)
{
    oct_graph *made = net_make(o->ctx, o->j->kind, o->seed, &o->types);
    char path[512];
    bool ok;

    if (!made) return false;
    snprintf(path, sizeof(path), "%s/%llu.onnx", o->j->folder, (unsigned long long)o->seed);
    ok = passed(o, "write", oct_onnx_save(made, path, NULL)) &&
         passed(o, "read", oct_onnx_load(o->ctx, path, &o->g));
    oct_graph_free(made);
    if (!o->j->keep) unlink(path);
    return ok;
}

static bool make_inputs(one *o)
{
    oct_rng r;

    oct_rng_init(&r, o->seed);
    for (int32_t i = 0; i < o->g->n_inputs; i++)
        if (!make_input(o, i, &r)) return false;
    return true;
}

/* Everything that is done with a network. Simplified with the shapes it has; the rest with sizes.
 */
static void use(one *o)
{
    if (!passed(o, "plain", oct_graph_eval(o->g, o->in, o->want, NULL)) && o->j->kind != NET_ODD)
        return;
    if (o->j->kind == NET_ODD) { /* only that they end */
        for (int k = 0; k < MAX_VALUES; k++) {
            oct_tensor_unref(o->want[k]);
            o->want[k] = NULL;
        }
    }
    try_simplified(o);
    for (int32_t i = 0; i < o->g->n_inputs; i++)
        if (!passed(o, "shape",
                    oct_graph_set_input_shape(o->g, o->g->inputs[i]->name, o->types.in[i].rank,
                                              o->types.in[i].dim)))
            return;
    try_plan(o, "plan", false);
    try_plan(o, "simulation", true);
}

static void check_seed(const job *j, uint64_t seed, report *rep)
{
    one o = {.j = j, .seed = seed, .rep = rep, .ctx = oct_ctx_new(NULL)};

    if (!o.ctx) abort();
    oct_ctx_set_memory_limit(o.ctx, (size_t)512 << 20);
    oct_ctx_set_threads(o.ctx, 1);
    if (make_network(&o)) {
        if (make_inputs(&o)) use(&o);
        rep->n_equal += !o.failed;
    } else {
        rep->n_empty++;
    }
    rep->n_failed += o.failed;
    for (int i = 0; i < MAX_VALUES; i++) {
        oct_tensor_unref(o.in[i]);
        oct_tensor_unref(o.want[i]);
    }
    oct_graph_free(o.g);
    oct_ctx_free(o.ctx);
}

/* --- all of them --- */

static void run_child(const job *j, int64_t from, int64_t to, report *rep)
{
    for (int64_t seed = from; seed < to; seed++) {
        rep->current = seed;
        alarm(SECONDS);
        check_seed(j, (uint64_t)seed, rep);
    }
    exit(0); /* not _exit: the leak checker looks now */
}

static int run_all(const job *j, int64_t first, int64_t end)
{
    report *rep =
        mmap(NULL, sizeof(*rep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int n_died = 0, status;

    if (rep == MAP_FAILED) return 2;
    for (int64_t at = first; at < end && n_died < MAX_DIED; at = rep->current + 1) {
        const pid_t child = fork();

        if (child == 0) run_child(j, at, end, rep);
        if (child < 0) return 2;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        n_died++;
        printf("%s %lld: %s %d\n", net_kind_name(j->kind), (long long)rep->current,
               WIFSIGNALED(status) ? "killed by signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fflush(stdout);
    }
    printf("%s: %lld networks: %d right, %d failed, %d died; %d seeds gave none\n",
           net_kind_name(j->kind), (long long)(end - first), rep->n_equal, rep->n_failed, n_died,
           rep->n_empty);
    /* a generator that makes nothing tests nothing */
    return rep->n_failed || n_died || rep->n_empty > (end - first) / 2 ? 1 : 0;
}

int main(int argc, char **argv)
{
    char own[] = "/tmp/octet-random-XXXXXX";
    job j = {.kind = N_NET_KINDS};
    int status;

    for (net_kind k = 0; k < N_NET_KINDS && argc >= 4; k++)
        if (strcmp(argv[1], net_kind_name(k)) == 0) j.kind = k;
    if (j.kind == N_NET_KINDS || (argc > 4 && (argc != 6 || strcmp(argv[4], "--write") != 0))) {
        fprintf(stderr,
                "usage: random_graphs float|open|codes|corners|odd FIRST COUNT [--write DIR]\n");
        return 2;
    }
    j.keep = argc > 4;
    j.folder = j.keep ? argv[5] : mkdtemp(own);
    if (!j.folder) {
        perror(own);
        return 2;
    }
    status = run_all(&j, atoll(argv[2]), atoll(argv[2]) + atoll(argv[3]));
    if (!j.keep) rmdir(own);
    return status;
}
