package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"
)

// tokenLife is how long the token of a call is valid.
const tokenLife = 5 * time.Minute

// sharedAccess signs each call with a key of the sidecar's --sas-keys-file. It implements
// credentials.PerRPCCredentials.
type sharedAccess struct{ name, key string }

// GetRequestMetadata returns a new token for everything the key is for.
func (s sharedAccess) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	resource, expiry := url.QueryEscape("http://localhost/"), strconv.FormatInt(time.Now().Add(tokenLife).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.key))
	mac.Write([]byte(resource + "\n" + expiry)) // never fails
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return map[string]string{
		"authorization": "SharedAccessSignature sr=" + resource + "&sig=" + signature + "&se=" + expiry +
			"&skn=" + url.QueryEscape(s.name),
	}, nil
}

// RequireTransportSecurity reports that a token goes without TLS too: the sidecar is on the same machine.
func (sharedAccess) RequireTransportSecurity() bool { return false }
