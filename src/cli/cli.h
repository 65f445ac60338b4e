/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command of the program is, and what it may use.
 *
 * A command is one const struct in its own file (cmd_<name>.c) and one line in commands.def. Its
 * option table is read by the parser, --help, the man page and the shell completion.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <octet/octet.h>

#if defined(__GNUC__)
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLI_PRINTF(fmt, args)
#endif

#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The kind says what the field at `offset` of the command's args is. */
typedef enum cli_kind {
    CLI_END = 0, /* ends a table */
    CLI_FLAG,    /* bool: given or not */
    CLI_ALONE,   /* bool: given, no files are needed (--list) */
    CLI_INT,     /* int64_t, at least `min` */
    CLI_F64,     /* double, above 0, at most `max` */
    CLI_STR,     /* const char * */
    CLI_LIST,    /* cli_list: may be given many times */
} cli_kind;

typedef struct cli_list {
    const char **items;
    int n;
} cli_list;

typedef struct cli_opt {
    cli_kind kind;
    const char *name; /* without the dashes */
    size_t offset;
    const char *metavar; /* "N", "FILE"; NULL for flags */
    const char *help;
    const char *def;   /* default, read as if it were typed; NULL: the field stays 0 */
    int64_t min;       /* of CLI_INT */
    char letter;       /* short form: 'o' for -o; 0: none */
    size_t given;      /* offset of a bool that tells that it was typed; 0: none */
    const char *usual; /* default that is only shown */
    double max;        /* of CLI_F64; 0: none */
    int role;          /* of a file's name: CLI_READS, CLI_WRITES; see guard.h */
} cli_opt;

enum { CLI_READS = 1, CLI_WRITES = 2 };

enum {
    CLI_FILE_IN = 1u << 0,    /* must exist: for a missing one the nearest name is suggested */
    CLI_FILE_OUT = 1u << 1,   /* its folder must exist; see guard.h for what may be replaced */
    CLI_FILE_MANY = 1u << 2,  /* one or more; only the last of a table */
    CLI_FILE_MAYBE = 1u << 3, /* may be left out; only the last of a table */
    CLI_FILE_DATA = 1u << 4,  /* a folder, a pattern or "-" is accepted as well */
};

/* A word that is not an option. */
typedef struct cli_file {
    const char *name; /* "MODEL"; NULL ends a table */
    const char *help;
    unsigned flags;
} cli_file;

typedef struct cli_example {
    const char *line; /* without "octet"; NULL ends a table */
    const char *what;
} cli_example;

/* The options every command takes. */
typedef struct cli_common {
    bool help, quiet, json, force;
    int64_t threads; /* 0: the library's choice */
    int64_t seed;
    bool seed_given;
    cli_list plugins, stubs;
} cli_common;

typedef struct cli_command cli_command;
typedef struct cli_guard cli_guard;

/* One call of the program. */
typedef struct cli {
    oct_ctx *ctx;
    const cli_command *cmd;
    char **words; /* what was typed after "octet"; ends with NULL */
    cli_common opt;
    cli_guard *guard;  /* of the files it reads and writes */
    const char *model; /* the current file, for messages; NULL before one is loaded */
    bool hint_help;    /* the command line is wrong, not the files it names: --help helps */
    char error[2048];  /* why a command failed, if the library has no reason; "" */
    double load;       /* of the machine as the command began */
    int64_t start_ns;  /* of the work the progress bar shows; 0: none */
    int64_t drawn_ns;  /* when it was last shown */
    int64_t bar_done, bar_total;
    bool has_bar;            /* one is on the screen */
    const char *progress_of; /* label of the current network where there are several, as "INT8";
                              * NULL: the only one */
} cli;

struct cli_command {
    const char *name;
    const char *help;  /* one line, imperative */
    const char *about; /* paragraphs for --help and the manual, split by empty lines; may be NULL */
    const cli_file *files;
    const cli_opt *opts;
    size_t args_size; /* of the struct the offsets point into */
    const cli_example *examples;
    oct_status (*run)(cli *c, const void *args, char **files); /* files ends with NULL */
};

/* Command i of the table; NULL beyond its end. */
const cli_command *cli_command_at(int i);
const cli_command *cli_command_find(const char *name);
const cli_opt *cli_common_opts(void);

/* --- args.c --- */

/*
 * Reads the words after the command's name into args (zeroed, cmd->args_size bytes) and c->opt.
 * *files gets the remaining words in a new array. OCT_ERR_ARG with the reason set if they are
 * wrong.
 */
oct_status cli_parse(cli *c, const cli_command *cmd, int argc, char **argv, void *args,
                     char ***files);
void cli_parse_free(const cli_command *cmd, void *args, char **files);

/* --- help.c, man.c, completion*.c, version.c: all from the tables --- */

void cli_help(FILE *out);
void cli_help_command(FILE *out, const cli_command *cmd);
void cli_usage_line(const cli_command *cmd, char *text, size_t size);
void cli_man(FILE *out, const cli_command *cmd); /* NULL: the page of the whole program */
void cli_completion_bash(FILE *out);
void cli_completion_zsh(FILE *out);
void cli_completion_fish(FILE *out);
void cli_version(FILE *out);

/* --- errors (cli.c) --- */

/*
 * Sets the reason and returns `status`. OCT_ERR_ARG means that what was typed is wrong (exit 2),
 * all others that the work failed (exit 1).
 */
oct_status cli_fail(cli *c, oct_status status, const char *fmt, ...) CLI_PRINTF(3, 4);
oct_status cli_missing(cli *c, const char *what); /* OCT_ERR_ARG, with the usage of the command */
void cli_note(const cli *c, const char *fmt, ...) CLI_PRINTF(2, 3); /* on stderr, not if quiet */

/* --- memory.c --- */

/* Zeroed memory; the program exits with a message if there is none. */
void *cli_alloc(size_t n, size_t size);
void *cli_realloc(void *p, size_t n, size_t size);
char *cli_format(const char *fmt, ...) CLI_PRINTF(1, 2); /* to be freed */

/* --- term.c --- */

int cli_term_width(FILE *f);     /* 0: not a terminal */
bool cli_term_is_plain(FILE *f); /* not a terminal, or one that knows no escape sequences */

typedef enum cli_hue { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW } cli_hue;

/* The escape sequence that begins a colour (CLI_PLAIN ends it); "" where colours are off. */
const char *cli_color(FILE *f, cli_hue hue);

/*
 * One line of text, cleaned, with a newline. On a terminal that is too narrow it is wrapped at
 * words, two columns deeper than it began.
 */
void cli_say(FILE *out, const char *fmt, ...) CLI_PRINTF(2, 3);

/*
 * "name      text": a fact, cleaned, with a newline; the text begins in column `column` and is
 * wrapped there in a narrow terminal.
 */
void cli_fact(FILE *out, int column, const char *name, const char *fmt, ...) CLI_PRINTF(4, 5);

/* Where paragraphs end: at the terminal's edge, but not too far; 80 if there is none. */
int cli_text_columns(FILE *f);

int64_t cli_time_ns(void); /* a steady clock */

/* --- progress.c --- */

#define CLI_PROGRESS_MS " (ms)" /* ends the name of work that is counted in milliseconds */

/*
 * An oct_progress_fn for user = cli, on stderr: a bar on a terminal, else a line every few seconds.
 * Cancels after a Ctrl-C.
 */
int cli_progress(void *user, const char *what, int64_t done, int64_t total);
void cli_progress_end(cli *c);

/* --- interrupt.c --- */

/* A Ctrl-C ends the work at its next step, or after a moment, with a one-line message. */
void cli_catch_interrupts(void);
bool cli_stopped(void);             /* for loops without progress */
void cli_die_if_stopped(void);      /* says it and ends by the signal */
void cli_interrupt_bar(bool drawn); /* a progress bar occupies the line that a message would be
                                     * written to */

/*
 * Between the two, a Ctrl-C is delayed: results appear whole or not at all. Nothing else needs it,
 * since files are written under a temporary name.
 */
void cli_hold_interrupts(void);
void cli_release_interrupts(void);

#endif
