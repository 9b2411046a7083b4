package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// inputDigests say what a Service was rendered from, in the annotation
// AnnotationInputs beside it: one digest of the spec and one of the settings that
// were read from ConfigMaps. An object that differs although both are as they
// were was edited by somebody else. The annotation is on the object and not in
// its Pod template, so that it restarts nothing.
//
// The digests are of inputs and not of what is rendered, so that a newer version
// of the operator does not look like an edit. No secret goes into them: short
// passwords could be guessed from a digest.
type inputDigests struct {
	spec, config string
}

// digestScheme is the version of what goes into the digests. Digests of another
// version cannot be compared.
const digestScheme = "1"

func (d inputDigests) String() string {
	return digestScheme + ":" + d.spec + ":" + d.config
}

// readDigests reads the annotation; ok is false when it is not there or of
// another version.
func readDigests(annotation string) (d inputDigests, ok bool) {
	parts := strings.Split(annotation, ":")
	if len(parts) != 3 || parts[0] != digestScheme {
		return inputDigests{}, false
	}
	return inputDigests{spec: parts[1], config: parts[2]}, true
}

// serviceInputs digests what the Service for clients is rendered from.
func (c component) serviceInputs() inputDigests {
	return inputDigests{spec: digest(serviceOf(c.spec)), config: digest(c.ports)}
}

// portInputs digests what the internal Service is rendered from.
func (c component) portInputs() inputDigests {
	return inputDigests{spec: digest(nil), config: digest([]any{c.ports, c.alive})}
}

// digest is short: it tells two versions of one input apart, and guards nothing.
func digest(input any) string {
	text, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("digest of %T: %v", input, err)) // a type of this package cannot be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}
