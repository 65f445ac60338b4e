/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's backend tests with operands and attributes changed at random. The answer does not matter:
 * there must be one, or a refusal, within a time, and no report of a sanitizer.
 *
 *   wild DIR [ROUNDS] [FILTER]
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <octet/octet.h>

#include "base/rng.h"
#include "graph/op.h"
#include "onnx/onnx.h"
#include "tests/odd.h"

enum { MAX_VALUES = 64, TEXT = 1024, ROUNDS = 20, SECONDS = 60 };

/* Another tensor of the same type, with a dim less, more, longer or empty. */
static void change_shape(oct_ctx *ctx, oct_rng *r, oct_tensor **t)
{
    oct_type type = (*t)->type;
    const int32_t d = type.rank ? (int32_t)oct_rng_below(r, (uint64_t)type.rank) : 0;
    oct_tensor *made = NULL;

    switch (oct_rng_below(r, 4)) {
    case 0:
        if (type.rank) type.rank--;
        break;
    case 1:
        if (type.rank < OCT_MAX_RANK) type.dim[type.rank++] = 1;
        break;
    case 2:
        if (type.rank) type.dim[d]++;
        break;
    default:
        if (type.rank) type.dim[d] = (int64_t)oct_rng_below(r, 2);
        break;
    }
    if (oct_tensor_make(ctx, &type, &made)) return;
    const int64_t n = OCT_MIN(oct_type_len(&type), oct_type_len(&(*t)->type));
    if (oct_dtype_size(type.dtype) && n)
        memcpy(made->data, (*t)->data, (size_t)n * oct_dtype_size(type.dtype));
    oct_tensor_unref(*t);
    *t = made;
}

static void change_type(oct_ctx *ctx, oct_rng *r, oct_tensor **t)
{
    static const oct_dtype types[] = {OCT_DTYPE_F32, OCT_DTYPE_F16, OCT_DTYPE_F64,  OCT_DTYPE_I8,
                                      OCT_DTYPE_U8,  OCT_DTYPE_I64, OCT_DTYPE_BOOL, OCT_DTYPE_I4};
    oct_tensor *made = NULL;

    if (oct_dtype_get((*t)->type.dtype)->kind == OCT_DKIND_OTHER) return;
    if (oct_tensor_cast(ctx, *t, types[oct_rng_below(r, OCT_COUNT(types))], &made)) return;
    oct_tensor_unref(*t);
    *t = made;
}

static void change(oct_graph *g, oct_rng *r, oct_tensor **in)
{
    oct_tensor **t = g->n_inputs ? &in[oct_rng_below(r, (uint64_t)g->n_inputs)] : NULL;

    switch (oct_rng_below(r, 6)) {
    case 0:
        if (t) change_shape(g->ctx, r, t);
        break;
    case 1:
        if (t && oct_rng_below(r, 3) == 0) change_type(g->ctx, r, t);
        break;
    case 2:
    case 3:
        odd_attr(g, r);
        break;
    default:
        if (t) odd_element(r, *t);
        break;
    }
}

/* One case, once: with up to three changes. Exit status of the child on a bad refusal: 3. */
static int run_round(const char *folder, uint64_t seed)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *in[MAX_VALUES] = {NULL}, *out[MAX_VALUES] = {NULL};
    oct_graph *g = NULL;
    char path[2 * TEXT];
    oct_status st = OCT_OK;
    oct_rng r;
    int rc = 0;

    oct_rng_init(&r, seed);
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    oct_ctx_set_threads(ctx, 1);
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    if (oct_onnx_load(ctx, path, &g)) goto done;
    if (g->n_inputs > MAX_VALUES || g->n_outputs > MAX_VALUES) goto done;
    for (int i = 0; i < g->n_inputs && !st; i++) {
        snprintf(path, sizeof(path), "%s/test_data_set_0/input_%d.pb", folder, i);
        st = oct_onnx_read_tensor(ctx, path, &in[i]);
    }
    if (st) goto done; /* a sequence */
    for (uint64_t k = 1 + oct_rng_below(&r, 3); k; k--)
        change(g, &r, in);
    st = oct_graph_infer(g);
    if (!st) st = oct_graph_eval(g, in, out, NULL);
    if (st && st != OCT_ERR_MEMORY && !strstr(oct_ctx_error(ctx), "node '")) {
        fprintf(stderr, "refused without a node: %s\n", oct_ctx_error(ctx));
        rc = 3;
    }
    for (int i = 0; i < g->n_outputs && !st; i++)
        oct_tensor_unref(out[i]);
done:
    for (int i = 0; i < MAX_VALUES; i++)
        oct_tensor_unref(in[i]);
    oct_graph_free(g);
    oct_ctx_free(ctx);
    return rc;
}

/* All rounds of a case in one child. */
static bool run_case(const char *folder, const char *name, int rounds)
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        for (int i = 0; i < rounds; i++) {
            alarm(SECONDS);
            const int rc = run_round(folder, (uint64_t)i);
            if (rc) exit(rc);
        }
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    printf("FAIL %s: %s %d\n", name, WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    fflush(stdout);
    return false;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    struct dirent **entries = NULL;
    int n, n_run = 0, n_failed = 0;

    if (argc < 2 || (n = scandir(argv[1], &entries, NULL, by_name)) < 0) {
        fprintf(stderr, "usage: wild DIR [ROUNDS] [FILTER]\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char folder[TEXT];

        snprintf(folder, sizeof(folder), "%s/%s", argv[1], name);
        if (name[0] != '.' && (argc < 4 || strstr(name, argv[3]))) {
            n_run++;
            n_failed += !run_case(folder, name, rounds);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d cases, %d rounds each, %d failed\n", n_run, rounds, n_failed);
    return n_failed ? 1 : 0;
}
