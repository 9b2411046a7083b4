package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// smoke runs inside namespaces of its own, with both images' files in one root: the FE's entrypoint finds nobody and
// starts a cluster, the BE's registers itself, a client sees it and its rows, and both prestop scripts end them.
const smoke = `
set -u
export POD_IP=127.0.0.1 SKIP_CHECK_ULIMIT=true DORISSIM_FIRST_FE_WAIT=2 USER=oper PASSWD="it's a \\ secret"
POD_NAME=c-fe-0 /opt/apache-doris/fe_entrypoint.sh 127.0.0.1 >/tmp/fe.log 2>&1 &
fe=$!
POD_NAME=c-be-0 /opt/apache-doris/be_entrypoint.sh 127.0.0.1 >/tmp/be.log 2>&1 &
be=$!
sql() { mysql -h127.0.0.1 -P9030 "$@" 2>&1; }
for i in $(seq 60); do
    sql -uroot --batch -e 'show backends' | grep -q '	true	' && break
    sleep 0.5
done
sql -uroot -e 'show frontends\G show backends\G show all grants\G'
sql -uoper "-p$PASSWD" --batch -e 'show backends' | sed 's/^/as oper: /'
sql -uroot -pwrong -e 'select 1'
sql -uroot --batch -e 'create database d; create table d.t (id int) distributed by hash(id) properties("replication_num"="1"); insert into d.t values (1),(2)'
sql -uroot --batch --skip-column-names -e 'select count(*) from d.t' | sed 's/^/rows: /'
curl -s localhost:8030/api/health; curl -s localhost:8040/api/health; echo
/opt/apache-doris/be_prestop.sh && wait $be; echo "be ended: $?"
/opt/apache-doris/fe_prestop.sh && wait $fe; echo "fe ended: $?"
POD_NAME=c-fe-0 /opt/apache-doris/fe_entrypoint.sh 127.0.0.1 >/tmp/fe2.log 2>&1 &
for i in $(seq 60); do
    sql -uroot --batch -e 'show databases' | grep -q '^d$' && break
    sleep 0.5
done
sql -uroot --batch -e 'show databases' | grep '^d$' | sed 's/^/after the restart: /'
/opt/apache-doris/fe_prestop.sh
echo "--- logs"; cat /tmp/fe.log /tmp/be.log /tmp/fe2.log
`

func TestEntrypointsInAnImageRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it changes the root directory in namespaces of its own")
	}
	cache, err := DefaultCacheDir()
	must(t, err)
	base := Base{CacheDir: cache, Packages: BasePackages, Log: t.Output()}
	key, err := base.key()
	must(t, err)
	if _, err := os.Stat(filepath.Join(cache, "base-"+key+".tar.gz")); err != nil && os.Getenv("FAIRLEAD_TEST_IMAGES") == "" {
		t.Skip("the base layer is not in the cache; FAIRLEAD_TEST_IMAGES=1 downloads its packages and builds it")
	}
	root := t.TempDir()
	files, err := Doris{FETag: DefaultFETag, BETag: DefaultBETag, OutDir: t.TempDir(), Base: base}.Build(t.Context())
	must(t, err)
	for i, tag := range []string{DefaultFETag, DefaultBETag} {
		extract(t, files[i], tag, root)
	}
	must(t, os.WriteFile(filepath.Join(root, "etc/hosts"), []byte("127.0.0.1 node-0.test.local node-0\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "smoke.sh"), []byte(smoke), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--kill-child", "bash", "-c",
		`ip link set lo up && hostname node-0 && mount -t proc none "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /bin/bash /smoke.sh`, root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"Host: node-0.test.local", "IsMaster: true", "Alive: true", "'oper'@'%'", "as oper: 10", "ERROR 1045 (28000)", "rows: 2",
		`"online_backend_num":1`, `"status":"OK"`, "be ended: 0", "fe ended: 0", "after the restart: d", "metadata exists, restarting",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("missing in the output: %s", want)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}

func extract(t *testing.T, file, tag, root string) {
	t.Helper()
	ref, err := name.NewTag(tag)
	must(t, err)
	img, err := tarball.ImageFromPath(file, &ref)
	must(t, err)
	r := mutate.Extract(img)
	defer func() { _ = r.Close() }()
	cmd := exec.CommandContext(t.Context(), "tar", "-x", "-C", root)
	cmd.Stdin = r
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("extract: %v: %s", err, out)
	}
}
