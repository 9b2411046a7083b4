package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
)

// needed maps a file that a real node needs to the Debian package that has it.
var needed = map[string]string{
	"/usr/bin/containerd": "containerd",
	"/usr/bin/ctr":        "containerd",
	"/usr/sbin/runc":      "runc",
	"/usr/lib/cni/ptp":    "containernetworking-plugins",
	"/usr/sbin/nft":       "nftables",
	"/usr/sbin/conntrack": "conntrack",
	"/usr/sbin/iptables":  "iptables",
	"/usr/bin/nsenter":    "util-linux",
	"/usr/bin/ip":         "iproute2",
}

// InstallPackages installs the Debian packages that this machine lacks and
// says which. They stay installed when the cluster goes.
func InstallPackages(ctx context.Context, log io.Writer) error {
	missing := missingPackages(exists)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("a real node needs the Debian packages %s, and this system has no apt-get to install them", strings.Join(missing, ", "))
	}
	fmt.Fprintf(log, "cluster: installing the Debian packages %s (they stay installed)\n", strings.Join(missing, ", "))
	if err := aptGet(ctx, "update", "-qq"); err != nil {
		return err
	}
	if err := aptGet(ctx, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)...); err != nil {
		return err
	}
	return stopService(ctx, log, missing)
}

func missingPackages(exists func(path string) bool) []string {
	missing := map[string]bool{}
	for path, name := range needed {
		if !exists(path) {
			missing[name] = true
		}
	}
	names := make([]string, 0, len(missing))
	for name := range missing {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// aptGet runs to its end whatever becomes of the context and the terminal: a
// package manager that is killed leaves half-installed packages. It waits for
// another one that works on the same machine.
func aptGet(ctx context.Context, args ...string) error {
	for tries := 0; ; tries++ {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.CombinedOutput()
		if err == nil {
			return ctx.Err()
		}
		if tries == 60 || !bytes.Contains(out, []byte("Could not get lock")) {
			return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// stopService stops the service that the containerd package starts on a
// machine with systemd: nobody asked for it, and the node runs its own.
func stopService(ctx context.Context, log io.Writer, installed []string) error {
	if !exists("/run/systemd/system") || !slices.Contains(installed, "containerd") {
		return nil
	}
	fmt.Fprintln(log, "cluster: stopping containerd.service, which the package has started and a node does not use")
	_, err := run(ctx, "systemctl", "disable", "--now", "containerd.service")
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
