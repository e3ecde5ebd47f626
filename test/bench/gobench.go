package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/test/figures"
)

const repository = "../.."

// goBenchmark is a benchmark of a package of Sidebus. A round runs it once, in a process of its own.
func goBenchmark(pkg, name string) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		program := filepath.Join(dir, "bench.test")
		compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./"+pkg)
		compile.Dir = repository
		if out, err := compile.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile %s: %w\n%s", pkg, err, out)
		}
		round := func(ctx context.Context, _ int) (figures.Round, error) {
			command := exec.CommandContext(
				ctx, program, "-test.run", "^$", "-test.bench", "^Benchmark"+name+"$", "-test.benchtime", "1x",
			)
			command.Dir = filepath.Join(repository, pkg)
			command.Env = append(os.Environ(), "SIDEBUS_BENCH_FULL=1")
			out, err := command.CombinedOutput()
			if err != nil {
				return figures.Round{}, fmt.Errorf("%w\n%s", err, out)
			}
			return figures.Round{Values: readBenchmark(string(out))}, nil
		}
		return &opened{
			round: round, stop: func() {},
			versions: map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go"), "redis": redisVersion(ctx)},
			settings: map[string]string{"benchmark": "Benchmark" + name + " in " + pkg},
		}, nil
	}
}

var (
	benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\w+?(?:/(\S+?))?(?:-\d+)?\s+\d+\s+(.*)$`)
	benchmarkUnit = regexp.MustCompile(`(\S+) (\S+)`)
)

// readBenchmark returns the measures of the lines that a benchmark prints, by the name of the part and the unit.
func readBenchmark(output string) map[string]float64 {
	values := map[string]float64{}
	for _, line := range benchmarkLine.FindAllStringSubmatch(output, -1) {
		for _, measure := range benchmarkUnit.FindAllStringSubmatch(line[2], -1) {
			value, err := strconv.ParseFloat(measure[1], 64)
			if unit := measure[2]; err == nil && unit != "ns/op" {
				values[strings.TrimSpace(line[1]+" "+unit)] = value
			}
		}
	}
	return values
}
