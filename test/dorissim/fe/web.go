package fe

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// envelope is the body of every answer of the FE's HTTP API. The HTTP status is 200 in any case.
type envelope struct {
	Msg   string `json:"msg"`
	Code  int    `json:"code"`
	Data  any    `json:"data"`
	Count int    `json:"count"`
}

func (n *Node) webHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/health", n.health)
	mux.HandleFunc("GET /api/bootstrap", n.bootstrap)
	mux.HandleFunc("/api/_set_config", n.webSetConfig)
	mux.HandleFunc("GET /api/check_decommission", n.checkDecommission)
	mux.HandleFunc("GET /dump", n.dump)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		online, total := n.countBackends()
		reply(w, map[string]int{"doris_fe_backends_alive": online, "doris_fe_backends": total})
	})
	return mux
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (n *Node) countBackends() (online, total int) {
	state := n.quorum.View()
	if state == nil {
		return 0, 0
	}
	for _, b := range state.Backends {
		total++
		if n.seen.backend(b.ID).Alive {
			online++
		}
	}
	return online, total
}

func (n *Node) health(w http.ResponseWriter, _ *http.Request) {
	if !n.quorum.Status().Ready {
		reply(w, envelope{Msg: "not ready", Code: 1, Data: "FE is not ready: there is no master"})
		return
	}
	online, total := n.countBackends()
	reply(w, envelope{Msg: "success", Data: map[string]int{"online_backend_num": online, "total_backend_num": total}})
}

func (n *Node) bootstrap(w http.ResponseWriter, r *http.Request) {
	status := n.quorum.Status()
	if !status.Ready {
		reply(w, envelope{Msg: "not ready", Code: 1, Data: "FE is not ready"})
		return
	}
	data := map[string]any{}
	if r.URL.Query().Get("cluster_id") != "" {
		data = map[string]any{
			"replayedJournalId": status.Version, "queryPort": n.port("query_port"), "rpcPort": n.port("rpc_port"),
			"version": versionText(n.opt.Version), "arrowFlightSqlPort": n.intValue("arrow_flight_sql_port", -1),
		}
	}
	reply(w, envelope{Msg: "success", Data: data})
}

// dump writes all metadata into a file that is named after its last change, beside the directory of the images. The
// real one asks for a password only where enable_all_http_auth is true.
func (n *Node) dump(w http.ResponseWriter, _ *http.Request) {
	state, status := n.quorum.View(), n.quorum.Status()
	failed := func(err error) { reply(w, envelope{Msg: "Error", Code: 1, Data: "dump failed. " + err.Error()}) }
	if state == nil {
		failed(errors.New("there is no metadata yet"))
		return
	}
	text, err := json.Marshal(state)
	if err != nil {
		failed(err)
		return
	}
	file := filepath.Join(n.metaDir, fmt.Sprintf("image.%d", status.Version))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		failed(err)
		return
	}
	reply(w, envelope{Msg: "success", Data: map[string]string{"dumpFilePath": file}})
}

// checkDecommission tells which backends could be decommissioned: all of those that are named, or none.
func (n *Node) checkDecommission(w http.ResponseWriter, r *http.Request) {
	if !n.webAdmin(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm=""`)
		reply(w, envelope{Msg: "Unauthorized", Code: 401, Data: "Access denied; need the ADMIN privilege"})
		return
	}
	members := strings.Split(r.URL.Query().Get("host_ports"), ",")
	state, left := n.quorum.View(), 0
	for _, b := range state.Backends {
		if !b.Decommissioned && !slices.Contains(members, b.Addr()) {
			left++
		}
	}
	for _, p := range state.Tablets() {
		if p.Table.ReplicationNum > left {
			reply(w, envelope{Msg: "Error", Code: 1, Data: fmt.Sprintf("insufficient backends: table %s.%s needs %d, %d are left",
				p.Database.Name, p.Table.Name, p.Table.ReplicationNum, left)})
			return
		}
	}
	reply(w, envelope{Msg: "OK", Data: members})
}

// webSetConfig changes settings of this frontend, and with persist=true writes them to fe_custom.conf. The earlier
// content of that file is dropped unless reset_persist=false.
func (n *Node) webSetConfig(w http.ResponseWriter, r *http.Request) {
	if !n.webAdmin(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm=""`)
		reply(w, envelope{Msg: "Unauthorized", Code: 401, Data: "Access denied; need the ADMIN privilege"})
		return
	}
	query := r.URL.Query()
	persist, reset := query.Get("persist") == "true", query.Get("reset_persist") != "false"
	query.Del("persist")
	query.Del("reset_persist")
	keys := make([]string, 0, len(query))
	for k := range query {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	set, failed := conf.Values{}, []map[string]string{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		if err := mutable(k, query.Get(k)); err != nil {
			failed = append(failed, map[string]string{
				"config_name": k, "config_value": "[" + query.Get(k) + "]", "err_info": err.Error(),
			})
			continue
		}
		set[k] = query.Get(k)
	}
	n.remember(set)
	persisted := ""
	if persist {
		persisted = "Written"
		if n.opt.Faults.Active(fault.TornWrite) {
			_ = os.Truncate(n.custom, 0)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := conf.WriteProperties(n.custom, set, reset, n.opt.Now()); err != nil {
			persisted = err.Error()
		}
	}
	reply(w, envelope{Msg: "success", Data: map[string]any{"set": set, "err": failed, "persist": persisted}})
}

// webAdmin checks the request's basic authentication.
func (n *Node) webAdmin(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	if !ok || n.opt.Faults.Active(fault.WrongPassword) {
		return false
	}
	u, known := n.quorum.View().Users[user]
	return known && u.Hash == meta.PasswordHash(password) && u.Holds("Admin_priv")
}
