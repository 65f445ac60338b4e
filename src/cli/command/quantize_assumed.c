/* SPDX-License-Identifier: Apache-2.0 */
/* Assumptions of octet quantize, printed before the work, so that a wrong guess is seen at once. */
#include "cli/command/quantize.h"

/* With fewer, a single unusual picture decides the ranges. */
enum { FEW_PICTURES = 32 };

static void say_count(const cli_quantize_report *r, const oct_dataset *images)
{
    const int64_t n = oct_dataset_size(images);
    const char *what = r->tensors ? (n == 1 ? "tensor" : "tensors")
                       : n == 1   ? "picture"
                                  : "pictures";

    cli_note(r->c, "calibration on %lld %s", (long long)n, what);
    if (n < FEW_PICTURES)
        cli_note(r->c,
                 "note: %lld %s %s few: ranges may be off. Take at least %d that look like those "
                 "the network will see",
                 (long long)n, what, n == 1 ? "is" : "are", FEW_PICTURES);
}

oct_status cli_quantize_assume(cli_quantize_report *r, const oct_graph *g, const char *family,
                               const char *words, const oct_dataset *images, oct_preprocess *p)
{
    oct_detector *d = NULL;
    oct_status st;

    r->tensors = oct_dataset_is_tensors(images);
    r->n_left_out = oct_dataset_skipped(images);
    say_count(r, images);
    if (r->tensors) return OCT_OK;
    if (oct_detector_new(g, family, &d) == OCT_OK) {
        (void)snprintf(r->family, sizeof(r->family), "%s", oct_detector_family(d));
        cli_note(r->c, "family %s: %s", r->family, oct_detector_why(d));
    } else if (words) {
        cli_note(r->c, "family none: pictures are made as --preprocess says");
    }
    oct_detector_free(d);
    st = oct_graph_preprocess(g, family, words, p);
    /* Without words the library looks at the simplified network, and may see more. */
    if (st && !words) return OCT_OK;
    if (st) return cli_fail(r->c, OCT_ERR_ARG, "preprocess: %s", oct_ctx_error(r->c->ctx));
    (void)oct_preprocess_text(p, r->preprocess, sizeof(r->preprocess));
    cli_note(r->c, "preprocess %s", r->preprocess);
    return OCT_OK;
}
