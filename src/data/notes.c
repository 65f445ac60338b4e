/* SPDX-License-Identifier: Apache-2.0 */
/* What was left out of a dataset and why. */
#include "data/notes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 4, NAME_SIZE = 200, TEXT_SIZE = 1024 };

typedef struct heap {
    int64_t n;
    char first[FIRST][NAME_SIZE];
} heap;

struct oct_notes {
    oct_ctx *ctx;
    pthread_mutex_t lock; /* threads of a loader add to it */
    heap kinds[OCT_NOTE_N_KINDS];
    char text[TEXT_SIZE];
};

/* For one and for several; what stands between the names. */
static const struct {
    const char *one, *many, *between;
} words[OCT_NOTE_N_KINDS] = {
    [OCT_NOTE_NO_PICTURE] = {"file is no picture and was", "files are no pictures and were", ", "},
    [OCT_NOTE_MISSING] = {"picture is missing and was", "pictures are missing and were", ", "},
    [OCT_NOTE_BROKEN] = {"picture is broken and was", "pictures are broken and were", "; "},
    [OCT_NOTE_ENTRY] = {"entry of the labels is wrong and was",
                        "entries of the labels are wrong and were", "; "},
    [OCT_NOTE_EMPTY_BOX] = {"box has no area and was", "boxes have no area and were", ", "},
};

oct_status oct_notes_new(oct_ctx *ctx, oct_notes **out)
{
    oct_notes *n = oct_calloc(ctx, 1, sizeof(*n));

    if (!n) return OCT_ERR_MEMORY;
    n->ctx = ctx;
    (void)pthread_mutex_init(&n->lock, NULL);
    *out = n;
    return OCT_OK;
}

void oct_notes_free(oct_notes *n)
{
    if (!n) return;
    (void)pthread_mutex_destroy(&n->lock);
    oct_free(n->ctx, n);
}

void oct_notes_add(oct_notes *n, oct_note_kind kind, const char *what)
{
    heap *h = &n->kinds[kind];

    (void)pthread_mutex_lock(&n->lock);
    if (h->n < FIRST) (void)snprintf(h->first[h->n], NAME_SIZE, "%s", what);
    h->n++;
    (void)pthread_mutex_unlock(&n->lock);
}

int64_t oct_notes_count(oct_notes *n, oct_note_kind kind)
{
    int64_t count;

    (void)pthread_mutex_lock(&n->lock);
    count = n->kinds[kind].n;
    (void)pthread_mutex_unlock(&n->lock);
    return count;
}

/* "12 files are no pictures and were left out (notes.txt, a.csv, b.csv, c.csv, ...)" */
static void write_text(oct_notes *n, int kind)
{
    const heap *h = &n->kinds[kind];
    int at = snprintf(n->text, TEXT_SIZE, "%lld %s left out (", (long long)h->n,
                      h->n == 1 ? words[kind].one : words[kind].many);

    for (int64_t i = 0; i < h->n && i < FIRST; i++)
        at += snprintf(n->text + at, (size_t)(TEXT_SIZE - at), "%s%s", i ? words[kind].between : "",
                       h->first[i]);
    (void)snprintf(n->text + at, (size_t)(TEXT_SIZE - at), "%s)",
                   h->n > FIRST ? (words[kind].between[0] == ';' ? "; ..." : ", ...") : "");
}

const char *oct_notes_about(oct_notes *n, oct_note_kind kind)
{
    const char *text = NULL;

    (void)pthread_mutex_lock(&n->lock);
    if (n->kinds[kind].n) {
        write_text(n, (int)kind);
        text = n->text;
    }
    (void)pthread_mutex_unlock(&n->lock);
    return text;
}

const char *oct_notes_text(oct_notes *n, int32_t i)
{
    const char *text = NULL;

    if (i < 0) return NULL;
    (void)pthread_mutex_lock(&n->lock);
    for (int kind = 0; kind < OCT_NOTE_N_KINDS && !text; kind++) {
        if (!n->kinds[kind].n || i-- > 0) continue;
        write_text(n, kind);
        text = n->text;
    }
    (void)pthread_mutex_unlock(&n->lock);
    return text;
}
