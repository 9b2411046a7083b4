package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// Parameters of the calls that set something. Nothing is ever persisted by a
// call of this package, and that is always said: some versions of the backend
// read the parameter without looking whether it is there.
const (
	persistParameter = "persist"
	resetParameter   = "reset_persist"
)

// BackendConfig lists the settings of a backend.
func (d *Doris) BackendConfig(ctx context.Context, at Node) ([]setting.Item, error) {
	return d.backendConfig(ctx, at, "")
}

// backendConfig asks for one setting, or for all. Older versions answer with all
// in any case.
func (d *Doris) backendConfig(ctx context.Context, at Node, key string) ([]setting.Item, error) {
	r := request{op: "show configuration", method: http.MethodGet, path: "/api/show_config"}
	if key != "" {
		r.query = url.Values{"conf_item": {key}}
	}
	body, err := d.call(ctx, at, r)
	if err != nil {
		return nil, err
	}
	items, err := parseShowConfig(body)
	if err == nil && len(items) == 0 && key == "" {
		err = errors.New("the answer has no settings")
	}
	if err != nil {
		return nil, &Error{Op: r.op, Node: at, Kind: ErrAnswer, Text: err.Error()}
	}
	return items, nil
}

// parseShowConfig reads the body of /api/show_config: rows of key, type, value
// and mutability. Rows that are objects are read by their members' names.
func parseShowConfig(body []byte) ([]setting.Item, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(body, &rows); err != nil {
		var wrapped struct {
			Data []json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(body, &wrapped); err != nil || wrapped.Data == nil {
			return nil, errors.New("the answer is no list of settings")
		}
		rows = wrapped.Data
	}
	items := make([]setting.Item, 0, len(rows))
	for _, raw := range rows {
		item, ok := showConfigRow(raw)
		if !ok || item.Key == "" {
			return nil, errors.New("a row of the answer is no setting")
		}
		items = append(items, item)
	}
	return items, nil
}

func showConfigRow(raw json.RawMessage) (setting.Item, bool) {
	var cells []json.RawMessage
	if json.Unmarshal(raw, &cells) == nil {
		if len(cells) < 4 {
			return setting.Item{}, false
		}
		text := make([]string, 4)
		for i := range text {
			var ok bool
			if text[i], ok = scalar(cells[i]); !ok {
				return setting.Item{}, false
			}
		}
		return setting.Item{
			Key: strings.TrimSpace(text[0]), Type: text[1], Value: text[2], Mutable: row{"m": text[3]}.yes("m"),
		}, true
	}
	r := row{}
	f := object(string(raw))
	for key := range f {
		r[strings.ToLower(key)] = f.text(key)
	}
	_, told := r["value"]
	return setting.Item{
		Key: r.text("key", "name", "config_name"), Type: r.text("type"), Value: r["value"],
		Mutable: r.yes("mutable") || r.yes("ismutable") || r.yes("is_mutable"),
	}, told
}

// SetBackendConfig sets one setting in the memory of a backend.
func (d *Doris) SetBackendConfig(ctx context.Context, at Node, key, value string) error {
	if err := checkKey(at, key); err != nil {
		return err
	}
	r := request{
		op: "set " + key, method: http.MethodPost, path: "/api/update_config",
		query: url.Values{key: {value}, persistParameter: {"false"}}, secrets: []string{value},
	}
	body, err := d.call(ctx, at, r)
	if err != nil {
		return err
	}
	e := &Error{Op: r.op, Node: at, Kind: ErrRefused}
	a, ok := parseUpdateConfig(body, key)
	switch {
	case !ok:
		e.Kind, e.Text = ErrAnswer, "the answer does not say whether it was done"
	case strings.EqualFold(a.Result, "OK"):
		return nil
	default:
		e.Text = d.say(a.Msg, r.secrets)
	}
	return e
}

// updated is the answer to one setting's change.
type updated struct {
	Name   string `json:"config_name"`
	Result string `json:"status"`
	Msg    string `json:"msg"`
}

// parseUpdateConfig finds the answer for a key: newer versions answer with a
// list, older ones with one object that has no name.
func parseUpdateConfig(body []byte, key string) (updated, bool) {
	var list []updated
	if json.Unmarshal(body, &list) == nil {
		for _, a := range list {
			if a.Name == key && a.Result != "" {
				return a, true
			}
		}
		return updated{}, false
	}
	var one updated
	if json.Unmarshal(body, &one) != nil || one.Result == "" || one.Name != "" && one.Name != key {
		return updated{}, false
	}
	return one, true
}

// envelope is what a frontend wraps its answers in, with its own code: the HTTP
// status is 200 for nearly everything.
type envelope struct {
	Msg  string          `json:"msg"`
	Code *int            `json:"code"`
	Data json.RawMessage `json:"data"`
}

// frontendCall makes a request of a frontend and opens the envelope.
func (d *Doris) frontendCall(ctx context.Context, at Node, r request) (envelope, error) {
	body, err := d.call(ctx, at, r)
	if err != nil {
		return envelope{}, err
	}
	var v envelope
	if json.Unmarshal(body, &v) != nil || v.Code == nil {
		return envelope{}, &Error{Op: r.op, Node: at, Kind: ErrAnswer, Text: "the answer has no code"}
	}
	if *v.Code == http.StatusUnauthorized || *v.Code == http.StatusForbidden {
		text, _ := scalar(v.Data)
		return envelope{}, &Error{Op: r.op, Node: at, Kind: ErrDenied, Code: *v.Code, Text: d.say(text, r.secrets)}
	}
	return v, nil
}

// SetFrontendConfigLocal sets one setting in the memory of the frontend that is
// asked, over its HTTP port, and on no other. It is the way to prepare a
// frontend that is not master for the day when it is.
func (d *Doris) SetFrontendConfigLocal(ctx context.Context, at Node, key, value string) error {
	if err := checkKey(at, key); err != nil {
		return err
	}
	r := request{
		op: "set " + key, method: http.MethodGet, path: "/api/_set_config",
		query: url.Values{key: {value}, persistParameter: {"false"}}, secrets: []string{value},
	}
	v, err := d.frontendCall(ctx, at, r)
	if err != nil {
		return err
	}
	var data struct {
		Set map[string]json.RawMessage `json:"set"`
		Err []struct {
			Info string `json:"err_info"`
			Msg  string `json:"err_msg"`
		} `json:"err"`
	}
	e := &Error{Op: r.op, Node: at, Kind: ErrRefused, Code: *v.Code}
	if *v.Code != 0 {
		text, _ := scalar(v.Data)
		e.Text = d.say(v.Msg+": "+text, r.secrets)
		return e
	}
	if json.Unmarshal(v.Data, &data) == nil {
		if _, done := data.Set[key]; done {
			return nil
		}
		if len(data.Err) > 0 {
			e.Text = d.say(data.Err[0].Info+data.Err[0].Msg, r.secrets)
			return e
		}
	}
	e.Kind, e.Text = ErrAnswer, "the answer does not say whether it was done"
	return e
}
