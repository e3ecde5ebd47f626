package lograte

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/test/syncbuf"
)

func TestWarnWritesOneLineInAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log syncbuf.Buffer
		l := New(slog.New(slog.NewTextHandler(&log, nil)), "refused", time.Minute)
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for line := range strings.Lines(log.String()) {
				_, text, _ := strings.Cut(strings.TrimSpace(line), "msg=")
				got = append(got, text)
			}
			if !slices.Equal(got, lines) {
				t.Errorf("got %q, want %q", got, lines)
			}
		}
		for limit := range 4 {
			l.Warn("limit", limit)
		}
		want("refused limit=0 suppressed=0")
		<-time.After(time.Minute)
		want("refused limit=0 suppressed=0", "refused limit=3 suppressed=2")
		<-time.After(time.Hour)
		l.Warn("limit", 4)
		want("refused limit=0 suppressed=0", "refused limit=3 suppressed=2", "refused limit=4 suppressed=0")
	})
}
