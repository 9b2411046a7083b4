#!/bin/bash
# start_be.sh [--console|--daemon]
DORIS_HOME=${DORIS_HOME:-$(cd "$(dirname "$0")/.." && pwd)}
export DORIS_HOME
export LOG_DIR=$DORIS_HOME/log
export PID_DIR=$DORIS_HOME/bin
daemon=false
[[ ${1:-} == --daemon ]] && daemon=true

if [[ ${SKIP_CHECK_ULIMIT:-false} != true ]]; then
    if (($(cat /proc/sys/vm/max_map_count) < 2000000)); then
        echo "Please set vm.max_map_count to be 2000000 under root using 'sysctl -w vm.max_map_count=2000000'." >&2
        exit 1
    fi
    if (($(wc -l </proc/swaps) > 1)); then
        echo "Please disable swap memory before installation." >&2
        exit 1
    fi
    if [[ $(ulimit -n) != unlimited ]] && (($(ulimit -n) < 60000)); then
        echo "Set kernel parameter 'ulimit -n' to a value greater than or equal to 60000." >&2
        exit 1
    fi
fi

while IFS= read -r line; do
    if [[ $line =~ ^[[:space:]]*([A-Z][A-Z_0-9]*)[[:space:]]*=[[:space:]]*(.*)$ ]]; then
        name=${BASH_REMATCH[1]}
        value=$(eval "echo ${BASH_REMATCH[2]}" 2>/dev/null) && export "$name=$value"
    fi
done <"$DORIS_HOME/conf/be.conf"

if [[ -f $PID_DIR/be.pid ]] && kill -0 "$(cat "$PID_DIR/be.pid")" 2>/dev/null; then
    echo "Backend running as process $(cat "$PID_DIR/be.pid"). Stop it first." >&2
    exit 1
fi
mkdir -p "$LOG_DIR"
program=${DORISSIM_PROGRAM:-$DORIS_HOME/../dorissim}
if $daemon; then
    nohup "$program" be --home "$DORIS_HOME" >>"$LOG_DIR/be.out" 2>&1 </dev/null &
    echo $! >"$PID_DIR/be.pid"
    exit 0
fi
echo $$ >"$PID_DIR/be.pid"
exec "$program" be --home "$DORIS_HOME"
