package obs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// lines returns the values of the metrics whose names begin with prefix, one a line: name, labels, value.
func lines(t *testing.T, registry *prometheus.Registry, prefix string) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), prefix) {
			continue
		}
		for _, m := range family.GetMetric() {
			line := strings.TrimPrefix(family.GetName(), prefix)
			for _, label := range m.GetLabel() {
				line += " " + label.GetValue()
			}
			all = append(all, fmt.Sprint(line, " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return all
}

// A store that is down has no gauges of entities: old values would look like present ones.
func TestCOMP_16_EntityGauges(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.WithClock(func() time.Time { return time.Now().Add(-time.Hour) })) // an hour late
	ctx := t.Context()
	create := func(kind semantics.Kind, path string, options semantics.Options) {
		t.Helper()
		if _, _, err := store.CreateEntity(ctx, kind, path, options); err != nil {
			t.Fatal(err)
		}
	}
	create(semantics.QueueKind, "Orders", semantics.DefaultOptions())
	withSessions := semantics.DefaultOptions()
	withSessions.RequiresSession = true
	create(semantics.QueueKind, "tales", withSessions)
	create(semantics.TopicKind, "news", semantics.DefaultOptions())
	if _, _, err := store.CreateSubscription(ctx, semantics.SubscriptionPath("news", "all"), semantics.DefaultOptions(), nil); err != nil {
		t.Fatal(err)
	}
	send := func(path string, messages ...*semantics.Message) {
		t.Helper()
		if _, err := store.Send(ctx, path, messages); err != nil {
			t.Fatal(err)
		}
	}
	send("orders", &semantics.Message{}, &semantics.Message{ScheduledAt: time.Now().Add(time.Hour)}, &semantics.Message{})
	send("tales", &semantics.Message{SessionID: "one"})
	locked, err := store.Receive(ctx, semantics.Source{Path: "orders"}, 1, semantics.RegisterNever)
	if err != nil || len(locked.Messages) != 1 {
		t.Fatal(locked, err)
	}

	isUp := true
	registry := prometheus.NewRegistry()
	err = obs.RegisterSidecar(registry, obs.Sidecar{
		Version: "v1.2.3", Commit: "abc", StoreUp: func() bool { return isUp }, Entities: store, MaxEntities: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"entity_messages news scheduled 0",
		"entity_messages orders available 1", "entity_messages orders locked 1", "entity_messages orders scheduled 1",
		"entity_messages tales available 1",
		"entity_sessions tales blocked 0", "entity_sessions tales idle 0", "entity_sessions tales locked 0", "entity_sessions tales ready 1",
	}
	got := slices.DeleteFunc(lines(t, registry, "sidebus_"), func(line string) bool {
		return !slices.Contains(want, line) && (strings.HasSuffix(line, " 0") || !strings.HasPrefix(line, "entity_messages") && !strings.HasPrefix(line, "entity_sessions"))
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, want := range []string{"entities_truncated 0", "store_up 1", "entity_messages news/subscriptions/all available 0"} {
		if got := lines(t, registry, "sidebus_"); !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, metric := range []string{"oldest", "available"} {
		ages := lines(t, registry, "sidebus_entity_"+metric+"_age_seconds")
		if len(ages) != 3 || ages[0] != " news/subscriptions/all 0" {
			t.Errorf("%s: got %q", metric, ages)
		}
		for _, of := range ages[1:] {
			name, age, _ := strings.Cut(strings.TrimSpace(of), " ")
			if seconds, err := strconv.ParseFloat(age, 64); err != nil || seconds < 3600 || seconds > 7200 {
				t.Errorf("%s: that of %s is %s s, want an hour", metric, name, age)
			}
		}
	}
	isUp = false
	if got := lines(t, registry, "sidebus_entit"); got != nil {
		t.Errorf("with a store that is down: %q", got)
	}
	if got := lines(t, registry, "sidebus_store_up"); !slices.Equal(got, []string{" 0"}) {
		t.Errorf("store_up: %q", got)
	}
}

// manyEntities is a store that lists more entities than anybody scrapes, and counts calls.
type manyEntities struct {
	calls int
	fails bool
}

func (s *manyEntities) ListEntities(_ context.Context, kind semantics.Kind, _, after string, limit int) ([]semantics.Entity, bool, error) {
	s.calls++
	if s.fails {
		return nil, false, errors.New("down")
	}
	var page []semantics.Entity
	for i := range 1000 {
		if name := fmt.Sprintf("%d-%03d", kind, i); name > after && len(page) < limit {
			page = append(page, semantics.Entity{Kind: kind, Name: name})
		}
	}
	return page, true, nil
}

func (s *manyEntities) Runtime(context.Context, semantics.Kind, string) (semantics.Runtime, error) {
	s.calls++
	return semantics.Runtime{}, nil
}

// However many entities there are and however often metrics are scraped, the store is asked for few of them, and
// seldom.
func TestEntityGaugesAreBounded(t *testing.T) {
	t.Parallel()
	store := &manyEntities{fails: true}
	registry := prometheus.NewRegistry()
	err := obs.RegisterSidecar(registry, obs.Sidecar{StoreUp: func() bool { return true }, Entities: store, MaxEntities: 150})
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, registry, "sidebus_entit"); got != nil {
		t.Errorf("with a store that fails: %q", got)
	}
	*store = manyEntities{}
	for range 3 {
		if got := lines(t, registry, "sidebus_entity_size_bytes"); len(got) != 150 {
			t.Errorf("%d entities, want 150", len(got))
		}
		if got := lines(t, registry, "sidebus_entities_truncated"); !slices.Equal(got, []string{" 1"}) {
			t.Errorf("truncated: %q", got)
		}
	}
	if store.calls > 150+5 {
		t.Errorf("the store was asked %d times for 6 scrapes", store.calls)
	}
}

// sharedOnce keeps what the first sidecar reads for the others.
type sharedOnce struct {
	value []byte
	name  string
}

func (s *sharedOnce) Shared(
	ctx context.Context, name string, _ time.Duration, read func(context.Context) ([]byte, error),
) (value []byte, age time.Duration, err error) {
	if s.value != nil && s.name == name {
		return s.value, time.Second, nil
	}
	s.name = name
	s.value, err = read(ctx)
	return s.value, 0, err
}

// Sidecars with the same limit show what one of them has read, and the same values.
func TestCOMP_16_SidecarsShareTheGauges(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Send(t.Context(), "orders", []*semantics.Message{{SessionID: "a"}}); err != nil {
		t.Fatal(err)
	}
	shared, other := &sharedOnce{}, &manyEntities{fails: true}
	var got [2][]string
	for i, from := range []obs.EntityStore{store, other} {
		registry := prometheus.NewRegistry()
		err := obs.RegisterSidecar(registry, obs.Sidecar{StoreUp: func() bool { return true }, Entities: from, Sharer: shared, MaxEntities: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"sidebus_entity_messages", "sidebus_entity_sessions", "sidebus_entities_truncated"} {
			got[i] = append(got[i], lines(t, registry, prefix)...)
		}
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" || !slices.Contains(got[0], " orders available 1") || !slices.Contains(got[0], " orders ready 1") {
		t.Errorf("the second sidecar shows something else (-first +second):\n%s\n%q", diff, got[0])
	}
	if other.calls > 0 {
		t.Errorf("the second sidecar asked the store %d times", other.calls)
	}
}

// The first entities have labels of their own, in lower case, and the rest is "(other)".
func TestEntityLabelsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry, account{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"B", "a", "c", "b", "A", "d", `b\x`} {
		m.Sent(semantics.ToQueue(path), []*semantics.Message{{}}, make([]semantics.SendResult, 1))
	}
	want := []string{" (other) 3", " a 2", " b 2"}
	if diff := cmp.Diff(want, lines(t, registry, "sidebus_messages_sent_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := range 1000 {
		m.Sent(semantics.ToQueue(fmt.Sprint("temporary-", i)), []*semantics.Message{{}}, make([]semantics.SendResult, 1))
	}
	if n := len(lines(t, registry, "sidebus_messages_sent_total")); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
}
