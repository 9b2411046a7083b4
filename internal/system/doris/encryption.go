package doris

import (
	"context"
	"crypto/tls"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// pemFile is a key of a Secret, as the operator reads what a Pod has as a file.
type pemFile struct{ secret, key string }

// encryption is how nodes of a component are asked over TLS, where their
// configuration says that they speak it. The files are those that their probes use.
type encryption struct {
	kind          dorisv1.ComponentType
	ca, cert, key pemFile
	// versions are those of the Secrets; empty where one is not known.
	versions string
	// names are those that a certificate may be for, by the address of a Pod.
	names map[string][]string
	// problem says why nobody can be asked: a file is in no Secret that is mounted.
	problem string
}

// encryptionOf tells how a component is asked; nil where it speaks no TLS.
func (p planner) encryptionOf(kind dorisv1.ComponentType, recorded accepted) *encryption {
	files := recorded.Backend.TLS
	if kind == dorisv1.ComponentFE {
		files = recorded.Frontend.TLS
	}
	if files == nil {
		return nil
	}
	e := &encryption{kind: kind, names: p.certifiedNames(kind, recorded)}
	var versions []string
	for _, f := range []struct {
		path string
		into *pemFile
	}{{files.CA, &e.ca}, {files.Cert, &e.cert}, {files.Key, &e.key}} {
		if f.path == "" {
			continue
		}
		found := p.pemFile(kind, f.path)
		if found.secret == "" {
			_, conf := fileFor(kind)
			e.problem = fmt.Sprintf("%s names %s, and no Secret of %s.secrets is mounted at %s: put the file into one, so that the operator can read it", conf, f.path, fieldOf(kind), path.Dir(f.path))
			return e
		}
		*f.into = found
		versions = append(versions, found.secret+" "+p.world.Versions[found.secret])
		if p.world.Versions[found.secret] == "" {
			return e // read anew each time
		}
	}
	e.versions = strings.Join(versions, " ")
	return e
}

// pemFile finds the Secret that a file of a component comes from.
func (p planner) pemFile(kind dorisv1.ComponentType, file string) pemFile {
	spec := specOf(p.dc, kind)
	if spec == nil {
		return pemFile{}
	}
	for _, m := range secretsOf(spec, fieldOf(kind)) {
		if path.Clean(m.path) == path.Dir(path.Clean(file)) {
			return pemFile{secret: m.name, key: path.Base(file)}
		}
	}
	return pemFile{}
}

// certifiedNames are what the certificate of each Pod may be for: the Pod's name, the
// Services of its component, its address; and, where members go by addresses,
// localhost, which is what their probes ask then.
func (p planner) certifiedNames(kind dorisv1.ComponentType, recorded accepted) map[string][]string {
	out := map[string][]string{}
	internal, access := InternalServiceName(p.dc.Name, kind), AccessServiceName(p.dc.Name, kind)
	in := "." + p.dc.Namespace + ".svc"
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		address := pods[i].Status.PodIP
		if address == "" {
			continue
		}
		pod := pods[i].Name + "." + internal + in
		names := []string{pod + ".", pod, access + in + ".", access + in, address}
		if !recorded.Frontend.FQDN {
			names = append(names, "localhost")
		}
		out[address] = names
	}
	return out
}

// keptTLS are the settings of encrypted connections, as long as the Secrets that they
// come from are the same.
type keptTLS struct {
	versions string
	config   *tls.Config
}

// tlsKey names the component that settings are for.
type tlsKey struct {
	cluster types.UID
	kind    dorisv1.ComponentType
}

// encrypted adds to the options of a client that it encrypts. Nothing is added where
// the nodes speak no TLS.
func (r reached) encrypted(ctx context.Context, dc *dorisv1.DorisCluster, e *encryption, opt client.Options) (client.Options, error) {
	if e == nil {
		return opt, nil
	}
	if e.problem != "" {
		return opt, fmt.Errorf("%s: %w", e.problem, client.ErrUntrusted)
	}
	key := tlsKey{cluster: dc.UID, kind: e.kind}
	r.accounts.mu.Lock()
	kept, known := r.accounts.encrypted[key]
	r.accounts.mu.Unlock()
	if !known || e.versions == "" || kept.versions != e.versions {
		config, err := r.tlsConfig(ctx, dc, e)
		if err != nil {
			return opt, err
		}
		kept = keptTLS{versions: e.versions, config: config}
		r.accounts.mu.Lock()
		r.accounts.encrypted[key] = kept
		r.accounts.mu.Unlock()
	}
	opt.TLS, opt.HTTPS = kept.config, true
	opt.ServerNames = func(at client.Node) []string { return e.names[at.Host] }
	return opt, nil
}

// tlsConfig reads the Secrets. An error names them, and nothing that is in them.
func (r reached) tlsConfig(ctx context.Context, dc *dorisv1.DorisCluster, e *encryption) (*tls.Config, error) {
	read := map[string]map[string][]byte{}
	var texts [][]byte
	var names []string
	for _, f := range []pemFile{e.ca, e.cert, e.key} {
		if f.secret == "" {
			texts = append(texts, nil)
			continue
		}
		if _, has := read[f.secret]; !has {
			data, err := r.secret(ctx, dc.Namespace, f.secret)
			if err != nil {
				return nil, err
			}
			read[f.secret] = data
		}
		text, has := read[f.secret][f.key]
		if !has {
			return nil, fmt.Errorf("Secret %q has no key %s, which the %s need: %w", f.secret, f.key, pluralOf(e.kind), client.ErrUntrusted)
		}
		if texts = append(texts, text); !slices.Contains(names, f.secret) {
			names = append(names, f.secret)
		}
	}
	config, err := client.TLSConfig(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, fmt.Errorf("Secret %s: %w: %w", strings.Join(names, ", "), err, client.ErrUntrusted)
	}
	return config, nil
}
