#!/bin/bash
# start_fe.sh [--console|--daemon] [--helper HOST:PORT] [--metadata_failure_recovery]
DORIS_HOME=${DORIS_HOME:-$(cd "$(dirname "$0")/.." && pwd)}
export DORIS_HOME
export LOG_DIR=$DORIS_HOME/log
export PID_DIR=$DORIS_HOME/bin
daemon=false
args=()
while (($# > 0)); do
    case $1 in
    --console) ;;
    --daemon) daemon=true ;;
    --helper) args+=(--helper "$2"); shift ;;
    --metadata_failure_recovery) args+=(--metadata_failure_recovery) ;;
    *) echo "unknown argument $1" >&2; exit 1 ;;
    esac
    shift
done

# Upper-case keys of the configuration are environment for the process.
while IFS= read -r line; do
    if [[ $line =~ ^[[:space:]]*([A-Z][A-Z_0-9]*)[[:space:]]*=[[:space:]]*(.*)$ ]]; then
        name=${BASH_REMATCH[1]}
        value=$(eval "echo ${BASH_REMATCH[2]}" 2>/dev/null) && export "$name=$value"
    fi
done <"$DORIS_HOME/conf/fe.conf"

if [[ -f $PID_DIR/fe.pid ]] && kill -0 "$(cat "$PID_DIR/fe.pid")" 2>/dev/null; then
    echo "Frontend running as process $(cat "$PID_DIR/fe.pid"). Stop it first." >&2
    exit 1
fi
mkdir -p "$LOG_DIR"
program=${DORISSIM_PROGRAM:-$DORIS_HOME/../dorissim}
if $daemon; then
    nohup "$program" fe --home "$DORIS_HOME" "${args[@]}" >>"$LOG_DIR/fe.out" 2>&1 </dev/null &
    echo $! >"$PID_DIR/fe.pid"
    exit 0
fi
echo $$ >"$PID_DIR/fe.pid"
exec "$program" fe --home "$DORIS_HOME" "${args[@]}"
