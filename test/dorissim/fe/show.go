package fe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
)

func (s *session) show(st sqlparse.Show) (*answer, error) {
	switch st.What {
	case "FRONTENDS":
		return s.operators(s.showFrontends)
	case "BACKENDS":
		return s.operators(s.showBackends)
	case "BROKER":
		return s.operators(s.showBrokers)
	case "PROC":
		return s.operators(func() *answer { return s.proc(st.Arg) })
	case "ALL GRANTS":
		if err := s.must("Admin_priv", "Grant_priv"); err != nil {
			return nil, err
		}
		return s.grants(""), nil
	case "GRANTS":
		return s.grants(cmp.Or(st.Arg, s.user)), nil
	case "DATABASES":
		return named("Database", s.databases(), st.Like), nil
	case "TABLES":
		return s.tables(st)
	}
	if names, ok := chatter[st.What]; ok {
		return table(names...), nil
	}
	return nil, mysql.NewError(mysql.ER_PARSE_ERROR, "errCode = 2, detailMessage = unsupported statement: SHOW "+st.What)
}

// chatter is what clients ask on their own; the answer has columns and no rows.
var chatter = map[string][]string{
	"VARIABLES": {"Variable_name", "Value"}, "STATUS": {"Variable_name", "Value"},
	"WARNINGS": {"Level", "Code", "Message"}, "ERRORS": {"Level", "Code", "Message"},
	"ENGINES": {"Name"}, "PLUGINS": {"Name"}, "COLLATION": {"Name"}, "CHARSET": {"Name"}, "PROCESSLIST": {"Name"},
}

func (s *session) operators(rows func() *answer) (*answer, error) {
	if err := s.must("Admin_priv", "Node_priv"); err != nil {
		return nil, err
	}
	return rows(), nil
}

// table makes an answer of texts.
func table(names ...string) *answer { return &answer{Names: names, Rows: [][]*string{}} }

func (a *answer) row(values ...string) {
	row := make([]*string, len(values))
	for i := range values {
		row[i] = &values[i]
	}
	a.Rows = append(a.Rows, row)
}

func named(column string, names []string, like string) *answer {
	a := table(column)
	for _, name := range names {
		if matches(name, like) {
			a.row(name)
		}
	}
	return a
}

// matches applies a LIKE pattern; an empty one matches all.
func matches(name, like string) bool {
	if like == "" {
		return true
	}
	ok, err := path.Match(strings.NewReplacer("%", "*", "_", "?").Replace(strings.ToLower(like)), strings.ToLower(name))
	return err == nil && ok
}

func stamp(ms int64) string {
	if ms == 0 {
		return "NULL"
	}
	return time.UnixMilli(ms).UTC().Format(time.DateTime)
}

func bytesText(n int64) string {
	return fmt.Sprintf("%.3f GB", float64(n)/(1<<30))
}

// Since says from which version on the rows have the column LiveSince.
const liveSince = "4.1.3"

// AtLeast compares dotted versions by their numbers.
func AtLeast(version, least string) bool {
	a, b := numbers(version), numbers(least)
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return i < len(a) && a[i] > b[i]
		}
	}
	return true
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := strings.TrimLeftFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			digits = digits[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

func (s *session) showFrontends() *answer {
	a := table("Name", "Host", "EditLogPort", "HttpPort", "QueryPort", "RpcPort", "ArrowFlightSqlPort", "Role",
		"IsMaster", "ClusterId", "Join", "Alive", "ReplayedJournalId", "LastStartTime", "LastHeartbeat", "IsHelper",
		"ErrMsg", "Version", "CurrentConnected")
	since := AtLeast(s.node.opt.Version, liveSince)
	if since {
		a.Names = append(a.Names, "LiveSince")
	}
	state, master, known := s.node.quorum.View(), s.node.quorum.Status().Master, s.node.frontendStatus()
	for _, f := range state.Frontends {
		st := known[f.Addr()]
		connected := "No"
		if f.Addr() == s.node.self {
			connected = "Yes"
		}
		row := []string{
			f.Name, f.Host, itoa(f.EditLogPort), itoa(st.HTTPPort), itoa(st.QueryPort), itoa(st.RPCPort), itoa(st.Arrow),
			f.Role, fmt.Sprint(f.Addr() == master), strconv.FormatInt(state.ClusterID, 10), fmt.Sprint(f.Joined),
			fmt.Sprint(st.Alive), strconv.FormatUint(st.Replayed, 10), stamp(st.StartMs), stamp(st.HeardMs),
			fmt.Sprint(f.Role == meta.Follower), st.Err, versionText(st.Version), connected,
		}
		if since {
			row = append(row, stamp(st.StartMs))
		}
		a.row(row...)
	}
	return a
}

// showBrokers tries to reach each broker, since nothing here sends heartbeats to them.
func (s *session) showBrokers() *answer {
	a := table("Name", "Host", "Port", "Alive", "LastStartTime", "LastUpdateTime", "ErrMsg")
	dialer := net.Dialer{Timeout: brokerPatience}
	for _, b := range s.node.quorum.View().Brokers {
		alive, text := true, ""
		if c, err := dialer.DialContext(s.ctx, "tcp", b.Addr()); err != nil {
			alive, text = false, err.Error()
		} else {
			_ = c.Close()
		}
		a.row(b.Name, b.Host, itoa(b.Port), fmt.Sprint(alive), "", "", text)
	}
	return a
}

// brokerPatience bounds the reaching of a broker.
const brokerPatience = 300 * time.Millisecond

func itoa(n int) string { return strconv.Itoa(n) }

// versionText is the form of the Version column: the program, the version and the build.
func versionText(version string) string {
	if version == "" {
		return ""
	}
	return "doris-" + version + "-dorissim"
}

func (s *session) showBackends() *answer {
	a := table("BackendId", "Host", "HeartbeatPort", "BePort", "HttpPort", "BrpcPort", "ArrowFlightSqlPort",
		"LastStartTime", "LastHeartbeat", "Alive", "SystemDecommissioned", "TabletNum", "DataUsedCapacity",
		"TrashUsedCapacity", "AvailCapacity", "TotalCapacity", "UsedPct", "MaxDiskUsedPct", "RemoteUsedCapacity", "Tag",
		"ErrMsg", "Version", "Status", "HeartbeatFailureCounter", "CpuCores", "Memory", "RunningTasks", "NodeRole")
	since := AtLeast(s.node.opt.Version, liveSince)
	if since {
		a.Names = append(a.Names, "LiveSince")
	}
	state := s.node.quorum.View()
	for _, b := range state.Backends {
		row := backendRow(state, b, s.node.seen.backend(b.ID))
		if since {
			row = append(row, row[7])
		}
		a.row(row...)
	}
	return a
}

func backendRow(state *meta.State, b meta.Backend, st BackendStatus) []string {
	used, pct := int64(0), 0.0
	for _, t := range st.Info.Tablets {
		used += t.Bytes
	}
	if total := st.Info.TotalBytes; total > 0 {
		pct = 100 * float64(total-st.Info.FreeBytes) / float64(total)
	}
	tags := map[string]string{"location": "default"}
	maps.Copy(tags, b.Tags)
	role := st.Info.NodeRole
	if role == "" {
		role = "mix"
	}
	return []string{
		strconv.FormatInt(b.ID, 10), b.Host, itoa(b.HeartbeatPort), itoa(st.Info.BePort), itoa(st.Info.HTTPPort),
		itoa(st.Info.BrpcPort), itoa(st.Info.ArrowPort), stamp(st.Info.StartTimeMs), stamp(st.HeardMs),
		fmt.Sprint(st.Alive), fmt.Sprint(b.Decommissioned), itoa(state.TabletsOn(b.ID)), bytesText(used), "0.000 ",
		bytesText(st.Info.FreeBytes), bytesText(st.Info.TotalBytes), fmt.Sprintf("%.2f %%", pct),
		fmt.Sprintf("%.2f %%", pct), "0.000 ", jsonText(tags), st.Err, versionText(st.Info.Version),
		backendStatus(b, st), itoa(st.Failures), itoa(st.Info.Cores), bytesText(st.Info.MemByte),
		itoa(st.Info.Fragments), role,
	}
}

// backendStatus is the JSON of the Status column, with its keys in Doris's order.
func backendStatus(b meta.Backend, st BackendStatus) string {
	return jsonText(struct {
		LastSuccessReportTabletsTime string `json:"lastSuccessReportTabletsTime"`
		LastStreamLoadTime           int64  `json:"lastStreamLoadTime"`
		IsQueryDisabled              bool   `json:"isQueryDisabled"`
		IsLoadDisabled               bool   `json:"isLoadDisabled"`
		IsActive                     bool   `json:"isActive"`
		IsShutdown                   bool   `json:"isShutdown"`
		CurrentFragmentNum           int    `json:"currentFragmentNum"`
		LastFragmentUpdateTime       int64  `json:"lastFragmentUpdateTime"`
	}{stamp(st.HeardMs), -1, b.QueryDisabled, b.LoadDisabled, true, st.Info.Shutdown, st.Info.Fragments, st.HeardMs})
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

func (s *session) grants(user string) *answer {
	a := table("UserIdentity", "Comment", "Password", "Roles", "GlobalPrivs", "CatalogPrivs", "DatabasePrivs",
		"TablePrivs", "ColPrivs", "ResourcePrivs", "CloudClusterPrivs", "CloudStagePrivs", "StorageVaultPrivs",
		"WorkloadGroupPrivs")
	state := s.node.quorum.View()
	names := make([]string, 0, len(state.Users))
	for name := range state.Users {
		if user == "" || user == name {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		u := state.Users[name]
		password := "No"
		if u.Hash != "" {
			password = "Yes"
		}
		row := make([]string, len(a.Names))
		for i := range row {
			row[i] = "NULL"
		}
		row[0], row[1], row[2], row[3] = fmt.Sprintf("'%s'@'%%'", name), "", password, ""
		if len(u.Privileges) > 0 {
			row[4] = strings.Join(u.Privileges, ",")
		}
		a.row(row...)
	}
	return a
}
