package doris

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// TestASecretThatIsNoAccount holds what is said of the Secret of an account, which is
// read once for each version.
func TestASecretThatIsNoAccount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		data  map[string]string
		lacks string
	}{
		{"an account", map[string]string{"username": "op", "password": "917331"}, ""},
		{"an account with an empty password", map[string]string{"username": "op", "password": ""}, ""},
		{"root's password alone", map[string]string{"password": "917331"}, ""},
		{"root before it has a password", map[string]string{"username": "root\n"}, ""},
		{"other keys", map[string]string{"user": "op", "pass": "917331"}, `has no key username and no key password: give it the keys`},
		{"no password", map[string]string{"username": "op"}, `has no key password: give it the keys`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			nobody := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
			nodes := NewNodes(nobody, func(context.Context, string, string) (map[string][]byte, error) {
				reads++
				data := map[string][]byte{}
				for key, value := range c.data {
					data[key] = []byte(value)
				}
				return data, nil
			})
			dc := &dorisv1.DorisCluster{Spec: dorisv1.DorisClusterSpec{AuthSecret: "account"}}
			for range 2 {
				says := nodes.(accountReader).AccountFault(t.Context(), dc, "1")
				if (says == "") != (c.lacks == "") || !strings.Contains(says, c.lacks) || says != "" && !strings.HasPrefix(says, `spec.authSecret names Secret "account", which `) {
					t.Errorf("it says %q", says)
				}
			}
			if reads != 1 {
				t.Errorf("it was read %d times", reads)
			}
			_, err := nodes.(Database).Members(t.Context(), databaseAddress{cluster: dc, account: "1", frontends: []client.Node{{Host: "10.0.0.1", Port: 9030}}}, false)
			if errors.Is(err, client.ErrDenied) != (c.lacks != "") || strings.Contains(err.Error(), "917331") {
				t.Errorf("the database is asked with it: %v", err)
			}
		})
	}
}

// TestNoPodIsReplacedForASecretThatIsNoAccount holds that a running cluster stays as it
// is when its account becomes one that nobody can log in with.
func TestNoPodIsReplacedForASecretThatIsNoAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree).withDatabase()
	w.settle()
	_, err := w.store.Create(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "account"},
	}, "somebody")
	w.must(err)
	w.db.noAccount = `spec.authSecret names Secret "account", which has no key password`
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.AuthSecret = "account" })
	w.settle()
	if len(w.evicts) > 0 {
		t.Errorf("%v went", w.evicts)
	}
	if got := condition(w.dc, meta.ConditionStalled); got != "True MissingReference: "+w.db.noAccount {
		t.Errorf("Stalled is %q", got)
	}
	w.db.noAccount = ""
	w.settle()
	if len(w.evicts) != 6 {
		t.Errorf("with an account in it the Pods get it: %v went", w.evicts)
	}
}
