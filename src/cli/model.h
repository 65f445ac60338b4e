/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands do with a model: load it, bind shapes, count, name its parts. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "cli/cli.h"
#include "cli/term/json.h"

/* What a command takes as a network, for its help. */
#define CLI_A_NETWORK "an ONNX file, a torch.export archive (.pt2) or a checkpoint of octet train"

/* For the table of a command whose args have `cli_list shapes`. */
#define CLI_OPT_INPUT_SHAPE(type)                                                                  \
    {                                                                                              \
        CLI_LIST, "input-shape", offsetof(type, shapes), "NAME:DIMS",                              \
            .help =                                                                                \
                "fix the shape of an input, as in images:1x3x640x640; NAME: may be left out if "   \
                "there is only one input. May be given several times"                              \
    }

/* For the table of a command whose args have `const char *outputs`. */
#define CLI_OPT_OUTPUTS(type)                                                                      \
    {                                                                                              \
        CLI_STR, "outputs", offsetof(type, outputs), "NAME,..",                                    \
            .help = "keep only these outputs, and drop what only the others need"                  \
    }

/* Are all outputs there that --outputs names? Before training, after which they are kept. */
oct_status cli_model_check_outputs(cli *c, const char *names, const oct_graph *g);

/* Keeps only the outputs that --outputs names; NULL: all. */
oct_status cli_model_keep_outputs(cli *c, const char *names, oct_graph *g);

/* For commands that run it: without operators at the end that octet does not know. Says so. */
oct_status cli_model_drop_unknown(cli *c, oct_graph *g);

/* Reads a model and fixes the shapes that --input-shape gives. */
oct_status cli_model_load(cli *c, const char *path, const cli_list *shapes, oct_graph **out);

/* Open sizes of the only input as in "1x3x640x640"; what is fixed stays as it is. */
oct_status cli_model_fill_shape(cli *c, oct_graph *g, const char *dims);

/* Open sizes of the picture's input become those of the pictures, and an open batch this one; what
 * is fixed stays as it is. */
oct_status cli_model_fit_pictures(oct_graph *g, const oct_preprocess *p, int64_t batch);

/* The same for the pictures of --preprocess; NULL: nothing is done. */
oct_status cli_model_fit_words(oct_graph *g, const char *family, const char *words, int64_t batch);

/* Writes a model: ONNX, or OpenVINO IR if the name ends with .xml. half: float32 weights of IR as
 * float16. */
oct_status cli_model_save(cli *c, const oct_graph *g, const char *path, bool half);

/* A network with integer inputs or outputs (--int8-io) gets float ones. */
oct_status cli_model_open_codes(cli *c, oct_graph **g);

/* Prints the quantization parameters of inputs and outputs, and which of them are float all the
 * same. */
void cli_model_codes_note(const cli *c, const oct_graph *g);

/* The input called `name` among the inputs; NULL with the error (nearest names) set. */
const oct_value *cli_model_input(cli *c, const oct_graph *g, const char *option, const char *name);

/* "images float32 1x3x640x640, mask bool <batch>x77": for messages. */
const char *cli_model_inputs_text(const oct_graph *g, char *text, size_t size);

/* "1x3x640x640", "<batch>x3x?x?", "scalar", "?" (rank not known). */
#define CLI_SHAPE_SIZE 256
const char *cli_shape_text(const oct_value *v, char text[CLI_SHAPE_SIZE]);
const char *cli_dims_text(int32_t rank, const int64_t *dims, char text[CLI_SHAPE_SIZE]);

/* {name, type, shape}: dims are numbers, names or null. */
cli_json *cli_value_json(const oct_value *v);

/* Writes a model as cli_model_save() does, and prints what it takes and gives: lines, or with
 * --json nodes, inputs and outputs. */
oct_status cli_model_write(cli *c, const oct_graph *g, const char *path, bool half);

/* The node's name, or its first output's if it has none. */
const char *cli_node_label(const oct_node *n);

typedef struct cli_op_count {
    const char *op; /* borrowed from the graph */
    int64_t n, params, macs;
} cli_op_count;

/* What a model consists of. Weights that several nodes share count once. */
typedef struct cli_totals {
    int64_t n_nodes, params, macs, weight_bytes;
    cli_op_count *ops; /* by falling number of nodes */
    int n_ops;
} cli_totals;

void cli_totals_init(cli_totals *t, const oct_graph *g);
void cli_totals_fini(cli_totals *t);
const cli_op_count *cli_totals_find(const cli_totals *t, const char *op); /* NULL: none */

int64_t cli_file_size(const char *path); /* -1: not there */

#endif
