#!/usr/bin/env bash
# The tests run on PostgreSQL 15 as well as on the embedded 18; 15 comes from Debian's package.
set -eu
bin="${POSTGRESQL_15_BIN:-/usr/lib/postgresql/15/bin}"
if [ -x "$bin/initdb" ]; then exit 0; fi

install="apt-get install --yes --no-install-recommends postgresql-15"
if [ "$(id -u)" = 0 ]; then sudo=""; elif sudo -n true 2>/dev/null; then sudo="sudo -n"; else
    echo "The tests need PostgreSQL 15 and may not install it. Run: sudo $install" >&2
    echo "or set POSTGRESQL_15_BIN to a folder that holds initdb and postgres of version 15." >&2
    exit 1
fi
# no cluster of Debian's making: the tests start their own and touch nobody else's
$sudo mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive $install >/dev/null
[ -x "$bin/initdb" ] || { echo "postgresql-15 was installed, but $bin/initdb is missing; set POSTGRESQL_15_BIN" >&2; exit 1; }
