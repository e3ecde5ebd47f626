package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/sidebus/sidebus/test/figures"
)

// What is compared: components, each with versions of Dapr's runtime, of which "" is the newest.
var (
	daprComponents = []string{
		"redis", "sidebus-topic", "sidebus-lanes", "sidebus-streams", "sidebus-queue", "sidebus-sessions",
		"sidebus-sessions-lanes", "floor",
	}
	daprVersions = []string{"", "1.14"}
)

// daprWorkloads are messages through Dapr's runtime: published by a client of the Go SDK, and handled by an app of it.
// The client and the app, one process, are test/dapr/bench, because Dapr is in a module of its own.
func daprWorkloads(binary string) []workload {
	var all []workload
	for _, version := range daprVersions {
		suffix := ""
		if version != "" {
			suffix = "-" + version
		}
		for _, component := range daprComponents {
			d := &daprDriver{component: component, version: version, binary: binary}
			name := "dapr-" + component
			all = append(
				all, workload{name: name + suffix, share: 10, open: d.carries("single")},
				workload{name: name + "-bulk" + suffix, share: 5, open: d.carries("bulk")},
				workload{name: name + "-latency" + suffix, share: 100, open: d.latency},
			)
		}
	}
	return all
}

// daprDriver is one component with a daprd and a Redis, and with Sidebus a sidecar, of its own. Several workloads share
// it.
type daprDriver struct {
	component, version, binary string
	mu                         sync.Mutex
	started                    *driver
	users                      int
}

func (d *daprDriver) start(ctx context.Context, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users++
	if d.started != nil {
		return nil
	}
	binary, err := filepath.Abs(d.binary)
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "driver")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench")
	build.Dir, build.Stderr = repository+"/test/dapr", os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the client: %w", err)
	}
	d.started, err = startDriver(
		ctx, build.Dir, "env", "SIDEBUS_TEST_DAPRD="+d.version, program, d.component, binary, fmt.Sprint(callers),
	)
	return err
}

func (d *daprDriver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users--; d.users == 0 {
		d.started.stop()
	}
}

func (d *daprDriver) settings() map[string]string {
	app := "an app of the Go SDK over gRPC"
	switch d.component {
	case "sidebus-lanes", "sidebus-sessions-lanes":
		app += ", subscribed to 10 names of the topic"
	case "sidebus-streams":
		app += ", with 10 streaming subscriptions"
	}
	settings := map[string]string{
		"client": "Go SDK over gRPC, 64 callers that publish; " + app,
		"daprd":  "defaults of the component, a daprd of its own",
	}
	if d.component == "floor" {
		settings["component"] = "answers at once and stores nothing; unix socket"
	} else {
		settings["redis"] = "TCP, appendonly yes, appendfsync everysec"
	}
	return settings
}

// opened returns a workload of this driver.
func (d *daprDriver) opened(round func(context.Context, int) (figures.Round, error)) *opened {
	return &opened{
		round: round, versions: d.started.hello.Versions, settings: d.settings(), stop: d.stop,
	}
}

// carries returns a function that publishes in the way of a verb and waits until the app has handled everything.
func (d *daprDriver) carries(verb string) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		if err := d.start(ctx, dir); err != nil {
			return nil, err
		}
		round := func(ctx context.Context, messages int) (figures.Round, error) {
			var values map[string]float64
			r, err := carrying(d.started.processes(), func(_ context.Context, messages int) (err error) {
				values, err = d.started.do(fmt.Sprint(verb, " ", messages))
				return err
			})(ctx, messages)
			r.Values = values
			return r, err
		}
		return d.opened(round), nil
	}
}

// latency publishes messages one after the other.
func (d *daprDriver) latency(ctx context.Context, dir string) (*opened, error) {
	if err := d.start(ctx, dir); err != nil {
		return nil, err
	}
	round := func(_ context.Context, messages int) (figures.Round, error) {
		values, err := d.started.do(fmt.Sprint("latency ", messages))
		return figures.Round{Values: values}, err
	}
	return d.opened(round), nil
}
