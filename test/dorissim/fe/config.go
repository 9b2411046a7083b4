package fe

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
	"github.com/fairlead-dev/fairlead/test/dorissim/quorum"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
)

// setting is a key of fe.conf that the stand-in knows.
type setting struct {
	def, kind           string
	mutable, masterOnly bool
}

var settings = map[string]setting{
	"arrow_flight_sql_port":                         {"-1", "int", false, false},
	"custom_config_dir":                             {"${DORIS_HOME}/conf", "String", false, false},
	"edit_log_port":                                 {"9010", "int", false, false},
	"enable_fqdn_mode":                              {"false", "boolean", false, true},
	"enable_multi_tags":                             {"false", "boolean", false, true},
	"experimental_enable_workload_group":            {"true", "boolean", true, false},
	"http_port":                                     {"8030", "int", false, false},
	"initial_root_password":                         {"", "String", false, false},
	"meta_dir":                                      {"${DORIS_HOME}/doris-meta", "String", false, false},
	"priority_networks":                             {"", "String", false, false},
	"query_port":                                    {"9030", "int", false, false},
	"rpc_port":                                      {"9020", "int", false, false},
	"balance_load_score_threshold":                  {"0.1", "double", true, true},
	"disable_balance":                               {"false", "boolean", true, true},
	"disable_colocate_balance":                      {"false", "boolean", true, true},
	"disable_tablet_scheduler":                      {"false", "boolean", true, true},
	"drop_backend_after_decommission":               {"true", "boolean", true, true},
	"max_backend_heartbeat_failure_tolerance_count": {"1", "long", true, true},
	"max_bytes_per_broker_scanner":                  {"536870912000", "long", true, true},
	"max_running_txn_num_per_db":                    {"1000", "int", true, true},
	"qe_max_connection":                             {"1024", "int", false, false},
	"qe_slow_log_ms":                                {"5000", "long", true, false},
	"query_metadata_name_ids_timeout":               {"3", "int", true, false},
	"storage_min_left_capacity_bytes":               {"2147483648", "long", false, true},
	"tablet_create_timeout_second":                  {"2", "int", true, true},
}

// experimental is what the frontend puts before some names when it shows them; it takes them without it as well.
const experimental = "experimental_"

// shown returns the name under which a setting is shown.
func shown(key string) string {
	if _, known := settings[experimental+key]; known {
		return experimental + key
	}
	return key
}

func (n *Node) value(key string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range []string{key, strings.TrimPrefix(key, experimental)} {
		if v, ok := n.values[name]; ok {
			return v
		}
	}
	return settings[key].def
}

func (n *Node) boolValue(key string) bool { return n.value(key) == "true" }

func (n *Node) intValue(key string, def int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.values.Int(key, def)
}

func (s *session) showConfig(st sqlparse.ShowConfig) (*answer, error) {
	if err := s.must("Admin_priv"); err != nil {
		return nil, err
	}
	a := table("Key", "Value", "Type", "IsMutable", "MasterOnly", "Comment")
	keys := make([]string, 0, len(settings))
	for k := range settings {
		if matches(k, st.Like) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		c := settings[k]
		a.row(k, s.node.value(k), c.kind, fmt.Sprint(c.mutable), fmt.Sprint(c.masterOnly), "")
	}
	return a, nil
}

// checkMutable fails for keys that ADMIN SET and _set_config may not change.
func checkMutable(values map[string]string) error {
	for _, k := range conf.Values(values).Keys() {
		if err := mutable(k, values[k]); err != nil {
			return err
		}
	}
	return nil
}

// mutable fails for a key that cannot be set, and for a value that is not of its type. As with the real one the error
// quotes the value.
func mutable(key, value string) error {
	c, known := settings[shown(key)]
	if !known {
		return fmt.Errorf("Config '%s' does not exist", key) //nolint:staticcheck // the text is the server's
	}
	if !c.mutable {
		return fmt.Errorf("Config '%s' is not mutable", key) //nolint:staticcheck // the text is the server's
	}
	value = strings.TrimSpace(value)
	var err error
	switch c.kind {
	case "int":
		_, err = strconv.ParseInt(value, 10, 32)
	case "long":
		_, err = strconv.ParseInt(value, 10, 64)
	case "double":
		_, err = strconv.ParseFloat(value, 64)
	case "boolean":
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return fmt.Errorf("Failed to set config '%s'. err: type mismatch", key) //nolint:staticcheck // the text is the server's
		}
	}
	if err != nil {
		return fmt.Errorf("Failed to set config '%s'. err: For input string: \"%s\"", key, value) //nolint:staticcheck // the text is the server's
	}
	return nil
}

// remember keeps values that were set, in the spelling in which they are shown.
func (n *Node) remember(values map[string]string) {
	for k, v := range values {
		v = strings.TrimSpace(v)
		if settings[shown(k)].kind == "boolean" {
			v = strings.ToLower(v)
		}
		n.values[shown(k)] = v
	}
}

// setConfig changes settings in memory: on this frontend, or on the master for keys that only the master reads. What
// is set so is forgotten at the next start.
func (s *session) setConfig(st sqlparse.SetConfig, sql string) (*answer, error) {
	masterOnly := false
	for k := range st.Values {
		masterOnly = masterOnly || settings[shown(k)].masterOnly
	}
	status := s.node.quorum.Status()
	if !masterOnly || status.IsMaster {
		return s.setConfigHere(st)
	}
	if status.Master == "" {
		return nil, quorum.ErrNoMaster
	}
	return s.node.forward(s.ctx, status.Master, forwarded{User: s.user, Database: s.database, SQL: sql})
}

func (s *session) setConfigHere(st sqlparse.SetConfig) (*answer, error) {
	if err := s.must("Admin_priv"); err != nil {
		return nil, err
	}
	if err := checkMutable(st.Values); err != nil {
		return nil, err
	}
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.node.remember(st.Values)
	return &answer{}, nil
}
