package live

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/story"
)

func (h *helm) deployment(name string) *appsv1.Deployment {
	h.Helper()
	var d appsv1.Deployment
	if err := h.client.Get(h.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &d); err != nil {
		h.Fatal(err)
	}
	return &d
}

// kubectl runs a command line as documentation has it.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	c := clustertest.Shared(t)
	cmd := exec.Command(c.Record().Kubectl, append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

var program struct {
	once sync.Once
	dir  string
	err  error
}

// build compiles the operator, and the plugin beside it, once for all tests.
func build(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		program.dir = filepath.Join(clustertest.Shared(t).Dir(), "operator") // goes with the cluster
		cmd := exec.Command("go", "build", "-o", program.dir+"/", "./cmd/fairlead", "./cmd/kubectl-fairlead")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, "fairlead")
}

// operator is the process that a Pod of the Deployment would be.
type operator struct {
	*helm
	cmd   *exec.Cmd
	mount string // where its configuration lies
	log   *buffer
	ended chan struct{}
}

// operate runs what the Deployment of a release would run, for its first Pod:
// with the arguments, the configuration and the account of the Deployment.
func (h *helm) operate(deployment string) *operator {
	h.Helper()
	d := h.deployment(deployment)
	spec := d.Spec.Template.Spec
	o := &operator{helm: h, mount: h.TempDir(), log: &buffer{}, ended: make(chan struct{})}
	var args []string
	for _, a := range spec.Containers[0].Args {
		args = append(args, strings.ReplaceAll(a, "/etc/fairlead", o.mount))
	}
	o.sync(deployment)
	kubeconfig := filepath.Join(h.TempDir(), "kubeconfig")
	if err := story.WriteKubeconfig(kubeconfig, clustertest.Shared(h.T).RESTConfig(), h.token(spec.ServiceAccountName)); err != nil {
		h.Fatal(err)
	}
	var pods corev1.PodList
	if err := h.client.List(h.Context(), &pods, client.InNamespace(h.namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil || len(pods.Items) == 0 {
		h.Fatal("no Pod of the Deployment", err)
	}
	pod := pods.Items[0]
	o.cmd = exec.Command(build(h.T), append(args, "--kubeconfig", kubeconfig)...)
	o.cmd.Env = append(os.Environ(), "POD_NAME="+pod.Name, "POD_NAMESPACE="+pod.Namespace, "POD_UID="+string(pod.UID))
	o.cmd.Stdout, o.cmd.Stderr = o.log, o.log
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := o.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	go func() { _ = o.cmd.Wait(); close(o.ended) }()
	h.Cleanup(func() {
		o.end()
		if h.Failed() {
			h.Logf("the operator's log:\n%s", o.log)
		}
	})
	return o
}

// end ends the process as the kubelet would.
func (o *operator) end() {
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
	case <-time.After(20 * time.Second):
		_ = o.cmd.Process.Kill()
		<-o.ended
	}
}

// sync brings the ConfigMap that the Deployment mounts into the directory, as a
// kubelet does sooner or later.
func (o *operator) sync(deployment string) {
	o.Helper()
	for _, v := range o.deployment(deployment).Spec.Template.Spec.Volumes {
		if v.Name != "config" {
			continue
		}
		var cm corev1.ConfigMap
		if err := o.client.Get(o.Context(), client.ObjectKey{Namespace: o.namespace, Name: v.ConfigMap.Name}, &cm); err != nil {
			o.Fatal(err)
		}
		o.mounts(cm.Data["config.yaml"])
	}
}

// mounts exchanges the configuration file.
func (o *operator) mounts(content string) {
	o.Helper()
	next := filepath.Join(o.mount, "next")
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		o.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(o.mount, "config.yaml")); err != nil {
		o.Fatal(err)
	}
}

// says waits for a text in the log.
func (o *operator) says(text string) {
	o.Helper()
	eventually(o.T, "the operator says "+text, func() string {
		if strings.Contains(o.log.String(), text) {
			return ""
		}
		return "it does not"
	})
}

func (h *helm) token(account string) string {
	h.Helper()
	t, err := clustertest.Client(h.T).CoreV1().ServiceAccounts(h.namespace).CreateToken(h.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		h.Fatal(err)
	}
	return t.Status.Token
}

// buffer may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// clusterNames are the DorisClusters of the namespace.
func (h *helm) clusterNames() []string {
	h.Helper()
	var list dorisv1.DorisClusterList
	if err := h.client.List(h.Context(), &list, client.InNamespace(h.namespace)); err != nil {
		h.Fatal(err)
	}
	return namesOf(&list)
}

func namesOf(list client.ObjectList) (names []string) {
	_ = apimeta.EachListItem(list, func(o runtime.Object) error {
		names = append(names, o.(client.Object).GetName())
		return nil
	})
	return names
}
