/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that layers of a pruned network are fitted on. */
#include "cli/command/compress.h"
#include "cli/data.h"

oct_status cli_compress_open_pictures(cli_compress *k, const oct_graph *g)
{
    oct_prune_options *o = &k->prune;
    oct_dataset_options d;
    oct_train_options t;
    oct_status st;

    if (!k->files.refit || o->pictures) return OCT_OK;
    oct_train_options_init(&t);
    oct_recipe_get_train(k->recipe, &t);
    oct_dataset_options_init(&d);
    d.images = k->files.refit;
    d.need_files = 1;
    if ((st = cli_dataset_open(k->c, &d, &k->pictures))) return st;
    o->family = t.family;
    if (k->settings.preprocess) {
        st = oct_graph_preprocess(g, o->family, k->settings.preprocess, &k->preprocess);
        o->preprocess = &k->preprocess;
    }
    o->pictures = k->pictures;
    return st;
}
