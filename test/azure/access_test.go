package azure

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/test/sidecartest"
)

const rules = `sender:
  primaryKey: ks
  claims: [Send]
receiver:
  primaryKey: kr
  claims: [Listen]
root:
  primaryKey: km
  claims: [Send, Listen, Manage]
`

// as returns the connection string with a rule.
func as(s *sidecartest.Sidecar, rule, key string) string {
	return strings.NewReplacer("KeyName=app", "KeyName="+rule, "Key=secret", "Key="+key).Replace(connectionString(s))
}

func codeOf(err error) azservicebus.Code {
	var failed *azservicebus.Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

func TestSharedAccessKeys(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	must(t, os.WriteFile(keys, []byte(rules), 0o600))
	s := start(t, "--sas-keys-file", keys)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.HTTP+"/v1/queues/q", strings.NewReader("{}"))
	must(t, err)
	request.Header.Set("Authorization", sas.Sign("root", "km", time.Now().Add(time.Hour)))
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, answer.Body.Close())

	send := func(client *azservicebus.Client) error {
		sender, err := client.NewSender("q", nil)
		must(t, err)
		return sender.SendMessage(patient(t), &azservicebus.Message{Body: []byte("x")}, nil)
	}
	receive := func(client *azservicebus.Client) error {
		receiver, err := client.NewReceiverForQueue("q", nil)
		must(t, err)
		messages, err := receiver.ReceiveMessages(patient(t), 1, nil)
		if err != nil {
			return err
		}
		return receiver.CompleteMessage(patient(t), messages[0], nil)
	}
	schedule := func(client *azservicebus.Client) error { // through the management node only
		sender, err := client.NewSender("q", nil)
		must(t, err)
		_, err = sender.ScheduleMessages(patient(t), []*azservicebus.Message{{}}, distant(), nil)
		return err
	}
	must(t, send(connect(t, as(s, "sender", "ks"))))
	must(t, schedule(connect(t, as(s, "sender", "ks"))))
	must(t, receive(connect(t, as(s, "receiver", "kr"))))
	for name, err := range map[string]error{
		"send to receive":    receive(connect(t, as(s, "sender", "ks"))),
		"listen to send":     send(connect(t, as(s, "receiver", "kr"))),
		"listen to schedule": schedule(connect(t, as(s, "receiver", "kr"))),
		"wrong key":          send(connect(t, as(s, "sender", "wrong"))),
		"unknown rule":       send(connect(t, as(s, "nobody", "ks"))),
	} {
		if codeOf(err) != azservicebus.CodeUnauthorizedAccess {
			t.Errorf("%s: %v", name, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
