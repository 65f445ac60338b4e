/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a command that are fields of a recipe: see recipe.h. */
#include "cli/command/recipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/model.h"
#include "cli/near.h"

static oct_status load(cli *c, oct_recipe *r, const char *path)
{
    cli_near near;

    if (access(path, F_OK) && errno == ENOENT)
        return cli_fail(c, OCT_ERR_ARG, "%s: no such file%s", path, cli_near_file(&near, path));
    return oct_recipe_load(r, path);
}

static oct_status set_number(oct_recipe *r, const char *path, int64_t v)
{
    char number[32];

    (void)snprintf(number, sizeof(number), "%lld", (long long)v);
    return oct_recipe_set(r, path, number);
}

/* Is the option of this field a switch that turns something off? */
static bool turns_off(int32_t field)
{
    static const char *const kinds[] = {
#define OCT_FIELD(sym, path, option, kind, ...) #kind,
#include <octet/recipe.def>
#undef OCT_FIELD
    };

    return strcmp(kinds[field], "SWITCH_OFF") == 0;
}

/* The command line over what the recipe says. */
static oct_status apply_words(cli *c, const cli_recipe_args *a, char **files, oct_recipe *r)
{
    oct_recipe_field f = {.struct_size = sizeof(f)};
    oct_status st = OCT_OK;

    if (files[0]) st = oct_recipe_set(r, "model", files[0]);
    for (int32_t i = 0; !st && oct_recipe_field_at(i, &f); i++) {
        for (int k = 0; !st && k < a->words[i].n; k++)
            st = oct_recipe_set(r, f.path, a->words[i].items[k]);
        if (!st && a->flags[i]) st = oct_recipe_set(r, f.path, turns_off(i) ? "false" : "true");
    }
    if (!st && c->opt.seed_given) st = set_number(r, "seed", c->opt.seed);
    if (!st && c->opt.threads) st = set_number(r, "threads", c->opt.threads);
    return st;
}

oct_status cli_recipe_read(cli *c, const cli_recipe_args *a, char **files, oct_recipe **out)
{
    oct_status st;

    if ((st = oct_recipe_new(c->ctx, out))) return st;
    if (a->recipe && (st = load(c, *out, a->recipe))) return st;
    for (int32_t i = 0; oct_recipe_note(*out, i); i++)
        cli_note(c, "%s", oct_recipe_note(*out, i));
    return apply_words(c, a, files, *out);
}

oct_status cli_recipe_print(oct_recipe *r)
{
    const char *text = NULL;
    oct_status st = oct_recipe_text(r, &text);

    if (!st) (void)fputs(text, stdout);
    return st;
}

void cli_recipe_keep_reason(cli *c, oct_status st)
{
    const char *why = oct_ctx_error(c->ctx), *model = c->model ? c->model : "";
    const bool named = strncmp(why, model, strlen(model)) == 0;

    if (!c->error[0]) (void)cli_fail(c, st, "%s%s%s", named ? "" : model, named ? "" : ": ", why);
}

oct_status cli_recipe_load_model(cli *c, const oct_recipe_job *s, oct_graph **out)
{
    cli_list shapes = {.n = s->n_input_shapes};
    oct_status st;

    shapes.items = cli_alloc((size_t)shapes.n, sizeof(*shapes.items));
    for (int i = 0; i < shapes.n; i++)
        shapes.items[i] = s->input_shapes[i];
    st = cli_model_load(c, s->model, &shapes, out);
    if (!st && s->sample_size && !shapes.n &&
        (st = cli_model_fill_shape(c, *out, s->sample_size))) {
        oct_graph_free(*out);
        *out = NULL;
    }
    free(shapes.items);
    return st;
}
