package main

import (
	"fmt"

	"github.com/sidebus/sidebus/test/figures"
)

// clusterRun is the newest run of a queue with partitions on a cluster.
func clusterRun(h figures.History) map[string]figures.Result {
	return h.Newest("sidebus-cluster-1-1", "sidebus-cluster-6-1", "sidebus-cluster-6-4")
}

func clusterTable(h figures.History) string {
	run := clusterRun(h)
	if run == nil {
		return notMeasured
	}
	rows := [][]string{{
		"Partitions", "Sidecars", "messages/s", "CPU us a message", "client", "sidecars", "nodes", "share of the busiest node",
	}}
	for _, partitions := range []int{1, 2, 4, 6} {
		for _, sidecars := range []int{1, 2, 4} {
			r, is := run[fmt.Sprintf("sidebus-cluster-%d-%d", partitions, sidecars)]
			if !is {
				continue
			}
			nodes := func(round figures.Round) float64 {
				return round.CPU["redis-1"] + round.CPU["redis-2"] + round.CPU["redis-3"]
			}
			rows = append(rows, []string{
				fmt.Sprint(partitions), fmt.Sprint(sidecars),
				spread(r.Of(figures.Rate)), spread(r.Of(figures.TotalCPU)),
				number(r.Of(figures.CPU("client")).Median), number(r.Of(figures.CPU("sidecar")).Median),
				number(r.Of(nodes).Median), spread(r.Of(figures.Value(busiestNode))),
			})
		}
	}
	return table(rows)
}
