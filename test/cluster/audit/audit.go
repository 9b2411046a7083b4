// Package audit reads the API server's audit log: which client made which
// requests. A test marks a position, lets something happen, and counts the
// entries since.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Policy is the audit policy that the log's reader expects: one entry for each
// answered request, two for each watch, none for the API server's own requests
// and for health checks.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*", "/version"]
- level: Metadata
`

// Entry is one request.
type Entry struct {
	Time                  time.Time
	UserAgent, User       string
	Verb                  string // get, list, watch, create, update, patch, delete, deletecollection
	Group                 string // API group; empty for the core group
	Resource, Subresource string // empty for a request that is not about a resource
	Namespace, Name       string
	URI                   string
	Code                  int
	Message               string // of a refusal; empty otherwise
}

// Mark is a position in the log.
type Mark int64

// Log is the audit log of one cluster.
type Log struct {
	path string
}

// Open returns the log in the given file, which need not exist yet.
func Open(path string) *Log { return &Log{path: path} }

// Mark returns the present end of the log. The API server writes an entry
// before it finishes the answer, so every request answered so far is before it.
func (l *Log) Mark() (Mark, error) {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	defer file.Close()
	end, err := lastLineEnd(file)
	if err != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	return Mark(end), nil
}

// lastLineEnd is the offset after the last whole line. The API server may be in
// the middle of a line; the request of that one is not answered yet.
func lastLineEnd(file *os.File) (int64, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block := make([]byte, 1<<16)
	for end > 0 {
		from := max(0, end-int64(len(block)))
		n, err := file.ReadAt(block[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Since returns the requests answered (and the watches begun) after the mark.
func (l *Log) Since(mark Mark) ([]Entry, error) {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	entries, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("read the audit log after byte %d: %w", mark, err)
	}
	return entries, nil
}

// parse reads one event per line. A last line without its end is still being
// written and left for the next reading.
func parse(r io.Reader) ([]Entry, error) {
	var entries []Entry
	for lines := bufio.NewReaderSize(r, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("event %q: %w", line, err)
		}
		if e.counts() {
			entries = append(entries, e.entry())
		}
	}
}

// event is the part of an audit.k8s.io/v1 Event that is read here.
type event struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// counts tells whether the event stands for a request. A request that streams
// (a watch above all) always has an event when it starts and one when it ends:
// it counts when it starts, so that one that ends after the mark but began
// before it is no new request.
func (e event) counts() bool {
	if e.streams() {
		return e.Stage == "ResponseStarted"
	}
	return e.Stage == "ResponseComplete" || e.Stage == "Panic"
}

func (e event) streams() bool {
	switch e.ObjectRef.Subresource {
	case "exec", "attach", "portforward", "proxy", "log":
		return true
	}
	return e.Verb == "watch"
}

func (e event) entry() Entry {
	return Entry{
		Time:        e.RequestReceivedTimestamp,
		UserAgent:   e.UserAgent,
		User:        e.User.Username,
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		URI:         e.RequestURI,
		Code:        e.ResponseStatus.Code,
		Message:     e.ResponseStatus.Message,
	}
}
