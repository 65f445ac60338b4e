/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the built program and keeps what it printed; makes the small models it is run on. */
#ifndef OCT_TESTS_CLI_PROGRAM_H
#define OCT_TESTS_CLI_PROGRAM_H

#include "test.h"

#include <jansson.h>

/* What one call of the program left. */
typedef struct outcome {
    int status; /* exit status; 128 + signal */
    char *out, *err;
} outcome;

/* A folder that goes away, with small models in it. */
typedef struct place {
    char dir[64];
    char program[4096];
    outcome last;
} place;

/* The path of the program is the first argument of the test program. */
void place_set_program(const char *path);

int place_setup(void **state);
int place_teardown(void **state);

/* Runs "octet WORDS" in the folder; words are split as sh does. The result stays in p->last. */
int octet(place *p, const char *words);

/* The same with stdout and stderr on a terminal this wide; both are in last.out. */
int octet_on_terminal(place *p, const char *words, int columns);

/* The same into the void, and sends `sig` after so many milliseconds. */
int octet_interrupted(place *p, const char *words, int after_ms, int sig);

/* Parses what was printed to stdout, which must be JSON and nothing else. To be freed. */
json_t *printed_json(place *p);
json_t *file_json(place *p, const char *name);

bool exists(place *p, const char *name);
void write_file(place *p, const char *name, const void *data, size_t size);
int count_files(place *p); /* in the folder, without . and .. */

/* Fails the test and shows what was printed. */
void must_contain(const char *text, const char *part);

/* octet with these words must end with this status, print nothing, and say this of it. */
void must_refuse(place *p, const char *words, int status, const char *error);

/* --- models --- */

/* net.onnx: x [1,3,8,8] -> Conv "/body/conv/Conv" -> BatchNormalization -> Relu -> y; Identity -> z
 */
void make_net(place *p);

/* two.onnx: a, b [n,4] -> Add -> sum */
void make_two(place *p);

/* heavy.onnx: x [1,512] -> Add -> y; what is added is in heavy.onnx.data */
void make_heavy(place *p);

/* odd.onnx: x [2] -> Relu -> "a/b" -> Relu -> "a:b" -> Relu -> "\x1b[31m\ny", an output */
void make_odd(place *p);

/* Writes a .npy file of ones. */
void make_npy(place *p, const char *name, oct_dtype dtype, int32_t rank, const int64_t *dims);

#endif
