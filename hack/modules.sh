#!/usr/bin/env bash
# Prints the directories of the modules that hold code ("code") or of all
# modules ("all"), one a line. hack/tools pins tools and has no code.
set -euo pipefail
cd "$(dirname "$0")/.."
echo .
echo api
[[ "${1:-code}" == code ]] || echo hack/tools
