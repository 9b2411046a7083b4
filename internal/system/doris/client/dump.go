package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// dumpTimeout bounds the writing of all metadata: some gigabytes where there are many
// tablets.
const dumpTimeout = 10 * time.Minute

// DumpMetadata has a frontend write all metadata into a file in its metadata directory,
// and returns the path of it, as the frontend sees it. Until it is written the frontend
// takes no change of metadata. Two calls with no change between them write one file.
// It is GET /dump of the HTTP API, for which a password is asked where the setting
// enable_all_http_auth is true. A frontend that cannot do it is an ErrRefused.
func (d *Doris) DumpMetadata(ctx context.Context, at Node) (file string, err error) {
	r := request{op: "write the metadata into a file", method: http.MethodGet, path: "/dump", timeout: dumpTimeout}
	v, err := d.frontendCall(ctx, at, r)
	if err != nil {
		return "", err
	}
	if *v.Code != 0 {
		text, _ := scalar(v.Data)
		return "", &Error{Op: r.op, Node: at, Kind: ErrRefused, Text: d.say(v.Msg+": "+text, nil)}
	}
	var data struct {
		File string `json:"dumpFilePath"`
	}
	if json.Unmarshal(v.Data, &data) != nil || data.File == "" {
		return "", &Error{Op: r.op, Node: at, Kind: ErrAnswer, Text: "the answer names no file"}
	}
	return d.say(data.File, nil), nil
}
