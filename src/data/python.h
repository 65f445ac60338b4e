/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python files that only set names: `name = dict(..)`, numbers, texts, lists, and names set above.
 * They are read as data into the same tree as YAML; nothing is ever run. Anything else of Python
 * (calls, imports, loops) is refused, with its line.
 */
#ifndef OCT_DATA_PYTHON_H
#define OCT_DATA_PYTHON_H

#include "data/tree.h"

/* Reads a file that `_base_` names: `path` is as written, relative to the folder of `from`. Its
 * bytes are needed until the tree was read. */
typedef oct_status (*oct_python_open)(void *user, const char *from, const char *path,
                                      const char **name, const void **data, size_t *size);

typedef struct oct_python_options {
    const char *const
        *unset;           /* names that stand for None where they are not set; NULL at the end */
    oct_python_open open; /* NULL: a file with bases is refused */
    void *user;
} oct_python_options;

/* The names of a file as a map, over those of its bases; dictionaries are merged as mmcv does,
 * `_delete_=True` replaces. */
oct_status oct_python_read(oct_arena *a, const char *name, const void *data, size_t size,
                           const oct_python_options *options, oct_tree **out);

/* Does a text begin by setting a name, as Python does and YAML never? */
bool oct_python_is(const void *data, size_t size);

#endif
