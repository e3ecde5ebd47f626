package verbs

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Whatever there is to count, the table has at most 80 columns.
func TestStatsFitsATerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-name-", 4) + "x"
	s := serveNews(t)
	s.ok(t, "entity", "create", long)
	s.ok(t, "entity", "create", "topics/t-"+long)
	s.ok(t, "entity", "create", "topics/t-"+long+"/subscriptions/eu")
	s.ok(t, "send", "orders", "a")
	for _, text := range []string{s.ok(t, "stats"), s.ok(t, "top", "--count=1")} {
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n ")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if !strings.Contains(text, "news/.../eu") || !strings.Contains(text, "orders") {
			t.Errorf("got %s", text)
		}
	}
	now := time.Now()
	most := int64(999_999_999)
	row := narrowRow(&sidebusv1.QueueRuntime{
		ActiveMessageCount: most, LockedCount: most, DeferredCount: most, ScheduledMessageCount: most, DeadLetterMessageCount: most,
		SizeInBytes: 1 << 42, OldestEnqueuedTime: timestamppb.New(now.Add(-999 * 24 * time.Hour)),
	}, now)
	if got := strings.Join(row, " "); got != "1.0G 1.0G 1.0G 1.0G 1.0G 4096.0 GiB 999d" && got != "1.0G 1.0G 1.0G 1.0G 1.0G 4.0 TiB 999d" {
		t.Errorf("got %s", got)
	}
	for n, want := range map[int64]string{0: "0", 99_999: "99999", 100_000: "100k", 999_499: "999k", 999_600: "1.0M", 1_250_000: "1.2M", 42_000_000_000: "42G"} {
		if got := short(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

// Two subscriptions with the same name stay apart where both topics fit.
func TestNamesThatDoNotFit(t *testing.T) {
	t.Parallel()
	header := []string{"ENTITY", "ACTIVE"}
	rows := [][]string{{"orders", "1"}, {"topics/news/subscriptions/audit", "1"}, {"topics/purchases/subscriptions/audit", "1"}, {"topics/" + strings.Repeat("x", 20) + "/subscriptions/eu", "1"}}
	fitNames(header, rows, 80)
	if rows[1][0] != "topics/news/subscriptions/audit" {
		t.Errorf("got %q, which fitted", rows[1][0])
	}
	fitNames(header, rows, 30)
	for i, want := range []string{"orders", "news/.../audit", "purchases/.../audit", "...xxxxxxxxxxxx/.../eu"} {
		if rows[i][0] != want {
			t.Errorf("got %q, want %q", rows[i][0], want)
		}
	}
}

func TestTopWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "busy")
	s.ok(t, "send", "busy", "a", "b", "c")
	s.verb(t, nil, "top").wants(t, cli.Usage, "stdout is not a terminal; pass --count N")
	s.verb(t, nil, "top", "--count", "-1").wants(t, cli.Usage, "--count is -1, must be 0 (no end) or more")
	s.verb(t, nil, "top", "--every=1ms", "--count=1").wants(t, cli.Usage, "--every is 1ms, must be at least 100ms")
	got := s.ok(t, "top", "--count=2", "--every=100ms")
	if strings.Count(got, "sidebus top, ") != 2 || strings.Index(got, "busy") > strings.Index(got, "orders") || !strings.Contains(got, "+0") {
		t.Errorf("got %s", got)
	}
	if lines := decoded(t, s.ok(t, "top", "--count=2", "--every=100ms", "-o", "json")); len(lines) != 2 {
		t.Errorf("got %v", lines)
	}
}
