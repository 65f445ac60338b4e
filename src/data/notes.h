/* SPDX-License-Identifier: Apache-2.0 */
/* What was skipped in a dataset and why: counts, and the first few names. */
#ifndef OCT_DATA_NOTES_H
#define OCT_DATA_NOTES_H

#include "base/mem.h"

typedef enum oct_note_kind {
    OCT_NOTE_NO_PICTURE, /* a file in a folder of pictures that is none */
    OCT_NOTE_MISSING,    /* a picture that the labels name */
    OCT_NOTE_ENTRY,      /* a label or a line that is wrong */
    OCT_NOTE_EMPTY_BOX,  /* a label without area */
    OCT_NOTE_BROKEN,     /* a picture that cannot be decoded; last, because it is found late */
    OCT_NOTE_N_KINDS
} oct_note_kind;

typedef struct oct_notes oct_notes;

oct_status oct_notes_new(oct_ctx *ctx, oct_notes **out);
void oct_notes_free(oct_notes *n); /* accepts NULL */

/* From any thread. `what` is copied (its end is cut if it is long). */
void oct_notes_add(oct_notes *n, oct_note_kind kind, const char *what);

int64_t oct_notes_count(oct_notes *n, oct_note_kind kind);

/* The sentence about one kind; NULL: there is none of it. Valid until the next call or add. */
const char *oct_notes_about(oct_notes *n, oct_note_kind kind);

/* Sentence i about what was left out; NULL beyond the last. Valid until the next call or add. */
const char *oct_notes_text(oct_notes *n, int32_t i);

#endif
