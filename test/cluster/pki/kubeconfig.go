package pki

import (
	"encoding/base64"
	"fmt"
	"os"
)

// kubeconfigFormat carries the credentials inline, so that the file alone can
// be copied or shown to another process.
const kubeconfigFormat = `apiVersion: v1
kind: Config
clusters:
- name: fairlead
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: fairlead
  context:
    cluster: fairlead
    user: %s
current-context: fairlead
`

// Kubeconfig issues a client certificate under the file name and writes a
// kubeconfig for it to path.
func (a *Authority) Kubeconfig(path, server, file string, id Identity) error {
	if err := a.Issue(file, id); err != nil {
		return err
	}
	var encoded [3]string
	for i, source := range []string{a.Cert("ca"), a.Cert(file), a.Key(file)} {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	text := fmt.Sprintf(kubeconfigFormat, server, encoded[0], file, encoded[1], encoded[2], file)
	return os.WriteFile(path, []byte(text), 0o600)
}
