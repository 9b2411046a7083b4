package be

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
)

// setting is a key of be.conf that the stand-in knows: its default, its type and whether it may change at run time.
type setting struct {
	def, kind string
	mutable   bool
}

var settings = map[string]setting{
	"be_port":                                 {"9060", "int32_t", false},
	"brpc_port":                               {"8060", "int32_t", false},
	"heartbeat_service_port":                  {"9050", "int32_t", false},
	"webserver_port":                          {"8040", "int32_t", false},
	"arrow_flight_sql_port":                   {"-1", "int32_t", false},
	"be_node_role":                            {"mix", "std::string", false},
	"custom_config_dir":                       {"${DORIS_HOME}/conf", "std::string", false},
	"priority_networks":                       {"", "std::string", false},
	"storage_root_path":                       {"${DORIS_HOME}/storage", "std::string", false},
	"compaction_promotion_ratio":              {"0.05", "double", true},
	"compaction_task_num_per_disk":            {"4", "int32_t", true},
	"disable_auto_compaction":                 {"false", "bool", true},
	"grace_shutdown_wait_seconds":             {"5", "int32_t", true},
	"max_tablet_version_num":                  {"2000", "int32_t", true},
	"report_tablet_interval_seconds":          {"1", "int32_t", true},
	"storage_flood_stage_left_capacity_bytes": {"1073741824", "int64_t", true},
	"storage_flood_stage_usage_percent":       {"90", "int32_t", true},
	"streaming_load_max_mb":                   {"10240", "int64_t", true},
	"sys_log_level":                           {"INFO", "std::string", true},
}

func (n *Node) webHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/health", n.health)
	mux.HandleFunc("POST /api/update_config", n.updateConfig)
	mux.HandleFunc("GET /api/show_config", n.showConfig)
	mux.HandleFunc("GET /varz", n.varz)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "doris_be_tablets %d\n", len(n.store.report()))
	})
	return mux
}

// health answers 200 in any case; the body decides.
func (n *Node) health(w http.ResponseWriter, _ *http.Request) {
	status := "OK"
	if !n.ready.Load() || n.exiting.Load() {
		status = "Server is not available"
	}
	reply(w, map[string]string{"status": status, "msg": "To Be Added"})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

type updated struct {
	Name   string `json:"config_name,omitempty"`
	Status string `json:"status"`
	Msg    string `json:"msg"`
}

// updateConfig changes settings. Versions before 2.1 take one of them and answer with an object. Later ones answer
// with a list, and read the parameter persist without looking whether it is there: where the real one then does
// anything or dies, this one cuts the connection.
func (n *Node) updateConfig(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	old := n.before21()
	if !query.Has("persist") && !old {
		panic(http.ErrAbortHandler)
	}
	persist := query.Get("persist") == "true"
	query.Del("persist")
	keys := make([]string, 0, len(query))
	for k := range query {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if old && len(keys) != 1 {
		reply(w, updated{Status: "BAD", Msg: "Now only support to set a single config once"})
		return
	}
	out := []updated{}
	for _, k := range keys {
		u := updated{Name: k, Status: "OK"}
		if err := n.setConfig(k, query.Get(k), persist); err != nil {
			u.Status, u.Msg = "BAD", fmt.Sprintf("set %s=%s failed, reason: %s.", k, query.Get(k), err)
		}
		out = append(out, u)
	}
	if old {
		out[0].Name = ""
		reply(w, out[0])
		return
	}
	reply(w, out)
}

func (n *Node) setConfig(key, value string, persist bool) error {
	s, known := settings[key]
	if !known {
		return fmt.Errorf("[NOT_FOUND]'%s' is not found", key)
	}
	if !s.mutable {
		return fmt.Errorf("[NOT_IMPLEMENTED_ERROR]'%s' is not support to modify", key)
	}
	shown, err := convert(s.kind, strings.TrimSpace(value))
	if err != nil {
		return fmt.Errorf("[INVALID_ARGUMENT]convert '%s' as %s failed", value, s.kind)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[key] = shown
	if !persist {
		return nil
	}
	return conf.WriteLines(n.custom, conf.Values{key: value})
}

// before21 tells versions that take one setting at a time.
func (n *Node) before21() bool {
	var major, minor int
	if _, err := fmt.Sscanf(n.opt.Version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < 2 || major == 2 && minor < 1
}

// convert reads a value as a type and prints it as the backend does: a fraction with six digits.
func convert(kind, value string) (string, error) {
	switch kind {
	case "bool":
		if value != "true" && value != "false" {
			return "", strconv.ErrSyntax
		}
	case "int32_t", "int64_t":
		bits := 64
		if kind == "int32_t" {
			bits = 32
		}
		i, err := strconv.ParseInt(value, 10, bits)
		return strconv.FormatInt(i, 10), err
	case "double":
		f, err := strconv.ParseFloat(value, 64)
		return strconv.FormatFloat(f, 'g', 6, 64), err
	}
	return value, nil
}

// config returns every known or given key with the value in force.
func (n *Node) config() [][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	rows := [][]string{}
	for key, s := range settings {
		value := n.values.Text(key, s.def)
		if shown, err := convert(s.kind, value); err == nil {
			value = shown
		}
		rows = append(rows, []string{key, s.kind, value, fmt.Sprint(s.mutable)})
	}
	for key, value := range n.values {
		if _, known := settings[key]; !known {
			rows = append(rows, []string{key, "std::string", value, "false"})
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return rows
}

func (n *Node) showConfig(w http.ResponseWriter, r *http.Request) {
	rows := n.config()
	if item := r.URL.Query().Get("conf_item"); item != "" {
		kept := rows[:0]
		for _, row := range rows {
			if row[0] == item {
				kept = append(kept, row)
			}
		}
		rows = kept
	}
	reply(w, rows)
}

func (n *Node) varz(w http.ResponseWriter, _ *http.Request) {
	var out strings.Builder
	for _, row := range n.config() {
		fmt.Fprintf(&out, "%s=%s\n", row[0], row[2])
	}
	_, _ = w.Write([]byte(out.String()))
}

// capacity asks the file system of a storage root.
func capacity(root string) (total, free int64) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(root, &s); err != nil {
		return 0, 0
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize
}

// memory is the machine's total memory.
func memory() int64 {
	var s syscall.Sysinfo_t
	if err := syscall.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
