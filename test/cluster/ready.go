package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

const (
	answerWithin = 90 * time.Second // a loaded machine is slow, not broken
	askEvery     = 50 * time.Millisecond
)

// answers waits until the URL answers with 200, and gives up early when one of
// the watched programs has ended.
func answers(ctx context.Context, client *http.Client, url string, watched ...*process.Running) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var last error
	for {
		if last = ask(ctx, client, url); last == nil {
			return nil
		}
		for _, w := range watched {
			select {
			case <-w.Done:
				return fmt.Errorf("%s has ended; its log ends so:\n%s", w.Name, logTail(w.Log))
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last answer: %w)", url, ctx.Err(), last)
		case <-time.After(askEvery):
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// until repeats the step until it works, the time is over or the process that
// is to make it work has ended.
func until(ctx context.Context, do func(context.Context) error, by *process.Running) error {
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-by.Done:
			return fmt.Errorf("%s has ended (%w); its log ends so:\n%s", by.Name, err, logTail(by.Log))
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// schedulable tells what keeps Pods from the node, if anything.
func schedulable(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s still has the taint %s", node.Name, node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", node.Name)
}

// logTail returns the last lines of a log for an error message.
func logTail(path string) string {
	const lines = 15
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
