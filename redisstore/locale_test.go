package redisstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// makeLocale compiles a locale that sorts "a" before "B" before "c", from nothing but what is here: the sources that
// localedef would take otherwise are not on every machine. It gives the name of the locale.
func makeLocale(t *testing.T) string {
	t.Helper()
	folder, characters, order := t.TempDir(), "", ""
	for c := range 128 {
		characters += fmt.Sprintf("<U%04X> /x%02x c\n", c, c)
	}
	for c := range 26 {
		order += fmt.Sprintf("<U%04X>\n<U%04X>\n", 'a'+c, 'A'+c)
	}
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	charmap := write("charmap", "<code_set_name> ASCII\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 1\nCHARMAP\n"+characters+"END CHARMAP\n")
	source := write("source", "LC_COLLATE\norder_start forward\n"+order+"order_end\nEND LC_COLLATE\n")
	locale := filepath.Join(folder, "xx_XX")
	// It warns of the categories that are not there, and then ends as if it had failed.
	if out, _ := exec.Command("localedef", "--no-archive", "-c", "-i", source, "-f", charmap, locale).CombinedOutput(); len(out) > 0 {
		t.Logf("localedef: %s", out)
	}
	t.Setenv("LOCPATH", folder)
	return filepath.Base(locale)
}

// otherOrder has the next Redis sort texts by other rules than their bytes, and checks that it does.
func otherOrder(t *testing.T) string {
	t.Helper()
	t.Setenv("LC_ALL", makeLocale(t))
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	if before := command(t, server.URL, "EVAL", `return "a" < "B" and 1 or 0`, 0); before != int64(1) {
		t.Fatal("this Redis sorts by bytes, so the test proves nothing: install localedef (libc-bin, glibc-common) and a Redis built with glibc")
	}
	return server.URL
}

// Sessions are listed in order of their ids' bytes, none left out, whatever locale Redis runs in.
func TestSESS_36_ListedInAnyLocale(t *testing.T) { //nolint:paralleltest // it sets the environment
	s := redistest.Open(t, redisstore.Options{URL: otherOrder(t)})
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	want := []string{"A", "B", "Z", "a", "ab", "b", "z"}
	for i, id := range want {
		if _, err := s.Send(t.Context(), "orders", []*semantics.Message{part(id, "m")}); err != nil {
			t.Fatal(err)
		}
		if i%2 > 0 {
			continue
		}
		session, err := s.AcceptSession(t.Context(), "orders", id) // so that it stands among the locks only
		if err != nil {
			t.Fatal(err)
		}
		source := semantics.Source{Path: "orders", SessionLock: session.Lock}
		if batch, err := s.Receive(t.Context(), source, 1, semantics.RegisterNever); err != nil || len(batch.Messages) != 1 {
			t.Fatal(batch, err)
		}
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for after := ""; ; {
			rows, next, err := s.ListSessions(t.Context(), "orders", after, limit, semantics.SessionFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				got = append(got, row.ID)
			}
			if after = next; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
}
