package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

func master(t *testing.T, c *local.Cluster, ask *local.FE) *local.FE {
	t.Helper()
	port := value(rows(t, ask, "show frontends"), "IsMaster", "true", "EditLogPort")
	for _, f := range c.FEs {
		if fmt.Sprint(f.EditLogPort) == port {
			return f
		}
	}
	return nil
}

func others(c *local.Cluster, f *local.FE) []*local.FE {
	var out []*local.FE
	for _, other := range c.FEs {
		if other != f {
			out = append(out, other)
		}
	}
	return out
}

func TestTheFirstFrontendStartsAlone(t *testing.T) {
	c := start(t, 1, 0)
	rs := rows(t, c.FEs[0], "show frontends")
	if len(rs) != 1 || rs[0]["IsMaster"] != "true" || rs[0]["Alive"] != "true" || rs[0]["CurrentConnected"] != "Yes" {
		t.Errorf("got %v", rs)
	}
	if code := healthCode(c.FEs[0]); code != 0 {
		t.Errorf("health code is %d", code)
	}
}

func TestAFrontendThatNobodyAddedDoesNotJoin(t *testing.T) {
	c := start(t, 1, 0)
	f, err := c.NewFE("")
	must(t, err)
	must(t, f.Start(running(t), c.FEs[0].Addr()))
	exec(t, c.FEs[0], "create database d")
	if code := healthCode(f); code != -1 {
		t.Fatalf("the HTTP port is open before the frontend has its place: code %d", code)
	}
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", f.Addr()))
	awaitServing(t, f)
}

func TestAFollowerThatHasNotStartedCostsNoMajority(t *testing.T) {
	c := start(t, 1, 0)
	exec(t, c.FEs[0], `ALTER SYSTEM ADD FOLLOWER "127.0.0.1:1"`)
	exec(t, c.FEs[0], "create database still_writable")
	rs := rows(t, c.FEs[0], "show frontends")
	if got := value(rs, "EditLogPort", "1", "Join"); got != "false" {
		t.Errorf("Join of the absent follower is %q", got)
	}
}

func TestEveryFrontendAnswersAndPassesWritesOn(t *testing.T) {
	c := start(t, 3, 0)
	observer := addFE(t, c, "OBSERVER")
	for i, f := range c.FEs {
		exec(t, f, fmt.Sprintf("create database d%d", i))
		// The writer reads its own write on the frontend that it wrote through.
		if got := rows(t, f, fmt.Sprintf("show databases like 'd%d'", i)); len(got) != 1 {
			t.Errorf("frontend %d does not see its own database", i)
		}
	}
	eventually(t, "all see all", func() bool {
		for _, f := range c.FEs {
			if len(rows(t, f, "show databases like 'd%'")) != 4 {
				return false
			}
		}
		return true
	})
	rs := rows(t, observer, "show frontends")
	if count(rs, "Role", "FOLLOWER") != 3 || count(rs, "Role", "OBSERVER") != 1 || count(rs, "IsMaster", "true") != 1 {
		t.Errorf("got %v", rs)
	}
	if got := value(rs, "CurrentConnected", "Yes", "EditLogPort"); got != fmt.Sprint(observer.EditLogPort) {
		t.Errorf("CurrentConnected is at %s", got)
	}
}

func TestAnotherFollowerBecomesMasterAfterTheMasterIsGone(t *testing.T) {
	c := start(t, 3, 0)
	exec(t, c.FEs[0], "create database before")
	old := master(t, c, c.FEs[0])
	must(t, old.Stop())
	left := others(c, old)
	eventually(t, "a new master", func() bool {
		return tryExec(left[0], "create database if not exists after") == nil
	})
	now := master(t, c, left[0])
	if now == old || now == nil {
		t.Fatalf("the master is %v", now)
	}
	eventually(t, "the old master is seen dead", func() bool {
		return value(rows(t, left[1], "show frontends"), "EditLogPort", fmt.Sprint(old.EditLogPort), "Alive") == "false"
	})
	if got := len(rows(t, left[1], "show databases like 'before'")); got != 1 {
		t.Error("the committed database is lost")
	}
	must(t, old.Start(running(t), ""))
	awaitServing(t, old)
	eventually(t, "the old master follows with the same identity", func() bool {
		rs := rows(t, old, "show frontends")
		return len(rs) == 3 && count(rs, "Alive", "true") == 3 && count(rs, "IsMaster", "true") == 1 &&
			len(rows(t, old, "show databases like 'after'")) == 1
	})
}

func TestWithoutAMajorityThereIsNoMaster(t *testing.T) {
	c := start(t, 3, 0)
	survivor := master(t, c, c.FEs[0])
	for _, f := range others(c, survivor) {
		must(t, f.Stop())
	}
	eventually(t, "the health code says so", func() bool { return healthCode(survivor) > 0 })
	if err := tryExec(survivor, "create database lonely"); err == nil {
		t.Error("a write went through without a majority")
	}
	if got := count(rows(t, survivor, "show frontends"), "IsMaster", "true"); got != 0 {
		t.Errorf("%d frontends claim to be master", got)
	}
	must(t, others(c, survivor)[0].Start(running(t), ""))
	eventually(t, "two of three are enough", func() bool {
		return tryExec(survivor, "create database if not exists together") == nil
	})
}

func TestAllFrontendsRestartTogether(t *testing.T) {
	c := start(t, 3, 0)
	exec(t, c.FEs[0], "create database kept")
	for _, f := range c.FEs {
		must(t, f.Stop())
	}
	for _, f := range c.FEs {
		must(t, f.Start(running(t), ""))
	}
	for _, f := range c.FEs {
		awaitServing(t, f)
		if len(rows(t, f, "show databases like 'kept'")) != 1 {
			t.Error("metadata is lost")
		}
	}
}

func TestADroppedFrontendEnds(t *testing.T) {
	c := start(t, 3, 0)
	m := master(t, c, c.FEs[0])
	victim := others(c, m)[0]
	if err := tryExec(m, fmt.Sprintf("ALTER SYSTEM DROP FOLLOWER %q", m.Addr())); err == nil {
		t.Error("the master dropped itself")
	}
	exec(t, m, fmt.Sprintf("ALTER SYSTEM DROP FOLLOWER %q", victim.Addr()))
	if err := victim.Wait(); err == nil || !strings.Contains(err.Error(), "not added to the cluster") {
		t.Errorf("it ended with %v", err)
	}
	if got := len(rows(t, m, "show frontends")); got != 2 {
		t.Errorf("%d frontends are left", got)
	}
	exec(t, m, "create database with_two_of_two")
}

func TestAFollowerThatIsNeededForTheMajorityIsNotDropped(t *testing.T) {
	c := start(t, 3, 0)
	m := master(t, c, c.FEs[0])
	rest := others(c, m)
	must(t, rest[0].Stop())
	eventually(t, "it is seen dead", func() bool {
		return value(rows(t, m, "show frontends"), "EditLogPort", fmt.Sprint(rest[0].EditLogPort), "Alive") == "false"
	})
	err := tryExec(m, fmt.Sprintf("ALTER SYSTEM DROP FOLLOWER %q", rest[1].Addr()))
	if err == nil || !strings.Contains(err.Error(), "quorum requirements are not met") {
		t.Errorf("one of two that answer: %v", err)
	}
	exec(t, m, fmt.Sprintf("ALTER SYSTEM DROP FOLLOWER %q", rest[0].Addr())) // the dead one may go
	exec(t, m, fmt.Sprintf("ALTER SYSTEM DROP FOLLOWER %q", rest[1].Addr()))
	exec(t, m, "create database with_one_of_one")
}

func TestBrokersAreRegistered(t *testing.T) {
	c := start(t, 1, 0)
	f := c.FEs[0]
	exec(t, f, fmt.Sprintf(`ALTER SYSTEM ADD BROKER broker001 "127.0.0.1:%d"`, f.RPC))
	exec(t, f, `ALTER SYSTEM ADD BROKER broker001 "127.0.0.1:1"`)
	if err := tryExec(f, `ALTER SYSTEM ADD BROKER broker001 "127.0.0.1:1"`); err == nil {
		t.Error("one broker twice")
	}
	rs := rows(t, f, "show broker")
	if len(rs) != 2 || value(rs, "Port", "1", "Alive") != "false" || value(rs, "Port", fmt.Sprint(f.RPC), "Alive") != "true" {
		t.Errorf("brokers are %v", rs)
	}
	exec(t, f, "ALTER SYSTEM DROP BROKER `broker001` \"127.0.0.1:1\"")
	if err := tryExec(f, `ALTER SYSTEM DROP BROKER broker001 "127.0.0.1:1"`); err == nil {
		t.Error("dropped twice")
	}
	if rs := rows(t, f, "show broker"); len(rs) != 1 {
		t.Errorf("brokers are %v", rs)
	}
}

func TestFrontendsThatAreNotThereCannotBeDropped(t *testing.T) {
	c := start(t, 1, 0)
	for _, statement := range []string{
		`ALTER SYSTEM DROP FOLLOWER "127.0.0.1:1"`, `ALTER SYSTEM DROP OBSERVER "127.0.0.1:1"`,
		fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", c.FEs[0].Addr()),
		`ALTER SYSTEM DROP OBSERVER "127.0.0.1:1"; ALTER SYSTEM DROP OBSERVER "127.0.0.1:2"`,
		`ALTER SYSTEM DROP OBSERVER "127.0.0.1:1", "127.0.0.1:2"`,
	} {
		if err := tryExec(c.FEs[0], statement); err == nil {
			t.Errorf("accepted: %s", statement)
		}
	}
}
