/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a search for a promise. */
#ifndef OCT_CONTROL_CONTROL_H
#define OCT_CONTROL_CONTROL_H

#include <octet/control.h>

#include "graph/graph.h"

/* promise.c: writes what was promised and measured into the metadata of g. */
oct_status oct_promise_write(oct_graph *g, const oct_promise *p);

#endif
