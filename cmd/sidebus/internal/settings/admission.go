package settings

import (
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Bounds of --request-memory.
const (
	minRequestMemory  = 1 << 20
	maxRequestMemory  = 64 << 30
	autoRequestMemory = 256 << 20 // the most that auto takes
)

// autoShare is the part of its memory that the process takes for requests under way.
const autoShare = 4

// loadedHeap is how far the heap may grow under load where there is memory for it: docs/decisions/0026.
const loadedHeap = 64 << 20

// units are the endings of sizes, the larger first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// RequestMemoryBytes returns the most memory for requests under way.
func (s *Settings) RequestMemoryBytes() (int64, error) {
	if s.RequestMemory == "auto" {
		return max(min(memoryLimit()/autoShare, autoRequestMemory), minRequestMemory), nil
	}
	for _, unit := range units {
		number, has := strings.CutSuffix(s.RequestMemory, unit.name)
		if !has {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > maxRequestMemory/unit.bytes || n*unit.bytes < minRequestMemory {
			break
		}
		return n * unit.bytes, nil
	}
	return 0, Bad(
		"request-memory", "is %q, must be auto or a size like 64MiB, from %s to %s", s.RequestMemory,
		sizeText(minRequestMemory), sizeText(maxRequestMemory),
	)
}

// sizeText returns a size as the flags take it.
func sizeText(bytes int64) string {
	for _, unit := range units {
		if bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// LoadedHeap returns how many bytes the heap may grow to under load before garbage is collected.
func LoadedHeap() int64 { return min(memoryLimit()/autoShare, loadedHeap) }

// memoryLimit is how much memory the process may have, as far as it can learn that: from its group of processes or from
// GOMEMLIMIT.
func memoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file) //nolint:gosec // one of two
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	return limit
}

// AllowedHostNames returns the names of --allowed-hosts.
func (s *Settings) AllowedHostNames() ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(s.AllowedHosts, ",") {
		name = strings.TrimSpace(name)
		if name == "" && s.AllowedHosts != "" || strings.ContainsAny(name, "/@ ") ||
			name != "*" && strings.Contains(name, "*") ||
			hasPort(name) {
			return nil, Bad(
				"allowed-hosts", "has %q, must be names or addresses without port, separated by commas, or *", name,
			)
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// hasPort reports whether a host has a port, with which it would match no request: ports are not compared. An address
// of IPv6 has colons too.
func hasPort(host string) bool {
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err != nil && strings.Contains(host, ":")
}
