package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// BackendHealth is what a backend says of itself. Newer versions answer with
// status 200 in any case, so that only the body tells.
type BackendHealth struct {
	// OK tells that it serves.
	OK bool
	// Says is the backend's word for it.
	Says string
}

// BackendHealth asks a backend how it is. An answer that it does not serve is
// not an error.
func (d *Doris) BackendHealth(ctx context.Context, at Node) (BackendHealth, error) {
	r := request{op: "ask for health", method: http.MethodGet, path: "/api/health"}
	body, err := d.call(ctx, at, r)
	if err != nil {
		return BackendHealth{}, err
	}
	var v struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(body, &v) != nil || v.Status == "" {
		return BackendHealth{}, &Error{Op: r.op, Node: at, Kind: ErrAnswer, Text: "the answer has no status"}
	}
	return BackendHealth{OK: v.Status == "OK", Says: d.say(v.Status, nil)}, nil
}

// FrontendHealth is what a frontend says of itself and of the backends.
type FrontendHealth struct {
	// Ready tells that it serves, which needs a master.
	Ready bool
	// OnlineBackends and TotalBackends are counted by the frontend.
	OnlineBackends int
	TotalBackends  int
}

// FrontendHealth asks a frontend how it is. An answer that it does not serve is
// not an error.
func (d *Doris) FrontendHealth(ctx context.Context, at Node) (FrontendHealth, error) {
	v, err := d.frontendCall(ctx, at, request{op: "ask for health", method: http.MethodGet, path: "/api/health"})
	if err != nil || *v.Code != 0 {
		return FrontendHealth{}, err
	}
	var data struct {
		Online int `json:"online_backend_num"`
		Total  int `json:"total_backend_num"`
	}
	_ = json.Unmarshal(v.Data, &data) // the counts are an extra; the code tells
	return FrontendHealth{Ready: true, OnlineBackends: data.Online, TotalBackends: data.Total}, nil
}
