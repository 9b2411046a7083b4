package client

import (
	"context"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// Outcome tells what a node says after a setting was set.
type Outcome string

// The outcomes. Only the first means that the setting is in force.
const (
	// Applied: the node reports the value.
	Applied Outcome = "Applied"
	// Different: the node accepted the change and reports another value.
	Different Outcome = "Different"
	// Unshown: the node accepted the change and does not show the value.
	Unshown Outcome = "Unshown"
)

// ChangeBackend sets a setting of a backend and reads it back.
func (d *Doris) ChangeBackend(ctx context.Context, at Node, key, value string) (Outcome, error) {
	if err := d.SetBackendConfig(ctx, at, key, value); err != nil {
		return "", err
	}
	items, err := d.backendConfig(ctx, at, key)
	return outcome(items, err, key, value)
}

// ChangeFrontend sets a setting on the frontend that is asked and reads it back
// there. A setting that only the master acts on ends on the master: ask it, or
// the outcome is Different.
func (d *Doris) ChangeFrontend(ctx context.Context, at Node, key, value string) (Outcome, error) {
	if err := d.SetFrontendConfig(ctx, at, key, value); err != nil {
		return "", err
	}
	return d.readBack(ctx, at, key, value)
}

// ChangeFrontendLocal is ChangeFrontend for settings that only the master acts
// on, on a frontend that is not master: set over its HTTP port, read back over
// its query port.
func (d *Doris) ChangeFrontendLocal(ctx context.Context, web, query Node, key, value string) (Outcome, error) {
	if err := d.SetFrontendConfigLocal(ctx, web, key, value); err != nil {
		return "", err
	}
	return d.readBack(ctx, query, key, value)
}

func (d *Doris) readBack(ctx context.Context, at Node, key, value string) (Outcome, error) {
	items, err := d.frontendConfig(ctx, at, statement{
		op: "read back " + key, sql: `ADMIN SHOW FRONTEND CONFIG LIKE "%` + sqlText(key) + `"`,
	})
	return outcome(items, err, key, value)
}

func outcome(items []setting.Item, err error, key, value string) (Outcome, error) {
	if err != nil {
		return "", err
	}
	item, found := setting.Find(items, key)
	switch {
	case found && item.Hidden():
		return Unshown, nil
	case found && setting.Same(item.Type, item.Value, value):
		return Applied, nil
	}
	return Different, nil
}
