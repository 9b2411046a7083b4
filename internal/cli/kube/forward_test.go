package kube

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwarding is a test double of an API server that forwards ports of Pods: one at which a
// node answers each line, one at which nobody listens, and one at which nothing is said. It
// knows no web sockets, as older ones do not.
func forwarding(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.Contains(r.URL.Path, "/pods/secret-0/"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden: no","reason":"Forbidden","code":403}`)
		return
	case r.Header.Get("Upgrade") == "websocket":
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		go serve(s)
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}

func serve(s httpstream.Stream) {
	port := s.Headers().Get(corev1.PortHeader)
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		if port == "1" {
			fmt.Fprint(s, "nobody listens at 1")
			_ = s.Close()
		}
		return
	}
	for lines := bufio.NewScanner(s); port == "9030" && lines.Scan(); {
		fmt.Fprintf(s, "heard %s\n", lines.Text())
	}
}

// TestPortsOfPods holds that a Pod is reached through the API server, and what is said where
// it is not.
func TestPortsOfPods(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(forwarding))
	t.Cleanup(server.Close)
	s := &Session{Namespace: "analytics", config: &rest.Config{Host: server.URL}}
	dial := s.DialPods(map[string]string{"10.0.0.1": "doris-fe-0", "10.0.0.2": "secret-0"})
	open := func(address string) net.Conn {
		t.Helper()
		conn, err := dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	answers := open("10.0.0.1:9030")
	for _, line := range []string{"one", "two"} {
		fmt.Fprintln(answers, line)
		if got, err := bufio.NewReader(answers).ReadString('\n'); got != "heard "+line+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := bufio.NewReader(open("10.0.0.1:1")).ReadString('\n'); err == nil || !strings.Contains(err.Error(), "nobody listens at 1") {
		t.Errorf("where nobody listens: %v", err)
	}
	mute := open("10.0.0.1:2")
	_ = mute.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := mute.Read(make([]byte, 1)); err == nil {
		t.Error("a node that says nothing is read from")
	}
	if _, err := dial(t.Context(), "tcp", "10.0.0.2:9030"); err == nil || !strings.Contains(err.Error(), "pods/portforward") {
		t.Errorf("without the right: %v", err)
	}
	if _, err := dial(t.Context(), "tcp", "10.0.0.9:9030"); err == nil || !strings.Contains(err.Error(), "10.0.0.9") {
		t.Errorf("of an address that no Pod has: %v", err)
	}
}
