package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

// alone are the workloads that are compared with nothing else.
var alone = []string{"store", "fan-out", "latency", "memory", "backlog", "idle", "start"}

// floors are those that may have been measured in a run of their own, each beside what it is compared with.
var floors = [][2]string{
	{"floor-sessions", "sidebus-stream"},
	{"floor-sessions", "asynq"},
	{"dapr-floor", "dapr-redis"},
	{"dapr-floor-bulk", "dapr-redis-bulk"},
}

// setup lists the runs that the tables use: machine, commit, versions, settings.
func setup(h figures.History) string {
	used := map[time.Time][]figures.Result{}
	note := func(run map[string]figures.Result, workloads ...string) {
		for _, name := range workloads {
			if r, is := run[name]; is {
				used[r.Run] = nil
			}
		}
	}
	note(peersRun(h), "sidebus-stream")
	note(daprRun(h), "dapr-redis", "dapr-redis-1.14")
	note(clusterRun(h), "sidebus-cluster-1-1")
	for _, name := range alone {
		note(h.Newest(name), name)
	}
	for _, f := range floors {
		note(h.Newest(f[0], f[1]), f[0])
	}
	if len(used) == 0 {
		return notMeasured
	}
	for _, r := range h {
		if _, is := used[r.Run]; is {
			used[r.Run] = append(used[r.Run], r)
		}
	}
	var b strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(used), time.Time.Compare) {
		b.WriteString(setupOf(used[at]) + "\n")
	}
	return b.String()
}

func setupOf(run []figures.Result) string {
	rows := [][]string{{"Workload", "Versions", "Settings"}}
	for _, r := range run {
		rows = append(rows, []string{"`" + r.Workload + "`", items(r.Versions), items(r.Settings)})
	}
	return fmt.Sprintf(
		"Run of %s UTC, commit `%s`, %d rounds in turn.\nMachine: %s. Load average when it began: %.1f.\n\n%s", run[0].Run.UTC().Format("2006-01-02 15:04"),
		run[0].Commit, len(run[0].Rounds), run[0].Machine, run[0].Load, table(rows),
	)
}

func items(all map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, name+": "+all[name])
	}
	return strings.Join(texts, "; ")
}
