package doris

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuardPutsMetadataAside runs the guard on the volume of a frontend that was
// taken out of the cluster.
func TestGuardPutsMetadataAside(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	metaDir := filepath.Join(root, filepath.Dir(filepath.Dir(roleFile)))
	run := func(pod string) {
		t.Helper()
		cmd := exec.Command("bash", "-c", guardScript)
		cmd.Env = []string{"GUARD_ROOT=" + root, "PATH=" + os.Getenv("PATH"), "POD_NAME=" + pod, "FAIRLEAD_META_DIR=" + metaDir}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(metaDir, name))
		return err == nil
	}
	token := func(text string) { write(t, filepath.Join(root, "etc/fairlead/bootstrap/retired-3"), text, 0o644) }
	identity := func() {
		write(t, filepath.Join(root, roleFile), "role=OBSERVER", 0o644)
		write(t, filepath.Join(metaDir, ".doris-runtime-config"), "{}", 0o644)
		write(t, filepath.Join(metaDir, "bdb", "je.lck"), "", 0o644)
	}
	identity()
	run("c-fe-3")
	if !there("image/ROLE") {
		t.Fatal("metadata of a member was put aside")
	}
	token("0a1b")
	run("c-fe-4")
	if !there("image/ROLE") {
		t.Fatal("the metadata of another frontend was put aside")
	}
	run("c-fe-3")
	if there("image") || there("bdb") || !there(".doris-runtime-config") || !there(".retired-0a1b/image/ROLE") || !there(".retired-0a1b/bdb/je.lck") {
		t.Fatal("the metadata is not put aside")
	}
	identity() // it has joined anew
	run("c-fe-3")
	if !there("image/ROLE") {
		t.Fatal("the new metadata was put aside by the old token")
	}
	token("0a2c")
	if err := os.MkdirAll(filepath.Join(metaDir, ".retired-0a2c"), 0o755); err != nil { // killed on its way
		t.Fatal(err)
	}
	run("c-fe-3")
	if there("image") || !there(".retired-0a2c/image/ROLE") || !there(".retired-0a1b/image/ROLE") {
		t.Fatal("the metadata is not put aside a second time")
	}
	identity()
	token("../../x")
	run("c-fe-3")
	if !there("image/ROLE") {
		t.Fatal("something that is no token was followed")
	}
	if err := os.RemoveAll(metaDir); err != nil { // a new volume
		t.Fatal(err)
	}
	token("0a2c")
	run("c-fe-3")
	identity()
	run("c-fe-3")
	if !there("image/ROLE") {
		t.Fatal("metadata on a new volume was put aside")
	}
	if out, err := exec.Command("bash", "-n", "-c", guardScript).CombinedOutput(); err != nil || strings.Contains(string(out), "error") {
		t.Errorf("%v: %s", err, out)
	}
}
