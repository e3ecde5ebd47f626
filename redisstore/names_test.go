package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// named is a namespace in which a few names are made and deleted.
type named struct {
	*swept
	t *testing.T
}

func openNamed(t *testing.T) *named { return &named{t: t, swept: openSwept(t, redisstore.Options{})} }

// audit checks that the namespace's list has exactly the names of the entities that there are.
func (n *named) audit() {
	n.t.Helper()
	if err := audit.New(n.raw, n.namespace).AuditNames(n.t.Context()); err != nil {
		n.t.Error(err)
	}
}

// await waits until it has.
func (n *named) await() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		err := audit.New(n.raw, n.namespace).AuditNames(n.t.Context())
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			n.t.Fatal(err)
		}
	}
}

// made fails the test when an entity could not be made or deleted, but for want of one.
func (n *named) made(err error) {
	n.t.Helper()
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound && !errors.Is(err, context.Canceled) && semantics.CodeOf(err) != semantics.Cancelled {
		n.t.Error(err)
	}
}

var kinds = []semantics.Kind{semantics.QueueKind, semantics.TopicKind}

// Whatever creators and deleters of one name do at the same time, the list has the name exactly when there is an
// entity.
func TestENT_17_NamesWhileCreatorsAndDeletersRace(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			n := openNamed(t)
			others := []*redisstore.Store{n.Store, redistest.Open(t, redisstore.Options{Namespace: n.namespace})}
			for range 150 {
				var work sync.WaitGroup
				for i := range 4 {
					s := others[i%2]
					work.Go(func() {
						if i < 2 {
							_, _, err := s.CreateEntity(t.Context(), kind, "orders", semantics.DefaultOptions())
							n.made(err)
							return
						}
						n.made(s.DeleteEntity(t.Context(), kind, "orders"))
					})
				}
				work.Wait()
				n.audit()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// An entity that is deleted as soon as it was made leaves no name behind.
func TestENT_17_DeletedWhileItIsMade(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		n := openNamed(t)
		s := redistest.Open(t, redisstore.Options{Namespace: n.namespace, Observe: func(script, _ string, _ time.Duration) {
			if script == "create_entity" {
				n.made(n.DeleteEntity(t.Context(), kind, "orders"))
			}
		}})
		_, _, err := s.CreateEntity(t.Context(), kind, "orders", semantics.DefaultOptions())
		n.made(err)
		n.audit()
	}
}

// Wherever a creator or a deleter dies, with another one in its way, no entity is without its name, and a name without
// an entity goes with the next look at all entities.
func TestENT_17_NamesWhenCreatorsAndDeletersDie(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"register_name", "create_entity", "delete_queue", "unregister_name"} {
		for _, isThere := range []bool{false, true} {
			n := openNamed(t)
			for round := range 10 {
				if isThere {
					_, _, err := n.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions())
					n.made(err)
				}
				var work sync.WaitGroup
				dying, ctx := killedAfter(t, n.namespace, script, 1)
				work.Go(func() {
					if round%2 == 0 {
						_, _, err := n.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions())
						n.made(err)
						return
					}
					n.made(n.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
				})
				work.Go(func() {
					switch script {
					case "register_name", "create_entity":
						_, _, err := dying.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.DefaultOptions())
						n.made(err)
					default:
						n.made(dying.DeleteEntity(ctx, semantics.QueueKind, "orders"))
					}
				})
				work.Wait()
				if err := audit.New(n.raw, n.namespace).AuditNamed(t.Context()); err != nil {
					t.Errorf("%s: %v", script, err)
				}
			}
			sweeping(t, n.Store)
			n.await()
		}
	}
}

// A client that goes away while its entity is deleted leaves no name, which would count for ever (QUOTA-1).
func TestENT_17_ClientGoesAwayDuringADelete(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		n := openNamed(t)
		if _, _, err := n.CreateEntity(t.Context(), kind, "orders", semantics.DefaultOptions()); err != nil {
			t.Fatal(err)
		}
		dying, ctx := killedAfter(t, n.namespace, "delete_"+kind.String(), 1)
		n.made(dying.DeleteEntity(ctx, kind, "orders"))
		n.audit()
	}
}

// A deletion that a crash cut off is finished by whoever asks for it again.
func TestENT_17_RepeatedDeleteRemovesTheName(t *testing.T) {
	t.Parallel()
	n := openNamed(t)
	if _, _, err := n.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	n.raw.Del(t.Context(), n.key("entity"))
	if err := n.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Fatal(err)
	}
	n.audit()
}
