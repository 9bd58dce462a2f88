#!/usr/bin/env bash
# The live tests run a real Infrahub: Java 17 or later and Maven for its database, Python 3.12 or 3.13 for the server.
set -eu
here="$(dirname "$0")"
bash "$here/require_kafka.sh" # Java and Maven: the broker needs the same
python="${1:-python3}"
cd "$here/../.."
if "$python" -m tests.live.server.installation 2>/dev/null; then exit 0; fi

# Debian 13 and later, Ubuntu 24.04 and later have one; elsewhere uv brings one where it may download
if [ "$(id -u)" = 0 ]; then sudo=""; elif sudo -n true 2>/dev/null; then sudo="sudo -n"; else sudo="none"; fi
if [ "$sudo" != none ]; then
    $sudo apt-get update -qq
    package=$(apt-cache search --names-only '^python3\.1[23]-venv$' | sed -n '1s/ .*//p')
    if [ -n "$package" ]; then
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$package" >/dev/null
    fi
fi
if ! "$python" -m tests.live.server.installation 2>/dev/null && command -v uv >/dev/null; then
    uv python install 3.12 || true # where it fails the check below says what is missing
fi
"$python" -m tests.live.server.installation
