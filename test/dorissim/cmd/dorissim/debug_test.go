package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWantsDebug(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"the vendor's key":        {"a=\"b\"\nselectdb.com.doris/runmode=\"debug\"\n", true},
		"the project's key":       {"apache.org.doris/runmode=\"debug\"", true},
		"another mode":            {"apache.org.doris/runmode=\"normal\"", false},
		"a key that only ends so": {"x.apache.org.doris/runmode=\"debug\"", false},
		"no annotations":          {"", false},
	} {
		if got := wantsDebug(c.text); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestDebugModeHoldsTheLivenessPortOfTheConfiguration(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no TCP address")
	}
	_ = l.Close()
	root := t.TempDir()
	write(t, filepath.Join(root, "be/conf/be.conf"), fmt.Sprintf("heartbeat_service_port = %d\n", addr.Port))
	annotations := filepath.Join(root, "annotations")
	write(t, annotations, "apache.org.doris/runmode=\"debug\"\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- runDebug(ctx, []string{"--component", "be", "--root", root, "--annotations", annotations})
	}()
	deadline := time.Now().Add(10 * time.Second)
	for {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", addr.Port))
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := runDebug(t.Context(), []string{"--component", "be", "--root", root, "--annotations", filepath.Join(root, "absent")}); err != nil {
		t.Errorf("without annotations it ended with %v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
