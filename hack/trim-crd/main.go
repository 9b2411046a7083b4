// Command trim-crd rewrites the custom resource definitions named as arguments
// without the descriptions of Kubernetes' own types. These are documented
// elsewhere, and with them a definition is too large for the annotation in which
// a client-side `kubectl apply` keeps what it applied (256 KiB).
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// limit is the total size of annotations that the API server accepts.
const limit = 256 << 10

// foreign names the properties whose types are Kubernetes' own. Their own
// descriptions are ours and stay.
var foreign = map[string]bool{
	"affinity": true, "behavior": true, "claims": true, "containerSecurityContext": true, "envVars": true,
	"hostAliases": true, "imagePullSecrets": true, "metrics": true, "persistentVolumeClaimSpec": true,
	"securityContext": true, "tolerations": true,
}

func main() {
	for _, file := range os.Args[1:] {
		if err := trim(file); err != nil {
			fmt.Fprintf(os.Stderr, "trim-crd: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func trim(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return err
	}
	walk(crd, false)
	compact, err := json.Marshal(crd)
	if err != nil {
		return err
	}
	if len(compact) > limit {
		return fmt.Errorf("%d bytes are more than a client-side apply can carry (%d); name more foreign types", len(compact), limit)
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// walk goes through a schema. Within a foreign type every description is
// dropped.
func walk(v any, inside bool) {
	switch x := v.(type) {
	case map[string]any:
		if _, text := x["description"].(string); text && inside {
			delete(x, "description")
		}
		properties, _ := x["properties"].(map[string]any)
		for name, p := range properties {
			walkProperty(p, inside, foreign[name])
		}
		for key, e := range x {
			if key != "properties" {
				walk(e, inside)
			}
		}
	case []any:
		for _, e := range x {
			walk(e, inside)
		}
	}
}

// walkProperty keeps the description of a property that is ours, whatever its
// type is.
func walkProperty(p any, inside, foreignType bool) {
	m, ok := p.(map[string]any)
	if !ok {
		return
	}
	own, has := m["description"]
	walk(m, inside || foreignType)
	if has && !inside {
		m["description"] = own
	}
}
