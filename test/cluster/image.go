package cluster

import (
	"context"
	"errors"
)

// LoadImage imports an image archive (docker-archive or OCI) into the real node.
func (c *Cluster) LoadImage(context.Context, string) error {
	return errors.New("this cluster has no real node")
}
