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
	for _, open := range s.exposed() {
		logger.Warn("other machines can reach this address, and need to prove nothing", "flag", "--"+open.flag, "addr", open.addr)
	}
}

// exposure is an address that other machines reach, and how to narrow it.
type exposure struct{ flag, addr, hint string }

// exposed returns the addresses at which other machines need to prove nothing.
func (s *Command) exposed() (all []exposure) {
	const ofAPI = "bind it to loopback or a unix socket, or say with --policy-file or --sas-keys-file who may do what"
	addresses := []exposure{
		{"http-addr", s.HTTPAddr, ofAPI},
		{"grpc-addr", s.GRPCAddr, ofAPI},
		{"admin-addr", s.AdminAddr, "bind it to loopback; probes and metrics for other machines are at --probe-addr"},
	}
	for _, addr := range s.AMQPAddresses() {
		addresses = append(addresses, exposure{"amqp-addr", addr, ofAPI})
	}
	for _, e := range addresses {
		isAsked := e.flag != "admin-addr" && (s.PolicyFile != "" || s.SASKeysFile != "") || s.TLSClientCAFile != ""
		if isBeyondLoopback(e.addr) && !isAsked {
			all = append(all, e)
		}
	}
	return all
}

// checkExposure refuses addresses at which other machines need to prove nothing, unless the operator allows them.
func (s *Command) checkExposure() error {
	if s.AllowAnonymous {
		return nil
	}
	for _, e := range s.exposed() {
		return settings.Bad(
			e.flag, "is %q, so other machines could do everything there and need to prove nothing; %s, or allow it with "+
				"--allow-anonymous", e.addr, e.hint,
		)
	}
	return nil
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
