package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLedgerSurvivesItsWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	book, err := Create(dir, Record{ID: "id", Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := book.Update(func(r *Record) {
		r.Processes = append(r.Processes, Process{Name: "etcd", PID: 7, Start: 1 << 60})
		r.Links = append(r.Links, Link{Name: "veth", MAC: "02:00:00:00:00:01"})
	}); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Record{
		ID: "id", Version: "1.2.3", MadeDir: true,
		Processes: []Process{{Name: "etcd", PID: 7, Start: 1 << 60}},
		Links:     []Link{{Name: "veth", MAC: "02:00:00:00:00:01"}},
	}
	if diff := cmp.Diff(want, again.Record()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestCreate(t *testing.T) {
	t.Run("existing empty directory is used and not claimed", func(t *testing.T) {
		book, err := Create(t.TempDir(), Record{})
		if err != nil {
			t.Fatal(err)
		}
		if book.Record().MadeDir {
			t.Error("the ledger claims a directory that was there before")
		}
	})
	t.Run("directory with files is refused", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(dir, Record{}); err == nil {
			t.Error("a directory with files was taken")
		}
	})
}

func TestOpenWithoutLedgerSaysSo(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("error = %v, want ErrNone", err)
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	dir := t.TempDir()
	release, err := Lock(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("second lock: error = %v, want ErrBusy", err)
	}
	release()
	release, err = Lock(dir, 0)
	if err != nil {
		t.Fatalf("lock after release: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, release)
	release, err = Lock(dir, time.Minute)
	if err != nil {
		t.Fatalf("lock with patience: %v", err)
	}
	release()
}

func TestRecordIsACopy(t *testing.T) {
	book, err := Create(filepath.Join(t.TempDir(), "new"), Record{Processes: []Process{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	book.Record().Processes[0].Name = "changed"
	if got := book.Record().Processes[0].Name; got != "a" {
		t.Errorf("the ledger's process was renamed to %q through a copy", got)
	}
}
