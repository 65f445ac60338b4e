/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out: a thin layer over jansson, which only json.c sees. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli/cli.h"

typedef struct json_t cli_json;

cli_json *cli_json_object(void);
cli_json *cli_json_array(void);
void cli_json_free(cli_json *j); /* of the outermost; accepts NULL */

/* Into an object, or with key NULL at the end of an array. Takes ownership of `child`. */
void cli_json_add(cli_json *to, const char *key, cli_json *child);
void cli_json_str(cli_json *to, const char *key, const char *v); /* NULL: null; made valid UTF-8 */
void cli_json_int(cli_json *to, const char *key, int64_t v);
void cli_json_num(cli_json *to, const char *key, double v); /* not a number: null */
void cli_json_bool(cli_json *to, const char *key, bool v);
void cli_json_null(cli_json *to, const char *key);

/* Rounds to `digits` decimals, so that times do not carry noise. */
void cli_json_round(cli_json *to, const char *key, double v, int digits);

/* Prints to stdout, indented, keys in the order they were added. */
oct_status cli_json_print(cli *c, const cli_json *j);

/* The same in one line, at once: for results that come one by one. */
oct_status cli_json_line(cli *c, const cli_json *j);

/* Writes a file: under a temporary name, renamed when whole. */
oct_status cli_json_save(cli *c, const cli_json *j, const char *path);

#endif
