package main

import (
	"strings"
	"testing"
)

const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules:
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: fairlead-system}
spec:
  selector: {}
  template:
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: c
        resources: {requests: {cpu: 1, memory: 1Mi}, limits: {memory: 1Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`

func TestAssemble(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		document string
		refusal  string // empty: it is taken
	}{
		"plain rule, taken": {
			document: role + `- {apiGroups: [""], resources: [pods], verbs: [get]}`,
		},
		"wildcard verb, refused": {
			document: role + `- {apiGroups: [""], resources: [pods], verbs: ["*"]}`,
			refusal:  `rule 0: verb "*"`,
		},
		"wildcard resource, refused": {
			document: role + `- {apiGroups: [""], resources: ["*"], verbs: [get]}`,
			refusal:  `rule 0: resource "*"`,
		},
		"second rule with wildcard group, refused by its number": {
			document: role + `- {apiGroups: [""], resources: [pods], verbs: [get]}` + "\n" + `- {apiGroups: ["*"], resources: [pods], verbs: [get]}`,
			refusal:  `rule 1: API group "*"`,
		},
		"right to grant rights, refused": {
			document: role + `- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}`,
			refusal:  `API group "rbac.authorization.k8s.io"`,
		},
		"right to be somebody else, refused": {
			document: role + `- {apiGroups: [""], resources: [users], verbs: [impersonate]}`,
			refusal:  `verb "impersonate"`,
		},
		"non-resource URL, refused": {
			document: role + `- {nonResourceURLs: ["/metrics"], verbs: [get]}`,
			refusal:  `non-resource URLs ["/metrics"]`,
		},
		"misspelt field, refused": {
			document: role + `- {apiGroups: [""], resource: [pods], verbs: [get]}`,
			refusal:  `unknown field "resource"`,
		},
		"kind that has no place, refused": {
			document: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}",
			refusal:  `kind "Secret" of "v1" has no place`,
		},
		"role in another namespace, refused": {
			document: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: default}",
			refusal:  `namespace is "default"`,
		},
		"binding to a group, refused": {
			document: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\nsubjects: [{kind: Group, name: g}]",
			refusal: "subjects are not the one ServiceAccount",
		},
		"namespace without pod security, refused": {
			document: "apiVersion: v1\nkind: Namespace\nmetadata: {name: fairlead-system}",
			refusal:  "pod-security.kubernetes.io/enforce=restricted",
		},
		"hardened Deployment, taken": {document: deployment},
		"Pod that may run as root, refused": {
			document: strings.Replace(deployment, "runAsNonRoot: true, ", "", 1),
			refusal:  "may run as root",
		},
		"container that keeps capabilities, refused": {
			document: strings.Replace(deployment, "drop: [ALL]", "drop: [ALL], add: [NET_ADMIN]", 1),
			refusal:  `container "c" keeps capabilities`,
		},
		"container that may write its root, refused": {
			document: strings.Replace(deployment, ", readOnlyRootFilesystem: true", "", 1),
			refusal:  "may write its root filesystem",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := assemble([]file{{path: "source.yaml", content: []byte(test.document)}})
			switch {
			case test.refusal == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case test.refusal != "" && err == nil:
				t.Fatalf("taken, want a refusal with %q", test.refusal)
			case test.refusal != "" && !strings.Contains(err.Error(), test.refusal):
				t.Fatalf("refused with %q, want %q", err, test.refusal)
			}
		})
	}
}

func TestAssembleKeepsOrderAndComments(t *testing.T) {
	t.Parallel()
	got, err := assemble([]file{
		{path: "b", content: []byte("# why\n" + role + "\n---\n" + role)},
		{path: "a", content: []byte("---\n" + role)},
	})
	if err != nil {
		t.Fatal(err)
	}
	document := "---\n" + strings.TrimSpace(role) + "\n"
	want := header + "---\n# why\n" + strings.TrimPrefix(document, "---\n") + document + document
	if string(got) != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// The sources of the repository pass their own checks.
func TestSourcesAreAccepted(t *testing.T) {
	t.Parallel()
	var patterns []string
	for _, pattern := range sources {
		patterns = append(patterns, "../../"+pattern)
	}
	files, err := read(patterns)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := assemble(files); err != nil {
		t.Fatal(err)
	}
}
