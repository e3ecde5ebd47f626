package declared

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// unsteady is a store that fails a number of times, which may change.
type unsteady struct {
	*memstore.Store

	code semantics.Code
	left atomic.Int32 // failures; negative: for ever
}

func (u *unsteady) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if left := u.left.Load(); left != 0 {
		u.left.Store(max(left-1, -1))
		return semantics.Entity{}, false, semantics.Errorf(u.code, "it cannot be done")
	}
	return u.Store.CreateEntity(ctx, kind, path, options)
}

// unfit is a store that is not what it should be, as long as it says so.
type unfit struct{ is atomic.Bool }

func (u *unfit) Check(context.Context) (semantics.Health, error) {
	if u.is.Load() {
		return semantics.Health{}, semantics.Errorf(semantics.StoreUnavailable, "the store is not there")
	}
	return semantics.Health{Store: "ours"}, nil
}

// declare begins to make entities in a store.
func declare(t *testing.T, text string, kept semantics.Store, checker semantics.Checker) (d *Entities, ctx context.Context, log *bytes.Buffer) {
	t.Helper()
	top, err := yamlfile.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := entities.Section(top)
	if err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	d, err = New(t.Context(), set, true, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	opened := &store.Opened{Store: kept, Checker: checker}
	ctx, end := d.Begin(t.Context(), opened, true)
	t.Cleanup(func() {
		end(nil)
		_ = d.End()
	})
	if opened.Checker != semantics.Checker(d) {
		t.Fatal("nobody waits for the entities")
	}
	return d, ctx, log
}

// A sidecar is not ready before its entities are there, tries as long as the store is away, and writes nothing to a
// store that was not found fit.
func TestENT_6_ReadyOnlyWhenEntitiesAreThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, looks := &unsteady{Store: memstore.New(), code: semantics.StoreUnavailable}, &unfit{}
		looks.is.Store(true)
		d, _, log := declare(t, "queues: [{name: a}, {name: b}]", store, looks)
		look := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := d.Check(ctx)
			return err
		}
		for range 3 {
			if err := look(); semantics.CodeOf(err) != semantics.StoreUnavailable || !strings.Contains(err.Error(), "the store is not there") {
				t.Fatalf("got %v", err)
			}
			<-time.After(time.Minute) // of the bubble
			if found, _, err := store.ListEntities(t.Context(), semantics.QueueKind, "", "", 10); len(found) > 0 || err != nil {
				t.Fatalf("got %v, %v in a store that is not fit", found, err)
			}
		}
		looks.is.Store(false)
		store.left.Store(-1)
		for range 3 {
			if err := look(); semantics.CodeOf(err) != semantics.StoreUnavailable || !strings.Contains(err.Error(), "do not exist yet") {
				t.Fatalf("got %v", err)
			}
			<-time.After(time.Minute) // of the bubble
		}
		store.left.Store(2)
		began := time.Now()
		for look() != nil {
			if time.Since(began) > time.Minute {
				t.Fatal("it is never ready")
			}
		}
		found, _, err := store.ListEntities(t.Context(), semantics.QueueKind, "", "", 10)
		if err != nil || len(found) != 2 {
			t.Errorf("got %v, %v", found, err)
		}
		if !strings.Contains(log.String(), "the entities of the file exist") || !strings.Contains(log.String(), "created=2") || strings.Contains(log.String(), differsLine) {
			t.Errorf("got %s", log)
		}
	})
}

// What does not pass by itself ends the sidecar.
func TestDeclaredFailure(t *testing.T) {
	t.Parallel()
	store := &unsteady{Store: memstore.New(), code: semantics.QuotaExceeded}
	store.left.Store(-1)
	d, ctx, _ := declare(t, "queues:\n- name: a\n", store, store.Store)
	looking, cancel := context.WithTimeout(ctx, sidecartest.Patience)
	defer cancel()
	if _, err := d.Check(looking); err == nil {
		t.Error("it is fit")
	}
	<-ctx.Done()
	err := d.End()
	if err == nil || !errors.Is(context.Cause(ctx), err) || err.Error() != "f:2:3: queues[0]: QUOTA_EXCEEDED: it cannot be done" {
		t.Errorf("got %v", err)
	}
}
