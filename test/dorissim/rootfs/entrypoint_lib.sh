# Functions of the FE and BE entrypoints. Sourced, not run.

DORIS_ROOT=${DORIS_ROOT:-/opt/apache-doris}
AUTH_PATH=/etc/basic_auth
ANNOTATIONS=/etc/podinfo/annotations
FE_QUERY_PORT=${FE_QUERY_PORT:-9030}
HOST_TYPE=${HOST_TYPE:-FQDN}
CONFIGMAP_MOUNT_PATH=${CONFIGMAP_MOUNT_PATH:-/etc/doris}
# Waits that the real images have, shortened; see docs/dorissim.md.
POLL_INTERVAL=${DORISSIM_POLL_INTERVAL:-1}

log() { echo "[$(date -u +%FT%TZ)] $*" >&2; }

# The mounted files win over the environment.
read_credentials() {
    ADMIN_USER=${USER:-root}
    ADMIN_PASSWD=${PASSWD:-}
    [[ -f $AUTH_PATH/username ]] && ADMIN_USER=$(cat "$AUTH_PATH/username")
    [[ -f $AUTH_PATH/password ]] && ADMIN_PASSWD=$(cat "$AUTH_PATH/password")
    return 0
}

# link_config TARGET_DIR [COPIED_FILE]: every file of the mounted ConfigMaps replaces the image's own one.
link_config() {
    local dir=$1 copied=${2:-} file target
    [[ -d $CONFIGMAP_MOUNT_PATH ]] || return 0
    for file in $(ls "$CONFIGMAP_MOUNT_PATH"); do
        target=$dir/$file
        [[ -e $target && ! -L $target ]] && mv -f "$target" "$target.bak"
        if [[ $file == "$copied" ]]; then
            cp -f "$CONFIGMAP_MOUNT_PATH/$file" "$target"
        else
            ln -sfT "$CONFIGMAP_MOUNT_PATH/$file" "$target"
        fi
    done
}

# conf_value FILE KEY DEFAULT: the last match counts, tails after # are cut.
conf_value() {
    local value
    value=$(grep -E "^[[:space:]]*$2[[:space:]]*=" "$1" 2>/dev/null | tail -n 1 | cut -d= -f2- | sed -e 's/[[:space:]]#.*$//' -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//')
    value=${value//'${DORIS_HOME}'/$DORIS_HOME}
    echo "${value:-$3}"
}

fqdn() { hostname -f; }

own_host() {
    if [[ $HOST_TYPE == IP ]]; then echo "$POD_IP"; else fqdn; fi
}

# Waits until the own name resolves, as peers will have to resolve it.
wait_for_dns() {
    [[ $HOST_TYPE == IP ]] && return 0
    local waited=0 timeout=${DNS_READY_TIMEOUT:-120} interval=${DNS_READY_INTERVAL:-2}
    until getent hosts "$(fqdn)" >/dev/null 2>&1; do
        if ((waited >= timeout)); then
            log "own name $(fqdn) does not resolve after $timeout s"
            return 1
        fi
        log "waiting for DNS to know $(fqdn)"
        sleep "$interval"
        waited=$((waited + interval))
    done
}

# sql HOST STATEMENT: root without a password first; when that is denied, the configured user.
sql() {
    local out rc
    out=$(timeout 15 mysql --connect-timeout=2 --batch -h "$1" -P "$FE_QUERY_PORT" -u root -e "$2" 2>&1)
    rc=$?
    if ((rc != 0)) && [[ $out == *"ERROR 1045"* || $out == *28000* ]]; then
        out=$(MYSQL_PWD=$ADMIN_PASSWD timeout 15 mysql --connect-timeout=2 --batch -h "$1" -P "$FE_QUERY_PORT" -u "$ADMIN_USER" -e "$2" 2>&1)
        rc=$?
    fi
    echo "$out"
    return $rc
}

# column NAME < table: the values of one column. Columns are found by their names.
column() {
    awk -F '\t' -v want="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i; next } c { print $c }'
}

# master_of < SHOW FRONTENDS: host and edit_log_port of the master.
master_of() {
    awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $c["IsMaster"] == "true" { print $c["Host"] ":" $c["EditLogPort"]; exit }'
}

# find_master ADDRESSES: asks each FE in turn; sets MASTER_ADDR, MASTER_HOST and FRONTENDS.
find_master() {
    local addr out
    for addr in ${1//,/ }; do
        addr=${addr%%:*}
        if out=$(sql "$addr" "show frontends"); then
            MASTER_ADDR=$(master_of <<<"$out")
            if [[ -n $MASTER_ADDR ]]; then
                MASTER_HOST=${MASTER_ADDR%:*}
                FRONTENDS=$out
                return 0
            fi
            log "$addr knows no master"
        else
            log "$addr does not answer: $(head -c 200 <<<"$out" | tr '\n' ' ')"
        fi
    done
    return 1
}

# Makes the configured user while root still has no password. A name that exists is left as it is.
ensure_user() {
    [[ $ADMIN_USER == root || -z $ADMIN_PASSWD ]] && return 0
    local grants quoted
    grants=$(timeout 15 mysql --connect-timeout=2 --batch -h "$MASTER_HOST" -P "$FE_QUERY_PORT" -u root -e "show all grants" 2>/dev/null) || return 0
    grep -q "'$ADMIN_USER'@" <<<"$grants" && return 0
    log "creating user $ADMIN_USER"
    quoted=${ADMIN_PASSWD//\\/\\\\}
    quoted=${quoted//\'/\'\'}
    sql "$MASTER_HOST" "CREATE USER '$ADMIN_USER' IDENTIFIED BY '$quoted'" >/dev/null || log "user $ADMIN_USER was not created"
    sql "$MASTER_HOST" "GRANT NODE_PRIV ON *.*.* TO $ADMIN_USER" >/dev/null || log "NODE_PRIV was not granted to $ADMIN_USER"
}

link_kerberos() {
    if [[ -n ${KRB5_MOUNT_PATH:-} && -n ${KRB5_CONFIG:-} ]]; then
        mkdir -p "$(dirname "$KRB5_CONFIG")"
        ln -sfT "$KRB5_MOUNT_PATH/krb5.conf" "$KRB5_CONFIG"
    fi
    if [[ -n ${KEYTAB_MOUNT_PATH:-} && -n ${KEYTAB_FINAL_USED_PATH:-} ]]; then
        mkdir -p "$KEYTAB_FINAL_USED_PATH"
        ln -sf "$KEYTAB_MOUNT_PATH"/* "$KEYTAB_FINAL_USED_PATH"/
    fi
}
