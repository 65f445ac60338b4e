/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of text with positions: a YAML or JSON file, before it is interpreted. */
#ifndef OCT_DATA_TREE_H
#define OCT_DATA_TREE_H

#include "base/mem.h"

typedef enum oct_tree_kind { OCT_TREE_SCALAR, OCT_TREE_LIST, OCT_TREE_MAP } oct_tree_kind;

typedef struct oct_tree {
    oct_tree_kind kind;
    int line, column; /* from 1; 0: made by an adapter or typed */
    const char *text; /* scalar */
    bool is_plain;    /* scalar without quotes: may be a number, true, false or null */
    const char *key;  /* of an entry of a map; NULL in lists */
    int key_line, key_column;
    struct oct_tree *first, *last, *next; /* entries; the next one of the same parent */
    int n;
} oct_tree;

enum {
    OCT_TREE_MAX_BYTES = 1 << 20,
    OCT_TREE_MAX_DEPTH = 16,
    OCT_TREE_MAX_KEYS = 4096, /* of one map: bounds the search for keys given twice */
};

/* Reads YAML 1.2 or JSON; *out is NULL for an empty text. `name` is for errors. */
oct_status oct_tree_read(oct_arena *a, const char *name, const void *data, size_t size,
                         oct_tree **out);

/* Fails if it is no text, or too much of it. */
oct_status oct_tree_check_text(oct_ctx *ctx, const char *name, const void *data, size_t size);

oct_tree *oct_tree_get(const oct_tree *map, const char *key); /* NULL: none, or no map */
bool oct_tree_is_null(const oct_tree *t);                     /* also NULL */
const char *oct_tree_text(const oct_tree *t);                 /* "" if it is no scalar */

/* For adapters: makes nodes with the position of `at`. */
oct_tree *oct_tree_new(oct_arena *a, oct_tree_kind kind, const oct_tree *at);
oct_tree *oct_tree_scalar(oct_arena *a, const oct_tree *at, const char *text);
void oct_tree_add(oct_tree *parent, const char *key, oct_tree *child);

#endif
