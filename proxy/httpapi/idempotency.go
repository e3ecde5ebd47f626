package httpapi

import (
	"context"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// keyHeader is the header that gives a send its request id (IDEM-1).
const keyHeader = "Idempotency-Key"

// takeKey puts the header's request id into a send. With other calls the header is refused: they would pass for safe to
// repeat, and are not.
func takeKey(ctx context.Context, request any) error {
	keys := exchangeOf(ctx).keys
	if len(keys) == 0 {
		return nil
	}
	send, isSend := request.(*sidebusv1.SendRequest)
	switch {
	case !isSend:
		return wirejson.BadValue(keyHeader, "is taken by messages:send only")
	case len(keys) > 1:
		return wirejson.BadValue(keyHeader, "is given twice")
	case send.RequestId != nil && send.GetRequestId() != keys[0]:
		return wirejson.BadValue(keyHeader, "differs from requestId; give one of them, or the same twice")
	}
	send.RequestId = proto.String(keys[0])
	return nil
}
