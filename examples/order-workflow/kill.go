package main

import (
	"math/rand/v2"
	"syscall"
)

// Where a worker may be killed in a step: it has the message, it has done the step, it has noted that.
var points = []string{"received", "done", "noted"}

const (
	orders    = 12
	kills     = 10
	killsEach = 2 // at most, of one order: each costs it the rest of a lock
	seed      = 5
)

// place is a step of an order.
type place struct {
	order string
	step  int // from 1
}

// planned are the places where a worker is killed, and the point of the step. They are random, and the same in every
// run.
func planned() map[place]string {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the same in every run is what is wanted
	plan, each := map[place]string{}, map[string]int{}
	for len(plan) < kills {
		at := place{orderID(random.IntN(orders)), 1 + random.IntN(len(steps))}
		if plan[at] == "" && each[at.order] < killsEach {
			plan[at] = points[random.IntN(len(points))]
			each[at.order]++
		}
	}
	return plan
}

// fate is the point of a step at which the worker crashes, "" for none.
type fate string

// killAt returns the fate of a worker in a step. It crashes only in the first delivery.
func killAt(order string, step int, delivery int32) fate {
	if delivery > 1 {
		return ""
	}
	return fate(planned()[place{order, step}])
}

// reached kills the worker, with no chance to clean up, if this is the point.
func (f fate) reached(point string) {
	if string(f) == point {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
}
