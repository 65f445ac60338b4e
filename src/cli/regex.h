/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns on names: PCRE2, which only regex.c sees. A pattern may match anywhere in a name. */
#ifndef CLI_REGEX_H
#define CLI_REGEX_H

#include "cli/cli.h"

typedef struct cli_regex cli_regex;

/* OCT_ERR_ARG with the place in the pattern if it is wrong; `option` is named in the message. */
oct_status cli_regex_new(cli *c, const char *option, const char *pattern, cli_regex **out);
void cli_regex_free(cli_regex *re); /* accepts NULL */
bool cli_regex_match(const cli_regex *re, const char *text);

#endif
