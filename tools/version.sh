#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the version written in include/octet/version.h.
awk '$2 ~ /^OCT_VERSION_(MAJOR|MINOR|PATCH)$/ { v = v sep $3; sep = "." } END { print v }' \
  "$(dirname "$0")/../include/octet/version.h"
