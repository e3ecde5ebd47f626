// Package console drives the web console in a real browser, against a sidecar and a Redis with traffic. It is a module of
// its own, because it needs Node.js and Chromium.
package console

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }

// browse runs a script of the folder browser, which fails the test if it fails. settings are variables of its
// environment.
func browse(t *testing.T, script, url string, settings ...string) {
	t.Helper()
	shots, err := filepath.Abs("../../.tmp/console")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*sidecartest.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, "node", filepath.Join("browser", script)) //nolint:gosec // a script of this folder
	command.Env = append(os.Environ(), append([]string{"CONSOLE_URL=" + url, "CONSOLE_SHOTS=" + shots}, settings...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.Log(lines.Text())
		if strings.HasPrefix(lines.Text(), "ok ") {
			passed++
		}
	}
	if err := command.Wait(); err != nil || passed == 0 {
		t.Fatalf("%s: %v, %d steps passed", script, err, passed)
	}
}

// ui is the address of the console of a sidecar.
func (s *shop) ui() string { return fmt.Sprintf("http://%s/ui/", s.Admin) }

func TestOverview(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	s.fill()
	s.open()
	browse(t, "overview.mjs", s.ui())
}

func TestEntity(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	s.fill()
	s.open()
	browse(t, "entity.mjs", s.ui())
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	s.fill()
	browse(t, "messages.mjs", s.ui())
}

func TestActs(t *testing.T) {
	t.Parallel()
	browse(t, "acts.mjs", openShop(t, store(t)...).ui())
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	browse(t, "letters.mjs", openShop(t, store(t)...).ui())
}

func TestDeadLettersOfTheNamespace(t *testing.T) {
	t.Parallel()
	browse(t, "dead.mjs", openShop(t, store(t)...).ui())
}

func TestDeadLettersReadOnly(t *testing.T) {
	t.Parallel()
	s := openShop(t, append(store(t), "--ui", "read-only")...)
	s.fill()
	browse(t, "readonly.mjs", s.ui())
}
