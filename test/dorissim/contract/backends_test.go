package contract

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// fill makes a table with one row per number and returns the statement that reads it.
func fill(t *testing.T, f *local.FE, copies, n int) string {
	t.Helper()
	exec(t, f, "create database if not exists shop")
	exec(t, f, fmt.Sprintf(`create table shop.orders (id bigint not null, note varchar(32)) duplicate key(id)
		distributed by hash(id) buckets 6 properties ("replication_num" = "%d")`, copies))
	values := make([]string, n)
	for i := range n {
		values[i] = fmt.Sprintf("(%d, 'note %d')", i, i)
	}
	exec(t, f, "insert into shop.orders values "+strings.Join(values, ", "))
	return "select count(*) as n from shop.orders"
}

func backend(t *testing.T, f *local.FE, b *local.BE) row {
	t.Helper()
	for _, r := range rows(t, f, "show backends") {
		if r["HeartbeatPort"] == fmt.Sprint(b.HeartbeatPort) {
			return r
		}
	}
	return nil
}

func TestABackendRegistersAndReportsItself(t *testing.T) {
	c := start(t, 1, 1)
	r := backend(t, c.FEs[0], c.BEs[0])
	want := row{
		"Alive": "true", "SystemDecommissioned": "false", "BePort": fmt.Sprint(c.BEs[0].BePort),
		"HttpPort": fmt.Sprint(c.BEs[0].HTTPPort), "BrpcPort": fmt.Sprint(c.BEs[0].Brpc), "TabletNum": "0",
		"ErrMsg": "", "HeartbeatFailureCounter": "0", "NodeRole": "mix",
	}
	for k, v := range want {
		if r[k] != v {
			t.Errorf("%s is %q, want %q", k, r[k], v)
		}
	}
	if !strings.Contains(r["Tag"], `"location":"default"`) || !strings.Contains(r["Status"], `"isShutdown":false`) {
		t.Errorf("Tag %s, Status %s", r["Tag"], r["Status"])
	}
	var health struct{ Status string }
	must(t, getJSON(c.BEs[0].URL()+"/api/health", &health))
	if health.Status != "OK" {
		t.Errorf("health says %q", health.Status)
	}
}

func TestRowsSurviveTheRestartOfEveryBackend(t *testing.T) {
	c := start(t, 1, 3)
	read := fill(t, c.FEs[0], 3, 50)
	for _, b := range c.BEs {
		must(t, b.Kill())
		if got := rows(t, c.FEs[0], read); got[0]["n"] != "50" {
			t.Errorf("with one backend down %s rows are read", got[0]["n"])
		}
		must(t, b.Start(running(t)))
		eventually(t, "it is alive again", func() bool { return backend(t, c.FEs[0], b)["Alive"] == "true" })
	}
	got := rows(t, c.FEs[0], "select id, note from shop.orders where id >= 48 order by id desc")
	if len(got) != 2 || got[0]["note"] != "note 49" || got[1]["id"] != "48" {
		t.Errorf("got %v", got)
	}
}

func TestAReadFailsOnlyWhenNoReplicaIsLeft(t *testing.T) {
	c := start(t, 1, 2)
	read := fill(t, c.FEs[0], 1, 50)
	must(t, c.BEs[0].Kill())
	if _, err := tryQuery(c.FEs[0], read); err == nil {
		t.Error("rows of a dead backend were read")
	}
	must(t, c.BEs[0].Start(running(t)))
	eventually(t, "the rows are back", func() bool {
		got, err := tryQuery(c.FEs[0], read)
		return err == nil && got[0]["n"] == "50"
	})
}

func TestAReplicaThatMissedAWriteIsMended(t *testing.T) {
	c := start(t, 1, 3)
	read := fill(t, c.FEs[0], 3, 10)
	must(t, c.BEs[0].Kill())
	exec(t, c.FEs[0], "insert into shop.orders (note, id) values ('late', 1000)")
	eventually(t, "it shows as unhealthy", func() bool {
		return value(rows(t, c.FEs[0], "show proc '/cluster_health/tablet_health'"), "DbId", "Total", "HealthyNum") != "6"
	})
	must(t, c.BEs[0].Start(running(t)))
	eventually(t, "all tablets are healthy", func() bool {
		return value(rows(t, c.FEs[0], "show proc '/cluster_health/tablet_health'"), "DbName", "shop", "HealthyNum") == "6"
	})
	must(t, c.BEs[1].Kill())
	must(t, c.BEs[2].Kill())
	if got := rows(t, c.FEs[0], read); got[0]["n"] != "11" {
		t.Errorf("the mended replica has %s rows", got[0]["n"])
	}
}

func TestDecommissioningMovesTheTabletsAndThenDropsTheBackend(t *testing.T) {
	c := start(t, 1, 3)
	exec(t, c.FEs[0], `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "true")`)
	read := fill(t, c.FEs[0], 2, 50)
	leaving := c.BEs[0]
	if got := backend(t, c.FEs[0], leaving)["TabletNum"]; got != "4" {
		t.Fatalf("it has %s of 12 replicas", got)
	}
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM DECOMMISSION BACKEND %q", leaving.Addr()))
	if r := backend(t, c.FEs[0], leaving); r["SystemDecommissioned"] != "true" || r["TabletNum"] != "4" {
		t.Errorf("got %v", r)
	}
	exec(t, c.FEs[0], fmt.Sprintf("CANCEL DECOMMISSION BACKEND %q", leaving.Addr()))
	if r := backend(t, c.FEs[0], leaving); r["SystemDecommissioned"] != "false" {
		t.Errorf("got %v", r)
	}
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM DECOMMISSION BACKEND %q", leaving.Addr()))
	exec(t, c.FEs[0], `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "false")`)
	eventually(t, "it is dropped", func() bool { return backend(t, c.FEs[0], leaving) == nil })
	must(t, leaving.Kill())
	if got := rows(t, c.FEs[0], read); got[0]["n"] != "50" {
		t.Errorf("%s rows are left", got[0]["n"])
	}
}

func TestADrainedBackendStaysIfTheConfigurationSaysSo(t *testing.T) {
	c := start(t, 1, 2)
	exec(t, c.FEs[0], `ADMIN SET FRONTEND CONFIG ("drop_backend_after_decommission" = "false")`)
	fill(t, c.FEs[0], 1, 20)
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM DECOMMISSION BACKEND %q", c.BEs[0].Addr()))
	eventually(t, "it is empty", func() bool { return backend(t, c.FEs[0], c.BEs[0])["TabletNum"] == "0" })
	exec(t, c.FEs[0], `ADMIN SET FRONTEND CONFIG ("drop_backend_after_decommission" = "true")`)
	eventually(t, "it is dropped", func() bool { return backend(t, c.FEs[0], c.BEs[0]) == nil })
}

func TestDecommissioningIsRefusedWhenReplicasWouldHaveNoPlace(t *testing.T) {
	c := start(t, 1, 2)
	fill(t, c.FEs[0], 2, 5)
	if err := tryExec(c.FEs[0], fmt.Sprintf("ALTER SYSTEM DECOMMISSION BACKEND %q", c.BEs[0].Addr())); err == nil {
		t.Error("accepted")
	}
}

func TestDropBackendNeedsTheForcefulSpelling(t *testing.T) {
	c := start(t, 1, 1)
	addr := c.BEs[0].Addr()
	err := tryExec(c.FEs[0], fmt.Sprintf("ALTER SYSTEM DROP BACKEND %q", addr))
	if err == nil || !strings.Contains(err.Error(), "DROPP BACKEND") {
		t.Errorf("DROP answered %v", err)
	}
	if err := tryExec(c.FEs[0], fmt.Sprintf("ALTER SYSTEM ADD BACKEND %q", addr)); err == nil {
		t.Error("the same backend was added twice")
	}
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM DROPP BACKEND %q", addr))
	if got := len(rows(t, c.FEs[0], "show backends")); got != 0 {
		t.Errorf("%d backends are left", got)
	}
}

func TestABackendOfAnotherClusterIsRefused(t *testing.T) {
	one, two := start(t, 1, 1), start(t, 1, 0)
	exec(t, two.FEs[0], fmt.Sprintf("ALTER SYSTEM ADD BACKEND %q", one.BEs[0].Addr()))
	eventually(t, "the refusal is told", func() bool {
		rs := rows(t, two.FEs[0], "show backends")
		return rs[0]["Alive"] == "false" && strings.Contains(rs[0]["ErrMsg"], "invalid cluster id")
	})
	if got := backend(t, one.FEs[0], one.BEs[0])["Alive"]; got != "true" {
		t.Error("its own cluster lost it")
	}
}

func TestDisabledQueriesGoElsewhere(t *testing.T) {
	c := start(t, 1, 2)
	read := fill(t, c.FEs[0], 2, 5)
	for _, b := range c.BEs {
		exec(t, c.FEs[0], fmt.Sprintf(`ALTER SYSTEM MODIFY BACKEND %q SET ("disable_query" = "true")`, b.Addr()))
		if _, err := tryQuery(c.FEs[0], read); (err != nil) != (b == c.BEs[1]) {
			t.Errorf("reading answered %v", err)
		}
	}
	if got := backend(t, c.FEs[0], c.BEs[0])["Status"]; !strings.Contains(got, `"isQueryDisabled":true`) {
		t.Errorf("Status is %s", got)
	}
	exec(t, c.FEs[0], fmt.Sprintf(`ALTER SYSTEM MODIFY BACKEND %q SET ("disable_query"="true","disable_load"="true")`, c.BEs[0].Addr()))
	if got := backend(t, c.FEs[0], c.BEs[0])["Status"]; !strings.Contains(got, `"isQueryDisabled":true,"isLoadDisabled":true`) {
		t.Errorf("Status is %s", got)
	}
	exec(t, c.FEs[0], fmt.Sprintf(`ALTER SYSTEM MODIFY BACKEND %q SET ("disable_query"="false","disable_load"="false")`, c.BEs[0].Addr()))
	rows(t, c.FEs[0], read)
}

func TestTagsAreReplacedByThoseThatAreSaid(t *testing.T) {
	modify := func(c *local.Cluster, tags string) error {
		return tryExec(c.FEs[0], fmt.Sprintf(`ALTER SYSTEM MODIFY BACKEND %q SET (%s)`, c.BEs[0].Addr(), tags))
	}
	refused := func(t *testing.T, c *local.Cluster, tags, says string) {
		t.Helper()
		if err := modify(c, tags); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s answers %v, want %q", tags, err, says)
		}
	}
	have := func(t *testing.T, c *local.Cluster, want string) {
		t.Helper()
		if got := backend(t, c.FEs[0], c.BEs[0])["Tag"]; got != want {
			t.Errorf("Tag is %s, want %s", got, want)
		}
	}
	t.Run("a version that knows endpoints", func(t *testing.T) {
		c := startAt(t, "3.1.0")
		for _, err := range []error{
			modify(c, `"tag.location" = "default", "tag.public_endpoint" = "11.10.20.12:8010", "tag.private_endpoint" = "10.10.10.9:8020"`),
			modify(c, `"disable_query" = "false"`), // which is no tag
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		have(t, c, `{"location":"default","private_endpoint":"10.10.10.9:8020","public_endpoint":"11.10.20.12:8010"}`)
		refused(t, c, `"tag.public_endpoint" = "11.10.20.12:8010"`, "must have location type tag")
		refused(t, c, `"tag.location" = "default", "tag.shelf" = "three"`, "Not support multi tags")
		if err := modify(c, `"tag.location" = "rack_b"`); err != nil {
			t.Fatal(err)
		}
		have(t, c, `{"location":"rack_b"}`)
	})
	t.Run("an older one", func(t *testing.T) {
		c := startAt(t, "2.1.8")
		refused(t, c, `"tag.location" = "default", "tag.public_endpoint" = "11.10.20.12:8010"`, "Invalid tag format")
		refused(t, c, `"tag.location" = "default", "tag.shelf" = "three"`, "Not support multi tags")
		have(t, c, `{"location":"default"}`)
	})
}

// startAt starts a cluster of one frontend and one backend of a version.
func startAt(t *testing.T, version string) *local.Cluster {
	t.Helper()
	c := newCluster(t)
	c.Version = version
	addFE(t, c, "FOLLOWER")
	addBE(t, c)
	return c
}

func TestBackendSettingsArePersistedByReplacingTheFile(t *testing.T) {
	c := newCluster(t)
	custom := t.TempDir()
	b, err := c.NewBE("custom_config_dir = " + custom)
	must(t, err)
	must(t, b.Start(running(t)))
	post := func(query string) string {
		resp, err := client.Post(b.URL()+"/api/update_config?"+query, "", nil)
		must(t, err)
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %s", resp.Status)
		}
		var out []struct{ Status string }
		must(t, decode(resp.Body, &out))
		return out[0].Status
	}
	if got := post("sys_log_level=WARNING&persist=true"); got != "OK" {
		t.Errorf("got %s", got)
	}
	if got := post("be_port=1&persist=true"); got == "OK" {
		t.Error("a fixed setting was changed")
	}
	file := filepath.Join(custom, "be_custom.conf")
	before, err := os.Stat(file)
	must(t, err)
	post("max_tablet_version_num=3000&persist=true")
	after, err := os.Stat(file)
	must(t, err)
	if os.SameFile(before, after) {
		t.Error("the file was written in place")
	}
	must(t, b.Kill())
	must(t, b.Start(running(t)))
	var shown [][]string
	must(t, getJSON(b.URL()+"/api/show_config?conf_item=sys_log_level", &shown))
	if len(shown) != 1 || shown[0][2] != "WARNING" {
		t.Errorf("after a restart the setting is %v", shown)
	}
}

func TestBackendSettingsAreShownAsTheyAreKept(t *testing.T) {
	for _, tc := range []struct{ name, version, query, status, shown string }{
		{"a fraction is printed with six digits", "2.1.8", "compaction_promotion_ratio=0.123456789&persist=false", "OK", "0.123457"},
		{"a fraction loses its last zeros", "2.1.8", "compaction_promotion_ratio=0.10&persist=false", "OK", "0.1"},
		{"what is no fraction is refused", "2.1.8", "compaction_promotion_ratio=much&persist=false", "BAD", "0.05"},
		{"an older version takes one setting without more", "2.0.15", "compaction_promotion_ratio=0.2", "OK", "0.2"},
		{"an older version takes no two", "2.0.15", "compaction_promotion_ratio=0.2&max_tablet_version_num=3", "BAD", "0.05"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			c.Version = tc.version
			b, err := c.NewBE("")
			must(t, err)
			must(t, b.Start(running(t)))
			resp, err := client.Post(b.URL()+"/api/update_config?"+tc.query, "", nil)
			must(t, err)
			defer func() { _ = resp.Body.Close() }()
			var list []struct{ Status string }
			if tc.version < "2.1" {
				list = append(list, struct{ Status string }{})
				must(t, decode(resp.Body, &list[0]))
			} else {
				must(t, decode(resp.Body, &list))
			}
			if len(list) != 1 || list[0].Status != tc.status {
				t.Errorf("answers %v, want %s", list, tc.status)
			}
			var shown [][]string
			must(t, getJSON(b.URL()+"/api/show_config?conf_item=compaction_promotion_ratio", &shown))
			if len(shown) != 1 || shown[0][2] != tc.shown {
				t.Errorf("shows %v, want %s", shown, tc.shown)
			}
		})
	}
}

func TestABackendThatIsNotToldWhetherToPersistDoesNotAnswer(t *testing.T) {
	c := newCluster(t)
	b, err := c.NewBE("")
	must(t, err)
	must(t, b.Start(running(t)))
	resp, err := client.Post(b.URL()+"/api/update_config?sys_log_level=WARNING", "", nil)
	if err == nil {
		_ = resp.Body.Close()
		t.Errorf("answers %s", resp.Status)
	}
}

func TestRowsWrittenThroughAnyFrontendAreWrittenOnce(t *testing.T) {
	c := start(t, 3, 3)
	exec(t, c.FEs[1], "create database shop")
	for i, f := range c.FEs {
		exec(t, f, "CREATE TABLE IF NOT EXISTS shop.ships (id INT, name VARCHAR(32)) DISTRIBUTED BY HASH(id) BUCKETS 3 PROPERTIES (\"replication_num\" = \"3\")")
		exec(t, f, "INSERT INTO shop.ships VALUES (1, 'Beagle'), (2, 'Fram'), (3, 'Endurance')")
		for _, reader := range c.FEs {
			var got []row
			eventually(t, "the reader has caught up", func() bool {
				var err error
				got, err = tryQuery(reader, "select id, name from shop.ships")
				return err == nil && len(got) >= 3*(i+1)
			})
			if len(got) != 3*(i+1) {
				t.Errorf("after write %d there are %d rows", i+1, len(got))
			}
		}
	}
}
