package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
)

// annotationsFile is where the Pod's annotations are mounted.
const annotationsFile = "/etc/podinfo/annotations"

// runDebug holds the container when the Pod's annotations ask for debug mode: it serves HTTP on the component's
// liveness port, so that probes pass while somebody looks inside. Otherwise it ends at once.
func runDebug(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("debug", flag.ExitOnError)
	component := flags.String("component", "", "fe or be")
	annotations := flags.String("annotations", annotationsFile, "file with the Pod's annotations")
	root := flags.String("root", rootDir(), "directory of the component trees")
	_ = flags.Parse(args)
	text, err := os.ReadFile(*annotations)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the annotations: %w", err)
	}
	if !wantsDebug(string(text)) {
		return nil
	}
	key, def, syntax := "query_port", 9030, conf.Syntax(conf.Properties)
	if *component == "be" {
		key, def, syntax = "heartbeat_service_port", 9050, conf.Lines
	}
	file := filepath.Join(*root, *component, "conf", *component+".conf")
	values, _, err := conf.Load(file, *component+"_custom.conf", syntax, os.LookupEnv)
	if err != nil {
		return err
	}
	return holdPort(ctx, values.Int(key, def))
}

func rootDir() string {
	if root := os.Getenv("DORIS_ROOT"); root != "" {
		return root
	}
	return "/opt/apache-doris"
}

// wantsDebug reads the downward API's lines: key="value".
func wantsDebug(text string) bool {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "selectdb.com.doris/runmode" && key != "apache.org.doris/runmode" {
			continue
		}
		if plain, err := strconv.Unquote(value); err == nil && plain == "debug" {
			return true
		}
	}
	return false
}

func holdPort(ctx context.Context, port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("hold the liveness port: %w", err)
	}
	fmt.Printf("debug mode: the component is not started; port %d is held\n", port)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("debug\n"))
	})}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the liveness port: %w", err)
	}
	return nil
}
