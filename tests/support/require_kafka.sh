#!/usr/bin/env bash
# The broker tests run a real Kafka: Java 17 or later, and Maven for its jars.
set -eu
java_is_new_enough() { command -v java >/dev/null && [ "$(java -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')" -ge 17 ]; }
if java_is_new_enough && command -v mvn >/dev/null; then exit 0; fi

install="apt-get install --yes --no-install-recommends openjdk-17-jre-headless maven"
if [ "$(id -u)" = 0 ]; then sudo=""; elif sudo -n true 2>/dev/null; then sudo="sudo -n"; else
    echo "The tests need Java 17 and Maven for a real Kafka broker and may not install them. Run: sudo $install" >&2
    exit 1
fi
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive $install >/dev/null
java_is_new_enough || { echo "Java 17 or later was not found after installation; put it first in PATH" >&2; exit 1; }
