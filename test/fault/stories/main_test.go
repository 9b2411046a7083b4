// Package stories tells short stories of the operator through the fault proxy
// (package fault): each once undisturbed, and then once for each fault at each
// write. Every time the end must be the same, no Pod may be replaced twice, and
// then there must be quiet.
//
// A story is a few lines in stories_test.go. FAIRLEAD_FAULT=all runs all faults
// at all writes; otherwise a few are picked.
package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
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
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
)

// operatorVariable makes this test binary the operator: it holds its settings.
const operatorVariable = "FAIRLEAD_FAULT_OPERATOR"

// all tells whether every fault is to be tried at every write.
func all() bool { return os.Getenv("FAIRLEAD_FAULT") == "all" }

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
	Kubeconfig, Namespace string
	// Bug is the name of a seeded bug; State is a directory that outlives the
	// process, for bugs that remember.
	Bug, State string
	// Lists has caches filled by lists.
	Lists bool
	// Database is where the database of the Pods listens; empty if they have none.
	Database string
	// Relay leads to the processes in the Pods; empty if there are none.
	Relay string
	// Newer makes it a build with one more revision of the rendering.
	Newer bool
}

// dial reaches the database wherever a Pod's query port is asked for, and its nodes by
// the names of their Pods.
func (s settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.Relay != "" {
		return dialRelay(ctx, s.Relay, address)
	}
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil:
	case s.Database == "": // at once: a name that nobody serves keeps a resolver busy for ten seconds
		return nil, fmt.Errorf("dial %s: no database runs in the Pods of this tale", address)
	case port == "9030":
		address = s.Database
	case strings.HasSuffix(host, ".svc.cluster.local"):
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
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
		Systems: operator.SystemNames(), Namespaces: []string{s.Namespace}, Workers: 4, Log: log,
		MetricsAddress: "0", HealthAddress: "0", Around: seeded(s), Dial: s.dial,
	})
}

// process is an operator that is killed and started again. It is safe for
// concurrent use.
type process struct {
	settings settings
	log      string // file

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	began time.Time
	// fault is why it could not be started.
	fault error
	over  bool
}

func newProcess(dir string, s settings) *process {
	return &process{settings: s, log: filepath.Join(dir, "operator.log")}
}

// launch starts the process and does not wait until it is up.
func (p *process) launch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.cmd != nil {
		return
	}
	p.began = time.Now()
	if err := p.start(); err != nil {
		p.fault = err
	}
}

func (p *process) start() error {
	text, err := json.Marshal(p.settings)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), operatorVariable+"="+string(text))
	if p.settings.Lists {
		cmd.Env = append(cmd.Env, "KUBE_FEATURE_WatchListClient=false")
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// end ends the process by the signal, and waits until it has ended.
func (p *process) end(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop(signal)
}

func (p *process) stop(signal syscall.Signal) {
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

// crash is what the fault proxy does: the process is killed and, as a kubelet
// would do, started again.
func (p *process) crash() {
	p.end(syscall.SIGKILL)
	p.launch()
}

// upgrade ends the process and starts a newer build, whoever else does.
func (p *process) upgrade() {
	p.end(syscall.SIGTERM)
	p.mu.Lock()
	p.settings.Newer = true
	p.mu.Unlock()
	p.launch()
}

func (p *process) newer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings.Newer
}

// close ends the process for good.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.stop(syscall.SIGTERM)
}

// since is when the process was last started.
func (p *process) since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began
}

// trouble tells whether the process could not be started or ended by itself.
func (p *process) trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil || p.cmd == nil {
		return p.fault
	}
	select {
	case <-p.ended:
		return fmt.Errorf("the operator ended by itself")
	default:
		return nil
	}
}

// reconciles is how often it has looked at a cluster and said so.
func (p *process) reconciles() int { return strings.Count(p.logged(), `"msg":"reconciled"`) }

func (p *process) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
