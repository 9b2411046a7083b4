package image

import (
	"fmt"
	"os"
)

// DefaultOperatorTag is the name that the install manifest carries.
const DefaultOperatorTag = "docker.io/fairlead-dev/fairlead:dev"

// Operator describes the operator's own image: one static program on an otherwise empty root.
type Operator struct {
	Tag, Binary, OutDir string
	// CACerts is a file of certificates to trust, or empty.
	CACerts string
}

// Build writes the archive and returns its file.
func (o Operator) Build() (string, error) {
	program, err := os.ReadFile(o.Binary)
	if err != nil {
		return "", fmt.Errorf("read the operator's program: %w", err)
	}
	t := NewTree()
	t.File("fairlead", 0o755, program)
	t.File("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nfairlead:x:65532:65532:fairlead:/:/sbin/nologin\n"))
	t.File("etc/group", 0o644, []byte("root:x:0:\nfairlead:x:65532:\n"))
	t.entries["tmp"] = entry{kind: '5', mode: 0o1777}
	if o.CACerts != "" {
		certs, err := os.ReadFile(o.CACerts)
		if err != nil {
			return "", fmt.Errorf("read certificates: %w", err)
		}
		t.File("etc/ssl/certs/ca-certificates.crt", 0o644, certs)
	}
	if err := os.MkdirAll(o.OutDir, 0o755); err != nil {
		return "", fmt.Errorf("make output directory: %w", err)
	}
	return WriteArchive(o.OutDir, Image{
		Tag: o.Tag, Top: t, Entrypoint: []string{"/fairlead"}, Env: []string{"PATH=/"}, User: "65532:65532", WorkingDir: "/",
	})
}
