package sqlparse

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]Statement{
		"show frontends": Show{What: "FRONTENDS"},
		"SHOW BACKENDS;": Show{What: "BACKENDS"},
		"show proc '/cluster_health/tablet_health'": Show{What: "PROC", Arg: "/cluster_health/tablet_health"},
		"show all grants":                             Show{What: "ALL GRANTS"},
		"show grants for 'a'@'%'":                     Show{What: "GRANTS", Arg: "a"},
		"show tables from `db` like 'a%'":             Show{What: "TABLES", Arg: "db", Like: "a%"},
		"SHOW SESSION VARIABLES LIKE 'x'":             Show{What: "VARIABLES", Like: "x"},
		`ALTER SYSTEM ADD FOLLOWER "h:9010"`:          AlterSystem{Op: AddFollower, Addrs: []string{"h:9010"}},
		`ALTER SYSTEM DROP OBSERVER 'h:9010'`:         AlterSystem{Op: DropObserver, Addrs: []string{"h:9010"}},
		`ALTER SYSTEM DROPP BACKEND "a:1", "b:2"`:     AlterSystem{Op: ForceDropBackend, Addrs: []string{"a:1", "b:2"}},
		`ALTER SYSTEM DECOMMISSION BACKEND "a:1"`:     AlterSystem{Op: Decommission, Addrs: []string{"a:1"}},
		`CANCEL DECOMMISSION BACKEND "a:1"`:           AlterSystem{Op: CancelDecommiss, Addrs: []string{"a:1"}},
		`ADMIN SHOW FRONTEND CONFIG`:                  ShowConfig{},
		`ADMIN SHOW FRONTEND CONFIG LIKE '%balance%'`: ShowConfig{Like: "%balance%"},
		`ADMIN SET FRONTEND CONFIG ("a" = "b")`:       SetConfig{Values: map[string]string{"a": "b"}},
		`ADMIN SET ALL FRONTENDS CONFIG ("a"="b")`:    SetConfig{All: true, Values: map[string]string{"a": "b"}},
		"CREATE USER 'a'@'%' IDENTIFIED BY 'it''s'":   CreateUser{Name: "a", Password: "it's"},
		"CREATE USER IF NOT EXISTS a":                 CreateUser{Name: "a", IfNotExists: true},
		"GRANT NODE_PRIV ON *.*.* TO a":               Grant{Privileges: []string{"Node_priv"}, Name: "a"},
		"GRANT NODE_PRIV, admin_priv ON *.* TO 'a'@%": Grant{Privileges: []string{"Node_priv", "Admin_priv"}, Name: "a"},
		"SET PASSWORD FOR 'a' = PASSWORD('x')":        SetPassword{Name: "a", Password: "x"},
		"SET PASSWORD = '*AB'":                        SetPassword{Password: "*AB", Hashed: true},
		"ALTER USER a IDENTIFIED BY 'x'":              SetPassword{Name: "a", Password: "x"},
		"SET NAMES utf8mb4":                           Set{},
		"/* hi */ use db":                             Use{Database: "db"},
		"create database if not exists d":             CreateDatabase{Name: "d", IfNotExists: true},
		"drop table if exists d.t force":              DropTable{Name: Name{"d", "t"}, IfExists: true},
		"insert into d.t (a, b) values (1, 'x'), (-2, null)": Insert{
			Name: Name{"d", "t"}, Columns: []string{"a", "b"}, Rows: [][]*string{{new("1"), new("x")}, {new("-2"), nil}},
		},
		"select count(*) from internal.d.t": Select{Items: []Item{{Count: true}}, From: &Name{"d", "t"}, Limit: -1},
		"select a, b as c from t where a >= 3 and b <> 'x' order by a desc limit 5": Select{
			Items: []Item{{Column: "a"}, {Column: "b", Alias: "c"}}, From: &Name{"", "t"},
			Where:   []Condition{{"a", ">=", "3"}, {"b", "<>", "x"}},
			OrderBy: "a", Desc: true, Limit: 5,
		},
		"select @@session.autocommit, version(), 1": Select{
			Items: []Item{{Function: "@@autocommit"}, {Function: "VERSION()"}, {Literal: new("1")}}, Limit: -1,
		},
		`create table if not exists d.t (id bigint not null comment "k, (1)", v varchar(10) default "x")
			duplicate key(id) distributed by hash(id) buckets 4 properties ("replication_num" = "2")`: CreateTable{
			Name: Name{"d", "t"}, IfNotExists: true, Columns: []ColumnDef{{"id", "BIGINT"}, {"v", "VARCHAR"}}, Buckets: 4,
			HashColumn: "id", Properties: map[string]string{"replication_num": "2"},
		},
		`ALTER SYSTEM MODIFY BACKEND "a:1" SET ("disable_query"="true")`: AlterSystem{
			Op: ModifyBackend, Addrs: []string{"a:1"}, Properties: map[string]string{"disable_query": "true"},
		},
		`ALTER SYSTEM ADD BACKEND "a:1" PROPERTIES ("tag.location"="x")`: AlterSystem{
			Op: AddBackend, Addrs: []string{"a:1"}, Properties: map[string]string{"tag.location": "x"},
		},
	}
	for in, want := range cases {
		got, err := Parse(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                        "",
		"another language":               "hello",
		"two statements":                 "select 1; select 2",
		"two observers in one statement": `ALTER SYSTEM DROP OBSERVER "a:1", "b:2"`,
		"an unfinished quote":            "select 'a",
		"an unfinished comment":          "/* select 1",
		"a node without quotes":          "ALTER SYSTEM ADD BACKEND a:1",
		"properties without a value":     `ADMIN SET FRONTEND CONFIG ("a")`,
		"a comparison with NULL":         "select a from t where a = null",
	} {
		t.Run(name, func(t *testing.T) {
			var syntax *SyntaxError
			if _, err := Parse(in); !errors.As(err, &syntax) {
				t.Errorf("got %v, want a syntax error", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"select 1", `ALTER SYSTEM ADD BACKEND "a:1"`, "create table t (a int) properties('a'='b')", "grant `` on *.* to a",
		"insert into t values ('\\", "select @@a.b.c, count(1) from a.b.c where x = -1 limit 99999999999999999999",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		st, err := Parse(in)
		if (st == nil) == (err == nil) && err == nil {
			t.Error("neither a statement nor an error")
		}
	})
}
