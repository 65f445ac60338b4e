/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes by number, and how they are filled. */
#ifndef OCT_DATA_LABELS_CLASS_NAMES_H
#define OCT_DATA_LABELS_CLASS_NAMES_H

#include <octet/data.h>

#include "data/tree.h"

enum { OCT_MAX_CLASSES = 1 << 16 }; /* a longer list is not one of class names */

struct oct_class_names {
    oct_ctx *ctx;
    oct_arena *arena;
    const char **items; /* NULL: without a name */
    size_t n, cap;
};

oct_status oct_class_names_new(oct_ctx *ctx, oct_class_names **out);
oct_status oct_class_names_copy(oct_ctx *ctx, const oct_class_names *from, oct_class_names **out);

/* Class `i` is called `name` (copied; "" is no name). Fails if it has one already. */
oct_status oct_class_names_set(oct_class_names *c, int64_t i, const char *name, size_t len);

/*
 * A list or a map from numbers to texts, as Python and JSON write it: "{0: 'cat', 1: \"dog\"}",
 * "['cat', 'dog']". The text ends with a zero byte; `what` is for errors.
 */
oct_status oct_class_names_literal(oct_class_names *c, const char *what, const char *text);

/* The same from a tree: a list, or a map whose keys are numbers. `file` is for errors. */
oct_status oct_class_names_tree(oct_class_names *c, const char *file, const oct_tree *t);

/* One a line, without blanks at the ends; empty lines at the end of the text do not count. */
oct_status oct_class_names_lines(oct_class_names *c, const char *text, size_t size);

#endif
