/* SPDX-License-Identifier: Apache-2.0 */
/* octet run: tensors in, tensors out, as .npy files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/near.h"
#include "cli/regex.h"
#include "cli/term/table.h"

typedef struct args {
    cli_list inputs;
    const char *out, *dump;
} args;

static const cli_opt opts[] = {
    {CLI_LIST, "input", offsetof(args, inputs), "NAME=FILE",
     .help =
         "a .npy file for an input; NAME= may be left out if there is only one input. May be given "
         "several times"},
    {CLI_STR, "out", offsetof(args, out), "DIR", .help = "folder for the results; made if missing",
     .def = "."},
    {CLI_STR, "dump", offsetof(args, dump), "REGEX",
     .help =
         "write inner values too, in whose name the pattern (PCRE) is found; ^ and $ anchor it"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"run yolov8n.onnx --input images=image.npy --out results",
     "Run once; the outputs appear as results/<output name>.npy"},
    {"run yolov8n.onnx --input image.npy --out results --dump 'model.22/cv2'",
     "Also the values in whose name model.22/cv2 is found"},
    {0},
};

/* What a run needs and what it has written. */
typedef struct job {
    cli *c;
    const args *args;
    oct_graph *g;
    oct_plan *plan;
    oct_run *run;
    oct_tensor **in; /* as the graph's inputs */
    cli_json *written;
    char **paths; /* to detect two values with one file name */
    int n_paths;
    int64_t time_ns;
} job;

/* --- inputs --- */

/* The input that "NAME=FILE" means, and where FILE begins. -1 with the error set: none. */
static int32_t which_input(const job *j, const char *spec, const char **file)
{
    const int32_t n = oct_graph_n_inputs(j->g);
    const char *eq = strchr(spec, '=');
    char *name, inputs[512];

    for (int32_t i = 0; i < n; i++) { /* a name may hold '=' itself */
        const char *input = oct_value_name(oct_graph_input(j->g, i));
        const size_t len = strlen(input);

        if (strncmp(spec, input, len) || spec[len] != '=') continue;
        *file = spec + len + 1;
        return i;
    }
    if (n == 1 && (!eq || cli_file_size(spec) >= 0)) {
        *file = spec;
        return 0;
    }
    if (!eq) {
        (void)cli_fail(j->c, OCT_ERR_ARG, "option --input: '%s' is not NAME=FILE; inputs: %s", spec,
                       cli_model_inputs_text(j->g, inputs, sizeof(inputs)));
        return -1;
    }
    name = cli_format("%.*s", (int)(eq - spec), spec);
    (void)cli_model_input(j->c, j->g, "input", name); /* for its message */
    free(name);
    return -1;
}

/* Does the tensor fit the input: its type, and the dims that are fixed? */
static oct_status check_fit(const job *j, const oct_value *v, const oct_tensor *t, const char *file)
{
    const int64_t *dims = oct_tensor_dims(t);
    const int32_t rank = oct_tensor_rank(t);
    char want[CLI_SHAPE_SIZE], have[CLI_SHAPE_SIZE];
    bool fits = oct_value_rank(v) < 0 || oct_value_rank(v) == rank;

    if (oct_value_dtype(v) != oct_tensor_dtype(t))
        return cli_fail(j->c, OCT_ERR_ARG,
                        "%s: holds %s, input '%s' wants %s; convert it, as with NumPy's astype()",
                        file, oct_dtype_name(oct_tensor_dtype(t)), oct_value_name(v),
                        oct_dtype_name(oct_value_dtype(v)));
    for (int32_t i = 0; fits && i < rank; i++)
        if (oct_value_dim(v, i) >= 0 && oct_value_dim(v, i) != dims[i]) fits = false;
    if (!fits)
        return cli_fail(j->c, OCT_ERR_ARG, "%s: has shape %s, input '%s' wants %s", file,
                        cli_dims_text(rank, dims, have), oct_value_name(v),
                        cli_shape_text(v, want));
    return OCT_OK;
}

static oct_status load_input(job *j, const char *spec)
{
    const char *file = NULL;
    const int32_t i = which_input(j, spec, &file);
    cli_near near;
    oct_status st;

    if (i < 0) return OCT_ERR_ARG;
    if (cli_file_size(file) < 0)
        return cli_fail(j->c, OCT_ERR_ARG, "%s: no such file%s", file, cli_near_file(&near, file));
    if (j->in[i])
        return cli_fail(j->c, OCT_ERR_ARG, "option --input: '%s' is given twice",
                        oct_value_name(oct_graph_input(j->g, i)));
    cli_reads(j->c, file);
    j->c->model = NULL; /* errors here are about the .npy file */
    if ((st = oct_tensor_load_npy(j->c->ctx, file, &j->in[i]))) return st;
    return check_fit(j, oct_graph_input(j->g, i), j->in[i], file);
}

static oct_status load_inputs(job *j, const char *model)
{
    const int32_t n = oct_graph_n_inputs(j->g);
    char inputs[1024];
    oct_status st;

    j->in = cli_alloc((size_t)n, sizeof(oct_tensor *));
    for (int i = 0; i < j->args->inputs.n; i++)
        if ((st = load_input(j, j->args->inputs.items[i]))) return st;
    j->c->model = model;
    for (int32_t i = 0; i < n; i++) {
        const oct_value *v = oct_graph_input(j->g, i);

        if (!j->in[i])
            return cli_fail(j->c, OCT_ERR_ARG,
                            "%s: input '%s' is not given; say --input '%s=FILE.npy'; inputs: %s",
                            model, oct_value_name(v), oct_value_name(v),
                            cli_model_inputs_text(j->g, inputs, sizeof(inputs)));
        if ((st = oct_graph_set_input_shape(j->g, oct_value_name(v), oct_tensor_rank(j->in[i]),
                                            oct_tensor_dims(j->in[i]))))
            return st;
    }
    return OCT_OK;
}

/* --- outputs --- */

/* DIR/<name with / and : replaced by _>.npy, made unique among those written. */
static char *result_path(const job *j, const char *name)
{
    enum { MAX_NAME = 200 }; /* file systems allow 255 bytes */
    char *base = cli_format("%.*s", MAX_NAME, name), *path = NULL;

    for (char *p = base; *p; p++)
        if (*p == '/' || *p == ':') *p = '_';
    for (int try = 1; !path; try++) {
        path = try == 1 ? cli_format("%s/%s.npy", j->args->out, base)
                        : cli_format("%s/%s-%d.npy", j->args->out, base, try);
        for (int i = 0; path && i < j->n_paths; i++)
            if (strcmp(j->paths[i], path) == 0) {
                free(path);
                path = NULL;
            }
    }
    free(base);
    return path;
}

static oct_status write_value(job *j, const char *name, const oct_tensor *t)
{
    char *path = result_path(j, name);
    cli_json *e = cli_json_object(), *dims = cli_json_array();
    oct_status st;

    for (int32_t i = 0; i < oct_tensor_rank(t); i++)
        cli_json_int(dims, NULL, oct_tensor_dims(t)[i]);
    cli_json_str(e, "name", name);
    cli_json_str(e, "file", path);
    cli_json_str(e, "type", oct_dtype_name(oct_tensor_dtype(t)));
    cli_json_add(e, "shape", dims);
    cli_json_add(j->written, NULL, e);

    j->paths = cli_realloc(j->paths, (size_t)j->n_paths + 1, sizeof(char *));
    j->paths[j->n_paths++] = path;
    cli_hold_interrupts();
    st = oct_tensor_save_npy(j->c->ctx, t, path);
    cli_release_interrupts();
    if (st) {
        j->c->model = NULL; /* the error is about the result's file */
    } else if (!j->c->opt.json && !j->c->opt.quiet) {
        char shape[CLI_SHAPE_SIZE], line[1024];

        (void)snprintf(line, sizeof(line), "%s  %s %s", path, oct_dtype_name(oct_tensor_dtype(t)),
                       cli_dims_text(oct_tensor_rank(t), oct_tensor_dims(t), shape));
        cli_text_clean(line);
        (void)puts(line);
    }
    return st;
}

static bool is_output(const oct_graph *g, const char *name)
{
    for (int32_t i = 0; i < oct_graph_n_outputs(g); i++)
        if (strcmp(oct_value_name(oct_graph_output(g, i)), name) == 0) return true;
    return false;
}

static oct_status dump_hook(void *user, const char *name, const oct_tensor *value)
{
    job *j = user;

    return is_output(j->g, name) ? OCT_OK : write_value(j, name, value);
}

/* A pattern that matches no value is a mistake: suggests near names. */
static oct_status check_dump(const job *j)
{
    cli_regex *re = NULL;
    cli_near near;
    bool any = false;
    oct_status st;

    if (!j->args->dump) return OCT_OK;
    if ((st = cli_regex_new(j->c, "dump", j->args->dump, &re))) return st;
    cli_near_init(&near, j->args->dump, true);
    for (const oct_node *n = oct_graph_first_node(j->g); n && !any; n = oct_node_next(n))
        for (int32_t i = 0; i < oct_node_n_out(n); i++) {
            const oct_value *v = oct_node_output(n, i);

            if (!v) continue;
            cli_near_try(&near, oct_value_name(v));
            any = any || cli_regex_match(re, oct_value_name(v));
        }
    cli_regex_free(re);
    if (any) return OCT_OK;
    return cli_fail(j->c, OCT_ERR_ARG, "option --dump: no value's name matches '%s'%s",
                    j->args->dump, cli_near_text(&near));
}

static oct_status make_folder(cli *c, const char *dir)
{
    struct stat sb;

    if (stat(dir, &sb) == 0 && S_ISDIR(sb.st_mode)) return OCT_OK;
    if (mkdir(dir, 0777))
        return cli_fail(c, OCT_ERR_IO, "%s: cannot make this folder: %s", dir, strerror(errno));
    return OCT_OK;
}

static oct_status execute(job *j)
{
    oct_plan_options o;
    oct_status st;
    int64_t start;

    oct_plan_options_init(&o);
    if (j->args->dump) {
        o.keep = j->args->dump;
        o.as_is = 1; /* passes would remove values that the user may ask for */
    }
    if ((st = oct_plan_new(j->g, &o, &j->plan))) return st;
    if ((st = oct_run_new(j->c->ctx, j->plan, &j->run))) return st;
    for (int32_t i = 0; i < oct_graph_n_inputs(j->g); i++)
        if ((st = oct_run_set_input(j->run, oct_value_name(oct_graph_input(j->g, i)), j->in[i])))
            return st;
    if ((st = make_folder(j->c, j->args->out))) return st;
    if (j->args->dump) oct_run_set_value_hook(j->run, dump_hook, j);
    start = cli_time_ns();
    if ((st = oct_run_execute(j->run))) return st;
    j->time_ns = cli_time_ns() - start;
    for (int32_t i = 0; i < oct_plan_n_outputs(j->plan); i++) {
        const oct_tensor *t = NULL;

        if ((st = oct_run_output(j->run, i, &t))) return st;
        if ((st = write_value(j, oct_plan_output_name(j->plan, i), t))) return st;
    }
    return OCT_OK;
}

static oct_status report(job *j)
{
    cli_json *out;
    oct_status st;

    if (!j->c->opt.json) return OCT_OK;
    out = cli_json_object();
    cli_json_round(out, "run_ms", (double)j->time_ns * 1e-6, 4);
    cli_json_add(out, "written", j->written);
    j->written = NULL;
    st = cli_json_print(j->c, out);
    cli_json_free(out);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .args = argp, .written = cli_json_array()};
    oct_status st;

    if ((st = cli_model_load(c, files[0], NULL, &j.g))) goto done;
    if ((st = cli_model_drop_unknown(c, j.g))) goto done;
    if ((st = check_dump(&j))) goto done;
    if ((st = load_inputs(&j, files[0]))) goto done;
    if ((st = execute(&j))) goto done;
    st = report(&j);
done:
    oct_run_free(j.run);
    oct_plan_free(j.plan);
    for (int32_t i = 0; j.in && i < oct_graph_n_inputs(j.g); i++)
        oct_tensor_unref(j.in[i]);
    for (int i = 0; i < j.n_paths; i++)
        free(j.paths[i]);
    free(j.paths);
    free(j.in);
    cli_json_free(j.written);
    oct_graph_free(j.g);
    return st;
}

const cli_command cmd_run = {
    .name = "run",
    .help = "run a model once on tensors from .npy files",
    .about = "Each output becomes DIR/<its name>.npy, with / and : in the name replaced by _. The "
             "shapes of the .npy files fix the open dimensions of the model. With --dump, the "
             "model runs unsimplified, so that every value of the file is there.\n\n"
             "With --json: run_ms and written (name, file, type, shape).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
