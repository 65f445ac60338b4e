/* SPDX-License-Identifier: Apache-2.0 */
/* The files octet quantize writes: the network last, the others under temporary names until then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <octet/detect.h>

#include "cli/command/quantize.h"
#include "cli/guard.h"
#include "cli/model.h"

/* A file beside the network, renamed when the network is written. */
typedef struct side_file {
    char *path, *temporary; /* NULL: not wanted */
} side_file;

static void side_init(side_file *f, const char *path)
{
    if (!path) return;
    f->path = cli_format("%s", path);
    f->temporary =
        cli_is_sink(path) ? cli_format("%s", path) : cli_format("%s.%ld.tmp", path, (long)getpid());
}

static void side_fini(side_file *f)
{
    if (f->temporary && strcmp(f->temporary, f->path))
        (void)unlink(f->temporary); /* already renamed if all went well */
    free(f->path);
    free(f->temporary);
}

static oct_status side_rename(cli *c, const side_file *f)
{
    if (!f->path || strcmp(f->temporary, f->path) == 0 || rename(f->temporary, f->path) == 0)
        return OCT_OK;
    return cli_fail(c, OCT_ERR_IO, "%s: cannot rename to it: %s", f->path, strerror(errno));
}

char *cli_quantize_cfg_path(const oct_recipe_job *settings)
{
    const char *output = settings->output, *cfg = settings->quant_cfg;
    const size_t len = strlen(output);
    const size_t end = cli_has_suffix(output, ".onnx") ? 5 : cli_has_suffix(output, ".xml") ? 4 : 0;

    if (cfg) return strcmp(cfg, "none") == 0 ? NULL : cli_format("%s", cfg);
    if (cli_is_sink(output)) return NULL; /* there are no files beside a device */
    return cli_format("%.*s.quant_cfg.json", (int)(len - end), output);
}

/* What --nms and --attach-preprocess, or `attach` of a recipe, ask for; *out is NULL: nothing. */
static oct_status attach(const oct_graph *g, const oct_recipe_job *s, const char *family,
                         oct_graph **out)
{
    const bool has_preprocess = s->attach_preprocess && strcmp(s->attach_preprocess, "none") != 0;
    oct_attach_options o;

    *out = NULL;
    if (!has_preprocess && (!s->attach_nms || strcmp(s->attach_nms, "none") == 0)) return OCT_OK;
    oct_attach_options_init(&o);
    o.family = family;
    o.preprocess = !has_preprocess ? "none" : s->preprocess ? s->preprocess : "auto";
    o.nms = s->attach_nms ? s->attach_nms : "none";
    if (s->attach_format) o.format = s->attach_format;
    if (s->attach_score > 0) o.score = (float)s->attach_score;
    if (s->attach_iou > 0) o.iou = (float)s->attach_iou;
    if (s->attach_max_det) o.max_det = s->attach_max_det;
    if (s->attach_pre_nms) o.pre_nms = s->attach_pre_nms;
    if (s->attach_layout && strcmp(s->attach_layout, "nhwc") == 0) o.layout = OCT_IMAGE_NHWC;
    return oct_graph_attach(g, &o, out);
}

oct_status cli_quantize_write(cli *c, const oct_quantized *q, const oct_recipe_job *settings,
                              const char *family)
{
    oct_graph *whole = NULL;
    char *cfg = cli_quantize_cfg_path(settings);
    side_file qmap = {0}, ppq = {0}, cache = {0};
    oct_status st = OCT_OK;

    side_init(&qmap, settings->save_qmap);
    side_init(&ppq, cfg);
    side_init(&cache, settings->calibration_cache);
    c->model = settings->output;
    cli_hold_interrupts();
    if (qmap.path) st = oct_quantized_save_qmap(q, qmap.temporary);
    if (!st && ppq.path) st = oct_quantized_save_ppq(q, ppq.temporary);
    if (!st && cache.path)
        st = oct_quantized_save_tensorrt(q, cache.temporary, cli_has_suffix(cache.path, ".json"));
    if (!st) st = attach(oct_quantized_graph(q), settings, family, &whole);
    if (!st)
        st = cli_model_save(c, whole ? whole : oct_quantized_graph(q), settings->output, false);
    oct_graph_free(whole);
    if (!st) st = side_rename(c, &qmap);
    if (!st) st = side_rename(c, &ppq);
    if (!st) st = side_rename(c, &cache);
    side_fini(&qmap);
    side_fini(&ppq);
    side_fini(&cache);
    cli_release_interrupts();
    free(cfg);
    return st;
}
