/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures for the runs of a session: decoded and prepared as octet eval does. */
#include "cli/command/feed_pictures.h"

#include "cli/data.h"

oct_status cli_feed_open(cli *c, const cli_session *s, const char *images, cli_feed *out)
{
    const char *model = c->model;
    oct_dataset_options d;
    oct_status st;

    *out = (cli_feed){.c = c, .session = s};
    if (!images) return OCT_OK;
    oct_dataset_options_init(&d);
    d.images = images;
    d.need_files = 1;
    c->model = NULL; /* errors here are about the data */
    if ((st = cli_dataset_open(c, &d, &out->images))) return st;
    if (oct_dataset_is_tensors(out->images) || oct_dataset_size(out->images) < 1)
        return cli_fail(c, OCT_ERR_ARG, "option --images: there are no pictures in %s", images);
    (void)cli_data_notes(c, images, out->images, 0);
    c->model = model;
    return OCT_OK;
}

void cli_feed_close(cli_feed *f)
{
    oct_dataset_close(f->images);
    f->images = NULL;
}

static oct_status fill_one(const cli_feed *f, int64_t index, void *dst)
{
    oct_image *im = NULL;
    oct_status st = oct_dataset_load(f->images, index, &im);

    if (!st)
        st = oct_preprocess_run(f->c->ctx, &f->session->preprocess, im, f->session->input_types[0],
                                dst, NULL);
    oct_image_free(im);
    return st;
}

oct_status cli_feed_fill(const cli_feed *f, oct_run *r, int64_t i)
{
    const int64_t n = f->session->batch, size = f->images ? oct_dataset_size(f->images) : 0;
    void *data = NULL;
    size_t bytes = 0;
    oct_status st;

    if (!f->images) return i ? OCT_OK : cli_session_fill(f->session, r, (uint64_t)f->c->opt.seed);
    st = oct_run_input(r, oct_plan_input_name(f->session->plan, 0), &data, &bytes);

    for (int64_t k = 0; !st && k < n; k++)
        st = fill_one(f, (i * n + k) % size, (char *)data + (size_t)k * (bytes / (size_t)n));
    return st;
}
