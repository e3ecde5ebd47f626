package main

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/sidebus/sidebus/test/figures"
)

// fake is a workload that notes how many messages each round had, and that it was stopped.
type fake struct {
	asked   []int
	stopped bool
}

func (f *fake) workload(name string, share int) workload {
	return workload{name: name, share: share, open: func(context.Context, string) (*opened, error) {
		return &opened{
			round: func(_ context.Context, messages int) (figures.Round, error) {
				f.asked = append(f.asked, messages)
				return figures.Round{Rate: float64(messages)}, nil
			},
			settings: map[string]string{}, stop: func() { f.stopped = true },
		}, nil
	}}
}

func TestWorkloadsTakeTurns(t *testing.T) {
	t.Parallel()
	var fast, slow, own fake
	p := plan{messages: 100, rounds: 2}
	chosen := []workload{fast.workload("fast", 0), slow.workload("slow", 5), own.workload("own", -1)}
	all, stop, err := open(t.Context(), p, chosen, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := takeTurns(t.Context(), p, all); err != nil {
		t.Fatal(err)
	}
	stop()
	for _, c := range []struct {
		name string
		got  fake
		want []int // the first of those that count messages is not measured
	}{{"fast", fast, []int{10, 100, 100}}, {"slow", slow, []int{2, 20, 20}}, {"own", own, []int{100, 100}}} {
		if !reflect.DeepEqual(c.got.asked, c.want) || !c.got.stopped {
			t.Errorf("%s: rounds of %v, want %v; stopped: %v", c.name, c.got.asked, c.want, c.got.stopped)
		}
	}
	if rounds := all[1].result.Rounds; len(rounds) != 2 || rounds[0].Rate != 20 || all[1].result.Settings["messages"] != "20 of 1 KiB" {
		t.Errorf("results of slow: %v, %v", rounds, all[1].result.Settings)
	}
}

func TestWhatIsMissingStopsTheOthers(t *testing.T) {
	t.Parallel()
	var running fake
	missing := workload{name: "missing", open: func(context.Context, string) (*opened, error) {
		return nil, errors.New("it is not installed")
	}}
	_, stop, err := open(t.Context(), plan{}, []workload{running.workload("running", 0), missing}, t.TempDir())
	stop()
	if err == nil || err.Error() != "missing: it is not installed" || !running.stopped {
		t.Errorf("got %v, the other is stopped: %v", err, running.stopped)
	}
}
