/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a command that are fields of a recipe: its options, and reading both. */
#ifndef CLI_RECIPE_H
#define CLI_RECIPE_H

#include <octet/recipe.h>

#include "cli/cli.h"

enum {
#define OCT_FIELD(sym, ...) CLI_FIELD_##sym,
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_N_FIELDS
};

/* What was typed; the args of such a command. */
typedef struct cli_recipe_args {
    cli_list words[CLI_N_FIELDS]; /* for each field */
    bool flags[CLI_N_FIELDS];
    const char *recipe;
    bool print_recipe;
} cli_recipe_args;

/* For the rows of a table of options. Switches are flags, all others take words. */
#define CLI_AS_WORDS(sym)                                                                          \
    CLI_LIST, offsetof(cli_recipe_args, words) + CLI_FIELD_##sym * sizeof(cli_list)
#define CLI_AS_FLAG(sym)       CLI_FLAG, offsetof(cli_recipe_args, flags) + CLI_FIELD_##sym * sizeof(bool)
#define CLI_OF_TEXT(sym)       CLI_AS_WORDS(sym)
#define CLI_OF_CHOICE(sym)     CLI_AS_WORDS(sym)
#define CLI_OF_INT(sym)        CLI_AS_WORDS(sym)
#define CLI_OF_REAL(sym)       CLI_AS_WORDS(sym)
#define CLI_OF_NAMES(sym)      CLI_AS_WORDS(sym)
#define CLI_OF_PREPROCESS(sym) CLI_AS_WORDS(sym)
#define CLI_OF_LIST(sym)       CLI_AS_WORDS(sym)
#define CLI_OF_SUBGRAPHS(sym)  CLI_AS_WORDS(sym)
#define CLI_OF_OVERRIDES(sym)  CLI_AS_WORDS(sym)
#define CLI_OF_SWITCH(sym)     CLI_AS_FLAG(sym)
#define CLI_OF_SWITCH_OFF(sym) CLI_AS_FLAG(sym)

#define CLI_FIELD_OPTION(kind, offset, option, metavar, text, def, short_form)                     \
    {kind, option, offset, metavar, .help = text, .usual = def, .letter = short_form},
#define CLI_FIELD_EXPANDED(...) CLI_FIELD_OPTION(__VA_ARGS__)

/* A row of recipe.def as an option: #define OCT_FIELD CLI_FIELD_ROW */
#define CLI_FIELD_ROW(sym, path, option, kind, field, metavar, min, max, def, help)                \
    CLI_FIELD_EXPANDED(CLI_OF_##kind(sym), option, metavar, help, def,                             \
                       CLI_FIELD_##sym == CLI_FIELD_OUTPUT ? 'o' : 0)

#define CLI_OPT_RECIPE(what)                                                                       \
    {CLI_STR, "recipe", offsetof(cli_recipe_args, recipe), "FILE", .help = what},                  \
    {                                                                                              \
        CLI_FLAG, "print-recipe", offsetof(cli_recipe_args, print_recipe),                         \
            .help = "print the recipe that equals these options, and do nothing else"              \
    }

/* Reads the recipe that is named, and what was typed over it. The caller frees *out, also after a
 * failure. */
oct_status cli_recipe_read(cli *c, const cli_recipe_args *a, char **files, oct_recipe **out);

oct_status cli_recipe_print(oct_recipe *r); /* as YAML */

/* An error's file name may be the recipe's string, which is freed: copies it. */
void cli_recipe_keep_reason(cli *c, oct_status st);

/* Reads a model with the shapes that the recipe gives. */
oct_status cli_recipe_load_model(cli *c, const oct_recipe_job *s, oct_graph **out);

#endif
