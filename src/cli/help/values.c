/* SPDX-License-Identifier: Apache-2.0 */
/* What may follow an option: see values.h. */
#include "cli/help/values.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Lists of the library, by the word that stands for one of their names. */
typedef struct list {
    const char *metavar;
    const char *(*name)(int32_t i); /* NULL beyond the end */
    const char *first;              /* a word in front of them; NULL: none */
    bool is_long;                   /* too long for a line of help */
} list;

static const list lists[] = {
    {"TARGET", oct_target_name},
    {"TARGET,..", oct_target_name},
    {"FAMILY", oct_family_name, .first = "auto"},
    {"RANGES", oct_observer_name},
    {"PRESET", oct_train_preset_name},
    {"LOSS", oct_loss_name},
    {"OPTIMIZER", oct_optimizer_name},
    {"SCHEDULE", oct_schedule_name},
    {"EMA", oct_ema_name},
    {"AUGMENT", oct_augment_name},
    {"IMPORTANCE", oct_prune_importance_name},
    {"PRUNE-SCHEDULE", oct_prune_schedule_name},
    {"SPARSITY-SCHEDULE", oct_sparsity_schedule_name},
    {"PASS,..", oct_pass_name, .is_long = true},
};

static const list *list_of(const cli_opt *o)
{
    for (size_t i = 0; o->metavar && i < CLI_COUNT(lists); i++)
        if (strcmp(lists[i].metavar, o->metavar) == 0) return &lists[i];
    return NULL;
}

/* One of the parts that | splits: a word to type as it stands is no capital with a meaning, but
 * NNCF's names of devices are capitals. */
static unsigned kind_of_part(const char *part, size_t len)
{
    if (len == 4 && memcmp(part, "FILE", 4) == 0) return CLI_VALUE_FILE;
    if (len == 3 && memcmp(part, "DIR", 3) == 0) return CLI_VALUE_DIR;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)part[i]) && !strchr("-_", part[i])) return 0; /* "NODE,.." */
    return CLI_VALUE_WORDS;
}

unsigned cli_value_kinds(const cli_opt *o)
{
    const list *l = list_of(o);
    unsigned kinds = 0;

    if (l) return CLI_VALUE_WORDS | (strstr(l->metavar, ",..") ? CLI_VALUE_MANY : 0);
    if (!o->metavar) return 0;
    if (strcmp(o->metavar, "NAME=FILE") == 0) return CLI_VALUE_FILE;
    for (const char *p = o->metavar; *p; p += strcspn(p, "|"), p += *p == '|')
        kinds |= kind_of_part(p, strcspn(p, "|"));
    /* A word alone is what the value is, not what to type. */
    return strchr(o->metavar, '|') || islower((unsigned char)o->metavar[0])
               ? kinds
               : kinds & ~(unsigned)CLI_VALUE_WORDS;
}

bool cli_value_word(const cli_opt *o, int i, char *text, size_t size)
{
    const list *l = list_of(o);
    const char *p = o->metavar;

    if (!(cli_value_kinds(o) & CLI_VALUE_WORDS)) return false;
    if (l) {
        const char *word = l->first && i == 0 ? l->first : l->name(i - (l->first != NULL));

        if (word) (void)snprintf(text, size, "%s", word);
        return word != NULL;
    }
    for (; *p; p += strcspn(p, "|"), p += *p == '|') {
        const size_t len = strcspn(p, "|");

        if (kind_of_part(p, len) != CLI_VALUE_WORDS || i--) continue;
        (void)snprintf(text, size, "%.*s", (int)len, p);
        return true;
    }
    return false;
}

char *cli_value_words(const cli_opt *o, const char *between)
{
    char *text = cli_format("%s", ""), word[64];

    for (int i = 0; cli_value_word(o, i, word, sizeof(word)); i++) {
        char *longer = cli_format("%s%s%s", text, i ? between : "", word);

        free(text);
        text = longer;
    }
    return text;
}

char *cli_opt_help(const cli_opt *o)
{
    const list *l = list_of(o);
    char *names, *text;

    if (!l || l->is_long) return cli_format("%s", o->help);
    names = cli_value_words(o, ", ");
    text = cli_format("%s; one of %s", o->help, names);
    free(names);
    return text;
}
