package cluster

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// simulatedWithin bounds the start of the simulated nodes.
const simulatedWithin = time.Minute

// startSimulated starts the test double of nodes and waits for them.
func (s *starter) startSimulated(ctx context.Context) error {
	if err := s.findSelf(ctx); err != nil {
		return err
	}
	args := append([]string{"simnode", "--dir", s.opts.Dir}, s.opts.Simulate...)
	simnode, err := s.launch("simnode", s.opts.Self, args...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, simulatedWithin)
	defer cancel()
	if err := until(ctx, s.allSchedulable, simnode); err != nil {
		return err
	}
	s.sayf("simulated nodes ready")
	return nil
}

func (s *starter) allSchedulable(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) == 0 {
		return errors.New("there are no nodes")
	}
	for i := range nodes.Items {
		if err := schedulable(&nodes.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
