// Package wire is what FE and BE of the stand-in say to each other: JSON over HTTP, where the real ones speak Thrift
// and bRPC on the same ports.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Paths of the BE's services. Heartbeats go to heartbeat_service_port, tablet work to be_port, reads to brpc_port.
const (
	PathHeartbeat = "/heartbeat"
	PathCreate    = "/tablet/create"
	PathWrite     = "/tablet/write"
	PathClone     = "/tablet/clone"
	PathDrop      = "/tablet/drop"
	PathFetch     = "/tablet/fetch"
	PathScan      = "/fragment/scan"
)

// Heartbeat is the master's question to a backend.
type Heartbeat struct {
	ClusterID, BackendID int64
	Master               string
}

// Alive is a backend's answer.
type Alive struct {
	// Error is the reason for which the backend refuses the master; the other fields are then empty.
	Error                          string `json:",omitempty"`
	Version, NodeRole              string
	BePort, HTTPPort, BrpcPort     int
	ArrowPort                      int
	StartTimeMs                    int64
	Shutdown                       bool
	Fragments, Cores               int
	TotalBytes, FreeBytes, MemByte int64
	Tablets                        map[int64]Replica
}

// Replica is a tablet as a backend has it.
type Replica struct{ Version, Bytes int64 }

// Tablet names a tablet at a version, for creating, dropping, fetching and scanning.
type Tablet struct{ ID, Version int64 }

// Write adds rows as the given version.
type Write struct {
	ID, Version int64
	Rows        [][]*string
}

// Clone tells a backend to copy a tablet from another one's be_port.
type Clone struct {
	ID, Version int64
	Source      string
}

// Batch is the rows of one version; a replica is a sequence of them.
type Batch struct {
	Version int64       `json:"v"`
	Rows    [][]*string `json:"rows"`
}

// ErrAnswer is wrapped by every error that the other side answered, as opposed to not answering.
var ErrAnswer = errors.New("refused")

// Service is a path at an address.
type Service struct {
	Client     *http.Client
	Addr, Path string
}

// Call posts a question and reads the answer.
func (s Service) Call(ctx context.Context, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr+s.Path, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("ask %s: %w", s.Addr, err)
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", s.Addr, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%w by %s: %s", ErrAnswer, s.Addr, strings.TrimSpace(string(text)))
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read answer of %s: %w", s.Addr, err)
	}
	return nil
}

// Handle turns a function into the handler that Service.Call asks. An error becomes its text.
func Handle[I, O any](answer func(context.Context, I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in I
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := answer(r.Context(), in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}
}
