/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the reader of Python files share. */
#ifndef OCT_DATA_PYTHON_PARTS_H
#define OCT_DATA_PYTHON_PARTS_H

#include <string.h>

#include "data/python.h"

typedef enum oct_token_kind {
    OCT_TOKEN_END,
    OCT_TOKEN_LINE, /* the end of a statement */
    OCT_TOKEN_NAME,
    OCT_TOKEN_NUMBER,
    OCT_TOKEN_STRING,
    OCT_TOKEN_SIGN, /* all others, as text */
} oct_token_kind;

typedef struct oct_token {
    oct_token_kind kind;
    const char *text; /* of a string: what it stands for */
    int line, column;
} oct_token;

/* A file being read. */
typedef struct oct_python {
    oct_ctx *ctx;
    oct_arena *arena;
    const char *name; /* of the file */
    const char *p, *end;
    const char *line_start;
    int line;
    int depth;       /* of brackets that are open: lines do not end there */
    oct_token at;    /* the token that comes next */
    oct_tree *names; /* what was set so far */
    const oct_python_options *o;
    int n_nodes; /* of all values: names that stand for long lists cannot multiply them */
} oct_python;

enum { OCT_PYTHON_MAX_NODES = 1 << 16, OCT_PYTHON_MAX_TEXT = 1 << 16, OCT_PYTHON_MAX_BASES = 32 };

oct_status oct_python_fail(const oct_python *y, int line, int column, const char *fmt, ...)
    OCT_PRINTF(4, 5);

/* Moves on to the next token (python_token.c). */
oct_status oct_python_next(oct_python *y);

static inline bool oct_token_is(const oct_token *t, const char *sign)
{
    return t->kind == OCT_TOKEN_SIGN && !strcmp(t->text, sign);
}

/* Reads one value, behind which y->at stands (python_value.c). */
oct_status oct_python_value(oct_python *y, oct_tree **out);

/* A copy, at another place; counts the nodes. */
oct_status oct_python_copy(oct_python *y, const oct_tree *from, int depth, oct_tree **out);

/* Sets a key of a map, in place of what it had. */
void oct_tree_put(oct_tree *map, const char *key, oct_tree *value);

/* Merges the names of the files that `_base_` lists under those of this one (python_base.c). */
oct_status oct_python_merge_bases(oct_python *y, int depth);

/* Reads all statements of a file (python.c). */
oct_status oct_python_statements(oct_python *y);

#endif
