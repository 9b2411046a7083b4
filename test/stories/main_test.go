// Package stories proves the operator where Kubernetes is real: API server,
// controllers and garbage collector, with simulated nodes (a test double of the
// kubelet). The operator is the real one, as a process of its own that may be
// killed, and has exactly the rights of the install manifest.
//
// Stories that keep to their namespace run beside each other; those that count,
// or change what all share, run alone before them.
//
// After each story the history of its namespace is read again and held against
// the promises that no story may break: see package story.
package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-dev/fairlead/internal/operator"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/story"
)

// operatorVariable makes this test binary the operator: it holds its settings.
const operatorVariable = "FAIRLEAD_STORIES_OPERATOR"

func TestMain(m *testing.M) {
	if text := os.Getenv(operatorVariable); text != "" {
		if err := beOperator(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	clustertest.Main(m, cluster.Options{Nodes: cluster.None})
}

// settings are what an operator process is started with.
type settings struct {
	Kubeconfig      string
	Systems         []string
	Namespaces      []string
	LeaderElect     bool
	Metrics, Health string
	// Future makes it a build with one more revision of the rendering.
	Future bool
	// Lists has it ask for lists, as where the API server does not stream them.
	Lists bool
}

func beOperator(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return err
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return operator.Run(ctx, cfg, operator.Options{
		Systems: s.Systems, Namespaces: s.Namespaces, Workers: 16, Log: log,
		LeaderElect: s.LeaderElect, LeaseNamespace: story.SystemNamespace,
		MetricsAddress: s.Metrics, HealthAddress: s.Health, Around: s.around(),
	})
}

func (s settings) around() operator.Around {
	if !s.Future {
		return operator.Around{}
	}
	return operator.Around{Doris: func(d operator.Doris) operator.Doris { return d.(*doris.System).WithFuture(fakeRevision) }}
}

// process is an operator that runs.
type process struct {
	t        *testing.T
	settings settings
	log      string // file
	cmd      *exec.Cmd
	ended    chan struct{}
	stopping bool
}

// operate starts the operator for the namespace of the story (or as the
// options say) and ends it after the story.
func (s *scene) operate(change ...func(*settings)) *process {
	s.Helper()
	p := &process{t: s.T, log: filepath.Join(s.TempDir(), "operator.log"), settings: settings{
		Kubeconfig: operatorKubeconfig(s.T), Systems: operator.SystemNames(), Namespaces: []string{s.namespace},
		Metrics: freeAddress(s.T), Health: freeAddress(s.T),
	}}
	for _, c := range change {
		c(&p.settings)
	}
	s.op = p
	mark := s.mark()
	p.start()
	s.Cleanup(func() {
		p.end(syscall.SIGTERM)
		s.mayDoAll(mark)
		if s.Failed() {
			s.Logf("the operator's last words:\n%s", tail(p.logged(), 6000))
		}
	})
	return p
}

// mayDoAll holds that the rights of the install manifest were enough.
func (s *scene) mayDoAll(mark audit.Mark) {
	s.Helper()
	entries, err := s.cluster.Audit().Since(mark)
	if err != nil {
		s.Fatal(err)
	}
	asked := false
	for _, e := range entries {
		if e.User != "system:serviceaccount:"+story.SystemNamespace+":"+story.AccountName {
			continue
		}
		asked = true
		// Nobody may create anything in a namespace that is being deleted.
		ending := strings.Contains(e.Message, "because it is being terminated")
		// Whether a claim may grow is asked by trying; that is no right of the account.
		fixed := strings.Contains(e.Message, "must support resize")
		if e.Code == http.StatusForbidden && !ending && !fixed && !s.refusals {
			s.Errorf("the operator may not %s %s in %q", e.Verb, e.Key().Resource, e.Namespace)
		}
	}
	if !asked {
		s.Error("the operator asked for nothing with its own account")
	}
}

// start starts the process and waits until it says that it is up.
func (p *process) start() {
	p.t.Helper()
	p.launch()
	deadline := time.Now().Add(time.Minute)
	for {
		if body, err := get("http://" + p.settings.Health + "/readyz"); err == nil && body != "" {
			return
		}
		select {
		case <-p.ended:
			p.t.Fatalf("the operator ended:\n%s", tail(p.logged(), 4000))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the operator is not up:\n%s", tail(p.logged(), 4000))
		}
	}
}

// launch starts the process and does not wait.
func (p *process) launch() {
	p.t.Helper()
	text, err := json.Marshal(p.settings)
	if err != nil {
		p.t.Fatal(err)
	}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), operatorVariable+"="+string(text))
	if p.settings.Lists {
		p.cmd.Env = append(p.cmd.Env, "KUBE_FEATURE_WatchListClient=false")
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended, p.stopping = make(chan struct{}), false
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// end ends the process by the signal and waits for it.
func (p *process) end(signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	p.cmd = nil
}

func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *process) metrics() string {
	p.t.Helper()
	text, err := get("http://" + p.settings.Metrics + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}

var account struct {
	once  sync.Once
	token string
	err   error
}

// operatorKubeconfig writes a kubeconfig with the rights of the operator's own
// ServiceAccount and no others. It goes with the test.
func operatorKubeconfig(t *testing.T) string {
	t.Helper()
	admin := clustertest.Shared(t).RESTConfig()
	account.once.Do(func() { account.token, account.err = story.Token(context.Background(), admin) })
	if account.err != nil {
		t.Fatal(account.err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := story.WriteKubeconfig(file, admin, account.token); err != nil {
		t.Fatal(err)
	}
	return file
}
