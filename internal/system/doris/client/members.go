package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// TabletHealth counts the tablets that are not as they should be. A number is nil
// where the answer does not have it.
type TabletHealth struct {
	Tablets, Healthy                *int64
	ReplicaMissing, VersionMissing  *int64
	Unrecoverable, ReplicaRelocates *int64
}

// TabletHealth asks for the health of all tablets of the cluster.
func (d *Doris) TabletHealth(ctx context.Context, at Node) (TabletHealth, error) {
	st := statement{op: "show the health of tablets", sql: `SHOW PROC "/cluster_health/tablet_health"`}
	t, err := d.query(ctx, at, st)
	if err != nil {
		return TabletHealth{}, err
	}
	for _, r := range t.rows {
		if !strings.EqualFold(r.text("dbid"), "total") && !strings.EqualFold(r.text("dbname"), "total") {
			continue
		}
		return TabletHealth{
			Tablets: r.count("tabletnum"), Healthy: r.count("healthynum"), ReplicaMissing: r.count("replicamissingnum"),
			VersionMissing: r.count("versionincompletenum"), Unrecoverable: r.count("unrecoverablenum"),
			ReplicaRelocates: r.count("replicarelocatingnum"),
		}, nil
	}
	return TabletHealth{}, nil
}

// MemberChange is what can be done about a member.
type MemberChange string

// The changes of members.
const (
	AddBackend         MemberChange = "ADD BACKEND"
	Decommission       MemberChange = "DECOMMISSION BACKEND"
	CancelDecommission MemberChange = "CANCEL DECOMMISSION BACKEND"
	// ForceDropBackend takes a backend out with all that it holds: DROP BACKEND is
	// a statement that only answers that it is not meant.
	ForceDropBackend MemberChange = "DROPP BACKEND"
	DropObserver     MemberChange = "DROP OBSERVER"
	DropFollower     MemberChange = "DROP FOLLOWER"
)

// statements that do not begin with ALTER SYSTEM.
var withoutAlter = map[MemberChange]bool{CancelDecommission: true}

// ChangeMember changes one member, which is named by the host and port that it is
// registered by: the heartbeat port of a backend, the edit log port of a frontend.
// One statement is for one member.
func (d *Doris) ChangeMember(ctx context.Context, at Node, change MemberChange, member Node) error {
	st := statement{op: strings.ToLower(string(change)) + " " + member.String(), sql: "ALTER SYSTEM " + string(change) + ` "` + sqlText(member.String()) + `"`}
	if withoutAlter[change] {
		st.sql = strings.TrimPrefix(st.sql, "ALTER SYSTEM ")
	}
	if !member.valid() {
		return &Error{Op: strings.ToLower(string(change)), Node: at, Kind: ErrInput, Text: "the host or port of the member is not valid"}
	}
	_, err := d.query(ctx, at, st)
	return err
}

// MayDecommission asks a frontend over its HTTP port whether backends can be
// decommissioned, all of them: whether those that are left have the room for their
// tablets, and are enough for every table's copies. A refusal is an error of the
// kind ErrRefused. Any other error means that the frontend does not say; versions
// differ in that.
func (d *Doris) MayDecommission(ctx context.Context, at Node, members []Node) error {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.String())
	}
	r := request{
		op: "ask whether backends can be decommissioned", method: http.MethodGet, path: "/api/check_decommission",
		query: url.Values{"host_ports": {strings.Join(names, ",")}},
	}
	unsaid := &Error{Op: r.op, Node: at, Kind: ErrAnswer}
	v, err := d.frontendCall(ctx, at, r)
	if e, is := err.(*Error); is && e.Kind == ErrRefused && e.Code > 0 { //nolint:errorlint // our own, never wrapped
		unsaid.Code, unsaid.Text = e.Code, e.Text // an HTTP status: no such call
		return unsaid
	}
	if err != nil {
		return err
	}
	refused := &Error{Op: r.op, Node: at, Kind: ErrRefused}
	if *v.Code != 0 {
		text, _ := scalar(v.Data)
		refused.Text = d.say(v.Msg+": "+text, nil)
		return refused
	}
	var may []string
	if json.Unmarshal(v.Data, &may) != nil {
		return unsaid
	}
	var missing []string
	for _, name := range names {
		if !slices.Contains(may, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		refused.Text = d.say("not "+strings.Join(missing, ", "), nil)
		return refused
	}
	return nil
}
