package lograte

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarnWritesOneLineInAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&log, nil)), "refused", time.Minute)
		for range 3 {
			l.Warn("limit", 7)
		}
		<-time.After(time.Minute)
		l.Warn("limit", 7)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], "msg=refused limit=7 suppressed=0") ||
			!strings.HasSuffix(lines[1], "msg=refused limit=7 suppressed=2") {
			t.Errorf("got %q, want two lines, the second with suppressed=2", lines)
		}
	})
}
