/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of an option. The metavar in the tables decides: FILE and DIR, choices split by |, or the
 * name of a list in the library (TARGET, FAMILY, ...). Help, manual and completion use it, so no
 * list is written twice.
 */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "cli/cli.h"

enum {
    CLI_VALUE_WORDS = 1u << 0, /* those of cli_value_word() */
    CLI_VALUE_FILE = 1u << 1,
    CLI_VALUE_DIR = 1u << 2,
    CLI_VALUE_MANY = 1u << 3, /* several words, with commas between them */
};

/* 0: nothing is known of it, as of numbers and patterns. */
unsigned cli_value_kinds(const cli_opt *o);

/* Choice i, in `text`; false beyond the last. */
bool cli_value_word(const cli_opt *o, int i, char *text, size_t size);

/* All choices, with `between` between them; to be freed. */
char *cli_value_words(const cli_opt *o, const char *between);

/* The help text of an option, with the names of its list; to be freed. */
char *cli_opt_help(const cli_opt *o);

#endif
