package main

import (
	"strings"

	"github.com/sidebus/sidebus/test/figures"
	"github.com/sidebus/sidebus/test/figures/plot"
)

// drawAll adds the plots to the files. A plot without a measurement is left out.
func drawAll(h figures.History, files map[string]string) error {
	for name, c := range map[string]plot.Chart{
		"peers-rate.svg": peersRate(h), "peers-cpu.svg": peersCPU(h), "store-cpu.svg": storeCPU(h), "dapr-cpu.svg": daprCPU(h),
	} {
		if len(c.Bars) == 0 {
			continue
		}
		var b strings.Builder
		if err := c.Write(&b); err != nil {
			return err
		}
		files[name] = b.String()
	}
	return nil
}

func peersRate(h figures.History) plot.Chart {
	c := plot.Chart{Title: "Messages through their whole life: sent, delivered, acknowledged", Unit: "messages a second"}
	for _, p := range peers {
		if r, is := peersRun(h)[p.workload]; is {
			s := r.Of(figures.Rate)
			c.Bars = append(c.Bars, plot.Bar{Label: p.label, Parts: []float64{s.Median}, Low: s.Low, High: s.High})
		}
	}
	return c
}

// cpuBar is a bar of the medians of processes.
func cpuBar(label string, r figures.Result, processes ...string) plot.Bar {
	bar := plot.Bar{Label: label}
	for _, process := range processes {
		bar.Parts = append(bar.Parts, r.Of(figures.CPU(process)).Median)
	}
	return bar
}

func peersCPU(h figures.History) plot.Chart {
	c := plot.Chart{
		Title: "Processor time for one message", Unit: "microseconds of all cores, the median of each process",
		Legend: []string{"client", "sidecar", "server", "Redis"},
	}
	for _, p := range peers {
		if r, is := peersRun(h)[p.workload]; is {
			c.Bars = append(c.Bars, cpuBar(p.label, r, "client", "sidecar", "server", "redis"))
		}
	}
	return c
}

func daprCPU(h figures.History) plot.Chart {
	c := plot.Chart{
		Title: "Processor time for one message through Dapr's runtime", Unit: "microseconds of all cores, the median of each process",
		Legend: []string{"client and app", "sidecar", "daprd", "Redis"},
	}
	for _, d := range daprLabels {
		if r, is := daprRun(h)[d.workload]; is {
			c.Bars = append(c.Bars, cpuBar(d.label, r, "client", "sidecar", "daprd", "redis"))
		}
	}
	return c
}

func storeCPU(h figures.History) plot.Chart {
	c := plot.Chart{
		Title: "Processor time of Redis for send, receive and complete of one message", Unit: "microseconds",
	}
	r, is := h.Newest("store")["store"]
	for _, batch := range []string{"1", "10", "100"} {
		if !is {
			break
		}
		for _, who := range []struct{ name, label string }{{"streams", "bare streams"}, {"sidebus", "Sidebus"}} {
			s := r.Of(figures.Value("batch=" + batch + " redis-us/msg-" + who.name))
			c.Bars = append(c.Bars, plot.Bar{
				Label: "batch " + batch + ", " + who.label, Parts: []float64{s.Median}, Low: s.Low, High: s.High,
			})
		}
	}
	return c
}
