package memstore

import "context"

// Slot implements partitioned.Places: memory is one place.
func (*Store) Slot(string) (slot, of int) { return 0, 1 }

// Server implements partitioned.Places: memory answers as a whole.
func (*Store) Server(context.Context, string) any { return nil }

// NoteDeletion implements partitioned.Places. Memory loses no records, so there is nothing to note.
func (*Store) NoteDeletion(context.Context, string, int64) error { return nil }

// IsDeletionNoted implements partitioned.Places: what has no record was deleted.
func (*Store) IsDeletionNoted(context.Context, string, int64) (bool, error) { return true, nil }
