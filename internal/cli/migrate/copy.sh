# Puts the settings of a member beside its data, from where it finds them when its Pod is
# another one. bash -c THIS copy DO VOLUME POD FILE ID; DO is look, write or mark. It may be
# killed anywhere and run again.
set -u
umask 007
export LC_ALL=C
shopt -s nullglob dotglob
parent=$2/.doris-runtime-config
own=$parent/$3
custom=$own/$4
copying=$own/.copying-$5 done=$own/.migrated-$5

fail() {
  printf '%s\n' "$1" >&2
  exit 50
}

settle() {
  type -P sync >/dev/null && sync
  return 0
}

# An image need not have mkdir: a directory is made as a copy of an empty one.
make() {
  if type -P mkdir >/dev/null; then
    mkdir -- "$1"
    return
  fi
  local empty inside
  for empty in /dev/mqueue /mnt /srv /media /dev/shm; do
    inside=("$empty"/*)
    [[ -d $empty && ${#inside[@]} == 0 ]] && cp -r -- "$empty" "$1" && return 0
  done
  return 1
}

for dir in "$parent" "$own"; do
  [[ -L $dir ]] && fail "$dir is a link: remove it"
  [[ ! -e $dir || -d $dir ]] || fail "$dir is no directory: remove it"
done
[[ ! -L $custom && (! -e $custom || -f $custom) ]] || fail "$custom is no file: remove it"

case $1 in
  look) # what is there
    for tool in awk cp cat; do
      type -P "$tool" >/dev/null || fail "the image has no $tool, which the init container needs: use one that has"
    done
    [[ -d $2 && -w $2 && -x $2 ]] || fail "$2 cannot be written by the user of the container: give the Pod an fsGroup that may"
    [[ -e $done ]] && printf 'marked '
    [[ -e $copying ]] && printf 'begun '
    [[ -e $custom ]] && printf 'there '
    printf 'ok\n'
    ;;
  write) # only what is not there, or was begun by this very migration
    for dir in "$parent" "$own"; do
      [[ -d $dir ]] || make "$dir" || fail "cannot make $dir: give the Pod an fsGroup that may write there"
    done
    [[ ! -e $custom || -e $copying ]] || fail "$custom is there already"
    [[ ! -e $done ]] || fail "$custom is copied already"
    : >"$copying" || fail "cannot write to $own"
    settle
    cat >"$custom" || fail "cannot write $custom"
    settle
    ;;
  mark) # it is whole, and was read back
    [[ -f $custom ]] || fail "$custom is not there"
    : >"$own/.made" || fail "cannot write to $own"
    settle
    : >"$done" || fail "cannot write to $own"
    settle
    ;;
  *) fail "unknown: $1" ;;
esac
