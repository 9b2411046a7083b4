package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// ExitError says that a program in a Pod has ended with another code than 0.
type ExitError struct {
	Code int
	// Said is what it printed for people.
	Said string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("it ended with code %d: %s", e.Code, strings.TrimSpace(e.Said))
}

// Run runs a program in a container of a Pod of the namespace, as `kubectl exec` does, and
// returns what it printed. The error is an *ExitError when it ran and failed.
func (s *Session) Run(ctx context.Context, pod, container string, command []string, in []byte) ([]byte, error) {
	executor, err := s.executor(pod, container, command, in != nil)
	if err != nil {
		return nil, fmt.Errorf("running a program in Pod %q: %w", pod, err)
	}
	var out, said bytes.Buffer
	options := remotecommand.StreamOptions{Stdout: &out, Stderr: &said}
	if in != nil {
		options.Stdin = bytes.NewReader(in)
	}
	err = executor.StreamWithContext(ctx, options)
	var exit clientexec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		return out.Bytes(), &ExitError{Code: exit.ExitStatus(), Said: said.String()}
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("running a program in Pod %q: your account needs the right to create pods/exec: %w", pod, err)
	case err != nil:
		return nil, fmt.Errorf("running a program in Pod %q: %w", pod, err)
	}
	return out.Bytes(), nil
}

// executor speaks to the API server by a web socket, and the older way where it, or
// something between, cannot.
func (s *Session) executor(pod, container string, command []string, in bool) (remotecommand.Executor, error) {
	cfg := rest.CopyConfig(s.config)
	cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	url := c.Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: in, Stdout: true, Stderr: true,
	}, clientgoscheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(cfg, "GET", url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(cfg, "POST", url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
