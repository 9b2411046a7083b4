#!/bin/bash
# be_entrypoint.sh FE_ADDRESSES: prepares the configuration, registers this BE with the master and starts it.

source "$(dirname "$0")/entrypoint_lib.sh"
export DORIS_HOME=$DORIS_ROOT/be
FE_ADDRESSES=${1:-${ENV_FE_ADDR:-}}
CONF=$DORIS_HOME/conf/be.conf
# How long the BE tries to register before it gives up (real: 60 s).
REGISTER_WAIT=${DORISSIM_REGISTER_WAIT:-60}

if [[ -n ${TERMINATING_SENTINEL_PATH:-} && -f $TERMINATING_SENTINEL_PATH ]]; then
    log "this BE is being terminated: not starting again"
    exit 0
fi

workload_group() {
    [[ ${ENABLE_WORKLOAD_GROUP:-} == true ]] || return 0
    mkdir -p /sys/fs/cgroup/cpu/doris 2>/dev/null && chmod 770 /sys/fs/cgroup/cpu/doris
    printf '\ndoris_cgroup_cpu_path = /sys/fs/cgroup/cpu/doris\n' >>"$CONF"
}

# The host that the FEs will know this BE by: an address if they know each other by addresses.
backend_host() {
    if [[ $HOST_TYPE == IP || $MASTER_HOST =~ ^[0-9.]+$ && $MASTER_HOST != 127.0.0.1 ]]; then
        echo "$POD_IP"
    else
        fqdn
    fi
}

registered() {
    local out
    out=$(sql "$MASTER_HOST" "show backends") || return 1
    column Host <<<"$out" | grep -qxF "$1"
}

register() {
    local host port end=$((SECONDS + REGISTER_WAIT))
    port=$(conf_value "$CONF" heartbeat_service_port 9050)
    until find_master "$FE_ADDRESSES"; do
        ((SECONDS >= end)) && return 1
        sleep "$POLL_INTERVAL"
    done
    ensure_user
    host=$(backend_host)
    if registered "$host"; then
        log "$host is registered already: enabling it"
        sql "$MASTER_HOST" "ALTER SYSTEM MODIFY BACKEND \"$host:$port\" SET (\"disable_query\"=\"false\",\"disable_load\"=\"false\")" >&2
        return 0
    fi
    until registered "$host"; do
        ((SECONDS >= end)) && return 1
        log "adding backend $host:$port"
        sql "$MASTER_HOST" "ALTER SYSTEM ADD BACKEND \"$host:$port\"" >&2
        sleep "$POLL_INTERVAL"
        find_master "$FE_ADDRESSES"
    done
}

link_config "$DORIS_HOME/conf" be.conf
workload_group
link_kerberos
read_credentials
"$DORIS_ROOT/doris-debug" --component be || exit $?
wait_for_dns || exit 1
if ! register; then
    log "the BE could not register in $REGISTER_WAIT s"
    exit 1
fi
"$DORIS_HOME/bin/start_be.sh" --console
exit $?
