/* SPDX-License-Identifier: Apache-2.0 */
/* Who works at something: a process, in words that others can check. */
#ifndef OCT_TUNE_OWNER_H
#define OCT_TUNE_OWNER_H

#include <stdbool.h>

enum { OCT_OWNER_TEXT = 160 };

/* This process: "MACHINE PID START", where the machine is one boot of a kernel and one namespace of
 * process numbers. */
void oct_owner_self(char text[OCT_OWNER_TEXT]);

typedef enum oct_owner_state {
    OCT_OWNER_ALIVE,
    OCT_OWNER_DEAD,
    OCT_OWNER_ELSEWHERE /* on another machine: cannot be told */
} oct_owner_state;

oct_owner_state oct_owner_look(const char *text);

#endif
