# Keeps ordinal 0 from founding a second cluster: the entrypoint of the image
# founds one where it finds no metadata and no master to join. And puts aside the
# metadata of a frontend that was taken out of the cluster: who it was is gone, and
# it has to join anew.
state=${GUARD_ROOT:-}/etc/fairlead/bootstrap/bootstrapped
annotations=${GUARD_ROOT:-}/etc/podinfo/annotations
account=${GUARD_ROOT:-}/etc/basic_auth
log=${GUARD_ROOT:-}/dev/termination-log
key=fairlead.dev/found-new-cluster

token=$(cat "${GUARD_ROOT:-}/etc/fairlead/bootstrap/retired-${POD_NAME##*-}" 2>/dev/null)
aside=$FAIRLEAD_META_DIR/.retired-$token
if [[ $token =~ ^[0-9a-f]+$ && ! -e $aside/.done ]]; then # once for each token, on each volume
  mkdir -p "$aside" || exit 1
  for entry in "$FAIRLEAD_META_DIR"/* "$FAIRLEAD_META_DIR"/.[!.]*; do
    [[ -e $entry && ! ${entry##*/} =~ ^(\.retired-.*|\.doris-runtime-config.*|lost\+found)$ ]] || continue
    mv -- "$entry" "$aside/" || exit 1
  done
  : >"$aside/.done" || exit 1
fi

[[ ${POD_NAME##*-} == 0 ]] || exit 0               # the others only ever join
[[ -f $FAIRLEAD_META_DIR/image/ROLE ]] && exit 0   # the metadata is there
[[ $(cat "$state" 2>/dev/null) == true ]] || exit 0 # the first start of this cluster

allowed() { # has a person allowed a new cluster?
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line == "$key=\"true\"" ]] && return 0
  done 2>/dev/null <"$annotations"
  return 1
}

answers() { # host: does anything listen there?
  timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$FE_QUERY_PORT" 2>/dev/null
}

frontends() { # host user [password]: what it knows of the frontends
  MYSQL_PWD=${3:-} timeout 5 mysql --connect-timeout=3 -h "$1" -P "$FE_QUERY_PORT" -u "$2" --batch -e 'show frontends' 2>/dev/null
}

has_master() { # reads a table with a header
  local IFS=$'\t' i n=-1 row
  read -r -a row || return 1
  for i in "${!row[@]}"; do [[ ${row[i]} == IsMaster ]] && n=$i; done
  ((n >= 0)) || return 1
  # Empty cells must count, and bash skips them between tabs.
  while IFS= read -r row; do
    row=$(cut -f "$((n + 1))" <<<"$row")
    [[ ${row,,} == true ]] && return 0
  done
  return 1
}

names_master() { # host: would the entrypoint find a master there?
  answers "$1" || return 1
  command -v mysql >/dev/null || return 0 # cannot ask, but it is up
  frontends "$1" root | has_master && return 0
  [[ -r $account/password ]] || return 1
  frontends "$1" "$(cat "$account/username" 2>/dev/null || echo root)" "$(cat "$account/password")" | has_master
}

IFS=, read -r -a hosts <<<"$ENV_FE_ADDR"
for ((left = ${GUARD_TRIES:-30}; left > 0; left--)); do
  allowed && exit 0
  for host in "${hosts[@]}"; do names_master "$host" && exit 0; done
  sleep 2
done

tee "$log" >&2 <<END
This cluster has been up before, but $FAIRLEAD_META_DIR holds no metadata, and no frontend at $ENV_FE_ADDR names a master that could hand it over.
Starting now would found a second, empty cluster, so this Pod waits and asks again.
Bring back the volume of this Pod or another frontend. To give the old cluster up and found a new one:
  kubectl -n $POD_NAMESPACE annotate pod $POD_NAME $key=true
END
exit 1
