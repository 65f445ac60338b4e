/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that once crashed, hung or gave wrong numbers: loads each, simplifies it, plans it and
 * runs it, in one process. What it gives is compared three ways where plain kernels can compute it
 * within limits: as it is, simplified, and by the plan. A refusal must come with its reason.
 *
 *   faults [--no-plan] DIR [FILTER]     inputs from NAME.npz beside NAME.onnx, else random numbers
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#include "base/ctx.h"
#include "base/rng.h"
#include "data/npz.h"
#include "graph/op.h"

enum { MAX_VALUES = 16 };

#define MEMORY ((size_t)1 << 30)
#define WORK   ((int64_t)1 << 29) /* of a node: a second or two, with sanitizers more */

typedef struct job {
    const char *name; /* of the file, without folder and ending */
    char path[4096];
    oct_ctx *ctx;
    oct_graph *g;
    int64_t channels; /* what an open second dim is tried with */
    oct_tensor *in[MAX_VALUES];
    int n_failed;
} job;

static void fail(job *j, const char *what, const char *why)
{
    printf("FAIL %s: %s: %s\n", j->name, what, why);
    fflush(stdout);
    j->n_failed++;
}

/* A refusal is fine, if it says why. */
static bool succeeds(job *j, const char *what, oct_status st)
{
    if (!st) return true;
    if (!j->ctx->error[0]) fail(j, what, "refused without a reason");
    printf("     %s: %s refused: %.200s\n", j->name, what, j->ctx->error);
    return false;
}

/* --- inputs --- */

static oct_status random_tensor(job *j, const oct_type *t, oct_rng *r, oct_tensor **out)
{
    const int64_t n = oct_type_len(t);

    OCT_TRY(oct_tensor_make(j->ctx, t, out));
    for (int64_t i = 0; i < n && oct_dtype_get(t->dtype)->kind != OCT_DKIND_OTHER; i++) {
        const double f = 4 * oct_rng_f64(r) - 2;
        const int64_t k = (int64_t)oct_rng_below(r, 3);

        if (oct_dtype_is_float(t->dtype))
            oct_store_f64(t->dtype, (*out)->data, i, 1, &f);
        else
            oct_store_i64(t->dtype, (*out)->data, i, 1, &k);
    }
    return OCT_OK;
}

static bool type_fits(const oct_type *have, const oct_type *want)
{
    if (have->dtype != want->dtype || have->rank != want->rank) return false;
    for (int d = 0; d < want->rank; d++)
        if (want->dim[d] >= 0 && have->dim[d] != want->dim[d]) return false;
    return true;
}

/* The array of this name; its first item, if it holds several for a batch of one. */
static oct_tensor *saved_tensor(job *j, oct_npz *z, const char *name, const oct_type *want)
{
    oct_tensor *t = NULL, *one = NULL;
    oct_type type;

    for (size_t i = 0; z && i < oct_npz_count(z) && !t; i++)
        if (strcmp(oct_npz_name(z, i), name) == 0 && oct_npz_read(z, i, &t)) t = NULL;
    if (!t || type_fits(&t->type, want)) return t;
    type = t->type;
    if (type.rank > 0 && type.dim[0] > 1) type.dim[0] = 1;
    if (type_fits(&type, want) && !oct_tensor_make(j->ctx, &type, &one))
        memcpy(one->data, t->data, one->size);
    oct_tensor_unref(t);
    return one;
}

static void drop_inputs(job *j)
{
    for (int i = 0; i < MAX_VALUES; i++) {
        oct_tensor_unref(j->in[i]);
        j->in[i] = NULL;
    }
}

static oct_status make_inputs(job *j)
{
    char path[4096 + 8];
    oct_npz *z = NULL;
    oct_status st = OCT_OK;
    oct_rng r;

    drop_inputs(j);
    oct_rng_init(&r, 5);
    snprintf(path, sizeof(path), "%.*s.npz", (int)(strlen(j->path) - 5), j->path);
    if (oct_npz_open(j->ctx, path, &z)) z = NULL;
    for (int32_t i = 0; i < j->g->n_inputs && !st; i++) {
        oct_type t = j->g->inputs[i]->type;

        j->in[i] = saved_tensor(j, z, j->g->inputs[i]->name, &t);
        for (int d = 0; d < t.rank; d++)
            if (t.dim[d] < 0) t.dim[d] = d == 0 ? 1 : d == 1 ? j->channels : 5 + 2 * d;
        if (!j->in[i]) st = random_tensor(j, &t, &r, &j->in[i]);
    }
    oct_npz_close(z);
    return st;
}

/* --- comparing --- */

static void compare(job *j, const char *what, const oct_tensor *a, const oct_tensor *b, double tol)
{
    const int64_t n = oct_tensor_len(a);
    const bool is_float = oct_dtype_is_float(a->type.dtype);
    double largest = 0, error = 0;
    char text[160];

    if (!oct_type_equal(&a->type, &b->type)) {
        fail(j, what, "another type or shape");
        return;
    }
    for (int64_t i = 0; i < n && oct_dtype_get(a->type.dtype)->kind != OCT_DKIND_OTHER; i++) {
        const double x = oct_tensor_get_f64(a, i), y = oct_tensor_get_f64(b, i);

        if (x == y || (isnan(x) && isnan(y))) continue;
        error = isnan(x) || isnan(y) ? INFINITY : fmax(error, fabs(x - y));
        if (isfinite(x)) largest = fmax(largest, fabs(x));
    }
    if (error <= (is_float ? tol * largest : 1)) return; /* a code may round the other way */
    snprintf(text, sizeof(text), "off by %g of %g", error, largest);
    fail(j, what, text);
}

static bool has_codes(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (strstr(n->op->name, "QuantizeLinear") || strncmp(n->op->name, "QLinear", 7) == 0)
            return true;
    return false;
}

static oct_status evaluate(job *j, const oct_graph *g, oct_tensor **out)
{
    return oct_graph_eval(g, j->in, out, NULL);
}

/* With inputs that fit: what an open number of channels is, only the weights know. */
static bool evaluate_original(job *j, oct_tensor **out)
{
    static const int64_t channels[] = {3, 4, 8, 16, 1, 2, 5, 6, 32};
    oct_status st = OCT_ERR_STATE;

    for (size_t i = 0; i < OCT_COUNT(channels) && st; i++) {
        j->channels = channels[i];
        st = make_inputs(j);
        if (!st) st = evaluate(j, j->g, out);
        if (st != OCT_ERR_SHAPE) break;
    }
    return succeeds(j, "plain evaluation", st);
}

static void check_simplified(job *j, oct_tensor *const *want)
{
    oct_tensor *got[MAX_VALUES] = {NULL};
    oct_graph *g = NULL;
    bool ok = succeeds(j, "clone", oct_graph_clone(j->g, &g));

    ok = ok && succeeds(j, "simplify", oct_graph_simplify(g, NULL));
    if (ok && want) {
        ok = succeeds(j, "simplified evaluation", evaluate(j, g, got));
        if (!ok) fail(j, "simplified", "cannot be computed any more");
        for (int32_t i = 0; ok && i < g->n_outputs; i++)
            compare(j, "simplified", want[i], got[i], 1e-4);
    }
    for (int32_t i = 0; i < MAX_VALUES; i++)
        oct_tensor_unref(got[i]);
    oct_graph_free(g);
}

static oct_status run_plan(job *j, const oct_plan *p, oct_run *r, oct_tensor *const *want)
{
    const double tol = has_codes(j->g) ? 0.05 : 1e-3;

    for (int32_t i = 0; i < j->g->n_inputs; i++)
        if (want) OCT_TRY(oct_run_set_input(r, j->g->inputs[i]->name, j->in[i]));
    OCT_TRY(oct_run_execute(r));
    for (int32_t i = 0; i < oct_plan_n_outputs(p); i++) {
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(r, i, &t));
        if (want) compare(j, "plan", want[i], t, tol);
    }
    return OCT_OK;
}

static void check_plan(job *j, oct_tensor *const *want, bool simulate)
{
    oct_plan_options o;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    bool ok = true;

    oct_plan_options_init(&o);
    o.simulate = simulate;
    for (int32_t i = 0; want && i < j->g->n_inputs && ok; i++)
        ok = succeeds(j, "shapes",
                      oct_graph_set_input_shape(j->g, j->g->inputs[i]->name, j->in[i]->type.rank,
                                                j->in[i]->type.dim));
    ok = ok && succeeds(j, "plan", oct_plan_new(j->g, &o, &p));
    ok = ok && succeeds(j, "run", oct_run_new(j->ctx, p, &r));
    if (ok) (void)succeeds(j, "run", run_plan(j, p, r, want));
    oct_run_free(r);
    oct_plan_free(p);
}

static int check_file(const char *folder, const char *file, bool plans)
{
    char name[256];
    job j = {.name = name, .ctx = oct_ctx_new(NULL)};
    oct_tensor *want[MAX_VALUES] = {NULL};
    bool known;

    snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - 5), file);
    snprintf(j.path, sizeof(j.path), "%s/%s", folder, file);
    printf("     %s\n", name); /* the last line, if it does not come back */
    fflush(stdout);
    oct_ctx_set_memory_limit(j.ctx, MEMORY);
    oct_ctx_set_work_limit(j.ctx, WORK);
    oct_ctx_set_threads(j.ctx, 1);
    if (succeeds(&j, "load", oct_onnx_load(j.ctx, j.path, &j.g)) && j.g->n_inputs <= MAX_VALUES &&
        j.g->n_outputs <= MAX_VALUES) {
        known = evaluate_original(&j, want);
        check_simplified(&j, known ? want : NULL);
        for (int simulate = 0; plans && simulate < 2; simulate++)
            check_plan(&j, known ? want : NULL, simulate);
    }
    for (int32_t i = 0; i < MAX_VALUES; i++)
        oct_tensor_unref(want[i]);
    drop_inputs(&j);
    oct_graph_free(j.g);
    if (atomic_load(&j.ctx->mem_used)) fail(&j, "end", "memory is left");
    oct_ctx_free(j.ctx);
    return j.n_failed;
}

int main(int argc, char **argv)
{
    const bool plans = argc < 2 || strcmp(argv[1], "--no-plan") != 0;
    struct dirent **entries = NULL;
    int n, n_files = 0, n_failed = 0;

    if (!plans) argc--, argv++;
    if (argc < 2 || (n = scandir(argv[1], &entries, NULL, alphasort)) < 0) {
        fprintf(stderr, "usage: faults [--no-plan] DIR [FILTER]\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        const char *file = entries[i]->d_name, *dot = strrchr(file, '.');

        if (dot && strcmp(dot, ".onnx") == 0 && (argc < 3 || strstr(file, argv[2]))) {
            n_failed += check_file(argv[1], file, plans);
            n_files++;
        }
        free(entries[i]);
    }
    free(entries);
    printf("faults: %d files, %d failures\n", n_files, n_failed);
    return n_failed || !n_files ? 1 : 0;
}
