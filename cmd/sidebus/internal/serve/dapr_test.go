package serve

import (
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

func TestDAPR_1_WhereServeFindsDapr(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		return map[string]string{daprPortVariable: "50001", daprTokenVariable: "secret", "DAPR_COMPONENTS_SOCKETS_FOLDER": "/s"}[name]
	}
	for _, c := range []struct {
		settings settings.Settings
		want     string
	}{
		{settings.Settings{DaprSocket: "a.sock", DaprSelfHeal: true}, "/s/a.sock 127.0.0.1:50001 secret"},
		{settings.Settings{DaprSocket: "a.sock", DaprSelfHeal: true, DaprGRPCAddr: "[::1]:1"}, "/s/a.sock [::1]:1 secret"},
		{settings.Settings{DaprSocket: "/t/a.sock"}, "/t/a.sock  "},
		{settings.Settings{}, "  "},
	} {
		command := Command{c.settings}
		got, err := command.dapr(env)
		if text := got.Socket + " " + got.HealAddr + " " + got.APIToken; err != nil || text != c.want {
			t.Errorf("got %q, %v; want %q", text, err, c.want)
		}
	}
}
