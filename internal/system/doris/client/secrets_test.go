package client

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"
)

// passwords hold what breaks connection strings, statements and URLs.
var passwords = []string{
	"", "a", "12345", "p@ss:w/rd?x=1&y=2#z", `quo"te'back\slash` + "`tick", "100%25 %s%d%!v(MISSING)", "tab\tnew\nline\r", "naïve-пароль-\u5bc6\u7801-🔑",
	" blanks around ", "tcp(evil:3306)/db?allowAllFiles=true", "nul\x00byte", "${HOME} $(id) ;--", strings.Repeat("long", 100), "\xff\xfe broken",
}

func TestAnyPasswordLogsIn(t *testing.T) {
	for i, password := range passwords {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			sql := &sqlDouble{user: "us:er@%/'\"", password: password, answer: func(string) (*mysql.Result, error) {
				return texts(t, []string{"Host", "EditLogPort"}, []string{"h", "9010"}), nil
			}}
			doris := New(Options{Credentials: Credentials{User: sql.user, Password: password}})
			list, err := doris.Frontends(t.Context(), sql.start(t))
			must(t, err)
			if len(list) != 1 {
				t.Errorf("frontends are %v", list)
			}
			web := httpDouble(t, func(w http.ResponseWriter, r *http.Request) {
				user, pw, ok := r.BasicAuth()
				fmt.Fprintf(w, `{"status":"OK"}`)
				if !ok || pw != password || user != "root" {
					t.Errorf("the request has another password: %t", ok)
				}
			})
			_, err = New(Options{Credentials: Credentials{User: "root", Password: password}}).BackendHealth(t.Context(), web)
			must(t, err)
		})
	}
}

func TestAUserThatCannotBeSentIsRefused(t *testing.T) {
	_, err := New(Options{Credentials: Credentials{User: "a\x00b"}}).Frontends(t.Context(), Node{Host: "127.0.0.1", Port: 1})
	wantKind(t, err, ErrInput)
}

// spellings are ways in which a server may say a password back.
func spellings(s string) []string {
	asJSON, _ := json.Marshal(s)
	return []string{
		s, strconv.Quote(s), fmt.Sprintf("%q", s), string(asJSON), url.QueryEscape(s), url.PathEscape(s), "root:" + s + "@tcp(h:9030)/",
		base64.StdEncoding.EncodeToString([]byte("root:" + s)), strings.ReplaceAll(s, "'", "''"), "<" + s + ">",
	}
}

func TestNoErrorHoldsThePasswordThatAServerSaysBack(t *testing.T) {
	for i, password := range passwords {
		if len(password) < longEnough {
			continue // see TestAShortSecretIsHiddenWhereItStandsAlone
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			said := "Unknown thing " + strings.Join(spellings(password), " ")
			if !utf8.ValidString(said) {
				said = "Unknown thing " + password
			}
			sql := &sqlDouble{user: "root", password: password, answer: func(string) (*mysql.Result, error) {
				return nil, mysql.NewError(1105, said)
			}}
			doris := New(Options{Credentials: Credentials{User: "root", Password: password}})
			at := sql.start(t)
			_, err := doris.Backends(t.Context(), at)
			checkSpellings(t, wantKind(t, err, ErrRefused), password)
			wrong := New(Options{Credentials: Credentials{User: "root", Password: "not " + password}})
			_, err = wrong.Backends(t.Context(), at)
			checkSpellings(t, wantKind(t, err, ErrDenied), password)
			web := httpDouble(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, said, http.StatusInternalServerError) })
			_, err = doris.BackendConfig(t.Context(), web)
			checkSpellings(t, wantKind(t, err, ErrRefused), password)
			web = httpDouble(t, body(fmt.Sprintf(`[{"config_name":"k","status":"BAD","msg":%q}]`, said)))
			err = doris.SetBackendConfig(t.Context(), web, "k", password)
			checkSpellings(t, err, password)
		})
	}
}

func checkSpellings(t *testing.T, err error, password string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, s := range append(spellings(password), strings.TrimSpace(password)) {
		wantNoSecret(t, err, s)
	}
}

func TestAShortSecretIsHiddenWhereItStandsAlone(t *testing.T) {
	for _, tc := range []struct{ name, text, secret, want string }{
		{"part of words", "abandon all hope", "a", "abandon all hope"},
		{"a word", "password a is wrong", "a", "password *** is wrong"},
		{"between quotes", `set k="7" failed, errCode = 27`, "7", `set k="***" failed, errCode = 27`},
		{"at both ends", "7 and 7", "7", "*** and ***"},
		{"twice in a row", "=7=7=", "7", "=***=***="},
		{"nothing to hide", "text", "", "text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := scrub(tc.text, tc.secret); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnErrorIsOneShortLine(t *testing.T) {
	sql := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
		return nil, mysql.NewError(1105, "first\nsecond\x1b[31m "+strings.Repeat("ü", 2000))
	}}
	_, err := New(root()).Frontends(t.Context(), sql.start(t))
	text := err.Error()
	if strings.ContainsAny(text, "\n\x1b") || len(text) > textLimit+200 || !strings.Contains(text, "first second") || !utf8.ValidString(text) {
		t.Errorf("error is %q", text)
	}
}

func TestPropertyScrubbedTextsHoldNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(longEnough, 20, -1).Draw(t, "secret")
		text := rapid.String().Draw(t, "before") + secret + rapid.String().Draw(t, "after")
		if got := scrub(text, secret); strings.Contains(got, secret) {
			t.Fatalf("scrub(%q, %q) = %q", text, secret, got)
		}
	})
}

func FuzzScrub(f *testing.F) {
	f.Add("pass****word", "****")
	f.Add("a b\nc", "b c")
	f.Add("**\x00**", "****")
	f.Add("hunter2,hunter2", "hunter2")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := scrub(text+secret+text, secret)
		if len(secret) >= longEnough && strings.Contains(got, secret) {
			t.Errorf("scrub leaves %q in %q", secret, got)
		}
		if strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("scrub leaves lines in %q", got)
		}
		scrub(text, secret, text)
	})
}

func TestCredentialsPrintNoPassword(t *testing.T) {
	c := Credentials{User: "root", Password: "Zq7SeCrEt9"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "account", c)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), fmt.Sprintf("%v %+v %#v", Options{Credentials: c}, Options{Credentials: c}, Options{Credentials: c}), log.String()} {
		if strings.Contains(text, c.Password) {
			t.Errorf("the password is printed: %s", text)
		}
	}
	type holder struct{ doris *Doris }
	h := holder{New(Options{Credentials: c})}
	if got := fmt.Sprintf("%v %+v %#v", h, &h, []holder{h}); strings.Contains(got, c.Password) {
		t.Errorf("the password is printed: %s", got)
	}
	if got := fmt.Sprintf("%v %+v %#v", New(Options{Credentials: c}), *New(Options{Credentials: c}), New(Options{Credentials: c})); strings.Contains(got, c.Password) {
		t.Errorf("the password is printed: %s", got)
	}
}

// What is set arrives as it was meant, in a statement that is one statement.
func TestPropertyValuesArriveInStatements(t *testing.T) {
	var got string
	sql := &sqlDouble{user: "root", answer: func(s string) (*mysql.Result, error) {
		got = s
		return nil, nil
	}}
	at := sql.start(t)
	doris := New(root())
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.StringOf(rapid.SampledFrom([]rune("ab\"'\\`;\n\r\t%&=+ é🔑)("))).Draw(rt, "value")
		if err := doris.SetFrontendConfig(t.Context(), at, "some_key", value); err != nil {
			rt.Fatal(err)
		}
		if read, ok := readSet(got, "some_key"); !ok || read != value {
			rt.Fatalf("%q is sent as %s and read as %q", value, got, read)
		}
	})
}

// readSet reads a statement as Doris does: between double quotes, first doubled
// ones are one, then backslashes are resolved.
func readSet(sql, key string) (string, bool) {
	rest, ok := strings.CutPrefix(sql, `ADMIN SET FRONTEND CONFIG ("`+key+`" = "`)
	rest, ok2 := strings.CutSuffix(rest, `")`)
	if !ok || !ok2 || strings.Contains(strings.ReplaceAll(strings.ReplaceAll(rest, `\\`, ""), `""`, ""), `"`) {
		return "", false
	}
	rest = strings.ReplaceAll(rest, `""`, `"`)
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		if rest[i] != '\\' {
			b.WriteByte(rest[i])
			continue
		}
		if i++; i == len(rest) {
			return "", false
		}
		b.WriteString(map[byte]string{'n': "\n", 'r': "\r", '0': "\x00", '\\': `\`}[rest[i]])
	}
	return b.String(), true
}
