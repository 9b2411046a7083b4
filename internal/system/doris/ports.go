package doris

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// Paths in the images.
const (
	rootPath     = "/opt/apache-doris"
	frontendHome = rootPath + "/fe"
	backendHome  = rootPath + "/be"
	brokerHome   = rootPath + "/apache_hdfs_broker"
)

// Keys of ConfigMaps that hold the configuration of a component.
const (
	frontendConfKey = "fe.conf"
	backendConfKey  = "be.conf"
	brokerConfKey   = "apache_hdfs_broker.conf"
)

// fileFor returns the home directory of a component and the key of ConfigMaps that
// holds its configuration.
func fileFor(kind dorisv1.ComponentType) (home, key string) {
	switch kind {
	case dorisv1.ComponentFE:
		return frontendHome, frontendConfKey
	case dorisv1.ComponentBroker:
		return brokerHome, brokerConfKey
	case dorisv1.ComponentBE, dorisv1.ComponentCN:
	}
	return backendHome, backendConfKey
}

// Port is a port of a component with the name that Services and containers give
// it.
type Port struct {
	Name   string
	Number int32
}

// TLSFiles are the files with which a probe talks to a component that speaks
// TLS.
type TLSFiles struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// FrontendConfig is what the operator needs to know of fe.conf. It is part of what
// is recorded on a StatefulSet, so the names of its fields there never change.
type FrontendConfig struct {
	// HTTP, RPC, Query and EditLog are ports; Arrow is 0 when that service is off.
	HTTP    int32 `json:"http"`
	RPC     int32 `json:"rpc"`
	Query   int32 `json:"query"`
	EditLog int32 `json:"editLog"`
	Arrow   int32 `json:"arrow,omitempty"`
	// FQDN tells whether members know each other by name rather than by address.
	FQDN bool `json:"fqdn"`
	// MetaDir is where the metadata lies.
	MetaDir string `json:"metaDir"`
	// GraceSeconds is how long Doris waits when it stops; 0 when nothing is set.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// TLS is nil when the frontends do not speak TLS.
	TLS *TLSFiles `json:"tls,omitempty"`
	// Krb5Conf is the path of the Kerberos configuration.
	Krb5Conf string `json:"krb5Conf"`
}

// BackendConfig is what the operator needs to know of be.conf. It is recorded like
// FrontendConfig.
type BackendConfig struct {
	// Backend, Web, Heartbeat and BRPC are ports; Arrow is 0 when that service is
	// off.
	Backend   int32 `json:"backend"`
	Web       int32 `json:"web"`
	Heartbeat int32 `json:"heartbeat"`
	BRPC      int32 `json:"brpc"`
	Arrow     int32 `json:"arrow,omitempty"`
	// FQDN tells how members know each other. It counts only where the frontends
	// are not part of the cluster: else fe.conf decides for all.
	FQDN bool `json:"fqdn"`
	// StorageRoots are the directories that hold data.
	StorageRoots []string `json:"storageRoots"`
	// GraceSeconds is how long Doris waits when it stops; 0 when nothing is set.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// TLS is nil when the backends do not speak TLS.
	TLS *TLSFiles `json:"tls,omitempty"`
	// Krb5Conf is the path of the Kerberos configuration.
	Krb5Conf string `json:"krb5Conf"`
	// Computation tells that the file makes a compute node of the backend. It is
	// read for compute nodes alone.
	Computation bool `json:"computation,omitempty"`
}

// BrokerConfig is what the operator needs to know of apache_hdfs_broker.conf. It is
// recorded like FrontendConfig.
type BrokerConfig struct {
	// IPC is the port of the broker.
	IPC int32 `json:"ipc"`
}

// Ports returns the ports of a frontend in the order of its Services.
func (c FrontendConfig) Ports() []Port {
	ports := []Port{
		{"http-port", c.HTTP}, {"rpc-port", c.RPC}, {"query-port", c.Query}, {"edit-log-port", c.EditLog},
	}
	return withArrow(ports, c.Arrow)
}

// portWeb is the name of the port of backends that takes stream loads.
const portWeb = "webserver-port"

// Ports returns the ports of a backend in the order of its Services.
func (c BackendConfig) Ports() []Port {
	ports := []Port{
		{"be-port", c.Backend}, {portWeb, c.Web}, {"heartbeat-port", c.Heartbeat}, {"brpc-port", c.BRPC},
	}
	return withArrow(ports, c.Arrow)
}

// Ports returns the ports of a broker.
func (c BrokerConfig) Ports() []Port { return []Port{{"broker-ipc-port", c.IPC}} }

func withArrow(ports []Port, arrow int32) []Port {
	if arrow > 0 {
		ports = append(ports, Port{"arrow-flight", arrow})
	}
	return ports
}

// ReadFrontendConfig reads fe.conf from the ConfigMaps that the frontends mount.
// Without one, the image's own file counts, whose values are the defaults.
func ReadFrontendConfig(dc *dorisv1.DorisCluster, configMaps map[string]*corev1.ConfigMap) (FrontendConfig, []plan.Finding) {
	spec := &dorisv1.BaseSpec{}
	if dc.Spec.FeSpec != nil {
		spec = &dc.Spec.FeSpec.BaseSpec
	}
	r := newConfReader(spec, "spec.feSpec", frontendConfKey, frontendHome, configMaps)
	c := FrontendConfig{
		HTTP: r.port("http_port", 8030), RPC: r.port("rpc_port", 9020),
		Query: r.port("query_port", defaultQueryPort), EditLog: r.port("edit_log_port", 9010),
		Arrow: r.optionalPort("arrow_flight_sql_port"),
		// The image's own file turns names on. A mounted one has to say so: the
		// entrypoint cannot add the line to a file that it may not write.
		FQDN:         r.bool("enable_fqdn_mode", r.file == nil),
		MetaDir:      r.path("meta_dir", frontendHome+"/doris-meta"),
		GraceSeconds: r.seconds("grace_shutdown_wait_seconds"),
		TLS:          r.tls(),
		Krb5Conf:     r.javaOption("-Djava.security.krb5.conf=", defaultKrb5Conf),
	}
	r.distinct(c.Ports())
	return c, r.findings
}

// ReadBackendConfig reads be.conf from the ConfigMaps that the backends mount.
func ReadBackendConfig(dc *dorisv1.DorisCluster, configMaps map[string]*corev1.ConfigMap) (BackendConfig, []plan.Finding) {
	spec := &dorisv1.BaseSpec{}
	if dc.Spec.BeSpec != nil {
		spec = &dc.Spec.BeSpec.BaseSpec
	}
	c, r := readBackend(spec, "spec.beSpec", configMaps)
	return c, r.findings
}

// ReadComputeConfig reads be.conf from the ConfigMaps that the compute nodes mount.
func ReadComputeConfig(dc *dorisv1.DorisCluster, configMaps map[string]*corev1.ConfigMap) (BackendConfig, []plan.Finding) {
	spec := &dorisv1.BaseSpec{}
	if dc.Spec.CnSpec != nil {
		spec = &dc.Spec.CnSpec.BaseSpec
	}
	c, r := readBackend(spec, "spec.cnSpec", configMaps)
	c.Computation = r.text(roleKey, "") == "computation"
	return c, r.findings
}

// roleKey is the setting that makes a compute node of a backend.
const roleKey = "be_node_role"

// ReadBrokerConfig reads apache_hdfs_broker.conf from the ConfigMaps that the
// brokers mount.
func ReadBrokerConfig(dc *dorisv1.DorisCluster, configMaps map[string]*corev1.ConfigMap) (BrokerConfig, []plan.Finding) {
	spec := &dorisv1.BaseSpec{}
	if dc.Spec.BrokerSpec != nil {
		spec = &dc.Spec.BrokerSpec.BaseSpec
	}
	r := newConfReader(spec, "spec.brokerSpec", brokerConfKey, brokerHome, configMaps)
	return BrokerConfig{IPC: r.port("broker_ipc_port", 8000)}, r.findings
}

func readBackend(spec *dorisv1.BaseSpec, field string, configMaps map[string]*corev1.ConfigMap) (BackendConfig, *confReader) {
	r := newConfReader(spec, field, backendConfKey, backendHome, configMaps)
	c := BackendConfig{
		Backend: r.port("be_port", 9060), Web: r.port("webserver_port", 8040),
		Heartbeat: r.port("heartbeat_service_port", 9050), BRPC: r.port("brpc_port", 8060),
		Arrow:        r.optionalPort("arrow_flight_sql_port"),
		FQDN:         r.bool("enable_fqdn_mode", true),
		StorageRoots: r.storageRoots("storage_root_path", backendHome+"/storage"),
		GraceSeconds: r.seconds("grace_shutdown_wait_seconds"),
		TLS:          r.tls(),
		Krb5Conf:     r.path("kerberos_krb5_conf_path", defaultKrb5Conf),
	}
	r.distinct(c.Ports())
	return c, r
}

// confReader reads values of one configuration file and collects what is wrong.
type confReader struct {
	file *conf.File
	// field and source say where the file comes from.
	field, source string
	env           conf.Lookup
	findings      []plan.Finding
}

func newConfReader(spec *dorisv1.BaseSpec, field, key, home string, configMaps map[string]*corev1.ConfigMap) *confReader {
	r := &confReader{field: field + ".configMapInfo"}
	for _, m := range configMapsOf(spec, field) {
		if text, found := fileIn(configMaps[m.name], key); found {
			r.file, r.field, r.source = conf.Parse(text), m.field, fmt.Sprintf("%s in ConfigMap %q", key, m.name)
			break
		}
	}
	r.env = placeholders(home, spec.EnvVars, r.file)
	return r
}

// fileIn returns the content of a key of a ConfigMap.
func fileIn(cm *corev1.ConfigMap, key string) ([]byte, bool) {
	if cm == nil {
		return nil, false
	}
	if text, found := cm.Data[key]; found {
		return []byte(text), true
	}
	data, found := cm.BinaryData[key]
	return data, found
}

// placeholders returns how ${NAME} in a configuration file is resolved: the home
// directory of the component, then the variables of the container, then what the
// file itself sets, which the start script exports for names in capital letters.
func placeholders(home string, vars []corev1.EnvVar, file *conf.File) conf.Lookup {
	own := func(name string) (string, bool) {
		if name == "DORIS_HOME" {
			return home, true
		}
		for _, v := range slices.Backward(vars) {
			if v.Name == name && v.ValueFrom == nil {
				return v.Value, true
			}
		}
		return "", false
	}
	return func(name string) (string, bool) {
		if value, found := own(name); found || name != strings.ToUpper(name) {
			return value, found
		}
		value, found, err := file.Expand(name, own)
		if !found || err != nil {
			return "", false
		}
		return strings.ReplaceAll(conf.Unquote(value), "$DORIS_HOME", home), true
	}
}

func (r *confReader) refuse(err error) {
	r.findings = append(r.findings, plan.Finding{
		Severity: plan.Refusal, Field: r.field, Reason: meta.ReasonInvalidConfiguration,
		Message: fmt.Sprintf("%s: %v. Mend the file; nothing is changed until then", r.source, err),
	})
}

func (r *confReader) port(key string, missing int32) int32 {
	port, err := r.file.Port(key, missing)
	if err != nil {
		r.refuse(err)
	}
	return port
}

func (r *confReader) optionalPort(key string) int32 {
	port, err := r.file.OptionalPort(key)
	if err != nil {
		r.refuse(err)
	}
	return port
}

func (r *confReader) bool(key string, missing bool) bool {
	value, err := r.file.Bool(key, missing)
	if err != nil {
		r.refuse(err)
	}
	return value
}

func (r *confReader) seconds(key string) int64 {
	// A day is more than anyone waits, and keeps the sum with a margin in range.
	const longest = 24 * 60 * 60
	n, err := r.file.Int(key, 0)
	if err == nil && n > longest {
		value, _ := r.file.Get(key)
		err = &conf.ValueError{Key: key, Value: value, Want: "at most a day"}
	}
	if err != nil {
		r.refuse(err)
		return 0
	}
	return max(n, 0)
}

// text returns a value with its placeholders resolved.
func (r *confReader) text(key, missing string) string {
	value, _, err := r.file.Expand(key, r.env)
	if err != nil {
		r.refuse(fmt.Errorf("%w, for example in %s.envVars", err, strings.TrimSuffix(r.field, ".configMapInfo")))
		return missing
	}
	if value == "" {
		return missing
	}
	return value
}

// path returns the value of a key that has to be an absolute path.
func (r *confReader) path(key, missing string) string {
	value := r.text(key, missing)
	if !path.IsAbs(value) {
		r.refuse(&conf.ValueError{Key: key, Value: value, Want: "an absolute path"})
		return missing
	}
	return path.Clean(value)
}

func (r *confReader) storageRoots(key, missing string) []string {
	roots, err := conf.StorageRoots(r.text(key, missing))
	if err != nil {
		r.refuse(fmt.Errorf("%s: %w", key, err))
	}
	var paths []string
	for _, root := range roots {
		paths = append(paths, root.Path)
	}
	if len(paths) == 0 {
		paths = []string{missing}
	}
	return paths
}

func (r *confReader) tls() *TLSFiles {
	if !r.bool("enable_tls", false) {
		return nil
	}
	return &TLSFiles{
		CA:   r.text("tls_ca_certificate_path", ""),
		Cert: r.text("tls_certificate_path", ""),
		Key:  r.text("tls_private_key_path", ""),
	}
}

// javaOption returns the value of an option among those of the Java process.
func (r *confReader) javaOption(prefix, missing string) string {
	for _, key := range []string{"java_opts_for_jdk_17", "java_opts"} {
		options, _ := r.file.Get(key)
		for option := range strings.FieldsSeq(conf.Unquote(options)) {
			if value, found := strings.CutPrefix(option, prefix); found && value != "" {
				return value
			}
		}
	}
	return missing
}

// distinct refuses two services on one port, which neither Doris nor a
// Kubernetes Service can have.
func (r *confReader) distinct(ports []Port) {
	seen := map[int32]string{}
	for _, p := range ports {
		if other, taken := seen[p.Number]; taken {
			r.refuse(fmt.Errorf("%s and %s are both %d: give each its own port", other, p.Name, p.Number))
		}
		seen[p.Number] = p.Name
	}
}
