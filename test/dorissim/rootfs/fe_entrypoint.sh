#!/bin/bash
# fe_entrypoint.sh FE_ADDRESSES: prepares the configuration, finds this FE's place in the cluster and starts it.

source "$(dirname "$0")/entrypoint_lib.sh"
export DORIS_HOME=$DORIS_ROOT/fe
FE_ADDRESSES=${1:-${ENV_FE_ADDR:-}}
ELECT_NUMBER=${ELECT_NUMBER:-3}
CONF=$DORIS_HOME/conf/fe.conf
# How long ordinal 0 asks for an existing master before it starts a cluster of its own (real: 60 s).
FIRST_WAIT=${DORISSIM_FIRST_FE_WAIT:-6}
# How long the others ask (real: 180 s).
MASTER_WAIT=${DORISSIM_MASTER_WAIT:-60}

# An explicit false is overridden. Through a link into a read-only ConfigMap this fails, and the FE stays in IP mode.
enable_fqdn() {
    [[ $HOST_TYPE == IP ]] && return 0
    [[ $(conf_value "$CONF" enable_fqdn_mode "") == true ]] && return 0
    log "adding enable_fqdn_mode = true to $CONF"
    printf '\nenable_fqdn_mode = true\n' >>"$CONF" || log "enable_fqdn_mode could not be added"
}

start_fe() {
    "$DORIS_HOME/bin/start_fe.sh" --console "$@"
    exit $?
}

restart_if_known() {
    local meta_dir
    meta_dir=$(conf_value "$CONF" meta_dir "$DORIS_HOME/doris-meta")
    [[ -f $meta_dir/image/ROLE ]] || return 0
    log "metadata exists, restarting"
    if grep -q '^selectdb.com.doris/recovery=' "$ANNOTATIONS" 2>/dev/null; then
        start_fe --metadata_failure_recovery
    fi
    start_fe
}

ordinal() {
    local name=${POD_NAME:-$(hostname)}
    echo "${name##*-}"
}

wait_for_master() {
    local end=$((SECONDS + MASTER_WAIT))
    [[ $(ordinal) == 0 ]] && end=$((SECONDS + FIRST_WAIT))
    until find_master "$FE_ADDRESSES"; do
        ((SECONDS >= end)) && return 1
        sleep "$POLL_INTERVAL"
    done
}

register() {
    local host port kind
    host=$(own_host)
    port=$(conf_value "$CONF" edit_log_port 9010)
    kind=OBSERVER
    (($(ordinal) < ELECT_NUMBER)) && kind=FOLLOWER
    until column Host <<<"$FRONTENDS" | grep -qxF "$host"; do
        log "adding $kind $host:$port"
        sql "$MASTER_HOST" "ALTER SYSTEM ADD $kind \"$host:$port\"" >&2
        sleep "$POLL_INTERVAL"
        find_master "$FE_ADDRESSES"
    done
}

link_config "$DORIS_HOME/conf"
enable_fqdn
link_kerberos
read_credentials
"$DORIS_ROOT/doris-debug" --component fe || exit $?
wait_for_dns || exit 1
restart_if_known
if wait_for_master; then
    ensure_user
    register
    start_fe --helper "$MASTER_ADDR"
fi
if [[ $(ordinal) != 0 ]]; then
    log "no master found in $MASTER_WAIT s"
    exit 1
fi
log "no master found in $FIRST_WAIT s: starting a new cluster"
start_fe
