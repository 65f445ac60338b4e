/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of a network: their names, and which category of a dataset each of them is. */
#ifndef CLI_CLASSES_H
#define CLI_CLASSES_H

#include "cli/cli.h"
#include "cli/term/json.h"

/* For the table of a command whose args have `const char *labels`. */
#define CLI_OPT_LABELS(type)                                                                       \
    {                                                                                              \
        CLI_STR, "labels", offsetof(type, labels), "FILE",                                         \
            .role = CLI_READS,                                                                     \
            .help =                                                                                \
                "names of the network's classes in their order: a name a line, or the 'names' "    \
                "of a data.yaml; without it the model's own metadata, or COCO's if there are 80"   \
    }

/* The names of --labels; *out stays NULL if the option is not given. */
oct_status cli_labels_load(cli *c, const char *path, oct_class_names **out);

/* Names a detector's classes. `names` may be NULL, `path` is for errors. */
oct_status cli_labels_set(cli *c, oct_detector *d, const oct_class_names *names, const char *path);

/* On stderr, where names differ or are not known: how classes are matched, and a table. */
oct_status cli_classes_note(cli *c, const oct_detector *net, const oct_dataset *d);

/* "matched" (how) and "classes": class, name, category, category_id; all of them. */
void cli_classes_json(cli_json *j, const oct_detector *net, const oct_dataset *d);

/* Says what is wrong with the integers of a quantized network, a line each. */
void cli_diagnose(cli *c, const oct_graph *g);

#endif
