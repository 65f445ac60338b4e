/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command reads and writes. No file of the user is overwritten: an output is never an input,
 * two outputs are never one file, and a file that octet did not make is replaced only with --force.
 *
 * Files and options are named in the tables of a command (CLI_FILE_IN, CLI_FILE_OUT, .role) and are
 * checked before it starts. What is known later (files of a folder, settings of a recipe) is
 * registered here. The library asks for every file it writes, so that a forgotten one is refused
 * too, if late, and for every file that a network names.
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "cli/cli.h"

/* `path`, a file or a folder with all in it, is read by this call of the program. */
void cli_reads(cli *c, const char *path);

/*
 * `path` will be written. Fails (OCT_ERR_ARG) if it may not be: see above. `option` is named in the
 * message, as in "--out"; NULL: it was no option.
 */
oct_status cli_writes(cli *c, const char *option, const char *path);

/* The same for a file that is written again and again, each time whole: a checkpoint. */
oct_status cli_rewrites(cli *c, const char *option, const char *path);

/* Can octet write a network under this name? It writes ONNX and OpenVINO IR. */
oct_status cli_check_model_name(cli *c, const char *option, const char *path);

/* Does the name end with this suffix, ".xml", in either case? */
bool cli_has_suffix(const char *path, const char *suffix);

/* Is it a device such as /dev/null, or a pipe: nothing to be replaced, no place for side files? */
bool cli_is_sink(const char *path);

/* Did octet make this file? False if that cannot be told. (own.c) */
bool cli_is_own(const char *path);

void cli_guard_start(cli *c); /* connects it to the library */
void cli_guard_end(cli *c);

#endif
