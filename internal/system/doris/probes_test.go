package doris

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// TestReadinessScript runs the script of the probe against a health answer.
func TestReadinessScript(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	const fe, be = dorisv1.ComponentFE, dorisv1.ComponentBE
	tests := map[string]struct {
		kind   dorisv1.ComponentType
		status int
		body   string
		ready  bool
	}{
		"frontend that serves":                       {fe, 200, `{"msg":"success","code":0,"data":{"online_backend_num":0},"count":0}`, true},
		"frontend that serves, with blanks":          {fe, 200, `{ "code" : 0 , "msg" : "" }`, true},
		"frontend that does not":                     {fe, 200, `{"msg":"not ready","code":1,"data":null}`, false},
		"frontend with a code that begins with zero": {fe, 200, `{"code":01}`, false},
		"frontend with an HTTP error":                {fe, 503, `{"code":0,"msg":""}`, false},
		"backend that serves":                        {be, 200, `{"status": "OK","msg": "To Be Added"}`, true},
		"new backend that starts or stops":           {be, 200, `{"status": "Server is not available","msg":"OK"}`, false},
		"old backend that is unhealthy":              {be, 500, `{"status": "OK"}`, false},
		"backend with an empty answer":               {be, 200, ``, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/health" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			_, text, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
			number, _ := strconv.Atoi(text)
			cmd := exec.Command("bash", "-c", readinessScript(test.kind, int32(number), false, nil))
			cmd.Env = append(cmd.Environ(), "POD_IP=127.0.0.1", "no_proxy=*")
			out, err := cmd.CombinedOutput()
			if (err == nil) != test.ready {
				t.Errorf("exit: %v, want ready %v\n%s", err, test.ready, out)
			}
			if err != nil && len(out) == 0 {
				t.Error("the probe does not say why")
			}
		})
	}
}

func TestQuoteSurvivesBash(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
	const text = `it's "$HOME" and \ more`
	out, err := exec.Command("bash", "-c", "printf %s "+quote(text)).Output()
	if err != nil || string(out) != text {
		t.Errorf("bash read %q, %v; want %q", out, err, text)
	}
}
