/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement against NNCF's: the float networks behind its reference graphs are rebuilt from them,
 * placed, and compared edge by edge. usage: nncf_placement DIR [-v]
 *
 * The drawings hold operators, edges and shapes, but neither attributes nor the order of operands,
 * so a network is rebuilt only as far as placement needs it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/place/place.h"

enum { MAX_LINE = 4096, MAX_NODES = 20000 };

/* A node of the drawing. */
typedef struct dot_node {
    char type[64];
    bool is_q, is_dq, is_input, is_output;
    int q_from;       /* Q, DQ: what they quantize; -1: a constant */
    oct_node *node;   /* the rebuilt one */
    oct_value *value; /* what it makes */
} dot_node;

typedef struct dot_edge {
    int from, to;
    bool is_float;
    oct_type type;
} dot_edge;

typedef struct drawing {
    dot_node *node;
    dot_edge *edge;
    int n_nodes, n_edges;
} drawing;

typedef struct tally {
    int edges, both, neither, only_nncf, only_octet, graphs, skipped;
} tally;

/* --- reading --- */

static void read_shape(const char *text, dot_edge *e)
{
    const char *p = strchr(text, '[');

    e->type = (oct_type){.dtype = e->is_float ? OCT_DTYPE_F32 : OCT_DTYPE_I64};
    while (p && *p && *p != ']' && e->type.rank < OCT_MAX_RANK) {
        char *end;
        const long v = strtol(p + 1, &end, 10);

        if (end == p + 1) break;
        e->type.dim[e->type.rank++] = v < 1 ? 1 : v; /* -1: any size will do */
        p = end;
    }
}

static void read_edge(drawing *d, const char *line, const char *arrow)
{
    dot_edge *e = &d->edge[d->n_edges];
    const char *label = strstr(arrow, "label=\"");

    e->from = atoi(line + 1);
    e->to = atoi(strchr(arrow, '"') + 1);
    e->is_float = strstr(arrow, "style=solid") != NULL;
    read_shape(label ? label : "", e);
    if (e->from < MAX_NODES && e->to < MAX_NODES) d->n_edges++;
}

static void read_node(drawing *d, const char *line)
{
    const char *type = strstr(line, "type=");
    const int id = atoi(line + 1);
    dot_node *n;

    if (!type || id < 0 || id >= MAX_NODES) return;
    type += 5;
    if (*type == '"') type++;
    n = &d->node[id];
    memset(n, 0, sizeof(*n));
    n->q_from = -1;
    snprintf(n->type, sizeof(n->type), "%.*s", (int)strcspn(type, "\",]"), type);
    n->is_q = strcmp(n->type, "QuantizeLinear") == 0;
    n->is_dq = strcmp(n->type, "DequantizeLinear") == 0;
    n->is_input = strcmp(n->type, "nncf_model_input") == 0;
    n->is_output = strcmp(n->type, "nncf_model_output") == 0;
    if (id >= d->n_nodes) d->n_nodes = id + 1;
}

static bool read_drawing(const char *path, drawing *d)
{
    FILE *f = fopen(path, "r");
    char line[MAX_LINE];

    d->n_nodes = d->n_edges = 0;
    if (!f) return false;
    while (fgets(line, sizeof(line), f) && d->n_edges < 4 * MAX_NODES) {
        const char *arrow = strstr(line, "\" -> \"");

        if (line[0] != '"') continue;
        if (arrow)
            read_edge(d, line, arrow + 4);
        else
            read_node(d, line);
    }
    fclose(f);
    for (int pass = 0; pass < 2; pass++) /* Q first, then DQ */
        for (int i = 0; i < d->n_edges; i++) {
            dot_node *to = &d->node[d->edge[i].to];
            const dot_node *from = &d->node[d->edge[i].from];

            if (pass == 0 && to->is_q) to->q_from = d->edge[i].from;
            if (pass == 1 && to->is_dq && from->is_q) to->q_from = from->q_from;
        }
    return true;
}

/* --- rebuilding --- */

/* A constant nobody looks into. */
static oct_value *dummy(oct_graph *g, oct_dtype dtype, int32_t rank, const int64_t *dim)
{
    const oct_type t = oct_type_make(dtype, rank, dim);
    oct_tensor *data = NULL;

    if (oct_type_len(&t) > 1 << 26 || oct_tensor_make(g->ctx, &t, &data)) return NULL;
    return oct_value_const(g, NULL, data);
}

/* Results of nodes that have several go to their readers one by one. */
static oct_value *value_of(const drawing *d, oct_graph *g, const dot_edge *e)
{
    dot_node *n = &d->node[e->from];

    if (n->is_dq && n->q_from < 0) return dummy(g, OCT_DTYPE_F32, e->type.rank, e->type.dim);
    if (n->is_dq) n = &d->node[n->q_from];
    if (strcmp(n->type, "Constant") == 0) return dummy(g, e->type.dtype, e->type.rank, e->type.dim);
    if (n->value) {
        n->value->type = e->type;
        return n->value;
    }
    return NULL;
}

/* Activations before constants, as all operators with weights have it. */
static int collect(const drawing *d, oct_graph *g, int id, oct_value **in, int max)
{
    int n = 0;

    for (int constants = 0; constants < 2; constants++)
        for (int i = 0; i < d->n_edges && n < max; i++) {
            oct_value *v = d->edge[i].to == id ? value_of(d, g, &d->edge[i]) : NULL;

            if (v && (v->data != NULL) == constants) in[n++] = v;
        }
    return n;
}

static void set_group(oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *w = &n->in[1]->type;

    if (x->rank > 2 && w->rank == x->rank && w->dim[1] > 0 && x->dim[1] % w->dim[1] == 0)
        (void)oct_node_set_int(n, "group", x->dim[1] / w->dim[1]);
}

/* Normalising folds what scales and shifts a convolution's result: gone, as in a real network. */
static bool is_folded(const dot_node *n, oct_value *const *in, int n_in)
{
    static const char *const affine[] = {"BatchNormalization", "Mul", "Add"};
    const oct_node *by = n_in > 0 ? in[0]->producer : NULL;
    bool is_affine = false;

    for (size_t i = 0; i < OCT_COUNT(affine); i++)
        is_affine |= strcmp(n->type, affine[i]) == 0;
    if (!is_affine || (n_in > 1 && !in[1]->data)) return false;
    return oct_node_is(by, &oct_op_conv) || oct_node_is(by, &oct_op_batch_normalization);
}

/* Made of constants only, drawn or not. */
static bool is_constant(const dot_node *n, oct_value *const *in, int n_in)
{
    if (strcmp(n->type, "Constant") == 0) return true;
    for (int i = 0; i < n_in; i++)
        if (!in[i]->data) return false;
    return !n->is_input && !n->is_q && !n->is_dq && !n->is_output;
}

static bool rebuild_node(drawing *d, oct_graph *g, int id)
{
    enum { MAX_OPERANDS = 64 };
    dot_node *n = &d->node[id];
    const oct_op *op = oct_op_find("", n->type);
    oct_value *in[MAX_OPERANDS];
    int n_in = collect(d, g, id, in, MAX_OPERANDS - OCT_MAX_IN);
    char name[96];

    if (n->is_input) {
        n->value = oct_value_new(g, NULL, &(oct_type){.dtype = OCT_DTYPE_F32});
        return n->value && !oct_graph_add_input(g, n->value);
    }
    if (is_constant(n, in, n_in)) strcpy(n->type, "Constant");
    if (!op || n->is_q || n->is_dq || strcmp(n->type, "Constant") == 0) return true;
    if (is_folded(n, in, n_in)) {
        n->value = in[0];
        return true;
    }
    for (; n_in < op->min_in; n_in++) /* constants that are not drawn */
        if (!(in[n_in] = dummy(g, OCT_DTYPE_F32, n_in ? 1 : 4, (int64_t[]){1, 1, 1, 1})))
            return false;
    snprintf(name, sizeof(name), "%d", id);
    n->node = oct_node_new(g, NULL, name, op, in, op->max_in < 0 ? n_in : OCT_MIN(n_in, op->max_in),
                           NULL, 1);
    if (!n->node) return false;
    n->value = n->node->out[0];
    if (op == &oct_op_conv) set_group(n->node);
    return true;
}

/* Nodes are numbered in an order of execution, except the network's inputs. */
static bool rebuild(drawing *d, oct_graph *g)
{
    for (int i = 0; i < d->n_nodes; i++)
        if (d->node[i].is_input && !rebuild_node(d, g, i)) return false;
    for (int i = 0; i < d->n_nodes; i++)
        if (!d->node[i].is_input && d->node[i].type[0] && !rebuild_node(d, g, i)) return false;
    for (int i = 0; i < d->n_edges; i++) {
        dot_node *from = &d->node[d->edge[i].from];

        if (!d->node[d->edge[i].to].is_output) continue;
        if (from->value && !from->value->is_output && oct_graph_add_output(g, from->value))
            return false;
    }
    return true;
}

/* --- comparing --- */

/* What NNCF quantizes on ONNX Runtime's behalf. */
static const char *const nncf_ops[] = {
    "Conv",        "ConvTranspose",      "Gemm",        "MatMul",
    "AveragePool", "GlobalAveragePool",  "Add",         "Sub",
    "Mul",         "BatchNormalization", "HardSigmoid", "Resize",
    "Pow",         "Reciprocal",         "Max",         "Min",
    NULL,
};

static void compare(const drawing *d, const oct_qmap *m, bool verbose, tally *t)
{
    for (int i = 0; i < d->n_edges; i++) {
        const dot_edge *e = &d->edge[i];
        const bool theirs = d->node[e->from].is_dq;
        const int from = theirs ? d->node[e->from].q_from : e->from;
        const dot_node *to = &d->node[e->to];
        const oct_value *v = from >= 0 ? d->node[from].value : NULL;
        bool ours;

        if (!e->is_float || !v || !to->node || v->data || v == to->value) continue;
        ours = m->of_value[v->id] >= 0 && !(v->producer && oct_node_moves_data(v->producer));
        t->edges++;
        t->both += theirs && ours;
        t->neither += !theirs && !ours;
        t->only_nncf += theirs && !ours;
        t->only_octet += !theirs && ours;
        if (verbose && theirs != ours)
            printf("    %-10s %d %s -> %d %s\n", theirs ? "only NNCF" : "only octet", from,
                   d->node[from].type, e->to, to->type);
    }
}

static bool run(oct_ctx *ctx, const char *path, drawing *d, bool verbose, tally *t)
{
    const oct_target *row;
    oct_quantize_options o = {.struct_size = sizeof(o), .tail = "off"};
    oct_graph *g = NULL;
    oct_qmap *m = NULL;
    oct_target target;
    bool done = false;

    if (oct_target_find(ctx, "openvino", &row)) return false;
    target = *row;
    target.ops = nncf_ops;
    if (!read_drawing(path, d) || oct_graph_new(ctx, "rebuilt", &g)) goto end;
    if (!rebuild(d, g) || oct_graph_sort(g) || oct_place(g, &target, &o, &m)) goto end;
    compare(d, m, verbose, t);
    done = true;
end:
    oct_qmap_free(m);
    oct_graph_free(g);
    return done;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_folder(oct_ctx *ctx, const char *dir, drawing *d, bool verbose, tally *all)
{
    char *names[256];
    int n = 0;
    DIR *folder = opendir(dir);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)) && n < 256)
        if (strstr(entry->d_name, ".dot")) names[n++] = strdup(entry->d_name);
    if (folder) closedir(folder);
    qsort(names, (size_t)n, sizeof(*names), by_name);
    for (int i = 0; i < n; i++) {
        char path[MAX_LINE];
        tally t = {0};

        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        if (run(ctx, path, d, verbose, &t)) {
            printf("%-48s edges %5d  both %4d  neither %4d  only NNCF %4d  only octet %4d\n",
                   names[i], t.edges, t.both, t.neither, t.only_nncf, t.only_octet);
            all->graphs++;
        } else {
            printf("%-48s not rebuilt: %s\n", names[i], oct_ctx_error(ctx));
            all->skipped++;
        }
        all->edges += t.edges;
        all->both += t.both;
        all->neither += t.neither;
        all->only_nncf += t.only_nncf;
        all->only_octet += t.only_octet;
        free(names[i]);
    }
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    drawing d = {.node = calloc(MAX_NODES, sizeof(*d.node)),
                 .edge = calloc(4 * MAX_NODES + 1, sizeof(*d.edge))};
    const bool verbose = argc > 2;
    char sub[MAX_LINE];
    tally all = {0};

    if (argc < 2 || !ctx || !d.node || !d.edge) return 2;
    run_folder(ctx, argv[1], &d, verbose, &all);
    snprintf(sub, sizeof(sub), "%s/synthetic", argv[1]);
    run_folder(ctx, sub, &d, verbose, &all);
    printf("%d networks, %d not rebuilt; %d edges, %d with the same answer\n", all.graphs,
           all.skipped, all.edges, all.both + all.neither);
    free(d.node);
    free(d.edge);
    oct_ctx_free(ctx);
    /* docs/nncf-placement.md explains the rest. */
    return all.graphs >= 40 && all.both + all.neither >= 9 * (all.edges / 10) ? 0 : 1;
}
