package client

import (
	"context"
	"errors"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// FrontendConfig lists the settings of the frontend that is asked.
func (d *Doris) FrontendConfig(ctx context.Context, at Node) ([]setting.Item, error) {
	return d.frontendConfig(ctx, at, statement{op: "show configuration", sql: "ADMIN SHOW FRONTEND CONFIG"})
}

func (d *Doris) frontendConfig(ctx context.Context, at Node, st statement) ([]setting.Item, error) {
	t, err := d.query(ctx, at, st)
	if err != nil {
		return nil, err
	}
	items, err := configItems(t)
	if err != nil {
		return nil, &Error{Op: st.op, Node: at, Kind: ErrAnswer, Text: err.Error()}
	}
	return items, nil
}

func configItems(t table) ([]setting.Item, error) {
	if !t.columns["key"] || !t.columns["value"] {
		return nil, errors.New("the answer has no columns Key and Value")
	}
	items := make([]setting.Item, 0, len(t.rows))
	for _, r := range t.rows {
		key := strings.TrimSpace(r["key"])
		if key == "" {
			return nil, errors.New("a setting has no name")
		}
		items = append(items, setting.Item{
			Key: key, Value: r["value"], Type: r.text("type"), Mutable: r.yes("ismutable") || r.yes("mutable"),
			MasterOnly: r.yes("masteronly"), Comment: r.text("comment"),
		})
	}
	return items, nil
}

// SetFrontendConfig sets one setting in the memory of the frontend that is
// asked. A setting that only the master acts on is passed on by Doris and set on
// the master, not here: see SetFrontendConfigLocal.
func (d *Doris) SetFrontendConfig(ctx context.Context, at Node, key, value string) error {
	op := "set " + key
	if err := checkKey(at, key); err != nil {
		return err
	}
	_, err := d.query(ctx, at, statement{
		op: op, sql: `ADMIN SET FRONTEND CONFIG ("` + sqlText(key) + `" = "` + sqlText(value) + `")`, secrets: []string{value},
	})
	return err
}

// checkKey refuses names that no setting has. They could be read as something
// else: a persisting call, another statement.
func checkKey(at Node, key string) error {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("_.-", r)
	}) < 0
	if plain && key != persistParameter && key != resetParameter {
		return nil
	}
	return &Error{Op: "set a setting", Node: at, Kind: ErrInput, Text: "the name is not one of a setting"}
}
