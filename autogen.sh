#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes ./configure from configure.ac. Needed once after a checkout, not in a release.
set -eu

cd "$(dirname "$0")"

missing=
command -v autoreconf >/dev/null || missing="$missing autoconf"
command -v automake >/dev/null || missing="$missing automake"
command -v pkg-config >/dev/null || missing="$missing pkg-config"
if [ -n "$missing" ]; then
    echo "autogen.sh: missing tools; Debian packages:$missing" >&2
    exit 1
fi

exec autoreconf --install --warnings=all "$@"
