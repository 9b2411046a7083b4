package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

// mountAll gives the node its view of the files. It runs in the node's mount
// namespace, and nothing of it reaches the host's.
func (c Config) mountAll() error {
	// Directories are held open across the mounts that may come to lie over
	// them: the cluster's own may well be below /run or /var/lib.
	sources := map[string]string{clusterDir: c.Dir, "/var/lib": filepath.Join(c.Dir, libDir), "/var/log": filepath.Join(c.Dir, logDir)}
	for _, p := range c.Programs {
		sources[programPath(p.Name)] = p.Path
	}
	held := map[string]int{}
	for target, source := range sources {
		fd, err := unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", source, err)
		}
		defer unix.Close(fd)
		held[target] = fd
	}
	if err := mountBase(); err != nil {
		return err
	}
	targets := make([]string, 0, len(held))
	for target := range held {
		targets = append(targets, target)
	}
	sort.Strings(targets)
	for _, target := range targets {
		if err := bind(held[target], target); err != nil {
			return err
		}
	}
	return c.mountSysctls()
}

// mountBase cuts the namespace off from the host and mounts what a node has of its own.
func mountBase() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		// Volumes are passed on between kubelet and containers.
		{"", "/", "", unix.MS_REC | unix.MS_SHARED, ""},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// bind mounts the held file or directory on the target and makes the target if need be.
func bind(fd int, target string) error {
	source := fmt.Sprintf("/proc/self/fd/%d", fd)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		err = os.WriteFile(target, nil, 0o755)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// mountSysctls hides the machine's settings that the kubelet would change.
func (c Config) mountSysctls() error {
	for path := range sysctls {
		source := filepath.Join(clusterDir, filesDir, "sysctl", flat(path))
		err := unix.Mount(source, filepath.Join("/proc/sys", path), "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cover sysctl %s: %w", path, err)
		}
	}
	return nil
}

// programPath is where the node finds a program: its host path may be covered.
func programPath(name string) string { return filepath.Join(programDir, name) }
