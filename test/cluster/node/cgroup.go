package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hierarchies returns where cgroups are mounted: one place with cgroup v2
// alone, one for each controller with v1.
func hierarchies() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var mounts []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// The fourth field before the separator is the mount point, the first
		// after it the type.
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if kind, _, _ := strings.Cut(after, " "); len(fields) > 4 && (kind == "cgroup" || kind == "cgroup2") {
			mounts = append(mounts, fields[4])
		}
	}
	return mounts, lines.Err()
}

// MakeCgroups makes the cgroup of the name in every hierarchy, ready to hold
// processes. The kubelet puts its Pods below it.
func MakeCgroups(name string) error {
	mounts, err := hierarchies()
	if err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	for _, mount := range mounts {
		dir := filepath.Join(mount, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := errors.Join(inheritCPUs(mount, dir), enableControllers(mount, dir)); err != nil {
			return fmt.Errorf("prepare cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// inheritCPUs fills in what a new cpuset of v1 lacks.
func inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enableControllers passes on what the parent of a v2 cgroup offers it.
func enableControllers(parent, dir string) error {
	offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(offered)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enable %s: %w", controller, err)
		}
	}
	return nil
}

// RemoveCgroups removes the cgroup of the name from every hierarchy, with all
// below it. Their processes have been killed; the kernel may need a moment to
// let go of them.
func RemoveCgroups(ctx context.Context, name string) error {
	mounts, err := hierarchies()
	if err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	for _, mount := range mounts {
		for {
			err := removeTree(filepath.Join(mount, name))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// removeTree removes directories from the leaves up; the files of a cgroup go
// with its directory.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		if removeErr := os.Remove(dir); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
