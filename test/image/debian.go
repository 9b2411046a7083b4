package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// BasePackages are the Debian packages of an image that runs shell entrypoints: what the scripts of the Doris images
// call, under the names that they call it by.
var BasePackages = []string{
	"bash", "coreutils", "curl", "dash", "findutils", "grep", "hostname", "jq", "libc-bin", "mariadb-client-core",
	"mawk", "mount", "net-tools", "procps", "sed", "util-linux",
}

// setupOnly are dependencies that only the packages' own installation scripts use. Those scripts are never run here.
var setupOnly = []string{
	"debconf", "dpkg", "init-system-helpers", "libdb5.3", "libfile-find-rule-perl", "libgdbm-compat4", "libgdbm6",
	"libnumber-compare-perl", "libperl5.36", "libtext-glob-perl", "mariadb-common", "mysql-common", "perl", "perl-base",
	"perl-modules-5.36", "tar", "usrmerge", "util-linux-extra",
}

// leftOut are the trees that no program needs in order to run.
var leftOut = []string{
	"usr/share/bash-completion/", "usr/share/bug/", "usr/share/doc/", "usr/share/info/", "usr/share/lintian/",
	"usr/share/locale/", "usr/share/man/", "usr/share/zsh/", "usr/lib/systemd/", "usr/share/debconf/",
	"etc/cron.daily/", "etc/init.d/",
}

// apt runs Debian's package tools on state of its own, so that the machine's packages and lists stay untouched.
type apt struct {
	dir string
	log io.Writer
}

func (a apt) run(ctx context.Context, args ...string) (string, error) {
	options := []string{
		"-o", "Dir::State::lists=" + filepath.Join(a.dir, "lists"),
		"-o", "Dir::State::status=" + filepath.Join(a.dir, "status"),
		"-o", "Dir::Cache::archives=" + filepath.Join(a.dir, "archives"),
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", "APT::Get::List-Cleanup=0",
	}
	cmd := exec.CommandContext(ctx, "apt-get", append(options, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("apt-get %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// fetch downloads the packages with all that they depend on and returns the files, sorted.
func (a apt) fetch(ctx context.Context, packages []string) ([]string, error) {
	for _, dir := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return nil, fmt.Errorf("make apt directory: %w", err)
		}
	}
	// An empty status file tells apt that nothing is installed, so it names the whole closure.
	if err := os.WriteFile(filepath.Join(a.dir, "status"), nil, 0o644); err != nil {
		return nil, fmt.Errorf("make apt status: %w", err)
	}
	fmt.Fprintln(a.log, "image: reading the Debian package lists into a private directory (nothing is installed on this machine)")
	if _, err := a.run(ctx, "update"); err != nil {
		return nil, err
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	plan, err := a.run(ctx, append(install, "--print-uris")...)
	if err != nil {
		return nil, err
	}
	names := archiveNames(plan)
	fmt.Fprintf(a.log, "image: downloading %d Debian packages for %s\n", len(names), strings.Join(packages, " "))
	if _, err := a.run(ctx, append(install, "--download-only")...); err != nil {
		return nil, err
	}
	files := make([]string, 0, len(names))
	for _, name := range names {
		files = append(files, filepath.Join(a.dir, "archives", name))
	}
	return files, nil
}

// archiveNames reads the file names out of apt's list of addresses.
func archiveNames(plan string) []string {
	var names []string
	lines := bufio.NewScanner(strings.NewReader(plan))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "'") || !strings.HasSuffix(fields[1], ".deb") {
			continue
		}
		if !isSetupOnly(fields[1]) {
			names = append(names, fields[1])
		}
	}
	sort.Strings(names)
	return names
}

func isSetupOnly(file string) bool {
	name, _, _ := strings.Cut(file, "_")
	return slices.Contains(setupOnly, name)
}

// unpack adds the files of one package to the tree, on a merged /usr.
func unpack(ctx context.Context, deb string, into *Tree) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("open package %q: %w", filepath.Base(deb), err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open package %q: %w", filepath.Base(deb), err)
	}
	readErr := readTar(out, into)
	// The rest is drained, because dpkg-deb fails when its reader goes away.
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("read package %q: %w", filepath.Base(deb), err)
	}
	if readErr != nil {
		return fmt.Errorf("read package %q: %w", filepath.Base(deb), readErr)
	}
	return nil
}

func readTar(r io.Reader, into *Tree) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := mergedUsr(clean(h.Name))
		if name == "" || skipped(name) {
			continue
		}
		e := entry{kind: h.Typeflag, mode: h.Mode, uid: h.Uid, gid: h.Gid, link: h.Linkname}
		switch h.Typeflag {
		case tar.TypeReg:
			if e.data, err = io.ReadAll(tr); err != nil {
				return err
			}
		case tar.TypeLink:
			e.link = mergedUsr(clean(h.Linkname))
		case tar.TypeDir, tar.TypeSymlink:
		default:
			continue
		}
		into.add(name, e)
	}
}

// mergedUsr moves a path of the old layout below /usr, where the links of the root directory point.
func mergedUsr(name string) string {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "bin", "sbin", "lib", "lib64":
		return "usr/" + name
	}
	return name
}

func skipped(name string) bool {
	for _, prefix := range leftOut {
		if strings.HasPrefix(name+"/", prefix) {
			return true
		}
	}
	return false
}
