#!/usr/bin/env bash
# The tests of the pages drive the Chromium of the system; Playwright brings none here.
set -eu
if command -v chromium >/dev/null; then exit 0; fi

install="apt-get install --yes --no-install-recommends chromium fonts-dejavu-core"
if [ "$(id -u)" = 0 ]; then sudo=""; elif sudo -n true 2>/dev/null; then sudo="sudo -n"; else
    echo "The tests of the pages need Chromium and may not install it. Run: sudo $install" >&2
    exit 1
fi
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive $install >/dev/null
command -v chromium >/dev/null || { echo "chromium was not found after installation; put it first in PATH" >&2; exit 1; }
