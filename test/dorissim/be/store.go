package be

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// store keeps tablets as files below the storage roots: <root>/data/<tablet>/rows.jsonl, one line per version.
type store struct {
	roots []string

	writing sync.Mutex // one file is written at a time

	mu      sync.Mutex
	tablets map[int64]wire.Replica
}

// Roots takes storage_root_path apart: entries separated by ';', each a path with an optional trailing .SSD or .HDD
// and options after commas. A dot elsewhere belongs to the path.
func Roots(setting string) []string {
	var out []string
	for entry := range strings.SplitSeq(setting, ";") {
		path, _, _ := strings.Cut(strings.TrimSpace(entry), ",")
		path = strings.TrimSpace(path)
		if ext := strings.ToLower(filepath.Ext(path)); ext == ".ssd" || ext == ".hdd" {
			path = path[:len(path)-len(ext)]
		}
		if path != "" {
			out = append(out, path)
		}
	}
	return out
}

func openStore(roots []string) (*store, error) {
	if len(roots) == 0 {
		return nil, errors.New("storage_root_path names no path")
	}
	s := &store{roots: roots, tablets: map[int64]wire.Replica{}}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, "data"), 0o755); err != nil {
			return nil, fmt.Errorf("open storage root: %w", err)
		}
		dirs, err := os.ReadDir(filepath.Join(root, "data"))
		if err != nil {
			return nil, fmt.Errorf("open storage root: %w", err)
		}
		for _, d := range dirs {
			id, err := strconv.ParseInt(d.Name(), 10, 64)
			if err != nil {
				continue
			}
			if err := s.recover(id); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// recover reads a tablet's version. A last line that a crash cut short is dropped.
func (s *store) recover(id int64) error {
	batches, err := s.read(id)
	if err != nil {
		return err
	}
	return s.replace(id, batches)
}

func (s *store) file(id int64) string {
	root := s.roots[int(id%int64(len(s.roots)))]
	return filepath.Join(root, "data", strconv.FormatInt(id, 10), "rows.jsonl")
}

func (s *store) read(id int64) ([]wire.Batch, error) {
	b, err := os.ReadFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tablet %d does not exist", id)
	}
	if err != nil {
		return nil, fmt.Errorf("read tablet %d: %w", id, err)
	}
	var out []wire.Batch
	lines := bufio.NewReader(bytes.NewReader(b))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // what an unfinished line holds was never acknowledged
		}
		if err != nil {
			return nil, fmt.Errorf("read tablet %d: %w", id, err)
		}
		var batch wire.Batch
		if err := json.Unmarshal(line, &batch); err != nil {
			return nil, fmt.Errorf("read tablet %d: %w", id, err)
		}
		out = append(out, batch)
	}
}

// replace writes a tablet as a whole.
func (s *store) replace(id int64, batches []wire.Batch) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.put(id, batches)
}

func (s *store) put(id int64, batches []wire.Batch) error {
	var out bytes.Buffer
	version := int64(1)
	for _, b := range batches {
		if err := json.NewEncoder(&out).Encode(b); err != nil {
			return fmt.Errorf("encode tablet %d: %w", id, err)
		}
		version = b.Version
	}
	file := s.file(id)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write tablet %d: %w", id, err)
	}
	if err := writeSynced(file+".tmp", out.Bytes()); err != nil {
		return fmt.Errorf("write tablet %d: %w", id, err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("write tablet %d: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tablets[id] = wire.Replica{Version: version, Bytes: int64(out.Len())}
	return nil
}

func writeSynced(file string, b []byte) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// write adds a version. What a failed write left behind at or above it is overwritten.
func (s *store) write(w wire.Write) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	batches, err := s.read(w.ID)
	if err != nil {
		return err
	}
	have := int64(1)
	kept := batches[:0]
	for _, b := range batches {
		if b.Version < w.Version {
			kept, have = append(kept, b), b.Version
		}
	}
	if have != w.Version-1 {
		return fmt.Errorf("tablet %d misses versions: it has %d and is to write %d", w.ID, have, w.Version)
	}
	return s.put(w.ID, append(kept, wire.Batch{Version: w.Version, Rows: w.Rows}))
}

// scan returns the rows of a version, or an error if the replica does not have it yet.
func (s *store) scan(t wire.Tablet) ([][]*string, error) {
	batches, err := s.read(t.ID)
	if err != nil {
		return nil, err
	}
	have := int64(1)
	rows := [][]*string{}
	for _, b := range batches {
		if b.Version <= t.Version {
			rows, have = append(rows, b.Rows...), b.Version
		}
	}
	if have < t.Version {
		return nil, fmt.Errorf("tablet %d has version %d, not %d", t.ID, have, t.Version)
	}
	return rows, nil
}

func (s *store) drop(id int64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	delete(s.tablets, id)
	s.mu.Unlock()
	if err := os.RemoveAll(filepath.Dir(s.file(id))); err != nil {
		return fmt.Errorf("drop tablet %d: %w", id, err)
	}
	return nil
}

func (s *store) report() map[int64]wire.Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[int64]wire.Replica, len(s.tablets))
	maps.Copy(out, s.tablets)
	return out
}

// clusterID reads the id that the storage belongs to; 0 means none yet.
func (s *store) clusterID() (int64, error) {
	for _, root := range s.roots {
		b, err := os.ReadFile(filepath.Join(root, "cluster_id"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read cluster id: %w", err)
		}
		id, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read cluster id of %q: %w", root, err)
		}
		return id, nil
	}
	return 0, nil
}

func (s *store) setClusterID(id int64) error {
	sort.Strings(s.roots)
	for _, root := range s.roots {
		if err := writeSynced(filepath.Join(root, "cluster_id"), []byte(strconv.FormatInt(id, 10))); err != nil {
			return fmt.Errorf("store cluster id: %w", err)
		}
	}
	return nil
}
