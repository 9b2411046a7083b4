#!/bin/bash
# stop_be.sh [--grace]: ends the process at once, or with --grace asks it to end and waits until it has.
DORIS_HOME=${DORIS_HOME:-$(cd "$(dirname "$0")/.." && pwd)}
pid_file=${PID_DIR:-$DORIS_HOME/bin}/be.pid
signal=KILL
[[ ${1:-} == --grace ]] && signal=TERM
if [[ ! -f $pid_file ]] || ! pid=$(cat "$pid_file") || ! kill -0 "$pid" 2>/dev/null; then
    echo "be is not running" >&2
    exit 1
fi
kill -s "$signal" "$pid"
while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
done
rm -f "$pid_file"
