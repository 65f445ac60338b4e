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

enum { MAX_VALUES = 64, TEXT = 1024, ROUNDS = 20, SECONDS = 60 };

static int64_t odd_int(oct_rng *r)
{
    static const int64_t v[] = {0,  1, 2,   -1,      3,         4,         -2,
                                -3, 7, 100, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};

    return v[oct_rng_below(r, oct_rng_below(r, 4) ? 9 : OCT_COUNT(v))];
}

static double odd_number(oct_rng *r)
{
    static const double v[] = {0, 1, -1, 0.5, 1e-30, 1e30, -1e30, 1e300 * 1e300, 0.0 / 1e300};

    return v[oct_rng_below(r, OCT_COUNT(v))];
}

/* One element becomes odd. */
static void change_element(oct_rng *r, oct_tensor *t)
{
    const int64_t n = oct_type_len(&t->type);
    const double f = odd_number(r);
    const int64_t v = odd_int(r);
    void *data = n > 0 && oct_dtype_get(t->type.dtype)->kind != OCT_DKIND_OTHER
                     ? oct_tensor_mutable(t)
                     : NULL;

    if (!data) return;
    const int64_t at = (int64_t)oct_rng_below(r, (uint64_t)n);
    if (oct_dtype_is_float(t->type.dtype))
        oct_store_f64(t->type.dtype, data, at, 1, &f);
    else
        oct_store_i64(t->type.dtype, data, at, 1, &v);
}

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

/* One number of one attribute of one node becomes odd. */
static void change_attr(oct_graph *g, oct_rng *r)
{
    oct_node *n = g->first;
    oct_attr *a;
    int64_t list[32];

    for (uint64_t k = oct_rng_below(r, (uint64_t)OCT_MAX(g->n_nodes, 1)); k && n; k--)
        n = n->next;
    if (!n || !oct_op_n_attrs(n->op)) return;
    const int i = (int)oct_rng_below(r, (uint64_t)oct_op_n_attrs(n->op));
    a = &n->attr[i];
    if (a->kind == OCT_ATTR_INT) oct_node_set_int(n, n->op->attrs[i].name, odd_int(r));
    if (a->kind == OCT_ATTR_F32) oct_node_set_f32(n, n->op->attrs[i].name, (float)odd_number(r));
    if (a->kind == OCT_ATTR_INTS && a->n > 0 && a->n <= 32) {
        memcpy(list, a->is, (size_t)a->n * sizeof(*list));
        list[oct_rng_below(r, (uint64_t)a->n)] = odd_int(r);
        oct_node_set_ints(n, n->op->attrs[i].name, list,
                          a->n - (oct_rng_below(r, 8) == 0 && a->n > 1));
    }
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
        change_attr(g, r);
        break;
    default:
        if (t) change_element(r, *t);
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
