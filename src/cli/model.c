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

/* --- inputs and outputs --- */

static oct_status io_json(cli *c, const oct_graph *g)
{
    cli_json *j = cli_json_object(), *in = cli_json_array(), *out = cli_json_array();
    oct_status st;

    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++)
        cli_json_add(in, NULL, cli_value_json(oct_graph_input(g, i)));
    for (int32_t i = 0; i < oct_graph_n_outputs(g); i++)
        cli_json_add(out, NULL, cli_value_json(oct_graph_output(g, i)));
    cli_json_int(j, "nodes", oct_graph_n_nodes(g));
    cli_json_add(j, "inputs", in);
    cli_json_add(j, "outputs", out);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static void io_text(const oct_graph *g, const char *path)
{
    char shape[CLI_SHAPE_SIZE];

    for (int32_t i = 0; i < oct_graph_n_inputs(g) + oct_graph_n_outputs(g); i++) {
        const bool is_input = i < oct_graph_n_inputs(g);
        const oct_value *v =
            is_input ? oct_graph_input(g, i) : oct_graph_output(g, i - oct_graph_n_inputs(g));

        cli_say(stdout, "%s '%s': %s %s", is_input ? "input" : "output", oct_value_name(v),
                oct_dtype_name(oct_value_dtype(v)), cli_shape_text(v, shape));
    }
    cli_say(stdout, "%s written, %d nodes", path, (int)oct_graph_n_nodes(g));
}

oct_status cli_model_write(cli *c, const oct_graph *g, const char *path, bool half)
{
    oct_status st;

    c->model = path;
    if ((st = cli_model_save(c, g, path, half))) return st;
    if (c->opt.json) return io_json(c, g);
    if (!c->opt.quiet) io_text(g, path);
    return OCT_OK;
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

oct_status cli_model_fill_shape(cli *c, oct_graph *g, const char *text)
{
    const oct_value *v = oct_graph_n_inputs(g) == 1 ? oct_graph_input(g, 0) : NULL;
    int64_t dims[OCT_MAX_RANK];
    bool is_open = false;
    int32_t rank;

    if (!parse_dims(text, &rank, dims))
        return cli_fail(c, OCT_ERR_ARG, "sample_size: '%s' is no shape, as 1x3x640x640", text);
    if (!v || oct_value_rank(v) != rank) return OCT_OK;
    for (int32_t i = 0; i < rank; i++) {
        if (oct_value_dim(v, i) < 0)
            is_open = true;
        else
            dims[i] = oct_value_dim(v, i);
    }
    return is_open ? set_shape(c, g, v, rank, dims) : OCT_OK;
}

oct_status cli_model_fit_pictures(oct_graph *g, const oct_preprocess *p, int64_t batch)
{
    const int64_t colors = p->color == OCT_COLOR_GRAY ? 1 : 3;
    const bool is_nhwc = p->layout == OCT_IMAGE_NHWC;
    const int64_t fit[4] = {batch, is_nhwc ? p->height : colors, is_nhwc ? p->width : p->height,
                            is_nhwc ? colors : p->width};
    const oct_value *v = NULL;
    bool is_open = false;
    int64_t dims[4];

    for (int32_t i = 0; i < oct_graph_n_inputs(g) && !v; i++)
        if (oct_value_rank(oct_graph_input(g, i)) == 4) v = oct_graph_input(g, i);
    for (int32_t i = 0; v && i < 4; i++) {
        const int64_t have = oct_value_dim(v, i);

        is_open = is_open || (i > 0 && have < 0);
        dims[i] = have < 0 ? fit[i] : have;
    }
    return is_open ? oct_graph_set_input_shape(g, oct_value_name(v), 4, dims) : OCT_OK;
}

oct_status cli_model_fit_words(oct_graph *g, const char *family, const char *words, int64_t batch)
{
    oct_preprocess p;

    /* What is wrong with the words is said where they are used. */
    if (!words || oct_graph_preprocess(g, family, words, &p)) return OCT_OK;
    return cli_model_fit_pictures(g, &p, batch);
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

/* --- outputs --- */

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

oct_status cli_model_drop_unknown(cli *c, oct_graph *g)
{
    int32_t n = 0;
    const oct_status st = oct_graph_drop_unknown(g, &n);

    if (n)
        cli_note(c,
                 "note: octet cannot run %d node%s at the end, which %s left out: outputs are the "
                 "values before, as '%s'",
                 (int)n, n == 1 ? "" : "s", n == 1 ? "is" : "are",
                 oct_value_name(oct_graph_output(g, 0)));
    return st;
}
