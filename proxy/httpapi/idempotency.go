package httpapi

import (
	"context"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// keyHeader is the header with the request id of a send (IDEM-1).
const keyHeader = "Idempotency-Key"

// takeKey copies the request id from the header to a send. Other calls are refused with the header, because they are
// not idempotent.
func takeKey(ctx context.Context, request any) error {
	keys := exchangeOf(ctx).keys
	if len(keys) == 0 {
		return nil
	}
	send, isSend := request.(*sidebusv1.SendRequest)
	switch {
	case !isSend:
		return wirejson.BadValue(keyHeader, "is accepted by messages:send only")
	case len(keys) > 1:
		return wirejson.BadValue(keyHeader, "appears twice")
	case send.RequestId != nil && send.GetRequestId() != keys[0]:
		return wirejson.BadValue(keyHeader, "differs from requestId; set one of them, or both to the same value")
	}
	send.RequestId = proto.String(keys[0])
	return nil
}
