/* SPDX-License-Identifier: Apache-2.0 */
/* What tells one search from another. */
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/tune.h"

static oct_status put_pictures(oct_tune_bench *b, oct_str *s)
{
    oct_dataset *d;

    OCT_TRY(oct_tune_calibration(b, OCT_TUNE_ROUNDS - 1, &d));
    for (int64_t i = 0; i < oct_dataset_size(d) && !oct_dataset_is_tensors(d); i++) {
        const char *path = oct_dataset_path(d, i), *slash = path ? strrchr(path, '/') : NULL;

        oct_str_printf(s, "%s\n", slash ? slash + 1 : path ? path : "");
    }
    return OCT_OK;
}

/* The content of the labels, where they are a file. */
static oct_status put_labels(const oct_tune_bench *b, oct_str *s)
{
    char digest[OCT_SHA256_TEXT];
    oct_dataset_options d;
    oct_file *f = NULL;
    struct stat sb;

    oct_dataset_options_init(&d);
    oct_recipe_get_eval_data(b->base, &d);
    if (!b->has_labels || !d.annotations) return OCT_OK;
    if (stat(d.annotations, &sb) != 0 || !S_ISREG(sb.st_mode)) return OCT_OK;
    OCT_TRY(oct_file_map(b->ctx, d.annotations, &f));
    oct_str_printf(s, "%s\n", oct_sha256(oct_file_data(f), oct_file_size(f), digest));
    oct_file_unref(f);
    return OCT_OK;
}

oct_status oct_tune_identity(oct_tune_bench *b, oct_arena *arena, char text[OCT_SHA256_TEXT])
{
    const oct_tune_options *o = b->o;
    const char *digest, *lines;
    int64_t bytes;
    oct_status st;
    oct_str s;

    OCT_TRY(oct_tune_weigh(b->g, arena, &bytes, &digest));
    OCT_TRY(oct_recipe_lines(b->base, &lines));
    oct_str_init(&s, b->ctx);
    oct_str_printf(&s, "octet %s\n%s\n%s\n%lld %lld %d\n%d %llu %d %s\n", oct_version(), digest,
                   lines, (long long)b->n_calibrate, (long long)b->n_score, (int)b->has_labels,
                   (int)o->trials, (unsigned long long)o->seed, (int)o->slow,
                   o->targets ? o->targets : "");
    st = put_pictures(b, &s);
    if (!st) st = put_labels(b, &s);
    if (!st && s.failed) st = OCT_ERR_MEMORY;
    if (!st) (void)oct_sha256(s.s, s.len, text);
    oct_str_fini(&s);
    return st;
}
