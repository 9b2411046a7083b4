package client

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// TestMembers takes backends of the stand-in, which is a test double, out and back.
func TestMembers(t *testing.T) {
	c := startSim(t, "4.1.3", 1, 2)
	doris, ctx := New(root()), t.Context()
	at := sqlNode(c.FEs[0])
	member := func(b *local.BE) Node { return Node{Host: "127.0.0.1", Port: int32(b.HeartbeatPort)} }
	row := func(b *local.BE) *Backend {
		list, err := doris.Backends(ctx, at)
		must(t, err)
		for i := range list {
			if list[i].HeartbeatPort == int32(b.HeartbeatPort) {
				return &list[i]
			}
		}
		return nil
	}
	eventually(t, "both are alive", func() bool { return row(c.BEs[0]).Alive && row(c.BEs[1]).Alive })
	must(t, run(ctx, doris, at, "CREATE DATABASE shop"))
	must(t, run(ctx, doris, at, `CREATE TABLE shop.orders (id INT) DISTRIBUTED BY HASH(id) BUCKETS 4 PROPERTIES ("replication_num" = "2")`))

	t.Run("two copies need two backends, which is said before and refused", func(t *testing.T) {
		err := doris.MayDecommission(ctx, webNode(c.FEs[0]), []Node{member(c.BEs[0])})
		if e := wantKind(t, err, ErrRefused); !strings.Contains(e.Text, "table shop.orders needs 2, 1 are left") {
			t.Errorf("it says %q", e.Text)
		}
		wantKind(t, doris.ChangeMember(ctx, at, Decommission, member(c.BEs[0])), ErrRefused)
	})
	must(t, run(ctx, doris, at, "DROP TABLE shop.orders"))
	must(t, run(ctx, doris, at, `CREATE TABLE shop.orders (id INT) DISTRIBUTED BY HASH(id) BUCKETS 4 PROPERTIES ("replication_num" = "1")`))
	t.Run("one copy needs one", func(t *testing.T) {
		must(t, doris.MayDecommission(ctx, webNode(c.FEs[0]), []Node{member(c.BEs[0])}))
		must(t, run(ctx, doris, at, `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "true")`))
		must(t, doris.ChangeMember(ctx, at, Decommission, member(c.BEs[0])))
		if b := row(c.BEs[0]); !b.Decommissioned || b.TabletNum == nil || *b.TabletNum == 0 {
			t.Errorf("the row is %+v", b)
		}
		h, err := doris.TabletHealth(ctx, at)
		must(t, err)
		if *h.Tablets != 4 || *h.ReplicaMissing != 0 || *h.VersionMissing != 0 || *h.Unrecoverable != 0 || *h.ReplicaRelocates == 0 {
			t.Errorf("4 tablets of which some move, and the health is %d %d %d %d %d", *h.Tablets, *h.ReplicaMissing, *h.VersionMissing, *h.Unrecoverable, *h.ReplicaRelocates)
		}
		must(t, doris.ChangeMember(ctx, at, CancelDecommission, member(c.BEs[0])))
		if row(c.BEs[0]).Decommissioned {
			t.Error("it was cancelled")
		}
	})
	t.Run("queries and loads go elsewhere, each by itself, and one property at a time is left as it is", func(t *testing.T) {
		for _, step := range []struct {
			what        Routing
			query, load bool
		}{
			{Routing{DisableQuery: new(true), DisableLoad: new(true)}, true, true},
			{Routing{DisableLoad: new(false)}, true, false},
			{Routing{}, true, false},
			{Routing{DisableQuery: new(false)}, false, false},
		} {
			must(t, doris.Route(ctx, at, member(c.BEs[1]), step.what))
			if got := row(c.BEs[1]).State; got.QueryDisabled != step.query || got.LoadDisabled != step.load {
				t.Errorf("after %+v the state is %+v", step, got)
			}
		}
		wantKind(t, doris.Route(ctx, at, Node{Host: "nobody", Port: 9050}, Routing{DisableQuery: new(true)}), ErrRefused)
		wantKind(t, doris.Route(ctx, at, Node{Host: `a" SET`, Port: 9050}, Routing{DisableQuery: new(true)}), ErrInput)
	})
	t.Run("tags take the place of those that were there", func(t *testing.T) {
		tags := map[string]string{"location": "default", TagPublicEndpoint: "lb.example.org:8040", TagPrivateEndpoint: "10.0.0.1:8040"}
		must(t, doris.SetTags(ctx, at, member(c.BEs[1]), tags))
		if got := row(c.BEs[1]).Tag; !maps.Equal(got.All, tags) || got.Location != "default" {
			t.Errorf("the tags are %+v", got)
		}
		delete(tags, TagPublicEndpoint)
		must(t, doris.SetTags(ctx, at, member(c.BEs[1]), tags))
		if got := row(c.BEs[1]).Tag; !maps.Equal(got.All, tags) {
			t.Errorf("the tags are %+v", got)
		}
		tags["shelf"] = `a" , "disable_query" = "true`
		wantKind(t, doris.SetTags(ctx, at, member(c.BEs[1]), tags), ErrRefused)
		if row(c.BEs[1]).State.QueryDisabled {
			t.Error("a value became a property")
		}
		wantKind(t, doris.SetTags(ctx, at, member(c.BEs[1]), map[string]string{TagPublicEndpoint: "a:1"}), ErrInput)
		wantKind(t, doris.SetTags(ctx, at, Node{Host: `a" SET`, Port: 9050}, tags), ErrInput)
	})
	t.Run("the answer gets lost and it is done all the same", func(t *testing.T) {
		must(t, c.FEs[0].Faults.Parse("lose-answer"))
		wantKind(t, doris.ChangeMember(ctx, at, ForceDropBackend, member(c.BEs[0])), ErrUnreachable)
		if row(c.BEs[0]) != nil {
			t.Error("it is still a member")
		}
		must(t, doris.ChangeMember(ctx, at, AddBackend, member(c.BEs[0])))
		if row(c.BEs[0]) == nil {
			t.Error("it is no member")
		}
	})
	t.Run("what is no address is not sent", func(t *testing.T) {
		wantKind(t, doris.ChangeMember(ctx, at, ForceDropBackend, Node{Host: `x" OR "`, Port: 1}), ErrInput)
	})
	t.Run("metadata is written into a file of the frontend, one for each state of it", func(t *testing.T) {
		file, err := doris.DumpMetadata(ctx, webNode(c.FEs[0]))
		must(t, err)
		text, err := os.ReadFile(file)
		must(t, err)
		if !strings.HasPrefix(file, c.FEs[0].Home) || !strings.Contains(string(text), "orders") {
			t.Errorf("%s holds %s", file, text)
		}
		must(t, run(ctx, doris, at, "CREATE DATABASE later"))
		if other, err := doris.DumpMetadata(ctx, webNode(c.FEs[0])); err != nil || other == file {
			t.Errorf("after a change: %s, %v", other, err)
		}
		eventually(t, "one that cannot be written is refused", func() bool {
			file, err := doris.DumpMetadata(ctx, webNode(c.FEs[0]))
			if err == nil { // a directory has its name, unless the metadata changed meanwhile
				must(t, errors.Join(os.Remove(file), os.Mkdir(file, 0o755)))
			}
			return errors.Is(err, ErrRefused)
		})
		_, err = doris.DumpMetadata(ctx, backNode(c.BEs[1])) // it answers 404
		wantKind(t, err, ErrRefused)
	})
	t.Run("another version has no such check", func(t *testing.T) {
		err := doris.MayDecommission(ctx, backNode(c.BEs[1]), []Node{member(c.BEs[0])}) // it answers 404
		wantKind(t, err, ErrAnswer)
	})
}

// TestNoMasterInOneLine asks several frontends none of which answers.
func TestNoMasterInOneLine(t *testing.T) {
	t.Parallel()
	_, _, err := New(root()).Master(t.Context(), []Node{serveAndClose(t), serveAndClose(t)})
	if !errors.Is(err, ErrUnreachable) || strings.ContainsAny(err.Error(), "\n\r") || strings.Count(err.Error(), "; ") != 1 {
		t.Errorf("the error is %q", err)
	}
}
