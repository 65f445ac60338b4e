/* SPDX-License-Identifier: Apache-2.0 */
/* Loading models and naming their parts. */
#include "cli/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/guard.h"
#include "cli/near.h"

int64_t cli_file_size(const char *path)
{
    struct stat sb;

    return stat(path, &sb) ? -1 : (int64_t)sb.st_size;
}

/* --- text --- */

const char *cli_dims_text(int32_t rank, const int64_t *dims, char text[CLI_SHAPE_SIZE])
{
    size_t at = 0;

    if (rank == 0) return strcpy(text, "scalar");
    if (rank < 0) return strcpy(text, "?");
    for (int32_t i = 0; i < rank && at < CLI_SHAPE_SIZE; i++)
        at += (size_t)snprintf(text + at, CLI_SHAPE_SIZE - at, "%s%lld", i ? "x" : "",
                               (long long)dims[i]);
    return text;
}

const char *cli_shape_text(const oct_value *v, char text[CLI_SHAPE_SIZE])
{
    const int32_t rank = oct_value_rank(v);
    size_t at = 0;

    if (rank <= 0) return cli_dims_text(rank, NULL, text);
    for (int32_t i = 0; i < rank && at < CLI_SHAPE_SIZE; i++) {
        const int64_t d = oct_value_dim(v, i);
        const char *name = oct_value_dim_name(v, i), *sep = i ? "x" : "";

        if (d >= 0)
            at += (size_t)snprintf(text + at, CLI_SHAPE_SIZE - at, "%s%lld", sep, (long long)d);
        else if (name && *name)
            at += (size_t)snprintf(text + at, CLI_SHAPE_SIZE - at, "%s<%.40s>", sep, name);
        else
            at += (size_t)snprintf(text + at, CLI_SHAPE_SIZE - at, "%s?", sep);
    }
    return text;
}

const char *cli_model_inputs_text(const oct_graph *g, char *text, size_t size)
{
    char shape[CLI_SHAPE_SIZE];
    size_t at = 0;

    *text = '\0';
    for (int32_t i = 0; i < oct_graph_n_inputs(g) && at < size; i++) {
        const oct_value *v = oct_graph_input(g, i);

        at += (size_t)snprintf(text + at, size - at, "%s'%s' (%s %s)", i ? ", " : "",
                               oct_value_name(v), oct_dtype_name(oct_value_dtype(v)),
                               cli_shape_text(v, shape));
    }
    return text;
}

const char *cli_node_label(const oct_node *n)
{
    const char *name = oct_node_name(n);

    for (int32_t i = 0; (!name || !*name) && i < oct_node_n_out(n); i++)
        if (oct_node_output(n, i)) name = oct_value_name(oct_node_output(n, i));
    return name ? name : "";
}

cli_json *cli_value_json(const oct_value *v)
{
    cli_json *j = cli_json_object();
    const int32_t rank = oct_value_rank(v);

    cli_json_str(j, "name", oct_value_name(v));
    cli_json_str(j, "type", oct_dtype_name(oct_value_dtype(v)));
    if (rank < 0) {
        cli_json_null(j, "shape");
        return j;
    }
    cli_json *dims = cli_json_array();

    for (int32_t i = 0; i < rank; i++) {
        const int64_t d = oct_value_dim(v, i);

        if (d >= 0)
            cli_json_int(dims, NULL, d);
        else
            cli_json_str(dims, NULL, oct_value_dim_name(v, i));
    }
    cli_json_add(j, "shape", dims);
    return j;
}

/* --- loading --- */

const oct_value *cli_model_input(cli *c, const oct_graph *g, const char *option, const char *name)
{
    char inputs[512];
    cli_near near;

    cli_near_init(&near, name, false);
    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++) {
        const oct_value *v = oct_graph_input(g, i);

        if (strcmp(oct_value_name(v), name) == 0) return v;
        cli_near_try(&near, oct_value_name(v));
    }
    (void)cli_fail(c, OCT_ERR_ARG, "option --%s: the model has no input '%s'%s; its inputs: %s",
                   option, name, cli_near_text(&near),
                   cli_model_inputs_text(g, inputs, sizeof(inputs)));
    return NULL;
}

/* "1x3x640x640" */
static bool parse_dims(const char *text, int32_t *rank, int64_t dims[OCT_MAX_RANK])
{
    *rank = 0;
    if (strcmp(text, "scalar") == 0) return true;
    for (;; text++) {
        char *end;

        if (*rank == OCT_MAX_RANK || *text < '0' || *text > '9') return false;
        errno = 0;
        dims[*rank] = strtoll(text, &end, 10);
        if (errno) return false;
        ++*rank;
        if (*end == '\0') return true;
        if (*end != 'x' && *end != 'X' && *end != ',') return false;
        text = end;
    }
}

/* A size that is fixed in the file is the most frequent reason why a shape does not fit. */
static oct_status set_shape(cli *c, oct_graph *g, const oct_value *v, int32_t rank,
                            const int64_t *dims)
{
    char have[CLI_SHAPE_SIZE], want[CLI_SHAPE_SIZE], *why;
    bool is_fixed = oct_value_rank(v) == rank;
    oct_status st;

    for (int32_t i = 0; is_fixed && i < rank; i++)
        is_fixed = oct_value_dim(v, i) >= 0;
    (void)cli_shape_text(v, have);
    st = oct_graph_set_input_shape(g, oct_value_name(v), rank, dims);
    if (!st || st == OCT_ERR_MEMORY || !is_fixed) return st;
    why = cli_format("%s", oct_ctx_error(c->ctx));
    (void)cli_fail(c, st,
                   "%s: the network was exported for the fixed size %s and does not work with %s; "
                   "export it with dynamic axes (Ultralytics: dynamic=True), or leave the size out "
                   "(%s)",
                   c->model, have, cli_dims_text(rank, dims, want), why);
    free(why);
    return st;
}

static oct_status bind_shape(cli *c, oct_graph *g, const char *spec)
{
    const char *colon = strrchr(spec, ':'); /* names may hold colons, dims do not */
    const oct_value *v = oct_graph_n_inputs(g) == 1 ? oct_graph_input(g, 0) : NULL;
    int64_t dims[OCT_MAX_RANK];
    char inputs[512];
    int32_t rank;

    if (!parse_dims(colon ? colon + 1 : spec, &rank, dims))
        return cli_fail(c, OCT_ERR_ARG,
                        "option --input-shape: '%s' is not NAME:DIMS, as in images:1x3x640x640; "
                        "inputs: %s",
                        spec, cli_model_inputs_text(g, inputs, sizeof(inputs)));
    if (colon) {
        char *name = cli_format("%.*s", (int)(colon - spec), spec);

        v = cli_model_input(c, g, "input-shape", name);
        free(name);
        if (!v) return OCT_ERR_ARG;
    } else if (!v) {
        return cli_fail(c, OCT_ERR_ARG, "option --input-shape: say which input: %s",
                        cli_model_inputs_text(g, inputs, sizeof(inputs)));
    }
    return set_shape(c, g, v, rank, dims);
}

oct_status cli_model_load(cli *c, const char *path, const cli_list *shapes, oct_graph **out)
{
    oct_graph *g = NULL;
    oct_status st;

    c->model = path;
    st = oct_model_load(c->ctx, path, &g);
    for (int i = 0; !st && shapes && i < shapes->n; i++)
        st = bind_shape(c, g, shapes->items[i]);
    if (st)
        oct_graph_free(g);
    else
        *out = g;
    return st;
}

oct_status cli_model_save(cli *c, const oct_graph *g, const char *path, bool half)
{
    oct_openvino_options o;

    if (!cli_has_suffix(path, ".xml")) {
        if (half)
            return cli_fail(c, OCT_ERR_ARG,
                            "--half is for OpenVINO IR; give -o a name that ends "
                            "with .xml");
        return oct_onnx_save(g, path, NULL);
    }
    oct_openvino_options_init(&o);
    o.half = half;
    return oct_openvino_save(g, path, &o);
}

static void codes_note(const cli *c, const oct_graph *g, int32_t is_output, int32_t i)
{
    const oct_value *v = is_output ? oct_graph_output(g, i) : oct_graph_input(g, i);
    const char *what = is_output ? "output" : "input", *name = oct_value_name(v);
    const char *type = oct_dtype_name(oct_value_dtype(v));
    float scale;
    int32_t zero;

    if (oct_graph_codes(g, is_output, i, &scale, &zero) == OCT_OK)
        cli_note(c, "%s '%s': %s, value = (code - %d) * %.9g", what, name, type, (int)zero,
                 (double)scale);
    else if (is_output)
        cli_note(c, "%s '%s' stays %s: 256 steps are too coarse for its numbers", what, name, type);
    else
        cli_note(c, "%s '%s' stays %s", what, name, type);
}

void cli_model_codes_note(const cli *c, const oct_graph *g)
{
    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++)
        codes_note(c, g, 0, i);
    for (int32_t i = 0; i < oct_graph_n_outputs(g); i++)
        codes_note(c, g, 1, i);
}

oct_status cli_model_open_codes(cli *c, oct_graph **g)
{
    oct_graph *opened = NULL;
    const oct_status st = oct_graph_float_io(*g, &opened);

    if (st || !opened) return st;
    cli_note(c, "inputs or outputs are codes; they are fed and read with the file's own scales");
    oct_graph_free(*g);
    *g = opened;
    return OCT_OK;
}

/* --- counting --- */

static cli_op_count *count_of(cli_totals *t, const char *op)
{
    for (int i = 0; i < t->n_ops; i++)
        if (strcmp(t->ops[i].op, op) == 0) return &t->ops[i];
    t->ops = cli_realloc(t->ops, (size_t)t->n_ops + 1, sizeof(*t->ops));
    t->ops[t->n_ops] = (cli_op_count){.op = op};
    return &t->ops[t->n_ops++];
}

const cli_op_count *cli_totals_find(const cli_totals *t, const char *op)
{
    for (int i = 0; i < t->n_ops; i++)
        if (strcmp(t->ops[i].op, op) == 0) return &t->ops[i];
    return NULL;
}

static int by_count(const void *a, const void *b)
{
    const cli_op_count *x = a, *y = b;

    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return strcmp(x->op, y->op);
}

/* As oct_node_params() counts: wide integers are shapes, axes and biases of quantized models. */
static int64_t constant_params(const oct_tensor *t)
{
    switch (oct_tensor_dtype(t)) {
    case OCT_DTYPE_U16:
    case OCT_DTYPE_I16:
    case OCT_DTYPE_U32:
    case OCT_DTYPE_I32:
    case OCT_DTYPE_U64:
    case OCT_DTYPE_I64:
    case OCT_DTYPE_STRING:
    case OCT_DTYPE_C64:
    case OCT_DTYPE_C128:
        return 0;
    default:
        return oct_tensor_len(t);
    }
}

static int by_address(const void *a, const void *b)
{
    const oct_value *const *x = a, *const *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* All constants that nodes read, once each. */
static void count_constants(cli_totals *t, const oct_graph *g)
{
    const oct_value **all = NULL;
    size_t n = 0, cap = 0;

    for (const oct_node *node = oct_graph_first_node(g); node; node = oct_node_next(node))
        for (int32_t i = 0; i < oct_node_n_in(node); i++) {
            const oct_value *v = oct_node_input(node, i);

            if (!v || !oct_value_data(v)) continue;
            if (n == cap) all = cli_realloc(all, cap = cap ? cap * 2 : 256, sizeof(*all));
            all[n++] = v;
        }
    if (n) qsort(all, n, sizeof(*all), by_address);
    for (size_t i = 0; i < n; i++) {
        if (i && all[i] == all[i - 1]) continue;
        t->params += constant_params(oct_value_data(all[i]));
        t->weight_bytes += (int64_t)oct_tensor_size(oct_value_data(all[i]));
    }
    free(all);
}

/* Files may claim any size. */
static void add_macs(int64_t *sum, int64_t macs)
{
    *sum = macs > INT64_MAX - *sum ? INT64_MAX : *sum + macs;
}

void cli_totals_init(cli_totals *t, const oct_graph *g)
{
    memset(t, 0, sizeof(*t));
    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n)) {
        cli_op_count *op = count_of(t, oct_node_op(n));

        op->n++;
        op->params += oct_node_params(n);
        add_macs(&op->macs, oct_node_macs(n));
        add_macs(&t->macs, oct_node_macs(n));
        t->n_nodes++;
    }
    if (t->n_ops) qsort(t->ops, (size_t)t->n_ops, sizeof(*t->ops), by_count);
    count_constants(t, g);
}

void cli_totals_fini(cli_totals *t)
{
    free(t->ops);
}

oct_status cli_model_check_outputs(cli *c, const char *names, const oct_graph *g)
{
    for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *name = cli_format("%.*s", (int)strcspn(p, ","), p);
        bool known = false;
        cli_near near;

        cli_near_init(&near, name, false);
        for (int32_t i = 0; i < oct_graph_n_outputs(g); i++) {
            known |= strcmp(oct_value_name(oct_graph_output(g, i)), name) == 0;
            cli_near_try(&near, oct_value_name(oct_graph_output(g, i)));
        }
        if (!known)
            (void)cli_fail(c, OCT_ERR_ARG, "option --outputs: there is no output '%s'%s", name,
                           cli_near_text(&near));
        free(name);
        if (!known) return OCT_ERR_ARG;
    }
    return OCT_OK;
}

oct_status cli_model_keep_outputs(cli *c, const char *names, oct_graph *g)
{
    const oct_status st = names ? oct_graph_keep_outputs(g, names) : OCT_OK;

    return st ? cli_fail(c, st, "%s: option --outputs: %s", c->model ? c->model : "",
                         oct_ctx_error(c->ctx))
              : OCT_OK;
}
