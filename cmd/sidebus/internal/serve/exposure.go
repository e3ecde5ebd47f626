package serve

import (
	"log/slog"
	"net"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

// warn logs settings that let others on this machine or network learn or do what only the app should.
func (s *Command) warn(from *settings.Sources, logger *slog.Logger) {
	for _, warning := range from.Warnings {
		logger.Warn("unknown environment variable", "warning", warning)
	}
	if settings.HasPassword(s.Store) && from.IsOnCommandLine("store") {
		logger.Warn("the command line may contain the Redis password, and every process of this machine can read it; " +
			"use --redis-password-file or " + settings.PasswordVariable + ", or set the address with SIDEBUS_STORE or in the file of --config")
	}
	if s.SASKeysFile == "" {
		for _, api := range []struct{ flag, addr string }{{"http-addr", s.HTTPAddr}, {"grpc-addr", s.GRPCAddr}} {
			if isBeyondLoopback(api.addr) {
				logger.Warn("other machines can reach this API without a token; bind --"+api.flag+
					" to loopback or a unix socket, or set --sas-keys-file", "flag", "--"+api.flag, "addr", api.addr)
			}
		}
	}
	if isBeyondLoopback(s.AdminAddr) {
		logger.Warn(
			"other machines can reach the admin address, which asks for no token and serves settings and POST /drain; "+
				"bind --admin-addr to loopback, and serve probes and metrics on --probe-addr",
			"flag",
			"--admin-addr",
			"addr",
			s.AdminAddr,
			"pprof",
			s.Pprof,
		)
	}
}

// isBeyondLoopback reports whether other machines may reach an address. A name counts unless it is localhost.
func isBeyondLoopback(addr string) bool {
	if strings.HasPrefix(addr, "unix://") {
		return false
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || strings.EqualFold(host, "localhost") {
		return false // what is malformed was refused
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}
