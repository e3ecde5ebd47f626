package entities

import (
	"slices"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/semantics"
)

// destination is what an option of an entity names.
type destination struct{ option, name string }

// destinations are the queues and topics that must be there before the entity (ENT-13).
func (e *Entity) destinations() []destination {
	var all []destination
	for _, option := range semantics.DestinationOptions() {
		if name := client.Text(e.Description, option); name != "" {
			all = append(all, destination{option, name})
		}
	}
	return all
}

// step is an entity with the options that it gets once all entities are there, because they name one that comes after
// it.
type step struct {
	entity *Entity
	later  []string
}

// steps returns the entities in the order in which they can be made: topics before subscriptions, as they are in a Set,
// and destinations before what goes there. Where they go in a circle, somewhere on it an option comes later.
func (s *Set) steps() []step {
	o := &ordering{set: s, seen: map[*Entity]bool{}, done: map[*Entity]bool{}}
	for _, e := range s.Entities {
		o.visit(e)
	}
	return o.steps
}

type ordering struct {
	set        *Set
	seen, done map[*Entity]bool
	steps      []step
}

func (o *ordering) visit(e *Entity) {
	if o.seen[e] {
		return
	}
	o.seen[e] = true
	this := step{entity: e}
	for _, d := range e.destinations() {
		next := o.set.find(destinationKey(d.name))
		if next == nil {
			continue
		}
		if o.visit(next); !o.done[next] {
			this.later = append(this.later, d.option)
		}
	}
	slices.Sort(this.later)
	o.done[e] = true
	o.steps = append(o.steps, this)
}
