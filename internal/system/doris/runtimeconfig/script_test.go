package runtimeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Where the script finds things, below the root of a test.
const (
	onVolume   = "etc/fairlead/runtime-config/volume/" + OnVolume
	own        = onVolume + "/c-be-1"
	inBase     = "etc/fairlead/runtime-config/base"
	inSource   = "etc/fairlead/runtime-config/source"
	inImage    = "opt/apache-doris/be/conf"
	customFile = own + "/be_custom.conf"
	// tail is what the base file gets.
	tail = "\n# Settings that are changed at run time are kept here.\ncustom_config_dir = /var/lib/doris/runtime-config\n"
)

// prepared is a root directory with what a kubelet and an image have in it.
func prepared(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc/fairlead/runtime-config/volume", inBase, "dev", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"bash", "cp", "awk"} { // and nothing else
		file, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("there is no %s here", tool)
		}
		if err := os.Symlink(file, filepath.Join(root, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, "dev/termination-log"), "")
	for name, text := range files {
		put(t, filepath.Join(root, name), text)
	}
	return root
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// start runs the script in a root directory.
func start(root string, env ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(root, "bin/bash"), "-c", script)
	cmd.Env = environment(root)
	if _, err := os.Stat(filepath.Join(root, own, MarkOfCopy+"7f")); err == nil { // its settings were copied, and it must find them
		cmd.Env = append(cmd.Env, envMigrated+"=7f:2")
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd.CombinedOutput()
}

func environment(root string) []string {
	return []string{
		"RUNTIME_ROOT=" + root, "PATH=" + filepath.Join(root, "bin"), "POD_NAME=c-be-1",
		"FAIRLEAD_BASE_FILE=be.conf", "FAIRLEAD_CUSTOM_FILE=be_custom.conf",
		"FAIRLEAD_IMAGE_CONF=/opt/apache-doris/be/conf", "FAIRLEAD_SETTING=custom_config_dir = /var/lib/doris/runtime-config",
	}
}

// tree is what lies in a root directory, without its tools and what is mounted.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ = filepath.Rel(root, name)
		mounted := name == "bin" || name == "dev" || name == "opt" || name == inSource
		switch {
		case entry.IsDir() && mounted:
			return fs.SkipDir
		case !entry.IsDir():
			text, err := os.ReadFile(filepath.Join(root, name))
			files[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestScript(t *testing.T) {
	t.Parallel()
	const image = inImage + "/be.conf"
	tests := map[string]struct {
		files map[string]string
		env   []string
		// want are files afterwards; the text "-" is one that must not be there.
		want map[string]string
		// fails is what the message says where the container must not start.
		fails string
	}{
		"no configuration mounted: that of the image": {
			files: map[string]string{image: "be_port = 9060\n"},
			want:  map[string]string{inBase + "/be.conf": "be_port = 9060\n" + tail, customFile: "", own + "/.made": ""},
		},
		"a configuration is mounted: it wins over that of the image": {
			files: map[string]string{image: "image\n", inSource + "/be.conf": "be_port = 1\n"},
			want:  map[string]string{inBase + "/be.conf": "be_port = 1\n" + tail},
		},
		"only other files are mounted: both": {
			files: map[string]string{image: "image\n", inSource + "/log4j.xml": "<x/>"},
			want:  map[string]string{inBase + "/be.conf": "image\n" + tail, inBase + "/log4j.xml": "<x/>"},
		},
		"no base file anywhere: fails": {fails: "neither the configuration nor the image has a be.conf"},
		"last line without its end: ended": {
			files: map[string]string{inSource + "/be.conf": "a = 1"},
			want:  map[string]string{inBase + "/be.conf": "a = 1\n" + tail},
		},
		"last line wants to be continued: ended": {
			files: map[string]string{inSource + "/be.conf": "a = 1 \\"},
			want:  map[string]string{inBase + "/be.conf": "a = 1 \\\n" + tail},
		},
		"quotes, continuations, percent signs and backslashes: as they are": {
			files: map[string]string{inSource + "/be.conf": "JAVA_OPTS=\"-Xmx1g \\\n  -Dx='%d' \\\\n\"\n$(echo no) `no` & \\1\n"},
			want:  map[string]string{inBase + "/be.conf": "JAVA_OPTS=\"-Xmx1g \\\n  -Dx='%d' \\\\n\"\n$(echo no) `no` & \\1\n" + tail},
		},
		"lines that end in CRLF: as they are": {
			files: map[string]string{inSource + "/be.conf": "a = 1\r\nb = 2\r\n"},
			want:  map[string]string{inBase + "/be.conf": "a = 1\r\nb = 2\r\n" + tail},
		},
		"the setting is there already, twice: the last counts, which is ours": {
			files: map[string]string{inSource + "/be.conf": "custom_config_dir = /a\nCUSTOM_CONFIG_DIR=/b\n"},
			want:  map[string]string{inBase + "/be.conf": "custom_config_dir = /a\nCUSTOM_CONFIG_DIR=/b\n" + tail},
		},
		"a key more than once: as it is, and the last counts": {
			files: map[string]string{inSource + "/be.conf": "a = 1\na=2\nA = 3\n"},
			want:  map[string]string{inBase + "/be.conf": "a = 1\na=2\nA = 3\n" + tail},
		},
		"settings to begin with, with quotes, continuations, CRLF and a key twice: as they are": {
			files: map[string]string{inImage + "/be.conf": "", inSource + "/be_custom.conf": "x = \"a \\\n  b\"\r\ny='%d'\nx = 2\\\\"},
			want:  map[string]string{customFile: "x = \"a \\\n  b\"\r\ny='%d'\nx = 2\\\\\n"},
		},
		"an empty file: only the setting": {
			files: map[string]string{inSource + "/be.conf": ""},
			want:  map[string]string{inBase + "/be.conf": tail},
		},
		"letters outside ASCII and a byte order mark: as they are": {
			files: map[string]string{inSource + "/be.conf": "\ufeff# größe\nx = \xff\xfe\n"},
			want:  map[string]string{inBase + "/be.conf": "\ufeff# größe\nx = \xff\xfe\n" + tail},
		},
		"a file with settings is mounted: seeds, and is left out": {
			files: map[string]string{inSource + "/be.conf": "", inSource + "/be_custom.conf": "x = 1", inSource + "/fe_custom.conf": "y = 1\n"},
			want:  map[string]string{customFile: "x = 1\n", inBase + "/be_custom.conf": "-", inBase + "/fe_custom.conf": "-", own + "/fe_custom.conf": "-"},
		},
		"settings are there and others mounted: those that are there": {
			files: map[string]string{image: "", customFile: "x = 2\n", own + "/.made": "", inSource + "/be_custom.conf": "x = 1\n"},
			want:  map[string]string{customFile: "x = 2\n", inBase + "/be_custom.conf": "-"},
		},
		"settings were put there beforehand: kept": {
			files: map[string]string{image: "", customFile: "x = 2\n", inSource + "/be_custom.conf": "x = 1\n"},
			want:  map[string]string{customFile: "x = 2\n", own + "/.made": "", own + "/.making": "-"},
		},
		"seeding was interrupted: done again": {
			files: map[string]string{image: "", customFile: "x =", own + "/.making": "", inSource + "/be_custom.conf": "x = 1\ny = 2\n"},
			want:  map[string]string{customFile: "x = 1\ny = 2\n", own + "/.made": ""},
		},
		"a person took the file away: empty, and not seeded again": {
			files: map[string]string{image: "", own + "/.making": "", own + "/.made": "", inSource + "/be_custom.conf": "x = 1\n"},
			want:  map[string]string{customFile: ""},
		},
		"another Pod on the same volume: its settings are left alone": {
			files: map[string]string{image: "", onVolume + "/c-be-0/be_custom.conf": "x = 0\n", onVolume + "/c-be-10/be_custom.conf": "x = 10\n"},
			want:  map[string]string{onVolume + "/c-be-0/be_custom.conf": "x = 0\n", onVolume + "/c-be-10/be_custom.conf": "x = 10\n", customFile: ""},
		},
		"the node was in the middle of a write: what it left stays": {
			files: map[string]string{image: "", customFile: "x = 1\n", customFile + ".tmp": "x =", own + "/.made": ""},
			want:  map[string]string{customFile: "x = 1\n", customFile + ".tmp": "x ="},
		},
		"names with blanks and leading dots: copied": {
			files: map[string]string{image: "", inSource + "/a b.xml": "1", inSource + "/.hidden": "2", inSource + "/-rf": "3"},
			want:  map[string]string{inBase + "/a b.xml": "1", inBase + "/.hidden": "2", inBase + "/-rf": "3"},
		},
		"as a kubelet mounts it, with links and its own directories: the files": {
			files: map[string]string{image: "", inSource + "/..2026/data.xml": "1", inSource + "/sub/x": "2"},
			want:  map[string]string{inBase + "/..2026": "-", inBase + "/sub": "-"},
		},
		"prepared before in this Pod: the same again": {
			files: map[string]string{image: "a\n", inBase + "/be.conf": "half", onVolume + "/x": "", own + "/.made": "", customFile: "x = 1\n"},
			want:  map[string]string{inBase + "/be.conf": "a\n" + tail, customFile: "x = 1\n"},
		},
		"the directory is a file: fails":   {files: map[string]string{image: "", onVolume: "x"}, fails: "cannot make"},
		"the settings are a dir: fails":    {files: map[string]string{image: "", customFile + "/x": ""}, fails: "is not a file"},
		"copied before, and found: starts": {files: map[string]string{image: "", own + "/.migrated-7f": "", customFile: "x = 1\n"}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, want: map[string]string{customFile: "x = 1\n"}},
		"copied before, and not found: fails": {
			files: map[string]string{image: ""}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, fails: "are not on the volume",
		},
		"copied by another run: fails": {
			files: map[string]string{image: "", own + "/.migrated-aa": ""}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, fails: "are not on the volume",
		},
		"copied before, twice: starts": {
			files: map[string]string{image: "", own + "/.migrated-aa": "", own + "/.migrated-7f": "", customFile: "x = 1\n"}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, want: map[string]string{customFile: "x = 1\n"},
		},
		"copied before, and a start of an earlier life was cut short: the copy counts": {
			files: map[string]string{image: "", own + "/.making": "", own + "/.made": "", own + "/.migrated-7f": "", customFile: "x = 1\n", inSource + "/be_custom.conf": "x = 9\n"},
			env:   []string{"FAIRLEAD_MIGRATED=7f:2"}, want: map[string]string{customFile: "x = 1\n"},
		},
		"copied before, and the mark is a directory: fails": {
			files: map[string]string{image: "", own + "/.migrated-7f/x": "", customFile: "x = 1\n"}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, fails: "are not on the volume",
		},
		"a copy was begun, and is not whole: fails": {
			files: map[string]string{image: "", own + "/.copying-7f": "", customFile: "x ="}, env: []string{"FAIRLEAD_MIGRATED=7f:2"}, fails: "are not on the volume",
		},
		"the tenth member is not the first: fails": {
			files: map[string]string{image: "", onVolume + "/c-be-10/be_custom.conf": ""}, env: []string{"FAIRLEAD_MIGRATED=7f:11", "POD_NAME=c-be-10"}, fails: "are not on the volume",
		},
		"a member that came after the copy: starts": {files: map[string]string{image: ""}, env: []string{"FAIRLEAD_MIGRATED=7f:1"}, want: map[string]string{customFile: ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := prepared(t, test.files)
			out, err := start(root, test.env...)
			if (err != nil) != (test.fails != "") {
				t.Fatalf("%v\n%s", err, out)
			}
			if said, _ := os.ReadFile(filepath.Join(root, "dev/termination-log")); !strings.Contains(string(said), test.fails) {
				t.Errorf("the termination log says %q and not %q", said, test.fails)
			}
			expectFiles(t, root, test.want)
			if test.fails != "" {
				return
			}
			before := tree(t, root)
			if out, err := start(root, test.env...); err != nil {
				t.Fatalf("the second time: %v\n%s", err, out)
			}
			if diff := cmp.Diff(before, tree(t, root)); diff != "" {
				t.Errorf("the second run changed something (-first +second):\n%s", diff)
			}
		})
	}
}

func expectFiles(t *testing.T, root string, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case want[name] == "-" && !os.IsNotExist(err):
			t.Errorf("%s is there: %q", name, text)
		case want[name] != "-" && err != nil:
			t.Error(err)
		case want[name] != "-" && want[name] != string(text):
			t.Errorf("%s holds %q, want %q", name, text, want[name])
		}
	}
}

// TestScriptKilledAnywhere kills the script before each of its commands, and in the
// middle of each copy, and runs it again: nothing differs from a run that was never
// killed, and what the node had written is never touched.
func TestScriptKilledAnywhere(t *testing.T) {
	t.Parallel()
	situations := map[string]map[string]string{
		"the first start, with settings to begin with": {
			inImage + "/be.conf": "image\n", inSource + "/be.conf": "a = 1\nb = 2\n",
			inSource + "/be_custom.conf": "x = 1\ny = 2\n", inSource + "/other": "text\n",
		},
		"the first start, with nothing": {inImage + "/be.conf": "image\n"},
		"a later start": {
			inImage + "/be.conf": "image\n", inSource + "/be_custom.conf": "x = 1\n",
			customFile: "x = 7\n", own + "/.made": "", own + "/.making": "",
		},
		"the first start on settings that were migrated": {
			inImage + "/be.conf": "image\n", inSource + "/be_custom.conf": "x = 1\n", customFile: "x = 7\n",
			own + "/.copying-7f": "", own + "/.migrated-7f": "", own + "/.made": "",
		},
		"the first start on settings that were put there": {
			inImage + "/be.conf": "image\n", inSource + "/be_custom.conf": "x = 1\n", customFile: "x = 7\n",
		},
	}
	for name, files := range situations {
		t.Run(name, func(t *testing.T) {
			whole := prepared(t, files)
			if out, err := start(whole); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := tree(t, whole)
			runs := 0
			for ; ; runs++ {
				root := prepared(t, files)
				killer := filepath.Join(root, "dev/killer")
				put(t, killer, fmt.Sprintf("set -T; killed=0; trap '((killed++ == %d)) && kill -9 $$' DEBUG\n", runs+2))
				out, err := start(root, "BASH_ENV="+killer)
				if err == nil {
					break
				}
				if !strings.Contains(err.Error(), "killed") {
					t.Fatalf("before command %d: %v\n%s", runs, err, out)
				}
				again(t, root, files, want, fmt.Sprintf("killed before command %d", runs))
			}
			if runs < 20 {
				t.Errorf("the script was killed %d times: it has more commands", runs)
			}
			for _, tool := range []string{"cp", "awk"} {
				torn(t, files, want, tool)
			}
			t.Logf("killed before each of %d commands", runs)
		})
	}
}

// again runs the script once more after it was killed.
func again(t *testing.T, root string, files, want map[string]string, when string) {
	t.Helper()
	if had, written := files[customFile]; written {
		if text, err := os.ReadFile(filepath.Join(root, customFile)); err != nil || string(text) != had {
			t.Fatalf("%s: the settings are %q (%v), and were %q", when, text, err, had)
		}
	}
	if out, err := start(root); err != nil {
		t.Fatalf("%s, then run again: %v\n%s", when, err, out)
	}
	got := tree(t, root)
	if _, marked := want[own+"/.making"]; !marked {
		delete(got, own+"/.making")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s, then run again (-never killed +killed):\n%s", when, diff)
	}
}

// torn kills the script in the middle of each call of a tool: it has written half of
// what it writes.
func torn(t *testing.T, files, want map[string]string, tool string) {
	t.Helper()
	for call := 1; ; call++ {
		root := prepared(t, files)
		program := filepath.Join(root, "bin", tool)
		target, err := os.Readlink(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
		// A test double: it counts its calls in a file and tears one of them.
		double := fmt.Sprintf(`#!%[1]s/bin/bash
n=$(<%[1]s/dev/calls); printf %%s "$((++n))" >%[1]s/dev/calls
((n == %[2]d)) || exec %[3]s "$@"
if [[ ${0##*/} == awk ]]; then printf ha; elif [[ $1 == -f ]]; then printf ha >"${@: -1}"; fi
kill -9 $PPID
`, root, call, target)
		put(t, program, double)
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, "dev/calls"), "0")
		_, failed := start(root)
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, program); err != nil {
			t.Fatal(err)
		}
		if failed == nil {
			return
		}
		again(t, root, files, want, fmt.Sprintf("call %d of %s torn", call, tool))
	}
}

// TestScriptAsAnotherUser runs as a user that is not root: with a volume that its
// group may write, as an fsGroup has it, and with one that it may not.
func TestScriptAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const user = 54321
	for name, test := range map[string]struct {
		mode  os.FileMode
		group int
		fails string
	}{
		"a volume of its group: writes":        {0o775 | os.ModeSetgid, user, ""},
		"a volume of root alone: says fsGroup": {0o755, 0, "fsGroup"},
	} {
		t.Run(name, func(t *testing.T) {
			root := prepared(t, map[string]string{inImage + "/be.conf": "", inSource + "/be_custom.conf": "x = 1\n", inSource + "/key": "k"})
			for _, dir := range []string{filepath.Dir(root), root, filepath.Join(root, "dev")} {
				must(t, os.Chmod(dir, 0o755))
			}
			reachable(t, filepath.Dir(root))
			must(t, os.Chmod(filepath.Join(root, "dev/termination-log"), 0o666))
			must(t, os.Chmod(filepath.Join(root, inBase), 0o777))
			must(t, os.Chmod(filepath.Join(root, inSource, "key"), 0o444))
			volume := filepath.Join(root, "etc/fairlead/runtime-config/volume")
			must(t, os.Chown(volume, 0, test.group))
			must(t, os.Chmod(volume, test.mode))
			for range 2 {
				cmd := exec.Command(filepath.Join(root, "bin/bash"), "-c", script)
				cmd.Env = environment(root)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
				out, err := cmd.CombinedOutput()
				if (err != nil) != (test.fails != "") {
					t.Fatalf("%v\n%s", err, out)
				}
				if said, _ := os.ReadFile(filepath.Join(root, "dev/termination-log")); !strings.Contains(string(said), test.fails) {
					t.Errorf("the termination log says %q", said)
				}
			}
			if test.fails == "" {
				expectFiles(t, root, map[string]string{customFile: "x = 1\n", inBase + "/key": "k", inBase + "/be.conf": tail})
			}
		})
	}
}

// TestScriptOnAReadOnlyRoot runs where nothing can be written but the volume, the prepared
// directory and the termination log, as with readOnlyRootFilesystem.
func TestScriptOnAReadOnlyRoot(t *testing.T) {
	t.Parallel()
	const readOnly = `
set -e
mount --make-rprivate /
for dir in "$RUNTIME_ROOT"/etc/fairlead/runtime-config/{volume,base} "$RUNTIME_ROOT/dev"; do mount --bind "$dir" "$dir"; done
mounts=$(cut -d" " -f2 /proc/self/mounts)
for m in $mounts; do
  case $m in "$RUNTIME_ROOT"/*) ;; *) mount -o remount,bind,ro "$m" 2>/dev/null || : ;; esac
done
! : 2>/dev/null >"$RUNTIME_ROOT/x" || exit 77
! : 2>/dev/null >/tmp/fairlead-x || exit 77
cd /
exec "$RUNTIME_ROOT/bin/bash" -c "$0"`
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("only root can have mounts of its own, and not everywhere")
	}
	root := prepared(t, map[string]string{inImage + "/be.conf": "image\n", inSource + "/be_custom.conf": "x = 1\n", inSource + "/key": "k"})
	for range 2 {
		cmd := exec.Command("unshare", "--mount", "bash", "-c", readOnly, script)
		cmd.Env = append(environment(root), "PATH="+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if exited, is := errors.AsType[*exec.ExitError](err); is && exited.ExitCode() == 77 {
			t.Skipf("no file system can be made read-only here: %v %s", err, out)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	expectFiles(t, root, map[string]string{customFile: "x = 1\n", inBase + "/key": "k", inBase + "/be.conf": "image\n" + tail})
}

// reachable skips the test where another user cannot get to a directory: TMPDIR is
// somebody's own.
func reachable(t *testing.T, dir string) {
	t.Helper()
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		must(t, err)
		if info.Mode()&0o001 == 0 {
			t.Skipf("no other user may enter %s: set TMPDIR to a directory that all may", dir)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
