package client

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Frontend is a row of SHOW FRONTENDS. What a version does not show is zero.
type Frontend struct {
	Name               string
	Host               string
	EditLogPort        int32
	HTTPPort           int32
	QueryPort          int32
	RPCPort            int32
	ArrowFlightSQLPort int32
	// Role is FOLLOWER or OBSERVER; old versions say MASTER of one follower.
	Role     string
	IsMaster bool
	// Join tells that it has started once and counts as a member.
	Join  bool
	Alive bool
	// ReplayedJournalID tells how far it has read the metadata's journal.
	ReplayedJournalID int64
	LastStartTime     string
	LastHeartbeat     string
	LiveSince         string
	ErrMsg            string
	Version           string
	// Connected tells that it is this frontend that answered.
	Connected bool
}

// Backend is a row of SHOW BACKENDS. What a version does not show is zero.
type Backend struct {
	ID                 int64
	Host               string
	HeartbeatPort      int32
	BePort             int32
	HTTPPort           int32
	BrpcPort           int32
	ArrowFlightSQLPort int32
	LastStartTime      string
	LastHeartbeat      string
	LiveSince          string
	Alive              bool
	// Decommissioned tells that its tablets are being moved away.
	Decommissioned bool
	// TabletNum is nil where the answer has no readable number: that is not the
	// same as none.
	TabletNum *int64
	// Capacities are texts such as "1.2 GB".
	DataUsedCapacity   string
	TrashUsedCapacity  string
	AvailCapacity      string
	TotalCapacity      string
	Tag                BackendTag
	State              BackendState
	ErrMsg             string
	Version            string
	HeartbeatFailures  int64
	NodeRole           string
	RunningTasks       int64
	MaxDiskUsedPercent string
}

// BackendTag is what the column Tag tells.
type BackendTag struct {
	Location           string `json:"location"`
	CloudUniqueID      string `json:"cloud_unique_id"`
	ComputeGroupID     string `json:"compute_group_id"`
	ComputeGroupName   string `json:"compute_group_name"`
	ComputeGroupStatus string `json:"compute_group_status"`
	// All are the tags as they are, but for those without a value.
	All map[string]string `json:"-"`
}

// The tags by which a stream load is sent to another address than the backend's own.
const (
	TagPublicEndpoint  = "public_endpoint"
	TagPrivateEndpoint = "private_endpoint"
)

// BackendState is what the column Status tells.
type BackendState struct {
	QueryDisabled   bool
	LoadDisabled    bool
	Shutdown        bool
	Fragments       int64
	LastReportTime  string
	LastStreamLoads int64
}

// Frontends lists the cluster's frontends as one of them knows them.
func (d *Doris) Frontends(ctx context.Context, at Node) ([]Frontend, error) {
	st := statement{op: "show frontends", sql: "SHOW FRONTENDS"}
	t, err := d.query(ctx, at, st)
	if err != nil {
		return nil, err
	}
	out, err := frontends(t)
	if err != nil {
		return nil, &Error{Op: st.op, Node: at, Kind: ErrAnswer, Text: err.Error()}
	}
	return out, nil
}

// Backends lists the cluster's backends as a frontend knows them.
func (d *Doris) Backends(ctx context.Context, at Node) ([]Backend, error) {
	st := statement{op: "show backends", sql: "SHOW BACKENDS"}
	t, err := d.query(ctx, at, st)
	if err != nil {
		return nil, err
	}
	out, err := backends(t)
	if err != nil {
		return nil, &Error{Op: st.op, Node: at, Kind: ErrAnswer, Text: err.Error()}
	}
	return out, nil
}

// frontends reads rows. A row that does not say where its frontend is makes the
// whole answer unusable: a list without it would be wrong.
func frontends(t table) ([]Frontend, error) {
	out := make([]Frontend, 0, len(t.rows))
	for _, r := range t.rows {
		f := Frontend{
			Name: r.text("name"), Host: r.text("host", "ip", "hostname"),
			EditLogPort: r.port("editlogport"), HTTPPort: r.port("httpport"), QueryPort: r.port("queryport"),
			RPCPort: r.port("rpcport"), ArrowFlightSQLPort: r.port("arrowflightsqlport"),
			Role: strings.ToUpper(r.text("role")), IsMaster: r.yes("ismaster"), Join: r.yes("join"), Alive: r.yes("alive"),
			ReplayedJournalID: r.number("replayedjournalid"), LastStartTime: r.text("laststarttime"),
			LastHeartbeat: r.text("lastheartbeat"), LiveSince: r.text("livesince"), ErrMsg: r.text("errmsg"),
			Version: r.text("version"), Connected: r.yes("currentconnected"),
		}
		if !t.columns["ismaster"] {
			f.IsMaster = f.Role == "MASTER"
		}
		if f.Host == "" || f.EditLogPort == 0 {
			return nil, errors.New("a row has no readable host and edit log port")
		}
		out = append(out, f)
	}
	return out, nil
}

// backends reads rows, with the same strictness about who a row is of.
func backends(t table) ([]Backend, error) {
	out := make([]Backend, 0, len(t.rows))
	for _, r := range t.rows {
		b := Backend{
			ID: r.number("backendid"), Host: r.text("host", "ip", "hostname"), HeartbeatPort: r.port("heartbeatport"),
			BePort: r.port("beport"), HTTPPort: r.port("httpport"), BrpcPort: r.port("brpcport"),
			ArrowFlightSQLPort: r.port("arrowflightsqlport"), LastStartTime: r.text("laststarttime"),
			LastHeartbeat: r.text("lastheartbeat"), LiveSince: r.text("livesince"), Alive: r.yes("alive"),
			Decommissioned: r.yes("systemdecommissioned"), TabletNum: r.count("tabletnum"),
			DataUsedCapacity:  r.text("datausedcapacity"),
			TrashUsedCapacity: r.text("trashusedcapacity", "trashusedcapcacity"),
			AvailCapacity:     r.text("availcapacity"), TotalCapacity: r.text("totalcapacity"),
			MaxDiskUsedPercent: r.text("maxdiskusedpct"), ErrMsg: r.text("errmsg"), Version: r.text("version"),
			Tag: tag(r.text("tag")), State: state(r.text("status")),
			HeartbeatFailures: r.number("heartbeatfailurecounter"), NodeRole: r.text("noderole"),
			RunningTasks: r.number("runningtasks"),
		}
		if b.ID <= 0 || b.Host == "" || b.HeartbeatPort == 0 {
			return nil, errors.New("a row has no readable number, host and heartbeat port")
		}
		out = append(out, b)
	}
	return out, nil
}

// tag reads the JSON of the column Tag; what is no JSON object tells nothing.
func tag(s string) BackendTag {
	var out BackendTag
	fields := object(s)
	out.Location, out.CloudUniqueID = fields.text("location"), fields.text("cloud_unique_id")
	out.ComputeGroupID, out.ComputeGroupName = fields.text("compute_group_id"), fields.text("compute_group_name")
	out.ComputeGroupStatus = fields.text("compute_group_status")
	for key := range fields {
		if value := fields.text(key); value != "" {
			if out.All == nil {
				out.All = map[string]string{}
			}
			out.All[key] = value
		}
	}
	return out
}

// state reads the JSON of the column Status.
func state(s string) BackendState {
	fields := object(s)
	r := row{}
	for key := range fields {
		r[strings.ToLower(key)] = fields.text(key)
	}
	return BackendState{
		QueryDisabled: r.yes("isquerydisabled"), LoadDisabled: r.yes("isloaddisabled"), Shutdown: r.yes("isshutdown"),
		Fragments: r.number("currentfragmentnum"), LastReportTime: r.text("lastsuccessreporttabletstime"),
		LastStreamLoads: r.number("laststreamloadtime"),
	}
}

// fields are the members of a JSON object, each read by itself, so that one of
// an unexpected type spoils no other.
type fields map[string]json.RawMessage

func object(s string) fields {
	var f fields
	if json.Unmarshal([]byte(s), &f) != nil {
		return nil
	}
	return f
}

// text returns a member as text, whether it is text, a number or a boolean.
func (f fields) text(key string) string {
	text, _ := scalar(f[key])
	return text
}

// scalar reads a JSON text, number or boolean as text.
func scalar(raw json.RawMessage) (string, bool) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// text returns the first of several columns that has a text.
func (r row) text(columns ...string) string {
	for _, c := range columns {
		if s := strings.TrimSpace(r[c]); s != "" && !strings.EqualFold(s, "null") && s != "N/A" && s != `\N` {
			return s
		}
	}
	return ""
}

// yes reads a boolean: Doris writes true, and Yes in one column.
func (r row) yes(column string) bool {
	switch strings.ToLower(strings.TrimSpace(r[column])) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// number reads a whole number; anything else is 0.
func (r row) number(column string) int64 {
	if n := r.count(column); n != nil {
		return *n
	}
	return 0
}

// count reads a whole number that must not be mistaken for 0.
func (r row) count(column string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(r[column]), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// port reads a port; -1 and everything else that is none is 0.
func (r row) port(column string) int32 {
	if n := r.count(column); n != nil && *n > 0 && *n <= 65535 {
		return int32(*n)
	}
	return 0
}
