// Command dorissim is a test double of Apache Doris: a frontend, a backend, and the debug holder of its images.
//
//	dorissim fe    [--home DIR] [--conf FILE] [--host NAME] [--helper HOST:PORT] [--metadata_failure_recovery]
//	dorissim be    [--home DIR] [--conf FILE]
//	dorissim debug --component fe|be
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/be"
	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/fe"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: dorissim fe|be|debug|version [flags]")
		os.Exit(2)
	}
	var err error
	switch command, args := os.Args[1], os.Args[2:]; command {
	case "fe":
		err = runFE(ctx, args, log)
	case "be":
		err = runBE(ctx, args, log)
	case "debug":
		err = runDebug(ctx, args)
	case "version":
		fmt.Println(version())
	default:
		err = fmt.Errorf("unknown command %q", command)
	}
	if err != nil {
		log.Error("dorissim ends", "error", err)
		os.Exit(1)
	}
}

// version is what the node says it is: the environment's word, else the file beside the program.
func version() string {
	if v := os.Getenv("DORISSIM_VERSION"); v != "" {
		return v
	}
	if self, err := os.Executable(); err == nil {
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(self), "DORIS_VERSION")); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return "2.1.8"
}

// faults reads the faults of the environment and sits out a slow start.
func faults(ctx context.Context, log *slog.Logger) (*fault.Set, error) {
	set := fault.New(time.Now)
	if err := set.Parse(os.Getenv("DORISSIM_FAULTS")); err != nil {
		return nil, fmt.Errorf("DORISSIM_FAULTS: %w", err)
	}
	if set.Active(fault.SlowStart) {
		log.Info("slow start on request")
		if err := set.Wait(ctx, fault.SlowStart); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// homeFlags adds the flags that both nodes have. DORIS_HOME is set for the expansion of configuration values.
func homeFlags(flags *flag.FlagSet, confName string) (home, file *string) {
	home = flags.String("home", os.Getenv("DORIS_HOME"), "DORIS_HOME")
	file = flags.String("conf", "", "configuration file (default <home>/conf/"+confName+")")
	return home, file
}

func runFE(ctx context.Context, args []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("fe", flag.ExitOnError)
	home, file := homeFlags(flags, "fe.conf")
	host := flags.String("host", "", "the name that the other frontends know this one by (default by enable_fqdn_mode)")
	helper := flags.String("helper", "", "a frontend of the cluster to join, host:edit_log_port")
	alone := flags.Bool("metadata_failure_recovery", false, "become the only frontend of the cluster")
	_ = flags.Parse(args)
	set, err := faults(ctx, log)
	if err != nil {
		return err
	}
	if *file == "" {
		*file = filepath.Join(*home, "conf", "fe.conf")
	}
	if *host == "" {
		if *host, err = ownHost(ctx, *file); err != nil {
			return err
		}
	}
	pace := fe.DefaultPace
	if n, err := strconv.Atoi(os.Getenv("DORISSIM_TABLET_MOVES")); err == nil {
		pace.Moves = n
	}
	node, err := fe.Open(fe.Options{
		Home: *home, Conf: *file, Host: *host, Helper: *helper, Recover: *alone, Version: version(),
		Pace: pace, Getenv: os.LookupEnv, Now: time.Now, Random: rand.Float64, Faults: set, Log: log,
	})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}

// ownHost is the fully qualified name in FQDN mode, else the address.
func ownHost(ctx context.Context, file string) (string, error) {
	values, _, err := conf.Load(file, "fe_custom.conf", conf.Properties, os.LookupEnv)
	if err != nil {
		return "", err
	}
	if values.Bool("enable_fqdn_mode", false) {
		out, err := exec.CommandContext(ctx, "hostname", "-f").Output()
		if err != nil {
			return "", fmt.Errorf("hostname -f: %w", err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	if ip := os.Getenv("POD_IP"); ip != "" {
		return ip, nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String(), nil
		}
	}
	return "127.0.0.1", nil
}

func runBE(ctx context.Context, args []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("be", flag.ExitOnError)
	home, file := homeFlags(flags, "be.conf")
	_ = flags.Parse(args)
	set, err := faults(ctx, log)
	if err != nil {
		return err
	}
	if *file == "" {
		*file = filepath.Join(*home, "conf", "be.conf")
	}
	node, err := be.Open(be.Options{
		Home: *home, Conf: *file, Version: version(), Getenv: os.LookupEnv, Now: time.Now, Faults: set, Log: log,
	})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}
