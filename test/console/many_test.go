package console

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// create creates n queues, some at a time.
func create(t *testing.T, s *sidecartest.Sidecar, n int) {
	t.Helper()
	createEach(t, s, n, func(int) string { return `{}` })
}

// createEach is create with options for each queue.
func createEach(t *testing.T, s *sidecartest.Sidecar, n int, options func(i int) string) {
	t.Helper()
	const atOnce = 8
	var work sync.WaitGroup
	for first := range atOnce {
		work.Go(func() {
			for i := first; i < n; i += atOnce {
				path := fmt.Sprintf("/v1/queues/team-%02d.queue-%04d", i%40, i)
				if got := s.Call(t.Context(), http.MethodPut, path, options(i)); got.Status != http.StatusOK {
					t.Errorf("%s: %s", path, got.Text)
					return
				}
			}
		})
	}
	work.Wait()
}

// traffic sends to some queues, one after the other, and receives what was sent.
func (s *shop) traffic(queues int) {
	turn := 0
	s.every(25*time.Millisecond, func() {
		i := turn % queues
		turn++
		base := fmt.Sprintf("/v1/queues/team-%02d.queue-%04d/messages:", i%40, i)
		s.Call(s.ctx, http.MethodPost, base+"send", `{"messages":[{"text":"a"},{"text":"b"}]}`)
		s.Call(s.ctx, http.MethodPost, base+"receive", `{"maxMessages":2,"maxWait":"0s","mode":"RECEIVE_AND_DELETE"}`)
	})
}

// The page stays fluid with 5,000 entities, of which 40 change.
func TestThousands(t *testing.T) {
	s := &shop{Sidecar: sidecartest.Start(t, store(t)...), t: t, ctx: t.Context()}
	create(t, s.Sidecar, 5000)
	s.traffic(40)
	browse(t, "thousands.mjs", s.ui())
}

// The flow stays usable with 1,000 entities that forward to 40 others, of which some have traffic.
func TestFlowOfAThousand(t *testing.T) {
	s := &shop{Sidecar: sidecartest.Start(t, store(t)...), t: t, ctx: t.Context()}
	for i := range 40 {
		s.must(http.MethodPut, fmt.Sprintf("/v1/queues/team-%02d.hub", i), `{}`)
	}
	createEach(t, s.Sidecar, 1000, func(i int) string { return fmt.Sprintf(`{"forwardTo":"team-%02d.hub"}`, i%40) })
	s.every(50*time.Millisecond, func() {
		s.Call(s.ctx, http.MethodPost, "/v1/queues/team-03.queue-0003/messages:send", `{"messages":[{"text":"a"}]}`)
	})
	browse(t, "flowmany.mjs", s.ui())
}

// The processor time that a page costs a sidecar with 1,000 entities, beyond what it takes without a page. The bound is
// far above what docs/console.md says, because a busy machine takes several times as much.
func TestCostAtTheSidecar(t *testing.T) {
	const (
		entities = 1000
		span     = 30 * time.Second
		bound    = 0.1 // of a core
	)
	s := &shop{Sidecar: sidecartest.Start(t, store(t)...), t: t, ctx: t.Context()}
	create(t, s.Sidecar, entities)
	s.settle(5 * time.Second)
	without := s.share(span)
	s.watch(entities)
	s.settle(5 * time.Second)
	with := s.share(span)
	t.Logf("of a core: %.4f without a page, %.4f with one", without, with)
	if with-without > bound {
		t.Errorf("a page costs %.4f of a core, want at most %.2f", with-without, bound)
	}
}

// watch opens a stream of events as a page does, and returns when all entities were counted.
func (s *shop) watch(entities int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.ui()+"live", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request) //nolint:bodyclose // the cleanup closes it
	if err != nil {
		s.t.Fatal(err)
	}
	counted, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		lines, seen := bufio.NewReader(answer.Body), 0
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			before := seen
			if seen += strings.Count(line, `"read":true`); before < entities && seen >= entities {
				close(counted)
			}
		}
	}()
	s.t.Cleanup(func() { _ = answer.Body.Close(); <-done })
	select {
	case <-counted:
	case <-done:
		s.t.Fatal("the stream has ended")
	}
}

// settle lets the sidecar run for some time.
func (s *shop) settle(span time.Duration) {
	s.t.Helper()
	pause := time.NewTimer(span)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-s.ctx.Done():
	}
}

// share is the part of a core that the sidecar uses during some time.
func (s *shop) share(span time.Duration) float64 {
	s.t.Helper()
	began, before := time.Now(), s.processorTime()
	s.settle(span)
	return (s.processorTime() - before) / time.Since(began).Seconds()
}

// processorTime returns the seconds that the sidecar has used, by /proc/<pid>/stat.
func (s *shop) processorTime() float64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	const user, system, ticks = 11, 12, 100 // after the name; in a second
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	sum := 0.0
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum += n / ticks
	}
	return sum
}
