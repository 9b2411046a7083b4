# Prepares what the main container starts with: the directory on the volume in which
# the node keeps settings that are changed while it runs, and a copy of the
# configuration that names this directory. It may be killed at any line, and run
# again at any time: what the node has written since then is never touched.
set -u
umask 007
export LC_ALL=C
at=${RUNTIME_ROOT:-}/etc/fairlead/runtime-config
volume=$at/volume base=$at/base source=$at/source
parent=$volume/.doris-runtime-config
own=$parent/$POD_NAME
custom=$own/$FAIRLEAD_CUSTOM_FILE
image=${RUNTIME_ROOT:-}$FAIRLEAD_IMAGE_CONF
log=${RUNTIME_ROOT:-}/dev/termination-log

fail() {
  printf 'runtime-config: %s\n' "$1" >&2
  printf 'runtime-config: %s\n' "$1" 2>/dev/null >"$log"
  exit 1
}

settle() { # what was written is on the disk before something tells that it is there
  type -P sync >/dev/null && sync
  return 0
}

# The directories are made as copies of the prepared one, which is empty until they
# are there: an image need not have more tools than bash, cp and awk.
for dir in "$parent" "$own"; do
  [[ -L $dir ]] && fail "$dir on the volume is a link, and the settings would be somewhere else: remove it"
  [[ -d $dir ]] || cp -r -- "$base" "$dir" || fail "cannot make $dir on the volume: a Pod that does not run as root needs an fsGroup that may write there"
  [[ -d $dir && -w $dir && -x $dir ]] || fail "cannot write to $dir on the volume: a Pod that does not run as root needs an fsGroup that may write there"
done
[[ ! -e $custom || -f $custom ]] || fail "$custom is not a file"
[[ ! -e $custom || -w $custom ]] || fail "cannot write to $custom: it belongs to another user"

# A member whose settings were copied must find the copy.
if [[ -n ${FAIRLEAD_MIGRATED:-} && ${POD_NAME##*-} -lt ${FAIRLEAD_MIGRATED#*:} ]]; then
  [[ -f $own/.migrated-${FAIRLEAD_MIGRATED%%:*} ]] || fail "the settings of $POD_NAME that were in force before are not on the volume, though they were said to be copied: it does not start without them"
fi

# The file that the node writes. It is made once: from then on only the node changes
# it. One that is half made is known by the mark that is set before.
if [[ ! -e $own/.made ]]; then
  if [[ ! -e $custom || -e $own/.making ]]; then
    : >"$own/.making" || fail "cannot write to $own"
    settle
    if [[ -f $source/$FAIRLEAD_CUSTOM_FILE ]]; then
      awk 1 "$source/$FAIRLEAD_CUSTOM_FILE" >"$custom" || fail "cannot copy $FAIRLEAD_CUSTOM_FILE"
    else
      : >"$custom" || fail "cannot write to $own"
    fi
    settle
  fi
  : >"$own/.made" || fail "cannot write to $own"
elif [[ ! -e $custom ]]; then
  : >"$custom" || fail "cannot write to $own" # a person took it away
fi

# All other files as they are mounted. Those with kept settings would be links that
# cannot be written.
shopt -s nullglob
for file in "$source"/* "$source"/.[!.]*; do
  name=${file##*/}
  case $name in
    fe_custom.conf | be_custom.conf | ms_custom.conf | "$FAIRLEAD_BASE_FILE") continue ;;
  esac
  [[ -f $file ]] || continue
  cp -f -- "$file" "$base/$name" || fail "cannot copy $name"
done

# The base file, with the place of the settings at its end, where it counts. The empty
# line ends a last line that wants to be continued.
from=$source/$FAIRLEAD_BASE_FILE
[[ -f $from ]] || from=$image/$FAIRLEAD_BASE_FILE
[[ -f $from ]] || fail "neither the configuration nor the image has a $FAIRLEAD_BASE_FILE"
awk -v setting="$FAIRLEAD_SETTING" '{ print } END { print ""; print "# Settings that are changed at run time are kept here."; print setting }' "$from" >"$base/$FAIRLEAD_BASE_FILE" ||
  fail "cannot copy $FAIRLEAD_BASE_FILE"
exit 0
