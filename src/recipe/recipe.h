/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a recipe share: the table of fields, and what reads and writes them.
 *
 *   bytes ── data/yaml.c ──▶ tree ── fields.c (or foreign.c, then fields.c) ──▶ values ── print.c
 * ──▶ text
 */
#ifndef OCT_RECIPE_RECIPE_H
#define OCT_RECIPE_RECIPE_H

#include <octet/recipe.h>

#include "data/tree.h"

/* --- fields --- */

typedef enum oct_field_kind {
    OCT_FIELD_TEXT,
    OCT_FIELD_CHOICE,     /* one of the words of metavar */
    OCT_FIELD_INT,        /* int32_t */
    OCT_FIELD_SEED,       /* uint64_t */
    OCT_FIELD_REAL,       /* double */
    OCT_FIELD_SWITCH,     /* int32_t 0 or 1 */
    OCT_FIELD_SWITCH_OFF, /* int32_t that is 1 where the word is false */
    OCT_FIELD_TRISTATE,   /* int32_t: 1 for true, -1 for false, 0 not set */
    OCT_FIELD_FAST_BIAS,  /* true or false in NNCF's words: sets OCT_RECIPE_BIAS_CORRECTION */
    OCT_FIELD_NAMES,      /* one word, or a list that becomes words with commas */
    OCT_FIELD_PREPROCESS, /* words, or a map that becomes words */
    OCT_FIELD_LIST,       /* from here on: an array and behind it an int32_t */
    OCT_FIELD_SUBGRAPHS,
    OCT_FIELD_OVERRIDES,
} oct_field_kind;

typedef struct oct_field {
    const char *path, *option;
    oct_field_kind kind;
    size_t offset; /* in the struct the table is for */
    const char *metavar;
    double min, max; /* of numbers */
    const char *def, *help;
} oct_field;

enum {
#define OCT_FIELD(sym, ...) OCT_RECIPE_##sym,
#include <octet/recipe.def>
#undef OCT_FIELD
    OCT_RECIPE_N_FIELDS
};

extern const oct_field oct_recipe_fields[OCT_RECIPE_N_FIELDS];
extern const oct_field oct_override_fields[]; /* of oct_quant_override; ends with a NULL path */

/* Who set a field. */
typedef enum oct_origin { OCT_ORIGIN_NONE, OCT_ORIGIN_FILE, OCT_ORIGIN_WORD } oct_origin;

typedef struct oct_recipe_values {
    oct_recipe_job job;
    const char *const *images;
    int32_t n_images; /* right behind: a list of the table */
    const char *data_file, *annotations, *eval_images;
    int32_t eval_limit;
    oct_dataset_options data;
    oct_quantize_options quantize;
    oct_recipe_train_job train_job;
    oct_train_options train;
    oct_prune_options prune;
    oct_train_pruning pruning;
    oct_sparsity_options sparsity;
} oct_recipe_values;

struct oct_recipe {
    oct_ctx *ctx;
    oct_arena *arena; /* of all strings and arrays */
    oct_recipe_values values;
    oct_origin origin[OCT_RECIPE_N_FIELDS];
    const char **notes;
    size_t n_notes, cap_notes;
};

/* Where a value comes from, for errors: a place of a file, or an option. */
typedef struct oct_recipe_source {
    const char *name; /* the file, or the option without dashes */
    bool is_option;
} oct_recipe_source;

/* "FILE:LINE:COLUMN: why" or "option --NAME: why". */
oct_status oct_recipe_fail(oct_recipe *r, const oct_recipe_source *s, const oct_tree *at,
                           const char *fmt, ...) OCT_PRINTF(4, 5);

/* Applies a whole tree. Maps of the table's groups are walked by path. */
oct_status oct_recipe_apply(oct_recipe *r, const oct_recipe_source *s, const oct_tree *map);

/* Applies one value to a field. */
oct_status oct_recipe_apply_field(oct_recipe *r, const oct_recipe_source *s, int field,
                                  const oct_tree *value);

/* One scalar, list, .. into `base` + f->offset (value.c). */
oct_status oct_value_read(oct_recipe *r, const oct_recipe_source *s, const oct_field *f, void *base,
                          const oct_tree *t);

/* "; did you mean 'x'?" for the nearest of names[0..n), or "" (fields.c). */
typedef struct oct_hint {
    const char *want, *best;
    int distance;
    char text[160];
} oct_hint;

void oct_hint_init(oct_hint *h, const char *want);
void oct_hint_try(oct_hint *h, const char *name, size_t len);
const char *oct_hint_text(oct_hint *h);

/* --- foreign files (foreign.c, and a file for each tool) --- */

/* Is this another tool's file? Then *out is the same in octet's words, and notes were made. */
oct_status oct_foreign_read(oct_recipe *r, const oct_recipe_source *s, const oct_tree *map,
                            bool is_python, oct_tree **out);
oct_status oct_recipe_add_note(oct_recipe *r, const char *fmt, ...) OCT_PRINTF(2, 3);

/* Pictures of a batch, where a file counts in batches and does not say how large they are. */
enum { OCT_ADAPTER_BATCH = 16 };

/* What an adapter works on: sets fields by path in `out`, and tells what it did. */
typedef struct oct_adapter {
    oct_recipe *r;
    const oct_recipe_source *source;
    oct_tree *out;
    long batch; /* pictures of a batch, where another part of the file says it; 0: it does not */
} oct_adapter;

/* Puts a scalar or an entry of a list (for `.names`, `.patterns`) at "group.key". */
oct_status oct_adapter_set(oct_adapter *a, const oct_tree *at, const char *path, const char *text);
oct_status oct_adapter_append(oct_adapter *a, const oct_tree *at, const char *path,
                              const char *text);
/* A name as other tools write it: module path, NNCF scope, "{re}" or bare regex, into a scope. */
oct_status oct_adapter_scope(oct_adapter *a, const oct_tree *at, const char *scope,
                             const char *text);
/* Adds {pattern: '.*', key: value} to the overrides. */
oct_status oct_adapter_override(oct_adapter *a, const oct_tree *at, const char *key,
                                const char *value);
/* The same for a name as oct_adapter_scope() has it. */
oct_status oct_adapter_override_at(oct_adapter *a, const oct_tree *at, const char *name,
                                   const char *key, const char *value);
oct_status oct_adapter_done(oct_adapter *a, const char *what, const oct_tree *value,
                            const char *meaning);
oct_status oct_adapter_left_out(oct_adapter *a, const char *what, const char *why);

bool oct_recipe_has_key(const char *key); /* octet's own, or a group of its own */

/* --- tables of rules (adapter_rules.c) --- */

/* What a key of another tool's becomes: a setting, a word on it, or nothing. */
typedef struct oct_adapter_rule {
    const char *key;   /* theirs; NULL at the end of a table */
    const char *value; /* only where it is this (case is free); NULL: always */
    const char *path;  /* ours; NULL: no setting */
    const char *word;  /* what it is set to; NULL: what the file says */
    const char *why;   /* without a path: why it is left out, or what it is */
    bool is_done;      /* without a path: octet does so anyway */
} oct_adapter_rule;

/* Reads a map by the first rule that fits each key; keys of `others` (NULL at the end; may be NULL)
 * are read elsewhere, and what remains is left out because of `why`. */
oct_status oct_adapter_rules(oct_adapter *a, const oct_tree *map, const char *prefix,
                             const oct_adapter_rule *rules, const char *const *others,
                             const char *why);

/* A word, of "QuantizationPreset.MIXED" the last one. */
const char *oct_adapter_word(const oct_tree *t);

/* A name or a list of names into a scope, and [1, 3, 300, 300] into sample_size. */
oct_status oct_adapter_scopes(oct_adapter *a, const oct_tree *t, const char *what,
                              const char *scope);
oct_status oct_adapter_shape(oct_adapter *a, const oct_tree *t, const char *what);

/* The target for PPQ's name of a platform; NULL: none. */
const char *oct_platform_target(const char *name);

/* `map` is the whole file, `params` the part of it that has the settings. */
oct_status oct_nncf_read(oct_adapter *a, const oct_tree *map);
/* An algorithm of theirs, of a config; scopes of the config count as well (nncf.c, nncf_prune.c).
 */
oct_status oct_nncf_quantization(oct_adapter *a, const oct_tree *q, const oct_tree *config);
oct_status oct_nncf_pruning(oct_adapter *a, const oct_tree *q, const oct_tree *config);
oct_status oct_nncf_sparsity(oct_adapter *a, const oct_tree *q, const oct_tree *config);
oct_status oct_nncf_accuracy_aware(oct_adapter *a, const oct_tree *t);
/* initializer.batchnorm_adaptation, and how many pictures a batch of theirs has (nncf_job.c). */
oct_status oct_nncf_adaptation(oct_adapter *a, const oct_tree *init, const oct_tree *config);
long oct_nncf_batch(const oct_adapter *a, const oct_tree *config);

/* A Python config without its nncf_config (mmdetection.c), and an optimizer of either. */
oct_status oct_mmdetection_read(oct_adapter *a, const oct_tree *map);
oct_status oct_training_optimizer(oct_adapter *a, const oct_tree *o);

/* "Model/Heads[heads]/Conv[pred]/conv2d_0" to "heads.pred"; "" if it is none (foreign.c). */
void oct_scope_module_path(const char *scope, char *out, size_t size);

oct_status oct_nncf_arguments(oct_adapter *a, const oct_tree *map);
oct_status oct_nncf_advanced(oct_adapter *a, const oct_tree *advanced_parameters);
oct_status oct_ppq_read(oct_adapter *a, const oct_tree *map);
oct_status oct_quark_read(oct_adapter *a, const oct_tree *map);
oct_status oct_super_gradients_read(oct_adapter *a, const oct_tree *map, const oct_tree *params);
oct_status oct_super_gradients_qat(oct_adapter *a, const oct_tree *map, const oct_tree *qat,
                                   const oct_tree *learn_amax);
/* quantizer: {CLASS: params}: says the target, and where its settings are. */
oct_status oct_super_gradients_quantizer(oct_adapter *a, const oct_tree *quantizer,
                                         const oct_tree **params);
oct_status oct_super_gradients_quantizer_params(oct_adapter *a, const oct_tree *t);
oct_status oct_super_gradients_export(oct_adapter *a, const oct_tree *map, const oct_tree *params);

#endif
