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
	"syscall"
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
// what a kubelet puts below it.
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
		if err := errors.Join(inheritCPUs(mount, dir), borrowControllers(mount, dir)); err != nil {
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

// kubeletControllers are what a kubelet asks of its cgroup in the one
// hierarchy of v2, as far as the machine has them.
var kubeletControllers = []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}

// borrowedPrefix begins the name of an empty cgroup that remembers a
// controller which was off before a cluster came. Of several clusters each
// remembers it, and the last one to go turns it off.
const borrowedPrefix = "borrowed."

// borrowControllers turns the kubelet's controllers on, from the root of a v2
// hierarchy down to the cluster's cgroup.
func borrowControllers(root, dir string) error {
	available, err := readWords(filepath.Join(root, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) { // v1
		return nil
	}
	if err != nil {
		return err
	}
	enabled, err := readWords(filepath.Join(root, subtreeControl))
	if err != nil {
		return err
	}
	for _, controller := range kubeletControllers {
		if !slices.Contains(available, controller) {
			continue
		}
		others, err := filepath.Glob(filepath.Join(root, "fairlead-*", borrowedPrefix+controller))
		if err != nil {
			return err
		}
		if !slices.Contains(enabled, controller) || len(others) > 0 {
			if err := os.Mkdir(filepath.Join(dir, borrowedPrefix+controller), 0o755); err != nil {
				return err
			}
		}
		if err := errors.Join(control(root, "+"+controller), control(dir, "+"+controller)); err != nil {
			return fmt.Errorf("enable %s: %w", controller, err)
		}
	}
	return nil
}

// returnControllers turns off what borrowControllers has turned on. Another
// cluster that still needs a controller keeps it: the kernel refuses then.
func returnControllers(root, dir string) error {
	markers, err := filepath.Glob(filepath.Join(dir, borrowedPrefix+"*"))
	if err != nil {
		return err
	}
	for _, marker := range markers {
		controller := strings.TrimPrefix(filepath.Base(marker), borrowedPrefix)
		if err := control(dir, "-"+controller); err != nil {
			return fmt.Errorf("disable %s: %w", controller, err)
		}
		if err := control(root, "-"+controller); err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("disable %s: %w", controller, err)
		}
		if err := os.Remove(marker); err != nil {
			return err
		}
	}
	return nil
}

// subtreeControl says which controllers the children of a v2 cgroup have.
const subtreeControl = "cgroup.subtree_control"

func control(dir, change string) error {
	return os.WriteFile(filepath.Join(dir, subtreeControl), []byte(change), 0o644)
}

func readWords(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	return strings.Fields(string(data)), err
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
			err := removeCgroup(mount, filepath.Join(mount, name))
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

func removeCgroup(root, dir string) error {
	children, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if !child.IsDir() || strings.HasPrefix(child.Name(), borrowedPrefix) {
			continue
		}
		if err := removeTree(filepath.Join(dir, child.Name())); err != nil {
			return err
		}
	}
	if err := returnControllers(root, dir); err != nil {
		return err
	}
	return removeTree(dir)
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
