#!/usr/bin/env bash
# Prints the directories of the modules that hold code ("code") or of all
# modules ("all"), one a line. hack/tools pins tools and has no code; test/chart
# has a module of its own so that Helm's dependencies stay out of the operator's, and
# test/alerts for those of Prometheus.
set -euo pipefail
cd "$(dirname "$0")/.."
echo .
echo api
echo test/chart
echo test/alerts
[[ "${1:-code}" == code ]] || echo hack/tools
