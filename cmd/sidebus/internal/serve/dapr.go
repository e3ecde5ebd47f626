package serve

import (
	"net"
	"strconv"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/proxy/dapr"
)

// What Dapr's injector and its command line tell the containers beside daprd.
const (
	daprPortVariable  = "DAPR_GRPC_PORT"
	daprTokenVariable = "DAPR_API_TOKEN" //nolint:gosec // the name of a variable, not a token
)

// dapr says where the component of Dapr is served, and how.
func (s *Command) dapr(env func(string) string) (dapr.Config, error) {
	config := dapr.Config{DropIn: s.DaprDropIn}
	if s.DaprSocket == "" {
		if s.DaprDropIn {
			return config, settings.Bad("dapr-drop-in", "needs --dapr-socket, which says where")
		}
		return config, nil
	}
	var err error
	if config.Socket, err = dapr.SocketPath(s.DaprSocket, env); err != nil {
		return config, settings.Bad("dapr-socket", "%s", err.Error())
	}
	if s.DaprSelfHeal {
		config.HealAddr, config.APIToken = s.DaprGRPCAddr, env(daprTokenVariable)
		if port := env(daprPortVariable); config.HealAddr == "" && port != "" {
			config.HealAddr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return config, checkHealAddr(config.HealAddr)
}

func checkHealAddr(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return settings.Bad("dapr-grpc-addr", "is %q, must be host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return settings.Bad("dapr-grpc-addr", "is %q, its port must be 1 to 65535", address)
	}
	return nil
}
